// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads `[[node]]`: how a host on segments sends. A host without such a table sends by
//! periods that begin where the seed chooses, and late packets first.

use super::model::{Isochronous, Node};
use crate::expr::Env;
use crate::model::Cell;
use crate::reader::Section;
use crate::tables::{Reading, host, within};
use toml_reader::Error;

const NODE: &[&str] = &[
    "host",
    "itm",
    "late_first",
    "phase",
    "ppm",
    "packet_cost",
    "nrt",
    "queue",
    "when",
    "each",
];

/// Reads every node of a cell whose segments and streams are known.
pub(super) fn read(
    reading: &Reading<'_>,
    cell: &Cell,
    all: &mut Isochronous,
    env: &Env,
) -> Result<(), Error> {
    let usual = Node {
        itm: true,
        late_first: true,
        phase_ns: None,
        ppm: 0,
        packet_cost_ns: 0,
        nrt_bytes: None,
        queue_frames: 1_000,
    };
    all.nodes = vec![usual.clone(); cell.hosts.len()];
    let mut seen = vec![false; cell.hosts.len()];
    reading.each_repetition("node", "[[node]]", NODE, env, |section| {
        let host = host(section, "host", cell)?;
        if std::mem::replace(&mut seen[host], true) {
            let expected = "a host without a node";
            return Err(section.require("host", expected)?.fault(expected));
        }
        all.nodes[host] = node(section, all, usual.clone())?;
        check_budget(section, all, host)
    })
}

fn node(section: &Section<'_, '_>, all: &Isochronous, usual: Node) -> Result<Node, Error> {
    let phase_ns = match section.text("phase")?.as_deref() {
        None | Some("seed") => None,
        Some(_) => {
            let phase_ns = section.time("phase")?.unwrap_or(0);
            within(section, "phase", phase_ns, 0, all.period_ns - 1)?;
            Some(phase_ns)
        }
    };
    let cost_ns = section.time("packet_cost")?.unwrap_or(0);
    within(section, "packet_cost", cost_ns, 0, all.slot_ns)?;
    let queue = section.number("queue", 1..1_000_001)?.unwrap_or(1_000);
    Ok(Node {
        itm: section.boolean("itm")?.unwrap_or(usual.itm),
        late_first: section.boolean("late_first")?.unwrap_or(usual.late_first),
        phase_ns,
        ppm: section.number("ppm", 0..200_001)?.unwrap_or(0),
        packet_cost_ns: cost_ns,
        nrt_bytes: section.size("nrt")?,
        queue_frames: usize::try_from(queue).unwrap_or(usize::MAX),
    })
}

/// Rejects an NRT budget that exceeds what a segment of the host has.
fn check_budget(section: &Section<'_, '_>, all: &Isochronous, host: usize) -> Result<(), Error> {
    let Some(own) = all.nodes[host].nrt_bytes else {
        return Ok(());
    };
    for (index, segment) in all.segments.iter().enumerate() {
        if !segment.hosts.contains(&host) {
            continue;
        }
        let others = segment.hosts.iter().filter(|other| **other != host);
        let others = others.filter_map(|other| all.nodes[*other].nrt_bytes);
        let others: u64 = match segment.backoff {
            Some(_) => others.sum(),
            None => 0,
        };
        let budget = all.budget_bytes(index);
        let taken = all.reserved_bytes(index, host) + others;
        if taken + own > budget {
            let expected = format!(
                "at most {} bytes a period: of the {budget} that segment `{}` may carry {taken} are \
                 taken",
                budget.saturating_sub(taken),
                segment.name
            );
            return Err(section.require("nrt", &expected)?.fault(&expected));
        }
    }
    Ok(())
}
