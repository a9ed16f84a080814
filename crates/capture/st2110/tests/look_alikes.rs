// SPDX-License-Identifier: MIT OR Apache-2.0
//! What resembles a format and is none of it: each counter-check alone is broken.

use proptest::prelude::*;
use st2110::format::Schedule;
use st2110::infer::{Contents, Given, Kind, contents};

use crate::common::{Timed, sent, stream};
use crate::made;

fn found(packets: &[Timed]) -> Result<Kind, String> {
    let none = Given::default();
    contents(&stream(packets), &none, &none).map(|contents| match contents {
        Contents::Video(video) => video.kind,
        Contents::Ancillary(data) => data.kind,
        Contents::Audio(_) => Kind::Audio,
    })
}

fn raw() -> Vec<Timed> {
    sent("64x32@50", Schedule::Gapped, 6, 4, 0)
}

/// Changes each packet by its place.
fn with(mut packets: Vec<Timed>, change: impl Fn(usize, &mut Vec<u8>)) -> Vec<Timed> {
    for (i, packet) in packets.iter_mut().enumerate() {
        change(i, &mut packet.bytes);
    }
    packets
}

fn set_row(bytes: &mut [u8], row: u16) {
    bytes[16..18].copy_from_slice(&row.to_be_bytes());
}

/// Frames of 32 lines, a packet each; each change breaks one thing that the others agree on.
#[test]
fn raw_video_that_does_not_agree_with_itself_is_not_named() {
    assert_eq!(found(&raw()), Ok(Kind::Raw));
    let mut short = raw();
    // Whole packets of frames that are not there, and their numbers closed.
    let mut at = 0usize;
    short.retain(|_| {
        let (frame, line) = (at / 32, at % 32);
        at += 1;
        line >= 31 - frame * 4 || line % 2 == 0 || line < 20
    });
    for (number, packet) in (0u16..).zip(&mut short) {
        packet.bytes[2..4].copy_from_slice(&number.to_be_bytes());
    }
    let cases: [(&str, &str, Vec<Timed>); 7] = [
        (
            "no markers",
            "markers",
            with(raw(), |_, bytes| bytes[1] &= 0x7f),
        ),
        (
            "markers anywhere",
            "markers",
            with(raw(), |i, bytes| {
                bytes[1] = 96 | (u8::from(i % 3 == 0) << 7)
            }),
        ),
        (
            "lines backwards",
            "lines do not follow",
            with(raw(), |i, bytes| set_row(bytes, 31 - i as u16 % 32)),
        ),
        (
            "one line",
            "line numbers",
            with(raw(), |_, bytes| set_row(bytes, 0)),
        ),
        (
            "lines from 5",
            "line numbers",
            with(raw(), |i, bytes| set_row(bytes, i as u16 % 32 + 5)),
        ),
        (
            "a rate that is none",
            "no known rate",
            with(raw(), |i, bytes| {
                bytes[4..8].copy_from_slice(&(i as u32 / 32 * 1234).to_be_bytes());
            }),
        ),
        ("frames of different lengths", "different numbers", short),
    ];
    for (name, why, packets) in cases {
        let error = found(&packets).expect_err(name);
        assert!(error.contains(why), "{name}: {error}");
    }
    // Lines of several pieces that end at different pixels.
    let wide = || sent("1080p50", Schedule::Gapped, 2, 4, 0);
    assert_eq!(found(&wide()), Ok(Kind::Raw));
    let ragged = with(wide(), |i, bytes| {
        if i % 4 == 3 {
            let groups = (i / 4 % 7 + 1) as u16;
            bytes.truncate(20 + usize::from(groups) * 5);
            bytes[14..16].copy_from_slice(&(groups * 5).to_be_bytes());
        }
    });
    let error = found(&ragged).expect_err("ragged lines");
    assert!(error.contains("different pixels"), "{error}");
}

#[test]
fn ancillary_data_is_no_video_and_what_resembles_it_is_neither() {
    let data = made::ancillary(50, 1, true);
    assert_eq!(found(&data), Ok(Kind::Ancillary));
    // Field bits that mean nothing, reserved bits, a parity that is wrong.
    for (at, bits) in [(17, 0x40), (18, 1), (24, 0x40)] {
        let packets = with(data.clone(), |_, bytes| {
            if let Some(byte) = bytes.get_mut(at) {
                *byte = (*byte & !0xc0) | bits;
            }
        });
        assert!(found(&packets).is_err(), "byte {at}");
    }
}

#[test]
fn audio_is_told_by_its_lengths_and_its_clock() {
    assert_eq!(found(&made::l20()), Ok(Kind::Audio));
    let ragged = with(made::l20(), |i, bytes| bytes.truncate(12 + 240 - i % 7));
    assert!(found(&ragged).is_err(), "lengths that are not as the ticks");
    // A clock of 90 kHz, as that of MPEG-2 TS.
    let slow = with(made::am824(), |i, bytes| {
        bytes[4..8].copy_from_slice(&(i as u32 * 90).to_be_bytes());
        bytes.resize(12 + 90 * 4, 0);
    });
    let error = found(&slow).expect_err("90 kHz");
    assert!(error.contains("no known sampling rate"), "{error}");
    let typed = with(made::l20(), |_, bytes| bytes[1] = 33);
    let error = found(&typed).expect_err("payload type 33");
    assert!(error.contains("RFC 3551"), "{error}");
}

#[test]
fn compressed_video_wants_constant_packets_and_markers() {
    let video = made::jpeg_xs();
    assert_eq!(found(&video), Ok(Kind::Compressed));
    // Without its counters it is compressed video of a constant number of packets still.
    let other = with(video.clone(), |_, bytes| bytes[12..16].fill(0x55));
    let Ok(Contents::Video(plain)) =
        contents(&stream(&other), &Given::default(), &Given::default())
    else {
        panic!("not taken for video");
    };
    assert!(!plain.is_jpeg_xs && plain.kind == Kind::Compressed);
    let unmarked = with(other.clone(), |_, bytes| bytes[1] &= 0x7f);
    assert!(
        found(&unmarked)
            .expect_err("no markers")
            .contains("markers")
    );
    // Frames that are longer and longer, as those of other codecs.
    let mut at = 0usize;
    let mut growing: Vec<_> = other;
    growing.retain(|_| {
        let (field, index) = (at / 300, at % 300);
        at += 1;
        index < 100 + field * 20 || index == 299
    });
    for (i, packet) in growing.iter_mut().enumerate() {
        packet.bytes[2..4].copy_from_slice(&(i as u16).to_be_bytes());
    }
    let error = found(&growing).expect_err("frames of different packets");
    assert!(error.contains("constant"), "{error}");
    // Nothing of the payload was captured.
    let mut cut = stream(&video);
    for packet in &mut cut.packets {
        (packet.captured_bytes, packet.jpeg_xs) = (0, None);
    }
    let none = Given::default();
    let error = contents(&cut, &none, &none).expect_err("nothing was captured");
    assert!(error.contains("less than 8 bytes"), "{error}");
}

proptest! {
    #![proptest_config(testkit::properties())]

    /// RTP that goes on as that of video or audio does, with payloads of any bytes and lengths.
    #[test]
    fn any_payload_is_named_nothing(
        seed in any::<u64>(),
        step in prop::sample::select(vec![0i64, 48, 1500, 1800, 3600, 1024]),
        per_frame in 1usize..12,
        least in 8usize..400,
        spread in 1usize..900,
    ) {
        let mut state = seed | 1;
        let mut random = move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        let packets: Vec<_> = (0..120usize)
            .map(|i| {
                let length = least + random() as usize % (spread + 1);
                let mut bytes = vec![0x80, 96 | (u8::from((i + 1) % per_frame == 0) << 7), 0, i as u8];
                bytes.extend(((i / per_frame) as u32 * step as u32).to_be_bytes());
                bytes.extend([0, 0, 0, 1]);
                bytes.extend((0..length).map(|_| random() as u8));
                Timed { time_ps: crate::common::ORIGIN_PS + i as i128 * 1_000_000_000, bytes }
            })
            .collect();
        let kind = found(&packets);
        prop_assert!(matches!(kind, Err(_) | Ok(Kind::Compressed)), "{:?}", kind);
    }
}
