// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measures a stream of ancillary data (SMPTE ST 2110-40): its packets of a frame or field, when they come, and the steps of
//! its timestamps. ST 2110-21's types are those of video; what ST 2110-40 wants of the times of packets stands in no
//! public text, so no verdict is given.

use serde::Serialize;

use crate::audio::{delay_ps_hz, of_one_clock};
use crate::format::Scan;
use crate::infer::{VIDEO_HZ, Video};
use crate::known::VideoBy;
use crate::list::{self, Check};
use crate::range::{Range, range};
use crate::rate::Rate;
use crate::stream::Stream;

/// What a stream of ancillary data shows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AncillaryResult {
    /// Pictures a second: fields of an interlaced format.
    pub picture_rate: Rate,
    /// Whether packets name two fields.
    pub scan: Scan,
    /// Packets of the usual picture.
    pub picture_packets: u32,
    pub packets: u64,
    /// Those without data, which keep the stream alive.
    pub empty_packets: u64,
    /// Ancillary packets in them.
    pub ancillary_packets: u64,
    /// Packets that did not arrive.
    pub lost: u64,
    /// Packets that came twice.
    pub duplicates: u64,
    /// Packets that came after one with a higher number.
    pub reordered: u64,
    /// From the begin N T of a picture's time to its first packet.
    pub fpt_ns: Option<Range<f64>>,
    /// Arrival minus timestamp; `None` where the clocks are not the same.
    pub delay_ns: Option<Range<f64>>,
    /// What EBU's LIST expects of timestamps.
    pub list: Vec<Check>,
    /// By what each of it was decided.
    pub decided_by: VideoBy,
    /// What was assumed, in sentences.
    pub notes: Vec<String>,
}

/// Measures a stream of ancillary data. Time O(packets log packets).
pub fn measure(stream: &Stream, data: Video) -> AncillaryResult {
    let time_ps = |at: usize| stream.packets.get(at).map_or(0, |packet| packet.time_ps);
    let (num, den) = (i128::from(data.rate.num()), i128::from(data.rate.den()));
    let period = den * i128::from(units::time::PS_PER_S);
    let mut last = None;
    let firsts = data.numbered.iter().filter(|n| {
        let is_first = last != Some(n.timestamp);
        last = Some(n.timestamp);
        is_first
    });
    let after_begin = |n: &crate::stream::Numbered| {
        (time_ps(n.at) * num).rem_euclid(period) as f64 / num as f64 / 1e3
    };
    let fpt_ns = range(firsts.map(after_begin));
    let hz = i128::from(VIDEO_HZ);
    let delays = data
        .numbered
        .iter()
        .map(|n| delay_ps_hz(time_ps(n.at), n.timestamp, hz) as f64 / hz as f64 / 1e3);
    let delay_ns = of_one_clock(delays);
    let counts = || stream.packets.iter().filter_map(|packet| packet.ancillary);
    AncillaryResult {
        picture_rate: data.rate,
        scan: data.raster.scan,
        picture_packets: data.pictures.nominal,
        packets: stream.packets.len() as u64,
        empty_packets: counts().filter(|data| data.count == 0).count() as u64,
        ancillary_packets: counts().map(|data| u64::from(data.count)).sum(),
        lost: data.pictures.lost,
        duplicates: data.pictures.duplicates,
        reordered: data.pictures.reordered,
        fpt_ns,
        delay_ns,
        list: list::video(&[], &data.pictures.steps, data.rate, data.raster),
        decided_by: data.decided_by,
        notes: data.notes,
    }
}
