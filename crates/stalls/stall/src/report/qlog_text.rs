// SPDX-License-Identifier: MIT OR Apache-2.0
//! The text that `pspacer stalls` prints of qlogs.

use std::io::{self, Write};

use draw::terminal::Style;
use units::display::count;
use units::terse::{ms, size};

use super::text::Writer;
use crate::qlog::{QlogResults, QuicConnection, Vantage};

/// Without `--all` or `--top`: most connections that are listed.
const MOST_CONNECTIONS: usize = 10;

/// Writes the verdict and the stalls of each connection, the worst first, then the totals by
/// cause. `most` is how many connections are listed.
pub fn write(
    out: &mut impl Write,
    found: &QlogResults,
    all: bool,
    most: Option<usize>,
    style: Style,
) -> io::Result<()> {
    let writer = &mut Writer {
        out,
        style,
        all,
        evidence_of: "events",
    };
    let connections = &found.connections;
    let stalls: usize = connections.iter().map(|c| c.stalls.len()).sum();
    let stalled = connections.iter().filter(|c| !c.stalls.is_empty()).count();
    let number = |n: usize, one: &str, more: &str| match n {
        1 => format!("1 {one}"),
        n => format!("{} {more}", count(n as u64)),
    };
    writeln!(
        writer.out,
        "{}: {} of QUIC; {} stalled, {}",
        found.files.join(", "),
        number(connections.len(), "connection", "connections"),
        count(stalled as u64),
        number(stalls, "stall", "stalls")
    )?;
    let mut order: Vec<_> = connections.iter().enumerate().collect();
    let stalled_ns = |c: &QuicConnection| c.stalls.iter().map(|s| s.duration_ns).sum::<u64>();
    order.sort_by_key(|(_, c)| std::cmp::Reverse(stalled_ns(c)));
    let usual = if all { usize::MAX } else { MOST_CONNECTIONS };
    let most = most.unwrap_or(usual);
    for (i, connection) in order.iter().take(most) {
        self::connection(writer, i + 1, connection)?;
    }
    match order.len().saturating_sub(most) {
        0 => {}
        more => writeln!(
            writer.out,
            "\n{} more connections: --all lists them.",
            count(more as u64)
        )?,
    }
    writer.by_cause(&found.by_cause())
}

fn connection<W: Write>(
    writer: &mut Writer<'_, W>,
    number: usize,
    c: &QuicConnection,
) -> io::Result<()> {
    let by = match c.vantage {
        Vantage::Client => "logged by the client",
        Vantage::Server => "logged by the server",
        Vantage::Network => "logged between them",
        Vantage::Unknown => "logged by one end",
    };
    // The name is the log's, and may hold anything.
    let name: String = c.name.chars().filter(|c| !c.is_control()).collect();
    let head = writer.bold(&format!("#{number}  QUIC {name}"));
    writeln!(writer.out, "\n{}", head.trim_end())?;
    writer.paragraph(4, &c.verdict)?;
    writer.paragraph(
        4,
        &format!(
            "{by}, for {}; {} of streams sent, {} received",
            ms(c.duration_ns),
            size(c.bytes_sent),
            size(c.bytes_received)
        ),
    )?;
    for note in &c.notes {
        writer.paragraph(4, &format!("Note: {note}"))?;
    }
    writer.stalls(&c.stalls)
}
