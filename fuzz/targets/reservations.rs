// SPDX-License-Identifier: MIT OR Apache-2.0
//! Any bytes as what a manager reads. The same code runs in
//! crates/streams/manager/tests/request_corpus.rs.

#![no_main]
#![allow(dead_code)]

// The pure files of the manager alone: the crate brings its service and its store with it.
#[path = "../../crates/streams/manager/src/answer.rs"]
mod answer;
#[path = "../../crates/streams/manager/tests/any_request/mod.rs"]
mod any_request;
#[path = "../../crates/streams/manager/src/api.rs"]
mod api;
#[path = "../../crates/streams/manager/src/bounds.rs"]
mod bounds;
#[path = "../../crates/streams/manager/src/digest.rs"]
mod digest;
#[path = "../../crates/streams/manager/src/ended.rs"]
mod ended;
#[path = "../../crates/streams/manager/src/machine/mod.rs"]
mod machine;
#[path = "../../crates/streams/manager/src/message.rs"]
mod message;
#[path = "../../crates/streams/manager/src/next.rs"]
mod next;
#[path = "../../crates/streams/manager/src/parts.rs"]
mod parts;
#[path = "../../crates/streams/manager/src/pending.rs"]
mod pending;
#[path = "../../crates/streams/manager/src/quota.rs"]
mod quota;
#[path = "../../crates/streams/manager/src/record.rs"]
mod record;
#[path = "../../crates/streams/manager/src/reroute.rs"]
mod reroute;
#[path = "../../crates/streams/manager/src/update.rs"]
mod update;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| any_request::replay(bytes));
