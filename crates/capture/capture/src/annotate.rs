// SPDX-License-Identifier: MIT OR Apache-2.0
//! Copies a capture as pcapng, with comments on chosen packets and nothing else changed.
//!
//! Of a pcapng file all blocks, options, byte orders and their sequence stay: a comment is one
//! more `opt_comment` (pcapng, 3.5) behind the options that a packet has. Comments of an earlier
//! run, which begin with [`Comments::mark`], are left out. A pcap file becomes one section with one
//! interface, in the file's byte order, with the same packets, timestamps and resolution.

use std::collections::BTreeMap;
use std::io::{self, Read, Seek, SeekFrom, Write};

use crate::error::{Damage, ReadError};
use crate::frame::LARGEST_BLOCK_BYTES;
use crate::input::{Lookahead, unpacked};
use crate::packets::foreign;
use crate::pcap::Pcap;
use crate::pcapng::{ENHANCED_PACKET, OBSOLETE_PACKET, PcapNg, SECTION, SIMPLE_PACKET};

/// The comments to add.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comments {
    /// Comments by the number of their packet, from 1: every packet of the file counts.
    pub by_packet: BTreeMap<u64, Vec<String>>,
    /// What every comment of this program begins with, of an earlier run too; empty: no comment of
    /// the file is replaced.
    pub mark: &'static str,
}

/// Code of the option that holds a comment.
const COMMENT: u16 = 1;
/// Options of an interface: the length of the frame check sequence, and the resolution of time.
const IF_TSRESOL: u16 = 9;
const IF_FCSLEN: u16 = 13;
/// Most bytes of one comment: an option's length has 16 bits.
const COMMENT_BYTES: usize = 60_000;
/// Bytes of a packet block's body before the packet: interface, time and lengths.
const PACKET_FIXED: usize = 20;
/// Where the captured length is in that body.
const CAPTURED_AT: usize = 12;
/// A section of unknown length.
const NO_LENGTH: i64 = -1;
/// Offset of the section's length in its header block.
const SECTION_LENGTH_AT: u64 = 16;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Copied {
    /// Packets, of all kinds.
    pub packets: u64,
    /// Comments that were added.
    pub comments: u64,
    /// Where the file was no capture any more. Of pcapng the rest is in the copy as it is; of
    /// pcap it is not.
    pub damage: Option<Damage>,
}

/// Why no copy was made.
#[derive(Debug, thiserror::Error)]
pub enum AnnotateError {
    /// The capture cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The copy cannot be written.
    #[error("cannot write: {0}")]
    Write(#[from] io::Error),
}

/// The output, which knows how much was written.
struct Output<W> {
    out: W,
    written: u64,
    big_endian: bool,
}

impl<W: Write> Output<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.written += bytes.len() as u64;
        self.out.write_all(bytes)
    }

    fn word(&self, value: u32) -> [u8; 4] {
        if self.big_endian {
            value.to_be_bytes()
        } else {
            value.to_le_bytes()
        }
    }

    fn half(&self, value: u16) -> [u8; 2] {
        if self.big_endian {
            value.to_be_bytes()
        } else {
            value.to_le_bytes()
        }
    }

    fn option(&self, to: &mut Vec<u8>, code: u16, value: &[u8]) {
        to.extend(self.half(code));
        to.extend(self.half(u16::try_from(value.len()).unwrap_or(u16::MAX)));
        to.extend(value);
        to.resize(to.len().next_multiple_of(4), 0);
    }

    /// Returns the comments as options.
    fn comments(&self, texts: &[String]) -> Vec<u8> {
        let mut options = Vec::new();
        for text in texts {
            let mut end = text.len().min(COMMENT_BYTES);
            while !text.is_char_boundary(end) {
                end -= 1;
            }
            self.option(&mut options, COMMENT, &text.as_bytes()[..end]);
        }
        options
    }

    /// Writes a block. The parts of its body together are a multiple of four bytes.
    fn block(&mut self, kind: u32, body: &[&[u8]]) -> io::Result<()> {
        let bytes: usize = body.iter().map(|part| part.len()).sum();
        let length = u32::try_from(bytes + 12).map_err(io::Error::other)?;
        let length = self.word(length);
        let kind = self.word(kind);
        self.write(&kind)?;
        self.write(&length)?;
        for part in body {
            self.write(part)?;
        }
        self.write(&length)
    }
}

/// The section that is being copied.
struct Section {
    /// Offset of its length in the output.
    length_at: u64,
    length: i64,
    /// Bytes that the copy has more; negative if it has fewer.
    added: i64,
}

impl Section {
    /// Corrects the section's length in the output.
    fn end<W: Write + Seek>(self, out: &mut Output<W>) -> io::Result<()> {
        if self.length == NO_LENGTH || self.added == 0 {
            return Ok(());
        }
        let length = self.length.saturating_add(self.added);
        let length = if out.big_endian {
            length.to_be_bytes()
        } else {
            length.to_le_bytes()
        };
        out.out.seek(SeekFrom::Start(self.length_at))?;
        out.out.write_all(&length)?;
        out.out.seek(SeekFrom::Start(out.written))?;
        Ok(())
    }
}

/// Copies a capture, plain or packed by gzip or zstd, to `out`, which is empty. Takes the memory
/// of one block.
///
/// # Errors
/// If the source is no capture, or `out` cannot be written.
pub fn annotate<R: Read, W: Write + Seek>(
    source: R,
    out: W,
    comments: &Comments,
) -> Result<Copied, AnnotateError> {
    let source = unpacked(source).map_err(|source| ReadError::Io { offset: 0, source })?;
    let mut input = Lookahead::new(source);
    let mut out = Output {
        out,
        written: 0,
        big_endian: false,
    };
    let first = input.peek(4)?;
    let copied = if Pcap::is_magic(first) {
        from_pcap(&mut input, &mut out, comments)?
    } else if PcapNg::is_magic(first) {
        from_pcapng(&mut input, &mut out, comments)?
    } else {
        return Err(foreign(input.peek(16)?).into());
    };
    out.out.flush()?;
    Ok(copied)
}

fn from_pcapng<R: Read, W: Write + Seek>(
    input: &mut Lookahead<R>,
    out: &mut Output<W>,
    comments: &Comments,
) -> Result<Copied, AnnotateError> {
    let mut format = PcapNg::default();
    let mut copied = Copied::default();
    let mut section: Option<Section> = None;
    loop {
        let block = match format.block(input) {
            Ok(Some(block)) => block,
            Ok(None) => break,
            Err(error) => {
                copied.damage = Some(error.into());
                break;
            }
        };
        let length = block.len();
        let kind = format.word(block, 0).unwrap_or(0);
        let (mut texts, mut is_packet) = (None, false);
        match kind {
            SECTION => {
                if let Some(section) = section.take() {
                    section.end(out)?;
                }
                out.big_endian = format.is_big_endian();
                section = Some(Section {
                    length_at: out.written + SECTION_LENGTH_AT,
                    length: section_length(block, out.big_endian),
                    added: 0,
                });
            }
            ENHANCED_PACKET | OBSOLETE_PACKET => {
                copied.packets += 1;
                texts = comments.by_packet.get(&copied.packets);
                is_packet = true;
            }
            SIMPLE_PACKET => copied.packets += 1,
            _ => {}
        }
        let body = block.get(8..length - 4).unwrap_or_default();
        let options = is_packet.then(|| Options::of(&format, body, comments.mark));
        match options.flatten() {
            Some(options)
                if (texts.is_some() || options.has_earlier)
                    && length + texts.map_or(0, Vec::len) * (COMMENT_BYTES + 8) < MOST_BYTES =>
            {
                let before = out.written;
                let texts = texts.map_or(&[][..], Vec::as_slice);
                let added = out.comments(texts);
                let is_first = options.kept.is_empty() && options.behind.is_empty();
                let close: &[u8] = if is_first && !added.is_empty() {
                    &[0; 4]
                } else {
                    &[]
                };
                let kept = options.kept.concat();
                out.block(kind, &[options.ahead, &kept, &added, close, options.behind])?;
                if let Some(section) = &mut section {
                    let written = i64::try_from(out.written - before).unwrap_or(i64::MAX);
                    section.added += written - i64::try_from(length).unwrap_or(0);
                }
                copied.comments += texts.len() as u64;
            }
            _ => out.write(block)?,
        }
        input.consume(length);
    }
    if let Some(section) = section {
        section.end(out)?;
    }
    // Behind a damage, or nothing.
    loop {
        let rest = input.peek(1)?;
        if rest.is_empty() {
            return Ok(copied);
        }
        let length = rest.len();
        out.write(rest)?;
        input.consume(length);
    }
}

/// Longest block that is written: readers take none that is longer.
const MOST_BYTES: usize = LARGEST_BLOCK_BYTES as usize;

fn section_length(block: &[u8], big_endian: bool) -> i64 {
    let field = block.get(16..).and_then(|rest| rest.first_chunk::<8>());
    field.map_or(NO_LENGTH, |field| {
        if big_endian {
            i64::from_be_bytes(*field)
        } else {
            i64::from_le_bytes(*field)
        }
    })
}

/// The body of a packet's block, in parts.
struct Options<'a> {
    /// What is before the options.
    ahead: &'a [u8],
    /// The options to keep, as they are.
    kept: Vec<&'a [u8]>,
    /// From the end-of-options mark on; nothing without one.
    behind: &'a [u8],
    /// Whether there are comments of an earlier run, which are not kept.
    has_earlier: bool,
}

impl<'a> Options<'a> {
    /// Reads a packet's options. `None` if they, or the packet, contradict the block's length.
    fn of(format: &PcapNg, body: &'a [u8], mark: &str) -> Option<Self> {
        let captured = format.word(body, CAPTURED_AT)? as usize;
        let begin = PACKET_FIXED + captured.checked_next_multiple_of(4)?;
        let mut options = Self {
            ahead: body.get(..begin)?,
            kept: Vec::new(),
            behind: &[],
            has_earlier: false,
        };
        let mut at = begin;
        loop {
            let rest = body.get(at..)?;
            if rest.is_empty() {
                return Some(options);
            }
            let code = format.half(rest, 0)?;
            if code == 0 {
                options.behind = rest;
                return Some(options);
            }
            let length = usize::from(format.half(rest, 2)?);
            let whole = rest.get(..4 + length.next_multiple_of(4))?;
            let is_own = !mark.is_empty() && whole[4..].starts_with(mark.as_bytes());
            if code == COMMENT && is_own {
                options.has_earlier = true;
            } else {
                options.kept.push(whole);
            }
            at += whole.len();
        }
    }
}

fn from_pcap<R: Read, W: Write + Seek>(
    input: &mut Lookahead<R>,
    out: &mut Output<W>,
    comments: &Comments,
) -> Result<Copied, AnnotateError> {
    let mut pcap = Pcap::open(input)?;
    pcap.begin(input)?;
    out.big_endian = pcap.is_big_endian();
    let magic = out.word(0x1a2b_3c4d);
    let version = [out.half(1), out.half(0)].concat();
    let length = NO_LENGTH.to_le_bytes();
    out.block(SECTION, &[&magic, &version, &length])?;
    let link = u16::try_from(pcap.link_number).map_err(|_| ReadError::Malformed {
        offset: 20,
        what: format!("link type {}, which pcapng cannot name", pcap.link_number),
    })?;
    let mut interface = Vec::new();
    interface.extend(out.half(link));
    interface.extend(out.half(0));
    interface.extend(out.word(pcap.snap_bytes));
    let (digits, second) = match pcap.unit_ps {
        1_000 => (9, 1_000_000_000),
        _ => (6, 1_000_000u64),
    };
    out.option(&mut interface, IF_TSRESOL, &[digits]);
    if let Some(bytes) = pcap.fcs_bytes {
        out.option(&mut interface, IF_FCSLEN, &[bytes]);
    }
    interface.extend([0; 4]);
    out.block(1, &[&interface])?;

    let mut copied = Copied::default();
    loop {
        copied.packets += 1;
        let texts = comments.by_packet.get(&copied.packets);
        let written = pcap.next_raw(input, |packet| {
            let time = u64::from(packet.seconds) * second + u64::from(packet.fraction);
            let [high, low] = [time >> 32, time & 0xffff_ffff].map(|half| half as u32);
            let captured = packet.bytes.len() as u32;
            let head: Vec<u8> = [0, high, low, captured, packet.packet_bytes]
                .into_iter()
                .flat_map(|word| out.word(word))
                .collect();
            let padding = &[0; 3][..packet.bytes.len().next_multiple_of(4) - packet.bytes.len()];
            let mut options = Vec::new();
            if let Some(texts) = texts {
                options = out.comments(texts);
                options.extend([0; 4]);
            }
            out.block(ENHANCED_PACKET, &[&head, packet.bytes, padding, &options])
        });
        match written {
            Ok(Some(outcome)) => outcome?,
            Ok(None) => break,
            Err(error) => {
                copied.damage = Some(error.into());
                break;
            }
        }
        copied.comments += texts.map_or(0, |texts| texts.len() as u64);
    }
    copied.packets -= 1; // the last turn found none
    Ok(copied)
}
