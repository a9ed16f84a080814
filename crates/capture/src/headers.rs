// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a captured frame is: its flow, whether it only fills a gap, and how
//! long it was as an Ethernet frame.

use std::net::IpAddr;

use etherparse::{
    EtherType, LaxNetSlice, LaxSlicedPacket, LinkSlice, TransportSlice, ether_type, ip_number,
};
use units::ethernet::HEADER_BYTES;

use crate::flows::{FlowKey, Proto};
use crate::record::Kind;

/// How the first bytes of a captured packet are laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Link {
    Ethernet,
    /// An IP packet and nothing before it.
    RawIp,
    /// Four bytes of address family, in whose order nobody agrees, then an IP
    /// packet: loopback devices of BSD and macOS.
    Loopback,
    /// Linux "cooked", version 1 or 2, as `any` captures are.
    Cooked {
        header_bytes: usize,
        type_at: usize,
    },
}

impl Link {
    /// From the number in the file (LINKTYPE_...), if it is one of these.
    pub(crate) fn from_number(number: i32) -> Option<Self> {
        match number {
            1 => Some(Self::Ethernet),
            0 | 108 => Some(Self::Loopback),
            12 | 14 | 101 | 228 | 229 => Some(Self::RawIp),
            113 => Some(Self::Cooked {
                header_bytes: 16,
                type_at: 14,
            }),
            276 => Some(Self::Cooked {
                header_bytes: 20,
                type_at: 0,
            }),
            _ => None,
        }
    }

    /// Length as an Ethernet frame of a packet of `bytes`.
    pub(crate) fn frame_bytes(self, bytes: u32) -> u32 {
        let header = match self {
            Self::Ethernet => return bytes,
            Self::RawIp => 0,
            Self::Loopback => 4,
            Self::Cooked { header_bytes, .. } => u32::try_from(header_bytes).unwrap_or(0),
        };
        bytes.saturating_sub(header).saturating_add(HEADER_BYTES)
    }

    fn slice(self, bytes: &[u8]) -> Option<LaxSlicedPacket<'_>> {
        match self {
            Self::Ethernet => LaxSlicedPacket::from_ethernet(bytes).ok(),
            Self::RawIp => LaxSlicedPacket::from_ip(bytes).ok(),
            Self::Loopback => LaxSlicedPacket::from_ip(bytes.get(4..)?).ok(),
            Self::Cooked {
                header_bytes,
                type_at,
            } => {
                let payload = bytes.get(header_bytes..)?;
                let word = [*bytes.get(type_at)?, *bytes.get(type_at + 1)?];
                let ether_type = EtherType(u16::from_be_bytes(word));
                Some(LaxSlicedPacket::from_ether_type(ether_type, payload))
            }
        }
    }
}

/// IEEE 802 local experimental EtherType 1: gap frames that bridges pass on.
const EXPERIMENTAL: EtherType = EtherType(0x88b5);
const MAC_CONTROL: EtherType = EtherType(0x8808);
const PAUSE_OPCODE: [u8; 2] = [0, 1];

/// The kind of a frame, and its flow if it is data. Works on what there is of
/// a packet cut short; what cannot be told apart by ports is known by its
/// EtherType, 0 if there is none.
pub(crate) fn classify(link: Link, bytes: &[u8]) -> (Kind, Option<FlowKey>) {
    let Some(packet) = link.slice(bytes) else {
        return (Kind::Data, Some(FlowKey::EtherType(0)));
    };
    let ether_type = match (&packet.net, packet.ether_payload()) {
        (_, Some(payload)) => {
            if payload.ether_type == MAC_CONTROL && payload.payload.starts_with(&PAUSE_OPCODE) {
                return (Kind::Pause, None);
            }
            payload.ether_type
        }
        (Some(LaxNetSlice::Ipv4(_)), None) => ether_type::IPV4,
        (Some(LaxNetSlice::Ipv6(_)), None) => ether_type::IPV6,
        _ => EtherType(0),
    };
    if ether_type == MAC_CONTROL || ether_type == EXPERIMENTAL || sent_to_itself(&packet) {
        return (Kind::Gap, None);
    }
    let key = ports(&packet).unwrap_or(FlowKey::EtherType(ether_type.0));
    (Kind::Data, Some(key))
}

/// A loopback device has zeros for both addresses: that is no gap.
fn sent_to_itself(packet: &LaxSlicedPacket<'_>) -> bool {
    let Some(LinkSlice::Ethernet2(ethernet)) = &packet.link else {
        return false;
    };
    ethernet.source() == ethernet.destination() && ethernet.source() != [0; 6]
}

fn ports(packet: &LaxSlicedPacket<'_>) -> Option<FlowKey> {
    let (src, dst): (IpAddr, IpAddr) = match packet.net.as_ref()? {
        LaxNetSlice::Ipv4(ip) => {
            let header = ip.header();
            (
                header.source_addr().into(),
                header.destination_addr().into(),
            )
        }
        LaxNetSlice::Ipv6(ip) => {
            let header = ip.header();
            (
                header.source_addr().into(),
                header.destination_addr().into(),
            )
        }
        LaxNetSlice::Arp(_) => return None,
    };
    let (proto, sport, dport) = match &packet.transport {
        Some(TransportSlice::Tcp(tcp)) => (Proto::Tcp, tcp.source_port(), tcp.destination_port()),
        Some(TransportSlice::Udp(udp)) => (Proto::Udp, udp.source_port(), udp.destination_port()),
        Some(_) => return None,
        // A transport header cut short still begins with its ports.
        None => {
            let payload = packet.ip_payload()?;
            let proto = match payload.ip_number {
                ip_number::TCP => Proto::Tcp,
                ip_number::UDP => Proto::Udp,
                _ => return None,
            };
            if payload.fragmented {
                return None;
            }
            let p = payload.payload.first_chunk::<4>()?;
            (
                proto,
                u16::from_be_bytes([p[0], p[1]]),
                u16::from_be_bytes([p[2], p[3]]),
            )
        }
    };
    Some(FlowKey::Ports {
        proto,
        src,
        sport,
        dst,
        dport,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::PacketBuilder;
    use proptest::prelude::*;

    const MACS: ([u8; 6], [u8; 6]) = ([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]);

    fn key(text: &str) -> (Kind, Option<FlowKey>) {
        (Kind::Data, Some(text.parse().unwrap()))
    }

    macro_rules! bytes {
        ($builder:expr) => {{
            let mut out = Vec::new();
            $builder.write(&mut out, &[7; 100]).unwrap();
            out
        }};
    }

    #[test]
    fn flows_of_both_families_tagged_or_not() {
        let v4 = PacketBuilder::ethernet2(MACS.0, MACS.1).ipv4([10, 1, 1, 1], [10, 1, 2, 1], 64);
        let udp = bytes!(v4.udp(40001, 5001));
        let expected = key("udp 10.1.1.1 40001 10.1.2.1 5001");
        assert_eq!(classify(Link::Ethernet, &udp), expected);
        // Down to the ports themselves.
        assert_eq!(classify(Link::Ethernet, &udp[..38]), expected);
        assert_eq!(
            classify(Link::Ethernet, &udp[..37]),
            key("ethertype 0x0800")
        );
        assert_eq!(classify(Link::RawIp, &udp[14..]), expected);
        let loopback = [&[2, 0, 0, 0][..], &udp[14..]].concat();
        assert_eq!(classify(Link::from_number(0).unwrap(), &loopback), expected);
        let cooked = [&[0; 14][..], &udp[12..]].concat();
        assert_eq!(classify(Link::from_number(113).unwrap(), &cooked), expected);
        let tagged = PacketBuilder::ethernet2(MACS.0, MACS.1)
            .single_vlan(5.try_into().unwrap())
            .ipv6([1; 16], [2; 16], 64);
        assert_eq!(
            classify(Link::Ethernet, &bytes!(tagged.tcp(1, 2, 3, 4))),
            key("tcp 101:101:101:101:101:101:101:101 1 202:202:202:202:202:202:202:202 2")
        );
        let icmp = PacketBuilder::ethernet2(MACS.0, MACS.1).ipv4([10, 1, 1, 1], [10, 1, 2, 1], 64);
        assert_eq!(
            classify(Link::Ethernet, &bytes!(icmp.icmpv4_echo_request(1, 2))),
            key("ethertype 0x0800")
        );
    }

    #[test]
    fn gap_frames() {
        let frame = |dst: [u8; 6], kind: [u8; 4]| {
            let mut f = [&dst[..], &MACS.0[..], &kind[..]].concat();
            f.resize(60, 0);
            classify(Link::Ethernet, &f)
        };
        let reserved = [1, 0x80, 0xc2, 0, 0, 1];
        assert_eq!(frame(reserved, [0x88, 0x08, 0, 1]), (Kind::Pause, None));
        assert_eq!(frame(reserved, [0x88, 0x08, 1, 1]), (Kind::Gap, None));
        assert_eq!(frame(reserved, [0x88, 0xb5, 0, 0]), (Kind::Gap, None));
        assert_eq!(frame(MACS.0, [0x90, 0x00, 0, 0]), (Kind::Gap, None));
        assert_eq!(frame(MACS.1, [0x90, 0x00, 0, 0]), key("ethertype 0x9000"));
    }

    #[test]
    fn lengths_as_ethernet_frames() {
        for (number, expected) in [
            (1, 1514),
            (101, 1528),
            (108, 1524),
            (113, 1512),
            (276, 1508),
        ] {
            assert_eq!(
                Link::from_number(number).unwrap().frame_bytes(1514),
                expected
            );
        }
        assert_eq!(Link::from_number(105), None);
    }

    proptest! {
        #![proptest_config(testkit::properties())]

        #[test]
        fn any_bytes_are_classified_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            for number in [0, 1, 101, 113, 276] {
                classify(Link::from_number(number).unwrap(), &bytes);
            }
        }
    }
}
