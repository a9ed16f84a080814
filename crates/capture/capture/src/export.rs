// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes a timeline as pcapng for other tools: one interface per direction, timestamps in
//! picoseconds, and a comment on each dropped frame.

use std::io::{self, Write};

use crate::blocks::{COMMENT, IF_NAME, IF_TSRESOL, block, length_u32, option, pad, section};
use crate::record::{Fate, Kind, Record};

/// The frames that one end of a cable sent.
#[derive(Clone, Copy, Debug)]
pub struct ExportedDirection<'a> {
    /// Name of the interface in the file.
    pub name: &'a str,
    /// Line rate.
    pub rate_bps: u64,
    /// Records in order of departure.
    pub records: &'a [Record],
    /// The first [`ExportedDirection::snap_bytes`] of each data frame, in order.
    pub snap: &'a [u8],
    /// Bytes kept of each frame in `snap`.
    pub snap_bytes: usize,
}

const IF_SPEED: u16 = 8;
const PICOSECONDS: u8 = 12;
const LINKTYPE_ETHERNET: u16 = 1;

/// Writes the data frames of all directions, in order of departure. Gap frames have no snap
/// and are left out. If `snap` ends before the data frames do, the direction's packets end
/// there too.
///
/// # Errors
/// Those of `out`, and if there are 2^32 directions or a frame of 2^32 bytes.
pub fn write_pcapng<W: Write>(mut out: W, directions: &[ExportedDirection<'_>]) -> io::Result<()> {
    section(&mut out, None)?;
    for direction in directions {
        interface(&mut out, direction)?;
    }
    let mut frames: Vec<_> = directions
        .iter()
        .map(snapped)
        .map(Iterator::peekable)
        .collect();
    loop {
        // If two frames have the same timestamp, the direction named first goes first.
        let next = frames
            .iter_mut()
            .enumerate()
            .filter_map(|(i, f)| Some((f.peek()?.0.start_ps, i)))
            .min();
        let Some((_, index)) = next else { break };
        if let Some((record, bytes)) = frames[index].next() {
            packet(&mut out, length_u32(index)?, record, bytes)?;
        }
    }
    out.flush()
}

/// Returns the frames that arrive at the far end of a direction, in order of arrival: their
/// records, whose start is then the arrival, and the bytes kept of them.
pub fn arrivals(d: &ExportedDirection<'_>) -> (Vec<Record>, Vec<u8>) {
    let mut arrived: Vec<_> = snapped_whole(d)
        .filter(|(r, _)| r.fate == Fate::Delivered && r.arrive_ps > 0)
        .collect();
    // The sort is stable: frames that arrive at one instant stay in the order of departure.
    arrived.sort_by_key(|(r, _)| r.arrive_ps);
    let snap = arrived.iter().flat_map(|(_, bytes)| *bytes).copied();
    let snap = snap.collect();
    let records = arrived.iter().map(|(r, _)| Record {
        start_ps: r.arrive_ps,
        ..**r
    });
    (records.collect(), snap)
}

fn snapped<'a>(d: &ExportedDirection<'a>) -> impl Iterator<Item = (&'a Record, &'a [u8])> {
    snapped_whole(d).map(|(r, bytes)| {
        let kept = bytes.len().min(r.frame_bytes as usize);
        (r, &bytes[..kept])
    })
}

/// Iterates over data frames with their snaps at full length, padded to `snap_bytes` if the
/// frame is shorter.
fn snapped_whole<'a>(d: &ExportedDirection<'a>) -> impl Iterator<Item = (&'a Record, &'a [u8])> {
    let data = d.records.iter().filter(|r| r.kind == Kind::Data);
    let snaps = (d.snap_bytes > 0).then(|| d.snap.chunks_exact(d.snap_bytes));
    data.zip(snaps.into_iter().flatten())
}

fn interface<W: Write>(out: &mut W, d: &ExportedDirection<'_>) -> io::Result<()> {
    let mut body = Vec::new();
    body.extend(LINKTYPE_ETHERNET.to_le_bytes());
    body.extend(0u16.to_le_bytes());
    body.extend(length_u32(d.snap_bytes)?.to_le_bytes());
    option(&mut body, IF_NAME, d.name.as_bytes())?;
    option(&mut body, IF_SPEED, &d.rate_bps.to_le_bytes())?;
    option(&mut body, IF_TSRESOL, &[PICOSECONDS])?;
    option(&mut body, 0, &[])?;
    block(out, 1, &body)
}

fn packet<W: Write>(out: &mut W, index: u32, r: &Record, bytes: &[u8]) -> io::Result<()> {
    let mut body = Vec::with_capacity(64 + bytes.len());
    body.extend(index.to_le_bytes());
    let [low, high] = [r.start_ps & 0xffff_ffff, r.start_ps >> 32];
    for word in [high, low] {
        body.extend(&word.to_le_bytes()[..4]);
    }
    body.extend(length_u32(bytes.len())?.to_le_bytes());
    body.extend(r.frame_bytes.to_le_bytes());
    body.extend(bytes);
    pad(&mut body);
    let comment = match r.fate {
        Fate::DroppedFifo => Some("dropped: the bottleneck's FIFO was full"),
        Fate::DroppedPolicer => Some("dropped by the policer"),
        Fate::Lost => Some("lost on the cable, by an impairment"),
        Fate::Delivered | Fate::Ended | Fate::Sunk => None,
    };
    if let Some(comment) = comment {
        option(&mut body, COMMENT, comment.as_bytes())?;
        option(&mut body, 0, &[])?;
    }
    block(out, 6, &body)
}
