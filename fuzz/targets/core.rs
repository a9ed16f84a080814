// SPDX-License-Identifier: MIT OR Apache-2.0
//! The core, through its binding, against the exact reference: any sequence of
//! calls. The same code runs in crates/base/pace/tests/agreement.rs.
#![no_main]
#![allow(dead_code)]

#[path = "../../crates/base/pace/tests/pair/mod.rs"]
mod pair;
#[path = "../../crates/base/pace/tests/reference/mod.rs"]
mod reference;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| pair::replay(bytes));
