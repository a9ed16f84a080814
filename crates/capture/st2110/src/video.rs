// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measures a video stream by both models and says which type of sender it is.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::format::{Raster, Schedule};
use crate::infer::Video;
use crate::known::{Kind, VideoBy};
use crate::limits::{Limits, SenderType, limits};
use crate::list::{self, Check, Stamp};
use crate::network::Bucket;
use crate::pictures::{Picture, Pictures, arrivals};
use crate::range::{Range, range};
use crate::rate::Rate;
use crate::receiver::{Arrival, ReadTimes, Reading, follow};
use crate::stream::Stream;

/// How the transmission datum T_VD of each picture is found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Datum {
    /// N T + TR_OFFSET, as the standard has it: the clock of the capture is the sender's, and N is
    /// the number whose datum is nearest to the first packet.
    #[default]
    Epoch,
    /// The first packet of the first picture, and from there on every T.
    First,
    /// The earliest one with which no packet is late, and from there on every T: what remains of the
    /// verdict where the clocks of sender and capture differ by an unknown constant.
    Fit,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// TR_OFFSET; `None`: the default of the format.
    pub offset_ps: Option<i128>,
    /// How T_VD is found.
    pub datum: Datum,
    /// The only read schedule to measure by.
    pub schedule: Option<Schedule>,
}

/// What one read schedule shows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Buffer {
    pub schedule: Schedule,
    /// Read spacing T_RS.
    pub spacing_ns: f64,
    /// TR_OFFSET that was read with; with [`Datum::Fit`] the one found, below T.
    pub offset_ns: f64,
    /// Least VRX after an arrival.
    pub vrx_min: i64,
    pub vrx_max: i64,
    /// Mean of VRX over arrivals.
    pub vrx_mean: f64,
    /// Packets that came after their read time.
    pub late: u64,
    /// How late the latest was.
    pub latest_ns: f64,
    /// Least and largest VRX over time: time since the first packet of the stream, then both.
    #[serde(skip)]
    pub curve: Vec<(f64, [i64; 2])>,
    /// The same of each picture, with its late packets.
    #[serde(skip)]
    pub by_picture: Vec<([i64; 2], u64)>,
}

/// Whether the stream keeps to one type.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TypeVerdict {
    pub sender_type: SenderType,
    /// The schedule that VRX was read by.
    pub schedule: Schedule,
    /// What the type may reach.
    #[serde(flatten)]
    pub limits: Limits,
    pub cinst_max: u64,
    pub vrx_max: i64,
    /// Packets that came after their read time.
    pub late: u64,
    /// Whether the stream keeps to it.
    pub is_met: bool,
    /// Why it does not, in sentences.
    pub why_not: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PictureResult {
    /// Time of its first captured packet, since the first of the stream.
    pub at_s: f64,
    pub packets: u32,
    /// Those that did not arrive.
    pub lost: u32,
    /// First packet time: from N T to the first packet; `None` if that was lost.
    pub fpt_ns: Option<f64>,
    /// Largest Cinst of its packets.
    pub cinst_max: u64,
    /// Least and largest VRX, by the schedule of the verdict.
    pub vrx: [i64; 2],
    /// Packets that came after their read time, by the schedule of the verdict.
    pub late: u64,
}

/// What a video stream shows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VideoResult {
    /// Uncompressed or compressed.
    pub kind: Kind,
    /// Pictures a second: fields of an interlaced format.
    pub picture_rate: Rate,
    /// Whether its packets have the headers of JPEG XS.
    pub is_jpeg_xs: bool,
    #[serde(flatten)]
    pub raster: Raster,
    /// Pixels of a line, if lines tell them.
    pub width: Option<u32>,
    /// Sampling and depth, if lines tell them.
    pub sampling: Option<&'static str>,
    /// By what each of it was decided.
    pub decided_by: VideoBy,
    pub picture_packets: u32,
    /// Largest IP packet that VRX_FULL counts with.
    pub largest_ip_bytes: u32,
    /// Packets of the stream.
    pub packets: u64,
    /// Packets that did not arrive.
    pub lost: u64,
    /// Packets that came twice.
    pub duplicates: u64,
    /// Packets that came after one with a higher number.
    pub reordered: u64,
    /// Pictures left out of VRX: the capture begins or ends in them, or too much of them is lost.
    pub partial_pictures: u64,
    /// How T_VD was found.
    pub datum: Datum,
    /// First packet time: from N T to the first packet of a picture.
    pub fpt_ns: Option<Range<f64>>,
    pub cinst_max: u64,
    pub cinst_histogram: BTreeMap<u64, u64>,
    /// The receiver buffer by each schedule that was measured; the verdict's first.
    pub buffers: Vec<Buffer>,
    /// Whether it keeps to each type.
    pub types: Vec<TypeVerdict>,
    /// The strictest type that it keeps to.
    pub sender_type: Option<SenderType>,
    /// What EBU's LIST expects of timestamps.
    pub list: Vec<Check>,
    /// What was assumed, in sentences.
    pub notes: Vec<String>,
    pub pictures: Vec<PictureResult>,
}

/// Most points of a curve.
const POINTS: usize = 800;
const PS_PER_NS: f64 = 1e3;
const PS_PER_S: f64 = 1e12;

/// Measures a video stream. Time O(packets log packets).
///
/// # Errors
/// Says why nothing can be measured: no picture is whole.
pub fn measure(stream: &Stream, video: Video, options: &Options) -> Result<VideoResult, String> {
    let pictures = &video.pictures;
    let arrivals = arrivals(stream, &video.numbered, &pictures.pictures);
    if arrivals.is_empty() {
        return Err("no frame is whole in the capture".to_owned());
    }
    let origin_ps = stream.packets.first().map_or(0, |packet| packet.time_ps);
    let nominal = pictures.nominal;
    let starts = starts(&arrivals, pictures.pictures.len());
    let network = network(stream, &video, &starts);
    let schedules = match options.schedule {
        Some(one) => vec![one],
        None => vec![Schedule::Gapped, Schedule::Linear],
    };
    let read = |schedule| {
        let offset = options.offset_ps;
        let times = ReadTimes::new(video.rate, nominal, video.raster, schedule, offset);
        let counts = pictures.pictures.iter().map(|picture| picture.packets);
        let (readings, offset) = readings(&times, counts, &starts, &arrivals, options.datum);
        let measured = Measured {
            origin_ps,
            times: &times,
            arrivals: &arrivals,
            offset,
        };
        measured.buffer(schedule, &readings)
    };
    let mut buffers: Vec<_> = schedules.into_iter().map(read).collect();
    let largest_ip_bytes = stream.largest_ip_bytes.max(crate::limits::IP_BYTES);
    let judge = |of: SenderType| {
        let limits = limits(of, video.rate, nominal, video.raster, largest_ip_bytes);
        let fits = |buffer: &&Buffer| match of {
            SenderType::Narrow => buffer.schedule == Schedule::Gapped,
            SenderType::NarrowLinear => buffer.schedule == Schedule::Linear,
            SenderType::Wide => true,
        };
        let verdicts = buffers.iter().filter(fits);
        let verdicts = verdicts.map(|buffer| verdict(of, limits, network.max, buffer));
        // Of a wide sender the schedule is not known: the one that it keeps to better counts.
        verdicts.min_by_key(|v| (!v.is_met, v.late, v.vrx_max))
    };
    let all = [
        SenderType::Narrow,
        SenderType::NarrowLinear,
        SenderType::Wide,
    ];
    let types: Vec<_> = all.into_iter().filter_map(judge).collect();
    let best = types.iter().find(|v| v.is_met);
    let sender_type = best.map(|v| v.sender_type);
    // Where no type is met, that of the widest limits shows how far the stream is from it.
    if let Some(shown) = best.or(types.last()).map(|v| v.schedule) {
        buffers.sort_by_key(|buffer| buffer.schedule != shown);
    }
    let times = ReadTimes::new(video.rate, nominal, video.raster, Schedule::Linear, None);
    let stamps = pictures.pictures.iter().zip(&starts);
    let stamps: Vec<_> = stamps
        .map(|(picture, start)| Stamp {
            timestamp: picture.timestamp,
            number: times.nearest(start.datum(&times)),
            first_ps: start.first_ps,
        })
        .collect();
    let results = results(
        pictures,
        &starts,
        &times,
        origin_ps,
        &network,
        buffers.first(),
    );
    Ok(VideoResult {
        kind: video.kind,
        picture_rate: video.rate,
        is_jpeg_xs: video.is_jpeg_xs,
        raster: video.raster,
        width: video.width,
        sampling: video.sampling,
        decided_by: video.decided_by,
        picture_packets: nominal,
        largest_ip_bytes,
        packets: stream.packets.len() as u64,
        lost: pictures.lost,
        duplicates: pictures.duplicates,
        reordered: pictures.reordered,
        partial_pictures: pictures.partial,
        datum: options.datum,
        fpt_ns: range(results.iter().filter_map(|picture| picture.fpt_ns)),
        cinst_max: network.max,
        cinst_histogram: network.histogram,
        buffers,
        types,
        sender_type,
        list: list::video(&stamps, &pictures.steps, video.rate, video.raster),
        notes: video.notes,
        pictures: results,
    })
}

/// Returns what each picture shows, by the schedule of the verdict.
fn results(
    pictures: &Pictures,
    starts: &[Start],
    times: &ReadTimes,
    origin_ps: i128,
    network: &Network,
    buffer: Option<&Buffer>,
) -> Vec<PictureResult> {
    let of = |(at, (picture, start)): (usize, (&Picture, &Start))| {
        let shown = buffer.and_then(|buffer| buffer.by_picture.get(at));
        let (vrx, late) = shown.copied().unwrap_or_default();
        PictureResult {
            at_s: (start.time_ps - origin_ps) as f64 / PS_PER_S,
            packets: picture.packets,
            lost: picture.lost,
            fpt_ns: first_packet_ps(times, start).map(|ps| ps / PS_PER_NS),
            cinst_max: network.by_picture.get(at).copied().unwrap_or(0),
            vrx,
            late,
        }
    };
    pictures
        .pictures
        .iter()
        .zip(starts)
        .enumerate()
        .map(of)
        .collect()
}

/// Returns the time from a picture's nominal begin to its first packet, ps; `None` if that was lost.
fn first_packet_ps(times: &ReadTimes, start: &Start) -> Option<f64> {
    let number = times.nearest(start.datum(times));
    let reference = times.datum(number) - times.offset();
    let scale = times.scale();
    start
        .first_ps
        .map(|ps| (ps * scale - reference) as f64 / scale as f64)
}

/// What the network compatibility model shows.
struct Network {
    max: u64,
    histogram: BTreeMap<u64, u64>,
    by_picture: Vec<u64>,
}

fn network(stream: &Stream, video: &Video, starts: &[Start]) -> Network {
    let mut bucket = Bucket::new(video.rate, video.pictures.nominal);
    let mut by_picture = vec![0u64; starts.len()];
    let mut picture = 0;
    for packet in &stream.packets {
        let level = bucket.add(packet.time_ps);
        while starts
            .get(picture + 1)
            .is_some_and(|next| next.time_ps <= packet.time_ps)
        {
            picture += 1;
        }
        if let Some(max) = by_picture.get_mut(picture) {
            *max = level.max(*max);
        }
    }
    Network {
        max: bucket.max(),
        histogram: bucket.histogram().clone(),
        by_picture,
    }
}

/// The first packet of a picture that came, in the order of numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Start {
    index: u32,
    time_ps: i128,
    /// When the very first packet came, if it did.
    pub(crate) first_ps: Option<i128>,
}

impl Start {
    /// Returns when the first packet was due by this one, in units.
    fn datum(&self, times: &ReadTimes) -> i128 {
        self.time_ps * times.scale() - i128::from(self.index) * times.spacing()
    }
}

pub(crate) fn starts(arrivals: &[Arrival], pictures: usize) -> Vec<Start> {
    let mut starts: Vec<Option<Start>> = vec![None; pictures];
    for arrival in arrivals {
        let Some(start) = starts.get_mut(arrival.picture) else {
            continue;
        };
        if start.is_none_or(|start| arrival.index < start.index) {
            *start = Some(Start {
                index: arrival.index,
                time_ps: arrival.time_ps,
                first_ps: (arrival.index == 0).then_some(arrival.time_ps),
            });
        }
    }
    let none = Start {
        index: 0,
        time_ps: 0,
        first_ps: None,
    };
    starts
        .into_iter()
        .map(|start| start.unwrap_or(none))
        .collect()
}

/// Returns when each picture is read, and TR_OFFSET in units.
fn readings(
    times: &ReadTimes,
    counts: impl Iterator<Item = u32>,
    starts: &[Start],
    arrivals: &[Arrival],
    datum: Datum,
) -> (Vec<Reading>, i128) {
    let first = starts.first().map_or(0, |start| start.datum(times));
    // The number of a picture after the first, by its start.
    let after = |start: &Start| {
        let passed = start.datum(times) - first;
        (2 * passed + times.period()).div_euclid(2 * times.period())
    };
    let base = match datum {
        Datum::Epoch => None,
        Datum::First => Some(first),
        Datum::Fit => {
            let slack = |arrival: &Arrival| {
                let number = starts.get(arrival.picture).map_or(0, after);
                arrival.time_ps * times.scale()
                    - i128::from(arrival.index) * times.spacing()
                    - number * times.period()
            };
            arrivals.iter().map(slack).max()
        }
    };
    let datum_of = |start: &Start| match base {
        None => times.datum(times.nearest(start.datum(times))),
        Some(base) => base + after(start) * times.period(),
    };
    let readings = starts.iter().zip(counts).map(|(start, packets)| Reading {
        datum: datum_of(start),
        packets,
    });
    let offset = base.map_or(times.offset(), |base| base.rem_euclid(times.period()));
    (readings.collect(), offset)
}

/// The packets, and when they are read.
struct Measured<'a> {
    origin_ps: i128,
    times: &'a ReadTimes,
    arrivals: &'a [Arrival],
    offset: i128,
}

impl Measured<'_> {
    fn buffer(&self, schedule: Schedule, readings: &[Reading]) -> Buffer {
        let last_ps = self.arrivals.last().map_or(0, |arrival| arrival.time_ps);
        let length_ps = (last_ps - self.origin_ps).max(1);
        let mut curve: Vec<Option<[i64; 2]>> = vec![None; POINTS];
        let mut by_picture: Vec<Option<([i64; 2], u64)>> = vec![None; readings.len()];
        let mut all: Option<[i64; 2]> = None;
        let (mut sum, mut late, mut latest_ps) = (0f64, 0u64, 0i128);
        let widen = |range: Option<[i64; 2]>, vrx: i64| match range {
            None => Some([vrx, vrx]),
            Some([low, high]) => Some([low.min(vrx), high.max(vrx)]),
        };
        follow(self.times, readings, self.arrivals, |arrival, state| {
            all = widen(all, state.vrx);
            sum += state.vrx as f64;
            let is_late = u64::from(state.late_ps > 0);
            late += is_late;
            latest_ps = latest_ps.max(state.late_ps);
            let at = (arrival.time_ps - self.origin_ps) * (POINTS as i128 - 1) / length_ps;
            if let Some(point) = usize::try_from(at).ok().and_then(|at| curve.get_mut(at)) {
                *point = widen(*point, state.vrx);
            }
            if let Some(picture) = by_picture.get_mut(arrival.picture) {
                let (range, count) = picture.unwrap_or(([state.vrx; 2], 0));
                let range = widen(Some(range), state.vrx).unwrap_or(range);
                *picture = Some((range, count + is_late));
            }
        });
        let [vrx_min, vrx_max] = all.unwrap_or_default();
        let step_s = length_ps as f64 / PS_PER_S / (POINTS as f64 - 1.0);
        let points = curve.into_iter().enumerate();
        let ns = |units: i128| units as f64 / self.times.scale() as f64 / PS_PER_NS;
        Buffer {
            schedule,
            spacing_ns: ns(self.times.spacing()),
            offset_ns: ns(self.offset),
            vrx_min,
            vrx_max,
            vrx_mean: sum / self.arrivals.len().max(1) as f64,
            late,
            latest_ns: latest_ps as f64 / PS_PER_NS,
            curve: points
                .filter_map(|(at, range)| Some((at as f64 * step_s, range?)))
                .collect(),
            by_picture: by_picture
                .into_iter()
                .map(Option::unwrap_or_default)
                .collect(),
        }
    }
}

fn verdict(of: SenderType, limits: Limits, cinst_max: u64, buffer: &Buffer) -> TypeVerdict {
    let mut why_not = Vec::new();
    if cinst_max > limits.cmax {
        why_not.push(format!(
            "Cinst reaches {cinst_max}, and Cmax is {}.",
            limits.cmax
        ));
    }
    if i128::from(buffer.vrx_max) > i128::from(limits.vrx_full) {
        why_not.push(format!(
            "VRX reaches {}, and VRXfull is {}.",
            buffer.vrx_max, limits.vrx_full
        ));
    }
    if buffer.late > 0 {
        let latest_us = buffer.latest_ns / 1e3;
        why_not.push(match buffer.late {
            1 => format!("A packet comes {latest_us:.3} µs after its read time."),
            late => format!(
                "{late} packets come after their read time, the latest by {latest_us:.3} µs."
            ),
        });
    }
    TypeVerdict {
        sender_type: of,
        schedule: buffer.schedule,
        limits,
        cinst_max,
        vrx_max: buffer.vrx_max,
        late: buffer.late,
        is_met: why_not.is_empty(),
        why_not,
    }
}
