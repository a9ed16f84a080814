// SPDX-License-Identifier: MIT OR Apache-2.0
//! The queue of clocks alone, heap and wheel, against an ordered set. The same
//! code runs in crates/base/pace/tests/queue.rs.
#![no_main]
#![allow(dead_code)]

#[path = "../../crates/base/pace/tests/wheel_queue/mod.rs"]
mod wheel_queue;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| wheel_queue::replay(bytes));
