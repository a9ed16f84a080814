// SPDX-License-Identifier: MIT OR Apache-2.0
//! The full-screen display: the connections, their state, and the last stalls.

use std::collections::VecDeque;
use std::io::Result;
use std::time::Duration;

use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Text};
use ratatui::widgets::{Paragraph, Row, Table, Wrap};
use ratatui::{DefaultTerminal, Frame};
use stall::report::phrases::words;

use crate::lines::{lost_line, stall_line};
use crate::session::{Report, Session, Sink, ends};
use crate::{Connection, Status};

/// Number of the last stalls that are shown.
const STALLS_SHOWN: usize = 6;

/// The display, which uses the whole terminal until it is closed.
pub struct Screen {
    terminal: DefaultTerminal,
    stalls: VecDeque<String>,
}

impl Screen {
    /// Takes over the terminal.
    ///
    /// # Errors
    /// When the output is not a terminal, or the terminal cannot be set up.
    pub fn open() -> Result<Self> {
        Ok(Self {
            terminal: ratatui::try_init()?,
            stalls: VecDeque::new(),
        })
    }

    /// Restores the terminal.
    pub fn close(&mut self) -> Result<()> {
        ratatui::try_restore()
    }

    /// Displays the current state.
    pub fn draw<S: Sink>(
        &mut self,
        session: &Session<S>,
        reports: &[Report],
        lost: &[u64],
        now_ns: u64,
    ) -> Result<()> {
        for report in reports {
            let line = format!(
                "#{}  {}  ({})",
                report.number,
                stall_line(&report.stall),
                report.owner.words()
            );
            self.stalls.push_front(line);
            self.stalls.truncate(STALLS_SHOWN);
        }
        let stalls = &self.stalls;
        self.terminal
            .draw(|frame| draw(frame, session, stalls, lost, now_ns))?;
        Ok(())
    }
}

/// Returns whether q, Ctrl-C or Escape was pressed.
pub fn asks_to_stop() -> Result<bool> {
    while event::poll(Duration::ZERO)? {
        let Event::Key(key) = event::read()? else {
            continue;
        };
        let interrupt =
            key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c');
        let quit = matches!(key.code, KeyCode::Char('q') | KeyCode::Esc);
        if key.kind == KeyEventKind::Press && (quit || interrupt) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn draw<S: Sink>(
    frame: &mut Frame<'_>,
    session: &Session<S>,
    stalls: &VecDeque<String>,
    lost: &[u64],
    now_ns: u64,
) {
    let below = u16::try_from(STALLS_SHOWN * 2 + 1).unwrap_or_default();
    let areas = Layout::vertical([
        Constraint::Length(1),
        Constraint::Min(3),
        Constraint::Max(below),
    ]);
    let [head, table, foot] = areas.areas(frame.area());
    let mut all = session.connections();
    all.sort_by_key(|(_, c)| (order(c, now_ns), c.number));
    let process = match session.ended_process {
        Some(pid) => format!("process {pid} has ended; "),
        None => String::new(),
    };
    let text = format!(
        "{} connections, {} records; {}; {process}q quits",
        units::display::count(session.opened()),
        units::display::count(session.readings()),
        lost_line(lost)
    );
    frame.render_widget(Line::from(text), head);
    let rows = all
        .iter()
        .map(|(cookie, connection)| row(*cookie, connection, now_ns));
    frame.render_widget(
        Table::new(rows, widths())
            .header(header())
            .column_spacing(1),
        table,
    );
    let stalls: Vec<Line<'_>> = stalls
        .iter()
        .map(|stall| Line::from(stall.as_str()))
        .collect();
    frame.render_widget(
        Paragraph::new(Text::from(stalls)).wrap(Wrap { trim: true }),
        foot,
    );
}

const COLUMNS: [(&str, Constraint); 9] = [
    ("#", Constraint::Length(4)),
    ("connection", Constraint::Min(20)),
    ("rate", Constraint::Length(12)),
    ("cwnd", Constraint::Length(6)),
    ("flight", Constraint::Length(6)),
    ("srtt", Constraint::Length(9)),
    ("resent", Constraint::Length(6)),
    ("stalls", Constraint::Length(6)),
    ("state", Constraint::Length(32)),
];

fn widths() -> impl Iterator<Item = Constraint> {
    COLUMNS.iter().map(|(_, width)| *width)
}

fn header() -> Row<'static> {
    let bold = Style::new().add_modifier(Modifier::BOLD);
    Row::new(COLUMNS.map(|(name, _)| name)).style(bold)
}

/// Returns the sort key of a connection: stalled connections come first, then those that connect,
/// then the others; among equals, the fastest first.
fn order(connection: &Connection, now_ns: u64) -> (u8, std::cmp::Reverse<u64>) {
    let rank = match connection.status(now_ns) {
        Status::Stalled { .. } => 0,
        Status::Connecting => 1,
        Status::Repairing(_) | Status::Flowing => 2,
        Status::Idle => 3,
        Status::Ended => 4,
    };
    (rank, std::cmp::Reverse(connection.rate_bps(now_ns)))
}

fn row(cookie: u64, connection: &Connection, now_ns: u64) -> Row<'static> {
    let last = &connection.last;
    let status = connection.status(now_ns);
    let rate = match status {
        Status::Ended => String::new(),
        _ => units::terse::rate(connection.rate_bps(now_ns)),
    };
    let cells = [
        connection.number.to_string(),
        ends(cookie, Some(connection)),
        rate,
        last.cwnd.to_string(),
        last.in_flight().to_string(),
        units::terse::ms(last.srtt_ns),
        connection.retransmissions.to_string(),
        connection.stalls.len().to_string(),
        state(status),
    ];
    let style = match status {
        Status::Stalled { .. } | Status::Connecting => Style::new().add_modifier(Modifier::BOLD),
        Status::Ended | Status::Idle => Style::new().add_modifier(Modifier::DIM),
        Status::Flowing | Status::Repairing(_) => Style::new(),
    };
    Row::new(cells).style(style)
}

fn state(status: Status) -> String {
    match status {
        Status::Connecting => "connecting".to_owned(),
        Status::Flowing => "flowing".to_owned(),
        Status::Idle => "idle".to_owned(),
        Status::Repairing(state) => format!("repairing ({})", state.name()),
        Status::Stalled { for_ns, cause } => {
            format!("stalled {}: {}", units::terse::ms(for_ns), words(&cause))
        }
        Status::Ended => "ended".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use crate::{CaState, Ends, Limits, Moment, Reading, Record, TcpState};
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;

    /// A sink that keeps nothing.
    struct Nothing;

    impl Sink for Nothing {
        type Error = std::convert::Infallible;

        fn reading(&mut self, _: &Connection, _: &Reading, _: u64) {}

        fn ended(
            &mut self,
            _: u64,
            _: u64,
            _: &Connection,
        ) -> std::result::Result<(), Self::Error> {
            Ok(())
        }

        fn finish(&mut self) -> std::result::Result<(), Self::Error> {
            Ok(())
        }
    }

    fn reading(at_ms: u32, ack: u32) -> Reading {
        Reading {
            time_ns: u64::from(at_ms) * 1_000_000,
            cookie: 7,
            lost: 0,
            moment: Moment::Ack,
            peer_data_ns: 0,
            una: ack - 1000,
            nxt: ack + 9000,
            high_seq: 0,
            ack,
            segment: (0, 0),
            window_bytes: 65535,
            cwnd: 10,
            ssthresh: 20,
            packets_out: 10,
            sacked_out: 0,
            lost_out: 1,
            retrans_out: 0,
            reordering: 3,
            sack: (0, 0),
            srtt_ns: 20_500_000,
            rto_ns: 220_000_000,
            mss_bytes: 1000,
            delivered: ack / 1000,
            dsacks: 0,
            limits: Limits {
                busy_ns: u64::from(at_ms) * 1_000_000,
                window_ns: 0,
                buffer_ns: 0,
            },
            ca_state: CaState::Recovery,
            tcp_state: TcpState::Connected,
            backoff: 0,
            window_probes: 0,
            tail_probe: false,
        }
    }

    /// Returns the text of a terminal of 120 columns, without trailing spaces.
    fn shown(session: &Session<Nothing>, stalls: &VecDeque<String>, now_ns: u64) -> String {
        let mut terminal = Terminal::new(TestBackend::new(120, 8)).unwrap();
        terminal
            .draw(|frame| draw(frame, session, stalls, &[0, 3], now_ns))
            .unwrap();
        let buffer = terminal.backend().buffer();
        let line = |cells: &[ratatui::buffer::Cell]| {
            let text: String = cells.iter().map(ratatui::buffer::Cell::symbol).collect();
            text.trim_end().to_owned()
        };
        let lines: Vec<_> = buffer.content().chunks(120).map(line).collect();
        lines.join("\n").trim_end().to_owned()
    }

    #[test]
    fn a_connection_that_repairs_and_then_stands() {
        let mut session = Session::new(0, Nothing);
        let take = |session: &mut Session<Nothing>, record| session.take(&record).unwrap();
        let ends = Ends {
            time_ns: 0,
            cookie: 7,
            local: "10.1.0.1:40000".parse().unwrap(),
            remote: "10.1.0.2:443".parse().unwrap(),
            socket: crate::SocketIds::default(),
        };
        take(&mut session, Record::Connection(ends));
        for n in 1..=100 {
            take(&mut session, Record::Reading(reading(n * 10, n * 1000)));
        }
        let stalls = VecDeque::from(["#1  stalled".to_owned()]);
        let now = shown(&session, &stalls, 1_001_000_000);
        let lines: Vec<Vec<&str>> = now
            .lines()
            .map(|line| line.split_whitespace().collect())
            .filter(|words: &Vec<&str>| !words.is_empty())
            .collect();
        let head = "1 connections, 100 records; 3 records lost (CPU 1: 3); q quits";
        assert_eq!(lines[0].join(" "), head);
        assert_eq!(lines[1], COLUMNS.map(|(name, _)| name));
        let row = "1 10.1.0.1:40000 → 10.1.0.2:443 799 kbit/s 10 9 20 ms 0 0 repairing (recovery)";
        assert_eq!(lines[2].join(" "), row);
        assert_eq!(lines[3].join(" "), "#1 stalled");
        let later = shown(&session, &stalls, 2_000_000_000);
        assert!(later.contains("stalled 1000 ms: unknown"), "{later}");
    }
}
