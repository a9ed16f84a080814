// SPDX-License-Identifier: MIT OR Apache-2.0
//! What expressions choose, and how mistakes are explained.

use etherparse::PacketBuilder;

use super::Expression;
use crate::frame::{CaptureTime, Frame};
use crate::link::Link;
use crate::segment::HostDirection;

const MACS: ([u8; 6], [u8; 6]) = ([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]);

fn ethernet() -> etherparse::PacketBuilderStep<etherparse::Ethernet2Header> {
    PacketBuilder::ethernet2(MACS.0, MACS.1)
}

/// TCP from 10.1.1.1:5000 to 10.1.2.1:80, UDP from 10.1.2.1:53 to 192.168.1.7:4000, TCP in VLAN 7
/// of IPv6, and an ARP request from 10.1.1.1 for 10.1.1.9.
fn packets() -> Vec<Vec<u8>> {
    let mut tcp = Vec::new();
    let step = ethernet().ipv4([10, 1, 1, 1], [10, 1, 2, 1], 63);
    step.tcp(5000, 80, 1, 9).write(&mut tcp, &[7; 100]).unwrap();
    let mut udp = Vec::new();
    let step = ethernet().ipv4([10, 1, 2, 1], [192, 168, 1, 7], 63);
    step.udp(53, 4000).write(&mut udp, &[7; 20]).unwrap();
    let mut tagged = Vec::new();
    let vlan = etherparse::VlanId::try_new(7).unwrap();
    let (from, to) = ([0xfd; 16], [0xfe; 16]);
    let step = ethernet().single_vlan(vlan).ipv6(from, to, 64);
    step.tcp(443, 6000, 1, 9).write(&mut tagged, &[]).unwrap();
    let mut arp = [&MACS.1[..], &MACS.0, &[8, 6, 0, 1, 8, 0, 6, 4, 0, 1]].concat();
    arp.extend([&MACS.0[..], &[10, 1, 1, 1], &[0; 6], &[10, 1, 1, 9]].concat());
    vec![tcp, udp, tagged, arp]
}

fn frame(bytes: &[u8]) -> Frame<'_> {
    Frame {
        time: CaptureTime { seconds: 1, ps: 0 },
        interface: 0,
        link: Link::from_number(1),
        host_direction: HostDirection::Unknown,
        packet_bytes: bytes.len() as u32,
        bytes,
        options: crate::frame::Options::default(),
    }
}

/// Numbers of the packets above that an expression chooses.
fn chosen(text: &str) -> Vec<usize> {
    let expression: Expression = text.parse().unwrap();
    let packets = packets();
    let numbers = (1..).zip(&packets);
    let found = numbers.filter(|(_, bytes)| expression.matches(&frame(bytes)));
    found.map(|(number, _)| number).collect()
}

#[test]
fn expressions_choose_what_compiled_filters_do() {
    for (text, expected) in [
        ("ip", &[1, 2][..]),
        ("arp", &[4]),
        ("ip6", &[]), // behind the tag
        ("tcp", &[1]),
        ("host 10.1.1.1", &[1, 4]),
        ("ip host 10.1.1.1", &[1]),
        ("arp host 10.1.1.9", &[4]),
        ("src 10.1.2.1", &[2]),
        ("dst host 10.1.2.1", &[1]),
        ("src or dst host 10.1.2.1", &[1, 2]),
        ("src and dst net 10.1", &[1, 4]),
        ("net 10.1.0.0/16", &[1, 2, 4]),
        ("net 10.1.2.0 mask 255.255.255.0", &[1, 2]),
        ("port 80", &[1]),
        ("udp port 80", &[]),
        ("tcp dst port 80 or 443", &[1]),
        ("port (53 or 80)", &[1, 2]),
        ("src portrange 5000-6000", &[1]),
        ("not port 53 and not arp", &[1, 3]),
        ("!(tcp || udp)", &[3, 4]),
        ("host 10.1.1.1 or 192.168.1.7", &[1, 2, 4]),
        // `and` and `or` bind equally, from left to right.
        ("arp or ip and tcp", &[1]),
        ("arp or (ip and tcp)", &[1, 4]),
        ("vlan", &[3]),
        ("vlan 8", &[]),
        ("vlan 7 and ip6 and tcp src port 443", &[3]),
        ("vlan and src net fdfd::/16", &[3]),
        ("ip proto 17", &[2]),
        ("ip proto \\tcp", &[1]),
        ("ether proto \\arp", &[4]),
        ("ether src host 02:00:00:00:00:01", &[1, 2, 3, 4]),
        ("ether dst host 02-0-0-0-0-1", &[]),
        ("less 80", &[2, 3, 4]),
        ("greater 154", &[1]),
    ] {
        assert_eq!(chosen(text), expected, "{text}");
    }
}

/// A packet that was cut before what decides is not chosen, whatever is negated.
#[test]
fn a_cut_packet_is_not_chosen() {
    let bytes = &packets()[0][..30];
    for (text, expected) in [
        ("ip", true),
        ("tcp", true),
        ("port 80", false),
        ("not port 80", false),
        ("tcp or port 80", true),
    ] {
        let expression: Expression = text.parse().unwrap();
        assert_eq!(expression.matches(&frame(bytes)), expected, "{text}");
    }
}

#[test]
fn mistakes_are_explained() {
    for (text, expected) in [
        ("", "expected a capture filter"),
        ("port", "expected an address or number behind \"port\""),
        (
            "port http",
            "port must be followed by 0 to 65535, not \"http\"",
        ),
        ("port 70000", "port must be followed by 0 to 65535"),
        ("host example", "host must be followed by an IP address"),
        (
            "net 10.1.2.3/16",
            "net 10.1.2.3/16: the address has bits behind the mask",
        ),
        ("net 10/33", "net must be followed by a net"),
        ("vlan 5000", "vlan must be followed by 0 to 4095"),
        (
            "tcp host 10.1.1.1",
            "10.1.1.1: tcp, udp and the like have ports",
        ),
        (
            "ip6 host 10.1.1.1",
            "10.1.1.1 is not an address of the protocol",
        ),
        ("tcp[13] & 2 != 0", "arithmetic on bytes"),
        ("(tcp", "expected \")\" behind \"(\""),
        ("tcp)", "expected \"and\", \"or\" or the end, not \")\""),
        ("tcp and", "expected a condition behind the last word"),
        ("tcp udp", "udp: tcp, udp and the like have ports"),
        ("broadcast", "\"broadcast\" is not understood"),
        ("not", "expected a condition"),
    ] {
        let error = text.parse::<Expression>().unwrap_err();
        assert!(error.starts_with(expected), "{text}: {error}");
    }
    let deep = "(".repeat(5000);
    assert!(
        deep.parse::<Expression>()
            .unwrap_err()
            .contains("more than 100")
    );
    let long = "tcp or ".repeat(5000);
    assert!(long.parse::<Expression>().is_err());
}
