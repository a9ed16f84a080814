// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes plain lines: stalls where there is no terminal, and the summary at the end.

use std::io::{self, Write};

use draw::Style;
use stall::report::phrases::{cause, side, words};
use stall::{Stall, StallKind};

use crate::counted::Counted;
use crate::session::{Report, Session, Sink, ends, verdict};

/// Most connections named in the summary: those that stalled longest come first.
const MOST_CONNECTIONS: usize = 20;

/// Writes lines in one style.
pub struct Lines {
    style: Style,
}

/// Describes a stall in one line.
pub fn stall_line(stall: &Stall) -> String {
    let kind = match stall.kind {
        StallKind::Silence => "stopped",
        StallKind::Slow => "slow",
        StallKind::Wait => "waited",
    };
    let cost = match stall.bytes_cost {
        Some(cost) => format!(", cost {}", units::terse::size(cost)),
        None => String::new(),
    };
    format!(
        "{kind} at {} for {}{cost}: {}; {}; {} confidence",
        units::terse::ms(stall.start_ns),
        units::terse::ms(stall.duration_ns),
        cause(stall),
        side(stall.side),
        words(&stall.confidence)
    )
}

/// Says how many records were lost, and which CPUs lost them.
pub fn lost_line(lost: &[u64]) -> String {
    let all: u64 = lost.iter().sum();
    if all == 0 {
        return "no record lost".to_owned();
    }
    let by_cpu = lost.iter().enumerate().filter(|(_, lost)| **lost > 0);
    let by_cpu: Vec<_> = by_cpu
        .map(|(cpu, lost)| format!("CPU {cpu}: {}", units::display::count(*lost)))
        .collect();
    format!(
        "{} records lost ({})",
        units::display::count(all),
        by_cpu.join(", ")
    )
}

impl Lines {
    /// Makes a writer of this style; writes nothing yet.
    pub const fn new(style: Style) -> Self {
        Self { style }
    }

    fn bold(&self, text: &str) -> String {
        if self.style.colour {
            format!("\x1b[1m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }

    /// Writes stalls as they become known.
    pub fn stalls<S: Sink>(
        &self,
        out: &mut impl Write,
        session: &Session<S>,
        reports: &[Report],
    ) -> io::Result<()> {
        for report in reports {
            let ends = ends(report.cookie, session.connection(report.cookie));
            let head = format!("#{}  {ends}  {}", report.number, stall_line(&report.stall));
            writeln!(out, "{}", self.bold(&head))?;
            writeln!(out, "    {}", report.owner.words())?;
            writeln!(out, "    {}", report.stall.explanation)?;
            if !report.stall.advice.is_empty() {
                writeln!(out, "    → {}", report.stall.advice)?;
            }
            if let Some(file) = &report.packets {
                writeln!(out, "    packets: {file}")?;
            }
        }
        Ok(())
    }

    /// Writes the summary of the whole call; `unrecorded` connections had no room in `--out`.
    pub fn summary<S: Sink>(
        &self,
        out: &mut impl Write,
        session: &Session<S>,
        counted: &Counted,
        unrecorded: u64,
    ) -> io::Result<()> {
        let mut all = session.connections();
        let took = units::terse::ms(session.end_ns.saturating_sub(session.start_ns));
        writeln!(
            out,
            "{} connections in {took}, {} records; {}",
            units::display::count(session.opened()),
            units::display::count(session.readings()),
            lost_line(&counted.lost)
        )?;
        notes(out, counted, unrecorded)?;
        all.sort_by_key(|(_, c)| (std::cmp::Reverse(c.stalled_ns()), c.number));
        for (cookie, connection) in all.iter().take(MOST_CONNECTIONS) {
            let number = connection.number;
            let head = format!("#{number}  {}", ends(*cookie, Some(connection)));
            writeln!(out, "{}", self.bold(&head))?;
            writeln!(out, "    {}", verdict(connection))?;
        }
        match session.opened().saturating_sub(MOST_CONNECTIONS as u64) {
            0 => Ok(()),
            more => writeln!(out, "and {more} more connections: --json has them all"),
        }
    }
}

/// Writes what was missed, and what the BPF program cost.
fn notes(out: &mut impl Write, counted: &Counted, unrecorded: u64) -> io::Result<()> {
    if counted.lost_sockets > 0 {
        writeln!(
            out,
            "{} times a socket could not be followed: the kernel had no memory for it",
            units::display::count(counted.lost_sockets)
        )?;
    }
    if unrecorded > 0 {
        writeln!(
            out,
            "--out had no room for {} connections",
            units::display::count(unrecorded)
        )?;
    }
    if let Some(packets) = &counted.packets {
        writeln!(
            out,
            "packets of {} stalls saved, of {} not; {} packets dropped for lack of room",
            units::display::count(packets.files),
            units::display::count(packets.left_out),
            units::display::count(packets.dropped_packets)
        )?;
    }
    for cost in counted.costs.iter().filter(|cost| cost.runs > 0) {
        writeln!(
            out,
            "{}: {} runs, {} ns each",
            cost.tracepoint,
            units::display::count(cost.runs),
            cost.total_ns / cost.runs
        )?;
    }
    Ok(())
}
