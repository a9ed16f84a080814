// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a sender repairs.

use std::collections::VecDeque;
use std::num::NonZeroU64;

use crate::analysis::Retransmissions;
use crate::history::RetransmissionKind as Kind;

/// What the sender repairs, and what it retransmitted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Repairs {
    /// A repair on acknowledgements, and one after a timeout, is over when all below this byte is
    /// acknowledged.
    pub(in crate::flow) recovery_point: Option<NonZeroU64>,
    pub(in crate::flow) loss_point: Option<NonZeroU64>,
    pub(in crate::flow) recent: VecDeque<Recent>,
    pub(in crate::flow) counts: Retransmissions,
}

/// A retransmission that may still turn out to have been spurious.
#[derive(Clone, Copy, Debug)]
pub(in crate::flow) struct Recent {
    pub(in crate::flow) start: u64,
    pub(in crate::flow) end: u64,
    pub(in crate::flow) segments: u64,
    pub(in crate::flow) kind: Kind,
    pub(in crate::flow) at_ns: u64,
    /// Whether it was missing while data above it was reported: if it turns out to be needless,
    /// the original was overtaken.
    pub(in crate::flow) was_passed: bool,
    pub(in crate::flow) spurious: bool,
    /// Whether a second copy of the packet was captured.
    pub(in crate::flow) is_copied: bool,
}
