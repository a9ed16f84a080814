// SPDX-License-Identifier: MIT OR Apache-2.0
//! Network namespaces: opening one, and working in it.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::thread;

use anyhow::{Context, Result, anyhow};
use nix::sched::{CloneFlags, setns, unshare};

/// The namespace of this thread.
const OWN: &str = "/proc/thread-self/ns/net";

/// A network namespace.
pub struct Netns {
    pub file: File,
    /// The number of its file: no other that lives at the same time has it.
    pub number: u64,
}

impl Netns {
    /// Opens one. `None`: there is no namespace at this path, or no longer.
    pub fn open(path: &str) -> Result<Option<Self>> {
        let named = || path.to_owned();
        let metadata = match fs::metadata(path) {
            Ok(metadata) => metadata,
            Err(_) => return Ok(None),
        };
        // A path is left as a plain file when its namespace was unmounted.
        if metadata.dev() != fs::metadata(OWN).context(OWN)?.dev() {
            return Ok(None);
        }
        let file = File::open(path).with_context(named)?;
        let number = file.metadata().with_context(named)?.ino();
        Ok(Some(Self { file, number }))
    }

    /// Returns whether this thread is in it.
    pub fn is_own(&self) -> Result<bool> {
        Ok(fs::metadata(OWN).context(OWN)?.ino() == self.number)
    }

    /// Works in it, in a thread of its own.
    pub fn within<T: Send>(&self, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
        in_thread(|| {
            setns(&self.file, CloneFlags::CLONE_NEWNET).context(
                "entering the network namespace, which takes CAP_SYS_ADMIN on this host",
            )?;
            work()
        })
    }
}

/// Works in a new network namespace, which goes afterwards.
pub fn within_new<T: Send>(work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    in_thread(|| {
        unshare(CloneFlags::CLONE_NEWNET)
            .context("a network namespace, which takes CAP_SYS_ADMIN on this host")?;
        work()
    })
}

fn in_thread<T: Send>(work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    thread::scope(|scope| {
        let thread = scope.spawn(work);
        thread
            .join()
            .unwrap_or_else(|_| Err(anyhow!("a thread ended early")))
    })
}
