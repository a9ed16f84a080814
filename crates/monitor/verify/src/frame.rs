// SPDX-License-Identifier: MIT OR Apache-2.0
//! The headers of a frame that rules look at: tags, PPPoE, the outermost IP header, ports.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use tcpsp::Family;

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const VLAN: u16 = 0x8100;
const QINQ: u16 = 0x88a8;
const PPPOE: u16 = 0x8864;
/// Tags that are looked through, with the one that the kernel keeps beside the frame.
const TAGS_MAX: usize = 3;
/// Extension headers of IPv6 that are looked through.
const EXTENSIONS_MAX: usize = 6;
/// What both addresses of Ethernet take.
const ADDRESSES_BYTES: usize = 12;

/// A frame's headers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// VLANs of its tags, from the outermost on.
    pub vlans: Vec<u16>,
    /// Whether it is of a session of PPPoE.
    pub is_pppoe: bool,
    pub ip: Option<Ip>,
    /// Bytes before its IP header.
    pub link_bytes: usize,
}

/// An IP header, and what is known of what it carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ip {
    pub from: IpAddr,
    pub to: IpAddr,
    /// Differentiated services code point.
    pub dscp: u8,
    /// The protocol behind all headers that are looked through; `None`: the frame was cut before.
    pub protocol: Option<u8>,
    /// Bytes of its headers up to the transport's.
    pub header_bytes: usize,
    /// Ports of source and destination, of TCP, UDP and SCTP.
    pub ports: Option<(u16, u16)>,
    /// Whether it has options or extension headers.
    pub has_options: bool,
    /// Which part of a datagram it is.
    pub fragment: Option<Fragment>,
}

/// A part of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// What its datagram's parts have in common.
    pub id: u32,
    /// The protocol in the header that says that it is a part.
    pub protocol: u8,
    /// Whether it is the first, which has the ports.
    pub is_first: bool,
}

impl Ip {
    pub const fn family(&self) -> Family {
        match self.from {
            IpAddr::V4(_) => Family::Ipv4,
            IpAddr::V6(_) => Family::Ipv6,
        }
    }

    /// Returns the name of the tunnel whose outermost header this is, by protocol or port.
    pub fn tunnel(&self) -> Option<&'static str> {
        match (self.protocol?, self.ports) {
            (4 | 41, _) => Some("IP in IP"),
            (47, _) => Some("GRE"),
            (50, _) => Some("ESP"),
            (17, Some((_, 4789))) => Some("VXLAN"),
            (17, Some((_, 6081))) => Some("GENEVE"),
            (17, Some((_, 51820))) => Some("WireGuard"),
            _ => None,
        }
    }
}

fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    let two = bytes.get(at..at.checked_add(2)?)?;
    Some(u16::from_be_bytes(two.try_into().ok()?))
}

impl Frame {
    /// Reads the first bytes of a frame of Ethernet, and the tag that the kernel keeps beside it,
    /// which is the outermost. O(headers).
    pub fn read(bytes: &[u8], tag: Option<u16>) -> Self {
        let mut frame = Self {
            vlans: tag.iter().map(|tag| tag & 0xfff).collect(),
            ..Self::default()
        };
        let mut at = ADDRESSES_BYTES;
        let Some(mut ethertype) = be16(bytes, at) else {
            return frame;
        };
        at += 2;
        while matches!(ethertype, VLAN | QINQ) && frame.vlans.len() < TAGS_MAX {
            let (Some(tag), Some(inner)) = (be16(bytes, at), be16(bytes, at + 2)) else {
                return frame;
            };
            frame.vlans.push(tag & 0xfff);
            ethertype = inner;
            at += 4;
        }
        frame.read_network(bytes, ethertype, at);
        frame
    }

    /// Reads a packet without a link header, whose EtherType the kernel says.
    pub fn read_bare(bytes: &[u8], ethertype: u16) -> Self {
        let mut frame = Self::default();
        frame.read_network(bytes, ethertype, 0);
        frame
    }

    fn read_network(&mut self, bytes: &[u8], ethertype: u16, mut at: usize) {
        let mut ethertype = ethertype;
        if ethertype == PPPOE {
            // Version 1, type 1; code 0 is the session's.
            if be16(bytes, at) != Some(0x1100) {
                return;
            }
            ethertype = match be16(bytes, at + 6) {
                Some(0x0021) => IPV4,
                Some(0x0057) => IPV6,
                _ => return,
            };
            self.is_pppoe = true;
            at += 8;
        }
        self.link_bytes = at;
        let packet = bytes.get(at..).unwrap_or_default();
        self.ip = match ethertype {
            IPV4 => ipv4(packet),
            IPV6 => ipv6(packet),
            _ => None,
        };
    }
}

/// Reads the ports of a protocol that has some.
fn ports(packet: &[u8], at: usize, protocol: u8) -> Option<(u16, u16)> {
    matches!(protocol, 6 | 17 | 132)
        .then(|| Some((be16(packet, at)?, be16(packet, at + 2)?)))
        .flatten()
}

fn ipv4(packet: &[u8]) -> Option<Ip> {
    let head: &[u8; 20] = packet.get(..20)?.try_into().ok()?;
    let header_bytes = usize::from(head[0] & 0xf) * 4;
    if header_bytes < head.len() {
        return None;
    }
    let place = be16(head, 6)?;
    let (is_first, is_part) = (place & 0x1fff == 0, place & 0x3fff != 0);
    let protocol = head[9];
    let address = |at: usize| -> Option<IpAddr> {
        let four: [u8; 4] = head.get(at..at + 4)?.try_into().ok()?;
        Some(Ipv4Addr::from(four).into())
    };
    Some(Ip {
        from: address(12)?,
        to: address(16)?,
        dscp: head[1] >> 2,
        protocol: Some(protocol),
        header_bytes,
        ports: is_first
            .then(|| ports(packet, header_bytes, protocol))
            .flatten(),
        has_options: header_bytes > head.len(),
        fragment: is_part.then_some(Fragment {
            id: be16(head, 4)?.into(),
            protocol,
            is_first,
        }),
    })
}

fn ipv6(packet: &[u8]) -> Option<Ip> {
    let head: &[u8; 40] = packet.get(..40)?.try_into().ok()?;
    let address = |at: usize| -> Option<IpAddr> {
        let all: [u8; 16] = head.get(at..at + 16)?.try_into().ok()?;
        Some(Ipv6Addr::from(all).into())
    };
    let class = be16(head, 0)? >> 4;
    let mut ip = Ip {
        from: address(8)?,
        to: address(24)?,
        dscp: u8::try_from((class >> 2) & 0x3f).ok()?,
        protocol: None,
        header_bytes: head.len(),
        ports: None,
        has_options: false,
        fragment: None,
    };
    let (mut next, mut at) = (head[6], head.len());
    for _ in 0..EXTENSIONS_MAX {
        if !matches!(next, 0 | 43 | 44 | 51 | 60) {
            break;
        }
        ip.has_options |= next != 44;
        let Some(extension) = packet.get(at..at + 8) else {
            return Some(ip);
        };
        let units = usize::from(extension[1]);
        at += match next {
            44 => 8,
            51 => (units + 2) * 4,
            _ => (units + 1) * 8,
        };
        let is_fragment = next == 44;
        next = extension[0];
        if is_fragment {
            let place = be16(extension, 2)?;
            let is_first = place & 0xfff8 == 0;
            // A header that says neither is no part: the whole datagram (RFC 6946).
            if place & 0xfff9 != 0 {
                let id = extension.get(4..8)?.try_into().ok()?;
                ip.fragment = Some(Fragment {
                    id: u32::from_be_bytes(id),
                    protocol: next,
                    is_first,
                });
            }
            if !is_first {
                ip.protocol = Some(next);
                return Some(ip);
            }
        }
    }
    ip.protocol = Some(next);
    ip.header_bytes = at;
    ip.ports = ports(packet, at, next);
    Some(ip)
}
