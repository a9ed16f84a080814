// SPDX-License-Identifier: MIT OR Apache-2.0
//! Metrics of a whole cell, from a scenario and timelines to the result.

use capture::flows::{FlowKey, FlowTable, Proto};
use capture::record::{Fate, Kind, NO_FLOW, Record};
use metrics::analyse::{AnalyseError, CellAnalysis, Recorded, Timeline, analyse_cell};
use scenario::{Direction, End};
use sender_log::sample::TcpSample;
use units::ethernet::wire_bytes;

const TEXT: &str = r#"
name = "two"
title = "Two flows"
duration = "100ms"
[[host]]
name = "tx"
[[host]]
name = "rx"
[[cable]]
name = "wire"
ends = ["tx:eth0", "rx:eth0"]
rate = "1gbit"
[[flow]]
name = "even"
type = "udp"
from = "tx"
to = "rx"
target = "250mbit"
[[flow]]
name = "late"
type = "udp"
from = "tx"
to = "rx"
start = "50ms"
[[window]]
name = "all"
from = "0ms"
to = "100ms"
[[window]]
name = "second"
from = "50ms"
to = "100ms"
[[bound]]
flow = "even"
window = "all"
metric = "error_pct"
min = -0.001
max = 0.001
[[bound]]
flow = "late"
window = "second"
metric = "burstiness_mtu"
max = 1
[[bound]]
flow = "wire"
window = "second"
metric = "frames"
max = 10
"#;

fn cell() -> scenario::Cell {
    let parsed = scenario::parse("two.toml", TEXT, &scenario::Options::default()).unwrap();
    parsed.cells[0].clone()
}

/// t = 0 of the cell in ps, on a clock that began earlier.
const ZERO: u64 = 7_000_000_000_123;
const MS: u64 = 1_000_000_000;

struct Wire {
    records: Vec<Record>,
    flows: FlowTable,
}

/// Makes a wire with two flows: `even` at 250 Mbit/s with gap frames between, and `late` in
/// pairs from 50 ms on.
fn wire(cell: &scenario::Cell) -> Wire {
    let mut flows = FlowTable::default();
    // A frame of no flow comes first, as ARP might.
    flows.index_of(FlowKey::EtherType(0x0806));
    let keys: Vec<_> = cell
        .flows
        .iter()
        .map(|f| FlowKey::Ports {
            proto: Proto::Udp,
            src: f.source.into(),
            sport: f.source_port,
            dst: f.destination.into(),
            dport: f.port,
        })
        .map(|key| flows.index_of(key))
        .collect();
    let mut records = Vec::new();
    let mut push = |at: u64, frame_bytes: u32, flow: u32, kind: Kind| {
        records.push(Record {
            start_ps: ZERO + at,
            arrive_ps: 0,
            frame_bytes,
            wire_bytes: wire_bytes(frame_bytes),
            flow,
            kind,
            fate: Fate::Sunk,
            queue: 0,
        });
    };
    // `even` sends 1514 bytes every 6056 byte times of 8 ns.
    let period = 6056 * 8000;
    for i in 0..(100 * MS).div_ceil(period) {
        push(i * period, 1514, keys[0], Kind::Data);
        push(i * period + 1538 * 8000, 476, NO_FLOW, Kind::Pause);
        if i * period >= 50 * MS && i % 2 == 0 {
            push(i * period + 2038 * 8000, 1000, keys[1], Kind::Data);
            push(i * period + 3062 * 8000, 1000, keys[1], Kind::Data);
        }
    }
    Wire { records, flows }
}

fn recorded<'a>(timelines: &'a [Timeline<'a>]) -> Recorded<'a> {
    Recorded {
        zero_ps: ZERO,
        timelines,
        busy_ns: &[1_000_000],
        tcp: &[],
    }
}

fn analyse(cell: &scenario::Cell, wire: &Wire) -> Result<CellAnalysis, AnalyseError> {
    let timelines = [End::A, End::B].map(|end| Timeline {
        direction: Direction { cable: 0, end },
        records: if end == End::A { &wire.records } else { &[] },
        flows: &wire.flows,
        timestamps_ps: &[],
    });
    analyse_cell(cell, &recorded(&timelines), 100)
}

#[test]
fn windows_flows_and_wires() {
    let cell = cell();
    let found = analyse(&cell, &wire(&cell)).unwrap();
    let [all, second] = &found.windows[..] else {
        panic!("{}", found.windows.len())
    };
    assert_eq!((all.from_s, all.to_s, second.from_s), (0.0, 0.1, 0.05));

    let names: Vec<_> = all.flows.iter().map(|f| f.name.as_str()).collect();
    assert_eq!(names, ["even", "late", "wire"]);
    let even = &all.flows[0].metrics;
    assert_eq!((even.rate_bps, even.error_pct), (250e6, Some(0.0)));
    assert_eq!(
        (even.gap_spread_bytes, even.burstiness_mtu),
        (Some(0.0), Some(1.0))
    );
    // `late` is measured from its start, in any window.
    assert_eq!(all.flows[1], second.flows[1]);
    let late = &second.flows[1].metrics;
    // `late` sends 2000 bytes in 2 x 6056 byte times, from up to 113 us after its start.
    assert!(
        (late.rate_bps - 2000.0 / 12112.0 * 1e9).abs() < 113e-6 / 50e-3 * 166e6,
        "{}",
        late.rate_bps
    );
    assert_eq!(late.gap_min_bytes, Some(1024.0));
    assert_eq!(all.flows[2].metrics.frames, even.frames + late.frames);
    assert_eq!(all.flows[2].metrics.target_bps, None);

    let a = &all.wire["wire.a"];
    assert_eq!(
        (a.data_frames, a.gap_frames),
        (even.frames + late.frames, even.frames - 1)
    );
    // The last gap frame starts after the window's end, and the last frame ends after it.
    assert_eq!(a.gap_bytes, (even.frames - 1) * 500);
    let busy = all.flows[2].metrics.wire_bytes + a.gap_bytes;
    assert!(
        (a.utilisation - busy as f64 * 8e-9 / 0.1).abs() < 13e-6 / 0.1,
        "{}",
        a.utilisation
    );
    assert_eq!(all.wire["wire.b"].data_frames, 0);
}

#[test]
fn bounds_are_judged() {
    let cell = cell();
    let found = analyse(&cell, &wire(&cell)).unwrap();
    let verdicts: Vec<_> = found
        .bounds
        .iter()
        .map(|b| (b.flow.as_str(), b.ok))
        .collect();
    assert_eq!(verdicts, [("even", true), ("late", false), ("wire", false)]);
    assert_eq!(
        found.bounds[1].value,
        found.windows[1].flows[1].metrics.burstiness_mtu
    );
    // A silent wire has no value, and no bound holds.
    let silent = Wire {
        records: Vec::new(),
        flows: FlowTable::default(),
    };
    let found = analyse(&cell, &silent).unwrap();
    assert_eq!((found.bounds[1].value, found.bounds[1].ok), (None, false));
}

#[test]
fn curves_add_up() {
    let cell = cell();
    let wire = wire(&cell);
    let found = analyse(&cell, &wire).unwrap();
    let curves = &found.curves;
    assert_eq!((curves.interval_s, curves.duration_s), (0.001, 0.1));
    let even = &curves.flows[0];
    assert_eq!((even.bytes.len(), even.target_bps), (100, Some(250e6)));
    assert_eq!(even.queue_bytes[50], 1514.0);
    // The curve's peak is the value of the window that is judged first.
    assert_eq!(
        (curves.queue_window.as_str(), even.queue_s),
        ("all", (0.0, 0.1))
    );
    let late = &curves.flows[1];
    let peak = late.queue_bytes.iter().copied().fold(0.0, f64::max);
    assert_eq!(late.queue_s, (0.05, 0.1));
    assert_eq!(
        Some(peak),
        found.windows[0].flows[1].metrics.burstiness_bytes
    );
    let gaps: u64 = even.gaps.iter().map(|b| b.count).sum();
    assert_eq!(
        (even.gaps.len(), gaps),
        (1, (100 * MS).div_ceil(6056 * 8000) - 1)
    );
    let flows: u64 = curves.flows.iter().flat_map(|f| &f.bytes).sum();
    assert_eq!(curves.wire["wire.a"].data_bytes.iter().sum::<u64>(), flows);
    let json = serde_json::to_string(curves).unwrap();
    assert_eq!(
        serde_json::from_str::<metrics::curves::Curves>(&json).unwrap(),
        *curves
    );
}

#[test]
fn timelines_that_do_not_fit_are_rejected() {
    let cell = cell();
    let error = analyse_cell(&cell, &recorded(&[]), 100).unwrap_err();
    assert_eq!(
        error.to_string(),
        "no timeline of the cable's end that flow even leaves by"
    );
    let flows = FlowTable::default();
    let direction = Direction {
        cable: 3,
        end: End::A,
    };
    let stray = [Timeline {
        direction,
        records: &[],
        flows: &flows,
        timestamps_ps: &[],
    }];
    assert_eq!(
        analyse_cell(&cell, &recorded(&stray), 100),
        Err(AnalyseError::NoCable(3))
    );
}

#[test]
fn the_cost_of_a_frame_is_reported_for_the_wire() {
    let analysis = {
        let cell = cell();
        analyse(&cell, &wire(&cell)).unwrap()
    };
    let window = &analysis.windows[0];
    for flow in &window.flows {
        let expected = (flow.name == "wire").then(|| {
            let frames = flow.metrics.frames as f64;
            (1e6 / frames * 1e3).round() / 1e3
        });
        assert_eq!(flow.metrics.busy_ns_per_frame, expected, "{}", flow.name);
    }
}

#[test]
fn senders_statistics_stand_beside_measurements_and_add_up() {
    let cell = cell();
    let wire = wire(&cell);
    let timelines = [End::A, End::B].map(|end| Timeline {
        direction: Direction { cable: 0, end },
        records: if end == End::A { &wire.records } else { &[] },
        flows: &wire.flows,
        timestamps_ps: &[],
    });
    let sample = |ms: u64, acked_bytes| TcpSample {
        time_ns: ms * 1_000_000,
        cwnd_bytes: 9000 + ms,
        retransmits: ms / 10,
        acked_bytes,
        ..TcpSample::default()
    };
    let tcp = [
        vec![sample(50, 50_000), sample(100, 100_000)],
        vec![sample(60, 7), sample(100, 50_000)],
    ];
    let analysis = analyse_cell(
        &cell,
        &Recorded {
            tcp: &tcp,
            ..recorded(&timelines)
        },
        100,
    );
    let analysis = analysis.unwrap();
    let whole = analysis.windows.iter().find(|w| w.from_s == 0.0).unwrap();
    let of = |name: &str| {
        let flow = whole.flows.iter().find(|f| f.name == name).unwrap();
        (flow.metrics.goodput_bps, flow.metrics.retransmits)
    };
    let names: Vec<_> = whole.flows.iter().map(|f| f.name.as_str()).collect();
    // The first flow carries 100 kB in the cell's 100 ms, the second 50 kB in its own 50 ms.
    assert_eq!(of(names[0]), (Some(8e6), Some(10)));
    assert_eq!(of(names[1]), (Some(8e6), Some(10)));
    assert_eq!(of("wire"), (Some(16e6), Some(20)));
    assert_eq!(whole.flows[0].metrics.cwnd_end_bytes, Some(9100));
    let curves = analysis.curves.flows[1].tcp.as_ref().unwrap();
    assert_eq!(curves.time_s, [0.06, 0.1]);
}
