// SPDX-License-Identifier: MIT OR Apache-2.0
//! Frames as they leave a device, behind its qdiscs: `bpf/tap.bpf.c` as the filter of a packet
//! socket, which shows their first bytes in a ring.

use std::os::fd::OwnedFd;

use aya::maps::{MapData, PerCpuArray, RingBuf};
use aya::programs::{ProgramError, SocketFilter};
use aya::{Ebpf, EbpfLoader};

use crate::matcher::Beside;

/// The object that build.rs compiled; empty if clang was missing.
static OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/tap.bpf.o"));

/// Bytes of a record before those of the frame.
const HEAD_BYTES: usize = 48;
/// Spells of the program in a second.
const SPELLS_PER_S: u32 = 1000;

/// Why there is no tap.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// clang was missing.
    #[error("this pspacer was built without clang, and has no BPF program for verify")]
    NotBuilt,
    #[error("{device}: packet socket: {error}")]
    Socket {
        device: String,
        error: std::io::Error,
    },
    /// The kernel refused the program.
    #[error("{part}: {detail}")]
    Refused {
        part: &'static str,
        /// The kernel's words.
        detail: String,
    },
}

fn refused(part: &'static str, error: &dyn std::error::Error) -> Error {
    let mut detail = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        detail = format!("{detail}: {inner}");
        cause = inner.source();
    }
    Error::Refused { part, detail }
}

/// A frame that was shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shown<'a> {
    /// When it left, on CLOCK_MONOTONIC.
    pub time_ns: u64,
    /// Its length, from the link header on.
    pub len_bytes: u32,
    /// Frames that it stands for.
    pub weight: u32,
    /// What the kernel knows beside it.
    pub beside: Beside,
    /// The tag beside it.
    pub tag: Option<u16>,
    /// EtherType behind the link header.
    pub ethertype: u16,
    /// Frames that it becomes, if the device segments it.
    pub segments: u32,
    /// Payload of each of those.
    pub segment_bytes: u32,
    /// Its first bytes.
    pub bytes: &'a [u8],
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn parse(record: &[u8]) -> Option<Shown<'_>> {
    let tag = word(record, 28)?;
    let shown = usize::try_from(word(record, 44)?).ok()?;
    Some(Shown {
        time_ns: u64::from_ne_bytes(record.get(..8)?.try_into().ok()?),
        len_bytes: word(record, 8)?,
        weight: word(record, 12)?,
        beside: Beside {
            mark: word(record, 16)?,
            priority: word(record, 20)?,
            interface: word(record, 24)?,
        },
        tag: (tag >> 16 == 1).then_some((tag & 0xffff) as u16),
        ethertype: (word(record, 32)? & 0xffff) as u16,
        segments: word(record, 36)?.max(1),
        segment_bytes: word(record, 40)?,
        bytes: record.get(HEAD_BYTES..HEAD_BYTES.checked_add(shown)?)?,
    })
}

/// What the tap saw in all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Packets that left, as the device gets them, without psp's gap frames.
    pub frames: u64,
    pub bytes: u64,
    /// Those that were shown.
    pub shown: u64,
    /// Those that the ring had no room for.
    pub lost: u64,
    /// Gap frames of psp.
    pub gaps: u64,
}

/// A tap. Dropping it detaches the program.
pub struct Tap {
    ring: RingBuf<MapData>,
    states: PerCpuArray<MapData, [u64; 7]>,
    _ebpf: Ebpf,
    _socket: OwnedFd,
}

impl Tap {
    /// Taps a device; each processor shows at most so many frames a second one by one, beyond it a
    /// sample. Takes root.
    pub fn open(device: &str, index: u32, frames_per_s: u32) -> Result<Self, Error> {
        if OBJECT.is_empty() {
            return Err(Error::NotBuilt);
        }
        let frames_max = frames_per_s.div_ceil(SPELLS_PER_S).max(1);
        let mut loader = EbpfLoader::new();
        loader.set_global("device", &index, true);
        loader.set_global("frames_max", &frames_max, true);
        let load = loader.load(OBJECT);
        let mut ebpf = load.map_err(|error| refused("BPF program", &error))?;
        let missing = |part| Error::Refused {
            part,
            detail: "the object has none".to_owned(),
        };
        let mut map = |name| ebpf.take_map(name).ok_or_else(|| missing(name));
        let ring = RingBuf::try_from(map("tap_records")?);
        let ring = ring.map_err(|error| refused("tap_records", &error))?;
        let states = PerCpuArray::try_from(map("tap_states")?);
        let states = states.map_err(|error| refused("tap_states", &error))?;
        let socket = linux_io::packet::observer(device).map_err(|error| Error::Socket {
            device: device.to_owned(),
            error,
        })?;
        let program = ebpf
            .program_mut("tap_frame")
            .ok_or_else(|| missing("tap_frame"))?;
        let filter: &mut SocketFilter = program
            .try_into()
            .map_err(|error: ProgramError| refused("BPF program", &error))?;
        filter
            .load()
            .map_err(|error| refused("BPF program", &error))?;
        filter
            .attach(&socket)
            .map_err(|error| refused("BPF program", &error))?;
        Ok(Self {
            ring,
            states,
            _ebpf: ebpf,
            _socket: socket,
        })
    }

    /// Passes frames that were shown to `take`, at most `most`, and returns how many. Nothing wakes
    /// the reader.
    pub fn drain(&mut self, most: usize, take: &mut dyn FnMut(&Shown<'_>)) -> usize {
        for count in 0..most {
            let Some(record) = self.ring.next() else {
                return count;
            };
            if let Some(shown) = parse(&record) {
                take(&shown);
            }
        }
        most
    }

    /// Returns what was seen in all. O(processors).
    pub fn totals(&self) -> Result<Totals, Error> {
        let states = self.states.get(&0, 0);
        let states = states.map_err(|error| refused("tap_states", &error))?;
        let mut totals = Totals::default();
        for [frames, bytes, shown, lost, gaps, ..] in states.iter() {
            totals.frames += frames;
            totals.bytes += bytes;
            totals.shown += shown;
            totals.lost += lost;
            totals.gaps += gaps;
        }
        Ok(totals)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail that way")]

    use super::*;

    #[test]
    fn a_record_is_read_as_the_program_writes_it() {
        let mut record = 5u64.to_ne_bytes().to_vec();
        for word in [
            60u32,
            3,
            7,
            0x7073_8000,
            2,
            (1 << 16) | 100,
            0x0800,
            0,
            0,
            4,
        ] {
            record.extend(word.to_ne_bytes());
        }
        record.extend([9; 160]);
        let shown = parse(&record).unwrap();
        let beside = shown.beside;
        assert_eq!((shown.time_ns, shown.len_bytes, shown.weight), (5, 60, 3));
        assert_eq!(
            (beside.mark, beside.priority, beside.interface),
            (7, 0x7073_8000, 2)
        );
        assert_eq!((shown.tag, shown.ethertype), (Some(100), 0x0800));
        assert_eq!((shown.segments, shown.bytes), (1, &[9u8; 4][..]));
        assert!(parse(&record[..50]).is_none());
    }
}
