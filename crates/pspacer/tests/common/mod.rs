// SPDX-License-Identifier: MIT OR Apache-2.0
//! Code that the tests of the command share.

#![allow(dead_code, reason = "each test takes what it needs")]

pub mod capture;
pub mod guest;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use testkit::has;

/// Returns the project's folder.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

/// Runs the command in the project's folder.
pub fn pspacer(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_pspacer"))
        .args(args)
        .current_dir(root())
        .output()
        .unwrap()
}

/// A temporary folder, removed when it is dropped.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub fn at(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }

    pub fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.0.join(name)).unwrap()
    }

    /// Writes a file in it, and returns the path.
    pub fn file(&self, name: &str, bytes: &[u8]) -> String {
        let path = self.at(name);
        fs::write(&path, bytes).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Runs the command, which must succeed. Returns what it printed.
#[track_caller]
pub fn well(args: &[&str]) -> String {
    let out = pspacer(args);
    assert!(out.status.success(), "{args:?}: {}", text(&out.stderr));
    text(&out.stdout)
}

/// As [`well`], of what is JSON.
#[track_caller]
pub fn json(args: &[&str]) -> Value {
    serde_json::from_str(&well(args)).unwrap()
}

/// Runs the command, which must end with this status, print nothing, and say all `words`. Returns what
/// it said: one line, but for how it is used.
#[track_caller]
pub fn refused(args: &[&str], status: i32, words: &[&str]) -> String {
    let out = pspacer(args);
    let said = text(&out.stderr);
    assert_eq!(out.status.code(), Some(status), "{args:?}: {said}");
    assert!(out.stdout.is_empty(), "{args:?}: {}", text(&out.stdout));
    has(&said, words);
    assert!(status != 1 || said.lines().count() == 1, "{args:?}: {said}");
    said
}

/// Returns the text that a program printed.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Returns the words that a program printed, with one blank between two: where a line of a
/// paragraph ends depends on the names in it.
pub fn words(bytes: &[u8]) -> String {
    let text = text(bytes);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the output of `pspacer watch --json` as one object: its summary, with the
/// connections in place of their number.
#[allow(clippy::panic, reason = "tests fail that way")]
pub fn watched(printed: &str) -> Value {
    let lines = printed.lines().filter(|line| line.starts_with('{'));
    let lines: Vec<Value> = lines
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {printed}")))
        .collect();
    let [start, between @ .., summary] = &lines[..] else {
        panic!("a start and a summary were expected: {printed}");
    };
    let of_type = |kind: &str| -> Vec<Value> {
        let lines = between.iter().filter(|line| line["type"] == kind);
        lines.cloned().collect()
    };
    let (connections, saved) = (of_type("connection"), of_type("packets"));
    assert_eq!(start["format"], "pspacer-watch-2");
    assert_eq!(summary["type"], "summary", "{printed}");
    assert_eq!(connections.len() + saved.len(), between.len(), "{printed}");
    let mut watched = summary.clone();
    assert_eq!(watched["connections"], connections.len(), "{printed}");
    watched["connections"] = connections.into();
    watched["saved"] = saved.into();
    watched
}
