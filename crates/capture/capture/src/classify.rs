// SPDX-License-Identifier: MIT OR Apache-2.0
//! Classifies a captured frame by kind and flow.

use crate::decapsulate::decapsulate;
use crate::encapsulation::Encapsulations;
use crate::flows::{FlowKey, Proto};
use crate::frame::Frame;
use crate::headers::{Endpoints, Ip, Outline};
use crate::link::Link;
use crate::record::Kind;
use crate::segment::EncapsulationId;

/// IEEE 802 local experimental EtherType 1: gap frames that bridges forward.
const EXPERIMENTAL: u16 = 0x88b5;
const MAC_CONTROL: u16 = 0x8808;
const PAUSE_OPCODE: [u8; 2] = [0, 1];

/// A flow and the tunnels around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FlowPlace {
    pub(crate) key: FlowKey,
    pub(crate) encapsulation: EncapsulationId,
}

/// Returns the kind of a frame, and its flow if it is data. The flow is that of the innermost
/// TCP or UDP header, so that a tunnel shows the flows that it carries. Any other frame is
/// identified by its EtherType, or by 0 if it has none. A packet that was cut short is
/// classified by the captured bytes. Last come the bytes that its IP headers state beyond its length.
pub(crate) fn classify(
    frame: &Frame<'_>,
    encapsulations: &mut Encapsulations,
) -> (Kind, Option<FlowPlace>, u32) {
    let mut outline = Outline::default();
    let found = decapsulate(frame, encapsulations, &mut outline);
    match outline.ether_type {
        Some(MAC_CONTROL) if outline.payload.starts_with(&PAUSE_OPCODE) => {
            return (Kind::Pause, None, 0);
        }
        Some(MAC_CONTROL | EXPERIMENTAL) => return (Kind::Gap, None, 0),
        _ if sent_to_itself(frame) => return (Kind::Gap, None, 0),
        _ => {}
    }
    let tcp = found.ok().and_then(|found| {
        let key = ports(Proto::Tcp, &found.ip, found.tcp)?;
        Some((key, found.encapsulation))
    });
    let udp = || {
        let Endpoints {
            ip,
            header,
            encapsulation,
        } = outline.datagram?;
        Some((ports(Proto::Udp, &ip, header)?, encapsulation))
    };
    let ether_type = FlowKey::EtherType(outline.ether_type.unwrap_or(0));
    let (key, encapsulation) = tcp.or_else(udp).unwrap_or((ether_type, 0));
    let place = FlowPlace { key, encapsulation };
    (Kind::Data, Some(place), outline.missing_bytes)
}

/// Returns whether source and destination MAC address are equal. Two zero addresses are no
/// gap: a loopback device has them.
fn sent_to_itself(frame: &Frame<'_>) -> bool {
    let Some((header, _)) = frame.bytes.split_first_chunk::<14>() else {
        return false;
    };
    let (to, from) = (&header[..6], &header[6..12]);
    frame.link == Some(Link::Ethernet) && from == to && from != [0; 6]
}

/// Returns the flow from the first bytes of the transport header. The first of several
/// fragments has no flow of its own, because the later ones have no ports.
fn ports(proto: Proto, ip: &Ip, header: &[u8]) -> Option<FlowKey> {
    let p = header.first_chunk::<4>()?;
    (!ip.first_fragment).then(|| FlowKey::Ports {
        proto,
        src: ip.from,
        sport: u16::from_be_bytes([p[0], p[1]]),
        dst: ip.to,
        dport: u16::from_be_bytes([p[2], p[3]]),
    })
}

#[cfg(test)]
mod tests {
    use super::{Encapsulations, FlowKey, Frame, Kind, Link};
    use etherparse::PacketBuilder;
    use proptest::prelude::*;

    /// Classifies bytes that were captured whole.
    fn classify(link: Link, bytes: &[u8]) -> (Kind, Option<FlowKey>) {
        let frame = Frame {
            time: crate::frame::CaptureTime { seconds: 0, ps: 0 },
            interface: 0,
            link: Some(link),
            host_direction: crate::segment::HostDirection::Unknown,
            packet_bytes: bytes.len() as u32,
            bytes,
            options: crate::frame::Options::default(),
        };
        let (kind, place, _) = super::classify(&frame, &mut Encapsulations::default());
        (kind, place.map(|place| place.key))
    }

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
