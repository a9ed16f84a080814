// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measures an audio stream (AES67, SMPTE ST 2110-30): the delay of packets after their timestamps,
//! and its variation, the time-stamped delay factor TS-DF of EBU Tech 3337.
//!
//! TS-DF is measured as EBU LIST does (`docs/audio_timing_analysis.md`): of each window of 200 ms
//! the difference between the largest and the least of the relative transit times
//! D(i) = (R(i) - R(0)) - (S(i) - S(0)), R being arrivals and S timestamps. It needs no common
//! clock. Its levels are those that LIST takes from AES67: at best one packet time, at most 17.

use serde::Serialize;
use units::time::{NS_PER_MS, PS_PER_NS, PS_PER_S};

use crate::infer::Audio;
use crate::known::{AudioBy, Encoding};
use crate::list::{self, Check};
use crate::pictures::reordered;
use crate::range::{Range, range};
use crate::stream::Stream;

/// Length of a window of TS-DF.
const WINDOW_PS: i128 = (200 * NS_PER_MS * PS_PER_NS) as i128;
/// Most packet times that TS-DF may be.
const MOST_PACKET_TIMES: f64 = 17.0;
/// A delay beyond this, of either sign, is that of clocks that have nothing to do with each other.
const MOST_DELAY_NS: f64 = 1e9;

/// How even an audio stream is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Evenness {
    /// TS-DF is within one packet time.
    WithinPacketTime,
    /// TS-DF is below 17 packet times.
    Within17PacketTimes,
    /// TS-DF is beyond.
    Beyond,
}

impl Evenness {
    pub fn words(self) -> &'static str {
        match self {
            Self::WithinPacketTime => "within a packet time",
            Self::Within17PacketTimes => "within 17 packet times",
            Self::Beyond => "beyond 17 packet times",
        }
    }
}

/// What an audio stream shows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AudioResult {
    /// Samples a second of each channel.
    pub sampling_hz: u32,
    /// Samples of each channel in a packet.
    pub packet_samples: u32,
    /// Time of a packet's samples.
    pub packet_time_ns: f64,
    pub channels: u32,
    /// How samples are written.
    pub encoding: Encoding,
    /// Bytes of a sample; of L20, whose samples have no whole number, 0.
    pub sample_bytes: u32,
    /// By what each of it was decided.
    pub decided_by: AudioBy,
    /// Packets of the stream.
    pub packets: u64,
    /// Packets that did not arrive.
    pub lost: u64,
    /// Packets that came after one with a higher number.
    pub reordered: u64,
    /// Time from one packet to the next.
    pub interval_ns: Option<Range<f64>>,
    /// Arrival minus timestamp; `None` where the clocks are not the same.
    pub delay_ns: Option<Range<f64>>,
    /// Largest TS-DF of all windows.
    pub tsdf_max_ns: f64,
    /// TS-DF of each window: its begin since the first packet, and its value.
    pub tsdf: Vec<Window>,
    /// How even it is.
    pub evenness: Evenness,
    /// What EBU's LIST expects of the delay.
    pub list: Vec<Check>,
    /// What was assumed, in sentences.
    pub notes: Vec<String>,
}

/// TS-DF of a window.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Window {
    /// Begin, since the first packet.
    pub at_s: f64,
    pub tsdf_ns: f64,
}

/// Measures an audio stream. Time O(packets).
pub fn measure(stream: &Stream, audio: Audio) -> AudioResult {
    let hz = i128::from(audio.sampling_hz.max(1));
    let ps_per_s = i128::from(PS_PER_S);
    let first = audio.numbered.first();
    let first_ps = stream.packets.first().map_or(0, |packet| packet.time_ps);
    let ticks = |timestamp: i64| i128::from(timestamp - first.map_or(0, |n| n.timestamp));
    // Transit times relative to the first packet, in ps × hz: exact.
    let transit = |packet: &crate::stream::Numbered| {
        let time_ps = stream
            .packets
            .get(packet.at)
            .map_or(first_ps, |p| p.time_ps);
        let passed_ps = time_ps - first_ps;
        (
            passed_ps,
            passed_ps * hz - ticks(packet.timestamp) * ps_per_s,
        )
    };
    let ns = |transit: i128| transit as f64 / hz as f64 / 1e3;
    let windows = windows(audio.numbered.iter().map(transit), ns);
    let first_delay = first.map_or(0, |n| delay_ps_hz(first_ps, n.timestamp, hz));
    let delays = audio
        .numbered
        .iter()
        .map(|n| ns(first_delay + transit(n).1));
    let delay_ns = of_one_clock(delays);
    let mut notes = audio.notes;
    if delay_ns.is_none() {
        notes.push(
            "The clock of the capture is not that of the timestamps: their delay is not shown."
                .to_owned(),
        );
    }
    let packet_time_ns = f64::from(audio.samples) * 1e9 / hz as f64;
    let tsdf_max_ns = windows
        .iter()
        .map(|window| window.tsdf_ns)
        .fold(0.0, f64::max);
    let intervals = stream.packets.windows(2);
    let intervals = intervals.map(|pair| (pair[1].time_ps - pair[0].time_ps) as f64 / 1e3);
    let numbers: Vec<i64> = audio.numbered.iter().map(|n| n.sequence).collect();
    AudioResult {
        sampling_hz: audio.sampling_hz,
        packet_samples: audio.samples,
        packet_time_ns,
        channels: audio.channels,
        encoding: audio.encoding,
        sample_bytes: match audio.encoding.bits() {
            bits if bits % 8 == 0 => bits / 8,
            _ => 0,
        },
        decided_by: audio.decided_by,
        packets: stream.packets.len() as u64,
        lost: lost(&numbers),
        reordered: reordered(&audio.numbered),
        interval_ns: range(intervals),
        delay_ns,
        list: list::audio(delay_ns, packet_time_ns),
        tsdf_max_ns,
        tsdf: windows,
        evenness: match tsdf_max_ns / packet_time_ns {
            times if times <= 1.0 => Evenness::WithinPacketTime,
            times if times < MOST_PACKET_TIMES => Evenness::Within17PacketTimes,
            _ => Evenness::Beyond,
        },
        notes,
    }
}

/// Divides packets into windows of a second and returns the TS-DF of each. Packets come as time since
/// the first, ps, and transit time, of which `ns` makes nanoseconds.
fn windows(packets: impl Iterator<Item = (i128, i128)>, ns: impl Fn(i128) -> f64) -> Vec<Window> {
    let mut windows: Vec<Window> = Vec::new();
    let mut open: Option<(i128, i128, i128)> = None;
    let close = |(begin_ps, low, high): (i128, i128, i128)| Window {
        at_s: begin_ps as f64 / 1e12,
        tsdf_ns: ns(high - low),
    };
    for (passed_ps, transit) in packets {
        open = match open {
            Some((begin_ps, low, high)) if passed_ps - begin_ps <= WINDOW_PS => {
                Some((begin_ps, low.min(transit), high.max(transit)))
            }
            before => {
                windows.extend(before.map(close));
                Some((passed_ps, transit, transit))
            }
        };
    }
    windows.extend(open.map(close));
    windows
}

/// Returns how many sequence numbers between the least and the greatest are missing.
pub(crate) fn lost(numbers: &[i64]) -> u64 {
    let mut known = numbers.to_vec();
    known.sort_unstable();
    known.dedup();
    let span = known.first().zip(known.last());
    let all = span.map_or(0, |(first, last)| last.abs_diff(*first) + 1);
    all - known.len() as u64
}

/// Returns the range of delays; `None` if they are those of clocks that have nothing to do with each other.
pub(crate) fn of_one_clock(delays_ns: impl Iterator<Item = f64>) -> Option<Range<f64>> {
    let common = |ns: f64| ns.abs() < MOST_DELAY_NS;
    range(delays_ns).filter(|delay| common(delay.min) && common(delay.max))
}

/// Returns the delay of a packet after its timestamp, in ps × hz, taken for the one that is nearest
/// to 0: timestamps are ticks since the epoch, of which 32 bits are sent (AES67, 7.5; SMPTE ST
/// 2110-10, 7.3).
pub(crate) fn delay_ps_hz(time_ps: i128, timestamp: i64, hz: i128) -> i128 {
    let ps_per_s = i128::from(PS_PER_S);
    let wrap = (1i128 << 32) * ps_per_s;
    let delay = time_ps * hz - i128::from(timestamp) * ps_per_s;
    let delay = delay.rem_euclid(wrap);
    if delay * 2 >= wrap {
        delay - wrap
    } else {
        delay
    }
}
