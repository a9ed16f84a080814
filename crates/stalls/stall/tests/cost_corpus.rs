// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the fuzzer has found worth keeping costs no more than it may
//! (docs/contribute/fuzzing.md). Nothing runs beside the one test of this file.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail that way")]

mod any_cost;

#[test]
fn the_corpus_costs_what_it_may() {
    for (name, bytes) in testkit::corpus("cost", 5) {
        println!("{name}");
        any_cost::replay(&bytes);
    }
}
