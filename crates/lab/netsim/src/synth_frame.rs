// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes the headers of a simulated frame as they would be on a wire, for
//! captures: Ethernet, IPv4, and UDP with the laboratory's number and time of
//! sending, or TCP with timestamps and SACK blocks. Checksums are left at 0.

use scenario::Direction;
use units::ethernet::{HEADER_BYTES, IPV4_HEADER_BYTES, TCP_HEADER_BYTES, UDP_HEADER_BYTES};

use crate::observe::Content;
use crate::packet::{Packet, Proto};
use crate::tcp::Segment;

const IPV4: u32 = IPV4_HEADER_BYTES;
const TCP: usize = TCP_HEADER_BYTES as usize;
/// The sequence number of the first byte: the SYN takes number 0. The wire carries
/// the low 32 of the 64 bits in which a stream is counted.
const FIRST: u64 = 1;

const FIN: u8 = 0x01;
const PSH: u8 = 0x08;
const ACK: u8 = 0x10;

/// Appends the headers of a frame sent in `direction`.
pub(crate) fn write(out: &mut Vec<u8>, content: &Content<'_>, direction: Direction) {
    let (packet, header) = (content.packet, &content.header);
    out.extend(mac(direction.cable, direction.end.other().index()));
    out.extend(mac(direction.cable, direction.end.index()));
    out.extend([0x08, 0x00]);
    let ip_bytes = packet.frame_bytes.saturating_sub(HEADER_BYTES);
    out.extend([0x45, 0]);
    out.extend(low16(ip_bytes.into()));
    // Identification, flags (do not fragment), time to live.
    out.extend(low16(packet.number));
    out.extend([
        0x40,
        0,
        64u8.saturating_sub(packet.hop),
        header.proto.number(),
    ]);
    out.extend([0, 0]);
    out.extend(header.src.octets());
    out.extend(header.dst.octets());
    out.extend(header.sport.to_be_bytes());
    out.extend(header.dport.to_be_bytes());
    match (header.proto, content.segment) {
        (Proto::Udp, _) => udp(out, packet, ip_bytes),
        (Proto::Tcp, Some(segment)) => tcp(out, packet, segment),
        (Proto::Tcp, None) => {}
    }
}

/// Returns the MAC address of one end of a cable: `02:70:73:KK:KK:EE`, as in the
/// laboratory.
fn mac(cable: usize, end: usize) -> [u8; 6] {
    let [high, low] = low16(cable as u64 + 1);
    [0x02, 0x70, 0x73, high, low, end as u8 + 1]
}

fn low16(value: u64) -> [u8; 2] {
    (value as u16).to_be_bytes()
}

fn udp(out: &mut Vec<u8>, packet: &Packet, ip_bytes: u32) {
    out.extend(low16(ip_bytes.saturating_sub(IPV4).into()));
    out.extend([0, 0]);
    // The payload that lab/send writes: a number, and the time of the system call.
    if ip_bytes >= IPV4 + UDP_HEADER_BYTES + 16 {
        out.extend(packet.number.to_be_bytes());
        out.extend(packet.born.as_ns().to_be_bytes());
    }
}

fn tcp(out: &mut Vec<u8>, packet: &Packet, segment: &Segment) {
    let low32 = |value: u64| (value as u32).to_be_bytes();
    let blocks = segment.sack_blocks();
    let mut options = Vec::with_capacity(40);
    if let Some((value, echo)) = segment.timestamps {
        options.extend([1, 1, 8, 10]);
        options.extend(value.to_be_bytes());
        options.extend(echo.to_be_bytes());
    }
    if !blocks.is_empty() {
        options.extend([1, 1, 5, 2 + 8 * blocks.len() as u8]);
        for block in blocks {
            options.extend(low32(block.start + FIRST));
            options.extend(low32(block.end + FIRST));
        }
    }
    out.extend(low32(segment.seq + FIRST));
    // A sender of data acknowledges the peer's SYN and nothing else.
    let ack = if packet.reverse { segment.ack } else { 0 };
    out.extend(low32(ack + FIRST));
    let mut flags = ACK;
    if segment.fin {
        flags |= FIN;
    }
    if segment.len_bytes > 0 {
        flags |= PSH;
    }
    out.push((((TCP + options.len()) / 4) as u8) << 4);
    out.push(flags);
    // The window is shifted by 7 bits: the capture does not have the scale that the
    // connection agreed on.
    let window = segment.window_bytes >> 7;
    out.extend(low16(window.min(0xffff)));
    out.extend([0; 4]);
    out.extend(options);
}
