// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measures a series without a scenario: every flow of a capture or a timeline, over all of it
//! or a part.

use capture::flows::{FlowKey, FlowTable};
use capture::record::Record;
use scenario::result::WindowResult;

use crate::bandwidth::even_interval_ps;
use crate::curves::{self, Curves, QueueWindow};
use crate::measure::{self, End, Placed, Span, Timestamps};

/// The series to survey.
#[derive(Clone, Copy, Debug)]
pub struct Series<'a> {
    /// Name of the series.
    pub name: &'a str,
    /// Records in order of time.
    pub records: &'a [Record],
    /// The flows that [`Record::flow`] is an index into.
    pub flows: &'a FlowTable,
    /// Line rate; 0 if not known: then there are no gaps in byte times and no utilisation.
    pub rate_bps: u64,
    /// MTU; 0 if not known: then burstiness is in units of a flow's largest frame.
    pub mtu: u32,
}

/// The part of a series to survey, and the interval of its curves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// Begin, ps after the first record; 0 by default.
    pub from_ps: u64,
    /// End, ps after the first record; the end of the series by default.
    pub to_ps: Option<u64>,
    /// Interval of the curves, ps; by default the survey chooses it.
    pub interval_ps: Option<u64>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Survey {
    /// Metrics of every flow, by decreasing bytes, and of all data frames together.
    pub window: WindowResult,
    /// Curves of the same flows.
    pub curves: Curves,
}

/// Name of the only window.
const ALL: &str = "all";
/// Number of intervals of a curve if none is given.
const INTERVALS: u64 = 400;

/// Measures every flow that `wanted` chooses. Returns `None` if the part is empty, or if its
/// interval divides it into millions.
pub fn survey(
    series: &Series<'_>,
    part: Part,
    wanted: impl Fn(&FlowKey) -> bool,
) -> Option<Survey> {
    let (first, last) = (
        series.records.first()?.start_ps,
        series.records.last()?.start_ps,
    );
    let span = Span {
        zero_ps: first,
        from_ps: first.saturating_add(part.from_ps),
        // The last frame is part of the series.
        to_ps: part
            .to_ps
            .map_or(last.saturating_add(1), |to| first.saturating_add(to)),
    };
    if span.from_ps >= span.to_ps {
        return None;
    }
    let name = series.name.to_owned();
    let end = End::new(
        name,
        series.rate_bps,
        series.mtu,
        series.records,
        series.flows,
    );
    let mut placed: Vec<Placed<'_>> = series
        .flows
        .iter()
        .filter(|(_, key)| wanted(key))
        .map(|(index, key)| Placed {
            name: series.flows.name(index).unwrap_or_else(|| key.to_string()),
            target: None,
            active_ps: (span.from_ps, span.to_ps),
            timestamps: Timestamps::None,
            positions: end.of_index(index),
            end: &end,
        })
        .filter(|p| !p.positions.is_empty())
        .collect();
    let bytes = |p: &Placed<'_>| p.records().map(|r| u64::from(r.frame_bytes)).sum::<u64>();
    // The sort is stable: equal flows stay in the order of the table.
    placed.sort_by_key(|p| std::cmp::Reverse(bytes(p)));
    let ends = std::slice::from_ref(&end);
    let length_ps = span.to_ps - span.from_ps;
    let interval_ps = part
        .interval_ps
        .unwrap_or_else(|| even_interval_ps(length_ps, INTERVALS));
    let queue = QueueWindow {
        name: ALL,
        from_ps: span.from_ps,
        to_ps: span.to_ps,
    };
    Some(Survey {
        curves: curves::draw(span, interval_ps, ends, &placed, &queue)?,
        window: measure::window(ALL, span, ends, &placed),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::ethernet::wire_bytes;

    fn series() -> (Vec<Record>, FlowTable) {
        let mut flows = FlowTable::default();
        let keys = ["udp 10.0.0.1 1 10.0.0.2 2", "tcp 10.0.0.1 3 10.0.0.2 4"];
        let keys = keys.map(|k| flows.index_of(k.parse().unwrap()));
        let record = |i: u64| {
            let big = i % 2 == 1;
            let frame_bytes = if big { 1000 } else { 100 };
            Record {
                start_ps: 5_000 + i * 10_000_000,
                frame_bytes,
                wire_bytes: wire_bytes(frame_bytes),
                flow: keys[usize::from(big)],
                ..Record::default()
            }
        };
        ((0..1000).map(record).collect(), flows)
    }

    #[test]
    fn the_largest_flow_comes_first() {
        let (records, flows) = series();
        let series = Series {
            name: "x.pcap",
            records: &records,
            flows: &flows,
            rate_bps: 0,
            mtu: 0,
        };
        let found = survey(&series, Part::default(), |_| true).unwrap();
        let names: Vec<_> = found.window.flows.iter().map(|f| f.name.as_str()).collect();
        assert_eq!(
            names,
            [
                "tcp 10.0.0.1 3 10.0.0.2 4",
                "udp 10.0.0.1 1 10.0.0.2 2",
                "wire"
            ]
        );
        let tcp = &found.window.flows[0].metrics;
        assert_eq!((tcp.frames, tcp.rate1_mean_bps), (500, Some(4e8)));
        assert_eq!((tcp.burstiness_mtu, tcp.gap_p50_bytes), (Some(1.0), None));
        assert_eq!(found.curves.flows[0].bytes.iter().sum::<u64>(), 500_000);

        let part = Part {
            from_ps: 5_000_000,
            to_ps: Some(105_000_000),
            interval_ps: None,
        };
        let port = |k: &FlowKey| matches!(k, FlowKey::Ports { dport: 4, .. });
        let found = survey(&series, part, port).unwrap();
        assert_eq!(found.window.flows.len(), 2);
        assert_eq!(found.window.flows[0].metrics.frames, 5);
        assert_eq!(found.window.flows[0].metrics.rate_bps, 380e6);
    }

    #[test]
    fn a_capture_without_flows_has_no_survey() {
        let (records, flows) = series();
        let empty = Series {
            name: "",
            records: &[],
            flows: &flows,
            rate_bps: 0,
            mtu: 0,
        };
        assert_eq!(survey(&empty, Part::default(), |_| true), None);
        let series = Series {
            records: &records,
            ..empty
        };
        let late = Part {
            from_ps: u64::MAX,
            ..Part::default()
        };
        assert_eq!(survey(&series, late, |_| true), None);
        let fine = Part {
            interval_ps: Some(1),
            ..Part::default()
        };
        assert_eq!(survey(&series, fine, |_| true), None);
    }
}
