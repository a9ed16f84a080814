// SPDX-License-Identifier: MIT OR Apache-2.0
//! What travels: small and `Copy`. A TCP segment, which is larger, lies in a
//! slab and the packet names its slot.

use std::net::Ipv4Addr;

use units::clock::Time;

use crate::tcp::Segment;

/// [`Packet::segment`] of what is no TCP segment.
pub const NO_SEGMENT: u32 = u32::MAX;

/// A packet, or a frame of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// When its sender gave it to its host.
    pub born: Time,
    /// When it came into the queue it is in.
    pub queued: Time,
    /// Number among the packets of its flow and direction, from 0.
    pub number: u64,
    /// What its socket lets a queue send at the most (`sk_pacing_rate`), bit/s
    /// of link-layer bytes; 0: it does not say.
    pub pacing_bps: u64,
    /// Packet size x cwnd / RTT of its socket (paper 003), bit/s of link-layer
    /// bytes; 0: it does not say.
    pub window_bps: u64,
    /// Index of its flow.
    pub flow: u32,
    /// Slot of its segment, or [`NO_SEGMENT`].
    pub segment: u32,
    /// Ethernet header included, FCS not.
    pub frame_bytes: u32,
    /// The class that its socket's priority asks for, major number above
    /// minor; 0: none.
    pub class: u32,
    /// Added to the flow's destination port.
    pub port: u16,
    /// How many devices of its path it has left.
    pub hop: u8,
    /// From the flow's receiver to its sender.
    pub reverse: bool,
}

/// Transport protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Proto {
    /// 6.
    Tcp,
    /// 17.
    Udp,
}

impl Proto {
    /// Its number in the IP header.
    #[must_use]
    pub fn number(self) -> u8 {
        match self {
            Self::Tcp => 6,
            Self::Udp => 17,
        }
    }
}

/// Addresses and ports, what filters go by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Header {
    /// Protocol.
    pub proto: Proto,
    /// Sender.
    pub src: Ipv4Addr,
    /// Receiver.
    pub dst: Ipv4Addr,
    /// Sender's port.
    pub sport: u16,
    /// Receiver's port.
    pub dport: u16,
}

impl Header {
    /// Of what goes the other way.
    #[must_use]
    pub fn reversed(self) -> Self {
        Self {
            src: self.dst,
            dst: self.src,
            sport: self.dport,
            dport: self.sport,
            ..self
        }
    }
}

/// Segments under way. It grows to as many as there are at a time.
#[derive(Debug, Default)]
pub struct Segments {
    slots: Vec<Segment>,
    free: Vec<u32>,
}

impl Segments {
    /// Keeps a segment; O(1), amortised.
    pub fn put(&mut self, segment: Segment) -> u32 {
        if let Some(slot) = self.free.pop() {
            self.slots[slot as usize] = segment;
            return slot;
        }
        self.slots.push(segment);
        // 2^32 segments do not fit into memory.
        (self.slots.len() - 1) as u32
    }

    /// A segment under way.
    #[must_use]
    pub fn get(&self, slot: u32) -> Option<&Segment> {
        self.slots.get(slot as usize)
    }

    /// Gives a segment back; `None` if the packet has none.
    pub fn take(&mut self, slot: u32) -> Option<Segment> {
        let segment = self.slots.get(slot as usize).copied()?;
        self.free.push(slot);
        Some(segment)
    }

    /// How many are under way.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// How many there is memory for.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.slots.capacity()
    }

    /// None is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
