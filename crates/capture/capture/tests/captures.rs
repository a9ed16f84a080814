// SPDX-License-Identifier: MIT OR Apache-2.0
//! Captures of every kind, whole, broken and foreign.

use std::io::Write;

use capture::reader::{Capture, read_capture};
use capture::record::{Kind, NO_FLOW};
use etherparse::PacketBuilder;
use proptest::prelude::*;

use crate::common::{
    ORDERS, Order, interface, packet, pause, pcap, pcapng_two_clocks, section, udp,
};

fn read(bytes: &[u8]) -> Capture {
    read_capture(bytes).unwrap()
}

fn starts(capture: &Capture) -> Vec<u64> {
    capture.records.iter().map(|r| r.start_ps).collect()
}

#[test]
fn pcap_of_either_order_and_unit() {
    for order in ORDERS {
        for (nanos, unit_ps) in [(false, 1_000_000), (true, 1_000)] {
            let file = pcap(
                order,
                nanos,
                &[
                    (1_700_000_000, 999_999, udp(5001, 40)),
                    (1_700_000_001, 1, pause()),
                    (1_700_000_001, 2, udp(5002, 0)),
                ],
            );
            let c = read(&file);
            assert_eq!(c.damage, None);
            assert_eq!(
                c.origin_ps,
                1_700_000_000_000_000_000_000 + 999_999 * i128::from(unit_ps)
            );
            let second = 1_000_000_000_000 - 999_999 * unit_ps;
            assert_eq!(starts(&c), [0, second + unit_ps, second + 2 * unit_ps]);
            assert_eq!(c.interfaces[0].resolution_ps, unit_ps);
            let lengths: Vec<_> = c
                .records
                .iter()
                .map(|r| (r.frame_bytes, r.wire_bytes))
                .collect();
            assert_eq!(lengths, [(100, 124), (60, 84), (60, 84)]);
            let kinds: Vec<_> = c.records.iter().map(|r| (r.kind, r.flow)).collect();
            assert_eq!(
                kinds,
                [(Kind::Data, 0), (Kind::Pause, NO_FLOW), (Kind::Data, 1)]
            );
            assert_eq!(
                c.flows.to_text(),
                "0 udp 10.1.1.1 40000 10.1.2.1 5001\n1 udp 10.1.1.1 40000 10.1.2.1 5002\n"
            );
        }
    }
}

#[test]
fn pcapng_has_a_clock_for_each_interface() {
    for order in ORDERS {
        let c = read(&pcapng_two_clocks(order));
        assert_eq!(c.damage, None);
        // 2 s + 1 us; 0.5 s + 2 s in steps of 2^-10 s; the SLL packet is 44 + 14 bytes.
        assert_eq!(c.origin_ps, 2_000_001_000_000);
        assert_eq!(starts(&c), [0, 499_999_000_000]);
        assert_eq!(c.records[1].frame_bytes, 60);
        assert_eq!((c.records[0].queue, c.records[1].queue), (0, 1));
        assert_eq!(c.records[0].flow, c.records[1].flow);
        let resolutions: Vec<_> = c.interfaces.iter().map(|i| i.resolution_ps).collect();
        assert_eq!(resolutions, [1_000, 976_562_500, 1_000_000]);
        assert_eq!(c.skipped, 1, "a packet of a link type nobody knows");
    }
}

#[test]
fn sections_of_different_order_follow_one_another() {
    let mut file = Vec::new();
    for (i, order) in [Order::Big, Order::Little, Order::Big]
        .into_iter()
        .enumerate()
    {
        file.extend(section(order));
        file.extend(interface(order, 1, 12, 0));
        file.extend(packet(order, 0, i as u64, &udp(1, 0)));
    }
    let c = read(&file);
    assert_eq!(c.damage, None);
    assert_eq!(starts(&c), [0, 1, 2]);
    assert_eq!(c.interfaces.len(), 3);
}

#[test]
fn packets_out_of_order_are_sorted_and_counted() {
    let file = pcap(
        Order::Little,
        true,
        &[(5, 9, udp(1, 0)), (5, 2, udp(2, 0)), (5, 10, udp(3, 0))],
    );
    let c = read(&file);
    assert_eq!((starts(&c), c.out_of_order), (vec![0, 7_000, 8_000], 1));
    assert_eq!(c.records[0].flow, 1);
}

#[test]
fn packed_captures_also_when_cut_short() {
    let packets: Vec<_> = (0..2000)
        .map(|i| (1, i, udp(i as u16, i as usize % 700)))
        .collect();
    let file = pcap(Order::Little, true, &packets);
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gz.write_all(&file).unwrap();
    let gz = gz.finish().unwrap();
    assert_eq!(read(&gz).records.len(), 2000);
    let zst = ruzstd::encoding::compress_to_vec(
        file.as_slice(),
        ruzstd::encoding::CompressionLevel::Fastest,
    );
    assert_eq!(read(&zst).records.len(), 2000);
    let c = read(&gz[..gz.len() * 3 / 4]);
    assert!(c.damage.is_some());
    assert!(
        (1000..2000).contains(&c.records.len()),
        "{}",
        c.records.len()
    );
    // A zstd decoder may still hold everything back when it fails.
    let cut = read_capture(&zst[..zst.len() * 3 / 4]);
    assert!(cut.is_err_and(|e| e.to_string().contains("cannot read")));
}

#[test]
fn truncation_at_every_byte_keeps_what_is_whole() {
    for order in ORDERS {
        let packets = [(1, 1, udp(1, 3)), (1, 2, udp(2, 0)), (1, 3, pause())];
        let file = pcap(order, true, &packets);
        let mut ends = vec![24];
        for (_, _, bytes) in &packets {
            ends.push(ends[ends.len() - 1] + 16 + bytes.len());
        }
        check_truncations(&file, &ends, 24);

        let parts = [
            section(order),
            interface(order, 1, 9, 0),
            packet(order, 0, 5, &udp(1, 3)),
            packet(order, 0, 6, &udp(2, 0)),
        ];
        let mut ends = vec![parts[0].len() + parts[1].len()];
        ends.push(ends[0] + parts[2].len());
        ends.push(ends[1] + parts[3].len());
        check_truncations(&parts.concat(), &ends, 4);
    }
}

/// `ends`: where the headers end, then each packet. Below `least` nothing can
/// be recognised.
fn check_truncations(file: &[u8], ends: &[usize], least: usize) {
    for cut in 0..=file.len() {
        let result = read_capture(&file[..cut]);
        if cut < least {
            let error = result.unwrap_err().to_string();
            assert!(
                error.contains("expected a capture") || error.contains("of 24 bytes"),
                "{error}"
            );
            continue;
        }
        let c = result.unwrap();
        let whole = ends.iter().skip(1).filter(|e| **e <= cut).count();
        assert_eq!(c.records.len(), whole, "cut at {cut}");
        match c.damage {
            // At a block's end nothing is missing that one could know of.
            None => assert!(ends.contains(&cut) || cut < ends[0], "cut at {cut}"),
            Some(damage) => {
                assert!(damage.what.contains("ends inside the record"), "{damage}");
                let offset = usize::try_from(damage.offset).unwrap();
                assert!(offset < cut && (ends.contains(&offset) || offset < ends[0]));
            }
        }
    }
}

#[test]
fn damage_in_the_middle_is_placed() {
    let good = pcap(Order::Little, true, &[(1, 1, udp(1, 0)), (1, 2, udp(1, 0))]);
    let mut file = good.clone();
    let second = 24 + 16 + 60;
    file[second + 8..second + 12].copy_from_slice(&[0xff; 4]);
    let c = read(&file);
    assert_eq!(c.records.len(), 1);
    let damage = c.damage.unwrap();
    assert_eq!(damage.offset, second as u64);
    assert_eq!(
        damage.to_string(),
        "only the first 100 bytes are used: a packet of 4294967295 captured bytes at byte 100"
    );
}

#[test]
fn foreign_files_are_named_by_their_first_bytes() {
    let error = read_capture(&b"\x7fELF\x02\x01\x01"[..])
        .unwrap_err()
        .to_string();
    assert_eq!(
        error,
        "expected a capture (pcap or pcapng, plain or packed by gzip or zstd); \
         the file starts with 7f 45 4c 46 02 01 01"
    );
    let error = read_capture(&b""[..]).unwrap_err().to_string();
    assert!(
        error.ends_with("starts with nothing: it is empty"),
        "{error}"
    );
}

#[test]
fn timestamps_that_cannot_be_one_capture_are_refused() {
    let file = pcap(
        Order::Little,
        true,
        &[(0, 0, udp(1, 0)), (u32::MAX, 0, udp(1, 0))],
    );
    let error = read_capture(file.as_slice()).unwrap_err().to_string();
    assert!(error.contains("213 days"), "{error}");
}

/// A good capture of few packets.
fn small_capture(order: Order, ng: bool) -> Vec<u8> {
    if ng {
        pcapng_two_clocks(order)
    } else {
        pcap(order, true, &[(1, 1, udp(1, 3)), (1, 2, pause())])
    }
}

/// A capture that was changed is read or refused, and what is read is sane.
fn check_spoiled(file: &[u8]) {
    if let Ok(c) = read_capture(file) {
        // A length made smaller turns a packet's bytes into records. Each takes 16
        // bytes at least, and the file's head 24, in either format.
        let most = (file.len() - 24) / 16;
        assert!(c.records.len() <= most, "{}", c.records.len());
        assert!(c.records.is_sorted_by_key(|r| r.start_ps));
    }
}

/// The second packet, of 60 bytes, is said to have 8: its zeros behind them are
/// three more records, of no bytes.
#[test]
fn a_length_made_smaller_turns_a_packet_into_records() {
    let mut file = small_capture(Order::Big, false);
    assert_eq!(read(&file).records.len(), 2);
    assert_eq!(std::mem::replace(&mut file[114], 8), 60);
    assert_eq!(read(&file).records.len(), 5);
    check_spoiled(&file);
}

#[test]
fn a_capture_with_any_byte_changed_is_read_without_panic() {
    for (order, ng) in ORDERS.into_iter().flat_map(|o| [(o, false), (o, true)]) {
        let mut file = small_capture(order, ng);
        for at in 0..file.len() {
            let good = file[at];
            for value in [0, 1, 8, 60, 127, 128, 255, good ^ 1] {
                file[at] = value;
                check_spoiled(&file);
            }
            file[at] = good;
        }
    }
}

proptest! {
    #![proptest_config(testkit::properties())]

    #[test]
    fn any_bytes_after_a_magic_are_read_without_panic(
        magic in 0usize..6,
        tail in proptest::collection::vec(any::<u8>(), 0..300),
    ) {
        let magics: [&[u8]; 6] = [
            &[0xd4, 0xc3, 0xb2, 0xa1], &[0xa1, 0xb2, 0x3c, 0x4d], &[0x0a, 0x0d, 0x0d, 0x0a],
            &[0x1f, 0x8b, 8, 0], &[0x28, 0xb5, 0x2f, 0xfd], &[],
        ];
        let _ = read_capture([magics[magic], &tail].concat().as_slice());
    }

    /// Good files with a few bytes changed reach deeper than random ones.
    #[test]
    fn spoiled_captures_are_read_without_panic(
        big in any::<bool>(),
        ng in any::<bool>(),
        spots in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let order = if big { Order::Big } else { Order::Little };
        let mut file = small_capture(order, ng);
        for (at, value) in spots {
            let at = at.index(file.len());
            file[at] = value;
        }
        check_spoiled(&file);
    }
}

/// A UDP frame to port 5001 within VXLAN network 7, whose outer frame is to port 4789.
fn tunnelled() -> Vec<u8> {
    let inner = udp(5001, 40);
    let mut out = Vec::new();
    PacketBuilder::ethernet2([2, 0, 0, 0, 0, 3], [2, 0, 0, 0, 0, 4])
        .ipv4([192, 0, 2, 1], [192, 0, 2, 2], 64)
        .udp(50000, 4789)
        .write(&mut out, &[&[8, 0, 0, 0, 0, 0, 7, 0][..], &inner].concat())
        .unwrap();
    out
}

#[test]
fn flows_are_those_within_tunnels() {
    let packets = [
        (1, 0, tunnelled()),
        (1, 1, udp(5001, 40)),
        (1, 2, tunnelled()),
    ];
    let c = read(&pcap(Order::Little, true, &packets));
    // The same flow seen before its tunnel and within it is two flows: nothing
    // counts twice.
    let names: Vec<_> = (0..2).map(|flow| c.flows.name(flow)).collect();
    assert_eq!(
        names,
        [
            Some("udp 10.1.1.1 40000 10.1.2.1 5001 in VXLAN 7".to_owned()),
            Some("udp 10.1.1.1 40000 10.1.2.1 5001".to_owned()),
        ]
    );
    let flows: Vec<_> = c.records.iter().map(|r| r.flow).collect();
    assert_eq!(flows, [0, 1, 0]);
    // A frame is as long as it was on this wire.
    assert_eq!(c.records[0].frame_bytes, 150);
}

#[test]
fn what_is_no_tunnel_keeps_its_outer_flow() {
    // To the port of VXLAN, without its header; and VXLAN around ARP.
    let mut arp = tunnelled();
    arp[62..64].copy_from_slice(&[8, 6]);
    let c = read(&pcap(
        Order::Little,
        true,
        &[(1, 0, udp(4789, 40)), (1, 1, arp)],
    ));
    assert_eq!(
        c.flows.to_text(),
        "0 udp 10.1.1.1 40000 10.1.2.1 4789\n1 udp 192.0.2.1 50000 192.0.2.2 4789\n"
    );
}

fn segments_of(file: &[u8]) -> (Vec<u64>, capture::segments::Counts, Vec<String>) {
    let source =
        capture::segments::Source::new("a", || Ok(Box::new(file) as Box<dyn std::io::Read>));
    let mut segments = capture::segments::Segments::open(vec![source]).unwrap();
    let mut times = Vec::new();
    while let Some(segment) = segments.next() {
        times.push(segment.time_ns);
    }
    let damages = segments.damages().iter().map(|(_, d)| d.to_string());
    (times, segments.counts().clone(), damages.collect())
}

fn tcp() -> Vec<u8> {
    let mut out = Vec::new();
    etherparse::PacketBuilder::ethernet2([2; 6], [4; 6])
        .ipv4([10, 1, 1, 1], [10, 1, 2, 1], 64)
        .tcp(5000, 80, 1, 900)
        .write(&mut out, &[7; 11])
        .unwrap();
    out
}

#[test]
fn a_file_of_nanoseconds_that_says_microseconds_is_read_as_nanoseconds() {
    for order in ORDERS {
        let file = pcap(order, false, &[(1, 20_010_240, tcp()), (1, 300, tcp())]);
        let (times, counts, _) = segments_of(&file);
        assert_eq!(times, [1_020_010_240, 1_000_000_300]);
        assert_eq!((counts.read_as_ns, counts.beyond_second), (1, 0));
        assert!(counts.notes()[0].contains("fractions of its packets are nanoseconds"));
        // Its look-alikes: what says nanoseconds, what fits into a second, and what fits nothing.
        for (nanos, fraction, ns, beyond) in [
            (true, 20_010_240, 1_020_010_240, 0),
            (false, 999_999, 1_999_999_000, 0),
            (false, 1_000_000_000, 1001 * 1_000_000_000u64, 1),
        ] {
            let (times, counts, _) = segments_of(&pcap(order, nanos, &[(1, fraction, tcp())]));
            assert_eq!((times, counts.read_as_ns), (vec![ns], 0));
            assert_eq!(counts.beyond_second, beyond);
        }
    }
}

#[test]
fn a_link_type_with_the_length_of_a_checksum_is_that_link_type() {
    for order in ORDERS {
        let mut file = pcap(order, false, &[(1, 0, tcp())]);
        file[20..24].copy_from_slice(&order.u32(0x1400_0001));
        assert_eq!(segments_of(&file).1.segments, 1);
    }
}

/// An enhanced packet with options, or without the padding of its block.
fn enhanced(order: Order, bytes: &[u8], options: &[u8], is_padded: bool) -> Vec<u8> {
    let length = order.u32(bytes.len() as u32);
    let head = [&order.u32(0)[..], &[0; 8], &length, &length, bytes].concat();
    let mut body = [&head[..], options].concat();
    if is_padded {
        body = head;
        body.resize(body.len().next_multiple_of(4), 0);
        body.extend(options);
    }
    let length = order.u32(body.len() as u32 + 12);
    [&order.u32(6)[..], &length, &body, &length].concat()
}

#[test]
fn blocks_of_odd_lengths_are_read_and_said() {
    for order in ORDERS {
        let bytes = tcp();
        assert_ne!(bytes.len() % 4, 0);
        let begin = [section(order), interface(order, 1, 9, 0)].concat();
        let odd = enhanced(order, &bytes, &[], false);
        let (_, counts, damages) = segments_of(&[&begin[..], &odd, &odd].concat());
        assert_eq!((counts.segments, counts.odd_lengths), (2, 2), "{damages:?}");
        assert!(counts.notes()[0].starts_with("2 blocks have a length that is no multiple of 4"));
        // Padded, and the padding not counted.
        let mut uncounted = enhanced(order, &bytes, &[], true);
        let said = order.u32(odd.len() as u32);
        let last = uncounted.len() - 4;
        uncounted[4..8].copy_from_slice(&said);
        uncounted[last..].copy_from_slice(&said);
        let (_, counts, damages) =
            segments_of(&[&begin[..], &uncounted, &odd, &uncounted].concat());
        assert_eq!((counts.segments, counts.odd_lengths), (3, 3), "{damages:?}");
        let even = enhanced(order, &bytes, &[], true);
        assert_eq!(segments_of(&[&begin[..], &even].concat()).1.odd_lengths, 0);
        // The lengths of a block contradict each other.
        let mut broken = [&begin[..], &odd].concat();
        let last = broken.len() - 4;
        broken[last..].copy_from_slice(&order.u32(4));
        let (_, _, damages) = segments_of(&broken);
        assert!(
            damages[0].contains("differ, of which the first is no multiple of 4"),
            "{damages:?}"
        );
    }
}

#[test]
fn packets_that_the_capture_lost_are_said() {
    for order in ORDERS {
        let begin = [section(order), interface(order, 1, 9, 0)].concat();
        let option = |code: u16, value: u64| {
            [&order.u16(code)[..], &order.u16(8), &order.u64(value)].concat()
        };
        let packet = |lost: u64| enhanced(order, &tcp(), &option(4, lost), true);
        let statistics = |lost: u64, system: u64| {
            let body = [
                &order.u32(0)[..],
                &[0; 8],
                &option(5, lost),
                &option(7, system),
            ]
            .concat();
            crate::common::block(order, 5, &body)
        };
        let dropped = |blocks: &[&[u8]]| {
            segments_of(&[&begin[..], &blocks.concat()].concat())
                .1
                .dropped
        };
        assert_eq!(dropped(&[&packet(0), &statistics(0, 0)]), 0);
        assert_eq!(dropped(&[&packet(2), &packet(3)]), 5);
        // The counts of an interface grow, and are of the same packets.
        assert_eq!(
            dropped(&[&packet(2), &statistics(1, 0), &statistics(4, 3)]),
            7
        );
        let (_, counts, _) = segments_of(&[&begin[..], &packet(2), &begin, &packet(1)].concat());
        assert_eq!(counts.dropped, 3);
        assert!(counts.notes()[0].starts_with("3 packets were lost by the capture itself"));
    }
}

#[test]
fn formats_that_editcap_converts_are_named() {
    for (first, whose) in [
        (&b"snoop\0\0\0\0\0\0\x02"[..], "snoop's"),
        (b"GMBU\0\x02\x01\0", "Network Monitor's"),
        (b"XCP\x002.00", "NetXRay's"),
        (b"iptrace 2.0 ", "iptrace's"),
        (b"TRSNIFF data    \x1a\0", "Sniffer's"),
    ] {
        let error = read_capture(first).unwrap_err().to_string();
        assert!(
            error.contains(whose) && error.contains("editcap -F pcap"),
            "{error}"
        );
    }
}
