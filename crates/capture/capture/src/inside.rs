// SPDX-License-Identifier: MIT OR Apache-2.0
//! What was in packets in which no TCP was found: the step at which the reader stopped.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::decapsulate::decapsulate;
use crate::encapsulation::Encapsulations;
use crate::frame::Frame;
use crate::headers::{Ahead, Outline};

/// Kinds that are counted, and those that the sentence names.
const KINDS_MOST: usize = 64;
const NAMED_MOST: usize = 6;
const LINKS_MOST: usize = 8;

/// What a packet had where TCP was looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Inside {
    /// Not even the link's header tells.
    Link,
    EtherType(u16),
    Protocol(u8),
    /// The lower port of a UDP datagram.
    Udp(u16),
}

impl fmt::Display for Inside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = |f: &mut fmt::Formatter<'_>, name: &str| match name {
            "" => Ok(()),
            name => write!(f, " ({name})"),
        };
        match *self {
            Self::Link => f.write_str("something that the link's header does not tell"),
            Self::EtherType(kind) => {
                write!(f, "EtherType {kind:#06x}")?;
                named(f, ether_type_name(kind))
            }
            Self::Protocol(protocol) => {
                write!(f, "IP protocol {protocol}")?;
                named(f, protocol_name(protocol))
            }
            Self::Udp(port) => {
                write!(f, "UDP port {port}")?;
                named(f, port_name(port))
            }
        }
    }
}

fn ether_type_name(kind: u16) -> &'static str {
    match kind {
        0..=1500 => "802.3",
        0x0800 | 0x86dd => "IP",
        0x0806 => "ARP",
        0x6559 => "Frame Relay",
        0x8808 => "MAC control",
        0x8809 => "slow protocols",
        0x880b => "PPP",
        0x8863 => "PPPoE discovery",
        0x8864 => "PPPoE",
        0x888e => "802.1X",
        0x88cc => "LLDP",
        0x88e5 => "MACsec",
        0x88f7 => "PTP",
        0x88fb => "PRP",
        0x8915 => "RoCE",
        _ => "",
    }
}

fn protocol_name(protocol: u8) -> &'static str {
    match protocol {
        1 | 58 => "ICMP",
        2 => "IGMP",
        17 => "UDP",
        47 => "GRE",
        89 => "OSPF",
        103 => "PIM",
        112 => "VRRP",
        115 => "L2TP",
        132 => "SCTP",
        _ => "",
    }
}

fn port_name(port: u16) -> &'static str {
    match port {
        53 => "DNS",
        67 | 68 => "DHCP",
        123 => "NTP",
        443 => "QUIC or DTLS",
        1701 => "L2TP",
        4500 => "IPsec",
        4791 => "RoCE",
        5353 => "mDNS",
        51820 => "WireGuard",
        _ => "",
    }
}

/// Packets by what they had in place of TCP.
#[derive(Debug, Default)]
pub(crate) struct Insides {
    kinds: BTreeMap<Inside, u64>,
    links: BTreeSet<i32>,
}

impl Insides {
    /// Notes the link type of an interface.
    pub(crate) fn note_link(&mut self, number: i32) {
        if self.links.len() < LINKS_MOST {
            self.links.insert(number);
        }
    }

    /// Counts a packet in which no TCP was found
    #[cold]
    pub(crate) fn note(&mut self, frame: &Frame<'_>) {
        let mut outline = Outline::default();
        let _ = decapsulate(frame, &mut Encapsulations::default(), &mut outline);
        let port = |udp: crate::headers::Endpoints<'_>| {
            let h = udp.header.first_chunk::<4>()?;
            let [from, to] = [[h[0], h[1]], [h[2], h[3]]].map(u16::from_be_bytes);
            Some(Inside::Udp(from.min(to)))
        };
        let kind = match outline.last {
            Some(Ahead::Protocol(17)) => outline.datagram.and_then(port),
            Some(Ahead::Protocol(protocol)) => Some(Inside::Protocol(protocol)),
            Some(Ahead::EtherType(kind)) => Some(Inside::EtherType(kind)),
            _ => outline.ether_type.map(Inside::EtherType),
        };
        let kind = kind.unwrap_or(Inside::Link);
        if self.kinds.len() < KINDS_MOST || self.kinds.contains_key(&kind) {
            *self.kinds.entry(kind).or_default() += 1;
        }
    }
}

impl fmt::Display for Insides {
    /// Names the link types and the most frequent kinds: `link type 1: 27 of EtherType 0x0806
    /// (ARP), 3 of UDP port 53 (DNS)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, link) in self.links.iter().enumerate() {
            f.write_str(if i == 0 { "link type " } else { ", " })?;
            write!(f, "{link}")?;
        }
        let mut kinds: Vec<_> = self.kinds.iter().collect();
        kinds.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        for (i, (kind, count)) in kinds.iter().take(NAMED_MOST).enumerate() {
            write!(f, "{} {count} of {kind}", if i == 0 { ":" } else { "," })?;
        }
        match kinds.len().saturating_sub(NAMED_MOST) {
            0 => Ok(()),
            more => write!(f, " and {more} others"),
        }
    }
}
