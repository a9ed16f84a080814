// SPDX-License-Identifier: MIT OR Apache-2.0
//! Classic pcap: one header, then records of one link type.

use std::io::Read;

use pcap_parser::pcap::parse_pcap_header;

use crate::error::ReadError;
use crate::headers::Link;
use crate::input::Lookahead;
use crate::packets::{Frame, LARGEST_BLOCK_BYTES, Stamp};
use crate::segment::Way;

const HEADER_BYTES: usize = 24;
const RECORD_HEADER_BYTES: usize = 16;

/// The file's header, decoded.
#[derive(Debug)]
pub(crate) struct Pcap {
    big_endian: bool,
    link: Option<Link>,
    pub(crate) link_number: i32,
    pub(crate) unit_ps: u64,
}

/// Microseconds and nanoseconds, as a little endian machine reads them from a
/// file of either order.
const MAGICS: [[u8; 4]; 4] = [
    [0xd4, 0xc3, 0xb2, 0xa1],
    [0xa1, 0xb2, 0xc3, 0xd4],
    [0x4d, 0x3c, 0xb2, 0xa1],
    [0xa1, 0xb2, 0x3c, 0x4d],
];

impl Pcap {
    pub(crate) fn is_magic(first: &[u8]) -> bool {
        MAGICS.iter().any(|m| first.starts_with(m))
    }

    /// Reads the header.
    pub(crate) fn open<R: Read>(input: &mut Lookahead<R>) -> Result<Self, ReadError> {
        let bytes = input.peek(HEADER_BYTES)?;
        let have = bytes.len() as u64;
        let Ok((_, header)) = parse_pcap_header(bytes) else {
            return Err(ReadError::Truncated {
                offset: 0,
                have,
                want: HEADER_BYTES as u64,
            });
        };
        let opened = Self {
            big_endian: header.is_bigendian(),
            // The upper bits may say how long the FCS is.
            link: Link::from_number(header.network.0 & 0x0fff_ffff),
            link_number: header.network.0 & 0x0fff_ffff,
            unit_ps: if header.is_nanosecond_precision() {
                1_000
            } else {
                1_000_000
            },
        };
        input.consume(HEADER_BYTES);
        Ok(opened)
    }

    /// The next packet, given to `use_it`; `None` at the end.
    #[inline]
    pub(crate) fn next<R: Read, T>(
        &self,
        input: &mut Lookahead<R>,
        use_it: impl FnOnce(Frame<'_>) -> T,
    ) -> Result<Option<T>, ReadError> {
        let offset = input.offset();
        let head = input.peek(RECORD_HEADER_BYTES)?;
        let Some((fixed, _)) = head.split_first_chunk::<RECORD_HEADER_BYTES>() else {
            let have = head.len();
            return if have == 0 {
                Ok(None)
            } else {
                Err(truncated(offset, have, RECORD_HEADER_BYTES))
            };
        };
        let word = |i: usize| {
            let word = [fixed[i], fixed[i + 1], fixed[i + 2], fixed[i + 3]];
            if self.big_endian {
                u32::from_be_bytes(word)
            } else {
                u32::from_le_bytes(word)
            }
        };
        let [seconds, fraction, length, packet_bytes] = [0, 4, 8, 12].map(word);
        if length > LARGEST_BLOCK_BYTES {
            let what = format!("a packet of {length} captured bytes");
            return Err(ReadError::Malformed { offset, what });
        }
        let want = RECORD_HEADER_BYTES + length as usize;
        let record = input.peek(want)?;
        let Some(bytes) = record.get(RECORD_HEADER_BYTES..want) else {
            return Err(truncated(offset, record.len(), want));
        };
        let result = use_it(Frame {
            time: Stamp {
                seconds: seconds.into(),
                ps: u64::from(fraction) * self.unit_ps,
            },
            interface: 0,
            link: self.link,
            way: Way::Unknown,
            packet_bytes: packet_bytes.max(length),
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
