// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files of NetworkManager and systemd-networkd that give a device a qdisc of their own, below a
//! root that a test may make. Only what decides that is read: sections, and which device a file is
//! of. What these programs were told at run time is not in files, and not known.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::facts::ManagerFile;

/// Where files are; of two with one name the first counts.
const NETWORKD: &[&str] = &[
    "etc/systemd/network",
    "run/systemd/network",
    "usr/local/lib/systemd/network",
    "usr/lib/systemd/network",
];
const NETWORK_MANAGER: &[&str] = &[
    "etc/NetworkManager/system-connections",
    "run/NetworkManager/system-connections",
    "usr/lib/NetworkManager/system-connections",
];
/// Sections of systemd.network(5) that make a qdisc.
const QDISC_SECTIONS: &[&str] = &[
    "QDisc",
    "BandMultiQueueing",
    "BFIFO",
    "CAKE",
    "ControlledDelay",
    "DeficitRoundRobinScheduler",
    "EnhancedTransmissionSelection",
    "FairQueueing",
    "FairQueueingControlledDelay",
    "FlowQueuePIE",
    "GenericRandomEarlyDetection",
    "HeavyHitterFilter",
    "HierarchyTokenBucket",
    "NetworkEmulator",
    "PFIFO",
    "PFIFOFast",
    "PFIFOHeadDrop",
    "PIE",
    "QuickFairQueueing",
    "StochasticFairBlue",
    "StochasticFairnessQueueing",
    "TokenBucketFilter",
    "TrivialLinkEqualizer",
];
/// A longer file is of something else.
const MOST_BYTES: u64 = 1 << 20;

/// Lines `key=value` of a file, each with its section.
struct Lines(Vec<(String, String, String)>);

impl Lines {
    fn of(path: &Path) -> Option<Self> {
        let is_short = fs::metadata(path).ok()?.len() <= MOST_BYTES;
        let text = is_short.then(|| fs::read_to_string(path).ok()).flatten()?;
        let mut lines = Self(Vec::new());
        lines.add(&text);
        Some(lines)
    }

    fn add(&mut self, text: &str) {
        let mut section = String::new();
        for line in text.lines().map(str::trim) {
            if line.starts_with(['#', ';']) {
                continue;
            }
            if let Some(name) = line.strip_prefix('[') {
                name.trim_end_matches(']').clone_into(&mut section);
                // A section without a line makes a qdisc, too.
                self.0.push((section.clone(), String::new(), String::new()));
            } else if let Some((key, value)) = line.split_once('=') {
                let (key, value) = (key.trim().to_owned(), value.trim().to_owned());
                self.0.push((section.clone(), key, value));
            }
        }
    }

    fn value(&self, section: &str, key: &str) -> Option<&str> {
        let mut all = self.0.iter();
        let found = all.rfind(|(s, k, _)| s == section && k == key);
        found.map(|(_, _, value)| value.as_str())
    }
}

/// Files of one kind, by name; those of the first folder count.
fn files(root: &Path, folders: &[&str], ending: &str) -> BTreeMap<String, PathBuf> {
    let mut files = BTreeMap::new();
    for folder in folders {
        let entries = fs::read_dir(root.join(folder)).into_iter().flatten();
        for path in entries.flatten().map(|entry| entry.path()) {
            let name = path.file_name().map(|name| name.to_string_lossy());
            let name = name.unwrap_or_default().into_owned();
            if path.extension().is_some_and(|found| found == ending) {
                files.entry(name).or_insert(path);
            }
        }
    }
    files
}

/// Whether a pattern of the shell, with `*` and `?`, is of a whole name.
fn matches(pattern: &[u8], name: &[u8]) -> bool {
    match (pattern, name) {
        ([], []) => true,
        // Or many of them would be tried in all ways.
        ([b'*', b'*', ..], _) => matches(&pattern[1..], name),
        ([b'*', rest @ ..], _) => (0..=name.len()).any(|skip| matches(rest, &name[skip..])),
        ([b'?', rest @ ..], [_, name @ ..]) => matches(rest, name),
        ([byte, rest @ ..], [first, name @ ..]) => byte == first && matches(rest, name),
        _ => false,
    }
}

/// Whether a list of patterns names a device; `!` before the first turns the list round.
fn names(list: &str, device: &str) -> bool {
    let (is_turned, list) = match list.trim().strip_prefix('!') {
        Some(rest) => (true, rest),
        None => (false, list),
    };
    // A name of a device has at most 15 bytes, and no pattern needs more stars.
    let mut patterns = list.split_whitespace().filter(|p| p.len() <= 64);
    patterns.any(|pattern| matches(pattern.as_bytes(), device.as_bytes())) != is_turned
}

/// Returns the file of systemd-networkd that is the device's, if it makes a qdisc: of all that name
/// it the first.
fn networkd(root: &Path, device: &str) -> Option<ManagerFile> {
    let files = files(root, NETWORKD, "network");
    let (name, path, mut lines) = files.into_iter().find_map(|(name, path)| {
        let lines = Lines::of(&path)?;
        let is_of_device = names(lines.value("Match", "Name")?, device);
        is_of_device.then_some((name, path, lines))
    })?;
    let folders: Vec<String> = NETWORKD.iter().map(|f| format!("{f}/{name}.d")).collect();
    let folders: Vec<&str> = folders.iter().map(String::as_str).collect();
    for path in self::files(root, &folders, "conf").into_values() {
        let text = fs::read_to_string(path).unwrap_or_default();
        lines.add(&text);
    }
    let section = lines
        .0
        .iter()
        .map(|(section, _, _)| section)
        .find(|section| QDISC_SECTIONS.contains(&section.as_str()))?;
    Some(ManagerFile {
        manager: "systemd-networkd".to_owned(),
        file: path.display().to_string(),
        setting: format!("[{section}]"),
    })
}

/// Returns a connection of NetworkManager with a qdisc that the device may get.
fn network_manager(root: &Path, device: &str) -> Option<ManagerFile> {
    let files = files(root, NETWORK_MANAGER, "nmconnection");
    files.into_values().find_map(|path| {
        let lines = Lines::of(&path)?;
        let name = lines.value("connection", "interface-name");
        let list = lines.value("match", "interface-name");
        let is_of_device = match (name.filter(|name| !name.is_empty()), list) {
            (Some(name), _) => name == device,
            (None, Some(list)) => names(&list.replace(';', " "), device),
            // Of any device.
            (None, None) => true,
        };
        let setting = lines
            .0
            .iter()
            .find(|(section, key, _)| section == "tc" && key.starts_with("qdisc."));
        let (_, key, value) = setting.filter(|_| is_of_device)?;
        Some(ManagerFile {
            manager: "NetworkManager".to_owned(),
            file: path.display().to_string(),
            setting: format!("[tc] {key}={value}"),
        })
    })
}

/// Returns the file that gives the device a qdisc.
pub fn file_of(root: &Path, device: &str) -> Option<ManagerFile> {
    networkd(root, device).or_else(|| network_manager(root, device))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Option<String> {
        let root = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let found = file_of(root.path(), "eth0")?;
        let file = found.file.rsplit('/').next().unwrap().to_owned();
        Some(format!("{} {file} {}", found.manager, found.setting))
    }

    #[test]
    fn networkd_gives_a_device_the_first_file_that_names_it() {
        const LAN: &str = "etc/systemd/network/20-lan.network";
        let cake = "# comment\n[Match]\nName=en* eth?\n\n[CAKE]\nBandwidth=100M\n";
        let of = |text: &str| found(&[(LAN, text)]);
        let is_cake = Some("systemd-networkd 20-lan.network [CAKE]".to_owned());
        assert_eq!(of(cake), is_cake);
        assert_eq!(of(&cake.replace("eth?", "eth1")), None);
        assert_eq!(of(&cake.replace("en* eth?", "!eth0")), None);
        assert_eq!(of(&cake.replace("en* eth?", "!wlan0")), is_cake);
        assert_eq!(of("[Match]\nName=eth0\n[Network]\nDHCP=yes\n"), None);
        // An earlier file without a qdisc is the device's, and one in etc hides its like.
        let plain = "[Match]\nName=eth0\n";
        let earlier = ("usr/lib/systemd/network/10-all.network", plain);
        assert_eq!(found(&[(LAN, cake), earlier]), None);
        let hidden = ("usr/lib/systemd/network/20-lan.network", cake);
        assert_eq!(found(&[(LAN, plain), hidden]), None);
        let more = "run/systemd/network/20-lan.network.d/fq.conf";
        assert_eq!(
            found(&[(LAN, plain), (more, "[FairQueueing]\n")]),
            Some("systemd-networkd 20-lan.network [FairQueueing]".to_owned())
        );
    }

    #[test]
    fn a_connection_of_network_manager_may_have_a_qdisc() {
        const FILE: &str = "etc/NetworkManager/system-connections/lan.nmconnection";
        let text = "[connection]\nid=lan\ninterface-name=eth0\n\n[tc]\nqdisc.root=fq_codel\n";
        let of = |text: &str| found(&[(FILE, text)]);
        let is_found = Some("NetworkManager lan.nmconnection [tc] qdisc.root=fq_codel".to_owned());
        assert_eq!(of(text), is_found);
        assert_eq!(of(&text.replace("eth0", "eth1")), None);
        assert_eq!(of(&text.replace("interface-name=eth0\n", "")), is_found);
        let list = text.replace("interface-name=eth0\n", "[match]\ninterface-name=eth*;\n");
        assert_eq!(of(&list), is_found);
        assert_eq!(of(&list.replace("eth*", "wlan*")), None);
        assert_eq!(
            of(&text.replace("qdisc.root=fq_codel", "tfilter.root=x")),
            None
        );
        assert_eq!(of("\u{0}[[]=]\n=\n[tc"), None);
    }
}
