// SPDX-License-Identifier: MIT OR Apache-2.0
//! Opens the captures that a command line names.

use std::fs::File;
use std::io::{Read, stdin};
use std::path::{Path, PathBuf};

use anyhow::Result;
use capture::choice::Choice;
use capture::segments::{Segments, Source};

/// Returns whether a path is that of standard input.
pub fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Returns the segments of all files, of the chosen packets. `wrap` is given each file that is
/// opened, to see how far it was read; standard input it is not.
///
/// # Errors
/// Names the first file that cannot be read.
pub fn open<'a>(
    paths: &'a [PathBuf],
    choice: Choice,
    wrap: &'a dyn Fn(File) -> Box<dyn Read + 'a>,
) -> Result<Segments<'a>> {
    let sources = paths.iter().map(|path| {
        Source::new(path.display().to_string(), move || {
            Ok(if is_stdin(path) {
                Box::new(stdin().lock()) as Box<dyn Read>
            } else {
                wrap(File::open(path)?)
            })
        })
    });
    let opened = Segments::open_chosen(sources.collect(), choice);
    opened.map_err(|e| anyhow::Error::from(e.source).context(e.name))
}
