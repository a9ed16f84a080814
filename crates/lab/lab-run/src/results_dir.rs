// SPDX-License-Identifier: MIT OR Apache-2.0
//! A folder of results. Its marker names every file that is written into it, so that a later run
//! removes these files and no others. Only one run at a time may use the folder.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Component, Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result, bail, ensure};
use fs4::{FileExt, TryLockError};

/// File name of the marker. It holds its first line and a note, then the path of a file in each
/// line; paths of folders end with `/`.
const MARKER: &str = ".pspacer";
/// Begin of a marker's first line; the [`Writer`] completes the line.
const FORMAT: &str = "pspacer-files-1 ";
/// Second line of a marker.
const NOTE: &str = "# Written by pspacer. Before it writes here again it removes the files below, \
                    and no others.\n";

/// The command that wrote a folder. Each removes only what the same command wrote, because a folder
/// with the results of a run may also hold measurements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writer {
    /// A scenario's run, in the laboratory or simulated.
    Run,
    Measure,
    Watch,
}

impl Writer {
    /// Returns the first line of the writer's markers.
    fn head(self) -> String {
        let name = match self {
            Self::Run => "run",
            Self::Measure => "measure",
            Self::Watch => "watch",
        };
        format!("{FORMAT}{name}")
    }
}

/// A folder of results, open for writing.
pub struct ResultsDir {
    path: PathBuf,
    /// The marker file, locked.
    marker: Mutex<File>,
}

impl ResultsDir {
    /// Makes the folder, or removes from it what an earlier run wrote. A folder is refused if it is
    /// neither empty nor marked by the same writer, or if files of another origin are in the way;
    /// nothing is removed then.
    pub fn open(out: &Path, writer: Writer) -> Result<Self> {
        let named = || format!("--out {}", out.display());
        let said = |what: &str| format!("--out {}: {what}", out.display());
        ensure!(
            !out.as_os_str().is_empty(),
            "--out: no folder is named; expected a new or an empty folder"
        );
        ensure!(
            out.exists() || !out.is_symlink(),
            said("a link that leads nowhere; expected a folder")
        );
        ensure!(
            out.is_dir() || !out.exists(),
            said("a file; expected a folder")
        );
        fs::create_dir_all(out).with_context(|| said("cannot make the folder"))?;
        let marker = out.join(MARKER);
        let is_marked = marker.symlink_metadata().is_ok_and(|m| m.is_file());
        let is_empty = fs::read_dir(out).with_context(named)?.next().is_none();
        ensure!(
            is_marked || is_empty,
            said(
                "the folder has files that are not results of ours; expected a new or an \
                 empty folder, or one that pspacer has marked"
            )
        );
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true);
        options.custom_flags(psp_files::read::NOFOLLOW);
        let mut file = options
            .open(&marker)
            .with_context(|| said("cannot write into the folder"))?;
        if let Err(TryLockError::WouldBlock) = FileExt::try_lock(&file) {
            bail!(said("another run is writing there"));
        }
        let mut text = String::new();
        file.read_to_string(&mut text)
            .with_context(|| marker.display().to_string())?;
        let listed = listed(&text, &marker, writer)?;
        check_foreign(out, &listed)?;
        remove(out, &listed)?;
        file.set_len(0).with_context(named)?;
        file.rewind().with_context(named)?;
        file.write_all(format!("{}\n{NOTE}", writer.head()).as_bytes())
            .with_context(|| said("cannot write into the folder"))?;
        Ok(Self {
            path: out.to_path_buf(),
            marker: Mutex::new(file),
        })
    }

    /// Returns the folder's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds to the marker a file that is about to be written, or a folder that is about to be made.
    pub fn record_in_marker(&self, path: &Path, is_folder: bool) -> Result<()> {
        // A temporary folder has an absolute path, even below a relative one.
        let absolute = std::path::absolute(&self.path).unwrap_or_else(|_| self.path.clone());
        let within = path
            .strip_prefix(&self.path)
            .or_else(|_| path.strip_prefix(&absolute))
            .unwrap_or(path);
        let end = if is_folder { "/" } else { "" };
        let line = format!("{}{end}\n", within.display());
        let mut marker = self.marker.lock().unwrap_or_else(PoisonError::into_inner);
        marker
            .write_all(line.as_bytes())
            .with_context(|| format!("cannot write {}", self.path.join(MARKER).display()))
    }

    /// Makes a folder in it, and returns the path.
    pub fn folder(&self, name: &str) -> Result<PathBuf> {
        let path = self.path.join(name);
        self.record_in_marker(&path, true)?;
        fs::create_dir_all(&path).with_context(|| format!("cannot make {}", path.display()))?;
        Ok(path)
    }

    /// Makes a file below the folder; `path` begins with the folder's path.
    pub fn create(&self, path: &Path) -> Result<File> {
        self.record_in_marker(path, false)?;
        // What was there has been taken away; a link that somebody puts there is not followed.
        let made = OpenOptions::new().write(true).create_new(true).open(path);
        made.with_context(|| format!("cannot write {}", path.display()))
    }

    /// Writes a file below the folder; `path` begins with the folder's path.
    pub fn write(&self, path: &Path, bytes: &[u8]) -> Result<()> {
        let mut file = self.create(path)?;
        file.write_all(bytes)
            .with_context(|| format!("cannot write {}", path.display()))
    }
}

/// Returns the paths that a marker lists. Refuses paths outside its folder.
fn listed(text: &str, marker: &Path, writer: Writer) -> Result<BTreeSet<String>> {
    if text.is_empty() {
        return Ok(BTreeSet::new());
    }
    let first = text.lines().next().unwrap_or_default();
    let Some(other) = first.strip_prefix(FORMAT) else {
        bail!(
            "{}: a marker of another version of pspacer; move or remove that folder, or name \
             another one",
            marker.display()
        );
    };
    ensure!(
        first == writer.head(),
        "{}: the folder has the files of a pspacer {other}; expected a new or an empty folder",
        marker.display()
    );
    // A last line without an end of line was cut off: its file was not written.
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let lines = whole.lines().skip(1).filter(|line| !line.starts_with('#'));
    let listed: BTreeSet<String> = lines.map(str::to_owned).collect();
    let is_below = |name: &str| {
        let parts = Path::new(name).components();
        !name.is_empty()
            && parts
                .clone()
                .all(|part| matches!(part, Component::Normal(_)))
    };
    if let Some(name) = listed.iter().find(|name| !is_below(name)) {
        bail!(
            "{}: {name:?} is no file below that folder, and pspacer did not write that line; \
             expected a new or an empty folder",
            marker.display()
        );
    }
    Ok(listed)
}

/// Returns whether a run writes a file or folder of this name into its folder.
fn is_ours(name: &str) -> bool {
    ["result.json", "report.html", "run.json", "measures.json"].contains(&name)
        || [".svg", ".epool.csv"].iter().any(|end| name.ends_with(end))
        || ["cell-", "boot-", ".boot-"]
            .iter()
            .any(|prefix| name.starts_with(prefix))
}

/// Refuses a folder with files that a run would overwrite or mix with its own, but that no run has
/// written.
fn check_foreign(out: &Path, listed: &BTreeSet<String>) -> Result<()> {
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        let at = out.join(&folder);
        let entries = fs::read_dir(&at).with_context(|| format!("cannot read {}", at.display()))?;
        for entry in entries {
            let entry = entry.with_context(|| format!("cannot read {}", at.display()))?;
            let name = folder.join(entry.file_name());
            let text = name.to_string_lossy().into_owned();
            if folder.as_os_str().is_empty() && !is_ours(&text) {
                continue;
            }
            let kind = entry.file_type().with_context(|| text.clone())?;
            let is_known = if kind.is_dir() {
                listed.contains(&format!("{text}/"))
            } else {
                kind.is_file() && listed.contains(&text)
            };
            ensure!(
                is_known,
                "--out {}: {text} is in the way and was not written by pspacer; move it, or name \
                 another folder",
                out.display()
            );
            if kind.is_dir() {
                folders.push(name);
            }
        }
    }
    Ok(())
}

/// Removes the listed files, then the folders that became empty. None of the folders is a link:
/// [`check_foreign`] has checked the folders of a run, and everything else that a marker lists is
/// left alone.
fn remove(out: &Path, listed: &BTreeSet<String>) -> Result<()> {
    let is_run = |name: &&String| name.split('/').next().is_some_and(is_ours);
    // In reverse order the contents of a folder come before the folder.
    for name in listed.iter().rev().filter(is_run) {
        let path = out.join(name);
        let removed = if name.ends_with('/') {
            fs::remove_dir(&path)
        } else {
            fs::remove_file(&path)
        };
        match removed {
            Ok(()) => {}
            Err(e) if e.kind() == ErrorKind::NotFound => {}
            Err(e) => return Err(e).with_context(|| format!("cannot remove {}", path.display())),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail that way")]

    use super::*;

    /// A second run takes the same relative folder, as `make demo` does.
    #[test]
    fn a_relative_folder_is_taken_again_after_absolute_names() {
        let out = PathBuf::from(format!("results-dir-of-test-{}", std::process::id()));
        let room = ResultsDir::open(&out, Writer::Run).unwrap();
        let scratch = std::path::absolute(&out).unwrap().join(".boot-x");
        room.record_in_marker(&scratch, true).unwrap();
        drop(room);
        let again = ResultsDir::open(&out, Writer::Run).map(drop);
        fs::remove_dir_all(&out).unwrap();
        again.unwrap();
    }
}
