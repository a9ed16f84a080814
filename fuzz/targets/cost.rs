// SPDX-License-Identifier: MIT OR Apache-2.0
//! Any segments: what their analysis takes, in steps and in memory. The same code
//! runs in crates/stalls/stall/tests/cost_corpus.rs.
#![no_main]

#[path = "../../crates/stalls/stall/tests/any_cost/mod.rs"]
mod any_cost;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| any_cost::replay(bytes));
