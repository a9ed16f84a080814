// SPDX-License-Identifier: MIT OR Apache-2.0
//! Classic pcap: one header, then records of one link type.

use std::io::Read;

use pcap_parser::pcap::{parse_pcap_frame, parse_pcap_frame_be, parse_pcap_header};

use crate::ReadError;
use crate::capture::{Frame, LARGEST_BLOCK_BYTES};
use crate::headers::Link;
use crate::input::Lookahead;

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
    pub(crate) fn next<R: Read, T>(
        &self,
        input: &mut Lookahead<R>,
        use_it: impl FnOnce(Frame<'_>) -> T,
    ) -> Result<Option<T>, ReadError> {
        let offset = input.offset();
        let head = input.peek(RECORD_HEADER_BYTES)?;
        let truncated = |have: usize, want: usize| ReadError::Truncated {
            offset,
            have: have as u64,
            want: want as u64,
        };
        let Some(fixed) = head.first_chunk::<RECORD_HEADER_BYTES>() else {
            let have = head.len();
            return if have == 0 {
                Ok(None)
            } else {
                Err(truncated(have, RECORD_HEADER_BYTES))
            };
        };
        let length = [fixed[8], fixed[9], fixed[10], fixed[11]];
        let length = if self.big_endian {
            u32::from_be_bytes(length)
        } else {
            u32::from_le_bytes(length)
        };
        if length > LARGEST_BLOCK_BYTES {
            let what = format!("a packet of {length} captured bytes");
            return Err(ReadError::Malformed { offset, what });
        }
        let want = RECORD_HEADER_BYTES + length as usize;
        let bytes = input.peek(want)?;
        if bytes.len() < want {
            return Err(truncated(bytes.len(), want));
        }
        let parse = if self.big_endian {
            parse_pcap_frame_be
        } else {
            parse_pcap_frame
        };
        let Ok((_, packet)) = parse(&bytes[..want]) else {
            return Err(ReadError::Malformed {
                offset,
                what: "a broken packet record".into(),
            });
        };
        let fraction = u128::from(packet.ts_usec) * u128::from(self.unit_ps);
        let frame = Frame {
            time_ps: i128::from(packet.ts_sec) * i128::from(crate::PS_PER_S)
                + i128::try_from(fraction).unwrap_or(0),
            interface: 0,
            link: self.link,
            packet_bytes: packet.origlen.max(packet.caplen),
            bytes: packet.data,
        };
        let result = use_it(frame);
        input.consume(want);
        Ok(Some(result))
    }
}
