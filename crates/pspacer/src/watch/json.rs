// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `--json` prints (`docs/formats.md`, "Watch").

use std::io::Write;

use anyhow::Result;
use serde::Serialize;
use stall::Stop;
use watch::{Connection, Cost};

use super::Counted;
use super::session::{Session, verdict};

#[derive(Serialize)]
struct Watched<'a> {
    format: &'static str,
    duration_s: f64,
    /// Records read.
    records: u64,
    /// Records that found no room, all together and by CPU.
    lost_records: u64,
    lost_records_by_cpu: &'a [u64],
    /// Sockets that could not be followed.
    lost_sockets: u64,
    /// Connections that were over and are not among these.
    forgotten_connections: u64,
    #[serde(skip_serializing_if = "<[Cost]>::is_empty")]
    costs: &'a [Cost],
    connections: Vec<Watching<'a>>,
}

#[derive(Serialize)]
struct Watching<'a> {
    number: usize,
    cookie: u64,
    client: Option<String>,
    server: Option<String>,
    /// This host's end.
    local: Option<String>,
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
    stops: &'a [Stop],
    stops_dropped: u64,
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

fn watching<'a>(
    session: &Session,
    (number, cookie, connection): (usize, u64, &'a Connection),
) -> Watching<'a> {
    let ends = connection
        .ends
        .map(|ends| [ends.local, ends.remote].map(|end| end.to_string()));
    let (client, server) = match (ends.clone(), connection.is_client()) {
        (Some([local, remote]), true) => (Some(local), Some(remote)),
        (Some([local, remote]), false) => (Some(remote), Some(local)),
        (None, _) => (None, None),
    };
    let last_ns = connection.last.time_ns;
    Watching {
        number,
        cookie,
        client,
        server,
        local: ends.map(|[local, _]| local),
        start_s: seconds(connection.first_ns.saturating_sub(session.start_ns)),
        duration_s: seconds(last_ns.saturating_sub(connection.first_ns)),
        verdict: verdict(connection),
        acked_bytes: connection.acked_bytes(),
        retransmissions: connection.retransmissions,
        srtt_s: seconds(connection.last.srtt_ns),
        cwnd: connection.last.cwnd,
        records: connection.readings,
        lost_records: connection.lost,
        record: session.record_of(number),
        stops: &connection.stops,
        stops_dropped: connection.stops_dropped,
    }
}

/// Writes the object, its connections in the order in which they were seen.
pub fn write(out: &mut impl Write, session: &Session, counted: &Counted) -> Result<()> {
    let all = session.connections();
    let watched = Watched {
        format: "pspacer-watch-1",
        duration_s: seconds(session.end_ns.saturating_sub(session.start_ns)),
        records: session.readings(),
        lost_records: counted.lost.iter().sum(),
        lost_records_by_cpu: &counted.lost,
        lost_sockets: counted.lost_sockets,
        forgotten_connections: session.forgotten(),
        costs: &counted.costs,
        connections: all.into_iter().map(|one| watching(session, one)).collect(),
    };
    serde_json::to_writer_pretty(&mut *out, &watched)?;
    writeln!(out)?;
    Ok(())
}
