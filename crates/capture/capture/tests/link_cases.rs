// SPDX-License-Identifier: MIT OR Apache-2.0
//! A packet behind the header of each link type and in each encapsulation.

use etherparse::PacketBuilder;

use crate::common::Order;

/// An Ethernet frame of a segment with 100 bytes, of which a header in front of it must not
/// change anything.
pub fn frame() -> Vec<u8> {
    let mut out = Vec::new();
    PacketBuilder::ethernet2([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2])
        .ipv4([10, 1, 1, 1], [10, 1, 2, 1], 63)
        .tcp(40000, 5001, 77, 900)
        .write(&mut out, &[7; 100])
        .unwrap();
    out
}

pub fn ip(protocol: u8, rest: &[&[u8]]) -> Vec<u8> {
    let rest = rest.concat();
    let [high, low] = (rest.len() as u16 + 20).to_be_bytes();
    let header = [
        0x45, 0, high, low, 0, 0, 0, 0, 64, protocol, 0, 0, 192, 0, 2, 9, 192, 0, 2, 1,
    ];
    [&header[..], &rest].concat()
}

/// The header of an 802.11 frame with these bytes of frame control.
pub fn wifi(control: [u8; 2], more: &[u8], rest: &[u8]) -> Vec<u8> {
    [&control[..], &[0; 20], &[0x10, 0], more, rest].concat()
}

pub const SNAP: [u8; 8] = [0xaa, 0xaa, 3, 0, 0, 0, 8, 0];

pub fn radiotap(fields: &[u8], rest: &[u8]) -> Vec<u8> {
    let length = (4 + fields.len()) as u16;
    [&[0, 0][..], &length.to_le_bytes(), fields, rest].concat()
}

/// An attribute of a netfilter log, padded.
pub fn attribute(order: Order, kind: u16, value: &[u8]) -> Vec<u8> {
    let length = order.u16(value.len() as u16 + 4);
    let mut out = [&length[..], &order.u16(kind), value].concat();
    out.resize(out.len().next_multiple_of(4), 0);
    out
}

pub fn capwap(header: &[u8], rest: &[u8]) -> Vec<u8> {
    let udp = [0xc0, 1, 0x14, 0x7f, 0, 0, 0, 0];
    let packet = ip(17, &[&udp, header, rest]);
    [&[0; 12][..], &[8, 0], &packet].concat()
}

/// Apple's header, of the length that macOS writes.
pub fn pktap(link: u8, flags: u8, rest: &[u8]) -> Vec<u8> {
    let mut header = vec![0; 108];
    (header[0], header[4], header[8], header[36]) = (108, 1, link, flags);
    [&header, rest].concat()
}

/// The frame with a tag between addresses and EtherType.
pub fn tagged(tag: &[u8]) -> Vec<u8> {
    let frame = frame();
    [&frame[..12], tag, &frame[12..]].concat()
}

pub fn over_udp(port: u16, rest: &[&[u8]]) -> Vec<u8> {
    let [high, low] = port.to_be_bytes();
    let packet = ip(17, &[&[0xc0, 1, high, low, 0, 0, 0, 0], &rest.concat()]);
    [&[0; 12][..], &[8, 0], &packet].concat()
}

/// IPv6 with a routing header, and Ethernet behind it.
pub fn srv6(rest: &[u8]) -> Vec<u8> {
    let address = |last: u8| [&[0x20, 1, 0x0d, 0xb8][..], &[0; 11], &[last]].concat();
    let routing = [&[143, 2, 4, 0, 0, 0, 0, 0][..], &address(2)].concat();
    let [high, low] = ((routing.len() + rest.len()) as u16).to_be_bytes();
    let header = [0x60, 0, 0, 0, high, low, 43, 64];
    let ends = [address(1), address(2)].concat();
    [&[0; 12][..], &[0x86, 0xdd], &header, &ends, &routing, rest].concat()
}

/// Link type, the name of what is around the segment, and the packet.
#[expect(clippy::too_many_lines, reason = "a table")]
pub fn cases() -> Vec<(&'static str, u32, &'static str, Vec<u8>)> {
    let frame = frame();
    let inner = &frame[14..];
    let llc = [&SNAP[..], inner].concat();
    let over_ip =
        |protocol: u8, rest: &[&[u8]]| [&[0; 12][..], &[8, 0], &ip(protocol, rest)].concat();
    let frame_bytes = (frame.len() as u16).to_be_bytes();
    let vlan = [&frame[..12], &[0x81, 0, 0, 5], &frame[12..]].concat();
    let length = (llc.len() as u16).to_be_bytes();
    let ends = "192.0.2.1 - 192.0.2.9";
    let capwap_name = "CAPWAP 192.0.2.1 - 192.0.2.9";
    assert!(capwap_name.ends_with(ends));
    vec![
        (
            "Frame Relay, IP",
            107,
            "",
            [&[0x18, 0x41, 3, 0xcc][..], inner].concat(),
        ),
        (
            "Frame Relay, an address of four bytes",
            107,
            "",
            [&[0x18, 0x40, 0, 1, 3, 0xcc][..], inner].concat(),
        ),
        (
            "Frame Relay, SNAP",
            107,
            "",
            [&[0x18, 0x41, 3, 0, 0x80, 0, 0, 0, 8, 0][..], inner].concat(),
        ),
        (
            "Frame Relay, bridged",
            107,
            "VLAN 5",
            [&[0x18, 0x41, 3, 0, 0x80, 0, 0x80, 0xc2, 0, 7][..], &vlan].concat(),
        ),
        (
            "Frame Relay, Cisco",
            107,
            "",
            [&[0x18, 0x41, 8, 0][..], inner].concat(),
        ),
        (
            "Cisco HDLC",
            104,
            "",
            [&[0x0f, 0, 8, 0][..], inner].concat(),
        ),
        ("802.11", 105, "", wifi([8, 1], &[], &llc)),
        ("802.11 between cells", 105, "", wifi([8, 3], &[0; 6], &llc)),
        ("802.11 with QoS", 105, "", wifi([0x88, 2], &[0; 2], &llc)),
        (
            "802.11 with HT control",
            105,
            "",
            wifi([0x88, 0x81], &[0; 6], &llc),
        ),
        (
            "802.11, several packets in one frame",
            105,
            "",
            wifi(
                [0x88, 1],
                &[0x80, 0],
                &[&[0; 12][..], &length, &llc, &[9; 30]].concat(),
            ),
        ),
        (
            "radiotap",
            127,
            "",
            radiotap(&[0; 4], &wifi([8, 1], &[], &llc)),
        ),
        (
            "radiotap with a clock and padding",
            127,
            "",
            radiotap(
                &[&[3, 0, 0, 0][..], &[0; 8], &[0x20, 0, 0, 0]].concat(),
                &wifi([0x88, 1], &[0; 4], &llc),
            ),
        ),
        (
            "radiotap of two words",
            127,
            "",
            radiotap(
                &[&[2, 0, 0, 0x80][..], &[0; 4], &[0x20, 0]].concat(),
                &wifi([0x88, 1], &[0; 4], &llc),
            ),
        ),
        (
            "PPI",
            192,
            "",
            [
                &[0, 0, 12, 0, 105, 0, 0, 0, 9, 9, 9, 9][..],
                &wifi([8, 2], &[], &llc),
            ]
            .concat(),
        ),
        (
            "PPI of Ethernet",
            192,
            "",
            [&[0, 0, 8, 0, 1, 0, 0, 0][..], &frame].concat(),
        ),
        (
            "802.3 with LLC and SNAP",
            1,
            "",
            [&[0; 12][..], &length, &llc, &[0; 9]].concat(),
        ),
        (
            "PBB",
            1,
            "VLAN 9, PBB 77",
            [
                &[0; 12][..],
                &[0x88, 0xa8, 0, 9, 0x88, 0xe7, 0x20, 0, 0, 77],
                &frame,
            ]
            .concat(),
        ),
        (
            "EoIP",
            1,
            "EoIP 513",
            over_ip(47, &[&[0x20, 1, 0x64, 0], &frame_bytes, &[1, 2], &frame]),
        ),
        (
            "AH",
            1,
            "IP in IP 192.0.2.1 - 192.0.2.9",
            over_ip(51, &[&[4, 4, 0, 0], &[1; 20], inner]),
        ),
        (
            "CAPWAP of 802.3",
            1,
            capwap_name,
            capwap(&[0, 0x10, 2, 0, 0, 0, 0, 0], &frame),
        ),
        (
            "CAPWAP of 802.11",
            1,
            capwap_name,
            capwap(
                &[0, 0x18, 3, 0x10, 0, 0, 0, 0, 9, 9, 9, 9],
                &wifi([8, 1], &[], &llc),
            ),
        ),
        (
            "CAPWAP of 802.11 with swapped bytes",
            1,
            capwap_name,
            capwap(
                &[0, 0x10, 3, 0, 0, 0, 0, 0],
                &wifi([2, 0x88], &[0; 2], &llc),
            ),
        ),
        ("PPP", 9, "", [&[0xff, 3, 0, 0x21][..], inner].concat()),
        ("PPP, all left out", 9, "", [&[0x21][..], inner].concat()),
        (
            "PPP of HDLC",
            50,
            "",
            [&[0xff, 3, 0, 0x21][..], inner].concat(),
        ),
        (
            "HDLC of Cisco",
            50,
            "",
            [&[0x0f, 0, 8, 0][..], inner].concat(),
        ),
        (
            "PPPoE alone",
            51,
            "PPPoE 258",
            [&[0x11, 0, 1, 2, 0, 0, 0, 0x21][..], inner].concat(),
        ),
        (
            "IP over InfiniBand",
            242,
            "",
            [&[9; 40][..], &[8, 0, 0, 0], inner].concat(),
        ),
        ("PKTAP", 258, "", pktap(1, 0, &frame)),
        (
            "PKTAP of loopback",
            258,
            "",
            pktap(0, 0, &[&[2, 0, 0, 0][..], inner].concat()),
        ),
        ("Marvell's tag", 284, "", tagged(&[0xc0, 8, 0, 0])),
        (
            "Marvell's tag with an EtherType",
            285,
            "",
            tagged(&[0xda, 0xda, 0, 0, 0xc0, 8, 0, 0]),
        ),
        (
            "the same, not of that link type",
            1,
            "",
            tagged(&[0xda, 0xda, 0, 0, 0xc0, 8, 0, 0]),
        ),
        ("Broadcom's tag", 281, "", tagged(&[1, 0, 0, 1])),
        (
            "Broadcom's tag in front",
            282,
            "",
            [&[1, 0, 0, 1][..], &frame].concat(),
        ),
        (
            "Cisco's metadata",
            1,
            "",
            tagged(&[0x89, 9, 1, 1, 0, 1, 0, 5]),
        ),
        ("VN-tag", 1, "", tagged(&[0x89, 0x26, 0, 1, 0, 2])),
        ("HSR", 1, "", tagged(&[0x89, 0x2f, 0, 60, 0, 2])),
        (
            "MACsec without encryption",
            1,
            "",
            tagged(&[0x88, 0xe5, 0x20, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 1, 0, 1]),
        ),
        (
            "MACsec of one channel",
            1,
            "",
            tagged(&[0x88, 0xe5, 0, 0, 0, 0, 0, 1]),
        ),
        (
            "NSH of Ethernet",
            1,
            "",
            [
                &[0; 12][..],
                &[0x89, 0x4f, 0x0f, 0xc6, 1, 3],
                &[0; 20],
                &frame,
            ]
            .concat(),
        ),
        (
            "NSH of IP in VXLAN-GPE",
            1,
            "VXLAN 77",
            over_udp(
                4790,
                &[&[0xc, 0, 0, 4, 0, 0, 77, 0, 0, 2, 2, 1, 0, 0, 0, 0], inner],
            ),
        ),
        (
            "WCCP",
            1,
            "GRE 192.0.2.1 - 192.0.2.9",
            over_ip(47, &[&[0, 0, 0x88, 0x3e, 0, 0, 0, 0], inner]),
        ),
        (
            "WCCP of version 1",
            1,
            "GRE 192.0.2.1 - 192.0.2.9",
            over_ip(47, &[&[0, 0, 0x88, 0x3e], inner]),
        ),
        (
            "EtherIP",
            1,
            "Ethernet in IP 192.0.2.1 - 192.0.2.9",
            over_ip(97, &[&[0x30, 0], &frame]),
        ),
        (
            "SRv6 of Ethernet",
            1,
            "Ethernet in IP 2001:db8::1 - 2001:db8::2",
            srv6(&frame),
        ),
        (
            "TZSP",
            1,
            "TZSP 192.0.2.1 - 192.0.2.9",
            over_udp(37008, &[&[1, 0, 0, 1, 0, 40, 2, 9, 9, 1], &frame]),
        ),
        (
            "TZSP of 802.11",
            1,
            "TZSP 192.0.2.1 - 192.0.2.9",
            over_udp(37008, &[&[1, 0, 0, 18, 1], &wifi([8, 1], &[], &llc)]),
        ),
        (
            "L2TP",
            1,
            "L2TP 192.0.2.1 - 192.0.2.9",
            over_udp(1701, &[&[0, 2, 0, 7, 0, 1, 0xff, 3, 0, 0x21], inner]),
        ),
        (
            "L2TP with all fields",
            1,
            "L2TP 192.0.2.1 - 192.0.2.9",
            over_udp(
                1701,
                &[
                    &[0x4a, 2, 0, 99, 0, 7, 0, 1, 0, 0, 0, 0, 0, 2, 9, 9, 0x21],
                    inner,
                ],
            ),
        ),
    ]
}
