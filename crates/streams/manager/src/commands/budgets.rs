// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a topology leaves to streams and to best effort, in words.

use std::fmt::Write;
use std::path::Path;

use admission::{Medium, TopologyFile, nrt_shares};
use anyhow::{Context, Result};

use super::outcome::time;

/// Reads a topology; returns it with its text. Errors name the file.
pub fn read_topology(path: &Path) -> Result<(String, TopologyFile)> {
    let named = || path.display().to_string();
    let text = psp_files::read::text(path).with_context(named)?;
    let file = admission::read(&text).with_context(named)?;
    Ok((text, file))
}

/// Says what streams and best effort may take of each segment, and what it adds to a bound.
pub fn budgets(file: &TopologyFile) -> String {
    let topology = &file.topology;
    let empty = admission::Ledger::default();
    let mut out = String::new();
    for link in topology.links() {
        let spec = &topology.segment(link.segment).spec;
        // Writing to a String cannot fail.
        let _ = write!(
            out,
            "{}: {} bytes for streams in each period of {}; nrt costs them {} bytes",
            link.name,
            link.budget_bytes,
            time(spec.period_ns),
            spec.nrt_cost_bytes()
        );
        if let Some(manager) = &spec.manager {
            let _ = write!(out, "; manager {manager}");
        }
        out.push('\n');
    }
    for (n, segment) in topology.segments().iter().enumerate() {
        let shares = nrt_shares(topology, &empty, admission::SegmentId(n));
        let least = shares.iter().map(|share| share.bytes).min().unwrap_or(0);
        let waits_in_switch = segment.spec.medium == Medium::Switched && segment.members.len() > 2;
        let _ = writeln!(
            out,
            "{}: {least} bytes of best effort for each of {} nodes without streams; a node that \
             sends into it adds {} to a bound{}",
            segment.spec.name,
            segment.members.len(),
            time(segment.spec.hop_ns()),
            if waits_in_switch {
                ", and what waits in the switch is not counted"
            } else {
                ""
            }
        );
    }
    out
}
