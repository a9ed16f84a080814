// SPDX-License-Identifier: MIT OR Apache-2.0
//! Any bytes as a session description. The same code runs in
//! crates/capture/st2110/tests/descriptions.rs.
#![no_main]

#[path = "../../crates/capture/st2110/tests/any_sdp/mod.rs"]
mod any_sdp;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| any_sdp::replay(bytes));
