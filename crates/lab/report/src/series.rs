// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes the few series that a plot can show from a cell's curves: one for each flow, or one
//! band for each target where the flows are many.

use draw::theme::COLOURS;
use metrics::curves::{Curves, FlowCurves};

/// Most flows that are drawn as a line each; more flows are drawn as bands.
pub const MOST_LINES: usize = 8;

/// Flows that are drawn as one series.
#[derive(Clone, Debug)]
pub struct Group<'a> {
    /// The flow's name, or the number of flows in the group.
    pub label: String,
    pub members: Vec<&'a FlowCurves>,
    /// Index of its colour.
    pub colour: usize,
}

impl Group<'_> {
    /// Returns the target of the group's flows, bit/s, if they have the same.
    pub fn target_bps(&self) -> Option<f64> {
        let first = self.members.first()?.target_bps;
        self.members
            .iter()
            .all(|m| m.target_bps == first)
            .then_some(first)?
    }
}

/// Divides the flows of a cell into groups: one for each flow if they are few, else one for each
/// target.
pub fn groups(curves: &Curves) -> Vec<Group<'_>> {
    if curves.flows.len() <= MOST_LINES {
        let flows = curves.flows.iter().enumerate();
        let single = flows.map(|(i, flow)| Group {
            label: flow.name.clone(),
            members: vec![flow],
            colour: i % COLOURS,
        });
        return single.collect();
    }
    let mut targets: Vec<Option<f64>> = Vec::new();
    for flow in &curves.flows {
        if !targets.contains(&flow.target_bps) {
            targets.push(flow.target_bps);
        }
    }
    // With too many different targets, all flows are one group.
    if targets.len() > MOST_LINES {
        let label = format!("{} flows", curves.flows.len());
        return vec![Group {
            label,
            members: curves.flows.iter().collect(),
            colour: 0,
        }];
    }
    let group = |(i, target): (usize, &Option<f64>)| {
        let members: Vec<_> = curves
            .flows
            .iter()
            .filter(|f| f.target_bps == *target)
            .collect();
        let at = target.map_or_else(String::new, |t| format!(", {}", units::display::rate(t)));
        Group {
            label: format!("{} flows{at}", members.len()),
            members,
            colour: i % COLOURS,
        }
    };
    targets.iter().enumerate().map(group).collect()
}

/// One point of a curve: the middle of an interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Seconds from t = 0.
    pub at_s: f64,
    /// Smallest value of the group's flows.
    pub low: f64,
    /// Median of the group's flows.
    pub middle: f64,
    /// Largest value of the group's flows.
    pub high: f64,
}

/// Least number of frames that a flow sends in one interval of a bandwidth curve. With fewer, the
/// steps of single frames hide the rate.
const FRAMES_PER_POINT: u64 = 25;
/// Least number of points of a curve.
const FEWEST_POINTS: usize = 24;

/// Returns how many intervals of the curves make one point of the bandwidth plot, so that the
/// slowest flow has enough frames in each.
pub fn merge(curves: &Curves) -> usize {
    let most = (curves
        .flows
        .iter()
        .map(|f| f.bytes.len())
        .max()
        .unwrap_or(0)
        / FEWEST_POINTS)
        .max(1);
    let needed = |flow: &FlowCurves| {
        let active = flow.bytes.iter().filter(|b| **b > 0).count() as u64;
        let bytes: u64 = flow.bytes.iter().sum();
        let frame = u64::from(flow.mtu) + 14;
        (FRAMES_PER_POINT * frame * active).div_ceil(bytes.max(1))
    };
    let needed = curves.flows.iter().map(needed).max().unwrap_or(1);
    usize::try_from(needed).unwrap_or(most).clamp(1, most)
}

/// Returns the bandwidth of a group over time, bits per second. Intervals in which not all of its
/// flows are meant to send all the time are left out.
pub fn bandwidth(curves: &Curves, group: &Group<'_>, merge: usize) -> Vec<Point> {
    points(
        curves,
        group,
        merge,
        |f| f.active_s,
        |flow, range| {
            let bytes: u64 = flow.bytes.get(range).map_or(0, |b| b.iter().sum());
            // The sum is below 2^53, so `f64` represents it exactly.
            let bits = bytes as f64 * 8.0;
            let seconds = curves.interval_s * merge as f64;
            bits / seconds
        },
    )
}

/// Returns the largest queue of the virtual bottleneck over time, in full frames.
pub fn queue(curves: &Curves, group: &Group<'_>, merge: usize) -> Vec<Point> {
    points(
        curves,
        group,
        merge,
        |f| f.queue_s,
        |flow, range| {
            let bytes = flow
                .queue_bytes
                .get(range)
                .map_or(0.0, |q| q.iter().copied().fold(0.0, f64::max));
            bytes / f64::from(flow.mtu.saturating_add(14))
        },
    )
}

fn points(
    curves: &Curves,
    group: &Group<'_>,
    merge: usize,
    span: impl Fn(&FlowCurves) -> (f64, f64),
    value: impl Fn(&FlowCurves, std::ops::Range<usize>) -> f64,
) -> Vec<Point> {
    let intervals = group
        .members
        .iter()
        .map(|m| m.bytes.len())
        .max()
        .unwrap_or(0);
    // Times written as decimals are rounded: a thousandth of an interval is allowed.
    let slack_s = curves.interval_s / 1000.0;
    let mut points = Vec::new();
    for begin in (0..intervals).step_by(merge.max(1)) {
        let end = begin + merge.max(1);
        let [from_s, to_s] = [begin, end].map(|i| i as f64 * curves.interval_s);
        let active = |f: &&&FlowCurves| {
            let (begin_s, end_s) = span(f);
            begin_s <= from_s + slack_s && to_s <= end_s.min(curves.duration_s) + slack_s
        };
        let mut values: Vec<f64> = group
            .members
            .iter()
            .filter(active)
            .map(|f| value(f, begin..end))
            .collect();
        values.sort_by(f64::total_cmp);
        let Some((low, high)) = values.first().zip(values.last()) else {
            continue;
        };
        let middle = values[values.len() / 2];
        points.push(Point {
            at_s: f64::midpoint(from_s, to_s),
            low: *low,
            middle,
            high: *high,
        });
    }
    points
}

/// Returns the gaps of all flows of a group: `(begin of the bin in byte times, count)`.
pub fn gaps(group: &Group<'_>) -> Vec<(i32, u64)> {
    let mut all: Vec<(i32, u64)> = group
        .members
        .iter()
        .flat_map(|m| m.gaps.iter().map(|b| (b.bin, b.count)))
        .collect();
    all.sort_unstable();
    let mut merged: Vec<(i32, u64)> = Vec::new();
    for (bin, count) in all {
        match merged.last_mut() {
            Some(last) if last.0 == bin => last.1 += count,
            _ => merged.push((bin, count)),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(name: &str, target: f64, bytes: Vec<u64>) -> FlowCurves {
        FlowCurves {
            name: name.into(),
            target_bps: Some(target),
            active_s: (0.0, 1.0),
            queue_s: (0.0, 1.0),
            mtu: 1500,
            queue_bytes: bytes.iter().map(|b| *b as f64 / 8.0).collect(),
            bytes,
            ..FlowCurves::default()
        }
    }

    fn curves(flows: Vec<FlowCurves>) -> Curves {
        Curves {
            interval_s: 0.1,
            duration_s: 1.0,
            flows,
            ..Curves::default()
        }
    }

    #[test]
    fn few_flows_stand_alone_and_many_by_target() {
        let c = curves((0..8).map(|i| flow("f", f64::from(i), vec![])).collect());
        assert_eq!(groups(&c).len(), 8);
        let c = curves(
            (0..20)
                .map(|i| flow("f", f64::from(i % 2) * 1e6, vec![]))
                .collect(),
        );
        let labels: Vec<_> = groups(&c).into_iter().map(|g| g.label).collect();
        assert_eq!(labels, ["10 flows, 0 bit/s", "10 flows, 1,000 kbit/s"]);
        let c = curves((0..20).map(|i| flow("f", f64::from(i), vec![])).collect());
        let all = groups(&c);
        assert_eq!(
            (all.len(), all[0].label.as_str(), all[0].target_bps()),
            (1, "20 flows", None)
        );
    }

    #[test]
    fn a_band_has_least_median_and_largest() {
        let mut c = curves(
            (1..=9u64)
                .map(|i| flow("f", 1.0, vec![i * 1000; 10]))
                .collect(),
        );
        let group = &groups(&c)[0];
        let points = bandwidth(&c, group, 5);
        assert_eq!(points.len(), 2);
        assert_eq!(
            points[0],
            Point {
                at_s: 0.25,
                low: 8e4,
                middle: 4e5,
                high: 7.2e5
            }
        );
        let queues = queue(&c, group, 1);
        assert_eq!(queues[0].high, 9000.0 / 8.0 / 1514.0);
        // A flow is not drawn before its start.
        for flow in &mut c.flows {
            flow.active_s.0 = 0.35;
        }
        assert_eq!(
            bandwidth(&c, &groups(&c)[0], 1).first().map(|p| p.at_s),
            Some(0.45)
        );
    }

    #[test]
    fn slow_flows_get_longer_intervals() {
        let fast = curves(vec![flow("f", 1.0, vec![1_000_000; 240])]);
        assert_eq!(merge(&fast), 1);
        // With 5 frames an interval, 5 intervals make a point.
        let slow = curves(vec![flow("f", 1.0, vec![1514 * 5; 240])]);
        assert_eq!(merge(&slow), 5);
        let silent = curves(vec![flow("f", 1.0, vec![0; 240])]);
        assert_eq!(merge(&silent), 1);
    }
}
