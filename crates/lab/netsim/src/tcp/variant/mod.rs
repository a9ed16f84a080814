// SPDX-License-Identifier: MIT OR Apache-2.0
//! Loss recovery of several kernel versions: each variant is a table of switches,
//! and each switch can be set on its own.

mod bic;
mod fixes;
mod rack;
mod switches;
mod v2_6_11;
mod v2_6_14;
mod v2_6_17;
mod v2_6_22;
mod v2_6_24;

pub use bic::BicParameters;
pub use fixes::{FIX_MAX_END, FIX_SKIP};
pub use rack::RACK;
pub use switches::{LostRetransmission, Recovery, SackHint, SackScan, SackSort, Variant};
pub use v2_6_11::V2_6_11;
pub use v2_6_14::V2_6_14;
pub use v2_6_17::V2_6_17;
pub use v2_6_22::V2_6_22;
pub use v2_6_24::V2_6_24;

/// All variants, oldest first.
pub const ALL: [Variant; 8] = [
    V2_6_11,
    V2_6_14,
    V2_6_17,
    V2_6_22,
    FIX_SKIP,
    FIX_MAX_END,
    V2_6_24,
    RACK,
];

/// Returns the variant of that name.
pub fn by_name(name: &str) -> Option<Variant> {
    ALL.into_iter().find(|variant| variant.name == name)
}
