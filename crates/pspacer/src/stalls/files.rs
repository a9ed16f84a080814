// SPDX-License-Identifier: MIT OR Apache-2.0
//! Opens the files to read, with a progress bar on a terminal for long ones.

use std::fs::File;
use std::io::{IsTerminal, Read, stdin};
use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use capture::segments::{Segments, Source};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

const BYTES: &str = "{spinner} reading {bar:30} {bytes}/{total_bytes} {bytes_per_sec}, {eta} left";

/// The files named on the command line.
pub struct Files {
    paths: Vec<PathBuf>,
    bar: ProgressBar,
}

fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

impl Files {
    /// # Errors
    /// If standard input is one of several files.
    pub fn new(paths: &[PathBuf]) -> Result<Self> {
        ensure!(
            paths.len() == 1 || !paths.iter().any(|p| is_stdin(p)),
            "- cannot be merged with files: standard input is read once"
        );
        let bar = ProgressBar::hidden();
        // The template is a constant; the default is used if it is invalid.
        bar.set_style(
            ProgressStyle::with_template(BYTES).unwrap_or_else(|_| ProgressStyle::default_bar()),
        );
        Ok(Self {
            paths: paths.to_vec(),
            bar,
        })
    }

    /// Returns whether standard input is read, which is possible only once.
    pub fn has_stdin(&self) -> bool {
        self.paths.iter().any(|p| is_stdin(p))
    }

    /// Returns the names of the files, as on the command line.
    pub fn names(&self) -> Vec<String> {
        self.paths.iter().map(|p| p.display().to_string()).collect()
    }

    /// Returns the segments of all files.
    ///
    /// # Errors
    /// Names the first file that cannot be read.
    pub fn open(&self) -> Result<Segments<'_>> {
        let sizes = self
            .paths
            .iter()
            .map(|p| p.metadata().map_or(0, |m| m.len()));
        self.bar.reset();
        self.bar.set_length(sizes.sum());
        if !self.has_stdin() && std::io::stderr().is_terminal() && !crate::terminal::is_quiet() {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        let sources = self.paths.iter().map(|path| {
            Source::new(path.display().to_string(), move || {
                if is_stdin(path) {
                    return Ok(Box::new(stdin().lock()) as Box<dyn Read>);
                }
                let file = File::open(path)?;
                Ok(Box::new(self.bar.wrap_read(file)) as Box<dyn Read>)
            })
        });
        let opened = Segments::open(sources.collect());
        // What was read to sort the files is read again, so the bar starts again at 0.
        self.bar.set_position(0);
        opened.map_err(|e| anyhow::Error::from(e.source).context(e.name))
    }

    /// Removes the progress bar.
    pub fn finished(&self) {
        self.bar.finish_and_clear();
    }
}
