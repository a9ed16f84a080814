// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is written as pcapng can be read again.

use capture::export::{ExportedDirection, arrivals, write_pcapng};
use capture::reader::read_capture;
use capture::record::{Fate, Kind, Record};
use units::ethernet::wire_bytes;

use crate::common::udp;

fn record(start_ps: u64, frame_bytes: u32, kind: Kind, fate: Fate) -> Record {
    let wire_bytes = wire_bytes(frame_bytes);
    Record {
        start_ps,
        frame_bytes,
        wire_bytes,
        kind,
        fate,
        ..Record::default()
    }
}

fn snap(frames: &[Vec<u8>], bytes: usize) -> Vec<u8> {
    frames
        .iter()
        .flat_map(|f| {
            let mut f = f.clone();
            f.resize(bytes, 0);
            f
        })
        .collect()
}

#[test]
fn both_directions_in_order_with_picoseconds_and_comments() {
    let a = [
        record(1_000_000_000_001, 1514, Kind::Data, Fate::Delivered),
        record(1_000_000_000_500, 500, Kind::Pause, Fate::Ended),
        record(1_000_000_001_000, 60, Kind::Data, Fate::DroppedFifo),
        record(1_000_000_009_000, 60, Kind::Data, Fate::Sunk),
    ];
    let b = [record(
        1_000_000_000_777,
        61,
        Kind::Data,
        Fate::DroppedPolicer,
    )];
    let frames = [udp(1, 1454), udp(2, 0), udp(3, 1)];
    let mut file = Vec::new();
    let direction = |name, records, snap| ExportedDirection {
        name,
        rate_bps: 1_000_000_000,
        records,
        snap,
        snap_bytes: 64,
    };
    // The third frame of a has no snap: it was not kept.
    let (snap_a, snap_b) = (snap(&frames[..2], 64), snap(&frames[2..], 64));
    write_pcapng(
        &mut file,
        &[
            direction("wire.a", &a, &snap_a),
            direction("wire.b", &b, &snap_b),
        ],
    )
    .unwrap();

    let c = read_capture(file.as_slice()).unwrap();
    assert_eq!((c.damage, c.skipped, c.out_of_order), (None, 0, 0));
    assert_eq!(c.origin_ps, 1_000_000_000_001);
    let seen: Vec<_> = c
        .records
        .iter()
        .map(|r| (r.start_ps, r.frame_bytes, r.queue))
        .collect();
    assert_eq!(seen, [(0, 1514, 0), (776, 61, 1), (999, 60, 0)]);
    let names: Vec<_> = c
        .interfaces
        .iter()
        .map(|i| (i.name.as_str(), i.resolution_ps))
        .collect();
    assert_eq!(names, [("wire.a", 1), ("wire.b", 1)]);
    assert_eq!(c.flows.len(), 3);
    let text = String::from_utf8_lossy(&file);
    assert!(text.contains("dropped: the bottleneck's FIFO was full"));
    assert!(text.contains("dropped by the policer"));
}

#[test]
fn without_a_snap_there_are_no_packets() {
    let records = [record(1, 60, Kind::Data, Fate::Delivered)];
    for snap_bytes in [0, 64] {
        let d = ExportedDirection {
            name: "w.a",
            rate_bps: 1,
            records: &records,
            snap: &[],
            snap_bytes,
        };
        let mut file = Vec::new();
        write_pcapng(&mut file, &[d]).unwrap();
        let c = read_capture(file.as_slice()).unwrap();
        assert_eq!((c.records.len(), c.damage), (0, None));
    }
}

#[test]
fn what_arrives_is_in_order_of_arrival_and_what_is_lost_is_not_there() {
    let sent = |start_ps, arrive_ps, fate| Record {
        arrive_ps,
        ..record(start_ps, 100, Kind::Data, fate)
    };
    let records = [
        sent(1_000, 9_000, Fate::Delivered),
        record(1_500, 60, Kind::Pause, Fate::Ended),
        sent(2_000, 0, Fate::Lost),
        sent(3_000, 5_000, Fate::Delivered),
        sent(4_000, 9_000, Fate::Delivered),
    ];
    let frames = [udp(1, 58), udp(2, 58), udp(3, 58), udp(4, 58)];
    let snap = snap(&frames, 64);
    let (arrived, kept) = arrivals(&ExportedDirection {
        name: "wire.a",
        rate_bps: 1_000_000_000,
        records: &records,
        snap: &snap,
        snap_bytes: 64,
    });
    let starts: Vec<u64> = arrived.iter().map(|r| r.start_ps).collect();
    assert_eq!(starts, [5_000, 9_000, 9_000]);
    let wanted = [2, 0, 3].map(|frame| &snap[frame * 64..][..64]).concat();
    assert_eq!(kept, wanted);
}
