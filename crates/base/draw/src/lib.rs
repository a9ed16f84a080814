// SPDX-License-Identifier: MIT OR Apache-2.0
//! Draws what others found: tables, plots as SVG, elements of a self-contained HTML page, tables
//! and paragraphs for the terminal. It knows no run, capture or stall; the same input gives the
//! same bytes.

#![forbid(unsafe_code)]

pub mod chart;
mod escape;
pub mod figure;
pub mod grid;
pub mod histogram;
pub mod level;
pub mod lines;
pub mod page;
pub mod scale;
pub mod svg;
pub mod table;
pub mod terminal;
pub mod theme;

pub use figure::{Figure, Plot};
pub use terminal::Style;
