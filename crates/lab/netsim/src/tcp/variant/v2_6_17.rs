// SPDX-License-Identifier: MIT OR Apache-2.0
//! Linux 2.6.17, with the three defects that paper 001 found.

use units::clock::Span;

use super::bic::SMALLER_STEPS;
use super::switches::{LostRetransmission, Recovery, SackHint, SackScan, SackSort, Variant};
use crate::tcp::algorithm::Congestion;

/// Linux 2.6.17.
pub const V2_6_17: Variant = Variant {
    name: "2.6.17",
    recovery: Recovery::FackRateHalving,
    abc: true,
    abc_counts_in_loss: false,
    sack_sort: SackSort::LosesBlocks,
    sack_scan: SackScan::Hints,
    sack_hint: SackHint::AfterAnyBlock,
    dsack_for_all_blocks: true,
    keeps_old_blocks: true,
    lost_retransmission: LostRetransmission::EndOfItsBlock,
    skip_seen_blocks: false,
    slow_start_counts: false,
    least_used_cwnd: Some(2),
    bic: SMALLER_STEPS,
    default_congestion: Congestion::Bic,
    initial_cwnd: 3,
    rto_initial: Span::from_ns(3_000_000_000),
};
