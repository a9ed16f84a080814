// SPDX-License-Identifier: MIT OR Apache-2.0
//! What people read.

use std::io::{self, Write};

use report::Style;
use stall::{Connection, Direction, Place, Stop, StopKind};
use units::terse::{ms, size};

use super::{Found, words};

/// Without `--all`: connections, and stops of each.
const MOST_CONNECTIONS: usize = 10;
const MOST_STOPS: usize = 10;
/// Packet numbers named of a stop.
const MOST_EVIDENCE: usize = 8;
/// Text is no wider than this, however wide the terminal.
const WIDEST: usize = 100;

/// Writes the verdict and the stops of each connection, the worst first.
pub(super) fn write(
    out: &mut impl Write,
    found: &Found,
    all: bool,
    style: Style,
) -> io::Result<()> {
    let writer = &mut Writer { out, style, all };
    let connections = &found.analysis.connections;
    let stopped = |i: &&usize| !connections[**i].stops.is_empty();
    let with_stops = found.shown.iter().filter(stopped).count();
    writeln!(writer.out, "{}", summary(found, with_stops))?;
    // Of few connections, also those that never stopped.
    let few = found.shown.len() <= MOST_CONNECTIONS;
    let wanted: Vec<_> = found
        .shown
        .iter()
        .filter(|i| all || few || stopped(i))
        .take(if all { usize::MAX } else { MOST_CONNECTIONS })
        .collect();
    for &&i in &wanted {
        let connection = &connections[i];
        let tunnel = found.encapsulations.name(connection.encapsulation);
        writer.connection(i + 1, connection, &tunnel)?;
    }
    let more = found.shown.len() - wanted.len();
    if more > 0 {
        let stopped = with_stops.saturating_sub(wanted.len());
        writeln!(
            writer.out,
            "\n{} more connections, {} of them stopped: --all lists them.",
            units::display::count(more as u64),
            units::display::count(stopped as u64)
        )?;
    }
    Ok(())
}

fn summary(found: &Found, with_stops: usize) -> String {
    let connections = &found.analysis.connections;
    let stops: usize = found
        .shown
        .iter()
        .map(|i| connections[*i].stops.len())
        .sum();
    let count = |n: usize, one: &str, more: &str| match n {
        1 => format!("1 {one}"),
        n => format!("{} {more}", units::display::count(n as u64)),
    };
    format!(
        "{}: {} packets, {}; {} stopped, {}",
        found.files.join(", "),
        units::display::count(found.counts.packets),
        count(found.shown.len(), "connection", "connections"),
        units::display::count(with_stops as u64),
        count(stops, "stop", "stops"),
    )
}

struct Writer<'a, W> {
    out: &'a mut W,
    style: Style,
    all: bool,
}

impl<W: Write> Writer<'_, W> {
    fn connection(&mut self, number: usize, c: &Connection, tunnel: &str) -> io::Result<()> {
        let tunnel = match tunnel {
            "" => String::new(),
            name => format!("  ({name})"),
        };
        let head = format!("#{number}  {} → {}{tunnel}", c.client, c.server);
        writeln!(self.out, "\n{}", self.bold(&head))?;
        self.paragraph(4, &c.verdict)?;
        self.paragraph(4, &facts(c))?;
        for note in &c.notes {
            self.paragraph(4, &format!("Note: {note}"))?;
        }
        self.stops(&c.stops)
    }

    /// The stops in order; of many, those that took longest.
    fn stops(&mut self, stops: &[Stop]) -> io::Result<()> {
        let mut wanted: Vec<_> = (0..stops.len()).collect();
        if !self.all && stops.len() > MOST_STOPS {
            wanted.sort_by_key(|i| std::cmp::Reverse(stops[*i].duration_ns));
            wanted.truncate(MOST_STOPS);
            wanted.sort_unstable();
        }
        for &i in &wanted {
            self.stop(&stops[i])?;
        }
        if wanted.len() < stops.len() {
            let more = stops.len() - wanted.len();
            writeln!(self.out, "\n    and {more} shorter stops: --all lists them")?;
        }
        Ok(())
    }

    fn stop(&mut self, s: &Stop) -> io::Result<()> {
        let kind = match s.kind {
            StopKind::Silence => "stopped",
            StopKind::Slow => "slow",
        };
        let way = match s.direction {
            Direction::ToServer => "to the server",
            Direction::ToClient => "to the client",
        };
        let cost = match s.bytes_cost {
            Some(cost) => format!(", cost {}", size(cost)),
            None => String::new(),
        };
        let times = match s.count {
            0 | 1 => String::new(),
            n => format!(", {} times in a row", units::display::count(n)),
        };
        let at = format!("at {:>10}  ", ms(s.start_ns));
        let head = format!("{kind} {way} for {}{cost}{times}", ms(s.duration_ns));
        writeln!(self.out)?;
        if 4 + at.chars().count() + head.chars().count() <= self.width() {
            writeln!(self.out, "    {at}{head}")?;
        } else {
            self.paragraph(4, &format!("{at}{head}"))?;
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
            self.paragraph(6, &format!("packets {}", evidence(&s.evidence)))?;
        }
        Ok(())
    }

    /// What begins and ends bold text.
    fn bold_marks(&self) -> (&'static str, &'static str) {
        match self.style.colour {
            true => ("\x1b[1m", "\x1b[0m"),
            false => ("", ""),
        }
    }

    fn bold(&self, text: &str) -> String {
        let (begin, end) = self.bold_marks();
        format!("{begin}{text}{end}")
    }

    fn width(&self) -> usize {
        usize::from(self.style.width).clamp(40, WIDEST)
    }

    /// Text in lines that fit, from this column on.
    fn paragraph(&mut self, indent: usize, text: &str) -> io::Result<()> {
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

/// When, how much, and where it was captured.
pub fn facts(c: &Connection) -> String {
    let ways = c.flows.iter().zip(["to the server", "to the client"]);
    let data: Vec<_> = ways
        .filter(|(f, _)| f.data_packets > 0)
        .map(|(f, way)| {
            let again = match f.retransmissions.total() {
                0 => String::new(),
                1 => " (1 segment sent again)".to_owned(),
                n => format!(" ({} segments sent again)", units::display::count(n)),
            };
            format!("{} {way}{again}", size(f.bytes))
        })
        .collect();
    let place = match c.vantage.place {
        Place::Unknown => "where it was captured is not known".to_owned(),
        Place::Middle => "captured between them".to_owned(),
        place => format!("captured at the {}", words(&place)),
    };
    let data = match data.as_slice() {
        [] => "no data".to_owned(),
        some => some.join(", "),
    };
    format!(
        "from {} for {}; {data}; {place}",
        ms(c.start_ns),
        ms(c.duration_ns),
    )
}

/// The cause, with what is behind it.
pub fn cause(s: &Stop) -> String {
    match &s.root {
        Some(root) => format!("{}, behind it {}", words(&s.cause), words(root)),
        None => words(&s.cause),
    }
}

/// Whose side, in words.
pub fn side(side: stall::Side) -> &'static str {
    match side {
        stall::Side::Sender => "the sender's side",
        stall::Side::Receiver => "the receiver's side",
        stall::Side::Network => "the network's side",
        stall::Side::Unknown => "whose side is not to be seen",
    }
}

/// Numbers of packets, the last left out of many.
pub fn evidence(packets: &[u64]) -> String {
    let named: Vec<_> = packets
        .iter()
        .take(MOST_EVIDENCE)
        .map(u64::to_string)
        .collect();
    let more = packets.len() - named.len();
    match more {
        0 => named.join(", "),
        n => format!("{} and {n} more", named.join(", ")),
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

    #[test]
    fn packets_of_a_stop() {
        assert_eq!(evidence(&[1, 2]), "1, 2");
        assert_eq!(
            evidence(&(1..=10).collect::<Vec<_>>()),
            "1, 2, 3, 4, 5, 6, 7, 8 and 2 more"
        );
    }
}
