// SPDX-License-Identifier: MIT OR Apache-2.0
//! Streams for tests: datagrams of packets at instants that a test sets.
#![allow(dead_code)] // Each test uses some of it.

use std::net::SocketAddr;

use st2110::format::{Format, Schedule};
use st2110::infer::{Contents, Given, contents};
use st2110::stream::{Datagram, Stream, Streams};
use st2110::synthetic;
use st2110::video::{Options, VideoResult, measure};

/// 2023-11-14 22:13:20 TAI, a multiple of the periods of 24, 25, 30, 50 and 60 pictures a second.
pub const ORIGIN_S: i128 = 1_700_000_000;
/// The same in ps.
pub const ORIGIN_PS: i128 = ORIGIN_S * 1_000_000_000_000;
pub const US: i128 = 1_000_000;

/// A packet: when it comes, and its bytes.
#[derive(Clone, Debug)]
pub struct Timed {
    pub time_ps: i128,
    pub bytes: Vec<u8>,
}

/// The first `pictures` pictures after the origin, each packet at its read time.
pub fn on_time(format: &str, schedule: Schedule, pictures: u32) -> Vec<Timed> {
    sent(format, schedule, pictures, 0, 0)
}

/// The same, packets leaving `early` read spacings before, numbered from `sequence`.
pub fn sent(
    format: &str,
    schedule: Schedule,
    pictures: u32,
    early: u32,
    sequence: u32,
) -> Vec<Timed> {
    let format: Format = format.parse().unwrap();
    let video = synthetic::Video::new(format, schedule, early, 7).unwrap();
    let first = video.first_after(ORIGIN_PS);
    let mut out = Vec::new();
    for picture in 0..pictures {
        for index in 0..video.packets() {
            let mut bytes = Vec::new();
            let number = sequence.wrapping_add(picture * video.packets() + index);
            video.write(first + i128::from(picture), index, number, &mut bytes);
            let time_ps = video.launch_ps(first + i128::from(picture), index);
            out.push(Timed { time_ps, bytes });
        }
    }
    out
}

/// The lone stream of some packets, in the order in which they are given.
pub fn stream(packets: &[Timed]) -> Stream {
    let mut streams = Streams::default();
    let end = |text: &str| text.parse::<SocketAddr>().unwrap();
    for packet in packets {
        streams.add(&Datagram {
            time_ps: packet.time_ps,
            from: end("10.0.0.1:5000"),
            to: end("239.1.1.1:5004"),
            payload: &packet.bytes[..packet.bytes.len().min(64)],
            payload_bytes: packet.bytes.len() as u32,
        });
    }
    let mut found = streams.finish();
    assert_eq!((found.streams.len(), found.others), (1, 0));
    found.streams.remove(0)
}

/// What is measured of a video stream of which nothing is given.
pub fn measured(packets: &[Timed], options: &Options) -> VideoResult {
    let stream = stream(packets);
    match contents(&stream, &Given::default(), &Given::default()).unwrap() {
        Contents::Video(video) => measure(&stream, video, options).unwrap(),
        Contents::Audio(_) => panic!("taken for audio"),
        Contents::Ancillary(_) => panic!("taken for ancillary data"),
    }
}
