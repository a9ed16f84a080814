// SPDX-License-Identifier: MIT OR Apache-2.0
//! Linux 2.6.14: no byte counting (that came in 2.6.15) and no hints for the scan of the
//! scoreboard (2.6.16), so none of the three defects; hints that it is given have not the sort's
//! nor the hint's either. BIC with steps of 32 segments.

use super::bic::FIRST_MODULE;
use super::switches::{SackHint, SackScan, SackSort, Variant};
use super::v2_6_17::V2_6_17;

/// Linux 2.6.14.
pub const V2_6_14: Variant = Variant {
    name: "2.6.14",
    abc: false,
    sack_scan: SackScan::WholeQueue,
    sack_sort: SackSort::Right,
    sack_hint: SackHint::AfterFirstBlock,
    dsack_for_all_blocks: false,
    keeps_old_blocks: false,
    bic: FIRST_MODULE,
    ..V2_6_17
};
