// SPDX-License-Identifier: MIT OR Apache-2.0
//! Facts from files of the kernel, below a root that a test may make.

use std::fs;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use crate::facts::{Device, Facts, IdleState};

const BPS_OF_MBPS: u64 = 1_000_000;
/// The last bytes of a signed module, `MODULE_SIG_STRING` of the kernel.
const SIGNATURE_MARK: &[u8] = b"~Module signature appended~\n";

fn text(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    Some(text.trim().to_owned())
}

fn number(path: &Path) -> Option<u64> {
    text(path)?.parse().ok()
}

/// Returns the entries of a folder whose names begin so, in order.
fn entries(folder: &Path, prefix: &str) -> Vec<PathBuf> {
    let all = fs::read_dir(folder).into_iter().flatten().flatten();
    let named = all.filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix));
    let mut paths: Vec<_> = named.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

/// Returns the device that a device is a port of.
pub fn master(root: &Path, device: &str) -> Option<String> {
    let link = fs::read_link(root.join("sys/class/net").join(device).join("master"));
    let name = link.ok()?.file_name()?.to_string_lossy().into_owned();
    Some(name)
}

/// Reads what concerns the whole host.
pub fn host(root: &Path, facts: &mut Facts) {
    facts.kernel_release = text(&root.join("proc/sys/kernel/osrelease")).unwrap_or_default();
    let module = root.join("sys/module/sch_psp");
    facts.is_module_loaded = module.exists();
    facts.module_version = text(&module.join("version"));
    let modules = root.join("lib/modules").join(&facts.kernel_release);
    let listed = fs::read_to_string(modules.join("modules.dep")).unwrap_or_default();
    let file = listed
        .lines()
        .filter_map(|line| line.split(':').next())
        .find(|file| {
            let name = file.rsplit('/').next().unwrap_or_default();
            name.starts_with("sch_psp.ko")
        })
        .map(|file| modules.join(file));
    facts.is_module_installed = file.is_some();
    facts.is_module_signed = file.as_deref().and_then(is_signed);
    facts.module_file = file.map(|file| file.display().to_string());
    facts.are_signatures_enforced = enforces_signatures(root);
    let clock = "sys/devices/system/clocksource/clocksource0/current_clocksource";
    facts.clocksource = text(&root.join(clock));
    facts.tso_rtt_log = number(&root.join("proc/sys/net/ipv4/tcp_tso_rtt_log"));
    let idle = root.join("sys/devices/system/cpu/cpu0/cpuidle");
    facts.idle_states = entries(&idle, "state")
        .iter()
        .filter(|state| number(&state.join("disable")) != Some(1))
        .filter_map(|state| {
            Some(IdleState {
                name: text(&state.join("name"))?,
                latency_us: number(&state.join("latency"))?,
            })
        })
        .collect();
}

/// Whether the kernel refuses modules without a signature that it trusts: by its command line or
/// configuration, or because it is locked down.
fn enforces_signatures(root: &Path) -> bool {
    let enforced = text(&root.join("sys/module/module/parameters/sig_enforce"));
    let lockdown = text(&root.join("sys/kernel/security/lockdown"));
    enforced.as_deref() == Some("Y")
        || lockdown.is_some_and(|modes| modes.contains('[') && !modes.contains("[none]"))
}

/// Whether a module's file ends as the kernel's sign-file leaves it.
fn is_signed(file: &Path) -> Option<bool> {
    if file.extension()? != "ko" {
        return None;
    }
    let mut file = fs::File::open(file).ok()?;
    let length = file.metadata().ok()?.len();
    let mark = u64::try_from(SIGNATURE_MARK.len()).ok()?;
    file.seek(SeekFrom::Start(length.saturating_sub(mark)))
        .ok()?;
    let mut end = Vec::new();
    file.take(mark).read_to_end(&mut end).ok()?;
    Some(end == SIGNATURE_MARK)
}

fn folder(root: &Path, name: &str) -> PathBuf {
    root.join("sys/class/net").join(name)
}

/// Whether it is a device of a bus, with a link.
pub fn is_nic_with_link(root: &Path, name: &str) -> bool {
    let folder = folder(root, name);
    folder.join("device").exists() && number(&folder.join("carrier")) == Some(1)
}

/// Returns the frames that a device counted as sent.
pub fn sent_frames(root: &Path, name: &str) -> Option<u64> {
    number(&folder(root, name).join("statistics/tx_packets"))
}

/// Reads what concerns a device.
pub fn device(root: &Path, device: &mut Device) {
    let folder = folder(root, &device.name);
    let driver = fs::read_link(folder.join("device/driver")).ok();
    let driver = driver.as_deref().and_then(Path::file_name);
    device.driver = driver.map(|name| name.to_string_lossy().into_owned());
    let id = |name: &str| {
        let text = text(&folder.join("device").join(name))?;
        u32::from_str_radix(text.strip_prefix("0x")?, 16)
            .ok()
            .filter(|id| *id <= 0xffff)
    };
    device.pci_id = id("vendor")
        .zip(id("device"))
        .map(|(vendor, device)| (vendor << 16) | device);
    // The kernel gives no carrier of a device that is down.
    device.has_carrier = number(&folder.join("carrier")).map(|carrier| carrier == 1);
    device.mtu_bytes = number(&folder.join("mtu"));
    // -1, which is no u64, or 2^32 - 1 are of a driver that does not know.
    let mbps = number(&folder.join("speed")).filter(|mbps| *mbps < u64::from(u32::MAX));
    device.line_rate_bps = mbps.map(|mbps| mbps * BPS_OF_MBPS);
    device.is_full_duplex = match text(&folder.join("duplex")).as_deref() {
        Some("full") => Some(true),
        Some("half") => Some(false),
        _ => None,
    };
    let limits = entries(&folder.join("queues"), "tx-");
    device.queue_limits_min_bytes = limits
        .iter()
        .filter_map(|queue| number(&queue.join("byte_queue_limits/limit_min")))
        .collect();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(root: &Path, name: &str, content: &str) {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    #[test]
    fn a_port_names_its_master() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        file(root, "sys/class/net/eth0/mtu", "1500\n");
        assert_eq!(master(root, "eth0"), None);
        let link = root.join("sys/class/net/eth0/master");
        std::os::unix::fs::symlink("../ovs-system", link).unwrap();
        assert_eq!(master(root, "eth0").as_deref(), Some("ovs-system"));
    }

    #[test]
    fn a_host_in_files() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        file(root, "proc/sys/kernel/osrelease", "6.12.48-amd64\n");
        let dep = "kernel/net/sched/sch_fq.ko.xz: x\nupdates/dkms/sch_psp.ko.xz:\n";
        file(root, "lib/modules/6.12.48-amd64/modules.dep", dep);
        file(
            root,
            "sys/devices/system/clocksource/clocksource0/current_clocksource",
            "hpet\n",
        );
        for (state, name, latency, disable) in [
            (0, "POLL", "0", "0"),
            (1, "C1E", "10", "0"),
            (2, "C6", "133", "1"),
        ] {
            let state = format!("sys/devices/system/cpu/cpu0/cpuidle/state{state}");
            file(root, &format!("{state}/name"), name);
            file(root, &format!("{state}/latency"), latency);
            file(root, &format!("{state}/disable"), disable);
        }
        let mut facts = Facts::default();
        host(root, &mut facts);
        assert_eq!(facts.kernel_release, "6.12.48-amd64");
        assert!(facts.is_module_installed && !facts.is_module_loaded);
        assert_eq!(facts.clocksource.as_deref(), Some("hpet"));
        assert_eq!(facts.idle_states.last().unwrap().name, "C1E");
        assert_eq!(facts.idle_states.len(), 2);
        file(root, "sys/module/sch_psp/version", "0.2.0\n");
        host(root, &mut facts);
        assert!(facts.is_module_loaded);
        assert_eq!(facts.module_version.as_deref(), Some("0.2.0"));
    }

    #[test]
    fn signatures_in_files() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        file(root, "proc/sys/kernel/osrelease", "6.1.0\n");
        let read = || {
            let mut facts = Facts::default();
            host(root, &mut facts);
            (facts.are_signatures_enforced, facts.is_module_signed)
        };
        assert_eq!(read(), (false, None));
        let modules = "lib/modules/6.1.0";
        file(root, &format!("{modules}/modules.dep"), "sch_psp.ko:\n");
        assert_eq!(read(), (false, None));
        for (content, expected) in [
            ("", Some(false)),
            ("ELF", Some(false)),
            ("ELF ~Module signature appended~", Some(false)),
            ("ELF ~Module signature appended~\n", Some(true)),
        ] {
            file(root, &format!("{modules}/sch_psp.ko"), content);
            assert_eq!(read(), (false, expected), "{content:?}");
        }
        let dep = format!("{modules}/modules.dep");
        file(root, &dep, "sch_psp.ko.xz:\n");
        file(root, &format!("{modules}/sch_psp.ko.xz"), "xz");
        assert_eq!(read().1, None);

        let enforce = "sys/module/module/parameters/sig_enforce";
        file(root, enforce, "Y\n");
        assert!(read().0);
        file(root, enforce, "N\n");
        for (modes, expected) in [
            ("[none] integrity confidentiality\n", false),
            ("none [integrity] confidentiality\n", true),
            ("none integrity [confidentiality]\n", true),
            ("", false),
        ] {
            file(root, "sys/kernel/security/lockdown", modes);
            assert_eq!(read().0, expected, "{modes}");
        }
    }

    #[test]
    fn a_device_in_files() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let net = "sys/class/net/eth0";
        file(root, "sys/bus/pci/drivers/ice/bind", "");
        fs::create_dir_all(root.join(net).join("device")).unwrap();
        let driver = root.join(net).join("device/driver");
        std::os::unix::fs::symlink("../../../../../sys/bus/pci/drivers/ice", driver).unwrap();
        file(root, &format!("{net}/device/vendor"), "0x8086\n");
        file(root, &format!("{net}/device/device"), "0x1533\n");
        file(root, &format!("{net}/carrier"), "1\n");
        file(root, &format!("{net}/speed"), "25000\n");
        file(root, &format!("{net}/duplex"), "full\n");
        file(root, &format!("{net}/statistics/tx_packets"), "77\n");
        for queue in 0..2 {
            let limit = format!("{net}/queues/tx-{queue}/byte_queue_limits/limit_min");
            file(root, &limit, &format!("{}\n", queue * 1000));
        }
        let mut eth0 = Device {
            name: "eth0".to_owned(),
            ..Device::default()
        };
        device(root, &mut eth0);
        assert_eq!(eth0.driver.as_deref(), Some("ice"));
        assert_eq!(eth0.pci_id, Some(0x8086_1533));
        assert_eq!(
            (eth0.has_carrier, eth0.is_full_duplex),
            (Some(true), Some(true))
        );
        assert_eq!(eth0.line_rate_bps, Some(25_000_000_000));
        assert_eq!(eth0.queue_limits_min_bytes, [0, 1000]);
        assert_eq!(sent_frames(root, "eth0"), Some(77));
        assert!(is_nic_with_link(root, "eth0") && !is_nic_with_link(root, "eth1"));
        file(root, &format!("{net}/speed"), "-1\n");
        device(root, &mut eth0);
        assert_eq!(eth0.line_rate_bps, None);
    }
}
