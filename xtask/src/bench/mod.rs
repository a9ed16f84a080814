// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the programs of `bench/` measured, as a page with plots.
//!
//! The same JSON gives the same bytes: nothing else is looked at, and nothing
//! is measured here.

pub mod figures;
mod goals;
pub mod model;
pub mod page;
mod words;
