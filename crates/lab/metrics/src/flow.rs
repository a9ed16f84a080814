// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measures one flow in one window (`docs/use/formats.md`, "Result").

use capture::record::{Kind, Record};
use scenario::result::FlowMetrics;
use scenario::{Layer, Target};
use units::ethernet::HEADER_BYTES;
use units::rounding::thousandths;

use crate::burstiness::{Average, Bottleneck};
use crate::gaps::{Distribution, byte_times};
use crate::rates::{SpanRate, WindowRate};

/// Name of the flow that stands for all data frames of the measured directions together.
pub const WIRE: &str = "wire";

/// The parameters that the metrics of a flow depend on, besides its frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Begin of the window, ps.
    pub from_ps: u64,
    /// End of the window, ps: frames that start before it count.
    pub to_ps: u64,
    /// Line rate, in whose byte times gaps are counted; 0 if not known.
    pub rate_bps: u64,
    /// Largest IP packet: with the Ethernet header, it is the unit of `burstiness_mtu`. If 0,
    /// it is not known and the flow's largest frame takes its place.
    pub mtu: u32,
    /// Rate that the flow should achieve.
    pub target: Option<Target>,
}

/// Measures the data frames of one flow, or of several together.
///
/// `records` are those of the flow in order of departure, including any before and after the
/// window: [`WindowRate`] needs the neighbours across its borders. All other metrics count
/// frames that start in the window, whatever happens to the frames later.
///
/// Two passes; 16 bytes of memory for each frame in the window, for the percentiles. Records
/// of gap frames are skipped.
pub fn flow_metrics<'a, I>(records: I, frame: &Frame) -> FlowMetrics
where
    I: Iterator<Item = &'a Record> + Clone,
{
    let data = records.filter(|r| r.kind == Kind::Data);
    let mut first = FirstPass::new(frame);
    data.clone().for_each(|r| first.push(r));
    let mut metrics = FlowMetrics::default();
    if let Some(rate) = first.average.rate() {
        let mut bottleneck = Bottleneck::new(rate);
        for r in data.filter(|r| inside(frame, r)) {
            bottleneck.push(r.start_ps, r.frame_bytes);
        }
        let bytes = bottleneck.largest_bytes();
        let unit = if frame.mtu > 0 {
            frame.mtu.saturating_add(HEADER_BYTES)
        } else {
            first.largest_frame
        };
        metrics.burstiness_bytes = Some(bytes);
        metrics.burstiness_mtu = Some(round_milli(bytes / f64::from(unit.max(1))));
    }
    first.finish(frame, metrics)
}

fn inside(frame: &Frame, r: &Record) -> bool {
    (frame.from_ps..frame.to_ps).contains(&r.start_ps)
}

fn round_milli(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

fn micros(ps: u64) -> f64 {
    thousandths(ps.into(), 1_000_000)
}

/// Collects every metric except burstiness, which needs the average rate first.
struct FirstPass {
    from_ps: u64,
    to_ps: u64,
    frames: u64,
    bytes: u64,
    wire_bytes: u64,
    dropped: u64,
    largest_frame: u32,
    last_ps: Option<u64>,
    window: WindowRate,
    spans: [SpanRate; 2],
    gaps: Distribution,
    delays: Distribution,
    average: Average,
}

impl FirstPass {
    fn new(frame: &Frame) -> Self {
        Self {
            from_ps: frame.from_ps,
            to_ps: frame.to_ps,
            frames: 0,
            bytes: 0,
            wire_bytes: 0,
            dropped: 0,
            largest_frame: 0,
            last_ps: None,
            window: WindowRate::new(frame.from_ps, frame.to_ps),
            spans: [SpanRate::new(1), SpanRate::new(2)],
            gaps: Distribution::default(),
            delays: Distribution::default(),
            average: Average::default(),
        }
    }

    fn push(&mut self, r: &Record) {
        let ip_bytes = r.frame_bytes.saturating_sub(HEADER_BYTES);
        self.window
            .push(r.start_ps, [r.frame_bytes, r.wire_bytes, ip_bytes]);
        if !(self.from_ps..self.to_ps).contains(&r.start_ps) {
            return;
        }
        self.frames += 1;
        self.bytes += u64::from(r.frame_bytes);
        self.wire_bytes += u64::from(r.wire_bytes);
        self.dropped += u64::from(r.fate.is_dropped());
        self.largest_frame = self.largest_frame.max(r.frame_bytes);
        self.average.push(r.start_ps, r.frame_bytes);
        for span in &mut self.spans {
            span.push(r.start_ps, r.frame_bytes);
        }
        if let Some(last_ps) = self.last_ps.replace(r.start_ps) {
            self.gaps.push(r.start_ps - last_ps);
        }
        if r.arrive_ps > r.start_ps {
            self.delays.push(r.arrive_ps - r.start_ps);
        }
    }

    fn finish(mut self, frame: &Frame, burstiness: FlowMetrics) -> FlowMetrics {
        let [link, wire, ip] = self.window.finish();
        let [one, two] = self.spans.map(|s| s.finish());
        let gaps = &mut self.gaps;
        let spread_ps = gaps
            .percentile_ps(99)
            .zip(gaps.percentile_ps(1))
            .map(|(p99, p1)| p99 - p1)
            .filter(|_| frame.rate_bps > 0);
        let mut gap = |percent| {
            let ps = gaps.percentile_ps(percent).filter(|_| frame.rate_bps > 0);
            ps.map(|ps| byte_times(ps, frame.rate_bps))
        };
        let mut delay = |percent| self.delays.percentile_ps(percent).map(micros);
        let error_pct = frame.target.filter(|t| t.rate_bps > 0).map(|target| {
            let achieved = match target.layer {
                Layer::Link => link,
                Layer::Wire => wire,
                Layer::Ip => ip,
            };
            let target = target.rate_bps as f64;
            // To a millionth of a per cent, which is finer than any clock here.
            ((achieved - target) / target * 1e8).round() / 1e6
        });
        FlowMetrics {
            frames: self.frames,
            bytes: self.bytes,
            wire_bytes: self.wire_bytes,
            rate_bps: link,
            wire_rate_bps: wire,
            ip_rate_bps: ip,
            target_bps: frame.target.map(|t| t.rate_bps as f64),
            error_pct,
            rate1_min_bps: one.min_bps,
            rate1_max_bps: one.max_bps,
            rate1_mean_bps: one.mean_bps,
            rate2_min_bps: two.min_bps,
            rate2_max_bps: two.max_bps,
            rate2_mean_bps: two.mean_bps,
            gap_min_bytes: gap(0),
            gap_p1_bytes: gap(1),
            gap_p50_bytes: gap(50),
            gap_p99_bytes: gap(99),
            gap_max_bytes: gap(100),
            gap_spread_bytes: spread_ps.map(|ps| byte_times(ps, frame.rate_bps)),
            dropped: self.dropped,
            delay_min_us: delay(0),
            delay_p50_us: delay(50),
            delay_p99_us: delay(99),
            delay_max_us: delay(100),
            ..burstiness
        }
    }
}
