// SPDX-License-Identifier: MIT OR Apache-2.0
//! The project's own scenarios are read without an error, in both forms.

use std::path::Path;

use scenario::{Options, parse};

#[test]
fn every_experiment_and_example_is_valid_in_full_and_quick() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let experiments = std::fs::read_dir(root.join("experiments")).unwrap();
    let folders = experiments.map(|experiment| experiment.unwrap().path());
    let mut count = 0;
    for folder in folders.chain([root.join("docs/examples")]) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if !name.ends_with(".toml") || name == "paper.toml" {
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            for quick in [false, true] {
                let options = Options { quick, set: vec![] };
                let scenario = parse(&path.to_string_lossy(), &text, &options)
                    .unwrap_or_else(|error| panic!("{error}"));
                assert!(!scenario.cells.is_empty());
            }
            count += 1;
        }
    }
    assert!(count >= 9, "{count} scenarios found");
}
