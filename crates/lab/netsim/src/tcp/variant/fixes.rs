// SPDX-License-Identifier: MIT OR Apache-2.0
//! The fixes that paper 001 proposes for the third defect (section 4), on Linux
//! 2.6.22.

use super::switches::{LostRetransmission, Variant};
use super::v2_6_22::V2_6_22;

/// Blocks that were processed before are skipped: the fix that the paper measured.
pub const FIX_SKIP: Variant = Variant {
    name: "fix-skip",
    skip_seen_blocks: true,
    ..V2_6_22
};

/// Retransmissions are compared with the largest end of all blocks of the
/// acknowledgement.
pub const FIX_MAX_END: Variant = Variant {
    name: "fix-max-end",
    lost_retransmission: LostRetransmission::HighestEndOfBlocks,
    ..V2_6_22
};
