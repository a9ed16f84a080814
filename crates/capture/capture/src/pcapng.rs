// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads pcapng: sections of either byte order, each with its own interfaces, each of those
//! with its own link type and clock.

use std::io::Read;

use units::time::PS_PER_S;

use crate::error::ReadError;
use crate::frame::{CaptureTime, Frame, Interface, LARGEST_BLOCK_BYTES, Options};
use crate::input::Lookahead;
use crate::link::Link;
use crate::segment::HostDirection;

const SECTION_HEADER: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];
const ORDER_MAGIC: u32 = 0x1a2b_3c4d;
/// Length of the smallest block: type, length, and length again.
const SMALLEST_BLOCK_BYTES: u32 = 12;

/// Types of blocks.
const INTERFACE: u32 = 1;
const STATISTICS: u32 = 5;
pub(crate) const OBSOLETE_PACKET: u32 = 2;
pub(crate) const SIMPLE_PACKET: u32 = 3;
pub(crate) const ENHANCED_PACKET: u32 = 6;
pub(crate) const SECTION: u32 = 0x0a0d_0d0a;
/// Codes of options. `epb_flags` holds the packet's direction in its two lowest bits.
const EPB_FLAGS: u16 = 2;
/// Packets lost since the interface's packet before.
const EPB_DROPPED: u16 = 4;
/// Packets lost since the capture began: by the interface, and for want of room in the system.
const ISB_DROPPED: [u16; 2] = [5, 7];
const IF_NAME: u16 = 2;
const IF_TSRESOL: u16 = 9;
const IF_TSOFFSET: u16 = 14;
/// Resolution of an interface that states none: microseconds.
const TSRESOL_DEFAULT: u8 = 6;

/// Converts timestamps of an interface to picoseconds: exact for decimal resolutions down to a
/// picosecond, else rounded down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Clock {
    units_per_s: u128,
    /// Picoseconds per unit, if that is a whole number and a second of units fits in 64 bits.
    unit_ps: Option<u64>,
    offset_s: i64,
}

impl Clock {
    /// Creates a clock from `if_tsresol`: 10^-n, or 2^-n if the top bit is set. `None` if a
    /// second has more than 2^64 units.
    fn new(tsresol: u8, offset_s: i64) -> Option<Self> {
        let exponent = u32::from(tsresol & 0x7f);
        let base: u128 = if tsresol & 0x80 == 0 { 10 } else { 2 };
        let units_per_s = base.checked_pow(exponent).filter(|u| *u <= 1 << 64)?;
        let second_ps = u128::from(PS_PER_S);
        let whole = second_ps % units_per_s == 0;
        Some(Self {
            units_per_s,
            unit_ps: u64::try_from(second_ps / units_per_s)
                .ok()
                .filter(|_| whole),
            offset_s,
        })
    }

    fn time(self, units: u64) -> CaptureTime {
        let (seconds, ps) = match (self.unit_ps, u64::try_from(self.units_per_s)) {
            (Some(unit_ps), Ok(second)) => (units / second, units % second * unit_ps),
            _ => {
                let units = u128::from(units);
                let ps = units % self.units_per_s * u128::from(PS_PER_S) / self.units_per_s;
                // Both values fit: there are no more units than before, and less than a
                // second.
                let narrow = |v: u128| u64::try_from(v).unwrap_or(u64::MAX);
                (narrow(units / self.units_per_s), narrow(ps))
            }
        };
        CaptureTime {
            seconds: i128::from(seconds) + i128::from(self.offset_s),
            ps,
        }
    }
}

/// A packet; `None` if its interface is not described.
type Timed<'a> = Option<Frame<'a>>;

#[derive(Debug)]
struct TimedInterface {
    number: u32,
    link: Option<Link>,
    clock: Clock,
    /// Lost packets, as its packets and as its statistics count them.
    dropped: [u64; 2],
}

/// Numbers of packets that no [`Frame`] can be made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Skipped {
    /// Packets without a timestamp.
    pub(crate) timeless: u64,
    /// Packets of an interface that the section does not describe.
    pub(crate) no_interface: u64,
}

impl Skipped {
    /// Returns what was skipped since `before`.
    pub(crate) fn since(self, before: Self) -> Self {
        Self {
            timeless: self.timeless.saturating_sub(before.timeless),
            no_interface: self.no_interface.saturating_sub(before.no_interface),
        }
    }
}

/// State of a file that is being read.
#[derive(Debug, Default)]
pub(crate) struct PcapNg {
    big_endian: bool,
    section: Vec<TimedInterface>,
    /// Interfaces of all sections.
    pub(crate) interfaces: Vec<Interface>,
    /// Packets that were skipped.
    pub(crate) skipped: Skipped,
    /// Blocks whose length is no multiple of 4.
    pub(crate) odd_lengths: u64,
    /// Lost packets of the sections before.
    dropped_before: u64,
}

impl PcapNg {
    pub(crate) fn is_magic(first: &[u8]) -> bool {
        first.starts_with(&SECTION_HEADER)
    }

    /// Passes the next packet to `use_it`; returns `None` at the end.
    pub(crate) fn next<R: Read, T>(
        &mut self,
        input: &mut Lookahead<R>,
        use_it: impl FnOnce(Frame<'_>) -> T,
    ) -> Result<Option<T>, ReadError> {
        loop {
            let offset = input.offset();
            let Some(bytes) = self.block(input)? else {
                return Ok(None);
            };
            let malformed = |what: String| ReadError::Malformed { offset, what };
            let length = bytes.len();
            let body = &bytes[8..length - 4];
            self.odd_lengths += u64::from(self.word(bytes, 4).is_some_and(|said| said % 4 != 0));
            let frame = match self.word(bytes, 0) {
                Some(kind @ (ENHANCED_PACKET | OBSOLETE_PACKET)) => {
                    let frame = if kind == ENHANCED_PACKET {
                        self.enhanced(body)
                    } else {
                        self.obsolete(body)
                    };
                    let frame = frame.map_err(malformed)?;
                    self.skipped.no_interface += u64::from(frame.is_none());
                    if let Some(options) = frame.map(|frame| frame.options) {
                        if !options.bytes.is_empty() {
                            self.note_lost_before(body, options);
                        }
                    }
                    frame
                }
                Some(SIMPLE_PACKET) => {
                    self.skipped.timeless += 1;
                    None
                }
                Some(SECTION) => {
                    self.open_section(body).map_err(malformed)?;
                    None
                }
                Some(INTERFACE) => {
                    self.add_interface(body).map_err(malformed)?;
                    None
                }
                Some(STATISTICS) => {
                    self.note_statistics(body);
                    None
                }
                _ => None,
            };
            if let Some(frame) = frame {
                let result = use_it(frame);
                input.consume(length);
                return Ok(Some(result));
            }
            input.consume(length);
        }
    }

    /// Returns the next block, from its type to its second length, without moving past it;
    /// `None` at the end. Sets the byte order at the begin of a section.
    #[inline]
    pub(crate) fn block<'a, R: Read>(
        &mut self,
        input: &'a mut Lookahead<R>,
    ) -> Result<Option<&'a [u8]>, ReadError> {
        let offset = input.offset();
        let Some(length) = self.block_length(input)? else {
            return Ok(None);
        };
        // Some writers do not count the padding of a block in its length.
        let padded = length.next_multiple_of(4);
        let held = input.peek(padded)?;
        let ends_at = |end: usize| held.get(end - 4..end) == held.get(4..8);
        let end = match held.len() {
            have if have < length => {
                let (have, want) = (have as u64, length as u64);
                return Err(ReadError::Truncated { offset, have, want });
            }
            _ if padded != length && ends_at(padded) => padded,
            _ if ends_at(length) => length,
            _ => {
                let odd = match length % 4 {
                    0 => "",
                    _ => ", of which the first is no multiple of 4",
                };
                let what = format!("a block whose two lengths differ{odd}");
                return Err(ReadError::Malformed { offset, what });
            }
        };
        Ok(held.get(..end))
    }

    pub(crate) fn is_big_endian(&self) -> bool {
        self.big_endian
    }

    /// Returns the 32-bit word at this offset.
    #[inline]
    pub(crate) fn word(&self, bytes: &[u8], at: usize) -> Option<u32> {
        let word = *bytes.get(at..)?.first_chunk()?;
        Some(if self.big_endian {
            u32::from_be_bytes(word)
        } else {
            u32::from_le_bytes(word)
        })
    }

    /// Returns the 16-bit word at this offset.
    #[inline]
    pub(crate) fn half(&self, bytes: &[u8], at: usize) -> Option<u16> {
        let half = *bytes.get(at..)?.first_chunk()?;
        Some(if self.big_endian {
            u16::from_be_bytes(half)
        } else {
            u16::from_le_bytes(half)
        })
    }

    /// Returns the packets that the capture lost, as it counts them.
    pub(crate) fn dropped(&self) -> u64 {
        let of = |interface: &TimedInterface| interface.dropped[0].max(interface.dropped[1]);
        let dropped = self.section.iter().map(of).fold(0, u64::saturating_add);
        self.dropped_before.saturating_add(dropped)
    }

    fn long(&self, bytes: &[u8]) -> Option<u64> {
        let long = *bytes.first_chunk()?;
        Some(if self.big_endian {
            u64::from_be_bytes(long)
        } else {
            u64::from_le_bytes(long)
        })
    }

    /// Adds the packets that an enhanced packet says were lost before it.
    fn note_lost_before(&mut self, body: &[u8], mut options: Options<'_>) {
        let found = options.find(|(code, _)| *code == EPB_DROPPED);
        let lost = found.and_then(|(_, value)| self.long(value));
        let interface = self.word(body, 0).unwrap_or(u32::MAX);
        if let (Some(lost), Some(interface)) = (lost, self.section.get_mut(interface as usize)) {
            interface.dropped[0] = interface.dropped[0].saturating_add(lost);
        }
    }

    /// Reads the counts of an interface, of which the last holds for the whole capture.
    fn note_statistics(&mut self, body: &[u8]) {
        const FIXED_BYTES: usize = 12;
        let options = self.options(body.get(FIXED_BYTES..).unwrap_or_default());
        let counts = options.filter(|(code, _)| ISB_DROPPED.contains(code));
        let lost = counts.filter_map(|(_, value)| self.long(value));
        // u64::MAX is what some writers have for an unknown count.
        let lost = lost.filter(|lost| *lost != u64::MAX);
        let lost = lost.fold(0, u64::saturating_add);
        let interface = self.word(body, 0).unwrap_or(u32::MAX);
        if let Some(interface) = self.section.get_mut(interface as usize) {
            interface.dropped[1] = interface.dropped[1].max(lost);
        }
    }

    fn options<'a>(&self, bytes: &'a [u8]) -> Options<'a> {
        Options {
            bytes,
            big_endian: self.big_endian,
        }
    }

    /// Reads a section header, whose byte order is known already.
    fn open_section(&mut self, body: &[u8]) -> Result<(), String> {
        // The header holds byte order, version and section length.
        let major = self.half(body, 4).filter(|_| body.len() >= 16);
        match major.ok_or("a broken section header")? {
            1 => {
                self.dropped_before = self.dropped();
                self.section.clear();
                Ok(())
            }
            version => Err(format!("pcapng of unknown version {version}")),
        }
    }

    fn enhanced<'a>(&self, body: &'a [u8]) -> Result<Option<Frame<'a>>, String> {
        let broken = || "a broken enhanced packet".to_owned();
        let interface = self.word(body, 0).ok_or_else(broken)?;
        let timed = self.timed(interface, &body[4..]).ok_or_else(broken)?;
        Ok(timed.map(|frame| Frame {
            host_direction: host_direction(frame.options),
            ..frame
        }))
    }

    /// Reads the packet block of early pcapng files, which has an interface number of 16 bits.
    fn obsolete<'a>(&self, body: &'a [u8]) -> Result<Option<Frame<'a>>, String> {
        let broken = || "a broken packet block".to_owned();
        let interface = self.half(body, 0).ok_or_else(broken)?;
        let rest = body.get(4..).ok_or_else(broken)?;
        let timed = self.timed(interface.into(), rest).ok_or_else(broken)?;
        Ok(timed)
    }

    /// Reads the fields that both types of packet blocks have: time, lengths and bytes, and
    /// the options that follow. `None` if the block is broken.
    #[inline]
    fn timed<'a>(&self, interface: u32, body: &'a [u8]) -> Option<Timed<'a>> {
        let [high, low, captured, packet_bytes] = [
            self.word(body, 0)?,
            self.word(body, 4)?,
            self.word(body, 8)?,
            self.word(body, 12)?,
        ];
        let rest = body.get(16..)?;
        let bytes = rest.get(..captured as usize)?;
        let options = rest.get((captured as usize).next_multiple_of(4)..);
        let Some(known) = self.section.get(interface as usize) else {
            return Some(None);
        };
        let frame = Frame {
            time: known.clock.time((u64::from(high) << 32) | u64::from(low)),
            interface: known.number,
            link: known.link,
            host_direction: HostDirection::Unknown,
            packet_bytes: packet_bytes.max(captured),
            bytes,
            options: self.options(options.unwrap_or_default()),
        };
        Some(Some(frame))
    }

    /// Returns the length of the next block; sets the byte order at the begin of a section.
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
        if !(SMALLEST_BLOCK_BYTES..=LARGEST_BLOCK_BYTES).contains(&length) {
            return Err(malformed(format!("a block of {length} bytes")));
        }
        Ok(Some(length as usize))
    }

    /// Reads an interface description.
    fn add_interface(&mut self, body: &[u8]) -> Result<(), String> {
        const FIXED_BYTES: usize = 8;
        let broken = || "a broken interface description".to_owned();
        let link = i32::from(self.half(body, 0).ok_or_else(broken)?);
        let options = body.get(FIXED_BYTES..).ok_or_else(broken)?;
        let (mut name, mut tsresol, mut offset_s) = (&[][..], TSRESOL_DEFAULT, 0);
        for (code, value) in self.options(options) {
            match (code, value) {
                (IF_NAME, value) => name = value,
                (IF_TSRESOL, [first, ..]) => tsresol = *first,
                (IF_TSOFFSET, value) => {
                    if let Some(value) = value.first_chunk::<8>() {
                        offset_s = if self.big_endian {
                            i64::from_be_bytes(*value)
                        } else {
                            i64::from_le_bytes(*value)
                        };
                    }
                }
                _ => {}
            }
        }
        let clock = Clock::new(tsresol, offset_s)
            .ok_or_else(|| format!("an interface whose if_tsresol is {tsresol:#04x}"))?;
        let number = u32::try_from(self.interfaces.len()).map_err(|_| "too many interfaces")?;
        self.interfaces.push(Interface {
            name: String::from_utf8_lossy(name)
                .trim_end_matches('\0')
                .to_owned(),
            link_number: link,
            resolution_ps: u64::try_from(u128::from(PS_PER_S) / clock.units_per_s)
                .unwrap_or(u64::MAX)
                .max(1),
        });
        self.section.push(TimedInterface {
            number,
            link: Link::from_number(link),
            clock,
            dropped: [0; 2],
        });
        Ok(())
    }
}

/// Returns the direction that a packet's options state.
fn host_direction(mut options: Options<'_>) -> HostDirection {
    let flags = options.find(|(code, _)| *code == EPB_FLAGS);
    let low = flags.and_then(|(_, value)| {
        let word: [u8; 4] = *value.first_chunk()?;
        Some(if options.big_endian { word[3] } else { word[0] })
    });
    match low.map(|low| low & 3) {
        Some(1) => HostDirection::In,
        Some(2) => HostDirection::Out,
        _ => HostDirection::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks() {
        let ps =
            |tsresol, offset, timestamp| Clock::new(tsresol, offset).unwrap().time(timestamp).ps();
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
