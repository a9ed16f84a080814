// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the packets of a capture file one after the other, in the memory of one chunk, in any
//! of the supported formats.

use std::io::Read;

use crate::error::ReadError;
use crate::frame::{Frame, Interface, Oddities};
use crate::input::{Lookahead, unpacked};
use crate::pcap::Pcap;
use crate::pcapng::{PcapNg, Skipped};

#[derive(Debug)]
pub(crate) enum Format {
    Pcap(Pcap),
    PcapNg(PcapNg),
}

/// A capture file that is being read.
pub(crate) struct Packets<R> {
    pub(crate) input: Lookahead<R>,
    pub(crate) format: Format,
    interface: Option<Interface>,
}

impl<'a> Packets<Box<dyn Read + 'a>> {
    /// Detects the format and compression of a file, and reads its header.
    pub(crate) fn open<R: Read + 'a>(source: R) -> Result<Self, ReadError> {
        let source = unpacked(source).map_err(|source| ReadError::Io { offset: 0, source })?;
        Self::open_plain(source)
    }

    /// Detects the format of a file that is not compressed, and reads its header.
    pub(crate) fn open_plain(source: Box<dyn Read + 'a>) -> Result<Self, ReadError> {
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
        Err(foreign(input.peek(16)?))
    }
}

/// What the files of others begin with, and whose format it is.
const OTHERS: [(&[u8], &str); 17] = [
    (b"snoop\0\0\0", "snoop's"),
    (b"btsnoop\0", "btsnoop's"),
    (b"RTSS", "Network Monitor's"),
    (b"GMBU", "Network Monitor's"),
    (b"XCP\0", "NetXRay's"),
    (b"TRSNIFF data    \x1a", "Sniffer's"),
    (b"iptrace ", "iptrace's"),
    (b"\x7fver", "OmniPeek's"),
    (b"\x7fpkt", "OmniPeek's"),
    (b"ObserverPktBuffe", "Observer's"),
    (b"\x05VNF", "Visual Networks'"),
    (b"LANalyzer", "LANalyzer's"),
    (&[0, 0, 2, 0, 0x12, 5, 0, 0x10], "K12's"),
    (&[0x34, 0xcd, 0xb2, 0xa1], "a modified pcap's"),
    (&[0xa1, 0xb2, 0xcd, 0x34], "a modified pcap's"),
    (&[0x1c, 0, 1, 0xac], "IxCatapult's"),
    (&[0xac, 1, 0, 0x1c], "IxCatapult's"),
];

/// Returns the error of a file that is no capture and begins with these bytes.
pub(crate) fn foreign(first: &[u8]) -> ReadError {
    let other = OTHERS.iter().find(|(magic, _)| first.starts_with(magic));
    let expected = match other {
        Some((_, whose)) => format!(
            "a capture (pcap or pcapng) and not {whose} format: \"editcap -F pcap IN OUT\" converts it"
        ),
        None => "a capture (pcap or pcapng, plain or packed by gzip or zstd)".to_owned(),
    };
    ReadError::Foreign {
        expected: expected.into(),
        first: first[..first.len().min(16)].to_vec(),
    }
}

impl<R: Read> Packets<R> {
    /// Passes the next packet to `use_it`; returns `None` at the end.
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

    /// Returns the length of the frame check sequence, if a pcap file states one.
    pub(crate) fn fcs_bytes(&self) -> u32 {
        match &self.format {
            Format::Pcap(pcap) => pcap.fcs_bytes.unwrap_or(0).into(),
            Format::PcapNg(_) => 0,
        }
    }

    /// Returns the numbers of packets that [`Self::next`] skipped so far.
    pub(crate) fn skipped(&self) -> Skipped {
        match &self.format {
            Format::Pcap(_) => Skipped::default(),
            Format::PcapNg(pcapng) => pcapng.skipped,
        }
    }

    /// Returns what the file says of itself so far, and contradicts itself in.
    pub(crate) fn oddities(&self) -> Oddities {
        match &self.format {
            Format::Pcap(pcap) => Oddities {
                is_read_as_ns: pcap.is_read_as_ns,
                ..Oddities::default()
            },
            Format::PcapNg(pcapng) => Oddities {
                odd_lengths: pcapng.odd_lengths,
                dropped: pcapng.dropped(),
                ..Oddities::default()
            },
        }
    }

    /// Returns the interfaces found so far, by number.
    pub(crate) fn interfaces(&self) -> &[Interface] {
        match &self.format {
            Format::Pcap(_) => self.interface.as_slice(),
            Format::PcapNg(pcapng) => &pcapng.interfaces,
        }
    }
}
