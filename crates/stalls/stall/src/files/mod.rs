// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `pspacer stalls` does with files: it writes annotated copies of captures ([`annotate`]),
//! reads captures while they are written ([`follow`]), and gives results as JSON ([`json`]).
//!

pub mod annotate;
mod comments;
pub mod follow;
pub mod json;
pub mod open;
mod ring;

use anyhow::Result;
use capture::segments::Segments;

use crate::captures::trace;
use crate::two_ends::TwoEnds;

/// Puts the captures of both ends together.
///
/// # Errors
/// If they are too large, have nothing in common, or their clocks fit no line.
pub fn two_ends(near: Segments<'_>, far: Segments<'_>) -> Result<TwoEnds> {
    let (near, far) = (trace(near), trace(far));
    let many = anyhow::Error::msg::<String>;
    let near = near.map_err(|error| many(error.to_string()))?;
    let far = far.map_err(|error| many(error.to_string()))?;
    TwoEnds::of(&near, &far).map_err(|error| many(error.to_string()))
}
