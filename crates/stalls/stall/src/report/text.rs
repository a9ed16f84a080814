// SPDX-License-Identifier: MIT OR Apache-2.0
//! The text that `pspacer stalls` prints.

use std::io::{self, Write};

use draw::table::Table;
use draw::terminal::{self, Style};
use units::display::{count as number, number as decimal};
use units::terse::{ms, size};

use super::phrases::{cause, evidence, facts, process, side, words};
use super::two_ends;
use crate::captures::CaptureResults;
use crate::two_ends::TwoEnds;
use crate::{CauseTotal, Connection, Direction, HostPairTotal, Stall, StallKind};

/// Without `--all`: most connections, and most stalls of each, that are listed.
const MOST_CONNECTIONS: usize = 10;
const MOST_STALLS: usize = 10;
/// Without `--all` or `--top`: most pairs of hosts.
const MOST_PAIRS: usize = 10;
/// Without `--all`: most directions of which losses and delays are listed.
const MOST_PATHS: usize = 10;
/// Greatest width of the text, columns, however wide the terminal is.
const WIDEST: usize = 100;

/// Writes the verdict and the stalls of each connection, the worst first, then the totals of all
/// connections by cause.
pub fn write(
    out: &mut impl Write,
    found: &CaptureResults,
    all: bool,
    style: Style,
) -> io::Result<()> {
    let evidence_of = "packets";
    let writer = &mut Writer {
        out,
        style,
        all,
        evidence_of,
    };
    let connections = &found.analysis.connections;
    let stalled = |i: &&usize| !connections[**i].stalls.is_empty();
    let with_stalls = found.shown.iter().filter(stalled).count();
    writeln!(writer.out, "{}", summary(found, with_stalls))?;
    // If there are few connections, those that never stalled are listed, too.
    let few = found.shown.len() <= MOST_CONNECTIONS;
    let most = match found.most {
        None if !all => MOST_CONNECTIONS,
        _ => usize::MAX,
    };
    let wanted: Vec<_> = found
        .listed()
        .iter()
        .filter(|i| all || few || stalled(i))
        .take(most)
        .collect();
    for &&i in &wanted {
        let connection = &connections[i];
        let tunnel = found.encapsulations.name(connection.encapsulation);
        let processes = found.processes.of(connection.client, connection.server);
        let processes: Vec<_> = processes.iter().map(process).collect();
        writer.connection(i + 1, connection, &tunnel, &processes)?;
    }
    let more = found.shown.len() - wanted.len();
    if more > 0 {
        let stalled = with_stalls.saturating_sub(wanted.len());
        writeln!(
            writer.out,
            "\n{} more connections, {} of them stalled: --all lists them.",
            number(more as u64),
            number(stalled as u64)
        )?;
    }
    // The totals include connections and stalls that are not listed.
    if let Some(ends) = &found.two_ends {
        writer.two_ends(ends)?;
    }
    writer.by_cause(&found.by_cause())?;
    writer.by_host_pair(&found.by_host_pair(), found.most.unwrap_or(MOST_PAIRS))
}

fn summary(found: &CaptureResults, with_stalls: usize) -> String {
    let connections = &found.analysis.connections;
    let stalls: usize = found
        .shown
        .iter()
        .map(|i| connections[*i].stalls.len())
        .sum();
    let count = |n: usize, one: &str, more: &str| match n {
        1 => format!("1 {one}"),
        n => format!("{} {more}", number(n as u64)),
    };
    format!(
        "{}: {} packets, {}; {} stalled, {}",
        found.files.join(", "),
        number(found.counts.packets),
        count(found.shown.len(), "connection", "connections"),
        number(with_stalls as u64),
        count(stalls, "stall", "stalls"),
    )
}

fn by_cause(totals: &[CauseTotal]) -> Table {
    let mut table = Table::default();
    table.text("cause");
    table.text("side");
    table.number("stalls", "");
    table.number("connections", "");
    table.number("time lost", "s");
    for total in totals {
        table.rows.push(vec![
            words(&total.cause).into(),
            words(&total.side).into(),
            number(total.stalls).into(),
            number(total.connections).into(),
            decimal(total.time_lost_ns as f64 / 1e9, 3).into(),
        ]);
    }
    table
}

fn by_host_pair(totals: &[HostPairTotal]) -> Table {
    let mut table = Table::default();
    table.text("client");
    table.text("server");
    table.number("stalls", "");
    table.number("connections", "");
    table.number("time lost", "s");
    table.text("most by");
    for total in totals {
        let most_by = total.by_cause.first();
        table.rows.push(vec![
            total.client.to_string().into(),
            total.server.to_string().into(),
            number(total.stalls).into(),
            number(total.connections).into(),
            decimal(total.time_lost_ns as f64 / 1e9, 3).into(),
            most_by.map_or(String::new(), |c| words(&c.cause)).into(),
        ]);
    }
    table
}

/// Writes text in lines that fit.
pub(super) struct Writer<'a, W> {
    pub(super) out: &'a mut W,
    pub(super) style: Style,
    pub(super) all: bool,
    /// What the numbers that show a stall are of.
    pub(super) evidence_of: &'static str,
}

impl<W: Write> Writer<'_, W> {
    fn connection(
        &mut self,
        number: usize,
        c: &Connection,
        tunnel: &str,
        processes: &[String],
    ) -> io::Result<()> {
        let tunnel = match tunnel {
            "" => String::new(),
            name => format!("  ({name})"),
        };
        let head = format!("#{number}  {} → {}{tunnel}", c.client, c.server);
        writeln!(self.out, "\n{}", self.bold(&head))?;
        self.paragraph(4, &c.verdict)?;
        self.paragraph(4, &facts(c))?;
        for process in processes {
            self.paragraph(4, process)?;
        }
        for note in &c.notes {
            self.paragraph(4, &format!("Note: {note}"))?;
        }
        self.stalls(&c.stalls)
    }

    /// Writes the stalls in order; of many, only the longest ones.
    pub(super) fn stalls(&mut self, stalls: &[Stall]) -> io::Result<()> {
        let mut wanted: Vec<_> = (0..stalls.len()).collect();
        if !self.all && stalls.len() > MOST_STALLS {
            wanted.sort_by_key(|i| std::cmp::Reverse(stalls[*i].duration_ns));
            wanted.truncate(MOST_STALLS);
            wanted.sort_unstable();
        }
        for &i in &wanted {
            self.stall(&stalls[i])?;
        }
        if wanted.len() < stalls.len() {
            let more = stalls.len() - wanted.len();
            writeln!(
                self.out,
                "\n    and {more} shorter stalls: --all lists them"
            )?;
        }
        Ok(())
    }

    fn stall(&mut self, s: &Stall) -> io::Result<()> {
        let kind = match s.kind {
            StallKind::Silence => "stopped",
            StallKind::Slow => "slow",
            StallKind::Wait => "waited",
        };
        let direction = match s.direction {
            Direction::ToServer => "to the server",
            Direction::ToClient => "to the client",
        };
        let cost = match s.bytes_cost {
            Some(cost) => format!(", cost {}", size(cost)),
            None => String::new(),
        };
        let times = match s.count {
            0 | 1 => String::new(),
            n => format!(", {} times in a row", number(n)),
        };
        let at = format!("at {:>10}  ", ms(s.start_ns));
        let number = s.number.map_or_else(String::new, |n| n.to_string());
        let head = format!("{kind} {direction} for {}{cost}{times}", ms(s.duration_ns));
        writeln!(self.out)?;
        if 4 + at.chars().count() + head.chars().count() <= self.width() {
            writeln!(self.out, "{number:>3} {at}{head}")?;
        } else {
            self.paragraph(4, &format!("{number} {at}{head}"))?;
        }
        let cause = format!(
            "{}: {}; {} confidence",
            cause(s),
            side(s.side),
            words(&s.confidence)
        );
        let (begin, end) = self.bold_marks();
        write!(self.out, "{begin}")?;
        self.paragraph(6, &cause)?;
        write!(self.out, "{end}")?;
        self.paragraph(6, &s.explanation)?;
        if !s.advice.is_empty() {
            self.paragraph(6, &format!("→ {}", s.advice))?;
        }
        if !s.evidence.is_empty() {
            self.paragraph(
                6,
                &format!("{} {}", self.evidence_of, evidence(&s.evidence)),
            )?;
        }
        Ok(())
    }

    pub(super) fn by_cause(&mut self, totals: &[CauseTotal]) -> io::Result<()> {
        if totals.is_empty() {
            return Ok(());
        }
        let head = self.bold("By cause");
        let table = terminal::table(&by_cause(totals), self.style);
        write!(self.out, "\n{head}\n{table}")
    }

    /// Writes what a capture from the other end adds.
    fn two_ends(&mut self, ends: &TwoEnds) -> io::Result<()> {
        let head = self.bold("Both captures");
        writeln!(self.out, "\n{head}")?;
        self.paragraph(0, &two_ends::clocks(&ends.clocks))?;
        let most = if self.all { usize::MAX } else { MOST_PATHS };
        let table = terminal::table(&two_ends::paths(&ends.paths, most), self.style);
        write!(self.out, "{table}")?;
        match ends.paths.len().saturating_sub(most) {
            0 => Ok(()),
            more => writeln!(
                self.out,
                "{} more directions: --all lists them.",
                number(more as u64)
            ),
        }
    }

    /// Writes the sum by pairs of hosts, if there are several.
    fn by_host_pair(&mut self, totals: &[HostPairTotal], most: usize) -> io::Result<()> {
        if totals.len() < 2 {
            return Ok(());
        }
        let most = if self.all { totals.len() } else { most };
        let listed = totals.get(..most).unwrap_or(totals);
        let head = self.bold("By host pair");
        let table = terminal::table(&by_host_pair(listed), self.style);
        write!(self.out, "\n{head}\n{table}")?;
        match totals.len() - listed.len() {
            0 => Ok(()),
            more => writeln!(
                self.out,
                "{} more pairs: --all lists them.",
                number(more as u64)
            ),
        }
    }

    /// Returns the codes that begin and end bold text.
    fn bold_marks(&self) -> (&'static str, &'static str) {
        if self.style.colour {
            ("\x1b[1m", "\x1b[0m")
        } else {
            ("", "")
        }
    }

    pub(super) fn bold(&self, text: &str) -> String {
        let (begin, end) = self.bold_marks();
        format!("{begin}{text}{end}")
    }

    fn width(&self) -> usize {
        usize::from(self.style.width).clamp(40, WIDEST)
    }

    /// Writes the text in lines that fit, from column `indent` on.
    pub(super) fn paragraph(&mut self, indent: usize, text: &str) -> io::Result<()> {
        let width = self.width();
        let mut used = 0;
        for word in text.split_whitespace() {
            let length = word.chars().count();
            if used > 0 && used + 1 + length > width {
                writeln!(self.out)?;
                used = 0;
            }
            if used == 0 {
                write!(self.out, "{:indent$}{word}", "")?;
                used = indent + length;
            } else {
                write!(self.out, " {word}")?;
                used += 1 + length;
            }
        }
        if used > 0 {
            writeln!(self.out)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_folded_between_words() {
        let mut out = Vec::new();
        let style = Style {
            colour: false,
            width: 40,
        };
        let mut writer = Writer {
            out: &mut out,
            style,
            all: false,
            evidence_of: "packets",
        };
        writer
            .paragraph(4, "one two three four five six seven eight nine")
            .unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(
            text,
            "    one two three four five six seven\n    eight nine\n"
        );
    }
}
