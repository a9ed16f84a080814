// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the steps of a descent through a packet's headers share.

use std::net::IpAddr;

use crate::encapsulation::Layer;
use crate::segment::{EncapsulationId, HostDirection};

/// Why a packet is no segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Other {
    /// Of a link type that is not understood.
    UnknownLink,
    /// Something else than TCP.
    NotTcp,
    /// The same, and QUIC by its port and first byte.
    Quic,
    /// A fragment without the TCP header.
    LaterFragment,
    /// The snap length cut it before the window field.
    Cut,
    /// A header that cannot be right.
    Malformed,
}

/// A TCP header and what stands before it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found<'a> {
    /// From the TCP header on, as far as captured.
    pub(crate) tcp: &'a [u8],
    /// Header and payload, as the IP header has it.
    pub(crate) tcp_bytes: u32,
    pub(crate) ip: Ip,
    pub(crate) encapsulation: EncapsulationId,
    pub(crate) host_direction: HostDirection,
}

/// What an IP header says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ip {
    pub(crate) from: IpAddr,
    pub(crate) to: IpAddr,
    pub(crate) ecn: u8,
    pub(crate) id: u16,
    pub(crate) hop_limit: u8,
    /// The first of several fragments.
    pub(crate) first_fragment: bool,
}

impl Ip {
    /// Both ends, the same for both directions.
    pub(crate) fn ends(&self) -> (IpAddr, IpAddr) {
        if self.from <= self.to {
            (self.from, self.to)
        } else {
            (self.to, self.from)
        }
    }
}

/// What the bytes ahead are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ahead {
    Ethernet,
    EtherType(u16),
    Ip,
    /// Of an IP packet: the protocol's number.
    Protocol(u8),
}

/// Where one is in a packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'a> {
    /// What was captured from here on.
    pub(crate) bytes: &'a [u8],
    /// What there was on the wire, as far as the headers so far say.
    pub(crate) wire_bytes: u32,
}

impl<'a> Place<'a> {
    /// Past `count` bytes; `Cut` if they were not captured.
    #[inline]
    pub(crate) fn skip(&mut self, count: usize) -> Result<(), Other> {
        self.bytes = self.bytes.get(count..).ok_or(Other::Cut)?;
        self.wire_bytes = self.wire_bytes.saturating_sub(count as u32);
        Ok(())
    }

    /// The next `N` bytes.
    #[inline]
    pub(crate) fn head<const N: usize>(&self) -> Result<&'a [u8; N], Other> {
        self.bytes.first_chunk().ok_or(Other::Cut)
    }
}

/// What a descent has passed, whether or not it ends at a TCP header.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Outline<'a> {
    /// The EtherType behind the outermost VLAN tags.
    pub(crate) ether_type: Option<u16>,
    /// What follows it.
    pub(crate) payload: &'a [u8],
    /// The innermost UDP header.
    pub(crate) datagram: Option<Endpoints<'a>>,
}

/// A UDP header and what stands before it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Endpoints<'a> {
    pub(crate) ip: Ip,
    /// From the UDP header on, as far as captured.
    pub(crate) header: &'a [u8],
    pub(crate) encapsulation: EncapsulationId,
}

/// What comes after a header, and the layer it makes.
pub(crate) type Step = (Ahead, Option<Layer>);
