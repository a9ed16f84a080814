// SPDX-License-Identifier: MIT OR Apache-2.0
//! Streams that no sender here makes: ancillary data, L20, AM824, JPEG XS. Their truth is what they are made of. The same
//! are written as captures for tests/media-senders/run.sh.

use std::fs;

use st2110::am824;
use st2110::ancillary::{self, AncillaryResult};
use st2110::audio::{self, AudioResult, Evenness};
use st2110::format::Scan;
use st2110::infer::{Contents, Given, contents};
use st2110::known::{By, Encoding};
use st2110::limits::SenderType;
use st2110::rfc8331::{self, Ancillary, Field};
use st2110::rfc9134::JpegXs;
use st2110::rtp::Header;
use st2110::video::{Datum, Options};

use crate::common::{ORIGIN_PS, Timed, measured, stream};

const PS_PER_S: i128 = 1_000_000_000_000;

/// A packet at a time, with a payload.
fn packet(time_ps: i128, number: u16, timestamp: i128, marker: bool, payload: &[u8]) -> Timed {
    let header = Header {
        marker,
        payload_type: 100,
        sequence: number,
        timestamp: timestamp as u32,
        ssrc: 7,
    };
    Timed {
        time_ps: ORIGIN_PS + time_ps,
        bytes: [&header.to_bytes()[..], payload].concat(),
    }
}

/// Two seconds of ancillary data, `num / den` pictures a second: time code and a caption in each, every
/// fifth of two packets, every seventh empty.
pub fn ancillary(num: i128, den: i128, has_fields: bool) -> Vec<Timed> {
    let mut out = Vec::new();
    let mut number = 65_500u16;
    let first = (ORIGIN_PS * num + den * PS_PER_S - 1) / (den * PS_PER_S);
    for picture in first..first + 2 * num / den {
        let field = match (has_fields, picture % 2) {
            (false, _) => Field::None,
            (true, 0) => Field::First,
            (true, _) => Field::Second,
        };
        let time_ps = picture * den * PS_PER_S / num - ORIGIN_PS;
        let ticks = picture * den * 90_000 / num;
        let time_code = rfc8331::packet(9, 0x60, 0x60, &[picture as u8; 16]);
        let caption = rfc8331::packet(12, 0x61, 0x01, &[0x96, 0x69, picture as u8]);
        let both = [&time_code[..], &caption].concat();
        let payloads: Vec<(u8, &[u8])> = match (picture % 5, picture % 7) {
            (_, 6) => vec![(0, &[])],
            (4, _) => vec![(1, &time_code), (1, &caption)],
            _ => vec![(2, &both)],
        };
        for (i, (count, data)) in payloads.iter().enumerate() {
            let head = rfc8331::header(
                0,
                data.len() as u16,
                Ancillary {
                    count: *count,
                    field,
                },
            );
            let payload = [&head[..], data].concat();
            let late_ps = 500_000_000 + i as i128 * 20_000_000;
            out.push(packet(
                time_ps + late_ps,
                number,
                ticks,
                i + 1 == payloads.len(),
                &payload,
            ));
            number = number.wrapping_add(1);
        }
    }
    out
}

/// A second of audio in packets of a millisecond, each instant of sampling as `instant` makes it.
fn sound(instant: impl Fn(u32) -> Vec<u8>) -> Vec<Timed> {
    let of = |number: u32| {
        let payload: Vec<u8> = (0..48).flat_map(|i| instant(number * 48 + i)).collect();
        let ticks = ORIGIN_PS / PS_PER_S * 48_000 + i128::from(number) * 48;
        packet(
            i128::from(number + 1) * PS_PER_S / 1000,
            number as u16,
            ticks,
            false,
            &payload,
        )
    };
    (0..1000).map(of).collect()
}

pub fn l20() -> Vec<Timed> {
    sound(|i| {
        let [_, a, b, c] = (i % 1000 * 521).to_be_bytes();
        vec![a, b, c & 0xf0 | 3, 0x12, 0x34]
    })
}

pub fn am824() -> Vec<Timed> {
    sound(|i| [am824::word(true, i * 77), am824::word(false, i * 131)].concat())
}

/// Eight fields of JPEG XS, 1080i50 in codestreams of 300 packets, evenly over the field's time.
pub fn jpeg_xs() -> Vec<Timed> {
    let mut out = Vec::new();
    for field in 0..8i128 {
        for index in 0..300u16 {
            let header = JpegXs {
                is_slice: false,
                is_last: index == 299,
                is_interlaced: true,
                second_field: field % 2 == 1,
                frame: (field / 2) as u8,
                unit: 0,
                packet: index,
            };
            let payload = [&header.to_bytes()[..], &[0x55; 1000]].concat();
            // TR_OFFSET's default of 1080i and evenly: 22/1125 of a frame.
            let begin = field * PS_PER_S / 50 + 22 * PS_PER_S / 25 / 1125;
            let time = begin + i128::from(index) * PS_PER_S / 50 / 300;
            let ticks = ORIGIN_PS / PS_PER_S * 90_000 + field * 1800;
            let number = field as u16 * 300 + index;
            out.push(packet(time, number, ticks, index == 299, &payload));
        }
    }
    out
}

pub fn ancillary_result(packets: &[Timed]) -> AncillaryResult {
    let stream = stream(packets);
    match contents(&stream, &Given::default(), &Given::default()).unwrap() {
        Contents::Ancillary(data) => ancillary::measure(&stream, data),
        other => panic!("not taken for ancillary data: {other:?}"),
    }
}

pub fn audio_result(packets: &[Timed]) -> AudioResult {
    let stream = stream(packets);
    match contents(&stream, &Given::default(), &Given::default()).unwrap() {
        Contents::Audio(audio) => audio::measure(&stream, audio),
        _ => panic!("not taken for audio"),
    }
}

#[test]
fn ancillary_data_of_each_rate() {
    for (num, den, has_fields, rate, scan) in [
        (50, 1, false, "50", Scan::Progressive),
        (50, 1, true, "50", Scan::Interlaced),
        (60_000, 1001, false, "59.94", Scan::Progressive),
    ] {
        let packets = ancillary(num, den, has_fields);
        let result = ancillary_result(&packets);
        assert_eq!(result.picture_rate.to_string(), rate);
        assert_eq!((result.scan, result.picture_packets), (scan, 1));
        assert_eq!((result.packets, result.lost), (packets.len() as u64, 0));
        assert!(result.empty_packets > 10 && result.ancillary_packets > result.packets);
        assert!(
            result.list.iter().all(|check| check.is_met),
            "{:?}",
            result.list
        );
        assert_eq!(result.decided_by.kind, By::AncillaryHeaders);
        let fpt = result.fpt_ns.unwrap();
        assert!((fpt.max - 500_000.0).abs() < 1.0, "{fpt:?}");
    }
}

#[test]
fn samples_of_20_bits_and_of_am824() {
    for (packets, encoding, by) in [
        (l20(), Encoding::L20, By::PayloadLengths),
        (am824(), Encoding::Am824, By::Am824Words),
    ] {
        let result = audio_result(&packets);
        assert_eq!((result.encoding, result.channels), (encoding, 2));
        assert_eq!((result.sampling_hz, result.packet_samples), (48_000, 48));
        assert_eq!(result.evenness, Evenness::WithinPacketTime);
        assert_eq!(result.decided_by.encoding, by);
    }
}

#[test]
fn fields_of_jpeg_xs() {
    let result = measured(&jpeg_xs(), &Options::default());
    assert_eq!(result.picture_rate.to_string(), "50");
    assert_eq!(
        (result.raster.scan, result.picture_packets),
        (Scan::Interlaced, 300)
    );
    assert!(result.is_jpeg_xs);
    assert_eq!(result.decided_by.scan, By::JpegXsHeaders);
    assert_eq!(result.decided_by.height, By::Assumed);
    assert_eq!(result.sender_type, Some(SenderType::NarrowLinear));
    let fit = Options {
        datum: Datum::Fit,
        ..Options::default()
    };
    assert_eq!(
        measured(&jpeg_xs(), &fit).sender_type,
        Some(SenderType::NarrowLinear)
    );
}

/// Writes captures into the folder MADE.
#[test]
#[ignore = "tests/media-senders/run.sh runs it"]
fn writes() {
    let Some(folder) = std::env::var_os("MADE") else {
        return;
    };
    for (name, packets) in [
        ("ancillary-p50", ancillary(50, 1, false)),
        ("ancillary-i25", ancillary(50, 1, true)),
        ("ancillary-p59.94", ancillary(60_000, 1001, false)),
        ("l20", l20()),
        ("am824", am824()),
        ("jpeg-xs-i25", jpeg_xs()),
    ] {
        let path = std::path::Path::new(&folder).join(format!("{name}.pcap"));
        fs::write(path, pcap(&packets)).unwrap();
    }
}

/// A capture with nanoseconds, of Ethernet, IPv4 and UDP.
pub fn pcap(packets: &[Timed]) -> Vec<u8> {
    let mut out = Vec::new();
    for word in [0xa1b2_3c4d, 0x0004_0002, 0, 0, 65_535, 1u32] {
        out.extend(word.to_le_bytes());
    }
    for packet in packets {
        let length = packet.bytes.len();
        let mut frame = vec![1, 0, 94, 0, 0, 1, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0];
        frame.extend(((length + 28) as u16).to_be_bytes());
        frame.extend([0, 0, 0, 0, 64, 17, 0, 0, 192, 0, 2, 1, 239, 0, 0, 1]);
        frame.extend([0x13, 0x88, 0x13, 0x8c]);
        frame.extend(((length + 8) as u16).to_be_bytes());
        frame.extend([0, 0]);
        frame.extend(&packet.bytes);
        let ns = packet.time_ps / 1000;
        let bytes = frame.len() as u32;
        let seconds = (ns / 1_000_000_000) as u32;
        for word in [seconds, (ns % 1_000_000_000) as u32, bytes, bytes] {
            out.extend(word.to_le_bytes());
        }
        out.extend(frame);
    }
    out
}
