// SPDX-License-Identifier: MIT OR Apache-2.0
//! Plots a TCP sender's variables over time, as paper 001 draws them: its window and timeouts
//! (figure 4), its sequence numbers (figure 5), and its scoreboard's counts (figure 6). Each sender
//! has a panel.

use draw::figure::Figure;
use draw::grid::{Grid, Panel};
use draw::lines::Line;
use draw::scale::round_up;
use serde::{Deserialize, Serialize};
use units::display::time_unit;

/// Most steps of a curve.
const STEPS: f64 = 250.0;

/// One reading of a sender's variables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Variables {
    /// Seconds from t = 0.
    pub at_s: f64,
    /// Congestion window, segments. The other variables that name no unit are in segments, too.
    pub cwnd: u32,
    /// Slow start threshold; `None` before there is one.
    pub ssthresh: Option<u32>,
    /// Segments that the sender estimates to be in the network.
    pub in_flight: u32,
    /// Segments that the receiver reported by SACK.
    pub sacked_out: u32,
    /// Segments that the sender considers lost.
    pub lost_out: u32,
    /// Segments retransmitted and not yet acknowledged.
    pub retrans_out: u32,
    /// Retransmission timeouts so far.
    pub timeouts: u32,
    /// First byte of the stream that is not acknowledged.
    pub una_bytes: u64,
    /// Next new byte of the stream.
    pub nxt_bytes: u64,
    /// The first SACK block, begin and end in bytes of the stream, if there was one.
    pub sack_bytes: Option<(u64, u64)>,
}

/// The record of one sender.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SenderRecord {
    /// Title of the sender's panel.
    pub title: String,
    /// The readings, in order of time.
    pub readings: Vec<Variables>,
}

/// A curve's name, and the function that takes its value from a reading.
type Curve<'a> = (&'a str, &'a dyn Fn(&Variables) -> Option<f64>);

/// Draws figure 4: the congestion window and the timeouts.
pub fn sender_window(records: &[SenderRecord]) -> Option<Figure> {
    // A threshold far above every window would flatten the windows.
    let highest = |r: &SenderRecord| r.readings.iter().map(|v| v.cwnd).max().unwrap_or(0);
    let top = records.iter().map(highest).max()?;
    let windows: [Curve<'_>; 2] = [
        ("congestion window", &|v| Some(v.cwnd.into())),
        ("slow start threshold", &|v| {
            v.ssthresh.filter(|s| *s <= top).map(f64::from)
        }),
    ];
    let timeouts: [Curve<'_>; 1] = [("timeouts", &|v| Some(v.timeouts.into()))];
    let mut panels = vec![];
    for record in records {
        panels.push((record, "segments", &windows[..], 0));
        panels.push((record, "timeouts so far", &timeouts[..], windows.len()));
    }
    figure(
        "sender",
        "The sender's window and its timeouts",
        "The congestion window in segments, as the sender's own record has it: a floor of one \
         segment for seconds is a stall. Beside it the retransmission timeouts so far.",
        &panels,
    )
}

/// Draws figure 5: what is sent, acknowledged and reported, in bytes of the stream.
pub fn sender_sequence(name: &str, records: &[SenderRecord]) -> Option<Figure> {
    const MB: f64 = 1e6;
    let first = |r: &SenderRecord| r.readings.first().map_or(0, |v| v.una_bytes);
    // Bytes acknowledged before the first reading are left out of the axis.
    let relative: Vec<SenderRecord> = records
        .iter()
        .map(|record| SenderRecord {
            title: record.title.clone(),
            readings: record
                .readings
                .iter()
                .map(|v| from(*v, first(record)))
                .collect(),
        })
        .collect();
    let mb = |bytes: u64| Some(bytes as f64 / MB);
    let curves: [Curve<'_>; 4] = [
        ("next new byte", &|v| mb(v.nxt_bytes)),
        ("acknowledged", &|v| mb(v.una_bytes)),
        ("begin of the newest SACK block", &|v| mb(v.sack_bytes?.0)),
        ("its end", &|v| mb(v.sack_bytes?.1)),
    ];
    let panels: Vec<_> = relative.iter().map(|r| (r, "MB", &curves[..], 0)).collect();
    figure(
        "sender-sequence",
        &format!("Sequence numbers, {name}"),
        "Places in the stream at each acknowledgement, from the first that is shown. While acknowledgements stand still and SACK \
         blocks come, losses are being repaired; blocks that end below the newest byte again and \
         again are retransmissions that were lost.",
        &panels,
    )
}

/// Returns the reading with its places in the stream counted from byte `first` on.
fn from(v: Variables, first: u64) -> Variables {
    let place = |bytes: u64| bytes.saturating_sub(first);
    Variables {
        una_bytes: place(v.una_bytes),
        nxt_bytes: place(v.nxt_bytes),
        sack_bytes: v.sack_bytes.map(|(begin, end)| (place(begin), place(end))),
        ..v
    }
}

/// Draws figure 6: the scoreboard's counts.
pub fn sender_scoreboard(name: &str, records: &[SenderRecord]) -> Option<Figure> {
    let curves: [Curve<'_>; 5] = [
        ("congestion window", &|v| Some(v.cwnd.into())),
        ("in flight", &|v| Some(v.in_flight.into())),
        ("sacked", &|v| Some(v.sacked_out.into())),
        ("lost", &|v| Some(v.lost_out.into())),
        ("retransmitted", &|v| Some(v.retrans_out.into())),
    ];
    let panels: Vec<_> = records
        .iter()
        .map(|r| (r, "segments", &curves[..], 0))
        .collect();
    figure(
        "sender-scoreboard",
        &format!("The scoreboard, {name}"),
        "Segments at each acknowledgement: in flight = out - sacked - lost + retransmitted. If \
         retransmissions that were lost are not found lost, the last of these stays where it is, \
         and so does what is in flight.",
        &panels,
    )
}

/// A panel: the record, the unit, the curves, and the colour of the first curve.
type Shown<'a> = (&'a SenderRecord, &'a str, &'a [Curve<'a>], usize);

fn figure(slug: &'static str, title: &str, caption: &str, shown: &[Shown<'_>]) -> Option<Figure> {
    let times = || {
        let readings = shown.iter().flat_map(|(record, ..)| &record.readings);
        readings.map(|v| v.at_s)
    };
    let from_s = times().reduce(f64::min)?;
    let to_s = times().reduce(f64::max).filter(|to_s| *to_s > from_s)?;
    let seconds = time_unit(to_s);
    let step_s = (to_s - from_s) / STEPS;
    let mut legend: Vec<(String, usize)> = vec![];
    let mut panels = vec![];
    for (record, unit, curves, colour) in shown {
        let lines: Vec<Line> = curves
            .iter()
            .enumerate()
            .map(|(index, (label, value))| Line {
                label: (*label).to_owned(),
                colour: colour + index,
                points: points(&record.readings, value, seconds.size, step_s),
                target: None,
            })
            .collect();
        for line in &lines {
            let entry = (line.label.clone(), line.colour);
            if !legend.contains(&entry) {
                legend.push(entry);
            }
        }
        let values = lines.iter().flat_map(|l| &l.points).map(|p| p.1[2]);
        panels.push(Panel {
            title: format!("{}, {unit}", record.title),
            highest: round_up(values.fold(0.0, f64::max).max(1.0) * 1.04, 4),
            lines,
        });
    }
    let grid = Grid {
        panels,
        columns: 2,
        x: (from_s / seconds.size, to_s / seconds.size),
        x_name: format!("time, {}", seconds.name),
        legend,
    };
    Some(Figure::new(slug, title, caption, |width| grid.draw(width)))
}

/// Returns the curve as a staircase, because a variable keeps its value until the next reading.
/// Readings that share a step are drawn with their least and their largest value.
fn points(
    readings: &[Variables],
    value: &dyn Fn(&Variables) -> Option<f64>,
    second: f64,
    step_s: f64,
) -> Vec<(f64, [f64; 3])> {
    let known = readings.iter().filter_map(|v| Some((v.at_s, value(v)?)));
    let mut points: Vec<(f64, [f64; 3])> = vec![];
    let mut begin_s = f64::NEG_INFINITY;
    for (at_s, value) in known {
        match points.last_mut() {
            Some((_, [low, last, high])) if at_s - begin_s < step_s => {
                (*low, *last, *high) = (low.min(value), value, high.max(value));
            }
            before => {
                let held = before.map(|(_, spread)| spread[1]);
                points.extend(held.map(|held| (at_s / second, [held; 3])));
                points.push((at_s / second, [value; 3]));
                begin_s = at_s;
            }
        }
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(title: &str, count: u32) -> SenderRecord {
        let reading = |n: u32| Variables {
            at_s: f64::from(n) / 100.0,
            cwnd: if n == count / 2 { 900 } else { 10 },
            ssthresh: Some(2_000_000),
            timeouts: n / 10,
            una_bytes: u64::from(n) * 1448,
            nxt_bytes: u64::from(n) * 1448 + 1_000_000,
            sack_bytes: (n % 2 == 0).then_some((u64::from(n) * 1448 + 500_000, 0)),
            ..Variables::default()
        };
        SenderRecord {
            title: title.to_owned(),
            readings: (0..count).map(reading).collect(),
        }
    }

    #[test]
    fn each_sender_has_its_panels_and_each_curve_its_name() {
        let records = [record("2.6.17", 40), record("rack", 40)];
        let figures = [
            sender_window(&records),
            sender_sequence("first losses", &records),
            sender_scoreboard("first losses", &records),
        ];
        let names = [
            vec!["congestion window", "timeouts", "2.6.17, timeouts so far"],
            vec!["next new byte", "acknowledged", "2.6.17, MB", "rack, MB"],
            vec![
                "in flight",
                "sacked",
                "lost",
                "retransmitted",
                "rack, segments",
            ],
        ];
        for (figure, names) in figures.into_iter().zip(names) {
            let svg = figure.unwrap().svg();
            for name in names {
                assert!(svg.contains(&format!(">{name}<")), "{name}: {svg}");
            }
        }
    }

    #[test]
    fn a_curve_is_held_and_keeps_its_extremes() {
        let mut readings = record("a", 5000).readings;
        readings.drain(3000..4000);
        let points = points(&readings, &|v| Some(f64::from(v.cwnd) + v.at_s), 1.0, 0.5);
        assert!(points.len() <= 2 * 100);
        assert!(
            points
                .iter()
                .any(|(_, [low, _, high])| *low < 40.0 && *high > 900.0)
        );
        // The log has no reading from 30 s to 40 s.
        let after = points.iter().position(|(at, _)| *at == 40.0).unwrap();
        assert_eq!(points[after].1, [10.0 + 29.99; 3]);
        assert_eq!(points[after + 1].1[0], 50.0);
    }

    #[test]
    fn without_a_reading_there_is_no_figure() {
        assert!(sender_window(&[]).is_none());
        assert!(sender_sequence("x", &[record("a", 0)]).is_none());
        assert!(sender_scoreboard("x", &[record("a", 1)]).is_none());
    }
}
