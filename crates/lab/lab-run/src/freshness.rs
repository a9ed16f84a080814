// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which pages of the results are older than what would run now.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::made_of::MadeOf;

/// A page that does not say what it was made of.
const NOT_KNOWN: &str = "not known";

/// The age of one page.
#[derive(Clone, Debug, PartialEq)]
pub struct Age {
    /// Name of the experiment.
    pub name: String,
    /// Runs that differ in what is the project's from what the page was made of.
    pub changed: Vec<String>,
    /// Runs that differ in packages, kernel or compiler alone.
    pub repackaged: Vec<String>,
    /// Minutes that making the page takes here, as far as is known: what the store has takes none,
    /// nor does what a page before it runs.
    pub minutes: f64,
}

impl Age {
    /// Returns the age of a page that would be made of `now`, in the folder `results`.
    pub fn of(name: &str, now: &MadeOf, results: &Path) -> Result<Self> {
        let page = page(results, name);
        let text = match fs::read_to_string(&page) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            read => read.with_context(|| format!("cannot read {}", page.display()))?,
        };
        let (changed, repackaged) = match MadeOf::read(&text) {
            None => (vec![NOT_KNOWN.to_owned()], vec![]),
            Some(made) => {
                // Where all of a run is as it was, so is what is the project's in it, wherever its sources moved.
                let in_code = made.differing_in_code(now);
                let differing = made.differing(now).into_iter();
                let (changed, repackaged): (Vec<_>, Vec<_>) =
                    differing.partition(|name| in_code.contains(name));
                (owned(changed), owned(repackaged))
            }
        };
        Ok(Self {
            name: name.to_owned(),
            changed,
            repackaged,
            minutes: 0.0,
        })
    }

    /// Returns whether nothing has changed since the page was made.
    pub fn is_fresh(&self) -> bool {
        self.changed.is_empty() && self.repackaged.is_empty()
    }

    /// Returns whether something of the project's has changed since the page was made.
    pub fn is_older_than_code(&self) -> bool {
        !self.changed.is_empty()
    }
}

fn owned(names: Vec<&str>) -> Vec<String> {
    names.into_iter().map(str::to_owned).collect()
}

/// Returns the path of an experiment's page.
pub fn page(results: &Path, name: &str) -> PathBuf {
    results.join(format!("{name}.md"))
}
