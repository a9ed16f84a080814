// SPDX-License-Identifier: MIT OR Apache-2.0
//! Segments of captures: all formats, several files, damaged ones.

use std::io::{Read, Write};

use capture::segment::{HostDirection, Segment};
use capture::segments::{Counts, Segments, Source};
use etherparse::PacketBuilder;
use proptest::prelude::*;

use crate::common::{ORDERS, Order, block, interface, packet, pause, pcap, section, udp};

/// A segment with this sequence number.
fn tcp(seq: u32) -> Vec<u8> {
    let mut out = Vec::new();
    PacketBuilder::ethernet2([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2])
        .ipv4([10, 1, 1, 1], [10, 1, 2, 1], 64)
        .tcp(40000, 5001, seq, 900)
        .write(&mut out, &[0; 10])
        .unwrap();
    out
}

fn source<'a>(name: &str, bytes: &'a [u8]) -> Source<'a> {
    Source::new(name, move || Ok(Box::new(bytes) as Box<dyn Read + 'a>))
}

fn all<'a>(files: &[&'a [u8]]) -> (Vec<Segment>, Segments<'a>) {
    let names = ["a", "b", "c"];
    let sources = names.iter().zip(files).map(|(n, f)| source(n, f));
    let mut segments = Segments::open(sources.collect()).unwrap();
    let mut found = Vec::new();
    while let Some(segment) = segments.next() {
        found.push(segment);
    }
    (found, segments)
}

fn seqs(found: &[Segment]) -> Vec<(u64, u32)> {
    found.iter().map(|s| (s.number, s.seq)).collect()
}

#[test]
fn formats_orders_and_units() {
    for order in ORDERS {
        for (nanos, ns) in [(false, 1_000_007_000), (true, 1_000_000_007)] {
            let file = pcap(
                order,
                nanos,
                &[(1, 7, tcp(5)), (2, 0, udp(1, 0)), (3, 0, tcp(6))],
            );
            let (found, segments) = all(&[&file]);
            assert_eq!(seqs(&found), [(1, 5), (3, 6)]);
            assert_eq!(found[0].time_ns, ns);
            let counts = Counts {
                packets: 3,
                segments: 2,
                not_tcp: 1,
                ..Counts::default()
            };
            assert_eq!(segments.counts(), &counts);
            assert!(segments.counts().notes().is_empty());
        }
        // Sections begin anew with their interfaces; a packet without a time
        // has a number.
        let file = [
            section(order),
            interface(order, 1, 9, 0),
            packet(order, 0, 7, &tcp(1)),
            block(order, 3, &[&order.u32(60)[..], &pause()].concat()),
            section(order),
            interface(order, 101, 6, 0),
            packet(order, 0, 8, &tcp(2)[14..]),
            block(order, 5, &[0; 12]),
        ]
        .concat();
        let (found, segments) = all(&[&file]);
        assert_eq!(seqs(&found), [(1, 1), (3, 2)]);
        assert_eq!((found[0].time_ns, found[1].time_ns), (7, 8_000));
        assert_eq!(segments.counts().timeless, 1);
        assert_eq!(segments.interfaces().len(), 2);
        assert!(segments.counts().notes()[0].starts_with("1 packets without a time"));
    }
}

#[test]
fn older_packet_blocks_and_the_way_of_newer_ones() {
    for order in ORDERS {
        let bytes = tcp(9);
        let length = order.u32(bytes.len() as u32);
        let mut old = [
            &order.u16(0)[..],
            &order.u16(3),
            &order.u32(0),
            &order.u32(5),
        ]
        .concat();
        old.extend([length, length].concat());
        old.extend(&bytes);
        let with_flags = |flags: u32| {
            let mut body = [order.u32(0), order.u32(0), order.u32(6), length, length].concat();
            body.extend(&bytes);
            body.resize(body.len().next_multiple_of(4), 0);
            // A comment first, then epb_flags, then the end of options.
            body.extend([&order.u16(1)[..], &order.u16(5), b"drops\0\0\0"].concat());
            body.extend([&order.u16(2)[..], &order.u16(4), &order.u32(flags), &[0; 4]].concat());
            block(order, 6, &body)
        };
        let file = [
            section(order),
            interface(order, 1, 6, 0),
            block(order, 2, &old),
            with_flags(1),
            with_flags(2),
            with_flags(4),
        ]
        .concat();
        let (found, segments) = all(&[&file]);
        assert_eq!(segments.damages(), []);
        let directions: Vec<_> = found
            .iter()
            .map(|s| (s.time_ns, s.host_direction))
            .collect();
        let expected = [
            (5_000, HostDirection::Unknown),
            (6_000, HostDirection::In),
            (6_000, HostDirection::Out),
            (6_000, HostDirection::Unknown),
        ];
        assert_eq!(directions, expected);
    }
}

#[test]
fn several_files_are_merged_in_time() {
    let file = |packets: &[(u32, u32)]| {
        let packets: Vec<_> = packets.iter().map(|(s, seq)| (*s, 0, tcp(*seq))).collect();
        pcap(Order::Little, false, &packets)
    };
    // A rotated capture named in the wrong order, and one beside both.
    let (late, early) = (file(&[(10, 3), (11, 4), (13, 6)]), file(&[(1, 1), (2, 2)]));
    let beside = file(&[(2, 20), (12, 5), (13, 60)]);
    let (found, _) = all(&[&late, &early, &beside]);
    let expected = [1, 2, 20, 3, 4, 5, 6, 60].into_iter();
    assert_eq!(seqs(&found), (1..).zip(expected).collect::<Vec<_>>());
}

#[test]
fn a_file_that_runs_backwards_is_read_as_it_is() {
    let file = pcap(
        Order::Big,
        true,
        &[(2, 0, tcp(1)), (1, 0, tcp(2)), (3, 0, tcp(3))],
    );
    let (found, segments) = all(&[&file]);
    assert_eq!(seqs(&found), [(1, 1), (2, 2), (3, 3)]);
    assert_eq!(segments.counts().backwards, 1);
}

#[test]
fn cut_at_every_byte_all_before_it_is_used() {
    let pcapng = [
        section(Order::Little),
        interface(Order::Little, 1, 6, 0),
        packet(Order::Little, 0, 1, &tcp(1)),
        packet(Order::Little, 0, 2, &tcp(2)),
    ]
    .concat();
    let pcap = pcap(Order::Big, false, &[(1, 0, tcp(1)), (2, 0, tcp(2))]);
    for file in [&pcap, &pcapng] {
        let whole = all(&[file]).0;
        for cut in 24..file.len() {
            let (found, segments) = all(&[&file[..cut]]);
            assert_eq!(found, whole[..found.len()]);
            match segments.damages() {
                [] => {}
                [(name, damage)] => {
                    assert_eq!(name, "a");
                    assert!(damage.offset <= cut as u64);
                    assert!(damage.what.contains("ends inside"), "{damage}");
                }
                more => panic!("{more:?}"),
            }
        }
    }
}

#[test]
fn what_is_no_capture_is_named() {
    let error = |files: &[&'static [u8]]| {
        let sources = files.iter().map(|f| source("x", f)).collect();
        let error = Segments::open(sources).err().unwrap();
        format!("{error}: {}", error.source)
    };
    assert!(error(&[b"hello, world"]).starts_with("x: expected a capture"));
    assert!(error(&[b"", b""]).contains("it is empty"));
    assert!(error(&[b"snoop\0\0\0\0\0\0\x02"]).contains("editcap -F pcap"));
    let fails = Source::new("y", || Err(std::io::Error::other("no")));
    assert_eq!(Segments::open(vec![fails]).err().unwrap().name, "y");
}

/// What is left out is named, with what to do.
#[test]
fn links_that_are_not_read_and_quic_are_named() {
    let mut quic = udp(1, 0);
    // Port 443, and a long header of QUIC behind 8 bytes of UDP.
    quic[14 + 20 + 2..14 + 20 + 4].copy_from_slice(&443u16.to_be_bytes());
    quic[14 + 20 + 8] = 0xc3;
    let mut fddi = pcap(ORDERS[0], false, &[(1, 0, tcp(5))]);
    let number = ORDERS[0].u32(10);
    fddi[20..24].copy_from_slice(&number);
    let ethernet = pcap(ORDERS[0], false, &[(2, 0, tcp(6)), (3, 0, quic)]);
    let (found, segments) = all(&[&fddi, &ethernet]);
    assert_eq!(found.len(), 1);
    let notes = segments.counts().notes().join("\n");
    assert!(notes.contains("1 packets of a link type"), "{notes}");
    assert!(notes.contains("10 (FDDI)"), "{notes}");
    assert!(notes.contains("1 packets are QUIC"), "{notes}");
    assert_eq!(segments.counts().not_tcp, 1);
}

/// Version 2.2 and 2.3 had writers that put the length on the wire first.
#[test]
fn old_files_may_have_their_lengths_swapped() {
    let mut file = pcap(ORDERS[0], false, &[(1, 0, tcp(5)), (2, 0, tcp(6))]);
    file[6..8].copy_from_slice(&ORDERS[0].u16(2));
    // Cut to 60 bytes: the second word says so.
    let whole = tcp(5).len();
    let mut swapped = file[..24].to_vec();
    for at in [24, 24 + 16 + whole] {
        swapped.extend_from_slice(&file[at..at + 8]);
        swapped.extend_from_slice(&ORDERS[0].u32(whole as u32));
        swapped.extend_from_slice(&ORDERS[0].u32(60));
        swapped.extend_from_slice(&file[at + 16..at + 76]);
    }
    let (found, _) = all(&[&swapped]);
    assert_eq!(seqs(&found), [(1, 5), (2, 6)]);
}

/// A file of zeros that unpacks to far more than it is: records of no bytes,
/// read in the memory of a chunk.
#[test]
fn a_bomb_is_a_stream() {
    let mut bomb = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    bomb.write_all(&pcap(Order::Little, false, &[])).unwrap();
    let megabyte = vec![0; 1 << 20];
    for _ in 0..64 {
        bomb.write_all(&megabyte).unwrap();
    }
    let bomb = bomb.finish().unwrap();
    assert!(bomb.len() < 100_000);
    let (found, segments) = all(&[&bomb]);
    assert_eq!(found.len(), 0);
    assert_eq!(segments.counts().cut, 64 << 16);
}

fn capture(order: Order) -> Vec<u8> {
    [
        section(order),
        interface(order, 1, 9, 0),
        interface(order, 113, 6, -1),
        packet(order, 0, 7, &tcp(1)),
        packet(order, 1, 8, &[&[0; 14][..], &tcp(2)[12..]].concat()),
        packet(order, 0, 9, &udp(4789, 100)),
    ]
    .concat()
}

proptest! {
    #![proptest_config(testkit::properties())]

    #[test]
    fn mutated_captures_are_read_without_panic(
        big in any::<bool>(),
        ng in any::<bool>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        cut in any::<prop::sample::Index>(),
        pack in 0..3,
    ) {
        let order = if big { Order::Big } else { Order::Little };
        let mut file = if ng {
            capture(order)
        } else {
            pcap(order, big, &[(1, 0, tcp(1)), (2, 0, udp(6081, 50)), (3, 0, tcp(3))])
        };
        let mutate = |file: &mut Vec<u8>| {
            for (at, value) in &changes {
                let at = at.index(file.len());
                file[at] = *value;
            }
            file.truncate(cut.index(file.len()) + 1);
        };
        match pack {
            1 => {
                let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
                gz.write_all(&file).unwrap();
                file = gz.finish().unwrap();
            }
            2 => {
                let level = ruzstd::encoding::CompressionLevel::Fastest;
                file = ruzstd::encoding::compress_to_vec(file.as_slice(), level);
            }
            _ => {}
        }
        mutate(&mut file);
        let sources = vec![source("a", &file), source("b", &file)];
        if let Ok(mut segments) = Segments::open(sources) {
            while let Some(segment) = segments.next() {
                prop_assert!(segment.number > 0);
            }
        }
    }
}
