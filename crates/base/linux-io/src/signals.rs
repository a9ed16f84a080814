// SPDX-License-Identifier: MIT OR Apache-2.0
//! Turns Ctrl-C and SIGTERM into events that a program can wait for.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

/// SIGINT and SIGTERM; neither ends the process any more.
#[derive(Debug)]
pub struct Signals(SignalFd);

impl Signals {
    /// Blocks both signals in this thread and in those that it starts from now on.
    ///
    /// # Errors
    /// If there are no file descriptors left.
    pub fn block() -> io::Result<Self> {
        let mut set = SigSet::empty();
        set.add(Signal::SIGINT);
        set.add(Signal::SIGTERM);
        set.thread_block()?;
        let flags = SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC;
        Ok(Self(SignalFd::with_flags(&set, flags)?))
    }

    /// Returns whether a signal has come since the last call.
    ///
    /// # Errors
    /// If the descriptor cannot be read.
    pub fn came(&self) -> io::Result<bool> {
        Ok(self.0.read_signal()?.is_some())
    }
}

impl AsFd for Signals {
    /// Returns the descriptor, which is readable when a signal has come.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
