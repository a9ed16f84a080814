// SPDX-License-Identifier: MIT OR Apache-2.0
//! Today's Linux: losses are detected by time (RFC 8985), and the window is reduced
//! in proportion to what was delivered (RFC 9937).

use units::clock::Span;

use super::switches::{LostRetransmission, Recovery, SackHint, SackSort, Variant};
use crate::tcp::algorithm::Congestion;

/// Today's Linux. The switches of the older scoreboard have no effect here.
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
