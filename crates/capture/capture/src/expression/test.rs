// SPDX-License-Identifier: MIT OR Apache-2.0
//! What an expression consists of.

use std::net::IpAddr;

/// An expression: tests, and how they are joined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Node<T> {
    Test(T),
    Not(Box<Node<T>>),
    And(Box<Node<T>>, Box<Node<T>>),
    Or(Box<Node<T>>, Box<Node<T>>),
}

/// A test of the headers behind so many VLAN tags.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Placed {
    pub(super) tags: u8,
    pub(super) test: Test,
}

/// A property of one packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Test {
    /// A tag, of any VLAN or of this one.
    Vlan(Option<u16>),
    EtherType(u16),
    /// A protocol in IPv4 or IPv6, or in one of them.
    Protocol(Option<Family>, u8),
    Net(Option<NetOf>, Side, Net),
    /// A port from the first to the last, of TCP, UDP and SCTP, or of one of them.
    Port(Option<u8>, Side, u16, u16),
    Mac(Side, [u8; 6]),
    /// Length on the wire, at most or at least.
    AtMost(u32),
    AtLeast(u32),
}

/// A version of IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    V4,
    V6,
}

/// The protocol whose addresses are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NetOf {
    Ip(Family),
    Arp,
    Rarp,
}

/// Which of a packet's two ends is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Source,
    Destination,
    Either,
    Both,
}

impl Side {
    /// Joins what holds of the source with what holds of the destination.
    pub(super) fn of(self, source: bool, destination: bool) -> bool {
        match self {
            Self::Source => source,
            Self::Destination => destination,
            Self::Either => source || destination,
            Self::Both => source && destination,
        }
    }
}

/// An address, and how many of its leading bits count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Net {
    pub(super) address: IpAddr,
    pub(super) bits: u32,
}

impl Net {
    /// Returns whether an address, as on the wire, is in the net.
    pub(super) fn has(self, address: &[u8]) -> bool {
        let number = |bytes: &[u8]| {
            bytes
                .iter()
                .fold(0u128, |sum, b| (sum << 8) | u128::from(*b))
        };
        let (own, all) = match self.address {
            IpAddr::V4(own) => (number(&own.octets()), 32),
            IpAddr::V6(own) => (number(&own.octets()), 128),
        };
        let free = all - self.bits.min(all);
        address.len() * 8 == all as usize && {
            let differing = own ^ number(address);
            free == 128 || differing >> free == 0
        }
    }
}

/// Numbers of protocols inside IP.
pub(super) const ICMP: u8 = 1;
pub(super) const IGMP: u8 = 2;
pub(super) const TCP: u8 = 6;
pub(super) const UDP: u8 = 17;
pub(super) const FRAGMENT: u8 = 44;
pub(super) const ICMP6: u8 = 58;
pub(super) const SCTP: u8 = 132;
pub(super) const IPV4: u16 = 0x0800;
pub(super) const ARP: u16 = 0x0806;
pub(super) const RARP: u16 = 0x8035;
pub(super) const IPV6: u16 = 0x86dd;
