// SPDX-License-Identifier: MIT OR Apache-2.0
//! The page that `--report` writes: describes the connections, and draws the events of one of them.

use std::path::Path;

use draw::Figure;
use units::display::count;

use super::document::{StallConnection, StallRow, stalls_html};
use super::explain;
use super::phrases::{self, words};
use super::stream::{Sample, Shade, Stream};
use super::time_lost::{SIDES, TimeLost, time_lost};
use super::two_ends;
use crate::captures::CaptureResults;
use crate::{
    CauseTotal, Connection, Direction, History, HostPairTotal, Side, Stall, StallKind, What,
};

/// Intervals of the throughput curve, if no length is chosen.
const INTERVALS: u64 = 200;
/// Most intervals of the throughput curve, however short an interval is chosen.
const MOST_INTERVALS: u64 = 20_000;
/// Most connections in the page.
const MOST_CONNECTIONS: usize = 200;
/// Most files that the title names.
const MOST_FILES: usize = 3;
/// Most rows of a picture of sums.
const MOST_ROWS: usize = 20;

/// Returns the text with a capital letter and a full stop.
fn sentence(text: &str) -> String {
    let mut rest = text.trim_end_matches('.').chars();
    let first = rest.next().map(|c| c.to_uppercase().to_string());
    first.unwrap_or_default() + rest.as_str() + "."
}

fn in_seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// Returns the page, with the worst connection first.
pub fn html(found: &CaptureResults, interval_ns: Option<u64>) -> String {
    let connections: Vec<_> = found
        .listed()
        .iter()
        .take(MOST_CONNECTIONS)
        .map(|i| connection(found, *i, interval_ns))
        .collect();
    let all = &found.analysis.connections;
    let stalled = found.shown.iter().filter(|i| !all[**i].stalls.is_empty());
    let facts = [
        ("Packets", count(found.counts.packets)),
        ("Connections", count(found.shown.len() as u64)),
        ("Stalled", count(stalled.count() as u64)),
    ];
    let notes: Vec<_> = found.notes().map(|note| sentence(&note)).collect();
    let file_name = |path: &String| match Path::new(path).file_name() {
        Some(name) => name.to_string_lossy().into_owned(),
        None => path.clone(),
    };
    let files = found.files.iter().take(MOST_FILES).map(file_name);
    let files = files.collect::<Vec<_>>().join(", ");
    let more = match found.files.len().saturating_sub(MOST_FILES) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let title = format!("Why did it stall? {files}{more}");
    stalls_html(&title, &facts, &notes, &sums(found), &connections)
}

/// Returns the pictures of all wanted connections together: time lost by cause, and by pair of
/// hosts if there are several.
fn sums(found: &CaptureResults) -> Vec<Figure> {
    let (causes, pairs) = (found.by_cause(), found.by_host_pair());
    let sides = [Side::Sender, Side::Receiver, Side::Network, Side::Unknown];
    let names = sides.map(|side| words(&side));
    let names = [0, 1, 2, 3].map(|side: usize| names[side].as_str());
    let mut figures = Vec::new();
    if !causes.is_empty() {
        let caption = "Durations of the stalls of every connection together, by whose side they are on. \
                       Connections run at the same time, so the sum may be more than the capture's time.";
        let rows = cause_rows(&causes, &sides);
        figures.push(time_lost(
            "causes",
            "Time lost by cause",
            caption,
            names,
            &rows,
        ));
    }
    if pairs.len() > 1 {
        let caption = "The same between each two hosts: the client first.";
        let rows: Vec<_> = pairs
            .iter()
            .take(MOST_ROWS)
            .map(|p| pair_row(p, &sides))
            .collect();
        let title = "Time lost by host pair";
        figures.push(time_lost("pairs", title, caption, names, &rows));
    }
    figures.extend(
        found
            .two_ends
            .as_ref()
            .and_then(|ends| two_ends::figure(&ends.paths)),
    );
    figures
}

fn cause_rows(causes: &[CauseTotal], sides: &[Side; SIDES]) -> Vec<TimeLost> {
    let mut rows: Vec<TimeLost> = Vec::new();
    for total in causes {
        let name = words(&total.cause);
        let at = rows.iter().position(|row| row.name == name);
        let at = at.unwrap_or_else(|| {
            rows.push(TimeLost {
                name,
                sides_s: [0.0; SIDES],
            });
            rows.len() - 1
        });
        if let Some(side) = sides.iter().position(|side| *side == total.side) {
            rows[at].sides_s[side] += in_seconds(total.time_lost_ns);
        }
    }
    rows.sort_by(|a, b| {
        let sum = |row: &TimeLost| row.sides_s.iter().sum::<f64>();
        sum(b).total_cmp(&sum(a))
    });
    rows.truncate(MOST_ROWS);
    rows
}

fn pair_row(pair: &HostPairTotal, sides: &[Side; SIDES]) -> TimeLost {
    let lost = |side: &Side| pair.by_side.iter().find(|total| total.side == *side);
    TimeLost {
        name: format!("{} → {}", pair.client, pair.server),
        sides_s: sides.map(|side| lost(&side).map_or(0.0, |total| in_seconds(total.time_lost_ns))),
    }
}

fn connection(found: &CaptureResults, index: usize, interval_ns: Option<u64>) -> StallConnection {
    let c = &found.analysis.connections[index];
    let tunnel = match found.encapsulations.name(c.encapsulation).as_str() {
        "" => String::new(),
        name => format!(" ({name})"),
    };
    let mut facts = vec![phrases::facts(c)];
    let processes = found.processes.of(c.client, c.server).iter();
    facts.extend(processes.map(phrases::process));
    facts.extend(c.notes.iter().cloned());
    let facts = facts.iter().map(|fact| sentence(fact)).collect();
    StallConnection {
        name: format!("#{} {} → {}{tunnel}", index + 1, c.client, c.server),
        verdict: c.verdict.clone(),
        facts,
        stalls: c.stalls.iter().map(stall).collect(),
        drawn: c.history.as_ref().map(|history| {
            let begin_s = in_seconds(c.start_ns);
            let end_s = in_seconds(c.start_ns + c.duration_ns);
            (stream(c, history, interval_ns), (begin_s, end_s))
        }),
    }
}

fn stall(s: &Stall) -> StallRow {
    StallRow {
        start_s: in_seconds(s.start_ns),
        duration_s: in_seconds(s.duration_ns),
        cost: s.bytes_cost.map(units::terse::size),
        cause: phrases::cause(s),
        side: format!(
            "{}; {} confidence",
            phrases::side(s.side),
            words(&s.confidence)
        ),
        explanation: sentence(&s.explanation),
        advice: s.advice.clone(),
        evidence: phrases::evidence(&s.evidence),
        causes: (!s.asked.are_none()).then(|| explain::causes(s.asked)),
    }
}

/// Returns the direction that is drawn: the one that stalled longer, else the one with more data.
fn direction(c: &Connection) -> Direction {
    let weight = |direction: Direction| {
        let stalls = c.stalls.iter().filter(|s| s.direction == direction);
        let stalled_ns: u64 = stalls.map(|s| s.duration_ns).sum();
        (stalled_ns, c.flows[direction.index()].bytes)
    };
    if weight(Direction::ToClient) > weight(Direction::ToServer) {
        Direction::ToClient
    } else {
        Direction::ToServer
    }
}

fn stream(c: &Connection, history: &History, interval_ns: Option<u64>) -> Stream {
    let drawn = direction(c);
    let mut stream = Stream::default();
    for event in history.events.iter().filter(|e| e.direction == drawn) {
        let at_s = in_seconds(event.time_ns);
        match event.what {
            What::New { start, end } => stream.new.push((at_s, start, end)),
            What::Retransmission { start, end, .. } => {
                stream.retransmitted.push((at_s, start, end))
            }
            // An out-of-order segment is late but was sent once: it is drawn with the new data.
            What::OutOfOrder { start, end } => stream.new.push((at_s, start, end)),
            What::Ack { ack, window_edge } => {
                stream.acked.push((at_s, ack as f64));
                stream.edge.push((at_s, window_edge as f64));
                let window = window_edge.saturating_sub(ack);
                stream.window.push((at_s, window as f64));
            }
            What::Sack {
                start,
                end,
                duplicate,
            } => {
                let blocks = if duplicate {
                    &mut stream.duplicates
                } else {
                    &mut stream.sacked
                };
                blocks.push((at_s, start, end));
            }
        }
        stream.flight.push((at_s, event.flight_bytes as f64));
    }
    stream.rate = rate(&stream.acked, c, interval_ns);
    let stalls = c
        .stalls
        .iter()
        .enumerate()
        .filter(|(_, s)| s.direction == drawn);
    stream.stalls = stalls
        .map(|(i, s)| {
            let begin_s = in_seconds(s.start_ns);
            Shade {
                begin_s,
                end_s: begin_s + in_seconds(s.duration_ns),
                name: (i + 1).to_string(),
                is_slow: s.kind == StallKind::Slow,
            }
        })
        .collect();
    stream
}

/// Returns the rate of acknowledged data in each interval. It is exact even where not every
/// acknowledgement was kept.
fn rate(acked: &[Sample], c: &Connection, interval_ns: Option<u64>) -> Vec<Sample> {
    let least_ns = (c.duration_ns / MOST_INTERVALS).max(1);
    let interval_ns = interval_ns
        .unwrap_or(c.duration_ns / INTERVALS)
        .max(least_ns);
    let (begin_s, interval_s) = (in_seconds(c.start_ns), in_seconds(interval_ns));
    let count = (c.duration_ns / interval_ns + 1) as usize;
    let mut bytes = vec![0.0; count];
    let mut reached: Option<f64> = None;
    for (at_s, ack) in acked {
        let before = *reached.get_or_insert(*ack);
        let interval = ((at_s - begin_s) / interval_s).max(0.0) as usize;
        if let Some(place) = bytes.get_mut(interval) {
            *place += (ack - before).max(0.0);
        }
        reached = Some(before.max(*ack));
    }
    let middle = |i: usize| begin_s + (i as f64 + 0.5) * interval_s;
    let bits = |bytes: f64| bytes * 8.0 / interval_s;
    bytes
        .into_iter()
        .enumerate()
        .map(|(i, b)| (middle(i), bits(b)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Confidence, Event, Place, Vantage};
    use capture::segment::Endpoint;

    fn connection() -> Connection {
        let end = |port| Endpoint {
            address: [10, 1, 1, 1].into(),
            port,
        };
        Connection {
            client: end(1),
            server: end(2),
            encapsulation: 0,
            start_ns: 1_000_000_000,
            duration_ns: 1_000_000_000,
            packets: 3,
            begin_seen: false,
            end_seen: false,
            vantage: Vantage {
                place: Place::Unknown,
                confidence: Confidence::Low,
                reason: String::new().into(),
                server_rtt_ns: None,
                client_rtt_ns: None,
            },
            verdict: String::new(),
            flows: Default::default(),
            stalls: Vec::new(),
            notes: Vec::new(),
            least_ns: None,
            passing_bps: [None; 2],
            history: None,
        }
    }

    #[test]
    fn throughput_is_what_acknowledgements_moved_on() {
        let acked = [
            (1.0, 5000.0),
            (1.3, 6000.0),
            (1.3, 5500.0),
            (1.6, 8000.0),
            (2.0, 8000.0),
        ];
        let rates = rate(&acked, &connection(), Some(500_000_000));
        assert_eq!(rates, [(1.25, 16_000.0), (1.75, 32_000.0), (2.25, 0.0)]);
        // An interval of nothing does not take all memory.
        assert!(rate(&acked, &connection(), Some(0)).len() <= 20_001);
    }

    #[test]
    fn events_of_the_busier_direction_are_drawn() {
        let mut c = connection();
        c.flows[1].bytes = 10;
        let event = |direction, what| Event {
            time_ns: 1_100_000_000,
            packet: 1,
            direction,
            what,
            flight_bytes: 7,
        };
        let ack = What::Ack {
            ack: 10,
            window_edge: 30,
        };
        let history = History {
            events: vec![
                event(Direction::ToServer, What::New { start: 0, end: 1 }),
                event(Direction::ToClient, What::New { start: 0, end: 10 }),
                event(Direction::ToClient, ack),
                event(
                    Direction::ToClient,
                    What::Sack {
                        start: 5,
                        end: 6,
                        duplicate: true,
                    },
                ),
            ],
            one_of: 1,
        };
        let drawn = stream(&c, &history, None);
        assert_eq!(drawn.new, [(1.1, 0, 10)]);
        assert_eq!(drawn.window, [(1.1, 20.0)]);
        assert_eq!((drawn.duplicates.len(), drawn.sacked.len()), (1, 0));
        assert_eq!(drawn.flight.len(), 3);
    }
}
