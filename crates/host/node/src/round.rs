// SPDX-License-Identifier: MIT OR Apache-2.0
//! One round over the attachments of a node, and what is said of it.

use std::io::Write;
use std::path::Path;

use cni::repair::{Found, repair};
use serde_json::json;

/// How lines are written.
#[derive(Clone, Copy, Debug)]
pub struct Say {
    /// As objects of JSON.
    pub is_json: bool,
}

impl Say {
    /// Writes a line to standard output.
    pub fn line(self, what: &str, text: &str) {
        let text = text.trim_end();
        let line = if self.is_json {
            json!({ "what": what, "text": text }).to_string()
        } else {
            format!("{what}: {}", text.replace('\n', "; "))
        };
        // Nobody is left to be told that it cannot be told.
        let _ = writeln!(std::io::stdout(), "{line}");
    }
}

/// Puts what is missing in force again. Returns what could not be; what is among `known` was said
/// before.
pub fn round(run: &Path, say: Say, known: &[String]) -> Vec<String> {
    let mut failed = Vec::new();
    let mut tell = |found: Found| match found {
        Found::Repaired(text) => say.line("repaired", &text),
        Found::Removed(text) => say.line("removed", &text),
        Found::Failed(text) => {
            if !known.contains(&text) {
                say.line("failed", &text);
            }
            failed.push(text);
        }
    };
    if let Err(error) = repair(run, &mut tell) {
        tell(Found::Failed(format!("{error:#}")));
    }
    failed
}
