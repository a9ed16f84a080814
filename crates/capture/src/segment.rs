// SPDX-License-Identifier: MIT OR Apache-2.0
//! One TCP segment as a capture has it: what an analysis of connections needs,
//! and nothing that needs memory of its own.

use std::fmt;
use std::net::IpAddr;

/// One end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Endpoint {
    /// Its address.
    pub address: IpAddr,
    /// Its port.
    pub port: u16,
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        std::net::SocketAddr::new(self.address, self.port).fmt(f)
    }
}

/// The flags of a TCP header (RFC 9293, 3.1; AE: RFC 9768).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(pub u16);

impl Flags {
    /// No more data from the sender.
    pub const FIN: u16 = 1;
    /// Begins a connection.
    pub const SYN: u16 = 2;
    /// Ends it at once.
    pub const RST: u16 = 4;
    /// The sender wants the data delivered now.
    pub const PSH: u16 = 8;
    /// The acknowledgement number counts.
    pub const ACK: u16 = 16;
    /// The urgent pointer counts.
    pub const URG: u16 = 32;
    /// ECN echo.
    pub const ECE: u16 = 64;
    /// The congestion window was reduced.
    pub const CWR: u16 = 128;
    /// Accurate ECN.
    pub const AE: u16 = 256;

    /// Whether any of these is set.
    #[must_use]
    pub const fn any(self, of: u16) -> bool {
        self.0 & of != 0
    }
}

/// The timestamps option (RFC 7323).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timestamps {
    /// TSval: the sender's clock.
    pub value: u32,
    /// TSecr: the other's, as last seen; means nothing without ACK. `None`: the snap
    /// length cut it, as 64 bytes do.
    pub echo: Option<u32>,
}

/// The blocks of a SACK option in wire order (RFC 2018): first byte, byte after
/// the last. Nothing says that they are sensible.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlocks {
    count: u8,
    blocks: [(u32, u32); Self::MOST],
}

impl SackBlocks {
    /// More do not fit into a header.
    pub const MOST: usize = 4;

    /// Adds a block; `false` if there is no room.
    pub fn push(&mut self, begin: u32, end: u32) -> bool {
        let Some(place) = self.blocks.get_mut(usize::from(self.count)) else {
            return false;
        };
        *place = (begin, end);
        self.count += 1;
        true
    }

    /// The blocks there are.
    #[must_use]
    pub fn as_slice(&self) -> &[(u32, u32)] {
        &self.blocks[..usize::from(self.count)]
    }
}

impl FromIterator<(u32, u32)> for SackBlocks {
    /// The first four.
    fn from_iter<I: IntoIterator<Item = (u32, u32)>>(blocks: I) -> Self {
        let mut all = Self::default();
        for (begin, end) in blocks.into_iter().take(Self::MOST) {
            all.push(begin, end);
        }
        all
    }
}

/// The direction of a packet at the host that captured it, if the file says so
/// (Linux cooked captures, `epb_flags` of pcapng).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HostDirection {
    /// It does not say.
    #[default]
    Unknown,
    /// Received by it.
    In,
    /// Sent by it.
    Out,
}

/// Index into the table of encapsulations that the reader gives: VLANs and tunnels around the
/// packet. Equal for both directions of a connection; 0 if there are none.
/// Connections of equal addresses and different encapsulations are different.
pub type EncapsulationId = u32;

/// A TCP segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Of the packet: all packets of a capture count, from 1, in the order in
    /// which they are analysed; of several files, in the order of the merged.
    pub number: u64,
    /// Since 1970 or whatever the clock of the capture began with. May run
    /// backwards from one packet to the next.
    pub time_ns: u64,
    /// Sender.
    pub from: Endpoint,
    /// Receiver.
    pub to: Endpoint,
    /// VLANs and tunnels around it; part of the connection's identity.
    pub encapsulation: EncapsulationId,
    /// Sequence number as it is on the wire.
    pub seq: u32,
    /// Acknowledgement number as it is on the wire.
    pub ack: u32,
    /// [`Flags`].
    pub flags: Flags,
    /// Window field, not scaled.
    pub window: u16,
    /// Payload, from the lengths in the IP header and not from what was
    /// captured. More than an MTU if the host segments in its device, and more
    /// than 64 KB with big TCP.
    pub payload_bytes: u32,
    /// Maximum segment size option.
    pub mss: Option<u16>,
    /// Window scale option, as sent: RFC 7323 has 14 taken for anything above.
    pub window_scale: Option<u8>,
    /// SACK permitted option.
    pub sack_permitted: bool,
    /// Timestamps option.
    pub timestamps: Option<Timestamps>,
    /// SACK option.
    pub sack: SackBlocks,
    /// The snap length cut the options, or they are broken: those that are
    /// `None` or empty may have been there.
    pub options_cut: bool,
    /// The two ECN bits of the IP header (RFC 3168): 3 is "congestion
    /// experienced".
    pub ecn: u8,
    /// Identification of the (inner) IPv4 header; 0 with IPv6. Equal in two
    /// copies of one packet, and not in a retransmission unless it is 0.
    pub ip_id: u16,
    /// TTL or hop limit of the (inner) IP header: 64, 128 or 255 where no
    /// router lies between the sender and the capture.
    pub hop_limit: u8,
    /// The direction of the packet at the capturing host, if the file says so.
    pub host_direction: HostDirection,
}

impl Segment {
    /// Sequence space it takes: payload, SYN and FIN.
    #[must_use]
    pub fn sequence_length(&self) -> u32 {
        self.payload_bytes
            .wrapping_add(u32::from(self.flags.any(Flags::SYN)))
            .wrapping_add(u32::from(self.flags.any(Flags::FIN)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_has_room_for_four_blocks() {
        let mut blocks: SackBlocks = [(1, 2), (3, 4), (5, 6)].into_iter().collect();
        assert!(blocks.push(7, 8));
        assert!(!blocks.push(9, 10));
        assert_eq!(blocks.as_slice(), [(1, 2), (3, 4), (5, 6), (7, 8)]);
    }

    #[test]
    fn an_endpoint_reads_as_an_address_with_port() {
        let end = |address: &str, port| Endpoint {
            address: address.parse().unwrap(),
            port,
        };
        assert_eq!(end("10.1.1.1", 80).to_string(), "10.1.1.1:80");
        assert_eq!(end("fe80::1", 80).to_string(), "[fe80::1]:80");
    }
}
