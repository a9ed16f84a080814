// SPDX-License-Identifier: MIT OR Apache-2.0
//! The segment sent last.

use super::queue::Packet;

/// The type of the segment sent last, so that it can be undone if the local queue
/// refuses it.
#[derive(Clone, Copy, Debug)]
pub(super) enum LastTransmit {
    New,
    Again { number: u64, before: Packet },
    Probe,
}
