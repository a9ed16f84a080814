// SPDX-License-Identifier: MIT OR Apache-2.0
//! Identifies when something was captured.

/// A packet's time, in ns, and number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct At {
    pub(crate) now: u64,
    pub(crate) packet: u64,
}
