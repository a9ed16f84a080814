// SPDX-License-Identifier: MIT OR Apache-2.0
//! The result of a run: the contents of `result.json`.
//!
//! The same scenario, seed and kernel give the same bytes. Nothing in a result therefore
//! depends on the wall clock (`run.json` holds what does), and every map is either in the
//! order of the scenario or sorted.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

pub use crate::transfers::TransferRow;

/// Value of [`RunResult::format`]; a reader refuses any other.
pub const FORMAT: &str = "pspacer-result-1";

/// Which engine produced a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Engine {
    /// A real kernel, in virtual time.
    Vmlab,
    /// The discrete-event simulator.
    Netsim,
}

/// The result of one run of a scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunResult {
    /// Always [`FORMAT`].
    pub format: String,
    /// The scenario's `name`.
    pub scenario: String,
    /// The scenario's `title`.
    pub title: String,
    /// Publication or figure that is reproduced; empty if the scenario names none.
    pub source: String,
    /// The engine that ran it.
    pub engine: Engine,
    /// Release of the kernel under test; empty for the simulator.
    pub kernel: String,
    /// Seed of the run.
    pub seed: u64,
    /// Whether every bound of every cell holds.
    pub ok: bool,
    /// Statistics of transfers of known length, over all runs; in the order of cells and
    /// flows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub table: Vec<TransferRow>,
    /// Results of the cells, in the order of the sweep.
    pub cells: Vec<CellResult>,
}

impl RunResult {
    /// Returns the statistics of a flow's transfer over all runs; `None` for a flow without a
    /// known length.
    pub fn transfer(&self, cell: &CellResult, flow: &str) -> Option<&TransferRow> {
        let is_it = |row: &&TransferRow| row.flow == flow && row.params == cell.params;
        self.table.iter().find(is_it)
    }

    /// Returns the bytes of `result.json`: indented by two blanks, with one newline at the
    /// end.
    ///
    /// # Errors
    /// Fails only if a number in `tc` or `flow_reports` cannot be written as JSON.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        let mut text = serde_json::to_string_pretty(self)?;
        text.push('\n');
        Ok(text)
    }

    /// Reads `result.json`.
    ///
    /// # Errors
    /// Fails on any text that is not a result of this [`FORMAT`].
    pub fn from_json(text: &str) -> Result<Self, serde_json::Error> {
        let result: Self = serde_json::from_str(text)?;
        if result.format == FORMAT {
            Ok(result)
        } else {
            Err(serde::de::Error::custom(format!(
                "format is {:?}, expected {FORMAT:?}",
                result.format
            )))
        }
    }
}

/// A run of the laboratory without names and cells, in which every bound holds.
impl Default for RunResult {
    fn default() -> Self {
        Self {
            format: FORMAT.into(),
            scenario: String::new(),
            title: String::new(),
            source: String::new(),
            engine: Engine::Vmlab,
            kernel: String::new(),
            seed: 1,
            ok: true,
            table: vec![],
            cells: vec![],
        }
    }
}

/// The result of one combination of the sweep.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CellResult {
    /// Values of the parameters and of the sweep in this cell, as written in the scenario.
    pub params: IndexMap<String, String>,
    /// Folder of the cell's files, beside `result.json`.
    pub dir: String,
    /// One for each window of the scenario.
    pub windows: Vec<WindowResult>,
    /// One for each bound that applies to this cell.
    pub bounds: Vec<BoundResult>,
    /// `tc -s -j` output, by host and device.
    pub tc: BTreeMap<String, serde_json::Value>,
    /// What the sender itself reported, by flow.
    pub flow_reports: BTreeMap<String, serde_json::Value>,
    /// Counters of hosts on segments, by host.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub nodes: BTreeMap<String, serde_json::Value>,
    /// Known stalls of flows, and what each capture shows of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stops: Vec<StopResult>,
}

/// A stall whose cause is known from the scenario, and what `pspacer stalls` says about it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StopResult {
    /// Name of the flow.
    pub flow: String,
    /// True cause, as docs/use/stalls.md names it; `none` if the flow does not stall.
    pub cause: String,
    /// True side: `sender`, `receiver` or `network`; `none` without a stall.
    pub side: String,
    /// Begin of the time in which it was looked for, seconds from t = 0 of the cell.
    pub from_s: f64,
    /// End of that time.
    pub to_s: f64,
    /// The stall that each capture shows, by the capture's name; `None`: no stall was seen
    /// there.
    pub seen: IndexMap<String, Option<SeenStop>>,
}

/// What the analysis of one capture says about a stall.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SeenStop {
    /// Name of the cause.
    pub cause: String,
    /// Name of the root cause behind it, if one was found.
    pub root: Option<String>,
    /// Side that causes it.
    pub side: String,
    /// `low`, `medium` or `high`.
    pub confidence: String,
    /// Begin of the stall, seconds from t = 0 of the cell.
    pub start_s: f64,
    /// Length of the stall, seconds.
    pub duration_s: f64,
}

/// Measurements of one window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WindowResult {
    /// The window's name.
    pub name: String,
    /// Begin of the window, seconds from t = 0 of the cell.
    pub from_s: f64,
    /// End of the window, seconds from t = 0 of the cell.
    pub to_s: f64,
    /// Metrics by direction, `<cable>.<end>`: the frames sent by end `a` or `b`.
    pub wire: IndexMap<String, WireMetrics>,
    /// Metrics of the flows, in the order of the scenario.
    pub flows: Vec<FlowResult>,
}

/// One direction of one cable during a window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WireMetrics {
    /// Line rate.
    pub rate_bps: u64,
    /// Share of the window in which the line was busy, gap frames and
    /// inter-frame gaps included: 0 to 1.
    pub utilisation: f64,
    pub data_frames: u64,
    /// PAUSE and other gap frames.
    pub gap_frames: u64,
    /// Wire bytes of the gap frames.
    pub gap_bytes: u64,
    /// Frames dropped at the far port by its FIFO or policer; on a segment, frames given up
    /// after too many collisions or dropped at a full queue.
    pub dropped_frames: u64,
    /// On a shared segment: stations that collided; each collision counts two or more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collisions: Option<u64>,
}

/// One flow during a window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FlowResult {
    /// The flow's name.
    pub name: String,
    /// Metrics of the flow, in the first run of the cell.
    #[serde(flatten)]
    pub metrics: FlowMetrics,
    /// Values of [`FlowResult::OF_RUNS`] in each run of the cell, if it ran several times.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub runs: BTreeMap<String, Vec<f64>>,
}

impl FlowResult {
    /// Names of the metrics that are kept of each run.
    pub const OF_RUNS: [&'static str; 6] = [
        "rate_bps",
        "goodput_bps",
        "frames",
        "dropped",
        "retransmits",
        "burstiness_mtu",
    ];

    /// Returns a metric: its mean over the runs where each run's value was kept, else that of the
    /// first run.
    pub fn get(&self, name: &str) -> Option<f64> {
        match self.runs.get(name) {
            // There are at most 10,000 runs.
            #[allow(clippy::cast_precision_loss)]
            Some(values) => Some(values.iter().sum::<f64>() / values.len().max(1) as f64),
            None => self.metrics.get(name),
        }
    }

    /// Returns the least and the largest value of a metric over the runs; `None` if its values
    /// were not kept.
    pub fn range(&self, name: &str) -> Option<[f64; 2]> {
        let values = self.runs.get(name)?;
        let fold = |f: fn(f64, f64) -> f64| values.iter().copied().reduce(f);
        Some([fold(f64::min)?, fold(f64::max)?])
    }
}

/// One bound, its measured value, and whether it held.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BoundResult {
    /// The flow's name, or `wire`.
    pub flow: String,
    /// The window's name.
    pub window: String,
    /// A name of [`FlowMetrics::NAMES`].
    pub metric: String,
    /// Smallest value allowed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<f64>,
    /// Largest value allowed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<f64>,
    /// Measured value; absent if there was nothing to measure: then the bound does not hold.
    pub value: Option<f64>,
    /// Whether the bound holds.
    pub ok: bool,
}

impl BoundResult {
    /// Returns whether `value` lies within `min` and `max`; `None` does not.
    pub fn holds(value: Option<f64>, min: Option<f64>, max: Option<f64>) -> bool {
        value.is_some_and(|v| {
            min.is_none_or(|min| v >= min) && max.is_none_or(|max| v <= max) && v.is_finite()
        })
    }
}

/// A metric that may have a numeric value.
trait Metric {
    fn number(&self) -> Option<f64>;

    fn is_absent(&self) -> bool {
        self.number().is_none()
    }
}

impl Metric for u64 {
    // A float is exact: counts stay far below 2^53.
    #[allow(clippy::cast_precision_loss)]
    fn number(&self) -> Option<f64> {
        Some(*self as f64)
    }
}

impl Metric for f64 {
    fn number(&self) -> Option<f64> {
        Some(*self)
    }
}

impl<T: Metric> Metric for Option<T> {
    fn number(&self) -> Option<f64> {
        self.as_ref().and_then(Metric::number)
    }
}

/// Declares the metrics once: as fields, as names, and as a look-up by name.
macro_rules! flow_metrics {
    ($( $(#[$doc:meta])* $name:ident: $type:ty, )*) => {
        /// Metrics of a flow during a window (`docs/use/formats.md`, "Result"). A metric that
        /// could not be measured, because of too few frames, is absent.
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        #[serde(default)]
        pub struct FlowMetrics {
            $( $(#[$doc])* #[serde(skip_serializing_if = "Metric::is_absent")] pub $name: $type, )*
        }

        impl FlowMetrics {
            /// Every name of a metric that a bound may give.
            pub const NAMES: &'static [&'static str] = &[$( stringify!($name), )*];

            /// Returns the metric of this name; `None` if the metric has no value or the name
            /// is unknown.
            pub fn get(&self, name: &str) -> Option<f64> {
                match name {
                    $( stringify!($name) => self.$name.number(), )*
                    _ => None,
                }
            }
        }
    };
}

flow_metrics! {
    /// Data frames that left the sender.
    frames: u64,
    /// Link-layer bytes of those frames: with header, without FCS.
    bytes: u64,
    /// Wire bytes of those frames.
    wire_bytes: u64,
    /// Link-layer rate over the window.
    rate_bps: f64,
    /// Rate on the wire over the window.
    wire_rate_bps: f64,
    /// Rate without the link header over the window.
    ip_rate_bps: f64,
    /// Rate that the scenario sets as the flow's target.
    target_bps: Option<f64>,
    /// Error of the rate at the target's layer, per cent of the target, with its sign.
    error_pct: Option<f64>,
    /// Instantaneous rate between neighbouring frames (paper 000, 4.4, n = 1): smallest.
    rate1_min_bps: Option<f64>,
    rate1_max_bps: Option<f64>,
    rate1_mean_bps: Option<f64>,
    /// Instantaneous rate over two frames (paper 000, 4.4, n = 2): smallest.
    rate2_min_bps: Option<f64>,
    rate2_max_bps: Option<f64>,
    rate2_mean_bps: Option<f64>,
    /// Distance between neighbouring frames, start to start, in byte times of the line:
    /// smallest.
    gap_min_bytes: Option<f64>,
    /// ... first percentile.
    gap_p1_bytes: Option<f64>,
    gap_p50_bytes: Option<f64>,
    /// ... 99th percentile.
    gap_p99_bytes: Option<f64>,
    gap_max_bytes: Option<f64>,
    /// 99th percentile of the distance minus the first percentile.
    gap_spread_bytes: Option<f64>,
    /// Largest queue, in bytes, of a bottleneck that drains at the flow's own
    /// average rate (paper 000, 4.1).
    burstiness_bytes: Option<f64>,
    /// The same queue in full frames of MTU + 14 bytes.
    burstiness_mtu: Option<f64>,
    /// Frames dropped at the far port. In the simulator also those that a full queue
    /// dropped for later ones.
    dropped: u64,
    /// Delay from the first bit leaving to the last bit at the far host: smallest.
    delay_min_us: Option<f64>,
    delay_p50_us: Option<f64>,
    /// ... 99th percentile.
    delay_p99_us: Option<f64>,
    delay_max_us: Option<f64>,
    /// ... 90th percentile; only for streams on segments.
    delay_p90_us: Option<f64>,
    /// ... value that one packet in a thousand exceeds; only for streams on segments.
    delay_p999_us: Option<f64>,
    /// Round-trip time of a stream whose receiver sends it back: median.
    rtt_p50_us: Option<f64>,
    /// ... 90th percentile.
    rtt_p90_us: Option<f64>,
    /// ... 99th percentile.
    rtt_p99_us: Option<f64>,
    rtt_max_us: Option<f64>,
    /// Number of the packet with the largest delay, or with the largest round-trip time if the
    /// stream is sent back.
    worst_number: Option<u64>,
    /// Collisions of a stream's frame before it went through: mean over segments.
    retries_mean: Option<f64>,
    retries_max: Option<u64>,
    /// Share of RT packets that left a node one period or more later than they would on empty
    /// segments, among the packets that passed a node, per cent (paper 004's beta).
    late_pct: Option<f64>,
    /// Share of RT packets that lost one period or more on their whole path, the path back
    /// included, per cent.
    late_way_pct: Option<f64>,
    /// Share of round trips longer than as many periods as the path has segments, per cent. Over
    /// one segment this is the second peak of paper 004, 4.2: its beta.
    second_peak_pct: Option<f64>,
    /// ... its standard error over groups of 50 runs, percentage points, of 400 runs or more.
    second_peak_error_pct: Option<f64>,
    /// RT packets with a one-way delay above (routers + 1) x (period + slot).
    over: Option<u64>,
    /// Those RT packets that no counted precondition explains.
    over_unexplained: Option<u64>,
    /// Time from the first arrival of a stream to the last; the longest of all runs.
    play_s: Option<f64>,
    /// Largest difference between the measured and the predicted shares of RT packets late by
    /// 0, 1, ... periods, percentage points. The prediction uses each node's late_pct.
    fit_diff_pct: Option<f64>,
    /// Probability that packets differ as much from a prediction with one late_pct for all
    /// nodes, if the prediction is true (chi-squared).
    fit_p: Option<f64>,
    /// Wait of a UDP flow's datagrams in the laboratory, from the sender's system call to the
    /// first bit leaving: median.
    wait_p50_us: Option<f64>,
    /// ... 99th percentile.
    wait_p99_us: Option<f64>,
    wait_max_us: Option<f64>,
    /// Time between a datagram's launch time and the first bit leaving, early or late, of flows
    /// with `txtime`: median.
    launch_p50_ns: Option<f64>,
    /// ... 99th percentile.
    launch_p99_ns: Option<f64>,
    launch_max_ns: Option<f64>,
    /// Largest time by which a datagram left before its launch time; 0: none did.
    launch_early_ns: Option<f64>,
    /// CPU time per data frame, only of `wire` in the laboratory: time in which the CPU was
    /// not idle, senders and receivers included, over data frames; one instruction takes 1 ns.
    busy_ns_per_frame: Option<f64>,
    /// Rate of acknowledged payload of a sampled TCP flow; for a stream on segments, rate of
    /// payload that reached its receiver.
    goodput_bps: Option<f64>,
    /// Segments that the flow's sender retransmitted.
    retransmits: Option<u64>,
    /// Congestion window of the flow: the largest.
    cwnd_max_bytes: Option<u64>,
    /// ... at the end of the window.
    cwnd_end_bytes: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> RunResult {
        RunResult {
            format: FORMAT.into(),
            scenario: "busy".into(),
            title: "A title".into(),
            source: String::new(),
            engine: Engine::Vmlab,
            kernel: "6.1.0-1".into(),
            seed: u64::MAX,
            ok: true,
            table: vec![],
            cells: vec![CellResult {
                params: [("z", "1"), ("a", "2")]
                    .map(|(k, v)| (k.into(), v.into()))
                    .into(),
                dir: "cell-0".into(),
                windows: vec![WindowResult {
                    name: "all".into(),
                    from_s: 0.0,
                    to_s: 1.0,
                    wire: IndexMap::new(),
                    flows: vec![FlowResult {
                        name: "bulk".into(),
                        metrics: FlowMetrics {
                            frames: 2,
                            rate_bps: 0.1 + 0.2,
                            gap_p50_bytes: Some(3048.0),
                            ..FlowMetrics::default()
                        },
                        runs: [("rate_bps".to_owned(), vec![0.3, 0.5])].into(),
                    }],
                }],
                bounds: vec![],
                tc: BTreeMap::new(),
                flow_reports: BTreeMap::new(),
                stops: vec![],
                nodes: BTreeMap::new(),
            }],
        }
    }

    #[test]
    fn json_round_trip_is_exact_and_keeps_order() {
        let text = sample().to_json().unwrap();
        let back = RunResult::from_json(&text).unwrap();
        assert_eq!(back, sample());
        assert_eq!(back.to_json().unwrap(), text);
        assert!(text.find("\"z\"").unwrap() < text.find("\"a\"").unwrap());
        assert!(text.contains("\"gap_p50_bytes\": 3048.0"));
        assert!(!text.contains("delay_min_us"));
    }

    #[test]
    fn a_metric_of_several_runs_is_their_mean() {
        let flow = &sample().cells[0].windows[0].flows[0];
        assert_eq!(flow.get("rate_bps"), Some(0.4));
        assert_eq!(flow.range("rate_bps"), Some([0.3, 0.5]));
        assert_eq!(flow.get("frames"), Some(2.0));
        assert_eq!(flow.range("frames"), None);
    }

    #[test]
    fn other_formats_are_rejected() {
        let text = sample().to_json().unwrap().replace(FORMAT, "result-0");
        let error = RunResult::from_json(&text).unwrap_err().to_string();
        assert!(
            error.contains("result-0") && error.contains(FORMAT),
            "{error}"
        );
    }

    #[test]
    fn every_name_is_a_field_of_the_json() {
        let all = FlowMetrics::NAMES
            .iter()
            .map(|name| ((*name).to_owned(), serde_json::json!(1)))
            .collect();
        let metrics: FlowMetrics = serde_json::from_value(serde_json::Value::Object(all)).unwrap();
        for name in FlowMetrics::NAMES {
            assert_eq!(metrics.get(name), Some(1.0), "{name}");
        }
        assert_eq!(metrics.get("frame"), None);
    }

    #[test]
    fn a_bound_without_a_value_does_not_hold() {
        assert!(!BoundResult::holds(None, None, Some(1.0)));
        assert!(!BoundResult::holds(Some(f64::NAN), None, None));
        assert!(BoundResult::holds(Some(1.0), Some(1.0), Some(1.0)));
        assert!(!BoundResult::holds(Some(1.1), None, Some(1.0)));
    }
}
