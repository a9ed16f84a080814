// SPDX-License-Identifier: MIT OR Apache-2.0
//! Today's Linux: losses found by time (RFC 8985), window reduced in
//! proportion to what was delivered (RFC 9937).

use units::clock::Span;

use super::switches::{LostRetransmission, Recovery, SackHint, SackSort, Variant};
use crate::tcp::algorithm::Congestion;

/// Linux of today. The switches of the older scoreboard say nothing here.
pub const RACK: Variant = Variant {
    name: "rack",
    recovery: Recovery::RackPrr,
    abc: false,
    abc_counts_in_loss: true,
    sack_sort: SackSort::Right,
    sack_hint: SackHint::AfterFirstBlock,
    lost_retransmission: LostRetransmission::OwnWalk,
    skip_seen_blocks: false,
    default_congestion: Congestion::Cubic,
    initial_cwnd: 10,
    rto_initial: Span::from_ns(1_000_000_000),
};
