// SPDX-License-Identifier: MIT OR Apache-2.0
//! Turns Ctrl-C, SIGTERM and SIGHUP into events that a program can wait for.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

/// What a signal asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// End: SIGINT or SIGTERM.
    End,
    /// Read the files again: SIGHUP.
    Reload,
}

/// SIGINT and SIGTERM, and SIGHUP if it is wanted; none of them ends the process any more.
#[derive(Debug)]
pub struct Signals(SignalFd);

impl Signals {
    /// Blocks both signals in this thread and in those that it starts from now on.
    pub fn block() -> io::Result<Self> {
        Self::of(&[Signal::SIGINT, Signal::SIGTERM])
    }

    /// Blocks SIGHUP, too: for a program that reads its files again.
    pub fn block_with_reload() -> io::Result<Self> {
        Self::of(&[Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP])
    }

    fn of(signals: &[Signal]) -> io::Result<Self> {
        let mut set = SigSet::empty();
        signals.iter().for_each(|signal| set.add(*signal));
        set.thread_block()?;
        let flags = SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC;
        Ok(Self(SignalFd::with_flags(&set, flags)?))
    }

    /// Returns whether a signal has come since the last call.
    pub fn came(&self) -> io::Result<bool> {
        Ok(self.asked()?.is_some())
    }

    /// Returns what the next signal asks for, if one has come.
    pub fn asked(&self) -> io::Result<Option<Asked>> {
        let came = self.0.read_signal()?;
        Ok(came.map(|signal| match i32::try_from(signal.ssi_signo) {
            Ok(number) if number == Signal::SIGHUP as i32 => Asked::Reload,
            _ => Asked::End,
        }))
    }
}

impl AsFd for Signals {
    /// Returns the descriptor, which is readable when a signal has come.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
