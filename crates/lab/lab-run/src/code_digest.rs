// SPDX-License-Identifier: MIT OR Apache-2.0
//! Digests the sources behind figures that no guest's files have: of the measurements, of the
//! simulator, of what makes a psp of BPF, and of the router. Of a source only what decides what is built counts.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::source_text::{Language, deciding};

/// Files and folders by the name of what they decide.
pub const PARTS: &[(&str, &[&str])] = &[
    (
        "MEASURES",
        &[
            "crates/capture/capture/src/flows.rs",
            "crates/capture/capture/src/record.rs",
            "crates/capture/capture/src/timeline.rs",
            "crates/capture/sender-log/src",
            "crates/lab/lab-run/src/measure_cell.rs",
            "crates/lab/metrics/src",
        ],
    ),
    (
        "STALLS",
        &[
            "crates/capture/capture/src",
            "crates/lab/lab-run/src/ground_truth",
            "crates/stalls/stall/src",
        ],
    ),
    (
        "SIMULATOR",
        &[
            "crates/base/units/src",
            "crates/lab/lab-run/src/sim/isochronous.rs",
            "crates/lab/lab-run/src/sim/queue_drops.rs",
            "crates/lab/lab-run/src/sim/transfers.rs",
            "crates/lab/netsim/src",
            "crates/streams/predict/src",
        ],
    ),
    (
        "CORE",
        &[
            "core/include",
            "core/src",
            "core/deps",
            "crates/base/pace/src",
        ],
    ),
    (
        "BPF",
        &[
            "bpf",
            "core/include",
            "core/src",
            "core/deps",
            "crates/host/backend/src",
            "crates/host/host-apply/src",
            "crates/host/host-config/src",
            "uapi",
        ],
    ),
    (
        "ROUTER",
        &[
            "bpf/router.bpf.c",
            "crates/base/linux-io/src",
            "crates/pspacer/src/router.rs",
            "crates/streams/router/src",
        ],
    ),
];
/// Names of folders whose files decide no figure.
const LEFT_OUT: &[&str] = &["tests", "fuzz"];
/// Extensions of sources.
const SOURCES: &[&str] = &["c", "h", "rs", "S"];

/// Returns the first 16 digits of the SHA-256 of all sources at some places below `root`, with their
/// paths in them.
pub fn of(root: &Path, places: &[&str]) -> io::Result<String> {
    let mut hash = Sha256::new();
    let mut files = vec![];
    for place in places {
        collect(&root.join(place), &mut files)?;
    }
    files.sort();
    for file in files {
        let bytes = fs::read(&file)?;
        let extension = file.extension().unwrap_or_default().to_string_lossy();
        let text = deciding(&String::from_utf8_lossy(&bytes), Language::of(&extension));
        let name = file.strip_prefix(root).unwrap_or(&file).to_string_lossy();
        for piece in [name.as_bytes(), text.as_bytes()] {
            hash.update((piece.len() as u64).to_le_bytes());
            hash.update(piece);
        }
    }
    let digits = hash.finalize();
    Ok(digits[..8]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect())
}

fn collect(place: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    if place.is_file() {
        files.push(place.to_owned());
        return Ok(());
    }
    for entry in fs::read_dir(place)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let extension = path.extension().unwrap_or_default().to_string_lossy();
        if path.is_dir() {
            if !LEFT_OUT.contains(&&*name) {
                collect(&path, files)?;
            }
        } else if SOURCES.contains(&&*extension) {
            files.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_constant_changes_the_digest_and_a_comment_does_not() {
        let root = tempfile::tempdir().unwrap();
        let write = |file: &str, text: &str| {
            let path = root.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let now = || of(root.path(), &["core", "alone.rs"]).unwrap();
        write("core/a.c", "int a = 1;\n");
        write("alone.rs", "fn f() {}\n");
        let first = now();
        for (file, text) in [
            ("core/a.c", "/* Why. */\nint a = 1; // once\n\n"),
            (
                "alone.rs",
                "//! What.\nfn f() {\n}\n\n#[cfg(test)]\nmod tests {\n}\n",
            ),
            ("core/a.o", "what a build leaves"),
            ("core/tests/a.c", "int test;"),
            ("core/README.md", "words"),
            ("other.c", "int other;"),
        ] {
            write(file, text);
            assert_eq!(now(), first, "{file}: {text}");
        }
        for (file, text) in [
            ("core/a.c", "int a = 2;\n"),
            ("core/b.c", ""),
            ("alone.rs", "fn f() { g() }\n"),
        ] {
            let before = now();
            write(file, text);
            assert_ne!(now(), before, "{file}: {text}");
        }
    }

    #[test]
    fn each_part_is_in_the_tree() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
        for (name, places) in PARTS {
            for place in *places {
                assert!(root.join(place).exists(), "{name}: {place}");
            }
        }
    }
}
