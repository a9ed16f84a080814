// SPDX-License-Identifier: MIT OR Apache-2.0
//! Waiting for something to read.

use std::io;
use std::os::fd::BorrowedFd;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

/// What a program takes from a socket before it looks at its signals again: a sender
/// that is faster than it must not keep it from its end.
pub const BATCH: usize = 64;

/// Waits until one of them is readable or has an error to read, a signal was
/// handled, or so long, to a millisecond upwards.
///
/// # Errors
/// When one of them is no descriptor.
pub fn readable<'a>(descriptors: &[BorrowedFd<'a>], most_ns: u64) -> io::Result<()> {
    let wish = |fd: &BorrowedFd<'a>| PollFd::new(*fd, PollFlags::POLLIN);
    let mut wishes: Vec<_> = descriptors.iter().map(wish).collect();
    let timeout = PollTimeout::try_from(most_ns.div_ceil(1_000_000)).unwrap_or(PollTimeout::MAX);
    match poll(&mut wishes, timeout) {
        Ok(_) | Err(Errno::EINTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
