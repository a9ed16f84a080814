// SPDX-License-Identifier: MIT OR Apache-2.0
//! One TCP segment of a capture: the fields that an analysis of connections needs, without
//! heap memory.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};

/// One end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Endpoint {
    pub address: IpAddr,
    /// TCP port.
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
    /// The sender has no more data.
    pub const FIN: u16 = 1;
    /// Begins a connection.
    pub const SYN: u16 = 2;
    /// Ends the connection at once.
    pub const RST: u16 = 4;
    /// The sender wants the data delivered now.
    pub const PSH: u16 = 8;
    /// The acknowledgement number is valid.
    pub const ACK: u16 = 16;
    /// ECN echo.
    pub const ECE: u16 = 64;
    /// The congestion window was reduced.
    pub const CWR: u16 = 128;
    /// Accurate ECN.
    pub const AE: u16 = 256;

    /// Returns whether any of the flags `of` is set.
    pub const fn any(self, of: u16) -> bool {
        self.0 & of != 0
    }
}

/// The timestamps option (RFC 7323).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timestamps {
    /// TSval: the sender's clock.
    pub value: u32,
    /// TSecr: the peer's clock as last seen, valid only with ACK. `None`: the snap length cut
    /// the field, as a snap length of 64 bytes does.
    pub echo: Option<u32>,
}

/// What tells to which connection of Multipath TCP a subflow belongs (RFC 8684, 3.1 and 3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mptcp {
    /// The key of the end that sent the segment, of a connection's first subflow.
    Key(u64),
    /// The token of the end that the segment is sent to, of another subflow's SYN.
    Join(u32),
}

/// The blocks of a SACK option in wire order (RFC 2018), each as first byte and byte after the
/// last. The values are not checked.
#[derive(Clone, Copy, Debug, Default)]
pub struct SackBlocks {
    count: u8,
    blocks: [(u32, u32); Self::MOST],
}

impl SackBlocks {
    /// Most blocks that fit into a TCP header.
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

    pub fn clear(&mut self) {
        self.count = 0;
    }

    pub fn as_slice(&self) -> &[(u32, u32)] {
        &self.blocks[..usize::from(self.count)]
    }
}

impl PartialEq for SackBlocks {
    fn eq(&self, other: &Self) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl Eq for SackBlocks {}

impl FromIterator<(u32, u32)> for SackBlocks {
    /// Takes the first four blocks.
    fn from_iter<I: IntoIterator<Item = (u32, u32)>>(blocks: I) -> Self {
        let mut all = Self::default();
        for (begin, end) in blocks.into_iter().take(Self::MOST) {
            all.push(begin, end);
        }
        all
    }
}

/// Direction of a packet at the host that captured it, if the file holds it (Linux cooked
/// captures, `epb_flags` of pcapng).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HostDirection {
    /// The file does not hold it.
    #[default]
    Unknown,
    /// The capturing host received the packet.
    In,
    /// The capturing host sent the packet.
    Out,
}

/// Index into the reader's table of encapsulations: the VLANs and tunnels around the packet.
/// It is equal for both directions of a connection; 0 means none. Equal addresses and ports in
/// different encapsulations are different connections.
pub type EncapsulationId = u32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Number of the packet, from 1: every packet of a capture counts, in the order of
    /// analysis. With several files it is the number in the merged capture.
    pub number: u64,
    /// Timestamp of the packet, since 1970 or since the start of the capture's clock. It may
    /// be less than that of the packet before.
    pub time_ns: u64,
    pub from: Endpoint,
    pub to: Endpoint,
    /// VLANs and tunnels around the segment; part of the connection's identity.
    pub encapsulation: EncapsulationId,
    /// Sequence number as on the wire, without offset.
    pub seq: u32,
    /// Acknowledgement number as on the wire, without offset.
    pub ack: u32,
    /// Flags of the TCP header.
    pub flags: Flags,
    /// Window field, not scaled.
    pub window: u16,
    /// Payload length, taken from the lengths in the IP header and not from the captured
    /// bytes. It exceeds an MTU if the device does segmentation, and 64 KB with big TCP.
    pub payload_bytes: u32,
    /// Maximum segment size option.
    pub mss: Option<u16>,
    /// Window scale option as sent. RFC 7323 reads any value above 14 as 14.
    pub window_scale: Option<u8>,
    /// SACK permitted option.
    pub sack_permitted: bool,
    pub timestamps: Option<Timestamps>,
    pub mptcp: Option<Mptcp>,
    /// SACK option.
    pub sack: SackBlocks,
    /// Whether the options are broken or cut by the snap length. Options that are `None` or
    /// empty here may then have been present.
    pub options_cut: bool,
    /// The two ECN bits of the IP header (RFC 3168): 3 is "congestion
    /// experienced".
    pub ecn: u8,
    /// Identification of the (inner) IPv4 header; 0 with IPv6. Two copies of one packet have
    /// the same; a retransmission has another, unless the field is 0.
    pub ip_id: u16,
    /// TTL or hop limit of the (inner) IP header. It is 64, 128 or 255 if no router lies
    /// between the sender and the capture point.
    pub hop_limit: u8,
    /// Direction of the packet at the capturing host, if the file holds it.
    pub host_direction: HostDirection,
}

impl Default for Segment {
    fn default() -> Self {
        let end = Endpoint {
            address: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            port: 0,
        };
        Self {
            number: 0,
            time_ns: 0,
            from: end,
            to: end,
            encapsulation: 0,
            seq: 0,
            ack: 0,
            flags: Flags::default(),
            window: 0,
            payload_bytes: 0,
            mss: None,
            window_scale: None,
            sack_permitted: false,
            timestamps: None,
            mptcp: None,
            sack: SackBlocks::default(),
            options_cut: false,
            ecn: 0,
            ip_id: 0,
            hop_limit: 0,
            host_direction: HostDirection::Unknown,
        }
    }
}

impl Segment {
    /// Returns the sequence space that the segment takes: payload, SYN and FIN.
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
