// SPDX-License-Identifier: MIT OR Apache-2.0
//! Any bytes as the packets of media streams. The same code runs in
//! crates/capture/st2110/tests/stream_corpus.rs.
#![no_main]

#[path = "../../crates/capture/st2110/tests/any_stream/mod.rs"]
mod any_stream;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| any_stream::replay(bytes));
