// SPDX-License-Identifier: MIT OR Apache-2.0
//! The packets of a capture file one after the other, in the memory of one
//! chunk, whichever of the formats it is.

use std::io::Read;

use crate::error::ReadError;
use crate::headers::Link;
use crate::input::{Lookahead, unpacked};
use crate::pcap::Pcap;
use crate::pcapng::PcapNg;
use crate::segment::Way;

/// Longer blocks are not believed: no packet is, and memory is asked for only
/// after this check. Wireshark draws the line at 256 KB of a packet.
pub(crate) const LARGEST_BLOCK_BYTES: u32 = 16 << 20;

/// When a packet was captured, since 1970: exact for every resolution down to
/// a picosecond, without arithmetic in 128 bits for each packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    /// Rounded down.
    pub(crate) seconds: i128,
    /// Within the second; more than a second if a broken file says so.
    pub(crate) ps: u64,
}

impl Stamp {
    pub(crate) fn ps(self) -> i128 {
        self.seconds * i128::from(units::time::PS_PER_S) + i128::from(self.ps)
    }

    /// Kept within 1970 to 2554.
    pub(crate) fn ns(self) -> u64 {
        let Ok(seconds) = u64::try_from(self.seconds) else {
            return if self.seconds < 0 { 0 } else { u64::MAX };
        };
        seconds
            .saturating_mul(1_000_000_000)
            .saturating_add(self.ps / 1000)
    }
}

/// One packet, as a file has it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame<'a> {
    pub(crate) time: Stamp,
    pub(crate) interface: u32,
    pub(crate) link: Option<Link>,
    pub(crate) way: Way,
    /// On the wire, as far as the file says.
    pub(crate) packet_bytes: u32,
    /// What was captured of it.
    pub(crate) bytes: &'a [u8],
}

/// Where packets were captured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// As the file calls it; empty if it does not.
    pub name: String,
    /// Its LINKTYPE number.
    pub link_number: i32,
    /// Its clock's resolution, ps, at least 1.
    pub resolution_ps: u64,
}

#[derive(Debug)]
enum Format {
    Pcap(Pcap),
    PcapNg(PcapNg),
}

/// A capture file that is being read.
pub(crate) struct Packets<R> {
    input: Lookahead<R>,
    format: Format,
    interface: Option<Interface>,
}

impl<'a> Packets<Box<dyn Read + 'a>> {
    /// Finds out what it is, packed or not, and reads its header.
    pub(crate) fn open<R: Read + 'a>(source: R) -> Result<Self, ReadError> {
        let source = unpacked(source).map_err(|source| ReadError::Io { offset: 0, source })?;
        let mut input = Lookahead::new(source);
        let first = input.peek(4)?;
        if Pcap::is_magic(first) {
            let pcap = Pcap::open(&mut input)?;
            let interface = Some(Interface {
                name: String::new(),
                link_number: pcap.link_number,
                resolution_ps: pcap.unit_ps,
            });
            let format = Format::Pcap(pcap);
            return Ok(Self {
                input,
                format,
                interface,
            });
        }
        if PcapNg::is_magic(first) {
            return Ok(Self {
                input,
                format: Format::PcapNg(PcapNg::default()),
                interface: None,
            });
        }
        let first = &input.peek(16)?;
        Err(ReadError::Foreign {
            expected: "a capture (pcap or pcapng, plain or packed by gzip or zstd)",
            first: first[..first.len().min(16)].to_vec(),
        })
    }
}

impl<R: Read> Packets<R> {
    /// The next packet, given to `use_it`; `None` at the end.
    #[inline]
    pub(crate) fn next<T>(
        &mut self,
        use_it: impl FnOnce(Frame<'_>) -> T,
    ) -> Result<Option<T>, ReadError> {
        match &mut self.format {
            Format::Pcap(pcap) => pcap.next(&mut self.input, use_it),
            Format::PcapNg(pcapng) => pcapng.next(&mut self.input, use_it),
        }
    }

    /// Packets so far that [`Self::next`] passed over: they have no time.
    pub(crate) fn timeless(&self) -> u64 {
        match &self.format {
            Format::Pcap(_) => 0,
            Format::PcapNg(pcapng) => pcapng.timeless,
        }
    }

    /// The interfaces so far, by number.
    pub(crate) fn interfaces(&self) -> &[Interface] {
        match &self.format {
            Format::Pcap(_) => self.interface.as_slice(),
            Format::PcapNg(pcapng) => &pcapng.interfaces,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_outside_of_the_range_stay_at_its_ends() {
        let stamp = |seconds, ps| Stamp { seconds, ps };
        assert_eq!(stamp(2, 1_999).ns(), 2_000_000_001);
        assert_eq!(stamp(-1, 0).ns(), 0);
        assert_eq!(stamp(i128::MAX, 0).ns(), u64::MAX);
        assert_eq!(stamp(18_446_744_073, u64::MAX).ns(), u64::MAX);
        assert_eq!(stamp(-1, 5).ps(), 5 - 1_000_000_000_000);
    }
}
