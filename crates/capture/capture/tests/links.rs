// SPDX-License-Identifier: MIT OR Apache-2.0
//! Link types and encapsulations other than Ethernet's, by their public specifications.

use std::io::Read;

use capture::reader::read_capture;
use capture::segment::{HostDirection, Segment};
use capture::segments::{Counts, Segments, Source};
use proptest::prelude::*;

use crate::common::{ORDERS, interface, packet, section};
use crate::link_cases::{
    SNAP, attribute, capwap, cases, frame, ip, over_udp, pktap, radiotap, tagged, wifi,
};

const LINKS: [u32; 23] = [
    0, 1, 9, 50, 51, 101, 104, 105, 107, 108, 113, 127, 166, 192, 204, 239, 242, 258, 276, 281,
    282, 284, 285,
];

/// A pcap file of one packet of this link type.
fn pcap(link: u32, bytes: &[u8]) -> Vec<u8> {
    let length = bytes.len() as u32;
    let mut file = Vec::new();
    for word in [
        0xa1b2_c3d4,
        0x0004_0002,
        0,
        0,
        65535,
        link,
        7,
        0,
        length,
        length,
    ] {
        file.extend(word.to_le_bytes());
    }
    file.extend(bytes);
    file
}

/// Reads a file: its first segment, the name of what is around it, and the counts.
fn read(file: &[u8]) -> (Option<Segment>, String, Counts) {
    let source = Source::new("a", move || Ok(Box::new(file) as Box<dyn Read + '_>));
    let mut segments = Segments::open(vec![source]).unwrap();
    let first = segments.next();
    while segments.next().is_some() {}
    let id = first.map_or(0, |first| first.encapsulation);
    let name = segments.encapsulations().name(id);
    (first, name, segments.counts().clone())
}

#[test]
fn each_is_read_as_the_packet_inside() {
    let expected = read(&pcap(1, &frame())).0.unwrap();
    for (what, link, name, bytes) in cases() {
        let (found, around, _) = read(&pcap(link, &bytes));
        let found = found.unwrap_or_else(|| panic!("{what}"));
        assert_eq!(around, name, "{what}");
        let encapsulation = found.encapsulation;
        let expected = Segment {
            encapsulation,
            ..expected
        };
        assert_eq!(found, expected, "{what}");
        for cut in 0..bytes.len() {
            read(&pcap(link, &bytes[..cut]));
        }
    }
}

#[test]
fn the_log_of_netfilter_in_either_byte_order() {
    let frame = frame();
    let expected = read(&pcap(1, &frame)).0.unwrap();
    for order in ORDERS {
        for (hook, host_direction) in [
            (1, HostDirection::In),
            (3, HostDirection::Out),
            (2, HostDirection::Unknown),
        ] {
            let bytes = [
                &[2, 0, 0, 5][..],
                &attribute(order, 1, &[8, 0, hook, 0]),
                &attribute(order, 10, b"prefix"),
                &attribute(order, 9, &frame[14..]),
            ]
            .concat();
            let (found, _, _) = read(&pcap(239, &bytes));
            let expected = Segment {
                host_direction,
                ..expected
            };
            assert_eq!(found, Some(expected));
        }
    }
    let endless = [&[2, 0, 0, 5][..], &[0, 0, 1, 0]].concat();
    assert_eq!(read(&pcap(239, &endless)).2.malformed, 1);
}

#[test]
fn links_that_state_the_direction() {
    let frame = frame();
    let expected = read(&pcap(1, &frame)).0.unwrap();
    let directed = |first: &[u8]| [first, &[0, 0x21], &frame[14..]].concat();
    for (link, bytes, host_direction) in [
        (166, directed(&[0, 3]), HostDirection::In),
        (166, directed(&[1, 3]), HostDirection::Out),
        (204, directed(&[0, 0xff, 3]), HostDirection::In),
        (204, directed(&[1]), HostDirection::Out),
        (258, pktap(1, 1, &frame), HostDirection::In),
        (258, pktap(1, 2, &frame), HostDirection::Out),
    ] {
        let expected = Segment {
            host_direction,
            ..expected
        };
        assert_eq!(read(&pcap(link, &bytes)).0, Some(expected), "{link}");
    }
    // A header inside itself.
    assert_eq!(read(&pcap(258, &pktap(2, 0, &frame))).2.unknown_link, 1);
}

#[test]
fn what_was_there_in_place_of_tcp_is_named() {
    let of = |link: u32, bytes: &[u8]| {
        let file = pcap(link, bytes);
        let source = Source::new("a", || Ok(Box::new(file.as_slice()) as Box<dyn Read>));
        let mut segments = Segments::open(vec![source]).unwrap();
        while segments.next().is_some() {}
        segments.insides()
    };
    let ethernet = |kind: [u8; 2], rest: &[u8]| [&[0; 12][..], &kind, rest].concat();
    for (link, bytes, expected) in [
        (
            1,
            ethernet([8, 6], &[0; 28]),
            "link type 1: 1 of EtherType 0x0806 (ARP)",
        ),
        (
            1,
            ethernet([0x99, 0x98], &[0; 28]),
            "link type 1: 1 of EtherType 0x9998",
        ),
        (
            1,
            ethernet([8, 0], &ip(115, &[&[0; 20]])),
            "link type 1: 1 of IP protocol 115 (L2TP)",
        ),
        (
            1,
            over_udp(51820, &[&[0; 20]]),
            "link type 1: 1 of UDP port 49153",
        ),
        (
            1,
            over_udp(53, &[&[0; 20]]),
            "link type 1: 1 of UDP port 53 (DNS)",
        ),
        (
            147,
            vec![0; 20],
            "link type 147: 1 of something that the link's header does not tell",
        ),
        (1, frame(), "link type 1:"),
    ] {
        let named = of(link, &bytes);
        if bytes == frame() {
            assert_eq!(named, "");
        } else {
            assert_eq!(named, expected);
        }
    }
}

#[test]
fn what_cannot_be_read_is_counted_by_its_reason() {
    let llc = [&SNAP[..], &frame()[14..]].concat();
    let encrypted = [
        (105, wifi([8, 0x41], &[], &llc)),
        (1, capwap(&[1, 0, 0, 0, 0, 0, 0, 0], &frame())),
        (1, [&[0; 12][..], &[8, 0], &ip(50, &[&[1; 40]])].concat()),
        (1, tagged(&[0x88, 0xe5, 0x0c, 0, 0, 0, 0, 1])),
        (9, [&[0xff, 3, 0, 0xfd][..], &frame()[14..]].concat()),
    ];
    for (link, bytes) in &encrypted {
        let (_, _, counts) = read(&pcap(*link, bytes));
        assert_eq!((counts.encrypted, counts.packets), (1, 1), "{link}");
        assert!(counts.notes()[0].starts_with("1 packets are encrypted below TCP"));
    }
    // Beacons, frames without data, keep-alives.
    for (link, bytes) in [
        (105, wifi([0x80, 0], &[], &llc)),
        (105, wifi([0x48, 1], &[], &llc)),
        (1, capwap(&[0, 0x10, 2, 8, 0, 0, 0, 0], &frame())),
        (
            1,
            [
                &[0; 12][..],
                &[8, 0],
                &ip(47, &[&[0x20, 1, 0x64, 0, 0, 0, 1, 2]]),
            ]
            .concat(),
        ),
    ] {
        assert_eq!(read(&pcap(link, &bytes)).2.not_tcp, 1);
    }
    // Later fragments, a checksum that was wrong.
    let mut fragment = wifi([8, 1], &[], &llc);
    fragment[22] |= 1;
    assert_eq!(read(&pcap(105, &fragment)).2.later_fragments, 1);
    let fragment = capwap(&[0, 0x10, 2, 0x80, 0, 0, 1, 0], &frame());
    assert_eq!(read(&pcap(1, &fragment)).2.later_fragments, 1);
    let broken = radiotap(&[2, 0, 0, 0, 0x50], &wifi([8, 1], &[], &llc));
    assert_eq!(read(&pcap(127, &broken)).2.malformed, 1);
    // PPI names a link type that is not read.
    let private = [0, 0, 8, 0, 147, 0, 0, 0, 1, 2, 3];
    assert_eq!(read(&pcap(192, &private)).2.unknown_link, 1);
    let (_, _, counts) = read(&pcap(8, &frame()));
    let note = &counts.notes()[0];
    assert!(
        note.contains("left out: 8 (SLIP); expected Ethernet (1), IP (101)"),
        "{note}"
    );
}

#[test]
fn lengths_count_as_those_of_ethernet_frames() {
    for (what, link, name, bytes) in cases() {
        if link == 1 || !name.is_empty() || what.contains("several") || what == "PPI of Ethernet" {
            continue;
        }
        let capture = read_capture(pcap(link, &bytes).as_slice()).unwrap();
        assert_eq!(
            capture.records[0].frame_bytes,
            frame().len() as u32,
            "{what}"
        );
    }
}

#[test]
fn a_packet_of_an_interface_that_is_not_described_is_left_out_alone() {
    for order in ORDERS {
        let file = [
            section(order),
            interface(order, 1, 6, 0),
            packet(order, 0, 1, &frame()),
            packet(order, 3, 2, &frame()),
            packet(order, 0, 3, &frame()),
        ]
        .concat();
        let (_, _, counts) = read(&file);
        let expected = Counts {
            packets: 3,
            segments: 2,
            no_interface: 1,
            ..Counts::default()
        };
        assert_eq!(counts, expected);
        assert!(counts.notes()[0].starts_with("1 packets name an interface"));
        let capture = read_capture(file.as_slice()).unwrap();
        assert_eq!((capture.records.len(), capture.skipped), (2, 1));
        assert_eq!(capture.damage, None);
    }
}

proptest! {
    #![proptest_config(testkit::properties())]

    #[test]
    fn any_bytes_behind_any_good_header_are_read_without_panic(
        case in 0..60usize,
        link in prop::sample::select(LINKS.to_vec()),
        at in 0..200usize,
        bytes in prop::collection::vec(any::<u8>(), 0..120),
    ) {
        read(&pcap(link, &bytes));
        let cases = cases();
        let (_, link, _, good) = &cases[case.min(cases.len() - 1)];
        let mut mixed = good.clone();
        mixed.truncate(at);
        mixed.extend(&bytes);
        let file = pcap(*link, &mixed);
        let (_, _, counts) = read(&file);
        prop_assert_eq!(counts.packets, 1);
        let _ = read_capture(file.as_slice());
        // One byte changed.
        let mut changed = good.clone();
        if let (Some(byte), Some(value)) = (changed.get_mut(at), bytes.first()) {
            *byte = *value;
        }
        read(&pcap(*link, &changed));
    }
}
