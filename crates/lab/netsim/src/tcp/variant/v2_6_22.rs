// SPDX-License-Identifier: MIT OR Apache-2.0
//! Linux 2.6.22: bytes count after a timeout (since 2.6.18), blocks are sorted
//! correctly (since 2.6.20), and the hint follows the first block (since 2.6.21).

use super::bic::NO_THRESHOLD;
use super::switches::{SackHint, SackSort, Variant};
use super::v2_6_17::V2_6_17;
use crate::tcp::algorithm::Congestion;

/// Linux 2.6.22.
pub const V2_6_22: Variant = Variant {
    name: "2.6.22",
    abc_counts_in_loss: true,
    sack_sort: SackSort::Right,
    sack_hint: SackHint::AfterFirstBlock,
    dsack_for_all_blocks: false,
    keeps_old_blocks: false,
    slow_start_counts: true,
    least_used_cwnd: None,
    bic: NO_THRESHOLD,
    default_congestion: Congestion::Cubic,
    ..V2_6_17
};
