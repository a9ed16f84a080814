// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which tests with guests have passed with the same files: `make test-all` takes hours, and what
//! was cut off is gone on with.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use vmlab::{Cache, Key};

/// Names of tests, a line each, in a file whose name is the digest of what they were made of.
pub struct Passed {
    file: PathBuf,
    names: BTreeSet<String>,
}

impl Passed {
    /// Reads which have passed with the files of the commit and the packages of the laboratory.
    /// Returns nothing if a file is not committed as it is.
    pub fn of(cache: &Cache, root: &Path) -> Result<Option<Self>> {
        if !git(root, &["status", "--porcelain"])?.is_empty() {
            return Ok(None);
        }
        let mut key = Key::new();
        for line in git(root, &["ls-files", "--stage"])?.lines() {
            // No guest reads those.
            if !line.ends_with(".md") && !line.contains("\tfindings/") {
                key.add(line.as_bytes());
            }
        }
        // Which packages of Debian are in use: a file for each set of them.
        let sets = cache.path().join("sets");
        let mut sets: Vec<PathBuf> = fs::read_dir(&sets)
            .into_iter()
            .flatten()
            .filter_map(|entry| Some(entry.ok()?.path()))
            .collect();
        sets.sort();
        for set in sets {
            key.add(set.to_string_lossy().as_bytes());
            key.add(&fs::read(&set).with_context(|| set.display().to_string())?);
        }
        let folder = cache.path().join("passed");
        fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        let file = folder.join(key.text());
        let text = fs::read_to_string(&file).unwrap_or_default();
        // A line without its end was cut off.
        let whole = text.rsplit_once('\n').map_or("", |(lines, _)| lines);
        let names = whole.lines().map(str::to_owned).collect();
        Ok(Some(Self { file, names }))
    }

    pub fn has(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    /// Notes one that has passed.
    pub fn note(&self, name: &str) -> Result<()> {
        let open = || {
            let mut file = OpenOptions::new()
                .create(true)
                .append(true)
                .open(&self.file)?;
            file.write_all(format!("{name}\n").as_bytes())
        };
        open().with_context(|| self.file.display().to_string())
    }
}

fn git(root: &Path, arguments: &[&str]) -> Result<String> {
    let out = Command::new("git")
        .current_dir(root)
        .args(arguments)
        .output()
        .context("git")?;
    ensure!(
        out.status.success(),
        "git {}: {}",
        arguments.join(" "),
        out.status
    );
    Ok(String::from_utf8_lossy(&out.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_passed_counts_with_the_same_files_alone() {
        let folder = std::env::temp_dir().join(format!("passed-{}", std::process::id()));
        let root = folder.join("tree");
        let cache = Cache::at(folder.join("cache"));
        let test = || -> Result<()> {
            fs::create_dir_all(root.join("findings"))?;
            fs::create_dir_all(cache.path().join("sets"))?;
            let commit = |file: &str, text: &str| -> Result<()> {
                fs::write(root.join(file), text)?;
                git(&root, &["add", "."])?;
                let who = ["-c", "user.name=n", "-c", "user.email=e"];
                git(&root, &[&who[..], &["commit", "-q", "-m", "m"]].concat())?;
                Ok(())
            };
            let passed = || Passed::of(&cache, &root);
            let has = |name: &str| -> Result<bool> { Ok(passed()?.is_some_and(|of| of.has(name))) };
            git(&root, &["init", "-q"])?;
            commit("code", "a")?;
            ensure!(!has("one")?);
            passed()?.context("committed")?.note("one")?;
            ensure!(has("one")? && !has("two")?);
            // A document changes nothing; what is not committed is not known.
            fs::write(root.join("read.md"), "text")?;
            ensure!(passed()?.is_none());
            commit("read.md", "text")?;
            commit("findings/other.sh", "text")?;
            ensure!(has("one")?);
            commit("code", "b")?;
            ensure!(!has("one")?);
            commit("code", "a")?;
            ensure!(has("one")?);
            fs::write(cache.path().join("sets/kernel"), "another")?;
            ensure!(!has("one")?);
            fs::remove_file(cache.path().join("sets/kernel"))?;
            // Cut off within a line.
            let file = passed()?.context("committed")?.file;
            fs::write(file, "one\ntw")?;
            ensure!(has("one")? && !has("tw")?);
            Ok(())
        };
        let ended = test();
        let removed = fs::remove_dir_all(&folder);
        assert!(ended.is_ok(), "{ended:?}");
        assert!(removed.is_ok());
    }
}
