// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes packets of a running host as pcapng: from the network header on, with the interface and
//! the direction of each.

use std::io::{self, Write};

use crate::blocks::{IF_NAME, IF_TSRESOL, block, length_u32, option, pad, section};

const LINKTYPE_RAW: u16 = 101;
const NANOSECONDS: u8 = 9;
/// Option of a packet: its direction, among other bits.
const FLAGS: u16 = 2;
const INBOUND: u32 = 1;
const OUTBOUND: u32 = 2;

#[derive(Clone, Copy, Debug)]
pub struct SavedPacket<'a> {
    /// Index of its interface in the list of names.
    pub interface: usize,
    /// Time since 1970.
    pub time_ns: u64,
    /// Whether this host sent it.
    pub is_outgoing: bool,
    /// Its length, of which `bytes` may be the beginning alone.
    pub packet_bytes: u32,
    /// Its bytes, from the network header on.
    pub bytes: &'a [u8],
}

/// Writes packets with a comment on all of them; `snap_bytes` is the most that is kept of one.
///
/// # Errors
/// Those of `out`, and if a name or the comment has 2^16 bytes.
pub fn write_packets<W: Write>(
    mut out: W,
    comment: &str,
    interfaces: &[String],
    snap_bytes: u32,
    packets: &[SavedPacket<'_>],
) -> io::Result<()> {
    section(&mut out, Some(comment))?;
    for name in interfaces {
        let mut body = Vec::new();
        body.extend(LINKTYPE_RAW.to_le_bytes());
        body.extend(0u16.to_le_bytes());
        body.extend(snap_bytes.to_le_bytes());
        option(&mut body, IF_NAME, name.as_bytes())?;
        option(&mut body, IF_TSRESOL, &[NANOSECONDS])?;
        option(&mut body, 0, &[])?;
        block(&mut out, 1, &body)?;
    }
    for packet in packets {
        let mut body = Vec::with_capacity(64 + packet.bytes.len());
        body.extend(length_u32(packet.interface)?.to_le_bytes());
        let [low, high] = [packet.time_ns & 0xffff_ffff, packet.time_ns >> 32];
        for word in [high, low] {
            body.extend(&word.to_le_bytes()[..4]);
        }
        body.extend(length_u32(packet.bytes.len())?.to_le_bytes());
        body.extend(packet.packet_bytes.to_le_bytes());
        body.extend(packet.bytes);
        pad(&mut body);
        let flags = if packet.is_outgoing {
            OUTBOUND
        } else {
            INBOUND
        };
        option(&mut body, FLAGS, &flags.to_le_bytes())?;
        option(&mut body, 0, &[])?;
        block(&mut out, 6, &body)?;
    }
    out.flush()
}
