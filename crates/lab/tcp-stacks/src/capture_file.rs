// SPDX-License-Identifier: MIT OR Apache-2.0
//! Captures of a run as pcap files, whole and cut.

use crate::ground_truth::End;
use crate::packet::{Ids, flag};
use crate::world::{Point, Run, Seen};

/// What a capture leaves out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Cut {
    Whole,
    /// The packets of the end that sends less: only the data's direction is there.
    DataOnly,
    /// The packets of the end that sends more: only the acknowledgements' direction is there.
    AcksOnly,
    /// All but the first 64 bytes of each frame.
    Snap64,
    NoHandshake,
}

impl Cut {
    pub const ALL: [Cut; 5] = [
        Cut::Whole,
        Cut::DataOnly,
        Cut::AcksOnly,
        Cut::Snap64,
        Cut::NoHandshake,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Cut::Whole => "whole",
            Cut::DataOnly => "data-only",
            Cut::AcksOnly => "acks-only",
            Cut::Snap64 => "64-bytes",
            Cut::NoHandshake => "no-handshake",
        }
    }
}

impl Point {
    /// All capture points.
    pub const ALL: [Point; 3] = [Point::Client, Point::Middle, Point::Server];
}

/// Wall clock of the simulation's start, in nanoseconds since 1970.
const EPOCH_NS: u64 = 1_700_000_000_000_000_000;
/// Bytes that [`Cut::Snap64`] keeps of each frame.
pub const SNAP_BYTES: usize = 64;

impl Run {
    /// Returns the end that sends more data.
    pub fn data_sender(&self) -> End {
        let bytes = |end: End| self.truth[end.index()].sent.iter().map(|s| s.end).max();
        if bytes(End::Server) > bytes(End::Client) {
            End::Server
        } else {
            End::Client
        }
    }

    /// Returns the packets of a capture.
    pub fn packets(&self, point: Point, cut: Cut) -> Vec<&Seen> {
        let sender = self.data_sender();
        let all = self.seen[point as usize].iter();
        let first = all
            .clone()
            .position(|s| !s.packet.has(flag::SYN) && s.packet.from == End::Client);
        all.enumerate()
            .filter(|(index, seen)| match cut {
                Cut::Whole | Cut::Snap64 => true,
                Cut::DataOnly => seen.packet.from == sender,
                Cut::AcksOnly => seen.packet.from != sender,
                Cut::NoHandshake => {
                    // The third packet belongs to it, unless it carries data.
                    let is_third = Some(*index) == first && seen.packet.payload_bytes == 0;
                    !seen.packet.has(flag::SYN) && !is_third
                }
            })
            .map(|(_, seen)| seen)
            .collect()
    }

    /// Returns a capture as a pcap file with timestamps in nanoseconds, and the time of its first
    /// packet on the simulation's clock.
    pub fn pcap(&self, point: Point, cut: Cut) -> (Vec<u8>, u64) {
        let snap = if cut == Cut::Snap64 {
            SNAP_BYTES
        } else {
            262_144
        };
        let mut file = header(snap).to_vec();
        let packets = self.packets(point, cut);
        let first_ns = packets.first().map_or(0, |s| s.time_ns);
        for seen in packets {
            push_record(&mut file, seen, &self.ids, seen.time_ns, snap);
        }
        (file, first_ns)
    }
}

/// Returns the header of a pcap file with timestamps in nanoseconds.
pub fn header(snap_bytes: usize) -> [u8; 24] {
    let mut bytes = [0; 24];
    bytes[..4].copy_from_slice(&0xa1b2_3c4d_u32.to_le_bytes());
    bytes[4..8].copy_from_slice(&[2, 0, 4, 0]);
    bytes[16..20].copy_from_slice(&(snap_bytes as u32).to_le_bytes());
    bytes[20..].copy_from_slice(&1_u32.to_le_bytes());
    bytes
}

/// Appends the record of a packet that was seen at `time_ns` on a connection of these names.
pub fn push_record(file: &mut Vec<u8>, seen: &Seen, ids: &Ids, time_ns: u64, snap_bytes: usize) {
    let mut frame = ethernet(seen.packet.from).to_vec();
    frame.extend([8, 0]);
    frame.extend(seen.packet.ipv4(ids, seen.hop_limit));
    push_frame(file, EPOCH_NS + time_ns, &frame, snap_bytes);
}

/// Returns the addresses of a frame that an end sent: destination, source.
pub(crate) fn ethernet(from: End) -> [u8; 12] {
    let own = from.index() as u8;
    [2, 0, 0, 0, 0, 2 - own, 2, 0, 0, 0, 0, 1 + own]
}

/// Appends the record of a frame that was captured at `wall_ns` since 1970.
pub(crate) fn push_frame(file: &mut Vec<u8>, wall_ns: u64, frame: &[u8], snap_bytes: usize) {
    let kept = &frame[..frame.len().min(snap_bytes)];
    for number in [
        wall_ns / 1_000_000_000,
        wall_ns % 1_000_000_000,
        kept.len() as u64,
        frame.len() as u64,
    ] {
        file.extend((number as u32).to_le_bytes());
    }
    file.extend(kept);
}
