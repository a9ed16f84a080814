// SPDX-License-Identifier: MIT OR Apache-2.0
//! Linux 2.6.17, with the three defects that paper 001 found.

use units::clock::Span;

use super::switches::{LostRetransmission, Recovery, SackHint, SackSort, Variant};
use crate::tcp::algorithm::Congestion;

/// Linux 2.6.17.
pub const V2_6_17: Variant = Variant {
    name: "2.6.17",
    recovery: Recovery::FackRateHalving,
    abc: true,
    abc_counts_in_loss: false,
    sack_sort: SackSort::LosesBlocks,
    sack_hint: SackHint::AfterAnyBlock,
    lost_retransmission: LostRetransmission::EndOfItsBlock,
    skip_seen_blocks: false,
    default_congestion: Congestion::Bic,
    initial_cwnd: 3,
    rto_initial: Span::from_ns(3_000_000_000),
};
