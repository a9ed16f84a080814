// SPDX-License-Identifier: MIT OR Apache-2.0
//! Keeps booted guests in the cache.
//!
//! A boot costs seconds of processor time, and it is the same for every guest of one kernel. So it
//! is done once: the agent stops the guest before it has received anything of a run, its memory is
//! a file, and QEMU writes its devices to another. A run resumes that guest. Its files are QEMU's
//! `-initrd`, which the agent reads then.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use crate::cache::{Cache, short_hash};
use crate::error::{At, Error};
use crate::image::Image;
use crate::qemu::{Guest, Start};
use crate::saved::{console, memory};

/// Folder of the snapshots in the cache.
const FOLDER: &str = "snapshots";
/// Snapshots that the cache keeps: about 130 MB each, in sparse files.
const KEPT: usize = 24;
/// Seed of the guests whose snapshots are taken. A run has its own: the agent draws new random
/// numbers.
const SEED: u64 = 1;
/// Limit of the processor time of a boot.
const TIMEOUT: Duration = Duration::from_secs(300);

/// Attempts to take a snapshot, which a guest tries that does nothing.
const ATTEMPTS: usize = 3;

/// How a guest starts, and the initial file system for that.
pub(crate) struct Origin {
    snapshot: Option<PathBuf>,
    /// Content of QEMU's `-initrd`.
    pub initrd: Vec<u8>,
}

impl Origin {
    /// Finds the snapshot for a guest, or takes it. `base` is the initial file system of all
    /// guests, `files` the archive with the plan and what it needs. The guest boots from both if it
    /// cannot be resumed: if it has NICs, several processors or large files.
    pub fn new(
        cache: &Cache,
        guest: &Guest<'_>,
        base: &[u8],
        files: Vec<u8>,
    ) -> Result<Self, Error> {
        if !resumes(guest, files.len()) {
            return Ok(Self {
                snapshot: None,
                initrd: [base, &files].concat(),
            });
        }
        let kernel = fs::read(guest.kernel).at("read", guest.kernel)?;
        let machine = guest.machine();
        let words = machine.iter().map(|word| word.as_encoded_bytes());
        let name = short_hash(words.chain([&*kernel, base]));
        let folder = cache.entry(FOLDER, &name, |target| take(guest, base, target))?;
        touch(&folder);
        if let Some(all) = folder.parent() {
            prune(all, KEPT);
        }
        Ok(Self {
            snapshot: Some(folder),
            initrd: files,
        })
    }

    pub fn start(&self) -> Start<'_> {
        match &self.snapshot {
            Some(folder) => Start::Resume(folder),
            None => Start::Boot,
        }
    }
}

fn resumes(guest: &Guest<'_>, files_bytes: usize) -> bool {
    // The files pass through the shared memory on their way into the guest.
    let room = usize::try_from(guest.shared_bytes / 2).unwrap_or(usize::MAX);
    guest.nics.is_empty() && guest.cpus == 1 && files_bytes <= room
}

/// Boots a guest until it stops, and writes the snapshot into `target`. A guest that resumes from it
/// and does nothing tells whether the snapshot is good.
fn take(guest: &Guest<'_>, base: &[u8], target: &Path) -> Result<(), Error> {
    let scratch = tempfile::tempdir_in(target).at("create a folder in", target)?;
    let mut nothing = Image::default();
    nothing.file("plan", b"run true\n".to_vec());
    let nothing = nothing.to_cpio();
    let start = |start, initrd| {
        let guest = Guest {
            initrd,
            start,
            seed: SEED,
            timeout: TIMEOUT,
            plugin: None,
            ..guest.clone()
        };
        guest.run(scratch.path(), &mut |_| {})
    };
    let attempt = || {
        // QEMU would keep the pages of an earlier attempt.
        let _ = fs::remove_file(memory(target));
        start(Start::Save(target), base)?;
        let (from, to) = (guest.console(), console(target));
        fs::copy(&from, &to).at("write", &to)?;
        start(Start::Resume(target), &nothing).map(drop)
    };
    let mut result = attempt();
    for _ in 1..ATTEMPTS {
        if result.is_ok() || guest.stop.load(Ordering::Relaxed) {
            break;
        }
        result = attempt();
    }
    result
}

/// Notes that a snapshot is in use.
fn touch(folder: &Path) {
    // A snapshot that cannot be marked is only removed earlier.
    let _ = File::open(memory(folder)).and_then(|file| file.set_modified(SystemTime::now()));
}

/// Removes all but the `kept` snapshots that were used last. QEMU may still read one that is
/// removed.
fn prune(all: &Path, kept: usize) {
    let mut found: Vec<(SystemTime, PathBuf)> = fs::read_dir(all)
        .into_iter()
        .flatten()
        .filter_map(|entry| {
            let folder = entry.ok()?.path();
            // A folder that is being filled has a name of its own.
            let filling = folder.file_name()?.to_str()?.starts_with('.');
            let used = memory(&folder).metadata().ok()?.modified().ok()?;
            (!filling).then_some((used, folder))
        })
        .collect();
    found.sort();
    found.reverse();
    for (_, folder) in found.iter().skip(kept) {
        // Another process may remove it at the same time.
        let _ = fs::remove_dir_all(folder);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail that way")]

    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::guest_store::{Answers, Store};

    #[test]
    fn some_guests_boot() {
        let stop = AtomicBool::new(false);
        let folder = tempfile::tempdir().unwrap();
        let store = Store::of(&Cache::at(folder.path().join("cache"))).unwrap();
        let guest = |shared_bytes, nics| Guest {
            qemu: Path::new("qemu"),
            kernel: Path::new("kernel"),
            kernel_line: "",
            initrd: &[],
            start: Start::Boot,
            memory_bytes: 1 << 30,
            cpus: 1,
            shared_bytes,
            seed: 1,
            timeout: TIMEOUT,
            folder: Path::new("logs"),
            nics,
            plugin: None,
            stop: &stop,
            store: &store,
            answers: Answers::Stored,
        };
        let small = guest(1 << 26, &[]);
        assert!(resumes(&small, 1 << 25));
        assert!(!resumes(&small, (1 << 25) + 1));
        assert!(resumes(&guest(1 << 27, &[]), 1 << 26));
        let nics = guest(1 << 26, &["e1000e"]);
        assert!(!resumes(&nics, 1));
        let cpus = 2;
        assert!(!resumes(&Guest { cpus, ..small }, 1));

        // A guest that boots needs nothing of the cache, and gets everything at once.
        let cache = Cache::at(folder.path().join("none"));
        let origin = Origin::new(&cache, &nics, b"base", b"files".to_vec()).unwrap();
        assert_eq!(origin.initrd, b"basefiles");
        assert!(matches!(origin.start(), Start::Boot));
        assert!(!cache.path().exists());
    }

    #[test]
    fn the_snapshots_used_last_are_kept() {
        let all = tempfile::tempdir().unwrap();
        for (name, age_s) in [("a", 30), ("b", 10), ("c", 20), (".new-d", 40)] {
            let folder = all.path().join(name);
            fs::create_dir(&folder).unwrap();
            let file = File::create(memory(&folder)).unwrap();
            let used = SystemTime::now() - Duration::from_secs(age_s);
            file.set_modified(used).unwrap();
        }
        touch(&all.path().join("a"));
        prune(all.path(), 2);
        let left = |name: &str| all.path().join(name).exists();
        assert!(left("a") && left("b") && !left("c") && left(".new-d"));
    }
}
