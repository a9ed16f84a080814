// SPDX-License-Identifier: MIT OR Apache-2.0
//! Any bytes as what a manager reads. The same code runs in
//! crates/streams/manager/tests/request_corpus.rs.

#![no_main]

// `any_request` finds them here, and in the tests at their own root.
use manager_proto::{answer, api, machine, message, record};

#[path = "../../crates/streams/manager/tests/any_request/mod.rs"]
mod any_request;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| any_request::replay(bytes));
