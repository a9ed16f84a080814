// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes a copy of a capture whose packets carry the findings as comments.

use std::fs::File;
use std::io::{BufReader, BufWriter, Write};
use std::path::Path;

use anyhow::{Context, Result};
use capture::annotate::{AnnotateError, Copied, annotate};
use psp_files::write::NewFile;

use super::comments::comments;
use crate::captures::CaptureResults;

/// Writes `out`: the capture as pcapng, with a comment on each packet that shows a stall of
/// `found`, and nothing else changed. A temporary file beside it takes its name when it is
/// whole, so a process that is killed or a full disk leaves an earlier `out` as it was.
pub fn write(capture: &Path, out: &Path, found: &CaptureResults) -> Result<Copied> {
    let cannot = || format!("cannot write {}", out.display());
    let mut new = NewFile::create(out).with_context(cannot)?;
    let source = File::open(capture).with_context(|| capture.display().to_string())?;
    let mut to = BufWriter::new(&mut new);
    let copied = match annotate(BufReader::new(source), &mut to, &comments(found)) {
        Ok(copied) => copied,
        Err(AnnotateError::Read(error)) => {
            return Err(error).with_context(|| capture.display().to_string());
        }
        Err(AnnotateError::Write(error)) => return Err(error).with_context(cannot),
    };
    to.flush().with_context(cannot)?;
    drop(to);
    new.finish().with_context(cannot)?;
    Ok(copied)
}
