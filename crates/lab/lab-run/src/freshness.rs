// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which pages of the results are older than the code that their figures come from.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::made_of::MadeOf;

/// A page that does not say what it was made of.
const NOT_KNOWN: &str = "not known";

/// The age of one page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Age {
    /// Name of the experiment.
    pub name: String,
    /// Parts of the code that differ from what the page was made of; a fresh page has none.
    pub changed: Vec<String>,
}

impl Age {
    /// Returns the age of the page of the experiment in `folder` of the tree at `root`, in the
    /// folder `results`.
    pub fn of(root: &Path, folder: &Path, results: &Path) -> Result<Self> {
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        let page = page(results, &name);
        let text = match fs::read_to_string(&page) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            read => read.with_context(|| format!("cannot read {}", page.display()))?,
        };
        let changed = match MadeOf::read(&text) {
            None => vec![NOT_KNOWN.to_owned()],
            Some(made) => {
                let now = MadeOf::of(root, folder, &made.engines())?;
                let parts = made.differing(&now).into_iter();
                parts.map(ToOwned::to_owned).collect()
            }
        };
        Ok(Self {
            name: name.into_owned(),
            changed,
        })
    }

    /// Returns whether nothing has changed since the page was made.
    pub fn is_fresh(&self) -> bool {
        self.changed.is_empty()
    }
}

/// Returns the path of an experiment's page.
pub fn page(results: &Path, name: &str) -> PathBuf {
    results.join(format!("{name}.md"))
}
