// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds out what a stream carries, as far as RTP tells it; the rest is given or assumed, and said. A format is named only
//! where several things agree on it: headers, numbers, markers, timestamps, lengths.

use std::collections::BTreeMap;

use crate::format::{Raster, Scan};
use crate::jpeg_xs;
use crate::known::{By, VideoBy, pick};
pub use crate::known::{Given, Kind};
use crate::limits::MOST_PACKETS;
use crate::lines::{self, Lined};
use crate::pictures::{self, Pictures};
use crate::rate::{KNOWN, Rate};
use crate::rfc8331::Field;
use crate::samples;
pub use crate::samples::Audio;
use crate::stream::{Numbered, Packet, Stream};

/// Ticks a second of the timestamps of video (SMPTE ST 2110-20, 5.4; ST 2110-22; RFC 8331).
pub const VIDEO_HZ: i64 = 90_000;
/// Height that is assumed where nothing tells it.
const ASSUMED_HEIGHT: u32 = 1080;
/// Payload types below are those of RFC 3551, none of which is video or audio of ST 2110 but L16.
const FIRST_DYNAMIC: u8 = 35;
const STATIC_L16: [u8; 2] = [10, 11];
/// Captured bytes of a payload that hold the header of each format.
const HEAD_BYTES: u8 = 8;

/// A video stream, or the ancillary data beside one.
#[derive(Clone, Debug)]
pub struct Video {
    /// What it carries.
    pub kind: Kind,
    /// Whether its packets have the headers of JPEG XS.
    pub is_jpeg_xs: bool,
    /// Pictures a second: fields of an interlaced format.
    pub rate: Rate,
    pub raster: Raster,
    /// Pixels of a line, if lines tell them.
    pub width: Option<u32>,
    /// Sampling and depth, if lines tell them.
    pub sampling: Option<&'static str>,
    pub pictures: Pictures,
    /// The packets by number, in order of time.
    pub numbered: Vec<Numbered>,
    /// By what each of it was decided.
    pub decided_by: VideoBy,
    /// What was assumed, in sentences.
    pub notes: Vec<String>,
}

/// What was found out about a stream.
#[derive(Clone, Debug)]
pub enum Contents {
    Video(Video),
    /// It is ancillary data.
    Ancillary(Video),
    Audio(Audio),
}

/// Finds out what a stream carries. What options say goes before what its SDP says, and that before what its packets
/// show.
///
/// # Errors
/// Says what is missing, and the option that gives it.
pub fn contents(stream: &Stream, options: &Given, sdp: &Given) -> Result<Contents, String> {
    let (kind, by) = match pick(options.kind, sdp.kind) {
        Some(given) => given,
        None => kind(stream)?,
    };
    match kind {
        Kind::Audio => samples::audio(stream, by, options, sdp).map(Contents::Audio),
        Kind::Raw | Kind::Compressed => video(stream, kind, by, options, sdp).map(Contents::Video),
        Kind::Ancillary => video(stream, kind, by, options, sdp).map(Contents::Ancillary),
    }
}

/// Returns whether nine of ten packets are so.
fn most(stream: &Stream, is: impl Fn(&Packet) -> bool) -> bool {
    let count = stream.packets.iter().filter(|packet| is(packet)).count();
    count * 10 >= stream.packets.len() * 9
}

fn kind(stream: &Stream) -> Result<(Kind, By), String> {
    let unknown =
        |why: &str| format!("what it carries is not known: {why}; --carry or --sdp says it");
    let payload_type = stream.key.payload_type;
    if payload_type < FIRST_DYNAMIC && !STATIC_L16.contains(&payload_type) {
        let why =
            format!("payload type {payload_type} is one that RFC 3551 gives to other formats");
        return Err(unknown(&why));
    }
    if most(stream, |packet| packet.ancillary.is_some()) {
        return Ok((Kind::Ancillary, By::AncillaryHeaders));
    }
    let by_lines = lines::read(stream, &stream.ordered(stream.is_extended()));
    if by_lines.is_ok() {
        return Ok((Kind::Raw, By::Lines));
    }
    if let Some(audio) = samples::is_audio(stream) {
        return Ok(audio);
    }
    if !most(stream, |packet| {
        u32::from(packet.captured_bytes) >= packet.payload_bytes.min(u32::from(HEAD_BYTES))
    }) {
        return Err(unknown(
            "the capture holds less than 8 bytes of the packets' payload",
        ));
    }
    let ordered = stream.ordered(false);
    if jpeg_xs::agrees(stream, &ordered) {
        return Ok((Kind::Compressed, By::JpegXsHeaders));
    }
    // What resembles raw video and fails a check is nothing else.
    if most(stream, |packet| packet.lines.is_some()) {
        return Err(unknown(&by_lines.err().unwrap_or_default()));
    }
    let pictures = pictures::divide(stream, &ordered, None, |_| false);
    let misses = [
        (
            rate(&pictures.steps).is_none(),
            "its timestamps are not those of frames, nor of samples",
        ),
        (
            pictures.marked * 10 < pictures.ended * 9 || pictures.ended == 0,
            "its markers do not end its frames",
        ),
        (pictures.nominal < 2, "no frame of several packets is whole"),
        (
            (pictures.whole - pictures.unusual) * 10 < pictures.whole * 9,
            "its frames have different numbers of packets, and ST 2110-22 wants a constant one",
        ),
    ];
    match misses.into_iter().find(|(is_missing, _)| *is_missing) {
        Some((_, why)) => Err(unknown(why)),
        None => Ok((Kind::Compressed, By::Markers)),
    }
}

/// Returns whether a packet belongs to the second field.
fn second_field(kind: Kind, is_jpeg_xs: bool) -> impl Fn(&Packet) -> bool {
    move |packet| match kind {
        Kind::Raw => packet.lines.is_some_and(|lines| lines.first.second_field),
        Kind::Ancillary => packet
            .ancillary
            .is_some_and(|data| data.field == Field::Second),
        Kind::Compressed => is_jpeg_xs && packet.jpeg_xs.is_some_and(|header| header.second_field),
        Kind::Audio => false,
    }
}

/// Returns whether the packets show two fields, and by what.
fn scan(
    stream: &Stream,
    kind: Kind,
    is_jpeg_xs: bool,
    lined: Option<&Lined>,
) -> Option<(Scan, By)> {
    let of = |is_interlaced: bool| {
        if is_interlaced {
            Scan::Interlaced
        } else {
            Scan::Progressive
        }
    };
    match kind {
        Kind::Raw => lined.map(|lined| (lined.scan, By::Lines)),
        Kind::Ancillary => {
            let in_field = |field: Field| {
                stream
                    .packets
                    .iter()
                    .any(|p| p.ancillary.is_some_and(|a| a.field == field))
            };
            let is_interlaced = in_field(Field::First) && in_field(Field::Second);
            Some((of(is_interlaced), By::AncillaryHeaders))
        }
        Kind::Compressed if is_jpeg_xs => {
            let is_interlaced = most(stream, |p| {
                p.jpeg_xs.is_some_and(|header| header.is_interlaced)
            });
            Some((of(is_interlaced), By::JpegXsHeaders))
        }
        Kind::Compressed | Kind::Audio => None,
    }
}

fn video(
    stream: &Stream,
    kind: Kind,
    kind_by: By,
    options: &Given,
    sdp: &Given,
) -> Result<Video, String> {
    let mut notes = Vec::new();
    let is_extended = kind == Kind::Raw && stream.is_extended();
    let ordered = stream.ordered(is_extended);
    let lined = (kind == Kind::Raw).then(|| lines::read(stream, &ordered));
    if let Some(Err(why)) = &lined {
        notes.push(format!("It is measured as raw video, although {why}."));
    }
    let lined = lined.and_then(Result::ok);
    let is_jpeg_xs = kind == Kind::Compressed && jpeg_xs::agrees(stream, &ordered);
    let scan =
        pick(options.scan, sdp.scan).or_else(|| scan(stream, kind, is_jpeg_xs, lined.as_ref()));
    let (scan, scan_by) = scan.unwrap_or((Scan::Progressive, By::Assumed));
    let by_lines = lined.as_ref().map(|lined| (lined.height, By::Lines));
    let height = pick(options.height, sdp.height).or(by_lines);
    let (height, height_by) = height.unwrap_or((ASSUMED_HEIGHT, By::Assumed));
    if height_by == By::Assumed && kind != Kind::Ancillary {
        notes.push(format!(
            "Nothing in RTP tells the height; {ASSUMED_HEIGHT} lines are assumed (--height)."
        ));
    }
    let pictures_of_frame = Raster { height, scan }.pictures();
    let numbered = stream.numbered(is_extended);
    let packets = options.packets_per_frame.map(|n| n / pictures_of_frame);
    let pictures = pictures::divide(stream, &numbered, packets, second_field(kind, is_jpeg_xs));
    let zero_steps = pictures.steps.get(&0).copied().unwrap_or(0);
    let all_steps: u64 = pictures.steps.values().sum();
    let is_segmented = scan == Scan::Interlaced && zero_steps * 3 >= all_steps && zero_steps > 0;
    let (rate, rate_by) = match pick(options.rate, sdp.rate) {
        Some((rate, by)) if scan == Scan::Interlaced => (rate.twice(), by),
        Some((rate, by)) => (Some(rate), by),
        None if is_segmented => (rate(&pictures.steps).and_then(Rate::twice), By::Timestamps),
        None => (rate(&pictures.steps), By::Timestamps),
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
    if kind_by == By::Lines && pictures.alike * 10 < pictures.whole * 9 {
        return Err(
            "what it carries is not known: its packets have headers like RFC 4175's, but its frames have \
             different numbers of packets; --carry or --sdp says it"
                .to_owned(),
        );
    }
    if pictures.unusual > 0 && kind != Kind::Ancillary {
        notes.push(format!(
            "{} whole frames or fields have another number of packets than {}; the models want a \
             constant number.",
            pictures.unusual, pictures.nominal
        ));
    }
    Ok(Video {
        kind,
        is_jpeg_xs,
        rate,
        raster: Raster { height, scan },
        width: lined.as_ref().and_then(|lined| lined.width),
        sampling: lined.as_ref().and_then(|lined| lined.sampling),
        pictures,
        numbered,
        decided_by: VideoBy {
            kind: kind_by,
            picture_rate: rate_by,
            height: height_by,
            scan: scan_by,
            picture_packets: packets.map_or(By::Markers, |_| By::Option),
        },
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
