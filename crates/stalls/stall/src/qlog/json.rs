// SPDX-License-Identifier: MIT OR Apache-2.0
//! The JSON object that `--json` prints of qlogs (`docs/use/formats.md`, "Stalls of QUIC").

use std::io::Write;

use anyhow::Result;
use serde::Serialize;

use super::QlogResults;
use super::connection::QuicConnection;
use crate::by_cause::CauseTotal;

#[derive(Serialize)]
struct Stalls<'a> {
    format: &'static str,
    files: &'a [String],
    notes: &'a [String],
    connections: Vec<Numbered<'a>>,
    by_cause: Vec<CauseTotal>,
}

#[derive(Serialize)]
struct Numbered<'a> {
    number: usize,
    #[serde(flatten)]
    connection: &'a QuicConnection,
}

/// Writes the object.
pub fn write(out: &mut impl Write, found: &QlogResults) -> Result<()> {
    let numbered = (1..).zip(&found.connections);
    let stalls = Stalls {
        format: "pspacer-stalls-qlog-1",
        files: &found.files,
        notes: &found.notes,
        connections: numbered
            .map(|(number, connection)| Numbered { number, connection })
            .collect(),
        by_cause: found.by_cause(),
    };
    serde_json::to_writer_pretty(&mut *out, &stalls)?;
    writeln!(out)?;
    Ok(())
}
