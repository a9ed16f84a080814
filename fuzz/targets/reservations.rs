// SPDX-License-Identifier: MIT OR Apache-2.0
//! Any bytes as what a manager reads. The same code runs in
//! crates/manager/tests/request_corpus.rs.

#![no_main]
#![allow(dead_code)]

// The pure files of the manager alone: the crate brings its service and its store with it.
#[path = "../../crates/manager/src/answer.rs"]
mod answer;
#[path = "../../crates/manager/tests/any_request/mod.rs"]
mod any_request;
#[path = "../../crates/manager/src/api.rs"]
mod api;
#[path = "../../crates/manager/src/digest.rs"]
mod digest;
#[path = "../../crates/manager/src/machine/mod.rs"]
mod machine;
#[path = "../../crates/manager/src/message.rs"]
mod message;
#[path = "../../crates/manager/src/parts.rs"]
mod parts;
#[path = "../../crates/manager/src/pending.rs"]
mod pending;
#[path = "../../crates/manager/src/record.rs"]
mod record;
#[path = "../../crates/manager/src/reroute.rs"]
mod reroute;
#[path = "../../crates/manager/src/update.rs"]
mod update;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| any_request::replay(bytes));
