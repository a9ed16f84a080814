// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the fuzzer has found worth keeping (docs/contribute/fuzzing.md).

/// Replays every input of a target; there is one at least.
pub fn each(target: &str, replay: impl Fn(&[u8])) {
    let corpus = format!(
        "{}/../../../fuzz/corpus/{target}",
        env!("CARGO_MANIFEST_DIR")
    );
    let mut inputs = 0;
    for entry in std::fs::read_dir(&corpus).unwrap() {
        let path = entry.unwrap().path();
        println!("{}", path.display());
        replay(&std::fs::read(&path).unwrap());
        inputs += 1;
    }
    assert!(inputs > 0, "no corpus in {corpus}");
}
