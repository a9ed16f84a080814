// SPDX-License-Identifier: MIT OR Apache-2.0
//! The files to read, with a progress bar on a terminal for long ones.

use std::fs::File;
use std::io::{IsTerminal, Read};
use std::path::PathBuf;

use anyhow::Result;
use capture::choice::Choice;
use capture::segments::Segments;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use stall::files::open::{is_stdin, open};

const BYTES: &str = "{spinner} reading {bar:30} {bytes}/{total_bytes} {bytes_per_sec}, {eta} left";

/// Reads files, with a progress bar for long ones.
pub fn read<T>(
    paths: &[PathBuf],
    choice: Choice,
    with: impl FnOnce(Segments<'_>) -> Result<T>,
) -> Result<T> {
    let bar = ProgressBar::hidden();
    // The template is a constant; the default is used if it is invalid.
    bar.set_style(
        ProgressStyle::with_template(BYTES).unwrap_or_else(|_| ProgressStyle::default_bar()),
    );
    let sizes = paths.iter().map(|p| p.metadata().map_or(0, |m| m.len()));
    bar.set_length(sizes.sum());
    let has_stdin = paths.iter().any(|p| is_stdin(p));
    if !has_stdin && std::io::stderr().is_terminal() && !crate::terminal::is_quiet() {
        bar.set_draw_target(ProgressDrawTarget::stderr());
    }
    let wrap = |file: File| Box::new(bar.wrap_read(file)) as Box<dyn Read>;
    let segments = open(paths, choice, &wrap)?;
    // What was read to sort the files is read again, so the bar starts again at 0.
    bar.set_position(0);
    let result = with(segments);
    bar.finish_and_clear();
    result
}
