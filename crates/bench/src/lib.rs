// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the programs of `bench/` measured, as a page with plots.
//!
//! The same JSON gives the same bytes: nothing else is looked at, and nothing
//! is measured here.

#![forbid(unsafe_code)]

mod figures;
mod goals;
mod model;
mod page;
mod words;

pub use figures::figures;
pub use model::{Dpdk, Structures};
pub use page::page;
