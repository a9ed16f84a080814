// SPDX-License-Identifier: MIT OR Apache-2.0
//! Synthetic packets, byte by byte.

use st2110::format::Schedule;
use st2110::synthetic::{Audio, Video};

fn packet(format: &str, picture: i128, index: u32, sequence: u32) -> Vec<u8> {
    let video = Video::new(format.parse().unwrap(), Schedule::Gapped, 0, 0x0102_0304).unwrap();
    let mut out = vec![9; 3];
    video.write(picture, index, sequence, &mut out);
    out
}

/// Cb 512, Y 504, Cr 512, Y 504: 10000000 00011111 10001000 00000001 11111000.
const GREY: [u8; 5] = [0x80, 0x1f, 0x88, 0x01, 0xf8];

#[test]
fn the_first_packet_of_a_frame() {
    let bytes = packet("1080p60", 60, 0, 0x0001_fffe);
    let header = [
        0x80, 96, 0xff, 0xfe, // version 2, no marker, type, number
        0x00, 0x01, 0x5f, 0x90, // 60 × 1500 ticks
        1, 2, 3, 4, // source
        0x00, 0x01, // upper half of the number
        0x04, 0xb0, 0x00, 0x00, 0x00, 0x00, // 1200 bytes of line 0 from pixel 0
    ];
    assert_eq!(bytes[..20], header);
    assert_eq!(bytes.len(), 20 + 1200);
    assert!(bytes[20..].chunks(5).all(|group| group == GREY));
}

#[test]
fn the_last_packet_of_a_frame_has_the_marker() {
    let bytes = packet("1080p60", 1, 4319, 4319);
    assert_eq!(bytes[1], 0x80 | 96);
    // Line 1079 from pixel 1440.
    assert_eq!(bytes[14..20], [0x04, 0xb0, 0x04, 0x37, 0x05, 0xa0]);
}

#[test]
fn the_second_field_says_so() {
    // Fields of 540 lines; field 3 is a second one.
    let bytes = packet("1080i29.97", 3, 2159, 0);
    assert_eq!(bytes[14..20], [0x04, 0xb0, 0x82, 0x1b, 0x05, 0xa0]);
    assert_eq!(bytes[1], 0x80 | 96);
    // 3 × 1501.5 ticks, rounded down.
    assert_eq!(bytes[4..8], 4504u32.to_be_bytes());
    let first = packet("1080i29.97", 2, 0, 0);
    assert_eq!(first[14..20], [0x04, 0xb0, 0x00, 0x00, 0x00, 0x00]);
}

/// 2160p: 1920 pixel groups in 7 packets of 274 or 275.
#[test]
fn a_line_is_divided_into_even_pieces() {
    let pieces: Vec<_> = (0..7).map(|i| packet("2160p60", 0, i, i)).collect();
    let groups: Vec<_> = pieces.iter().map(|bytes| (bytes.len() - 20) / 5).collect();
    assert_eq!(groups, [274, 274, 274, 275, 274, 274, 275]);
    let offsets: Vec<_> = pieces
        .iter()
        .map(|bytes| u16::from_be_bytes([bytes[18], bytes[19]]))
        .collect();
    assert_eq!(offsets, [0, 548, 1096, 1644, 2194, 2742, 3290]);
    let video = Video::new("2160p60".parse().unwrap(), Schedule::Linear, 0, 0).unwrap();
    assert_eq!(video.packets(), 7 * 2160);
}

#[test]
fn launch_times_are_those_of_the_read_schedule() {
    let launch = |schedule, early, picture, index| {
        let video = Video::new("1080p60".parse().unwrap(), schedule, early, 0).unwrap();
        video.launch_ps(picture, index)
    };
    // 43/1125/60 s; 16 ms / 4320 and 1/60/4320 s between packets.
    assert_eq!(launch(Schedule::Gapped, 0, 0, 0), 637_037_037);
    assert_eq!(launch(Schedule::Gapped, 0, 60, 0), 1_000_637_037_037);
    assert_eq!(
        launch(Schedule::Gapped, 0, 0, 4319),
        637_037_037 + 15_996_296_296
    );
    assert_eq!(
        launch(Schedule::Linear, 0, 0, 4319),
        637_037_037 + 16_662_808_642
    );
    assert_eq!(launch(Schedule::Gapped, 4, 0, 4), 637_037_037);
    let video = Video::new("1080p60".parse().unwrap(), Schedule::Gapped, 0, 0).unwrap();
    assert_eq!(video.first_after(637_037_037), 0);
    assert_eq!(video.first_after(637_037_038), 1);
    // 4 × (1200 + 28 + 20) bytes of each line in 4 × 3.7037 µs.
    assert_eq!(video.active_ip_bytes_per_s(20), 336_960_000);
}

#[test]
fn an_audio_packet() {
    let audio = Audio::new(2, 1_000_000, 0x0a0b_0c0d).unwrap();
    let mut out = Vec::new();
    audio.write(1000, 70_000, &mut out);
    let header = [
        0x80, 96, 0x11, 0x70, // number 70000 - 65536
        0x00, 0x00, 0xbb, 0x80, // 48 × 1000 ticks
        0x0a, 0x0b, 0x0c, 0x0d,
    ];
    assert_eq!(out[..12], header);
    assert_eq!(out[12..], [0; 48 * 2 * 3]);
    assert_eq!(audio.launch_ps(1000), 1_001_000_000_000);
    assert_eq!(audio.first_after(1_001_000_000_000), 1000);
    assert_eq!(audio.first_after(1_001_000_000_001), 1001);
    assert_eq!(audio.ip_bytes_per_s(20), (288 + 40) * 1000);
    // 16 samples are a third of a millisecond, rounded up.
    let third = Audio::new(1, 333_333, 0).unwrap();
    assert_eq!(third.launch_ps(0), 333_333_334);
}
