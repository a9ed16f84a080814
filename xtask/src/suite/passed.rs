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

/// Begins a line that says which packages a set of the laboratory's cache had.
const SET: &str = "set ";

/// Names of tests, a line each, in a file whose name is the digest of the committed files. Before
/// them stand the packages that were in use, which may not have changed since; others may have come.
pub struct Passed {
    file: PathBuf,
    sets: PathBuf,
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
        let folder = cache.path().join("passed");
        fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        let file = folder.join(key.text());
        let sets = cache.path().join("sets");
        let text = fs::read_to_string(&file).unwrap_or_default();
        // A line without its end was cut off.
        let whole = text.rsplit_once('\n').map_or("", |(lines, _)| lines);
        let now = in_use(&sets)?;
        let is_known = |line: &&str| !line.starts_with(SET) || now.contains(*line);
        let mut names = BTreeSet::new();
        if whole.lines().all(|line| is_known(&line)) {
            names.extend(whole.lines().map(str::to_owned));
        } else {
            fs::remove_file(&file).with_context(|| file.display().to_string())?;
        }
        Ok(Some(Self { file, sets, names }))
    }

    /// Returns the beginning of the digest of the committed files: parts of a run that name the same
    /// one are of the same files, wherever they ran.
    pub fn files(&self) -> String {
        let name = self.file.file_name().unwrap_or_default();
        name.to_string_lossy().chars().take(16).collect()
    }

    pub fn has(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    /// Notes one that has passed.
    pub fn note(&self, name: &str) -> Result<()> {
        let mut lines = in_use(&self.sets)?.into_iter().collect::<Vec<_>>();
        lines.push(format!("{name}\n"));
        let open = || {
            let mut file = OpenOptions::new()
                .create(true)
                .append(true)
                .open(&self.file)?;
            file.write_all(lines.join("\n").as_bytes())
        };
        open().with_context(|| self.file.display().to_string())
    }
}

/// Returns a line for each set of packages in the cache.
fn in_use(sets: &Path) -> Result<BTreeSet<String>> {
    let entries = fs::read_dir(sets).into_iter().flatten();
    entries
        .map(|entry| {
            let path = entry?.path();
            let has = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            Ok(format!("{SET}{name} {}", has.trim_end()))
        })
        .collect()
}

/// Returns what git prints, if it succeeds.
pub fn git(root: &Path, arguments: &[&str]) -> Result<String> {
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
            // Packages that come do not matter, others in their place do.
            let kernel = cache.path().join("sets/kernel");
            fs::write(&kernel, "7.1\n")?;
            ensure!(has("one")?);
            passed()?.context("committed")?.note("two")?;
            ensure!(has("one")? && has("two")?);
            fs::write(&kernel, "7.2\n")?;
            ensure!(!has("one")? && !has("two")?);
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
