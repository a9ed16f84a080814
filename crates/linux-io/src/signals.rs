// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ctrl-C and SIGTERM as something to wait for.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

/// SIGINT and SIGTERM, which no longer end the process.
#[derive(Debug)]
pub struct Signals(SignalFd);

impl Signals {
    /// Blocks both in this thread and in those that it starts from now on.
    ///
    /// # Errors
    /// When there are no file descriptors left.
    pub fn block() -> io::Result<Self> {
        let mut set = SigSet::empty();
        set.add(Signal::SIGINT);
        set.add(Signal::SIGTERM);
        set.thread_block()?;
        let flags = SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC;
        Ok(Self(SignalFd::with_flags(&set, flags)?))
    }

    /// Whether one has come since the last call.
    ///
    /// # Errors
    /// When the descriptor cannot be read.
    pub fn came(&self) -> io::Result<bool> {
        Ok(self.0.read_signal()?.is_some())
    }
}

impl AsFd for Signals {
    /// Readable when one has come.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
