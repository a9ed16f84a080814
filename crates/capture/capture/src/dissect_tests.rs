// SPDX-License-Identifier: MIT OR Apache-2.0
//! Packets of all kinds, read as segments.

use super::*;
use crate::frame::CaptureTime;
use crate::segment::HostDirection;
use etherparse::{PacketBuilder, TcpOptionElement as O};
use proptest::prelude::*;

const MACS: ([u8; 6], [u8; 6]) = ([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]);

fn frame(link: i32, bytes: &[u8], packet_bytes: usize) -> Frame<'_> {
    Frame {
        time: CaptureTime { seconds: 1, ps: 0 },
        interface: 0,
        link: Link::from_number(link),
        host_direction: HostDirection::Unknown,
        packet_bytes: packet_bytes.max(bytes.len()) as u32,
        bytes,
        options: crate::frame::Options::default(),
    }
}

fn dissect(frame: &Frame<'_>, all: &mut Encapsulations) -> Result<(Segment, bool), Other> {
    let mut segment = Segment::default();
    let found = super::dissect(frame, all, &mut segment)?;
    // The quick way finds what the long one finds.
    let mut long = Segment::default();
    assert_eq!(tunnelled(frame, all, &mut long), Ok(found));
    assert_eq!(segment, long);
    Ok((segment, found))
}

fn read(bytes: &[u8]) -> Result<Segment, Other> {
    let all = &mut Encapsulations::default();
    dissect(&frame(1, bytes, bytes.len()), all).map(|found| found.0)
}

/// Whatever came before it, 100 bytes of payload.
macro_rules! tcp {
    ($builder:expr) => {{
        let mut out = Vec::new();
        $builder
            .tcp(5000, 80, 1000, 900)
            .ack(77)
            .options(&[
                O::Noop,
                O::Noop,
                O::Timestamp(5, 6),
                O::Noop,
                O::Noop,
                O::SelectiveAcknowledgement((10, 20), [Some((30, 40)), Some((50, 60)), None]),
            ])
            .unwrap()
            .write(&mut out, &[7; 100])
            .unwrap();
        out
    }};
}

fn v4() -> Vec<u8> {
    tcp!(PacketBuilder::ethernet2(MACS.0, MACS.1).ipv4([10, 1, 1, 1], [10, 1, 2, 1], 63))
}

/// The inner packet of [`v4`], without Ethernet.
fn inner() -> Vec<u8> {
    v4()[14..].to_vec()
}

#[test]
fn everything_a_header_says() {
    let s = read(&v4()).unwrap();
    assert_eq!(s.from.to_string(), "10.1.1.1:5000");
    assert_eq!(s.to.to_string(), "10.1.2.1:80");
    assert_eq!((s.seq, s.ack, s.window), (1000, 77, 900));
    assert_eq!(s.flags, Flags(Flags::ACK));
    assert_eq!(s.payload_bytes, 100);
    assert_eq!(
        s.timestamps,
        Some(Timestamps {
            value: 5,
            echo: Some(6)
        })
    );
    assert_eq!(s.sack.as_slice(), [(10, 20), (30, 40), (50, 60)]);
    assert_eq!(s.hop_limit, 63);
    assert!(!s.options_cut);
}

#[test]
fn what_begins_a_connection() {
    let mut out = Vec::new();
    PacketBuilder::ethernet2(MACS.0, MACS.1)
        .ipv6([1; 16], [2; 16], 64)
        .tcp(1, 2, 3, 4)
        .syn()
        .options(&[
            O::MaximumSegmentSize(8960),
            O::SelectiveAcknowledgementPermitted,
            O::WindowScale(9),
        ])
        .unwrap()
        .write(&mut out, &[])
        .unwrap();
    let s = read(&out).unwrap();
    assert_eq!(
        (s.mss, s.window_scale, s.sack_permitted),
        (Some(8960), Some(9), true)
    );
    assert_eq!((s.payload_bytes, s.sequence_length()), (0, 1));
}

#[test]
fn keys_and_tokens_of_multipath_tcp_are_read() {
    let of = |option: &[u8]| {
        let mut segment = Segment::default();
        each_option(option, &mut segment).unwrap();
        segment.mptcp
    };
    let key = [0, 1, 2, 3, 4, 5, 6, 7];
    let capable = [&[30, 12, 1, 1][..], &key].concat();
    assert_eq!(of(&capable), Some(Mptcp::Key(0x0001_0203_0405_0607)));
    let both = [&[30, 20, 1, 1][..], &key, &[9; 8]].concat();
    assert_eq!(of(&both), Some(Mptcp::Key(0x0001_0203_0405_0607)));
    let join = [30, 12, 0x10, 2, 0xad, 0xdc, 0x0e, 0x1c, 1, 2, 3, 4];
    assert_eq!(of(&join), Some(Mptcp::Join(0xaddc_0e1c)));
    // A SYN without a key, the answer to a joining SYN, a signal of the data's numbers.
    for other in [
        &[30, 4, 1, 1][..],
        &[&[30, 16, 0x10, 2][..], &[7; 12]].concat(),
        &[&[30, 20, 0x20, 5][..], &[7; 16]].concat(),
        &[30, 2],
    ] {
        assert_eq!(of(other), None, "{other:?}");
    }
}

#[test]
fn cut_at_every_byte() {
    let whole = v4();
    let all = read(&whole).unwrap();
    for cut in 0..whole.len() {
        let outcome = dissect(
            &frame(1, &whole[..cut], whole.len()),
            &mut Encapsulations::default(),
        );
        match outcome {
            Err(error) => assert!(cut < 50 && error == Other::Cut, "{cut}: {error:?}"),
            Ok((s, _)) => {
                assert!(cut >= 50);
                // Header 14 + 20 + 20, then 12 bytes of timestamps, 28 of SACK.
                assert_eq!(s.options_cut, cut < 94);
                assert_eq!(s.timestamps.map(|t| t.value), (cut >= 62).then_some(5));
                assert_eq!(s.timestamps.and_then(|t| t.echo), (cut >= 66).then_some(6));
                let blocks = cut.saturating_sub(70).min(24) / 8;
                assert_eq!(s.sack.as_slice(), &all.sack.as_slice()[..blocks]);
                assert_eq!(s.payload_bytes, 100);
            }
        }
    }
}

#[test]
fn padding_is_no_payload() {
    let mut out = Vec::new();
    PacketBuilder::ethernet2(MACS.0, MACS.1)
        .ipv4([10, 1, 1, 1], [10, 1, 2, 1], 64)
        .tcp(1, 2, 3, 4)
        .write(&mut out, &[])
        .unwrap();
    out.resize(60, 0);
    assert_eq!(read(&out).unwrap().payload_bytes, 0);
}

#[test]
fn packets_larger_than_their_length_field() {
    let mut whole = v4();
    whole[16] = 0;
    whole[17] = 0;
    let all = &mut Encapsulations::default();
    let (s, _) = dissect(&frame(1, &whole[..96], 200_094), all).unwrap();
    assert_eq!(s.payload_bytes, 200_094 - 94);

    // IPv6, with a jumbo payload option or with nothing but the length 0.
    let plain = tcp!(PacketBuilder::ethernet2(MACS.0, MACS.1).ipv6([1; 16], [2; 16], 64));
    let mut bare = plain.clone();
    bare[18..20].fill(0);
    let (s, _) = dissect(&frame(1, &bare, 100_114), all).unwrap();
    assert_eq!(s.payload_bytes, 100_000);
    let with = |length: u32| {
        let option = [&[6, 0, 0xc2, 4][..], &length.to_be_bytes()].concat();
        let mut jumbo = [&bare[..54], &option, &bare[54..]].concat();
        jumbo[20] = 0;
        jumbo
    };
    let (s, _) = dissect(&frame(1, &with(8 + 60 + 90_000), 100_122), all).unwrap();
    assert_eq!(s.payload_bytes, 90_000);
    // Not believed beyond what was on the wire.
    let (s, _) = dissect(&frame(1, &with(u32::MAX), 100_122), all).unwrap();
    assert_eq!(s.payload_bytes, 100_000);
}

#[test]
fn fragments() {
    let mut first = v4();
    first[20] = 0x20;
    let all = &mut Encapsulations::default();
    assert!(dissect(&frame(1, &first, 0), all).unwrap().1);
    first[21] = 1;
    assert_eq!(read(&first), Err(Other::LaterFragment));
}

#[test]
fn links() {
    let expected = read(&v4()).unwrap();
    let type_at = |at: usize, header: usize, direction_byte: (usize, u8)| {
        let mut out = vec![0; header];
        out[at..at + 2].copy_from_slice(&[8, 0]);
        out[direction_byte.0] = direction_byte.1;
        out.extend(inner());
        out
    };
    for (link, bytes, host_direction) in [
        (1, v4(), HostDirection::Unknown),
        (101, inner(), HostDirection::Unknown),
        (
            0,
            [&[2, 0, 0, 0][..], &inner()].concat(),
            HostDirection::Unknown,
        ),
        (113, type_at(14, 16, (1, 4)), HostDirection::Out),
        (113, type_at(14, 16, (1, 3)), HostDirection::Unknown),
        (276, type_at(0, 20, (10, 0)), HostDirection::In),
    ] {
        let found = dissect(&frame(link, &bytes, 0), &mut Encapsulations::default());
        assert_eq!(
            found.unwrap().0,
            Segment {
                host_direction,
                ..expected
            },
            "link {link}"
        );
    }
    let unknown = dissect(&frame(147, &v4(), 0), &mut Encapsulations::default());
    assert_eq!(unknown, Err(Other::UnknownLink));
}

/// Ethernet, then these bytes after its type.
fn ethernet(kind: u16, rest: &[&[u8]]) -> Vec<u8> {
    [&[0; 12][..], &kind.to_be_bytes(), &rest.concat()].concat()
}

/// An IPv4 header of this protocol and all that is in it.
fn ip(protocol: u8, rest: &[&[u8]]) -> Vec<u8> {
    let rest = rest.concat();
    let total = (rest.len() + 20) as u16;
    let [high, low] = total.to_be_bytes();
    let header = [
        0x45, 0, high, low, 0, 0, 0, 0, 64, protocol, 0, 0, 192, 0, 2, 9, 192, 0, 2, 1,
    ];
    [&header[..], &rest].concat()
}

fn udp(port: u16, rest: &[&[u8]]) -> Vec<u8> {
    let [high, low] = port.to_be_bytes();
    ip(17, &[&[0xc0, 1, high, low, 0, 0, 0, 0], &rest.concat()])
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn tunnels() {
    let (frame_in, packet_in) = (v4(), inner());
    let (frame_in, packet_in) = (&frame_in[..], &packet_in[..]);
    let ends = "192.0.2.1 - 192.0.2.9";
    let v6 = tcp!(PacketBuilder::ethernet2(MACS.0, MACS.1).ipv6([1; 16], [2; 16], 64));
    let tag = |vlan: u8, kind: u16| [0x20, vlan, kind.to_be_bytes()[0], kind.to_be_bytes()[1]];
    let gre = |flags: u8, kind: u16, rest: &[&[u8]]| {
        let [high, low] = kind.to_be_bytes();
        ethernet(
            0x0800,
            &[&ip(47, &[&[flags, 0, high, low], &rest.concat()])],
        )
    };
    let over_udp = |port: u16, rest: &[&[u8]]| ethernet(0x0800, &[&udp(port, rest)]);
    let vni = [0, 0, 77, 0];
    let cases: Vec<(String, Vec<u8>)> = vec![
        ("".into(), ethernet(0x8100, &[&tag(0, 0x0800), packet_in])),
        (
            "VLAN 5".into(),
            ethernet(0x8100, &[&tag(5, 0x0800), packet_in]),
        ),
        (
            "VLAN 5, VLAN 6".into(),
            ethernet(0x88a8, &[&tag(5, 0x8100), &tag(6, 0x0800), packet_in]),
        ),
        (
            "MPLS".into(),
            ethernet(0x8847, &[&[0, 1, 0x00, 9], &[0, 2, 0x01, 9], packet_in]),
        ),
        (
            "MPLS".into(),
            ethernet(0x8847, &[&[0, 2, 0x01, 9], &[0; 4], frame_in]),
        ),
        (
            "PPPoE 258".into(),
            ethernet(0x8864, &[&[0x11, 0, 1, 2, 0, 0, 0, 0x21], packet_in]),
        ),
        (
            "VXLAN 77".into(),
            over_udp(4789, &[&[8, 0, 0, 0], &vni, frame_in]),
        ),
        (
            "VXLAN 77".into(),
            over_udp(8472, &[&[8, 0, 0, 0], &vni, frame_in]),
        ),
        (
            "VXLAN 77".into(),
            over_udp(4790, &[&[0xc, 0, 0, 1], &vni, packet_in]),
        ),
        (
            "GENEVE 77".into(),
            over_udp(6081, &[&[1, 0, 0x65, 0x58], &vni, &[0; 4], frame_in]),
        ),
        (
            "GENEVE 77".into(),
            over_udp(6081, &[&[0, 0, 0x08, 0x00], &vni, packet_in]),
        ),
        (
            format!("GTP {ends}"),
            over_udp(2152, &[&[0x30, 0xff, 0, 0, 1, 2, 3, 4], packet_in]),
        ),
        (
            format!("GTP {ends}"),
            over_udp(
                2152,
                &[
                    &[0x34, 0xff, 0, 0, 1, 2, 3, 4],
                    &[0, 0, 0, 0x85],
                    &[1, 0, 0, 0],
                    packet_in,
                ],
            ),
        ),
        (
            "MPLS".into(),
            over_udp(6635, &[&[0, 2, 0x01, 9], packet_in]),
        ),
        (
            format!("IP in IP {ends}"),
            ethernet(0x0800, &[&ip(4, &[packet_in])]),
        ),
        (format!("GRE {ends}"), gre(0, 0x0800, &[packet_in])),
        (
            "GRE key 513".into(),
            gre(0xb0, 0x0800, &[&[0; 4], &[0, 0, 2, 1], &[0; 4], packet_in]),
        ),
        ("NVGRE 77".into(), gre(0x20, 0x6558, &[&vni, frame_in])),
        ("ERSPAN 0".into(), gre(0, 0x88be, &[frame_in])),
        (
            "ERSPAN 3".into(),
            gre(
                0x10,
                0x88be,
                &[&[0; 4], &[0x10, 0, 0, 3, 0, 0, 0, 0], frame_in],
            ),
        ),
        (
            "ERSPAN 3".into(),
            gre(
                0x10,
                0x22eb,
                &[
                    &[0; 4],
                    &[0x20, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 1],
                    &[0; 8],
                    frame_in,
                ],
            ),
        ),
    ];
    let expected = read(frame_in).unwrap();
    for (name, bytes) in cases {
        let mut all = Encapsulations::default();
        let (found, _) =
            dissect(&frame(1, &bytes, 0), &mut all).unwrap_or_else(|e| panic!("{name}: {e:?}"));
        assert_eq!(all.name(found.encapsulation), name);
        let encapsulation = found.encapsulation;
        assert_eq!(
            found,
            Segment {
                encapsulation,
                ..expected
            },
            "{name}"
        );
        for cut in 0..bytes.len() {
            let _ = dissect(&frame(1, &bytes[..cut], bytes.len()), &mut all);
        }
    }
    // 6 in 4.
    let mut all = Encapsulations::default();
    let bytes = ethernet(0x0800, &[&ip(41, &[&v6[14..]])]);
    let (found, _) = dissect(&frame(1, &bytes, 0), &mut all).unwrap();
    assert_eq!(
        found.from.to_string(),
        "[101:101:101:101:101:101:101:101]:5000"
    );
    assert_eq!(all.name(found.encapsulation), format!("IP in IP {ends}"));
}

#[test]
fn a_tunnel_in_itself_has_an_end() {
    let mut bytes = inner();
    for _ in 0..100 {
        bytes = ip(4, &[&bytes]);
    }
    assert_eq!(read(&ethernet(0x0800, &[&bytes])), Err(Other::NotTcp));
}

#[test]
fn what_is_not_tcp_is_named() {
    let mut udp = Vec::new();
    PacketBuilder::ethernet2(MACS.0, MACS.1)
        .ipv4([10, 1, 1, 1], [10, 1, 2, 1], 64)
        .udp(1, 2)
        .write(&mut udp, &[0; 20])
        .unwrap();
    assert_eq!(read(&udp), Err(Other::NotTcp));
    assert_eq!(read(&ethernet(0x0806, &[&[0; 28]])), Err(Other::NotTcp));
    for (at, value) in [(14, 0x44), (14, 0x75), (17, 19), (46, 0x40), (46, 0xf0)] {
        let mut broken = v4();
        broken[at] = value;
        if at == 17 {
            broken[16] = 0;
        }
        if value == 0xf0 {
            broken[16] = 0;
            broken[17] = 79;
        }
        assert_eq!(read(&broken), Err(Other::Malformed), "{at}: {value}");
    }
}

#[test]
fn broken_options_do_not_hide_those_before() {
    let mut bytes = v4();
    // The SACK option's length.
    bytes[69] = 1;
    let s = read(&bytes).unwrap();
    assert!(s.options_cut && s.timestamps.is_some() && s.sack.as_slice().is_empty());
    bytes[69] = 200;
    assert!(read(&bytes).unwrap().options_cut);
}

proptest! {
    #![proptest_config(testkit::properties())]

    #[test]
    fn any_bytes_are_read_without_panic(
        link in prop::sample::select(vec![0, 1, 101, 104, 105, 107, 113, 127, 192, 239, 276]),
        bytes in prop::collection::vec(any::<u8>(), 0..120),
        at in 0usize..120,
        packet_bytes in any::<u32>(),
    ) {
        let all = &mut Encapsulations::default();
        let _ = dissect(&frame(link, &bytes, packet_bytes as usize), all);
        // And a good packet from anywhere on.
        let mut mixed = v4();
        mixed.truncate(at);
        mixed.extend(&bytes);
        let _ = dissect(&frame(link, &mixed, packet_bytes as usize), all);
    }
}
