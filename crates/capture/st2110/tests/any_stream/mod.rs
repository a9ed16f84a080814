// SPDX-License-Identifier: MIT OR Apache-2.0
//! Any bytes as the packets of a stream: what can be found out is, and both models measure it.

use st2110::format::{Scan, Schedule};
use st2110::infer::{Contents, Given, Kind, contents};
use st2110::stream::{Datagram, Streams};
use st2110::video::{self, Datum, Options};
use st2110::{ancillary, audio, pairs};

/// Bytes of a packet: how long after the one before it, how its number and timestamp go on, and
/// twelve bytes that are its header and its payload's first.
const PACKET_BYTES: usize = 16;

/// Measures the streams that bytes describe.
///
/// # Panics
/// If a packet is lost or measured twice.
pub fn replay(bytes: &[u8]) {
    let Some((head, packets)) = bytes.split_first_chunk::<4>() else {
        return;
    };
    let mut streams = Streams::default();
    let mut time_ps = i128::from(head[0]) << 62;
    let mut all = 0u64;
    let end = |port| std::net::SocketAddr::from(([127, 0, 0, 1], port));
    for packet in packets.chunks_exact(PACKET_BYTES) {
        let (step, rest) = packet.split_at(4);
        let step = u32::from_le_bytes([step[0], step[1], step[2], step[3]]);
        // Up to 68 s at the coarsest, and backwards.
        let scale = [0i128, 1, 1000, 16_000_000][usize::from(head[1] % 4)];
        time_ps += i128::from(step as i32) * scale;
        let mut payload = vec![0x80, rest[0], 0, rest[1]];
        payload.extend([0, 0, rest[2] & 0x0f, rest[3]]);
        payload.extend([0, 0, 0, head[2] & 1]);
        payload.extend(&rest[4..]);
        if rest[2] & 0x80 != 0 {
            // A packet of RFC 4175 whose lengths agree.
            payload.truncate(12);
            payload.extend([0, 0, 0, rest[4], rest[5], rest[6], rest[7] & 0x7f, rest[8]]);
            payload.resize(20 + usize::from(rest[4]), 0);
        }
        let payload_bytes = payload.len() as u32;
        streams.add(&Datagram {
            time_ps,
            from: end(1),
            to: end(2),
            payload: &payload,
            payload_bytes,
        });
        all += 1;
    }
    let found = streams.finish();
    let in_streams: usize = found
        .streams
        .iter()
        .map(|stream| stream.packets.len())
        .sum();
    assert_eq!(in_streams as u64 + found.others, all);
    for pair in pairs::pairs(&found.streams) {
        assert!(pair.packets <= all && pair.legs.len() > 1);
        let first: u64 = pair.legs.iter().map(|leg| leg.first).sum();
        assert_eq!(first, pair.packets);
    }
    let kinds = [
        None,
        Some(Kind::Raw),
        Some(Kind::Compressed),
        Some(Kind::Audio),
    ];
    let given = Given {
        kind: kinds[usize::from(head[3] % 4)],
        rate: (head[3] & 4 != 0).then(|| "59.94".parse().ok()).flatten(),
        scan: (head[3] & 8 != 0).then_some(Scan::Interlaced),
        packets_per_frame: (head[3] & 16 != 0).then_some(u32::from(head[2])),
        ..Given::default()
    };
    let options = Options {
        datum: [Datum::Epoch, Datum::First, Datum::Fit][usize::from(head[3] >> 5) % 3],
        schedule: (head[2] & 2 != 0).then_some(Schedule::Gapped),
        ..Options::default()
    };
    for stream in &found.streams {
        let packets = stream.packets.len() as u64;
        match contents(stream, &given, &Given::default()) {
            Ok(Contents::Video(video)) => {
                if let Ok(result) = video::measure(stream, video, &options) {
                    assert_eq!(result.cinst_histogram.values().sum::<u64>(), packets);
                    assert!(result.duplicates < packets);
                    assert!(
                        result
                            .pictures
                            .iter()
                            .all(|picture| picture.lost < picture.packets)
                    );
                    assert!(result.buffers.iter().all(|buffer| buffer.late <= packets));
                }
            }
            Ok(Contents::Ancillary(data)) => {
                let result = ancillary::measure(stream, data);
                assert!(result.packets == packets && result.empty_packets <= packets);
            }
            Ok(Contents::Audio(audio)) => {
                let result = audio::measure(stream, audio);
                assert!(result.tsdf_max_ns >= 0.0 && !result.tsdf.is_empty());
            }
            Err(why) => assert!(!why.is_empty()),
        }
    }
}
