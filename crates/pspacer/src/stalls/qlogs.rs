// SPDX-License-Identifier: MIT OR Apache-2.0
//! `pspacer stalls FILE.qlog`: tells why QUIC transfers stalled, from the log of one end.

use std::cmp::Reverse;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use stall::qlog::QlogResults;
use stall::report::qlog_text;

use crate::output;

/// Returns whether a name is that of a qlog, plain or packed.
pub fn is_qlog(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    let name = name.strip_suffix(".zst").unwrap_or(name);
    [".qlog", ".sqlog"].iter().any(|end| name.ends_with(end))
}

/// Returns what does not go together with a qlog. `of_packets` are the options for captures alone,
/// and whether each was given.
pub fn fault(files: &[PathBuf], of_packets: &[(&str, bool)]) -> Option<String> {
    let qlogs = files.iter().filter(|path| is_qlog(path)).count();
    if qlogs == 0 {
        return None;
    }
    if qlogs < files.len() {
        return Some("qlogs cannot be merged with captures: expected one kind of FILE".to_owned());
    }
    let (name, _) = of_packets.iter().find(|(_, is_given)| *is_given)?;
    Some(format!("{name} is for captures: FILE is a qlog"))
}

/// Reads the qlogs. `min_stall_ns` is the shortest stall that counts.
///
/// # Errors
/// When a file cannot be read, or has no event that can be read.
pub fn read(files: &[PathBuf], min_stall_ns: Option<u64>) -> Result<QlogResults> {
    let mut found = QlogResults::default();
    for path in files {
        let name = path.display().to_string();
        let file = File::open(path).with_context(|| name.clone())?;
        found.read(&name, file, min_stall_ns)?;
    }
    for note in &found.notes {
        output::note(&format!("pspacer: {note}"));
    }
    Ok(found)
}

/// Returns the results of the `most` connections that stalled for longest, in their order.
fn worst(found: &QlogResults, most: usize) -> QlogResults {
    let stalled_ns = |at: &usize| -> u64 {
        let stalls = found.connections.get(*at).map(|of| &of.stalls);
        stalls.into_iter().flatten().map(|of| of.duration_ns).sum()
    };
    let mut places: Vec<usize> = (0..found.connections.len()).collect();
    places.sort_by_key(|at| Reverse(stalled_ns(at)));
    places.truncate(most);
    places.sort_unstable();
    let connections = places.iter().filter_map(|at| found.connections.get(*at));
    QlogResults {
        connections: connections.cloned().collect(),
        ..found.clone()
    }
}

/// Prints the results: `json` as one object, else as text, of at most `most` connections.
pub fn print(found: &QlogResults, json: bool, all: bool, most: Option<usize>) -> Result<()> {
    let mut out = std::io::BufWriter::new(output::out());
    if json {
        let most = most.unwrap_or(usize::MAX);
        stall::qlog::json::write(&mut out, &worst(found, most))?;
    } else {
        qlog_text::write(&mut out, found, all, most, crate::terminal::style())?;
    }
    out.flush()?;
    Ok(())
}
