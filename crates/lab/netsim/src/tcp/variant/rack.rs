// SPDX-License-Identifier: MIT OR Apache-2.0
//! Today's Linux: losses are detected by time (RFC 8985), and the window is reduced
//! in proportion to what was delivered (RFC 9937).

use units::clock::Span;

use super::bic::NO_THRESHOLD;
use super::switches::{LostRetransmission, Recovery, SackHint, SackScan, SackSort, Variant};
use crate::tcp::algorithm::Congestion;

/// Today's Linux. The switches of the older scoreboard have no effect here.
pub const RACK: Variant = Variant {
    name: "rack",
    recovery: Recovery::RackPrr,
    abc: false,
    abc_counts_in_loss: true,
    sack_sort: SackSort::Right,
    sack_scan: SackScan::Hints,
    sack_hint: SackHint::AfterFirstBlock,
    dsack_for_all_blocks: false,
    keeps_old_blocks: false,
    lost_retransmission: LostRetransmission::OwnWalk,
    skip_seen_blocks: false,
    slow_start_counts: true,
    least_used_cwnd: None,
    bic: NO_THRESHOLD,
    default_congestion: Congestion::Cubic,
    initial_cwnd: 10,
    rto_initial: Span::from_ns(1_000_000_000),
};
