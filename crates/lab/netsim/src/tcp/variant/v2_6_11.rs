// SPDX-License-Identifier: MIT OR Apache-2.0
//! Linux 2.6.11: as 2.6.14, but BIC is part of TCP itself.

use super::bic::PART_OF_TCP;
use super::switches::Variant;
use super::v2_6_14::V2_6_14;

/// Linux 2.6.11.
pub const V2_6_11: Variant = Variant {
    name: "2.6.11",
    bic: PART_OF_TCP,
    ..V2_6_14
};
