// SPDX-License-Identifier: MIT OR Apache-2.0
//! Judges what `pspacer stalls` finds in a scenario's captures: it is compared with the stalls
//! whose cause the scenario makes. The analysis knows nothing of the scenario.

use std::fs::File;
use std::path::Path;

use anyhow::{Context, Result, bail};
use capture::segments::{Segments, Source};
use indexmap::IndexMap;
use scenario::result::{SeenStop, StopResult};
use scenario::{Cell, Flow, KnownStop, Scenario, StopSide};
use stall::{Analyser, Analysis, Cause, Connection, Direction, Options, Stall};

use crate::ground_truth::matrix::NONE;

/// Refuses unknown causes before anything is run.
///
/// # Errors
/// Names the first unknown cause, its place, and the known causes.
pub fn check(scenario: &Scenario) -> Result<()> {
    let is_known = |name: &str| name == NONE || Cause::ALL.iter().any(|c| text(c) == name);
    for stop in scenario.cells.iter().flat_map(|cell| &cell.stops) {
        if !is_known(&stop.cause) {
            let names: Vec<_> = Cause::ALL.iter().map(text).collect();
            bail!(
                "{}: `cause` is {:?}, expected \"{NONE}\" or one of {}",
                stop.place,
                stop.cause,
                names.join(", ")
            );
        }
    }
    Ok(())
}

/// Returns what each capture in the cell's folder shows of each known stall. `zero_ns` is t = 0 on
/// the captures' clock.
pub fn judge(cell: &Cell, dir: &Path, zero_ns: u64) -> Result<Vec<StopResult>> {
    let mut stops: Vec<_> = cell.stops.iter().map(|stop| known(cell, stop)).collect();
    if stops.is_empty() {
        return Ok(stops);
    }
    for capture in &cell.captures {
        let path = dir.join(format!("{}.pcapng", capture.name));
        let analysis = read(&path).with_context(|| format!("cannot judge {}", path.display()))?;
        for (known, result) in cell.stops.iter().zip(&mut stops) {
            let seen = seen(cell, known, &analysis, zero_ns);
            result.seen.insert(capture.name.clone(), seen);
        }
    }
    Ok(stops)
}

/// Analyses one capture.
fn read(path: &Path) -> Result<Analysis> {
    let open = || Ok(Box::new(File::open(path)?) as Box<dyn std::io::Read>);
    let source = Source::new(path.display().to_string(), open);
    let opened = Segments::open(vec![source]);
    let mut segments = opened.map_err(|e| anyhow::Error::from(e.source).context(e.name))?;
    let mut analyser = Analyser::new(Options::default());
    while let Some(segment) = segments.next() {
        analyser.segment(&segment);
    }
    Ok(analyser.finish())
}

fn known(cell: &Cell, stop: &KnownStop) -> StopResult {
    let side = match stop.side {
        None => NONE,
        Some(StopSide::Sender) => "sender",
        Some(StopSide::Receiver) => "receiver",
        Some(StopSide::Network) => "network",
    };
    StopResult {
        flow: cell.flows[stop.flow].name.clone(),
        cause: stop.cause.clone(),
        side: side.to_owned(),
        from_s: seconds(stop.from_ns),
        to_s: seconds(stop.to_ns),
        seen: IndexMap::new(),
    }
}

/// Returns the stall of the flow whose time coincides best with the known stall: the common time
/// divided by the time that the two span is largest.
fn seen(cell: &Cell, known: &KnownStop, analysis: &Analysis, zero_ns: u64) -> Option<SeenStop> {
    let flow = &cell.flows[known.flow];
    let connection = analysis.connections.iter().find(|c| is_of(c, flow))?;
    let begin_ns = |stall: &Stall| (analysis.start_ns + stall.start_ns).saturating_sub(zero_ns);
    let share = |stall: &Stall| {
        let (from_ns, to_ns) = (begin_ns(stall), begin_ns(stall) + stall.duration_ns);
        let common_ns = to_ns
            .min(known.to_ns)
            .saturating_sub(from_ns.max(known.from_ns));
        let whole_ns = to_ns.max(known.to_ns) - from_ns.min(known.from_ns);
        common_ns as f64 / whole_ns.max(1) as f64
    };
    let stalls = connection.stalls.iter();
    let candidates = stalls.filter(|s| s.direction == Direction::ToServer && share(s) > 0.0);
    // Of equal candidates, the first one is taken.
    let best = candidates
        .rev()
        .max_by(|a, b| share(a).total_cmp(&share(b)))?;
    Some(SeenStop {
        cause: text(&best.cause),
        root: best.root.as_ref().map(text),
        side: text(&best.side),
        confidence: text(&best.confidence),
        start_s: seconds(begin_ns(best)),
        duration_s: seconds(best.duration_ns),
    })
}

fn is_of(connection: &Connection, flow: &Flow) -> bool {
    let (client, server) = (&connection.client, &connection.server);
    (client.address, client.port) == (flow.source.into(), flow.source_port)
        && (server.address, server.port) == (flow.destination.into(), flow.port)
}

/// Returns the value's name as in JSON.
fn text<T: serde::Serialize>(value: &T) -> String {
    let name = serde_json::to_value(value).unwrap_or_default();
    name.as_str().unwrap_or_default().to_owned()
}

/// Returns a time in seconds, rounded down to a microsecond.
fn seconds(ns: u64) -> f64 {
    (ns / 1_000) as f64 / 1e6
}
