// SPDX-License-Identifier: MIT OR Apache-2.0
//! RTP streams: datagrams by addresses, ports, source and payload type.

use std::collections::HashMap;
use std::fmt;
use std::net::SocketAddr;

use serde::Serialize;

use crate::am824;
use crate::rfc4175::{self, Lines};
use crate::rfc8331::{self, Ancillary};
use crate::rfc9134::{self, JpegXs};
use crate::rtp;

/// Latest time of a packet: 2262, as far as 63 bits of nanoseconds reach.
const LATEST_PS: i128 = i64::MAX as i128 * 1000;
/// Fewest packets of a stream that is measured.
const FEWEST_PACKETS: usize = 8;
/// Largest step of sequence numbers that speaks for a stream, from one packet to the next.
const SMALL_STEP: u16 = 16;

/// What distinguishes streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct Key {
    pub from: SocketAddr,
    /// The receiver, or the group of receivers.
    pub to: SocketAddr,
    /// The source within its session.
    pub ssrc: u32,
    /// What the payload is, by agreement.
    pub payload_type: u8,
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} > {} ssrc {:08x} pt {}",
            self.from, self.to, self.ssrc, self.payload_type
        )
    }
}

/// A packet of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// When it was captured, since 1970, on the clock of the capture.
    pub time_ps: i128,
    /// Lower 16 bits of its number.
    pub sequence: u16,
    pub timestamp: u32,
    pub marker: bool,
    /// Length of its RTP payload.
    pub payload_bytes: u32,
    /// Captured bytes of the payload, up to 255.
    pub captured_bytes: u8,
    /// The headers of RFC 4175, if the payload can have them.
    pub lines: Option<Lines>,
    /// The header of RFC 8331, if the payload can have it.
    pub ancillary: Option<Ancillary>,
    /// The header of RFC 9134, if the payload can have it.
    pub jpeg_xs: Option<JpegXs>,
    /// Whether the payload can be AM824.
    pub is_am824: bool,
}

#[derive(Clone, Debug)]
pub struct Stream {
    /// What distinguishes it.
    pub key: Key,
    /// Its packets, in order of time.
    pub packets: Vec<Packet>,
    pub largest_ip_bytes: u32,
}

/// A packet's number and timestamp without wraps, and its index in the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbered {
    pub sequence: i64,
    pub timestamp: i64,
    /// Index of the packet in [`Stream::packets`].
    pub at: usize,
}

impl Stream {
    /// Returns the packets with numbers and timestamps that do not wrap, in order of time. `is_extended`: numbers
    /// have the 32 bits of RFC 4175.
    pub fn numbered(&self, is_extended: bool) -> Vec<Numbered> {
        numbered(&self.packets, is_extended)
    }

    /// Returns the same in the order of their numbers; of those that came twice the first.
    pub fn ordered(&self, is_extended: bool) -> Vec<Numbered> {
        unique(&self.numbered(is_extended))
    }

    /// Returns whether the upper halves of RFC 4175's numbers go on where the lower ones wrap. Some senders leave
    /// them at 0.
    pub fn is_extended(&self) -> bool {
        let (mut wraps, mut good) = (0u64, 0u64);
        for pair in self.packets.windows(2) {
            let Some((a, b)) = pair[0].lines.zip(pair[1].lines) else {
                continue;
            };
            let step = pair[1].sequence.wrapping_sub(pair[0].sequence);
            if (1..=SMALL_STEP).contains(&step) {
                let has_wrapped = pair[1].sequence < pair[0].sequence;
                let upper = a.extended.wrapping_add(u16::from(has_wrapped));
                wraps += u64::from(has_wrapped || a.extended != b.extended);
                good += u64::from(has_wrapped && b.extended == upper);
            }
        }
        good * 2 >= wraps
    }

    /// Returns whether the numbers of its packets are those of a stream: most follow each other.
    pub fn is_plausible(&self) -> bool {
        let pairs = self.packets.windows(2);
        let small = |pair: &&[Packet]| {
            let step = pair[1].sequence.wrapping_sub(pair[0].sequence);
            (1..=SMALL_STEP).contains(&step)
        };
        let follow = pairs.filter(small).count();
        self.packets.len() >= FEWEST_PACKETS && follow * 2 >= self.packets.len()
    }
}

/// Returns the packets with numbers and timestamps that do not wrap, in order of time. Each is
/// taken for the one that is nearest to the packet before. `is_extended`: numbers have the 32
/// bits of RFC 4175.
pub(crate) fn numbered(packets: &[Packet], is_extended: bool) -> Vec<Numbered> {
    let raw = |packet: &Packet| match packet.lines.filter(|_| is_extended) {
        Some(lines) => (u32::from(lines.extended) << 16) | u32::from(packet.sequence),
        None => u32::from(packet.sequence),
    };
    let mut last: Option<(i64, i64)> = None;
    let number = |(at, packet): (usize, &Packet)| {
        let (number, timestamp) = (raw(packet), packet.timestamp);
        let (sequence, timestamp) = match last {
            None => (i64::from(number), i64::from(timestamp)),
            Some((before, ticks)) => {
                // The lower bits of the difference, as a signed number.
                let step = if is_extended && packet.lines.is_some() {
                    i64::from(number.wrapping_sub(before as u32) as i32)
                } else {
                    i64::from((number as u16).wrapping_sub(before as u16) as i16)
                };
                let ticks_step = timestamp.wrapping_sub(ticks as u32) as i32;
                (before + step, ticks + i64::from(ticks_step))
            }
        };
        last = Some((sequence, timestamp));
        Numbered {
            sequence,
            timestamp,
            at,
        }
    };
    packets.iter().enumerate().map(number).collect()
}

/// Returns packets in the order of their numbers; of those that came twice the first.
pub(crate) fn unique(numbered: &[Numbered]) -> Vec<Numbered> {
    let mut sorted = numbered.to_vec();
    sorted.sort_by_key(|packet| (packet.sequence, packet.at));
    sorted.dedup_by_key(|packet| packet.sequence);
    sorted
}

/// A datagram that may belong to a stream.
#[derive(Clone, Copy, Debug)]
pub struct Datagram<'a> {
    /// When it was captured, since 1970.
    pub time_ps: i128,
    pub from: SocketAddr,
    pub to: SocketAddr,
    /// Captured bytes of the UDP payload.
    pub payload: &'a [u8],
    /// Length of the UDP payload.
    pub payload_bytes: u32,
}

/// The datagrams so far, by stream.
#[derive(Clone, Debug, Default)]
pub struct Streams {
    streams: Vec<Stream>,
    by_key: HashMap<Key, usize>,
    others: u64,
}

/// The streams of a capture, and the datagrams that belong to none.
#[derive(Clone, Debug, Default)]
pub struct FoundStreams {
    /// The streams, in the order of their first packets.
    pub streams: Vec<Stream>,
    /// Datagrams that are no RTP, or too few to tell.
    pub others: u64,
}

impl Streams {
    /// Adds a datagram. It needs some 64 bytes of memory.
    pub fn add(&mut self, datagram: &Datagram<'_>) {
        let in_range = (0..=LATEST_PS).contains(&datagram.time_ps);
        let packet = rtp::read(datagram.payload, datagram.payload_bytes).filter(|_| in_range);
        let Some(packet) = packet else {
            self.others += 1;
            return;
        };
        let key = Key {
            from: datagram.from,
            to: datagram.to,
            ssrc: packet.header.ssrc,
            payload_type: packet.header.payload_type,
        };
        let at = *self.by_key.entry(key).or_insert_with(|| {
            self.streams.push(Stream {
                key,
                packets: Vec::new(),
                largest_ip_bytes: 0,
            });
            self.streams.len() - 1
        });
        let Some(stream) = self.streams.get_mut(at) else {
            return;
        };
        // The headers of IP without options, and UDP's.
        let headers = if datagram.to.is_ipv6() { 48 } else { 28 };
        let ip_bytes = datagram.payload_bytes.saturating_add(headers);
        stream.largest_ip_bytes = stream.largest_ip_bytes.max(ip_bytes);
        stream.packets.push(Packet {
            time_ps: datagram.time_ps,
            sequence: packet.header.sequence,
            timestamp: packet.header.timestamp,
            marker: packet.header.marker,
            payload_bytes: packet.payload_bytes,
            captured_bytes: u8::try_from(packet.payload.len()).unwrap_or(u8::MAX),
            lines: rfc4175::read(packet.payload, packet.payload_bytes),
            ancillary: rfc8331::read(packet.payload, packet.payload_bytes),
            jpeg_xs: rfc9134::read(packet.payload),
            is_am824: am824::is_am824(packet.payload, packet.payload_bytes),
        });
    }

    /// Returns the streams; what only looks like one is counted with the others.
    pub fn finish(self) -> FoundStreams {
        let mut found = FoundStreams {
            others: self.others,
            ..FoundStreams::default()
        };
        for mut stream in self.streams {
            // Stable: packets of one instant stay in the order of the file.
            stream.packets.sort_by_key(|packet| packet.time_ps);
            if stream.is_plausible() {
                found.streams.push(stream);
            } else {
                found.others += stream.packets.len() as u64;
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(numbers: &[(u16, u16, u32)]) -> Stream {
        let line = rfc4175::Line {
            length: 0,
            second_field: false,
            row: 0,
            offset: 0,
        };
        let lines = |extended| Lines {
            extended,
            first: line,
            last: line,
        };
        let packet = |&(extended, sequence, timestamp): &(u16, u16, u32)| Packet {
            time_ps: 0,
            sequence,
            timestamp,
            marker: false,
            payload_bytes: 0,
            captured_bytes: 0,
            lines: Some(lines(extended)),
            ancillary: None,
            jpeg_xs: None,
            is_am824: false,
        };
        let end = "10.0.0.1:5004".parse().unwrap();
        Stream {
            key: Key {
                from: end,
                to: end,
                ssrc: 0,
                payload_type: 96,
            },
            packets: numbers.iter().map(packet).collect(),
            largest_ip_bytes: 0,
        }
    }

    #[test]
    fn numbers_go_on_where_they_wrap() {
        let wraps = stream(&[
            (7, 65_534, u32::MAX - 1),
            (7, 65_535, u32::MAX - 1),
            (8, 1, 1498),
            (8, 0, 1498),
        ]);
        let found = wraps.numbered(false);
        let numbers: Vec<_> = found.iter().map(|n| n.sequence).collect();
        assert_eq!(numbers, [65_534, 65_535, 65_537, 65_536]);
        let ticks: Vec<_> = found
            .iter()
            .map(|n| n.timestamp - found[0].timestamp)
            .collect();
        assert_eq!(ticks, [0, 0, 1500, 1500]);
        let extended: Vec<_> = wraps.numbered(true).iter().map(|n| n.sequence).collect();
        assert_eq!(extended, [0x7_fffe, 0x7_ffff, 0x8_0001, 0x8_0000]);
        // A loss of more than half of the lower bits' range.
        let gap = stream(&[(0, 0, 0), (1, 0, 0), (0xffff, 0xffff, 0)]);
        let extended: Vec<_> = gap.numbered(true).iter().map(|n| n.sequence).collect();
        assert_eq!(extended, [0, 65_536, -1]);
    }

    #[test]
    fn what_only_looks_like_a_stream_is_none() {
        let even =
            |step: u16| -> Vec<_> { (0..20).map(|i: u16| (0, i.wrapping_mul(step), 0)).collect() };
        assert!(stream(&even(1)).is_plausible());
        assert!(stream(&even(3)).is_plausible());
        assert!(!stream(&even(1)[..7]).is_plausible());
        assert!(!stream(&even(12_345)).is_plausible());
        assert!(!stream(&even(0)).is_plausible());
    }
}
