// SPDX-License-Identifier: MIT OR Apache-2.0
//! Byte queue limits in sysfs, and a file beside the lock that keeps what they were before. Both end
//! with the system's run. What shall become of them is `host-config`'s.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use host_config::{Facts, KeptLimits, LimitChange, LimitPlan, QueueLimits};
use serde::{Deserialize, Serialize};

use crate::run_dir::{path, write};

/// Where devices are.
const DEVICES: &str = "/sys/class/net";
/// The file of a queue's folder.
const LIMIT_MIN: &str = "byte_queue_limits/limit_min";

/// The file of a device.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    /// Interface index: the values are of no other device of the same name.
    index: u32,
    queues: KeptLimits,
}

/// Returns a device's folder in sysfs.
fn device_dir(device: &str) -> PathBuf {
    Path::new(DEVICES).join(device)
}

/// Returns the file that keeps what was before.
fn kept_path(device: &str) -> PathBuf {
    path().join(format!("byte-queue-limits.{device}.json"))
}

/// Reads the byte queue limits of a device. sysfs may show another network namespace than netlink
/// does, then there are none.
pub(crate) fn read(facts: &Facts) -> Result<QueueLimits> {
    let folder = device_dir(&facts.name);
    let index = fs::read_to_string(folder.join("ifindex")).unwrap_or_default();
    if index.trim() != facts.index.to_string() {
        return Ok(QueueLimits::default());
    }
    Ok(QueueLimits {
        min_bytes: min_bytes(&folder),
        kept: kept(&kept_path(&facts.name), facts.index)?,
    })
}

/// Returns `limit_min` of each transmit queue of a device's folder that has one.
fn min_bytes(folder: &Path) -> BTreeMap<u16, u64> {
    let entries = fs::read_dir(folder.join("queues"));
    let entries = entries.into_iter().flatten().flatten();
    let queues = entries.filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        let queue = name.strip_prefix("tx-")?.parse().ok()?;
        let text = fs::read_to_string(entry.path().join(LIMIT_MIN)).ok()?;
        Some((queue, text.trim().parse().ok()?))
    });
    queues.collect()
}

/// Returns what is kept in a file of the device with this index.
fn kept(path: &Path, index: u32) -> Result<KeptLimits> {
    let text = match fs::read_to_string(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(KeptLimits::new()),
        text => text.with_context(|| path.display().to_string())?,
    };
    let file: File = serde_json::from_str(&text).with_context(|| path.display().to_string())?;
    match file.index == index {
        true => Ok(file.queues),
        false => Ok(KeptLimits::new()),
    }
}

/// Keeps what was before, or deletes the file if nothing was changed.
fn keep(path: &Path, index: u32, kept: &KeptLimits) -> Result<()> {
    if kept.is_empty() {
        return match fs::remove_file(path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(error).with_context(|| path.display().to_string())
            }
            _ => Ok(()),
        };
    }
    let queues = kept.clone();
    write(path, &serde_json::to_string(&File { index, queues })?)
}

/// Makes the changes that raise limits, and afterwards those that lower them. `kept` is what was kept
/// when they were planned.
pub(crate) fn make(
    facts: &Facts,
    kept: &KeptLimits,
    plan: &LimitPlan,
    is_raise: bool,
) -> Result<()> {
    let changes = plan.changes.iter().filter(|c| c.is_raise() == is_raise);
    let changes: Vec<&LimitChange> = changes.collect();
    let file = kept_path(&facts.name);
    if is_raise && !plan.changes.is_empty() {
        keep(&file, facts.index, &plan.kept_meanwhile)?;
    }
    let folder = device_dir(&facts.name);
    for change in changes {
        let path = folder.join(format!("queues/tx-{}/{LIMIT_MIN}", change.queue));
        let set = fs::write(&path, change.min_bytes.to_string());
        set.map_err(|error| {
            let advice = match error.kind() {
                ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
                    "; changes need root, and /sys that may be written"
                }
                _ => "",
            };
            anyhow!("{}: {error}{advice}", path.display())
        })?;
    }
    let is_same = plan.changes.is_empty() && plan.kept == *kept;
    if !is_raise && !is_same {
        keep(&file, facts.index, &plan.kept)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail that way")]

    use super::*;
    use host_config::KeptLimit;

    #[test]
    fn limits_in_files() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(min_bytes(folder.path()), BTreeMap::new());
        for (queue, text) in [("tx-0", "0\n"), ("tx-11", "65536\n"), ("rx-0", "7\n")] {
            let queue = folder.path().join("queues").join(queue);
            fs::create_dir_all(queue.join("byte_queue_limits")).unwrap();
            fs::write(queue.join(LIMIT_MIN), text).unwrap();
        }
        fs::create_dir_all(folder.path().join("queues/tx-1")).unwrap();
        let expected = BTreeMap::from([(0, 0), (11, 65_536)]);
        assert_eq!(min_bytes(folder.path()), expected);
    }

    #[test]
    fn what_is_kept_is_of_one_device() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("byte-queue-limits.eth0.json");
        assert_eq!(kept(&path, 3).unwrap(), KeptLimits::new());
        let limit = KeptLimit {
            before_bytes: 1,
            set_bytes: vec![65_536],
        };
        let limits = KeptLimits::from([(2, limit)]);
        keep(&path, 3, &limits).unwrap();
        assert_eq!(kept(&path, 3).unwrap(), limits);
        assert_eq!(kept(&path, 4).unwrap(), KeptLimits::new());
        keep(&path, 3, &KeptLimits::new()).unwrap();
        assert!(!path.exists());
        keep(&path, 3, &KeptLimits::new()).unwrap();
        fs::write(&path, "{").unwrap();
        assert!(kept(&path, 3).is_err());
    }
}
