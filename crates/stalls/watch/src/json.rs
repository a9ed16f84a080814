// SPDX-License-Identifier: MIT OR Apache-2.0
//! Prints the output of `--json`, one object a line (`docs/use/formats.md`, "Watch").

use std::io::{BufWriter, Result, Write};

use serde::Serialize;
use stall::Stall;

use crate::counted::Counted;
use crate::names::Owner;
use crate::packets::PacketCounts;
use crate::session::{Report, Session, Sink, verdict};
use crate::{Connection, Cost};

const FORMAT: &str = "pspacer-watch-2";

#[derive(Serialize)]
struct Start {
    #[serde(rename = "type")]
    kind: &'static str,
    format: &'static str,
}

#[derive(Serialize)]
struct Summary<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    duration_s: f64,
    records: u64,
    /// Records that the ring buffer had no room for, all together and by CPU.
    lost_records: u64,
    lost_records_by_cpu: &'a [u64],
    /// Sockets that could not be followed.
    lost_sockets: u64,
    connections: u64,
    /// Number of stalls of all connections.
    stalls: u64,
    /// Connections that `--out` had no room for.
    unrecorded_connections: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    packets: Option<&'a PacketCounts>,
    #[serde(skip_serializing_if = "<[Cost]>::is_empty")]
    costs: &'a [Cost],
}

#[derive(Serialize)]
struct Watching<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    number: u64,
    cookie: u64,
    client: Option<String>,
    server: Option<String>,
    /// The end on this host.
    local: Option<String>,
    #[serde(flatten)]
    owner: &'a Owner,
    start_s: f64,
    duration_s: f64,
    verdict: String,
    acked_bytes: u64,
    retransmissions: u64,
    srtt_s: f64,
    cwnd: u32,
    records: u64,
    lost_records: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    record: Option<String>,
    stalls: &'a [Stall],
    stalls_dropped: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    drops: Vec<Drops>,
}

/// The file with the packets around a stall.
#[derive(Serialize)]
struct Packets<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    /// Number of the connection.
    connection: u64,
    /// When the stall began.
    start_s: f64,
    file: &'a str,
}

/// Segments that this host dropped for one reason.
#[derive(Serialize)]
struct Drops {
    reason: String,
    segments: u64,
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

fn watching(
    start_ns: u64,
    cookie: u64,
    connection: &Connection,
    record: Option<String>,
) -> Watching<'_> {
    let ends = connection
        .ends
        .map(|ends| [ends.local, ends.remote].map(|end| end.to_string()));
    let (client, server) = match (ends.clone(), connection.is_client()) {
        (Some([local, remote]), true) => (Some(local), Some(remote)),
        (Some([local, remote]), false) => (Some(remote), Some(local)),
        (None, _) => (None, None),
    };
    let last_ns = connection.last.time_ns;
    let drops = connection.dropped_segments();
    Watching {
        kind: "connection",
        number: connection.number,
        cookie,
        client,
        server,
        local: ends.map(|[local, _]| local),
        owner: &connection.owner,
        start_s: seconds(connection.first_ns.saturating_sub(start_ns)),
        duration_s: seconds(last_ns.saturating_sub(connection.first_ns)),
        verdict: verdict(connection),
        acked_bytes: connection.acked_bytes(),
        retransmissions: connection.retransmissions,
        srtt_s: seconds(connection.last.srtt_ns),
        cwnd: connection.last.cwnd,
        records: connection.readings,
        lost_records: connection.lost,
        record,
        stalls: &connection.stalls,
        stalls_dropped: connection.stalls_dropped,
        drops: drops
            .into_iter()
            .map(|(reason, segments)| Drops { reason, segments })
            .collect(),
    }
}

/// An output of JSON lines: one when watching begins, one for each connection when it ends, and
/// one at the end.
pub struct Stream<W: Write>(BufWriter<W>);

impl<W: Write> Stream<W> {
    /// Writes the first line.
    pub fn start(out: W) -> Result<Self> {
        let mut stream = Self(BufWriter::new(out));
        stream.line(&Start {
            kind: "start",
            format: FORMAT,
        })?;
        Ok(stream)
    }

    /// Writes a connection that has ended, or is still open when watching ends; `record` is the
    /// name of its file.
    pub fn connection(
        &mut self,
        start_ns: u64,
        cookie: u64,
        connection: &Connection,
        record: Option<String>,
    ) -> Result<()> {
        self.line(&watching(start_ns, cookie, connection, record))
    }

    /// Writes which file has the packets around a stall, if they were saved.
    pub fn packets(&mut self, report: &Report) -> Result<()> {
        let Some(file) = &report.packets else {
            return Ok(());
        };
        self.line(&Packets {
            kind: "packets",
            connection: report.number,
            start_s: seconds(report.stall.start_ns),
            file,
        })
    }

    /// Writes the last line.
    pub fn summary<S: Sink>(
        &mut self,
        session: &Session<S>,
        counted: &Counted,
        unrecorded: u64,
    ) -> Result<()> {
        self.line(&Summary {
            kind: "summary",
            duration_s: seconds(session.end_ns.saturating_sub(session.start_ns)),
            records: session.readings(),
            lost_records: counted.lost.iter().sum(),
            lost_records_by_cpu: &counted.lost,
            lost_sockets: counted.lost_sockets,
            connections: session.opened(),
            stalls: session.stalls,
            unrecorded_connections: unrecorded,
            packets: counted.packets.as_ref(),
            costs: &counted.costs,
        })
    }

    /// Writes an object and flushes, so that a reader has each one at once.
    fn line(&mut self, object: &impl Serialize) -> Result<()> {
        serde_json::to_writer(&mut self.0, object)?;
        writeln!(self.0)?;
        self.0.flush()
    }
}
