// SPDX-License-Identifier: MIT OR Apache-2.0
//! The JSON object that `--json` prints (`docs/use/formats.md`, "Stalls").

use std::io::Write;

use anyhow::Result;
use capture::process::Process;
use serde::Serialize;

use crate::captures::CaptureResults;
use crate::two_ends::TwoEnds;
use crate::{CauseTotal, Connection, HostPairTotal, SideTotal};

#[derive(Serialize)]
struct Stalls<'a> {
    format: &'static str,
    files: &'a [String],
    packets: u64,
    segments: u64,
    /// Time of the first segment, seconds since 1970; all other times count from it.
    start_unix_s: f64,
    notes: Vec<String>,
    connections: Vec<Numbered<'a>>,
    by_cause: Vec<CauseTotal>,
    by_side: Vec<SideTotal>,
    by_host_pair: Vec<HostPairTotal>,
    #[serde(skip_serializing_if = "Option::is_none")]
    two_ends: &'a Option<TwoEnds>,
}

#[derive(Serialize)]
struct Numbered<'a> {
    number: usize,
    #[serde(skip_serializing_if = "String::is_empty")]
    tunnel: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    processes: Vec<OfProcess<'a>>,
    #[serde(flatten)]
    connection: &'a Connection,
}

/// A process that comments of packets name.
#[derive(Serialize)]
struct OfProcess<'a> {
    pid: Option<u32>,
    command: &'a str,
    arguments: &'a str,
    container_id: &'a str,
    container: &'a str,
    pod: &'a str,
    pod_namespace: &'a str,
}

impl<'a> From<&'a Process> for OfProcess<'a> {
    fn from(process: &'a Process) -> Self {
        Self {
            pid: process.pid,
            command: &process.command,
            arguments: &process.arguments,
            container_id: &process.container_id,
            container: &process.container,
            pod: &process.pod,
            pod_namespace: &process.pod_namespace,
        }
    }
}

/// Writes the object, with the connections in the order of their first packets.
pub fn write(out: &mut impl Write, found: &CaptureResults) -> Result<()> {
    let mut shown = found.listed().to_vec();
    shown.sort_unstable();
    let connections = shown.iter().map(|i| {
        let connection = &found.analysis.connections[*i];
        let (client, server) = (connection.client, connection.server);
        let processes = found.processes.of(client, server).iter();
        Numbered {
            number: i + 1,
            tunnel: found.encapsulations.name(connection.encapsulation),
            processes: processes.map(OfProcess::from).collect(),
            connection,
        }
    });
    let stalls = Stalls {
        format: "pspacer-stalls-2",
        files: &found.files,
        packets: found.counts.packets,
        segments: found.counts.segments,
        start_unix_s: found.analysis.start_ns as f64 / 1e9,
        notes: found.notes().collect(),
        connections: connections.collect(),
        by_cause: found.by_cause(),
        by_side: found.by_side(),
        by_host_pair: found.by_host_pair(),
        two_ends: &found.two_ends,
    };
    serde_json::to_writer_pretty(&mut *out, &stalls)?;
    writeln!(out)?;
    Ok(())
}
