// SPDX-License-Identifier: MIT OR Apache-2.0
//! Results for people: tables and charts for the terminal, SVG plots, and one
//! self-contained HTML page.
#![forbid(unsafe_code)]
