// SPDX-License-Identifier: MIT OR Apache-2.0
//! Any bytes as a capture: read, and analysed for stops. The same code runs in
//! crates/pspacer/tests/stalls.rs.
#![no_main]

#[path = "../../crates/pspacer/tests/any_capture/mod.rs"]
mod any_capture;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| any_capture::replay(bytes));
