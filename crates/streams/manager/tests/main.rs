// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tests of this crate, in one program: a module for each file.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail that way"
)]

mod access;
mod any_request;
mod certificates;
mod etcd;
mod histories;
mod in_force;
mod liar;
mod managers;
mod pages;
mod reload;
mod request_corpus;
mod requests;
mod reroute;
mod service;
mod silent;
mod store;
mod talkers;

// `any_request` finds them here, and in the fuzzer at its own root.
use manager_proto::{answer, api, machine, message, record};
