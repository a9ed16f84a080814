// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the figures of a page were measured with: digests of the experiment and of the code that its
//! runs depend on. A page whose digests are not the tree's is stale.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use scenario::result::Engine;
use sha2::{Digest, Sha256};

use crate::catalogue::PAPER;
use crate::source_text::{Language, deciding};

/// Begins and ends the last line of a page.
const BEGIN: &str = "<!-- made of: ";
const END: &str = " -->";
/// Folders of code: of the measurements, of the qdisc, of the laboratory, of the simulator.
const MEASURES: &[&str] = &["crates/lab/metrics/src"];
const KERNEL: &[&str] = &["core/include", "core/src", "core/deps", "kernel", "uapi"];
/// Of the psp of BPF, and of the command that makes it.
const BPF: &[&str] = &[
    "bpf",
    "crates/host/backend/src",
    "crates/host/host-apply/src",
    "crates/host/host-config/src",
];
const LABORATORY: &[&str] = &["lab", "crates/lab/vmlab/src"];
const SIMULATOR: &[&str] = &[
    "core/include",
    "core/src",
    "core/deps",
    "crates/lab/netsim/src",
    "crates/base/pace/src",
];
/// Names of folders whose files decide no figure.
const LEFT_OUT: &[&str] = &["tests", "debug-kernel", "fuzz"];
/// Extensions of sources.
const SOURCES: &[&str] = &["c", "h", "rs", "S", "sh", "toml"];

/// Digests by the name of the part.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MadeOf(BTreeMap<String, String>);

impl MadeOf {
    /// Digests what runs of an experiment on these engines depend on, in the tree at `root`.
    pub fn of(root: &Path, experiment: &Path, engines: &BTreeSet<Engine>) -> Result<Self> {
        let mut parts = vec![("experiment", vec![experiment.to_owned()])];
        let mut add = |name, folders: &[&str]| {
            parts.push((
                name,
                folders.iter().map(|folder| root.join(folder)).collect(),
            ));
        };
        add("measures", MEASURES);
        if engines.contains(&Engine::Vmlab) {
            add("kernel", KERNEL);
            add("laboratory", LABORATORY);
            if uses_bpf(experiment)? {
                add("bpf", BPF);
            }
        }
        if engines.contains(&Engine::Netsim) {
            add("simulator", SIMULATOR);
        }
        let digest = |(name, folders): (&str, Vec<PathBuf>)| -> Result<(String, String)> {
            Ok((name.to_owned(), digest(&folders)?))
        };
        Ok(Self(parts.into_iter().map(digest).collect::<Result<_>>()?))
    }

    /// Reads what a page was made of; `None` if the page does not say.
    pub fn read(page: &str) -> Option<Self> {
        let line = page
            .lines()
            .rev()
            .find_map(|line| line.strip_prefix(BEGIN))?;
        let words = line.strip_suffix(END)?.split_whitespace();
        let parts: Option<_> = words
            .map(|word| word.split_once('='))
            .map(|part| part.map(|(name, digest)| (name.to_owned(), digest.to_owned())))
            .collect();
        Some(Self(parts?))
    }

    /// Returns the line for a page.
    pub fn line(&self) -> String {
        let words: Vec<_> = self
            .0
            .iter()
            .map(|(name, digest)| format!("{name}={digest}"))
            .collect();
        format!("{BEGIN}{}{END}\n", words.join(" "))
    }

    /// Returns the engines whose code the parts name.
    pub fn engines(&self) -> BTreeSet<Engine> {
        let has = |name: &str| self.0.contains_key(name);
        let engines = [
            (Engine::Vmlab, has("laboratory")),
            (Engine::Netsim, has("simulator")),
        ];
        engines
            .into_iter()
            .filter_map(|(engine, is_used)| is_used.then_some(engine))
            .collect()
    }

    /// Returns the names of the parts that differ.
    pub fn differing(&self, other: &Self) -> Vec<&str> {
        let names = self
            .0
            .iter()
            .filter(|(name, digest)| other.0.get(*name) != Some(digest));
        names.map(|(name, _)| name.as_str()).collect()
    }
}

/// Returns whether a scenario of an experiment names what makes a psp.
fn uses_bpf(experiment: &Path) -> Result<bool> {
    let mut files = vec![];
    collect(experiment, &mut files)?;
    for file in files {
        let text =
            fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        if text.lines().any(|line| line.starts_with("backend = ")) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns the first 16 digits of the SHA-256 of all sources below some folders, with their paths in
/// them, as far as they decide what is built.
fn digest(folders: &[PathBuf]) -> Result<String> {
    let mut hash = Sha256::new();
    for folder in folders {
        let mut files = vec![];
        collect(folder, &mut files)?;
        files.sort();
        for file in files {
            let bytes =
                fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?;
            let extension = file.extension().unwrap_or_default().to_string_lossy();
            let text = deciding(&String::from_utf8_lossy(&bytes), Language::of(&extension));
            let name = file
                .strip_prefix(folder)
                .unwrap_or(&file)
                .display()
                .to_string();
            for piece in [name.as_bytes(), text.as_bytes()] {
                hash.update(u64::try_from(piece.len()).unwrap_or(u64::MAX).to_le_bytes());
                hash.update(piece);
            }
        }
    }
    let digits = hash.finalize();
    Ok(digits[..8]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect())
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let what = || format!("cannot read {}", folder.display());
    for entry in fs::read_dir(folder).with_context(what)? {
        let path = entry.with_context(what)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let extension = path.extension().unwrap_or_default().to_string_lossy();
        if path.is_dir() {
            if !LEFT_OUT.contains(&&*name) {
                collect(&path, files)?;
            }
        } else if name == PAPER {
            // Its words decide no figure.
        } else if (SOURCES.contains(&&*extension) && !name.ends_with(".mod.c"))
            || name.starts_with("Kbuild")
            || name.starts_with("Makefile")
        {
            files.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(root: &Path, file: &str, text: &str) {
        let path = root.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn tree() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let folders = KERNEL.iter().chain(LABORATORY).chain(SIMULATOR);
        let folders = folders.chain(MEASURES);
        for folder in folders.chain(&["experiments/a"]) {
            write(root.path(), &format!("{folder}/a.c"), "int a;");
        }
        root
    }

    #[test]
    fn each_part_is_seen_to_change() {
        let root = tree();
        let root = root.path();
        let both = BTreeSet::from([Engine::Vmlab, Engine::Netsim]);
        let now = || MadeOf::of(root, &root.join("experiments/a"), &both).unwrap();
        let first = now();
        assert_eq!(first, now());
        assert_eq!(first.engines(), both);
        for (file, parts) in [
            ("experiments/a/scenario.toml", &["experiment"][..]),
            ("core/src/a.c", &["kernel", "simulator"]),
            ("kernel/Kbuild", &["kernel"]),
            ("lab/agent/b.c", &["laboratory"]),
            ("crates/lab/vmlab/src/lib.rs", &["laboratory"]),
            ("crates/lab/metrics/src/lib.rs", &["measures"]),
            ("crates/lab/netsim/src/lib.rs", &["simulator"]),
            ("kernel/tests/a.sh", &[]),
            ("kernel/a.o", &[]),
        ] {
            let before = now();
            write(root, file, "changed");
            assert_eq!(before.differing(&now()), parts, "{file}");
        }
        // A comment, a blank line and a test decide nothing; a constant does.
        for (file, text, parts) in [
            ("core/src/a.c", "changed /* once more */\n\n", &[][..]),
            ("core/src/a.c", "changed + 1", &["kernel", "simulator"]),
            (
                "crates/lab/netsim/src/lib.rs",
                "//! Why.\nchanged\n\n#[cfg(test)]\nmod tests {\n}\n",
                &[],
            ),
            ("experiments/a/scenario.toml", "# why\nchanged", &[]),
        ] {
            let before = now();
            write(root, file, text);
            assert_eq!(before.differing(&now()), parts, "{file}: {text}");
        }
        // The name of a file counts, too.
        let before = now();
        fs::rename(root.join("uapi/a.c"), root.join("uapi/b.c")).unwrap();
        assert_eq!(before.differing(&now()), ["kernel"]);
    }

    #[test]
    fn a_page_says_what_it_was_made_of() {
        let root = tree();
        let made = MadeOf::of(
            root.path(),
            &root.path().join("experiments/a"),
            &BTreeSet::from([Engine::Netsim]),
        );
        let made = made.unwrap();
        let page = format!("# a\n\n## b\n\n{}", made.line());
        assert_eq!(MadeOf::read(&page), Some(made));
        assert_eq!(MadeOf::read("# a\n"), None);
        assert_eq!(MadeOf::read("<!-- made of: a -->"), None);
    }
}
