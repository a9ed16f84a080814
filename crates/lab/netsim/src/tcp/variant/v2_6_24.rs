// SPDX-License-Identifier: MIT OR Apache-2.0
//! Linux 2.6.24: lost retransmissions are searched for in a separate scan, whatever
//! the scan for the SACK blocks skipped.

use super::switches::{LostRetransmission, Variant};
use super::v2_6_22::V2_6_22;

/// Linux 2.6.24.
pub const V2_6_24: Variant = Variant {
    name: "2.6.24",
    lost_retransmission: LostRetransmission::OwnWalk,
    ..V2_6_22
};
