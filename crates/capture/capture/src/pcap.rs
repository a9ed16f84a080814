// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads classic pcap: one header, then records of one link type.

use std::io::Read;

use crate::error::ReadError;
use crate::frame::{CaptureTime, Frame, LARGEST_BLOCK_BYTES, Options};
use crate::input::Lookahead;
use crate::link::Link;
use crate::segment::HostDirection;

const HEADER_BYTES: usize = 24;
const RECORD_HEADER_BYTES: usize = 16;

/// The decoded file header.
#[derive(Debug)]
pub(crate) struct Pcap {
    big_endian: bool,
    link: Option<Link>,
    /// Writers up to version 2.3 did not agree on the order of a packet's two lengths.
    is_old: bool,
    pub(crate) link_number: i32,
    pub(crate) unit_ps: u64,
    /// Whether the header states microseconds, and the first packet's fraction is of nanoseconds.
    pub(crate) is_read_as_ns: bool,
    has_begun: bool,
    /// Longest packet that was captured, as the file states it.
    pub(crate) snap_bytes: u32,
    /// Length of the frame check sequence, if the file states it.
    pub(crate) fcs_bytes: Option<u8>,
}

/// A record as the file has it.
pub(crate) struct RawPacket<'a> {
    pub(crate) seconds: u32,
    /// Microseconds or nanoseconds; more than a second if the file is broken.
    pub(crate) fraction: u32,
    /// Length on the wire.
    pub(crate) packet_bytes: u32,
    /// The captured bytes.
    pub(crate) bytes: &'a [u8],
}

/// The last minor version in whose files a packet's lengths may be swapped.
const OLD_MINOR: u16 = 3;
/// First word of a file with timestamps in microseconds, and of one in nanoseconds.
const MAGIC_US: u32 = 0xa1b2_c3d4;
const MAGIC_NS: u32 = 0xa1b2_3c4d;

/// Returns byte order and unit by the first bytes: `(big_endian, unit_ps)`.
fn magic(first: &[u8]) -> Option<(bool, u64)> {
    let word = *first.first_chunk::<4>()?;
    let unit_ps = |word| match word {
        MAGIC_US => Some(1_000_000),
        MAGIC_NS => Some(1_000),
        _ => None,
    };
    let little = unit_ps(u32::from_le_bytes(word)).map(|unit_ps| (false, unit_ps));
    little.or_else(|| unit_ps(u32::from_be_bytes(word)).map(|unit_ps| (true, unit_ps)))
}

impl Pcap {
    pub(crate) fn is_magic(first: &[u8]) -> bool {
        magic(first).is_some()
    }

    /// Reads the file header.
    pub(crate) fn open<R: Read>(input: &mut Lookahead<R>) -> Result<Self, ReadError> {
        let bytes = input.peek(HEADER_BYTES)?;
        let (Some((big_endian, unit_ps)), Some(network)) =
            (magic(bytes), bytes.get(20..).and_then(|b| b.first_chunk()))
        else {
            return Err(truncated(0, bytes.len(), HEADER_BYTES));
        };
        let word = |bytes: &[u8; 4]| {
            if big_endian {
                u32::from_be_bytes(*bytes)
            } else {
                u32::from_le_bytes(*bytes)
            }
        };
        let network = word(network);
        let snap_bytes = bytes.get(16..).and_then(|b| b.first_chunk());
        let snap_bytes = snap_bytes.map_or(0, word);
        let minor = bytes.get(6..).and_then(|b| b.first_chunk());
        let minor = minor.map_or(u16::MAX, |minor| {
            if big_endian {
                u16::from_be_bytes(*minor)
            } else {
                u16::from_le_bytes(*minor)
            }
        });
        // Bits 26 to 31 hold the length of the FCS, and whether it is stated.
        let link_number = (network & 0x03ff_ffff) as i32;
        let opened = Self {
            big_endian,
            link: Link::from_number(link_number),
            link_number,
            unit_ps,
            is_read_as_ns: false,
            has_begun: false,
            snap_bytes,
            // A bit says that the length is stated; its unit is 16 bits.
            fcs_bytes: (network & (1 << 26) != 0).then_some((network >> 28) as u8 * 2),
            is_old: minor <= OLD_MINOR,
        };
        input.consume(HEADER_BYTES);
        Ok(opened)
    }

    pub(crate) fn is_big_endian(&self) -> bool {
        self.big_endian
    }

    /// Passes the next packet to `use_it`; returns `None` at the end.
    #[inline]
    pub(crate) fn next<R: Read, T>(
        &mut self,
        input: &mut Lookahead<R>,
        use_it: impl FnOnce(Frame<'_>) -> T,
    ) -> Result<Option<T>, ReadError> {
        if !self.has_begun {
            self.begin(input)?;
        }
        let fcs_bytes = u32::from(self.fcs_bytes.unwrap_or(0));
        self.next_raw(input, |packet| {
            // Frames are counted without it. The captured bytes stay: not all writers that state it keep it.
            let on_wire = packet.packet_bytes.max(packet.bytes.len() as u32);
            let packet_bytes = on_wire.saturating_sub(fcs_bytes);
            use_it(Frame {
                time: CaptureTime {
                    seconds: packet.seconds.into(),
                    ps: u64::from(packet.fraction) * self.unit_ps,
                },
                interface: 0,
                link: self.link,
                host_direction: HostDirection::Unknown,
                packet_bytes,
                bytes: packet.bytes,
                options: Options::default(),
            })
        })
    }

    /// Looks at the first packet's fraction of a second: microseconds are less than a million.
    pub(crate) fn begin<R: Read>(&mut self, input: &mut Lookahead<R>) -> Result<(), ReadError> {
        const SECOND_US: u32 = 1_000_000;
        const SECOND_NS: u32 = 1_000_000_000;
        let head = input.peek(RECORD_HEADER_BYTES)?;
        let Some(&fraction) = head.get(4..).and_then(|rest| rest.first_chunk()) else {
            return Ok(());
        };
        let fraction = if self.big_endian {
            u32::from_be_bytes(fraction)
        } else {
            u32::from_le_bytes(fraction)
        };
        self.has_begun = true;
        if self.unit_ps == 1_000_000 && (SECOND_US..SECOND_NS).contains(&fraction) {
            self.is_read_as_ns = true;
            self.unit_ps = 1_000;
        }
        Ok(())
    }

    /// Passes the next record to `use_it`; returns `None` at the end.
    #[inline]
    pub(crate) fn next_raw<R: Read, T>(
        &self,
        input: &mut Lookahead<R>,
        use_it: impl FnOnce(RawPacket<'_>) -> T,
    ) -> Result<Option<T>, ReadError> {
        let offset = input.offset();
        let ahead = input.peek(RECORD_HEADER_BYTES)?;
        let Some(fixed) = ahead.first_chunk::<RECORD_HEADER_BYTES>() else {
            let have = ahead.len();
            return if have == 0 {
                Ok(None)
            } else {
                Err(truncated(offset, have, RECORD_HEADER_BYTES))
            };
        };
        let word =
            |i: usize| u32::from_le_bytes([fixed[i], fixed[i + 1], fixed[i + 2], fixed[i + 3]]);
        let mut words = (word(0), word(4), word(8), word(12));
        if self.big_endian {
            let (a, b, c, d) = words;
            words = (
                a.swap_bytes(),
                b.swap_bytes(),
                c.swap_bytes(),
                d.swap_bytes(),
            );
        }
        let (seconds, fraction, length, packet_bytes) = words;
        let (length, packet_bytes) = if self.is_old {
            (length.min(packet_bytes), length.max(packet_bytes))
        } else {
            (length, packet_bytes)
        };
        if length > LARGEST_BLOCK_BYTES {
            let what = format!("a packet of {length} captured bytes");
            return Err(ReadError::Malformed { offset, what });
        }
        let want = RECORD_HEADER_BYTES + length as usize;
        // Most records are there with their header.
        let record = if ahead.len() >= want {
            ahead
        } else {
            input.peek(want)?
        };
        let Some(bytes) = record.get(RECORD_HEADER_BYTES..want) else {
            return Err(truncated(offset, record.len(), want));
        };
        let result = use_it(RawPacket {
            seconds,
            fraction,
            packet_bytes,
            bytes,
        });
        input.consume(want);
        Ok(Some(result))
    }
}

fn truncated(offset: u64, have: usize, want: usize) -> ReadError {
    ReadError::Truncated {
        offset,
        have: have as u64,
        want: want as u64,
    }
}
