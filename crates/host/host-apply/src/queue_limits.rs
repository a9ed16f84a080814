// SPDX-License-Identifier: MIT OR Apache-2.0
//! Byte queue limits in sysfs, and a file beside the lock that keeps what they were before. Both end
//! with the system's run. What shall become of them is `host-config`'s.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use host_config::{KeptLimits, LimitChange, LimitPlan, QueueLimits, WantedLimits};

use crate::observe::{Observed, tx_queues};
use crate::run_dir::{path, write};

/// The network namespace of this process.
const NAMESPACE: &str = "/proc/self/ns/net";
/// The file of a queue's folder.
const LIMIT_MIN: &str = "byte_queue_limits/limit_min";

/// The byte queue limits of a device, and what becomes of them.
pub(crate) struct Work {
    /// None if sysfs does not show the device.
    files: Option<Files>,
    pub(crate) limits: QueueLimits,
    pub(crate) plan: LimitPlan,
    /// Whether the file asks for them: if not, pacing does not depend on them.
    is_asked: bool,
    /// Whether a step has failed: then no other is made.
    pub(crate) has_failed: bool,
}

/// Where limits are.
struct Files {
    /// The device's folder in sysfs.
    dir: PathBuf,
    /// Keeps what they were.
    kept: PathBuf,
}

impl Files {
    /// Returns those of a device that sysfs shows. A device keeps its index when its name changes;
    /// network namespaces that share the folder have indices of their own.
    fn new(observed: &Observed) -> Result<Option<Self>> {
        let Some(dir) = observed.dir.clone() else {
            return Ok(None);
        };
        let namespace = fs::metadata(NAMESPACE).context(NAMESPACE)?.ino();
        let index = observed.facts.index;
        let kept = path().join(format!("byte-queue-limits.{namespace}.{index}.json"));
        Ok(Some(Self { dir, kept }))
    }

    fn read(&self) -> Result<QueueLimits> {
        Ok(QueueLimits {
            min_bytes: min_bytes(&self.dir),
            kept: kept(&self.kept)?,
        })
    }
}

/// Reads the byte queue limits of a device; it has none if sysfs does not show it.
pub(crate) fn read(observed: &Observed) -> Result<QueueLimits> {
    Files::new(observed)?.map_or_else(|| Ok(QueueLimits::default()), |files| files.read())
}

/// Returns `limit_min` of each transmit queue of a device's folder that has one.
fn min_bytes(folder: &Path) -> BTreeMap<u16, u64> {
    let limits = tx_queues(folder).filter_map(|(queue, dir)| {
        let text = fs::read_to_string(dir.join(LIMIT_MIN)).ok()?;
        Some((queue, text.trim().parse().ok()?))
    });
    limits.collect()
}

/// Returns what is kept in a file.
fn kept(path: &Path) -> Result<KeptLimits> {
    let text = match fs::read_to_string(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(KeptLimits::new()),
        text => text.with_context(|| path.display().to_string())?,
    };
    serde_json::from_str(&text).with_context(|| path.display().to_string())
}

/// Keeps what was before, or deletes the file if nothing was changed.
fn keep(path: &Path, kept: &KeptLimits) -> Result<()> {
    if kept.is_empty() {
        return match fs::remove_file(path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(error).with_context(|| path.display().to_string())
            }
            _ => Ok(()),
        };
    }
    write(path, &serde_json::to_string(kept)?)
}

fn note(error: &anyhow::Error) -> String {
    format!("byte queue limits stay as they are: {error:#}")
}

impl Work {
    /// Plans the limits of a device. Returns a note, too, if they cannot be read: without the key
    /// that keeps nobody from the rest.
    pub(crate) fn new(
        observed: &Observed,
        wanted: &WantedLimits,
    ) -> Result<(Self, Option<String>)> {
        Self::of(Files::new(observed), wanted)
    }

    fn of(files: Result<Option<Files>>, wanted: &WantedLimits) -> Result<(Self, Option<String>)> {
        let read = files.and_then(|files| {
            let limits = files
                .as_ref()
                .map_or_else(|| Ok(QueueLimits::default()), Files::read);
            Ok((files, limits?))
        });
        let is_asked = wanted.is_asked();
        let (files, limits, note) = match read {
            Ok((files, limits)) => (files, limits, None),
            Err(error) if is_asked => return Err(error),
            Err(error) => (None, QueueLimits::default(), Some(note(&error))),
        };
        let work = Self {
            plan: limits.plan(wanted),
            files,
            limits,
            is_asked,
            has_failed: false,
        };
        Ok((work, note))
    }

    /// Makes the changes that raise limits, and afterwards those that lower them. Returns a note if
    /// that fails and the file does not ask for it.
    pub(crate) fn make(&mut self, is_raise: bool) -> Result<Option<String>> {
        // What is kept until all changes are made still leads back from where they failed.
        let (false, Some(files)) = (self.has_failed, &self.files) else {
            return Ok(None);
        };
        match make(files, &self.limits.kept, &self.plan, is_raise) {
            Ok(()) => Ok(None),
            Err(error) => {
                self.has_failed = true;
                if self.is_asked {
                    Err(error)
                } else {
                    Ok(Some(note(&error)))
                }
            }
        }
    }
}

/// Makes the changes that raise limits, or those that lower them. `kept` is what was kept when they
/// were planned.
fn make(files: &Files, kept: &KeptLimits, plan: &LimitPlan, is_raise: bool) -> Result<()> {
    let changes = plan.changes.iter().filter(|c| c.is_raise() == is_raise);
    let changes: Vec<&LimitChange> = changes.collect();
    if is_raise && !plan.changes.is_empty() {
        keep(&files.kept, &plan.kept_meanwhile)?;
    }
    for change in changes {
        let path = files
            .dir
            .join(format!("queues/tx-{}/{LIMIT_MIN}", change.queue));
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
        keep(&files.kept, &plan.kept)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail that way")]

    use super::*;
    use host_config::{Facts, KeptLimit, Port};

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
    fn what_is_kept_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("byte-queue-limits.1.2.json");
        assert_eq!(kept(&path).unwrap(), KeptLimits::new());
        let limit = KeptLimit {
            before_bytes: 1,
            set_bytes: vec![65_536],
        };
        let limits = KeptLimits::from([(2, limit)]);
        keep(&path, &limits).unwrap();
        assert_eq!(kept(&path).unwrap(), limits);
        keep(&path, &KeptLimits::new()).unwrap();
        assert!(!path.exists());
        keep(&path, &KeptLimits::new()).unwrap();
        fs::write(&path, "{").unwrap();
        assert!(kept(&path).is_err());
    }

    fn observed(name: &str, index: u32, dir: Option<PathBuf>) -> Observed {
        let facts = Facts {
            index,
            name: name.to_owned(),
            is_ethernet: true,
            queues: 1,
            speed_bps: None,
            has_made_up_speed: false,
            max_frame_bytes: 1514,
        };
        Observed {
            kind: None,
            port: Port::new(&facts, &[], &[], &[]),
            facts,
            dir,
            is_multiqueue: false,
            max_frame_bytes: 1518,
            burst_bytes: 65_536,
        }
    }

    #[test]
    fn what_is_kept_is_of_a_device_of_a_namespace_under_any_name() {
        let kept = |name: &str, index| {
            let files = Files::new(&observed(name, index, Some(PathBuf::from(name))));
            files.unwrap().unwrap().kept.display().to_string()
        };
        assert_eq!(kept("eth0", 2), kept("wan", 2));
        assert_ne!(kept("eth0", 2), kept("eth0", 3));
        let namespace = fs::read_link(NAMESPACE).unwrap().display().to_string();
        let inode = namespace.trim_matches(|c: char| !c.is_ascii_digit());
        assert!(kept("eth0", 2).contains(inode), "{namespace}");
        let hidden = observed("eth0", 2, None);
        assert_eq!(read(&hidden).unwrap(), QueueLimits::default());
    }

    /// A device with this limit at its queue 0, and what is kept of it.
    fn device(folder: &Path, min_bytes: u64) -> Files {
        let queue = folder.join("queues/tx-0");
        fs::create_dir_all(queue.join("byte_queue_limits")).unwrap();
        fs::write(queue.join(LIMIT_MIN), format!("{min_bytes}\n")).unwrap();
        Files {
            dir: folder.to_owned(),
            kept: folder.join("kept.json"),
        }
    }

    fn work(folder: &Path, wanted: &WantedLimits) -> Work {
        let kept = folder.join("kept.json");
        let dir = folder.to_owned();
        Work::of(Ok(Some(Files { dir, kept })), wanted).unwrap().0
    }

    /// Makes all changes; returns the notes.
    fn made(work: &mut Work) -> Vec<String> {
        [true, false]
            .into_iter()
            .filter_map(|is_raise| work.make(is_raise).unwrap())
            .collect()
    }

    #[test]
    fn a_failure_keeps_what_was_before() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let limit = device(folder, 0).dir.join("queues/tx-0").join(LIMIT_MIN);
        assert_eq!(
            made(&mut work(folder, &WantedLimits::AtLeast(7_500))),
            [""; 0]
        );
        for wanted in [WantedLimits::AtLeast(75_000), WantedLimits::Before] {
            let mut work = work(folder, &wanted);
            // A folder in place of the file: it cannot be written.
            fs::remove_file(&limit).unwrap();
            fs::create_dir(&limit).unwrap();
            let notes = made(&mut work);
            assert!(
                notes.len() == 1 && notes[0].starts_with("byte queue limits stay as they are: "),
                "{wanted:?}: {notes:?}"
            );
            fs::remove_dir(&limit).unwrap();
            fs::write(&limit, "7500\n").unwrap();
        }
        assert_eq!(made(&mut work(folder, &WantedLimits::Before)), [""; 0]);
        assert_eq!(min_bytes(folder), BTreeMap::from([(0, 0)]));
        assert!(!folder.join("kept.json").exists());
    }

    #[test]
    fn only_the_key_makes_failures_errors() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let limit = device(folder, 0).dir.join("queues/tx-0").join(LIMIT_MIN);
        let mut asked = work(folder, &WantedLimits::Bytes(1));
        let each = WantedLimits::Each(BTreeMap::from([(0, 1)]));
        let mut restored = work(folder, &each);
        fs::remove_file(&limit).unwrap();
        fs::create_dir(&limit).unwrap();
        assert!(asked.make(true).is_err());
        assert!(restored.make(true).unwrap().is_some());
    }

    #[test]
    fn only_the_key_needs_what_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let planned = |wanted| Work::of(Ok(Some(device(folder.path(), 0))), wanted);
        assert!(planned(&WantedLimits::Before).unwrap().1.is_none());
        fs::write(folder.path().join("kept.json"), "{").unwrap();
        assert!(planned(&WantedLimits::Bytes(1)).is_err());
        let (mut work, note) = planned(&WantedLimits::Before).unwrap();
        assert!(note.is_some());
        assert_eq!(made(&mut work), [""; 0]);
    }
}
