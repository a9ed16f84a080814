// SPDX-License-Identifier: MIT OR Apache-2.0
//! Packets made in memory at exact times, written to captures, and measured.

#![allow(clippy::unwrap_used, reason = "tests fail that way")]

use std::fs;
use std::path::Path;

use draw::Style;
use media::measure::{Outcome, Request, StreamArgs, measure};
use serde_json::Value;
use st2110::format::Schedule;
use st2110::limits::SenderType;
use st2110::synthetic::{Audio, Video};
use st2110::video::Datum;

/// 2023-11-14, a multiple of the frame's time.
const ORIGIN_PS: i128 = 1_700_000_000_000_000_000_000;
/// Bytes kept of each packet: those with headers.
const KEPT_BYTES: usize = 64;

fn args() -> StreamArgs {
    StreamArgs {
        st2110: true,
        more: Vec::new(),
        sdp: Vec::new(),
        expect: None,
        carry: None,
        frame_rate: None,
        height: None,
        interlaced: false,
        packets_per_frame: None,
        sampling: None,
        troffset: None,
        schedule: None,
        datum: Datum::Epoch,
        tai_ahead: 0,
    }
}

fn outcome(file: &Path, args: &StreamArgs) -> Outcome {
    let request = Request {
        file,
        args,
        flows: &[],
        style: Style::PLAIN,
    };
    measure(&request).unwrap()
}

/// A pcap with nanoseconds of RTP packets to a port of a group.
fn pcap(packets: &[(i128, u16, Vec<u8>)]) -> Vec<u8> {
    let mut out = Vec::new();
    for word in [0xa1b2_3c4d, 0x0004_0002, 0, 0, 65_535, 1u32] {
        out.extend(word.to_le_bytes());
    }
    for (time_ps, port, rtp) in packets {
        let udp_bytes = (rtp.len() + 8) as u16;
        let mut frame = vec![1, 0, 0x5e, 1, 1, 1, 2, 0, 0, 0, 0, 1, 8, 0];
        frame.extend([0x45, 0]);
        frame.extend((udp_bytes + 20).to_be_bytes());
        frame.extend([0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 239, 1, 1, 1]);
        frame.extend(5000u16.to_be_bytes());
        frame.extend(port.to_be_bytes());
        frame.extend(udp_bytes.to_be_bytes());
        frame.extend([0, 0]);
        frame.extend(rtp);
        let kept = frame.len().min(KEPT_BYTES);
        let ns = time_ps / 1000;
        for word in [
            (ns / 1_000_000_000) as u32,
            (ns % 1_000_000_000) as u32,
            kept as u32,
            frame.len() as u32,
        ] {
            out.extend(word.to_le_bytes());
        }
        out.extend(&frame[..kept]);
    }
    out
}

/// Three frames of 1080p60. `is_burst`: each in one go, when its first packet leaves.
fn video(is_burst: bool) -> Vec<(i128, u16, Vec<u8>)> {
    let video = Video::new("1080p60".parse().unwrap(), Schedule::Gapped, 4, 7).unwrap();
    let first = video.first_after(ORIGIN_PS);
    let mut packets = Vec::new();
    for frame in 0..3u32 {
        for index in 0..video.packets() {
            let mut bytes = Vec::new();
            let number = first + i128::from(frame);
            video.write(number, index, frame * video.packets() + index, &mut bytes);
            let leaves = video.launch_ps(number, if is_burst { 0 } else { index });
            packets.push((leaves, 5004, bytes));
        }
    }
    packets
}

fn audio() -> Vec<(i128, u16, Vec<u8>)> {
    let audio = Audio::new(8, 1_000_000, 9).unwrap();
    let first = audio.first_after(ORIGIN_PS);
    let packet = |i: u32| {
        let mut bytes = Vec::new();
        audio.write(first + i128::from(i), i, &mut bytes);
        (audio.launch_ps(first + i128::from(i)), 5006, bytes)
    };
    (0..50).map(packet).collect()
}

#[test]
fn an_exact_stream_is_narrow_and_a_burst_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.pcap");
    fs::write(&file, pcap(&video(false))).unwrap();
    let wanted = |expect| StreamArgs {
        expect: Some(expect),
        ..args()
    };
    let found = outcome(&file, &wanted(SenderType::Narrow));
    assert!(found.is_expected, "{}", found.text);
    assert!(
        found.text.contains("narrow") && found.text.contains("5 / 9"),
        "{}",
        found.text
    );
    let json: Value = serde_json::from_str(&found.json).unwrap();
    assert_eq!(json["format"], "pspacer-st2110-1");
    let stream = &json["streams"][0];
    assert_eq!(
        (&stream["to"], &stream["payload_type"]),
        (&"239.1.1.1:5004".into(), &96.into())
    );
    let of = &stream["video"];
    assert_eq!(
        (&of["sender_type"], &of["picture_rate"]),
        (&"N".into(), &"60/1".into())
    );
    assert_eq!(
        (&of["height"], &of["scan"]),
        (&1080.into(), &"progressive".into())
    );
    assert_eq!(of["pictures"].as_array().unwrap().len(), 3);
    assert!(!outcome(&file, &wanted(SenderType::NarrowLinear)).is_expected);

    fs::write(&file, pcap(&video(true))).unwrap();
    let found = outcome(&file, &wanted(SenderType::Wide));
    assert!(!found.is_expected);
    assert!(
        found.text.contains("Cinst reaches 4319, and Cmax is 16."),
        "{}",
        found.text
    );
    let json: Value = serde_json::from_str(&found.json).unwrap();
    assert_eq!(json["streams"][0]["video"]["sender_type"], Value::Null);
    assert_eq!(json["streams"][0]["video"]["cinst_max"], 4319);
}

#[test]
fn several_captures_are_read_as_one() {
    let folder = tempfile::tempdir().unwrap();
    let [a, b] = ["a.pcap", "b.pcap"].map(|name| folder.path().join(name));
    let packets = video(false);
    let (early, late) = packets.split_at(6000);
    fs::write(&a, pcap(early)).unwrap();
    fs::write(&b, pcap(&[late.to_vec(), audio()].concat())).unwrap();
    let joined = StreamArgs {
        more: vec![a],
        expect: Some(SenderType::Narrow),
        ..args()
    };
    // In any order of the files.
    let found = outcome(&b, &joined);
    assert!(found.is_expected, "{}", found.text);
    let json: Value = serde_json::from_str(&found.json).unwrap();
    let streams = json["streams"].as_array().unwrap();
    assert_eq!(streams.len(), 2);
    assert_eq!(streams[0]["video"]["lost"], 0);
    assert_eq!(streams[0]["video"]["pictures"].as_array().unwrap().len(), 3);
    assert_eq!(streams[1]["audio"]["evenness"], "within_packet_time");
    assert!(
        found.text.contains("8 x L24, 48 kHz, 1.000 ms"),
        "{}",
        found.text
    );
}

#[test]
fn a_page_and_plots_are_made() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.pcap");
    fs::write(&file, pcap(&[video(false), audio()].concat())).unwrap();
    let found = outcome(&file, &args());
    let names: Vec<_> = found.files.iter().map(|(name, _)| name.as_str()).collect();
    let expected = [
        "report.html",
        "1-vrx.svg",
        "1-cinst.svg",
        "2-ts-df.svg",
        "streams.json",
    ];
    assert_eq!(names, expected);
    let page = &found.files[0].1;
    for expected in [
        "VRX by the gapped schedule",
        "Packets by Cinst",
        "narrow linear",
        "VRXfull, N",
    ] {
        assert!(page.contains(expected), "{expected}");
    }
    for (name, svg) in found
        .files
        .iter()
        .filter(|(name, _)| name.ends_with(".svg"))
    {
        assert!(svg.starts_with("<svg") && !svg.contains("NaN"), "{name}");
    }
}

#[test]
fn clocks_options_and_faults() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.pcap");
    // The capture's clock is UTC and 5 s behind: no multiple of a frame's time of 59.94, but of 60.
    let mut packets = video(false);
    for packet in &mut packets {
        packet.0 -= 5_000_123_000_000;
    }
    fs::write(&file, pcap(&packets)).unwrap();
    let with = |tai_ahead, datum| {
        let args = StreamArgs {
            tai_ahead,
            datum,
            expect: Some(SenderType::Narrow),
            ..args()
        };
        outcome(&file, &args).is_expected
    };
    assert!(!with(0, Datum::Epoch), "123 µs early are 33 packets");
    assert!(with(5_000_123_000, Datum::Epoch));
    assert!(with(0, Datum::Fit));

    let request = |file: &Path, args: &StreamArgs| {
        let request = Request {
            file,
            args,
            flows: &["udp dport 9".parse().unwrap()],
            style: Style::PLAIN,
        };
        measure(&request).unwrap_err()
    };
    let error = format!("{:#}", request(&file, &args()));
    assert_eq!(
        error,
        "no RTP stream in a.pcap: 12960 packets, 12960 UDP datagrams"
    );
    let timeline = folder.path().join("timeline.a");
    fs::write(&timeline, [0; 64]).unwrap();
    let error = format!("{:#}", request(&timeline, &args()));
    assert!(
        error.contains("timeline.a: a timeline holds no RTP headers"),
        "{error}"
    );

    // A stream of which too little is there, and a file cut short.
    fs::write(&file, pcap(&packets[..100])).unwrap();
    let found = outcome(&file, &args());
    assert!(
        found
            .text
            .contains("It is not measured: no two frames follow each other"),
        "{}",
        found.text
    );
    let whole = pcap(&packets);
    fs::write(&file, &whole[..whole.len() - 10]).unwrap();
    let found = outcome(&file, &args());
    assert!(
        found.notes[0].contains("only the first"),
        "{:?}",
        found.notes
    );
    assert!(found.json.contains("\"damage\""));
}
