// SPDX-License-Identifier: MIT OR Apache-2.0
//! Streams of GStreamer 1.22 and FFmpeg 5.1, made by tests/media-senders/run.sh and cut by small.py there. What each is
//! stands in streams.txt there, which was written first.

use std::io::Read;

use flate2::read::GzDecoder;
use st2110::format::Scan;
use st2110::infer::{Audio, Contents, Given, Video, contents};

use crate::common::{ORIGIN_PS, Timed, stream};

const TRUTHS: &str = include_str!("../../../../tests/media-senders/streams.txt");
/// Time and length, RTP's header, and headers of lines.
const RECORD_BYTES: usize = 6 + 12 + 20;

/// Reads packets that small.py wrote; samples are zeros.
fn packets(packed: &[u8]) -> Vec<Timed> {
    let mut bytes = Vec::new();
    GzDecoder::new(packed).read_to_end(&mut bytes).unwrap();
    let (count, columns) = bytes.split_first_chunk::<4>().unwrap();
    let count = u32::from_be_bytes(*count) as usize;
    assert_eq!(columns.len(), count * RECORD_BYTES);
    let mut records = vec![[0u8; RECORD_BYTES]; count];
    for (at, column) in columns.chunks(count).enumerate() {
        let mut value = 0u8;
        for (record, step) in records.iter_mut().zip(column) {
            value = value.wrapping_add(*step);
            record[at] = value;
        }
    }
    let packet = |(i, record): (usize, &[u8; RECORD_BYTES])| {
        let us = u32::from_be_bytes(record[..4].try_into().unwrap());
        let length = usize::from(u16::from_be_bytes([record[4], record[5]]));
        let mut bytes = record[6..].to_vec();
        bytes.resize(12 + length, 0);
        Timed {
            // Video's times are not kept.
            time_ps: ORIGIN_PS + i128::from(us) * 1_000_000 + i as i128,
            bytes,
        }
    };
    records.iter().enumerate().map(packet).collect()
}

fn of_video(video: &Video) -> String {
    let (scan, rate) = match video.raster.scan {
        Scan::Progressive => ("p", Some(video.rate)),
        Scan::Interlaced => ("i", video.rate.half()),
    };
    format!(
        "raw {}x{}{scan}{}, {}",
        video.width.unwrap_or(0),
        video.raster.height,
        rate.unwrap(),
        video.sampling.unwrap_or("?")
    )
}

fn of_audio(audio: &Audio) -> String {
    let khz = f64::from(audio.sampling_hz) / 1e3;
    format!("{} x {}, {khz} kHz", audio.channels, audio.encoding.name())
}

#[test]
fn real_senders_are_what_their_commands_say() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/real");
    let mut seen = 0;
    for line in TRUTHS.lines().filter(|line| !line.starts_with('#')) {
        let fields: Vec<_> = line.split('|').map(str::trim).collect();
        let [name, _, truth, ..] = fields[..] else {
            panic!("{line}");
        };
        let Ok(packed) = std::fs::read(folder.join(format!("{name}.gz"))) else {
            continue;
        };
        seen += 1;
        let none = Given::default();
        let found = match contents(&stream(&packets(&packed)), &none, &none) {
            Ok(Contents::Video(video)) => of_video(&video),
            Ok(Contents::Audio(audio)) => of_audio(&audio),
            other => panic!("{name}: {other:?}"),
        };
        // What shares its pixel groups is named beside it.
        let first = found.split(" or ").next();
        assert_eq!(first, Some(truth), "{name}");
    }
    assert_eq!(seen, std::fs::read_dir(folder).unwrap().count());
}
