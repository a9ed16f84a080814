// SPDX-License-Identifier: MIT OR Apache-2.0
//! A TCP segment between the two ends, and its bytes as an IPv4 packet. Inside the simulator
//! sequence numbers are 64 bits wide and count from 0, the SYN's; the wire adds an initial
//! sequence number and keeps 32 bits.

use crate::ground_truth::{End, Why};

/// Flags of the TCP header (RFC 9293, 3.1).
pub mod flag {
    /// The sender has no more data.
    pub const FIN: u8 = 1;
    /// Begins a connection.
    pub const SYN: u8 = 2;
    /// Ends the connection at once.
    pub const RST: u8 = 4;
    /// The sender wants the data delivered now.
    pub const PSH: u8 = 8;
    /// The acknowledgement number is valid.
    pub const ACK: u8 = 16;
}

/// One segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// The end that sent it.
    pub from: End,
    /// Number of the first byte; the SYN has 0, the first byte of data 1.
    pub seq: u64,
    /// The next byte that the sender expects; 0 without ACK.
    pub ack: u64,
    pub flags: u8,
    /// The window field as on the wire.
    pub window: u16,
    pub payload_bytes: u32,
    /// Maximum segment size option.
    pub mss: Option<u16>,
    pub window_scale: Option<u8>,
    /// SACK permitted option.
    pub sack_permitted: bool,
    /// Timestamps option: value and echo.
    pub timestamps: Option<(u32, u32)>,
    /// Blocks of the SACK option, first byte and byte after the last.
    pub sack: Vec<(u64, u64)>,
    /// Identification of the IPv4 header.
    pub ip_id: u16,
    /// Hop limit as sent.
    pub hop_limit: u8,
    /// Why it was sent: the truth, not on the wire.
    pub why: Why,
}

impl Packet {
    /// Returns whether any flag of `of` is set.
    pub const fn has(&self, of: u8) -> bool {
        self.flags & of != 0
    }

    /// Returns the number after the last one that the segment takes: payload, SYN and FIN.
    pub fn end(&self) -> u64 {
        self.seq
            + u64::from(self.payload_bytes)
            + u64::from(self.has(flag::SYN))
            + u64::from(self.has(flag::FIN))
    }

    /// Returns the options as on the wire, padded to words. Timestamps stand behind two
    /// fillers, as nearly all systems have them.
    fn options(&self, ids: &Ids) -> Vec<u8> {
        let mut options = Vec::with_capacity(40);
        if let Some(mss) = self.mss {
            options.extend([2, 4]);
            options.extend(mss.to_be_bytes());
        }
        if let Some(shift) = self.window_scale {
            options.extend([1, 3, 3, shift]);
        }
        if self.sack_permitted {
            options.extend([1, 1, 4, 2]);
        }
        if let Some((value, echo)) = self.timestamps {
            options.extend([1, 1, 8, 10]);
            options.extend(value.to_be_bytes());
            options.extend(echo.to_be_bytes());
        }
        let room = (40 - options.len()).saturating_sub(4) / 8;
        let blocks = &self.sack[..self.sack.len().min(room)];
        if !blocks.is_empty() {
            let length = u8::try_from(2 + 8 * blocks.len()).unwrap_or(2);
            options.extend([1, 1, 5, length]);
            let initial = ids.initial[self.from.other().index()];
            for (begin, end) in blocks {
                options.extend(wire(initial, *begin).to_be_bytes());
                options.extend(wire(initial, *end).to_be_bytes());
            }
        }
        options
    }

    /// Returns the bytes of header and payload that TCP and IPv4 have without the payload's
    /// content, for the time on a line.
    pub fn wire_bytes(&self) -> u64 {
        let mut options = 0;
        options += if self.mss.is_some() { 4 } else { 0 };
        options += if self.window_scale.is_some() { 4 } else { 0 };
        options += if self.sack_permitted { 4 } else { 0 };
        options += if self.timestamps.is_some() { 12 } else { 0 };
        options += if self.sack.is_empty() {
            0
        } else {
            4 + 8 * self.sack.len().min(3) as u64
        };
        40 + options + u64::from(self.payload_bytes)
    }

    /// Returns the IPv4 packet; the payload is zeros.
    pub fn ipv4(&self, ids: &Ids, hop_limit: u8) -> Vec<u8> {
        let options = self.options(ids);
        let header = 40 + options.len();
        let length = header + self.payload_bytes as usize;
        let mut bytes = Vec::with_capacity(length);
        bytes.extend([0x45, 0]);
        // Segments of loopback fill the field; longer ones are not made.
        bytes.extend(u16::try_from(length).unwrap_or(u16::MAX).to_be_bytes());
        bytes.extend(self.ip_id.to_be_bytes());
        bytes.extend([0x40, 0, hop_limit, 6, 0, 0]);
        bytes.extend(ids.addresses[self.from.index()]);
        bytes.extend(ids.addresses[self.from.other().index()]);
        let sum = checksum(&bytes, 0);
        bytes[10..12].copy_from_slice(&sum.to_be_bytes());
        let (source, destination) = (self.from.index(), self.from.other().index());
        bytes.extend(ids.ports[source].to_be_bytes());
        bytes.extend(ids.ports[destination].to_be_bytes());
        bytes.extend(wire(ids.initial[source], self.seq).to_be_bytes());
        let ack = if self.has(flag::ACK) {
            wire(ids.initial[destination], self.ack)
        } else {
            0
        };
        bytes.extend(ack.to_be_bytes());
        let words = u8::try_from((20 + options.len()) / 4).unwrap_or(15);
        bytes.extend([words << 4, self.flags]);
        bytes.extend(self.window.to_be_bytes());
        bytes.extend([0, 0, 0, 0]);
        bytes.extend(options);
        bytes.resize(length, 0);
        let pseudo = u32::from(u16::try_from(length - 20).unwrap_or(0)) + 6;
        let sum = checksum(&bytes[12..], pseudo);
        bytes[36..38].copy_from_slice(&sum.to_be_bytes());
        bytes
    }

    /// Reads a packet that one end's own TCP wrote. `None` if it is no TCP in IPv4.
    pub fn parse(bytes: &[u8], from: End, ids: &Ids, why: Why) -> Option<Self> {
        let word = |at: usize| Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]));
        let long = |at: usize| Some((u32::from(word(at)?) << 16) | u32::from(word(at + 2)?));
        if bytes.first()? >> 4 != 4 || *bytes.get(9)? != 6 {
            return None;
        }
        let tcp = usize::from(bytes.first()? & 15) * 4;
        let header = usize::from(*bytes.get(tcp + 12)? >> 4) * 4;
        let payload = usize::from(word(2)?).checked_sub(tcp + header)?;
        let flags = *bytes.get(tcp + 13)?;
        let (own, peer) = (ids.initial[from.index()], ids.initial[from.other().index()]);
        let mut packet = Packet {
            from,
            seq: offset(own, long(tcp + 4)?),
            ack: if flags & flag::ACK == 0 {
                0
            } else {
                offset(peer, long(tcp + 8)?)
            },
            flags,
            window: word(tcp + 14)?,
            payload_bytes: u32::try_from(payload).ok()?,
            mss: None,
            window_scale: None,
            sack_permitted: false,
            timestamps: None,
            sack: Vec::new(),
            ip_id: word(4)?,
            hop_limit: *bytes.get(8)?,
            why,
        };
        let mut at = tcp + 20;
        while at < tcp + header {
            let kind = *bytes.get(at)?;
            if kind == 0 {
                break;
            }
            if kind == 1 {
                at += 1;
                continue;
            }
            let length = usize::from(*bytes.get(at + 1)?);
            match kind {
                2 => packet.mss = word(at + 2),
                3 => packet.window_scale = bytes.get(at + 2).copied(),
                4 => packet.sack_permitted = true,
                5 => {
                    for block in 0..length.saturating_sub(2) / 8 {
                        let (begin, end) = (long(at + 2 + block * 8)?, long(at + 6 + block * 8)?);
                        packet.sack.push((offset(peer, begin), offset(peer, end)));
                    }
                }
                8 => packet.timestamps = Some((long(at + 2)?, long(at + 6)?)),
                _ => {}
            }
            at += length.max(2);
        }
        Some(packet)
    }
}

/// What names a connection on the wire; index 0 is the client's, 1 the server's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ids {
    /// IPv4 addresses.
    pub addresses: [[u8; 4]; 2],
    pub ports: [u16; 2],
    /// Initial sequence numbers.
    pub initial: [u32; 2],
}

/// Returns a sequence number on the wire.
fn wire(initial: u32, offset: u64) -> u32 {
    initial.wrapping_add((offset & 0xffff_ffff) as u32)
}

/// Returns a number of the simulator; no transfer here is longer than 4 GB.
fn offset(initial: u32, wire: u32) -> u64 {
    u64::from(wire.wrapping_sub(initial))
}

/// Returns the Internet checksum (RFC 1071) of bytes and what was summed up before.
pub(crate) fn checksum(bytes: &[u8], before: u32) -> u16 {
    let mut sum = u64::from(before);
    for pair in bytes.chunks(2) {
        sum += (u64::from(pair[0]) << 8) | u64::from(pair.get(1).copied().unwrap_or(0));
    }
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}
