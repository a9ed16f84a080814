// SPDX-License-Identifier: MIT OR Apache-2.0
//! The laboratory's two formats: what to run ([`result`] for what came out).
//!
//! Both are described in `docs/formats.md`. This crate does no input or
//! output of its own: it is given the text of a file, and gives back values.

pub mod result;
