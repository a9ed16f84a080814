// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds out what an audio stream carries: packets whose lengths are to each other as the ticks that they cover. They need
//! not be equal: many senders divide a block of 1024 samples by what fits a packet.

use std::collections::BTreeMap;

use units::time::PS_PER_S;

use crate::known::{AudioBy, By, Encoding, Given, Kind, pick};
use crate::stream::{Numbered, Stream};

/// Sampling rates of AES67 (7.1) and ST 2110-30 (6.2), the usual one first.
const AUDIO_HZ: [u32; 3] = [48_000, 96_000, 44_100];
/// Most samples of a packet, 100 ms at 96 kHz.
const MOST_SAMPLES: i64 = 9600;
const USUAL_CHANNELS: [u32; 8] = [1, 2, 4, 6, 8, 16, 32, 64];
/// How far a clock may be off, as a part of the time, and the variation of the delay that short captures are spared.
const MOST_DRIFT: f64 = 0.02;
const SPARED_S: f64 = 0.01;

#[derive(Clone, Debug)]
pub struct Audio {
    /// Samples a second of each channel: ticks of the timestamps.
    pub sampling_hz: u32,
    /// Samples of each channel in the usual packet.
    pub samples: u32,
    pub channels: u32,
    /// How samples are written.
    pub encoding: Encoding,
    /// The packets by number, in order of time.
    pub numbered: Vec<Numbered>,
    /// By what each of it was decided.
    pub decided_by: AudioBy,
    /// What was assumed, in sentences.
    pub notes: Vec<String>,
}

/// What the packets' lengths and timestamps say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Bits of an instant of sampling, of all channels.
    instant_bits: u32,
    /// Samples of the usual packet.
    samples: u32,
    /// The fewest and the most.
    range: (u32, u32),
}

/// Returns the shape; `None` if lengths and ticks do not go together in nine of ten packets.
pub(crate) fn shape(stream: &Stream, ordered: &[Numbered]) -> Option<Shape> {
    let (mut bits_found, mut samples_found) =
        (BTreeMap::<u32, u64>::new(), BTreeMap::<u32, u64>::new());
    let mut all = 0u64;
    for pair in ordered.windows(2) {
        if pair[1].sequence != pair[0].sequence + 1 {
            continue;
        }
        all += 1;
        let step = pair[1].timestamp - pair[0].timestamp;
        let bytes = stream
            .packets
            .get(pair[0].at)
            .map_or(0, |packet| packet.payload_bytes);
        let step = u32::try_from(step)
            .ok()
            .filter(|step| (1..=MOST_SAMPLES).contains(&i64::from(*step)));
        let Some(step) = step else { continue };
        let bits = bytes.saturating_mul(8);
        if bits > 0 && bits % step == 0 && (bits / step) % 4 == 0 {
            *bits_found.entry(bits / step).or_default() += 1;
            *samples_found.entry(step).or_default() += 1;
        }
    }
    let (instant_bits, count) = bits_found.into_iter().max_by_key(|(_, count)| *count)?;
    let (samples, _) = samples_found.iter().max_by_key(|(_, count)| **count)?;
    let range = (
        *samples_found.first_key_value()?.0,
        *samples_found.last_key_value()?.0,
    );
    let is_known = encodings(instant_bits).next().is_some();
    (count * 10 >= all * 9 && is_known).then_some(Shape {
        instant_bits,
        samples: *samples,
        range,
    })
}

/// Returns the linear encodings of which whole channels fill an instant, the likeliest first.
fn encodings(instant_bits: u32) -> impl Iterator<Item = (Encoding, u32)> {
    let of = move |encoding: Encoding| {
        let bits = encoding.bits();
        (instant_bits % bits == 0).then_some((encoding, instant_bits / bits))
    };
    let all = || Encoding::LINEAR.into_iter().filter_map(of);
    let is_usual = |(_, channels): &(Encoding, u32)| USUAL_CHANNELS.contains(channels);
    all()
        .filter(is_usual)
        .chain(all().filter(move |one| !is_usual(one)))
}

/// Finds out what a stream carries that is taken for audio.
pub(crate) fn audio(
    stream: &Stream,
    kind: By,
    options: &Given,
    sdp: &Given,
) -> Result<Audio, String> {
    let ordered = stream.ordered(false);
    let shape = shape(stream, &ordered)
        .ok_or("the lengths of its packets and their timestamps do not go together")?;
    let sampling = pick(options.sampling_hz, sdp.sampling_hz);
    let sampling = sampling.or_else(|| Some((sampling_hz(stream, &ordered)?, By::Timestamps)));
    let (sampling_hz, sampling_by) =
        sampling.ok_or("its timestamps are of no known sampling rate; --sampling says it")?;
    let mut notes = Vec::new();
    let words = stream
        .packets
        .iter()
        .filter(|packet| packet.is_am824)
        .count();
    let subframes = shape.instant_bits / Encoding::Am824.bits();
    let declared = sdp.encoding.filter(|(encoding, channels)| {
        encoding.bits().saturating_mul(*channels) == shape.instant_bits
    });
    let ((encoding, channels), encoding_by) = if let Some(declared) = declared {
        (declared, By::Sdp)
    } else if words * 10 >= stream.packets.len() * 9 && subframes % 2 == 0 && subframes > 0 {
        ((Encoding::Am824, subframes), By::Am824Words)
    } else {
        let mut all = encodings(shape.instant_bits);
        let first = all
            .next()
            .ok_or("an instant of sampling has no whole number of samples")?;
        let others: Vec<_> = all
            .map(|(encoding, channels)| format!("{channels} x {}", encoding.name()))
            .collect();
        if !others.is_empty() {
            notes.push(format!(
                "{} bits of each instant of sampling are taken for {} x {}; they could be {} (--sdp says it).",
                shape.instant_bits,
                first.1,
                first.0.name(),
                others.join(" or ")
            ));
        }
        (first, By::PayloadLengths)
    };
    if shape.range.0 != shape.range.1 {
        notes.push(format!(
            "Its packets have {} to {} samples, and AES67 wants equal ones; a packet time is that of {}.",
            shape.range.0, shape.range.1, shape.samples
        ));
    }
    Ok(Audio {
        sampling_hz,
        samples: shape.samples,
        channels,
        encoding,
        numbered: stream.numbered(false),
        decided_by: AudioBy {
            kind,
            sampling_hz: sampling_by,
            encoding: encoding_by,
        },
        notes,
    })
}

/// Returns the known sampling rate by which the delay drifts least: that of the earliest packets of both halves, because
/// what holds packets up makes them later only.
fn sampling_hz(stream: &Stream, ordered: &[Numbered]) -> Option<u32> {
    let (first, last) = (ordered.first()?, ordered.last()?);
    let time_ps = |n: &Numbered| stream.packets.get(n.at).map_or(0, |packet| packet.time_ps);
    let begin_ps = time_ps(first);
    let passed_s = (time_ps(last) - begin_ps) as f64 / PS_PER_S as f64;
    if passed_s <= 0.0 || last.timestamp <= first.timestamp {
        return None;
    }
    let (early, late) = ordered.split_at(ordered.len() / 2);
    let drift_s = |hz: u32| {
        let delay = |n: &Numbered| {
            let ticks = (n.timestamp - first.timestamp) as f64;
            (time_ps(n) - begin_ps) as f64 / PS_PER_S as f64 - ticks / f64::from(hz)
        };
        let least = |half: &[Numbered]| half.iter().map(delay).fold(f64::INFINITY, f64::min);
        // Per half of the capture.
        least(late) - least(early)
    };
    let drifts = AUDIO_HZ.into_iter().map(|hz| (hz, drift_s(hz).abs()));
    let (hz, drift) = drifts.min_by(|(_, a), (_, b)| a.total_cmp(b))?;
    (drift <= passed_s * MOST_DRIFT + SPARED_S).then_some(hz)
}

/// Returns whether a stream is audio.
pub(crate) fn is_audio(stream: &Stream) -> Option<(Kind, By)> {
    let is = shape(stream, &stream.ordered(false)).is_some();
    is.then_some((Kind::Audio, By::PayloadLengths))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodings_by_the_bits_of_an_instant() {
        for (bytes, expected) in [
            (2, "1 x L16"),
            (3, "1 x L24"),
            (4, "2 x L16"),
            (5, "2 x L20"),
            (6, "2 x L24, 3 x L16"),
            (10, "4 x L20, 5 x L16"),
            (12, "4 x L24, 6 x L16"),
            (20, "8 x L20, 10 x L16"),
            (24, "8 x L24, 12 x L16"),
            (48, "16 x L24, 24 x L16"),
            (36, "12 x L24, 18 x L16"),
        ] {
            let found: Vec<_> = encodings(bytes * 8)
                .map(|(encoding, channels)| format!("{channels} x {}", encoding.name()))
                .collect();
            assert_eq!(found.join(", "), expected, "{bytes} bytes");
        }
        assert_eq!(encodings(20).next(), Some((Encoding::L20, 1)));
        assert_eq!(encodings(8).next(), None);
    }
}
