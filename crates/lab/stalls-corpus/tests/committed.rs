// SPDX-License-Identifier: MIT OR Apache-2.0
//! The folder in the repository is what the cases make, and the cases keep their own rules.

use std::collections::BTreeSet;
use std::io::{Cursor, Read};
use std::path::{Path, PathBuf};

use capture::segments::{Segments, Source};
use stalls_corpus::{cases, folder};

/// Returns the folder of the corpus.
pub fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/stalls-corpus")
}

#[test]
fn the_folder_is_what_the_cases_make() {
    let differences = folder::differences(&corpus(), &cases::all()).unwrap();
    let hint = "cargo xtask corpus writes it";
    assert!(
        differences.is_empty(),
        "{hint}:\n{}",
        differences.join("\n")
    );
}

#[test]
fn the_same_bytes_come_out_twice() {
    let [first, second] = [cases::all(), cases::all()];
    for (a, b) in first.iter().zip(&second) {
        assert_eq!(a.files(), b.files(), "{}", a.name);
    }
}

#[test]
fn cases_keep_the_rules() {
    let all = cases::all();
    let faults: Vec<String> = all.iter().flat_map(stalls_corpus::Case::faults).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    let names: BTreeSet<&str> = all.iter().map(|c| c.name.as_str()).collect();
    assert_eq!(names.len(), all.len(), "two cases have one name");
    let size = |c: &stalls_corpus::Case| c.files().iter().map(|f| f.1.len()).sum::<usize>();
    assert!(
        all.iter().map(size).sum::<usize>() < 2_000_000,
        "2 MB at most"
    );
    let large = all.iter().find(|c| size(c) > 32_000).map(|c| &c.name);
    assert_eq!(large, None, "32 KB at most");
}

#[test]
fn captures_can_be_read() {
    for case in cases::all() {
        let [(_, bytes), ..] = case.files();
        let open = || Ok(Box::new(Cursor::new(bytes.as_slice())) as Box<dyn Read>);
        let mut segments = Segments::open(vec![Source::new("capture.pcapng", open)]).unwrap();
        let count = std::iter::from_fn(|| segments.next()).count();
        assert!(segments.damages().is_empty(), "{}", case.name);
        assert!(count > 0, "{}", case.name);
    }
}
