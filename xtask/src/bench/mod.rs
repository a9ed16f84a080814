// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes the page and the plots of what the programs of `bench/` measured.
//!
//! The same JSON gives the same bytes: this module reads nothing else and measures nothing.

pub mod figures;
mod goals;
pub mod model;
mod number_format;
pub mod page;
