// SPDX-License-Identifier: MIT OR Apache-2.0
//! Made-up wires, measured like real ones: perfect pacing, ON-OFF, several rates, and noise.
#![allow(dead_code)] // Each test file uses its own part of this.

use capture::flows::{FlowKey, FlowTable, Proto};
use capture::record::{Fate, Record};
use metrics::analyse::{Recorded, Timeline, analyse_cell};
use metrics::curves::Curves;
use scenario::result::{CellResult, RunResult};
use scenario::{Cell, Direction, End, Options, Scenario};
use sender_log::sample::TcpSample;
use units::ethernet::wire_bytes;

/// One byte time at 1 Gbit/s, ps.
pub const BYTE: u64 = 8_000;
const FRAME: u32 = 1514;

/// How a flow sends.
#[derive(Clone, Copy, Debug)]
pub enum Shape {
    /// Frames at exact distances.
    Even,
    /// So many frames back to back, then a silence.
    OnOff(u64),
    /// Frames at exact distances, each up to so many byte times late.
    Noisy(u64),
}

/// A small random generator of our own, so every machine draws the same numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit.max(1)
    }
}

/// Returns the starts of a flow's frames, in byte times.
fn starts(shape: Shape, rate_bps: u64, from: u64, to: u64, seed: u64) -> Vec<u64> {
    let mut random = Random(0x9e37_79b9_7f4a_7c15 ^ (seed << 17));
    let period = u64::from(FRAME) * 1_000_000_000 / rate_bps;
    let count = (to - from) / period;
    let mut free = 0;
    (0..count)
        .map(|i| {
            let wished = from
                + match shape {
                    Shape::Even => i * period,
                    Shape::OnOff(n) => i / n * n * period + i % n * 1538,
                    Shape::Noisy(most) => i * period + random.below(most),
                };
            let start = wished.max(free);
            free = start + 1538;
            start
        })
        .collect()
}

/// Sends all flows of a cell over one wire of 1 Gbit/s; a frame waits until
/// the wire is free. Every hundredth frame of a flow named `lossy` is lost.
pub fn wire(cell: &Cell, shapes: &dyn Fn(usize) -> Shape) -> (Vec<Record>, FlowTable) {
    let mut flows = FlowTable::default();
    let mut wished = Vec::new();
    for (i, flow) in cell.flows.iter().enumerate() {
        let index = flows.index_of(FlowKey::Ports {
            proto: Proto::Udp,
            src: flow.source.into(),
            sport: flow.source_port,
            dst: flow.destination.into(),
            dport: flow.port,
        });
        let rate = flow.target.map_or(100_000_000, |t| t.rate_bps);
        let [from, to] = [flow.start_ns, flow.stop_ns].map(|ns| ns / 8);
        let starts = starts(shapes(i), rate, from, to, i as u64 + 1);
        wished.extend(starts.into_iter().map(|at| (at, index)));
    }
    wished.sort_unstable();
    let mut free = 0;
    let mut sent = 0u64;
    let records = wished
        .into_iter()
        .map(|(at, flow)| {
            let start = at.max(free);
            free = start + u64::from(wire_bytes(FRAME));
            sent += 1;
            let lossy = cell.flows[flow as usize].name == "lossy" && sent % 100 == 0;
            Record {
                start_ps: start * BYTE,
                arrive_ps: if lossy {
                    0
                } else {
                    (start + 1526 + sent % 200) * BYTE
                },
                frame_bytes: FRAME,
                wire_bytes: wire_bytes(FRAME),
                flow,
                fate: if lossy {
                    Fate::DroppedFifo
                } else {
                    Fate::Delivered
                },
                ..Record::default()
            }
        })
        .collect();
    (records, flows)
}

/// Makes a scenario of these flows, `(name, rate, start, stop)`, and `more` TOML.
pub fn scenario(
    name: &str,
    flows: &[(&str, &str, &str, &str)],
    duration: &str,
    more: &str,
) -> Scenario {
    let mut text = format!(
        "name = \"{name}\"\ntitle = \"Made up: {name}\"\nsource = \"tests\"\nduration = \"{duration}\"\n\
         {more}\n[[host]]\nname = \"tx\"\n[[host]]\nname = \"rx\"\n[[cable]]\nname = \"wire\"\n\
         ends = [\"tx:eth0\", \"rx:eth0\"]\nrate = \"1gbit\"\n"
    );
    for (name, rate, start, stop) in flows {
        text.push_str(&format!(
            "[[flow]]\nname = \"{name}\"\ntype = \"udp\"\nfrom = \"tx\"\nto = \"rx\"\n\
             target = \"{rate}\"\nstart = \"{start}\"\nstop = \"{stop}\"\n\
             [[bound]]\nflow = \"{name}\"\nwindow = \"all\"\nmetric = \"burstiness_mtu\"\nmax = 2\n"
        ));
    }
    text.push_str("[[window]]\nname = \"all\"\nfrom = \"0s\"\n");
    scenario::parse("made-up.toml", &text, &Options::default()).unwrap()
}

/// Returns the log of the sender of a flow named `tcp...`: its window rises and falls.
fn samples(flow: &scenario::Flow) -> Vec<TcpSample> {
    if !flow.name.starts_with("tcp") {
        return vec![];
    }
    let sample = |i: u64| TcpSample {
        time_ns: flow.start_ns + i * 10_000_000,
        cwnd_bytes: (i % 8 + 1) * 1_000_000,
        retransmits: i / 8,
        acked_bytes: i * 500_000,
        ..TcpSample::default()
    };
    let count = (flow.stop_ns - flow.start_ns) / 10_000_000;
    (1..=count).map(sample).collect()
}

/// Runs every cell on a made-up wire.
pub fn run(
    scenario: &Scenario,
    shapes: &dyn Fn(&Cell, usize) -> Shape,
) -> (RunResult, Vec<Option<Curves>>) {
    let mut cells = Vec::new();
    let mut curves = Vec::new();
    for cell in &scenario.cells {
        let (records, flows) = wire(cell, &|i| shapes(cell, i));
        let empty = FlowTable::default();
        let timelines = [(End::A, &records[..], &flows), (End::B, &[][..], &empty)];
        let timelines = timelines.map(|(end, records, flows)| Timeline {
            direction: Direction { cable: 0, end },
            records,
            flows,
            timestamps_ps: &[],
        });
        let tcp: Vec<_> = cell.flows.iter().map(samples).collect();
        let recorded = Recorded {
            timelines: &timelines,
            tcp: &tcp,
            ..Recorded::default()
        };
        let found = analyse_cell(cell, &recorded, 400).unwrap();
        cells.push(CellResult {
            params: cell
                .params
                .iter()
                .map(|(k, v)| (k.clone(), v.to_string()))
                .collect(),
            dir: format!("cell-{}", cell.index),
            windows: found.windows,
            bounds: found.bounds,
            ..CellResult::default()
        });
        curves.push(Some(found.curves));
    }
    let result = RunResult {
        scenario: scenario.name.clone(),
        title: scenario.title.clone(),
        source: scenario.source.clone(),
        kernel: "6.1.0-1-cloud-amd64".into(),
        seed: scenario.seed,
        ok: cells.iter().flat_map(|c| &c.bounds).all(|b| b.ok),
        cells,
        ..RunResult::default()
    };
    (result, curves)
}
