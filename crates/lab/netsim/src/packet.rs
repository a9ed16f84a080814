// SPDX-License-Identifier: MIT OR Apache-2.0
//! Packets, and the TCP segments that they carry. A packet is small and `Copy`; a
//! TCP segment is larger, so it is stored in a slab ([`Segments`]) and the packet
//! holds the index of its slot.

use std::net::Ipv4Addr;

use units::clock::Time;

use crate::tcp::Segment;

/// The value of [`Packet::segment`] when the packet carries no TCP segment.
pub const NO_SEGMENT: u32 = u32::MAX;

/// A packet, and the Ethernet frame that carries it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// When the sender handed the packet to its host.
    pub born: Time,
    /// When the packet entered the queue that it is in now.
    pub queued: Time,
    /// Number among the packets of its flow and direction, from 0.
    pub number: u64,
    /// The highest rate at which its socket allows a queue to send
    /// (`sk_pacing_rate`), bit/s of link-layer bytes; 0: the socket sets no rate.
    pub pacing_bps: u64,
    /// Packet size x cwnd / RTT of its socket (paper 003), bit/s of link-layer
    /// bytes; 0: unknown.
    pub window_bps: u64,
    /// Index of its flow.
    pub flow: u32,
    /// Slot of its segment in [`Segments`], or [`NO_SEGMENT`].
    pub segment: u32,
    /// Length of the frame, bytes: Ethernet header included, FCS not.
    pub frame_bytes: u32,
    /// The class that its socket's priority selects, major number above minor; 0:
    /// none.
    pub class: u32,
    /// Offset that is added to the flow's destination port.
    pub port: u16,
    /// Number of devices of its path that the packet has already left.
    pub hop: u8,
    /// Whether the packet travels from the flow's receiver to its sender.
    pub reverse: bool,
}

/// What a queue for each flow tells packets apart by: flow, offset of its port and
/// direction.
pub type Connection = (u32, u16, bool);

impl Packet {
    /// Returns the packet's connection.
    pub fn connection(&self) -> Connection {
        (self.flow, self.port, self.reverse)
    }
}

/// Transport protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Proto {
    /// TCP, protocol number 6.
    Tcp,
    /// UDP, protocol number 17.
    Udp,
}

impl Proto {
    /// Returns the protocol number in the IP header.
    pub fn number(self) -> u8 {
        match self {
            Self::Tcp => 6,
            Self::Udp => 17,
        }
    }
}

/// Addresses and ports of a packet: the fields that filters match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Header {
    pub proto: Proto,
    /// Sender's address.
    pub src: Ipv4Addr,
    /// Receiver's address.
    pub dst: Ipv4Addr,
    /// Sender's port.
    pub sport: u16,
    /// Receiver's port.
    pub dport: u16,
}

impl Header {
    /// Returns the header of packets in the opposite direction.
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

/// Slab of the TCP segments in flight. It grows to the highest number that is in
/// flight at one time.
#[derive(Debug, Default)]
pub struct Segments {
    slots: Vec<Segment>,
    free: Vec<u32>,
}

impl Segments {
    /// Stores a segment and returns its slot; O(1), amortised.
    pub fn put(&mut self, segment: Segment) -> u32 {
        if let Some(slot) = self.free.pop() {
            self.slots[slot as usize] = segment;
            return slot;
        }
        self.slots.push(segment);
        // 2^32 segments do not fit into memory.
        (self.slots.len() - 1) as u32
    }

    /// Returns the segment in `slot`.
    pub fn get(&self, slot: u32) -> Option<&Segment> {
        self.slots.get(slot as usize)
    }

    /// Frees `slot` and returns its segment; `None` if there is no such slot (the
    /// packet carries no segment).
    pub fn take(&mut self, slot: u32) -> Option<Segment> {
        let segment = self.slots.get(slot as usize).copied()?;
        self.free.push(slot);
        Some(segment)
    }

    /// Returns the number of segments in flight.
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Returns the number of segments for which memory is allocated.
    pub fn capacity(&self) -> usize {
        self.slots.capacity()
    }

    /// Returns whether no segment is in flight.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
