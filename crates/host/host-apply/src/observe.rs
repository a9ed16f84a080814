// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the kernel says of a device.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use host_config::{Facts, Port, minor};
use linux_io::links::{Link, links, named};
use tcpsp::{Handle, Tc};
use units::ethernet;
use units::nearest::hint;

use crate::rights::refused;

const DEVICES: &str = "/sys/class/net";
const VLAN_TAG_BYTES: u32 = 4;

/// A device, and what stands there.
#[derive(Clone)]
pub struct Observed {
    /// What is known of it beside its tables.
    pub facts: Facts,
    /// Its folder in sysfs, if sysfs shows the device.
    pub dir: Option<PathBuf>,
    pub port: Port,
    /// What the kernel calls its kind, such as `vlan`; a device of hardware has none.
    pub kind: Option<String>,
    /// Whether mq can stand there: it has several transmit queues, of which it may use one.
    pub is_multiqueue: bool,
    /// Its longest frame, with a VLAN tag.
    pub max_frame_bytes: u32,
    /// The longest burst of GSO that it takes.
    pub burst_bytes: u64,
}

/// Reads a device's tables.
///
/// # Errors
/// If there is no such device, or the kernel's.
pub fn observe(tc: &mut Tc, device: &str) -> Result<Observed> {
    let links = links()?;
    let link = named(&links, device);
    let link = link.ok_or_else(|| {
        let names: Vec<&str> = links.iter().map(|link| link.name.as_str()).collect();
        anyhow!("{device}: expected a device{}", hint(device, &names))
    })?;
    let dir = dir(Path::new(DEVICES), link);
    let mut facts = facts(link, dir.as_deref());
    let tag_bytes = if link.is_ethernet { VLAN_TAG_BYTES } else { 0 };
    let port = backend::port(tc, &facts, link).map_err(|error| refused(tc, error));
    let mut port = port.with_context(|| device.to_owned())?;
    port.keep_known_speed();
    facts.speed_bps = port.speed_bps;
    Ok(Observed {
        kind: link.kind.clone(),
        is_multiqueue: link.tx_queues > 1,
        max_frame_bytes: facts.max_frame_bytes.saturating_add(tag_bytes),
        burst_bytes: link.burst_bytes,
        facts,
        dir,
        port,
    })
}

/// Returns the names of the devices on which there is something of ours.
pub(crate) fn ours(tc: &mut Tc) -> Result<Vec<String>> {
    let roots = tc.qdiscs()?;
    let is_ours = |link: &&Link| {
        roots.iter().any(|qdisc| {
            let is_known = [minor::root(), minor::mq()].contains(&qdisc.handle);
            qdisc.device == link.index && qdisc.parent == Handle::ROOT && is_known
        })
    };
    let links = links()?;
    Ok(links
        .iter()
        .filter(is_ours)
        .map(|link| link.name.clone())
        .collect())
}

/// Returns a device's folder in sysfs. sysfs may show another network namespace than netlink does,
/// where a device of the same name and index is another: its address and the device on a bus that it
/// belongs to tell them apart.
fn dir(devices: &Path, link: &Link) -> Option<PathBuf> {
    let dir = devices.join(&link.name);
    let text = |name: &str| Some(fs::read_to_string(dir.join(name)).ok()?.trim().to_owned());
    let bytes = link.address.iter().map(|byte| format!("{byte:02x}"));
    let address = bytes.collect::<Vec<_>>().join(":");
    let parent = fs::read_link(dir.join("device")).ok();
    let parent = parent.as_deref().and_then(Path::file_name);
    let is_this = text("ifindex")? == link.index.to_string()
        && text("address")? == address
        && parent == link.parent.as_ref().map(OsStr::new);
    is_this.then_some(dir)
}

/// Returns the transmit queues of a device's folder, each by its number, with its folder.
pub(crate) fn tx_queues(dir: &Path) -> impl Iterator<Item = (u16, PathBuf)> {
    let entries = fs::read_dir(dir.join("queues"));
    entries.into_iter().flatten().flatten().filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        Some((name.strip_prefix("tx-")?.parse().ok()?, entry.path()))
    })
}

/// Adds what sysfs knows: transmit queues in use and the line rate.
fn facts(link: &Link, dir: Option<&Path>) -> Facts {
    let in_use = || {
        let count = tx_queues(dir?).count();
        u16::try_from(count).ok().filter(|count| *count > 0)
    };
    let mbit = || -> Option<u64> {
        let text = fs::read_to_string(dir?.join("speed")).ok()?;
        let speed = text.trim().parse().ok();
        speed.filter(|speed| (1..10_000_000).contains(speed))
    };
    let header_bytes = if link.is_ethernet {
        ethernet::HEADER_BYTES
    } else {
        0
    };
    let mtu_bytes = u32::try_from(link.mtu_bytes).unwrap_or(u32::MAX);
    let allocated = u16::try_from(link.tx_queues).unwrap_or(u16::MAX);
    Facts {
        index: link.index,
        name: link.name.clone(),
        is_ethernet: link.is_ethernet,
        queues: in_use().unwrap_or(allocated),
        speed_bps: mbit()
            .filter(|_| !link.has_made_up_speed())
            .map(|mbit| mbit * 1_000_000),
        has_made_up_speed: link.has_made_up_speed(),
        max_frame_bytes: mtu_bytes.saturating_add(header_bytes),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail that way")]

    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_device_of_another_namespace_is_another() {
        let devices = tempfile::tempdir().unwrap();
        let eth0 = devices.path().join("eth0");
        fs::create_dir(&eth0).unwrap();
        fs::write(eth0.join("ifindex"), "2\n").unwrap();
        fs::write(eth0.join("address"), "02:fc:00:00:00:0a\n").unwrap();
        symlink("../../../0000:03:00.0", eth0.join("device")).unwrap();
        let link = Link {
            index: 2,
            name: "eth0".to_owned(),
            alt_names: Vec::new(),
            address: vec![2, 0xfc, 0, 0, 0, 10],
            parent: Some("0000:03:00.0".to_owned()),
            mtu_bytes: 1500,
            burst_bytes: 65_536,
            is_ethernet: true,
            tx_queues: 1,
            kind: None,
            tied_to: None,
            tied_namespace: None,
            sent_frames: 0,
            sent_bytes: 0,
        };
        let dir = |link: &Link| dir(devices.path(), link);
        assert_eq!(dir(&link), Some(eth0));
        let address = vec![2, 0xfc, 0, 0, 0, 11];
        let others = [
            Link {
                index: 3,
                ..link.clone()
            },
            Link {
                address,
                ..link.clone()
            },
            Link {
                address: Vec::new(),
                ..link.clone()
            },
            // ipvlan has the address of the device below it.
            Link {
                parent: None,
                ..link.clone()
            },
            Link {
                name: "eth1".to_owned(),
                ..link
            },
        ];
        for other in others {
            assert_eq!(dir(&other), None, "{other:?}");
        }
    }

    #[test]
    fn the_devices_of_this_host_are_in_sysfs() {
        let links = links().unwrap();
        let here = |link: &&Link| link.name == "lo" || link.parent.is_some();
        for link in links.iter().filter(here) {
            let dir = dir(Path::new(DEVICES), link);
            assert!(dir.is_some(), "{link:?}");
        }
    }
}
