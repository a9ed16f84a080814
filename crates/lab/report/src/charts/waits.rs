// SPDX-License-Identifier: MIT OR Apache-2.0
//! Plots the waits of a flow's datagrams: the share that waited longer than each time.

use draw::figure::Figure;
use draw::lines::{Line, Lines};
use draw::scale::Kind;
use draw::theme::COLOURS;
use metrics::curves::Curves;
use metrics::gaps::Bin;
use scenario::result::RunResult;

use crate::sweep::{self, Varying};

/// Most figures that are drawn.
const MOST_FIGURES: usize = 8;

/// Draws the waits of the flow whose waits have a bound, if there is one: a line for each value of
/// the parameter varied last, a figure for each combination of the others.
pub fn waits(run: &RunResult, curves: &[Option<Curves>]) -> Vec<Figure> {
    let Some(flow) = sweep::waiting(run) else {
        return Vec::new();
    };
    let varying = sweep::varying(run);
    let (rest, last) = match varying.as_slice() {
        [rest @ .., last] => (rest, std::slice::from_ref(last)),
        [] => (&[][..], &[][..]),
    };
    // Each entry is a figure: its name and its lines.
    let mut figures: Vec<(String, Vec<Line>)> = Vec::new();
    for (cell, curves) in run.cells.iter().zip(curves) {
        let points = curves.as_ref().and_then(|c| longer(c, flow));
        let Some(points) = points.filter(|points| !points.is_empty()) else {
            continue;
        };
        let name = sweep::cell_name(cell, rest);
        let place = figures.iter().position(|(known, _)| *known == name);
        let place = place.unwrap_or_else(|| {
            figures.push((name, Vec::new()));
            figures.len() - 1
        });
        let value = |v: &Varying| cell.params.get(&v.name).cloned();
        if let Some((_, lines)) = figures.get_mut(place) {
            lines.push(Line {
                label: last.iter().filter_map(value).collect(),
                colour: lines.len() % COLOURS,
                points,
                target: None,
            });
        }
    }
    if figures.len() > MOST_FIGURES {
        return Vec::new();
    }
    let drawn = figures.into_iter();
    drawn
        .map(|(name, lines)| figure(flow, &name, lines))
        .collect()
}

/// Returns points of time in ms and the share of datagrams that waited at least so long, per cent.
/// The last point is the end of the largest wait's bin, with the share of one datagram.
fn longer(curves: &Curves, flow: &str) -> Option<Vec<(f64, [f64; 3])>> {
    let bins = &curves.flows.iter().find(|f| f.name == flow)?.waits;
    let all: u64 = bins.iter().map(|bin| bin.count).sum();
    let mut left = all;
    let mut points = Vec::with_capacity(bins.len());
    for bin in bins {
        let share = left as f64 / all.max(1) as f64 * 100.0;
        points.push((bin.begin_bytes() / 1e3, [share; 3]));
        left -= bin.count;
    }
    if let Some(last) = bins.last() {
        let bin = last.bin + 1;
        let after = Bin { bin, ..*last }.begin_bytes() / 1e3;
        points.push((after, [100.0 / all.max(1) as f64; 3]));
    }
    Some(points)
}

fn figure(flow: &str, name: &str, lines: Vec<Line>) -> Figure {
    let points = || lines.iter().flat_map(|line| &line.points);
    let times = || points().map(|(ms, _)| *ms);
    let x = times().fold((f64::INFINITY, 0.0), |(low, high): (f64, f64), ms| {
        (low.min(ms), high.max(ms))
    });
    let least = points().map(|(_, share)| share[1]).fold(100.0, f64::min);
    let plot = Lines {
        x: (Kind::Log, x.0, x.1 * 1.2),
        x_name: "delay, ms".to_owned(),
        y: (Kind::Log, least, 100.0),
        y_name: "% of packets that took at least so long".to_owned(),
        marks: Vec::new(),
        dots: false,
        lines,
    };
    let title = match name {
        "" => format!("Delay of {flow}"),
        name => format!("Delay of {flow}, {name}"),
    };
    let caption = "From the sender's system call to the first bit on the last cable; a line ends \
                   at the largest delay, to 2.3 %.";
    Figure::new("waits", title, caption, |width| plot.draw(width))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail that way")]

    use super::*;
    use metrics::curves::FlowCurves;

    fn curves(counts: &[(i32, u64)]) -> Curves {
        let bins = counts.iter().map(|&(bin, count)| Bin { bin, count });
        Curves {
            flows: vec![FlowCurves {
                name: "rt".into(),
                waits: bins.collect(),
                ..FlowCurves::default()
            }],
            ..Curves::default()
        }
    }

    #[test]
    fn shares_of_packets_that_waited_longer() {
        let points = longer(&curves(&[(300, 90), (400, 9), (500, 1)]), "rt").unwrap();
        let shares: Vec<_> = points.iter().map(|(ms, v)| (*ms, v[1])).collect();
        assert_eq!(shares[..3], [(1.0, 100.0), (10.0, 10.0), (100.0, 1.0)]);
        assert!(shares.len() == 4 && shares[3].0 > 102.0 && shares[3].1 == 1.0);
        assert!(longer(&curves(&[]), "rt").unwrap().is_empty());
        assert_eq!(longer(&curves(&[]), "nrt"), None);
    }
}
