// SPDX-License-Identifier: MIT OR Apache-2.0
//! The start of a manager.

/// What a manager is told at its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start<'a> {
    pub name: &'a str,
    /// Names of the other managers.
    pub peers: &'a [String],
    /// A random number.
    pub epoch: u64,
    /// Id of the boot whose clock counts.
    pub boot: &'a str,
    /// Time of the clock, ns.
    pub now_ns: u64,
    /// Somebody says that the store has all that this manager has promised. Without that word it
    /// grants nothing until all others have claimed what they have here, or the longest lease has
    /// passed: a store that was lost or is of an earlier time looks like any other.
    pub is_store_whole: bool,
}

impl<'a> Start<'a> {
    /// Returns the start of a manager without others.
    pub const fn alone(name: &'a str, boot: &'a str, now_ns: u64) -> Self {
        Self {
            name,
            peers: &[],
            epoch: 1,
            boot,
            now_ns,
            is_store_whole: true,
        }
    }
}
