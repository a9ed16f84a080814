// SPDX-License-Identifier: MIT OR Apache-2.0
//! Types that the steps through a packet's headers share.

use std::net::IpAddr;

use crate::encapsulation::Layer;
use crate::segment::{EncapsulationId, HostDirection};

/// Why a packet holds no segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Other {
    /// Its link type is not supported.
    UnknownLink,
    /// Its protocol is not TCP.
    NotTcp,
    /// Its protocol is not TCP but QUIC, by its port and first byte.
    Quic,
    /// It is encrypted below IP (IEEE 802.11, CAPWAP) or within it (ESP).
    Encrypted,
    /// It is a fragment without the TCP header.
    LaterFragment,
    /// The snap length cut it before the window field.
    Cut,
    /// A header contradicts its specification.
    Malformed,
    /// It was not wanted.
    LeftOut,
}

/// A TCP header and the facts from the headers before it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TcpPacket<'a> {
    /// Captured bytes from the TCP header on.
    pub(crate) tcp: &'a [u8],
    /// Length of TCP header and payload, from the IP header.
    pub(crate) tcp_bytes: u32,
    pub(crate) ip: Ip,
    pub(crate) encapsulation: EncapsulationId,
    pub(crate) host_direction: HostDirection,
}

/// The fields of an IP header that are needed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ip {
    pub(crate) from: IpAddr,
    pub(crate) to: IpAddr,
    pub(crate) ecn: u8,
    pub(crate) id: u16,
    pub(crate) hop_limit: u8,
    /// Whether it is the first of several fragments.
    pub(crate) first_fragment: bool,
}

impl Ip {
    /// Returns both end addresses in the same order for both directions.
    pub(crate) fn ends(&self) -> (IpAddr, IpAddr) {
        if self.from <= self.to {
            (self.from, self.to)
        } else {
            (self.to, self.from)
        }
    }
}

/// Type of the next header in a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ahead {
    Ethernet,
    /// An IEEE 802.11 frame, whose header may be padded to four bytes.
    Wifi {
        is_padded: bool,
    },
    /// Logical link control (IEEE 802.2).
    Llc,
    /// PPP: address and control where they are not left out, and the protocol.
    Ppp,
    EtherType(u16),
    Ip,
    /// A header inside an IP packet: the protocol's number.
    Protocol(u8),
}

/// Current position in a packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'a> {
    /// Captured bytes from here on.
    pub(crate) bytes: &'a [u8],
    /// Bytes on the wire from here on, according to the headers so far.
    pub(crate) wire_bytes: u32,
    /// Bytes that headers state beyond what was there: the recorder or the mirror that cut the packet states no other
    /// length.
    pub(crate) missing_bytes: u32,
}

impl<'a> Place<'a> {
    /// Moves past `count` bytes; `Cut` if they were not captured.
    #[inline]
    pub(crate) fn skip(&mut self, count: usize) -> Result<(), Other> {
        self.bytes = self.bytes.get(count..).ok_or(Other::Cut)?;
        self.wire_bytes = self.wire_bytes.saturating_sub(count as u32);
        Ok(())
    }

    /// Limits the packet to the length `wire_bytes` from here. Bytes beyond it are padding of the
    /// frame. A length above the one that the file states counts too.
    #[inline]
    pub(crate) fn limit(&mut self, wire_bytes: u32) {
        let missing = wire_bytes.saturating_sub(self.wire_bytes);
        self.missing_bytes = self.missing_bytes.saturating_add(missing);
        self.wire_bytes = wire_bytes;
        if self.bytes.len() > wire_bytes as usize {
            self.bytes = &self.bytes[..wire_bytes as usize];
        }
    }

    /// Returns the next `N` bytes without moving.
    #[inline]
    pub(crate) fn head<const N: usize>(&self) -> Result<&'a [u8; N], Other> {
        self.bytes.first_chunk().ok_or(Other::Cut)
    }
}

/// Headers passed so far, whether or not a TCP header is found.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Outline<'a> {
    /// EtherType after the outermost VLAN tags.
    pub(crate) ether_type: Option<u16>,
    /// Bytes after that EtherType.
    pub(crate) payload: &'a [u8],
    /// What the header announces that was passed last.
    pub(crate) last: Option<Ahead>,
    /// Innermost UDP header.
    pub(crate) datagram: Option<Endpoints<'a>>,
    /// Bytes that IP headers state beyond what the packet is said to have had.
    pub(crate) missing_bytes: u32,
}

/// A UDP header and the facts from the headers before it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Endpoints<'a> {
    pub(crate) ip: Ip,
    /// Captured bytes from the UDP header on.
    pub(crate) header: &'a [u8],
    pub(crate) encapsulation: EncapsulationId,
}

/// Type of the header that follows, and the layer that the current one makes.
pub(crate) type Step = (Ahead, Option<Layer>);
