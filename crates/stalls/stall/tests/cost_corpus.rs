// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the fuzzer has found worth keeping costs no more than it may
//! (docs/contribute/fuzzing.md). Nothing runs beside the one test of this file.

use crate::any_cost;

use std::fs;
use std::path::Path;

#[test]
fn the_corpus_costs_what_it_may() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fuzz/corpus/cost");
    let mut inputs = 0;
    for entry in fs::read_dir(corpus).unwrap() {
        let path = entry.unwrap().path();
        println!("{}", path.display());
        any_cost::replay(&fs::read(path).unwrap());
        inputs += 1;
    }
    assert!(inputs >= 5, "{inputs} inputs");
}
