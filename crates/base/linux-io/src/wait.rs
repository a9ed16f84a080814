// SPDX-License-Identifier: MIT OR Apache-2.0
//! Waits until there is something to read.

use std::io;
use std::os::fd::BorrowedFd;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

/// Most datagrams that a program reads from a socket before it checks its signals again: a fast
/// sender must not keep the program from ending.
pub const BATCH: usize = 64;

/// Waits until a descriptor is readable or has an error to read, a signal was handled, or `most_ns`
/// have passed, rounded up to a millisecond.
pub fn readable<'a>(descriptors: &[BorrowedFd<'a>], most_ns: u64) -> io::Result<()> {
    let wish = |fd: &BorrowedFd<'a>| PollFd::new(*fd, PollFlags::POLLIN);
    let mut wishes: Vec<_> = descriptors.iter().map(wish).collect();
    let timeout = PollTimeout::try_from(most_ns.div_ceil(1_000_000)).unwrap_or(PollTimeout::MAX);
    match poll(&mut wishes, timeout) {
        Ok(_) | Err(Errno::EINTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
