// SPDX-License-Identifier: MIT OR Apache-2.0
//! The segment that was given out last.

use super::queue::Packet;

/// What the segment given out last was, so that it can be taken back.
#[derive(Clone, Copy, Debug)]
pub(super) enum LastTransmit {
    New,
    Again { number: u64, before: Packet },
    Probe,
}
