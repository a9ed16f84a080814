// SPDX-License-Identifier: MIT OR Apache-2.0
//! pcapng: sections of either byte order, each with its own interfaces, each
//! of those with its own link type and clock.

use std::io::Read;

use pcap_parser::pcapng::{Block, OptionCode, PcapNGOption, parse_block_be, parse_block_le};
use pcap_parser::traits::PcapNGPacketBlock;

use crate::ReadError;
use crate::capture::{Frame, Interface, LARGEST_BLOCK_BYTES};
use crate::headers::Link;
use crate::input::Lookahead;

const SECTION_HEADER: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];
const ORDER_MAGIC: u32 = 0x1a2b_3c4d;
/// Type, length, and length once more.
const SMALLEST_BLOCK_BYTES: u32 = 12;

/// How time stamps of an interface become picoseconds: exact for decimal
/// resolutions down to a picosecond, else rounded down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Clock {
    units_per_s: u128,
    offset_s: i64,
}

impl Clock {
    /// From `if_tsresol`: 10^-n, or 2^-n with the top bit set. `None` if a
    /// second of it exceeds 2^64 units.
    fn new(tsresol: u8, offset_s: i64) -> Option<Self> {
        let exponent = u32::from(tsresol & 0x7f);
        let base: u128 = if tsresol & 0x80 == 0 { 10 } else { 2 };
        let units_per_s = base.checked_pow(exponent).filter(|u| *u <= 1 << 64)?;
        Some(Self {
            units_per_s,
            offset_s,
        })
    }

    fn ps(self, stamp: u64) -> i128 {
        let ps = u128::from(stamp) * u128::from(crate::PS_PER_S) / self.units_per_s;
        i128::try_from(ps).unwrap_or(i128::MAX / 2)
            + i128::from(self.offset_s) * i128::from(crate::PS_PER_S)
    }
}

#[derive(Debug)]
struct Known {
    number: u32,
    link: Option<Link>,
    clock: Clock,
}

/// Where a file is being read.
#[derive(Debug, Default)]
pub(crate) struct PcapNg {
    big_endian: bool,
    section: Vec<Known>,
    /// Of all sections.
    pub(crate) interfaces: Vec<Interface>,
}

impl PcapNg {
    pub(crate) fn is_magic(first: &[u8]) -> bool {
        first.starts_with(&SECTION_HEADER)
    }

    /// The next packet, given to `use_it`; `None` at the end.
    pub(crate) fn next<R: Read, T>(
        &mut self,
        input: &mut Lookahead<R>,
        mut use_it: impl FnMut(Frame<'_>) -> T,
    ) -> Result<Option<T>, ReadError> {
        loop {
            let offset = input.offset();
            let Some(length) = self.block_length(input)? else {
                return Ok(None);
            };
            let bytes = input.peek(length)?;
            if bytes.len() < length {
                let (have, want) = (bytes.len() as u64, length as u64);
                return Err(ReadError::Truncated { offset, have, want });
            }
            let parse = if self.big_endian {
                parse_block_be
            } else {
                parse_block_le
            };
            let malformed = |what: String| ReadError::Malformed { offset, what };
            let Ok((_, block)) = parse(&bytes[..length]) else {
                return Err(malformed("a broken block".into()));
            };
            let frame = match &block {
                Block::SectionHeader(header) => {
                    if header.major_version != 1 {
                        let version = header.major_version;
                        return Err(malformed(format!("pcapng of unknown version {version}")));
                    }
                    self.section.clear();
                    None
                }
                Block::InterfaceDescription(i) => {
                    self.add_interface(i.linktype.0, &i.options)
                        .map_err(malformed)?;
                    None
                }
                Block::EnhancedPacket(p) => {
                    let stamp = u64::from(p.ts_high) << 32 | u64::from(p.ts_low);
                    let bytes = p.packet_data();
                    Some(
                        self.frame(p.if_id, stamp, p.origlen, bytes)
                            .map_err(malformed)?,
                    )
                }
                // A packet without a time says nothing about when.
                _ => None,
            };
            let result = frame.map(&mut use_it);
            input.consume(length);
            if result.is_some() {
                return Ok(result);
            }
        }
    }

    /// Length of the next block; sets the byte order at a section's begin.
    fn block_length<R: Read>(
        &mut self,
        input: &mut Lookahead<R>,
    ) -> Result<Option<usize>, ReadError> {
        let offset = input.offset();
        let head = input.peek(12)?;
        let Some(fixed) = head.first_chunk::<12>() else {
            let have = head.len() as u64;
            let want = u64::from(SMALLEST_BLOCK_BYTES);
            return if have == 0 {
                Ok(None)
            } else {
                Err(ReadError::Truncated { offset, have, want })
            };
        };
        let word = |i: usize| [fixed[i], fixed[i + 1], fixed[i + 2], fixed[i + 3]];
        let malformed = |what: String| ReadError::Malformed { offset, what };
        if word(0) == SECTION_HEADER {
            self.big_endian = match word(8) {
                w if u32::from_le_bytes(w) == ORDER_MAGIC => false,
                w if u32::from_be_bytes(w) == ORDER_MAGIC => true,
                w => return Err(malformed(format!("a section of no byte order: {w:02x?}"))),
            };
        }
        let length = if self.big_endian {
            u32::from_be_bytes(word(4))
        } else {
            u32::from_le_bytes(word(4))
        };
        if !(SMALLEST_BLOCK_BYTES..=LARGEST_BLOCK_BYTES).contains(&length) || length % 4 != 0 {
            return Err(malformed(format!("a block of {length} bytes")));
        }
        Ok(Some(length as usize))
    }

    fn add_interface(&mut self, link: i32, options: &[PcapNGOption<'_>]) -> Result<(), String> {
        let value = |code| {
            options
                .iter()
                .find(|o| o.code == code)
                .map(|o| o.value.as_ref())
        };
        let tsresol = value(OptionCode::IfTsresol)
            .and_then(|v| v.first().copied())
            .unwrap_or(6);
        let offset_s = value(OptionCode::IfTsoffset)
            .and_then(|v| v.first_chunk::<8>())
            .map_or(0, |v| {
                if self.big_endian {
                    i64::from_be_bytes(*v)
                } else {
                    i64::from_le_bytes(*v)
                }
            });
        let clock = Clock::new(tsresol, offset_s)
            .ok_or_else(|| format!("an interface whose if_tsresol is {tsresol:#04x}"))?;
        let name = value(OptionCode::IfName).unwrap_or_default();
        let number = u32::try_from(self.interfaces.len()).map_err(|_| "too many interfaces")?;
        self.interfaces.push(Interface {
            name: String::from_utf8_lossy(name)
                .trim_end_matches('\0')
                .to_owned(),
            link_number: link,
            resolution_ps: u64::try_from(u128::from(crate::PS_PER_S) / clock.units_per_s)
                .unwrap_or(u64::MAX)
                .max(1),
        });
        self.section.push(Known {
            number,
            link: Link::from_number(link),
            clock,
        });
        Ok(())
    }

    fn frame<'a>(
        &self,
        interface: u32,
        stamp: u64,
        packet_bytes: u32,
        bytes: &'a [u8],
    ) -> Result<Frame<'a>, String> {
        let known = self
            .section
            .get(interface as usize)
            .ok_or_else(|| format!("a packet of interface {interface}, which is not described"))?;
        Ok(Frame {
            time_ps: known.clock.ps(stamp),
            interface: known.number,
            link: known.link,
            packet_bytes,
            bytes,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks() {
        let ps = |tsresol, offset, stamp| Clock::new(tsresol, offset).unwrap().ps(stamp);
        assert_eq!(ps(6, 0, 7), 7_000_000);
        assert_eq!(ps(9, 2, 1), 2_000_000_001_000);
        assert_eq!(ps(12, -1, 5), 5 - 1_000_000_000_000);
        assert_eq!(ps(0x80 | 10, 0, 512), 500_000_000_000);
        assert_eq!(ps(15, 0, 1999), 1);
        assert_eq!(
            ps(0, i64::MAX, u64::MAX),
            (i128::from(u64::MAX) + i128::from(i64::MAX)) * 1_000_000_000_000
        );
        assert_eq!(Clock::new(20, 0), None);
        assert_eq!(Clock::new(0xff, 0), None);
        assert!(Clock::new(0xc0, 0).is_some());
    }
}
