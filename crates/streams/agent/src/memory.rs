// SPDX-License-Identifier: MIT OR Apache-2.0
//! What an agent knows, in a file that a killed agent leaves behind: it is written before a port is
//! changed. Leases are times of one boot, and a boot empties the ports, too.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

use crate::known::ManagerAnswers;

const FORMAT: &str = "pspacer-agent-1";

#[derive(Serialize, Deserialize)]
struct File {
    format: String,
    boot: String,
    known: ManagerAnswers,
}

/// The file of a node.
pub(crate) struct Memory {
    path: PathBuf,
    boot: String,
}

impl Memory {
    pub(crate) fn new(folder: &Path, node: &str, boot: String) -> Self {
        let path = folder.join(format!("agent-{node}.json"));
        Self { path, boot }
    }

    /// Returns what was known; nothing, if there is no file or it is of another boot.
    pub(crate) fn load(&self) -> Result<ManagerAnswers> {
        let named = || self.path.display().to_string();
        let text = match fs::read(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Ok(ManagerAnswers::default());
            }
            text => text.with_context(named)?,
        };
        let file: File = serde_json::from_slice(&text).with_context(named)?;
        let format = &file.format;
        ensure!(
            *format == FORMAT,
            "{}: `format` is \"{format}\", expected {FORMAT}",
            named()
        );
        Ok(if file.boot == self.boot {
            file.known
        } else {
            ManagerAnswers::default()
        })
    }

    pub(crate) fn store(&self, known: &ManagerAnswers) -> Result<()> {
        let file = File {
            format: FORMAT.to_owned(),
            boot: self.boot.clone(),
            known: known.clone(),
        };
        host_apply::write(&self.path, &serde_json::to_string(&file)?)
    }
}
