// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds out what a stream carries, as far as RTP tells it; the rest is given or assumed, and said.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::format::{Raster, Scan};
use crate::limits::MOST_PACKETS;
use crate::pictures::{self, Pictures};
use crate::rate::{KNOWN, Rate};
use crate::stream::{Numbered, Stream};

/// Ticks a second of the timestamps of video (SMPTE ST 2110-20, 5.4; ST 2110-22).
pub const VIDEO_HZ: i64 = 90_000;
/// Sampling rates of AES67 (7.1) and ST 2110-30 (6.2), the usual one first.
const AUDIO_HZ: [u32; 3] = [48_000, 96_000, 44_100];
/// Height that is assumed where nothing tells it.
const ASSUMED_HEIGHT: u32 = 1080;

/// What a stream carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Uncompressed video, RFC 4175 and ST 2110-20.
    Raw,
    /// Compressed video of a constant number of packets, ST 2110-22.
    Compressed,
    /// Audio, AES67 and ST 2110-30.
    Audio,
}

/// What is known besides the packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Given {
    /// What the stream carries.
    pub kind: Option<Kind>,
    /// Frames a second.
    pub rate: Option<Rate>,
    /// Lines of a frame.
    pub height: Option<u32>,
    /// Whether frames have two fields.
    pub is_interlaced: bool,
    /// Packets of a frame.
    pub packets_per_frame: Option<u32>,
    /// Samples a second of each channel.
    pub sampling_hz: Option<u32>,
}

/// A video stream.
#[derive(Clone, Debug)]
pub struct Video {
    /// Uncompressed or compressed.
    pub kind: Kind,
    /// Pictures a second: fields of an interlaced format.
    pub rate: Rate,
    /// The raster.
    pub raster: Raster,
    /// The pictures.
    pub pictures: Pictures,
    /// The packets by number, in order of time.
    pub numbered: Vec<Numbered>,
    /// What was assumed, in sentences.
    pub notes: Vec<String>,
}

/// An audio stream.
#[derive(Clone, Debug)]
pub struct Audio {
    /// Samples a second of each channel: ticks of the timestamps.
    pub sampling_hz: u32,
    /// Samples of each channel in a packet.
    pub samples: u32,
    /// Channels, if samples have `sample_bytes`.
    pub channels: u32,
    /// Bytes of a sample: 2 (L16) or 3 (L24).
    pub sample_bytes: u32,
    /// The packets by number, in order of time.
    pub numbered: Vec<Numbered>,
    /// What was assumed, in sentences.
    pub notes: Vec<String>,
}

/// What was found out about a stream.
#[derive(Clone, Debug)]
pub enum Contents {
    /// It is video.
    Video(Video),
    /// It is audio.
    Audio(Audio),
}

/// Finds out what a stream carries.
///
/// # Errors
/// Says what is missing, and the option that gives it.
pub fn contents(stream: &Stream, given: &Given) -> Result<Contents, String> {
    match given.kind.unwrap_or_else(|| kind(stream)) {
        Kind::Audio => audio(stream, given).map(Contents::Audio),
        kind => video(stream, given, kind).map(Contents::Video),
    }
}

fn kind(stream: &Stream) -> Kind {
    let count = stream.packets.len();
    let with_lines = stream.packets.iter().filter(|p| p.lines.is_some()).count();
    if with_lines * 10 >= count * 9 {
        return Kind::Raw;
    }
    let steps = audio_steps(&stream.numbered(false));
    let all: u64 = steps.values().sum();
    let usual = steps.iter().max_by_key(|(_, count)| **count);
    match usual {
        Some((step, count)) if *step > 0 && count * 10 >= all * 9 => Kind::Audio,
        _ => Kind::Compressed,
    }
}

/// Returns the ticks from each packet to the next in number, with their counts.
fn audio_steps(numbered: &[Numbered]) -> BTreeMap<i64, u64> {
    let mut steps = BTreeMap::new();
    for pair in numbered.windows(2) {
        if pair[1].sequence == pair[0].sequence + 1 {
            *steps
                .entry(pair[1].timestamp - pair[0].timestamp)
                .or_default() += 1;
        }
    }
    steps
}

fn video(stream: &Stream, given: &Given, kind: Kind) -> Result<Video, String> {
    let mut notes = Vec::new();
    let lines = || stream.packets.iter().filter_map(|packet| packet.lines);
    let is_raw = kind == Kind::Raw;
    let has_fields = is_raw && lines().any(|line| line.first.second_field);
    let scan = if given.is_interlaced || has_fields {
        Scan::Interlaced
    } else {
        Scan::Progressive
    };
    let last_row = lines().map(|line| line.last_row).max().filter(|_| is_raw);
    let pictures_of_frame = if scan == Scan::Interlaced { 2 } else { 1 };
    let height = match (given.height, last_row) {
        (Some(height), _) => height,
        (None, Some(row)) => (u32::from(row) + 1) * pictures_of_frame,
        (None, None) => {
            notes.push(format!(
                "Nothing in RTP tells the height; {ASSUMED_HEIGHT} lines are assumed (--height)."
            ));
            ASSUMED_HEIGHT
        }
    };
    let numbered = stream.numbered(is_raw);
    let packets = given.packets_per_frame.map(|n| n / pictures_of_frame);
    let pictures = pictures::divide(stream, &numbered, packets);
    let zero_steps = pictures.steps.get(&0).copied().unwrap_or(0);
    let all_steps: u64 = pictures.steps.values().sum();
    let is_segmented = scan == Scan::Interlaced && zero_steps * 3 >= all_steps && zero_steps > 0;
    let rate = match given.rate {
        Some(rate) if scan == Scan::Interlaced => rate.twice(),
        Some(rate) => Some(rate),
        None => {
            let rate = rate(&pictures.steps);
            if is_segmented {
                rate.and_then(Rate::twice)
            } else {
                rate
            }
        }
    };
    let rate = rate.ok_or_else(|| no_rate(&pictures.steps))?;
    if pictures.nominal == 0 {
        return Err(
            "no frame is whole in the capture; --packets-per-frame says how many packets \
                    one has"
                .to_owned(),
        );
    }
    if pictures.nominal > MOST_PACKETS {
        return Err(format!(
            "{} packets in a frame are more than the {MOST_PACKETS} that are measured",
            pictures.nominal
        ));
    }
    if pictures.unusual > 0 {
        notes.push(format!(
            "{} whole frames or fields have another number of packets than {}; the models want a \
             constant number.",
            pictures.unusual, pictures.nominal
        ));
    }
    Ok(Video {
        kind,
        rate,
        raster: Raster { height, scan },
        pictures,
        numbered,
        notes,
    })
}

/// Returns the known rate that most steps are of: each is within a tick of it.
fn rate(steps: &BTreeMap<i64, u64>) -> Option<Rate> {
    let moving: u64 = steps
        .iter()
        .filter(|(step, _)| **step > 0)
        .map(|(_, n)| n)
        .sum();
    let judge = |rate: &Rate| {
        let (num, den) = (i64::from(rate.num()), i64::from(rate.den()));
        // Distance of a step from the period, in ticks / num.
        let error = |step: i64| {
            step.saturating_mul(num)
                .saturating_sub(VIDEO_HZ * den)
                .saturating_abs()
        };
        let near = || steps.iter().filter(|(step, _)| error(**step) < num);
        let count: u64 = near().map(|(_, n)| n).sum();
        let sum: f64 = near()
            .map(|(step, n)| error(*step) as f64 / num as f64 * *n as f64)
            .sum();
        (count, sum)
    };
    let judged = KNOWN.iter().map(|rate| (judge(rate), *rate));
    let best = judged
        .max_by(|((a, a_error), _), ((b, b_error), _)| a.cmp(b).then(b_error.total_cmp(a_error)))?;
    let ((count, _), rate) = best;
    (count > 0 && count * 2 >= moving).then_some(rate)
}

fn no_rate(steps: &BTreeMap<i64, u64>) -> String {
    let usual = steps
        .iter()
        .filter(|(step, _)| **step > 0)
        .max_by_key(|(_, n)| **n);
    match usual {
        Some((step, _)) => format!(
            "its timestamps advance by {step} ticks of 90 kHz, which is no known rate of frames; \
             --frame-rate says it"
        ),
        None => "no two frames follow each other in the capture, so their rate is not known; \
                 --frame-rate says it"
            .to_owned(),
    }
}

fn audio(stream: &Stream, given: &Given) -> Result<Audio, String> {
    let mut notes = Vec::new();
    let numbered = stream.numbered(false);
    let steps = audio_steps(&numbered);
    let usual = steps
        .iter()
        .filter(|(step, _)| **step > 0)
        .max_by_key(|(_, n)| **n);
    let samples = usual.and_then(|(step, _)| u32::try_from(*step).ok());
    let samples = samples.ok_or("its timestamps do not advance from packet to packet")?;
    let sampling_hz = match given.sampling_hz {
        Some(hz) => hz,
        None => sampling_hz(stream, &numbered)
            .ok_or("its timestamps are of no known sampling rate; --sampling says it")?,
    };
    let bytes = stream
        .packets
        .first()
        .map_or(0, |packet| packet.payload_bytes);
    let frame_bytes = if bytes % samples == 0 {
        bytes / samples
    } else {
        0
    };
    let (sample_bytes, channels) = match frame_bytes {
        0 => (0, 0),
        n if n % 3 == 0 => (3, n / 3),
        n if n % 2 == 0 => (2, n / 2),
        _ => (0, 0),
    };
    if frame_bytes % 6 == 0 && frame_bytes > 0 {
        notes.push(format!(
            "{frame_bytes} bytes for each instant of sampling are taken for {channels} channels of \
             24 bit; they could be {} of 16.",
            frame_bytes / 2
        ));
    }
    Ok(Audio {
        sampling_hz,
        samples,
        channels,
        sample_bytes,
        numbered,
        notes,
    })
}

/// Returns the known sampling rate that is nearest to ticks over time.
fn sampling_hz(stream: &Stream, numbered: &[Numbered]) -> Option<u32> {
    let (first, last) = (numbered.first()?, numbered.last()?);
    let time = |at: usize| stream.packets.get(at).map(|packet| packet.time_ps);
    let passed_ps = time(last.at)? - time(first.at)?;
    if passed_ps <= 0 {
        return None;
    }
    let ticks = (last.timestamp - first.timestamp) as f64;
    let hz = ticks * 1e12 / passed_ps as f64;
    let nearest = AUDIO_HZ.into_iter().min_by(|a, b| {
        let distance = |known: u32| (hz / f64::from(known)).ln().abs();
        distance(*a).total_cmp(&distance(*b))
    })?;
    // Few packets tell the rate poorly; what is far from all is none of them.
    (0.7..1.4)
        .contains(&(hz / f64::from(nearest)))
        .then_some(nearest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(steps: &[(i64, u64)]) -> Option<String> {
        rate(&steps.iter().copied().collect()).map(|rate| rate.to_string())
    }

    #[test]
    fn rates_by_their_steps() {
        for (steps, expected) in [
            (&[(1500, 10)][..], "60"),
            (&[(1501, 5), (1502, 5)], "59.94"),
            (&[(1501, 1)], "59.94"),
            (&[(1502, 1)], "59.94"),
            (&[(3003, 10)], "29.97"),
            (&[(3000, 1)], "30"),
            (&[(3753, 1), (3754, 3)], "23.976"),
            (&[(3750, 1)], "24"),
            (&[(750, 4)], "120"),
            (&[(750, 1), (751, 3)], "119.88"),
            (&[(1800, 9), (3600, 2)], "50"),
            (&[(0, 10), (3600, 10)], "25"),
        ] {
            assert_eq!(of(steps).as_deref(), Some(expected), "{steps:?}");
        }
        for steps in [
            &[][..],
            &[(0, 5)],
            &[(1234, 5)],
            &[(-1500, 5)],
            &[(1500, 1), (7, 9)],
        ] {
            assert_eq!(of(steps), None, "{steps:?}");
        }
    }
}
