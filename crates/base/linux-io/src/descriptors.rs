// SPDX-License-Identifier: MIT OR Apache-2.0
//! Limits of a server: how many descriptors it may have, and how many connections may wait for it.

use std::io;
use std::os::fd::AsFd;

use rustix::process::{Resource, getrlimit, setrlimit};

/// Raises the soft limit of open descriptors to the hard one; returns the limit that is then in force.
/// It stays as it was where a sandbox does not allow the change.
pub fn raise_limit() -> u64 {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // What is in force counts.
    let _ = setrlimit(Resource::Nofile, limit);
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// Sets how many connections may wait until a listening socket accepts them; the kernel has a bound of
/// its own, `net.core.somaxconn`.
pub fn set_backlog(listener: impl AsFd, connections: i32) -> io::Result<()> {
    Ok(rustix::net::listen(listener, connections)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_the_hard_one() {
        let raised = raise_limit();
        let limit = getrlimit(Resource::Nofile);
        assert_eq!((limit.current, limit.maximum), (Some(raised), Some(raised)));
        assert_eq!(raise_limit(), raised);
    }

    #[test]
    fn a_listener_may_have_a_longer_backlog() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        set_backlog(&listener, 4096).unwrap();
    }
}
