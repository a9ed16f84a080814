// SPDX-License-Identifier: MIT OR Apache-2.0
//! The packets of one capture, as far as pairing needs them.

use std::collections::BTreeMap;

use capture::segment::{Endpoint, Flags, Segment};

#[derive(Clone, Copy, Debug)]
pub(super) struct Packet {
    pub(super) time_ns: u64,
    pub(super) number: u64,
    pub(super) seq: u32,
    pub(super) ack: u32,
    pub(super) payload_bytes: u32,
    pub(super) timestamps: Option<(u32, u32)>,
    pub(super) window: u16,
    pub(super) ip_id: u16,
    flags: u16,
}

impl Packet {
    pub(super) fn has(&self, flags: u16) -> bool {
        self.flags & flags != 0
    }

    /// Returns the sequence number after the last one that the packet takes.
    pub(super) fn end(&self) -> u32 {
        let more = u32::from(self.has(Flags::SYN)) + u32::from(self.has(Flags::FIN));
        self.seq.wrapping_add(self.payload_bytes).wrapping_add(more)
    }

    /// What a packet has at both ends, its number in IP's header included or not. A device that
    /// cuts up large segments sets PSH anew.
    pub(super) fn identity(&self, with_id: bool) -> Identity {
        Identity {
            seq: self.seq,
            ack: if self.has(Flags::ACK) { self.ack } else { 0 },
            payload_bytes: self.payload_bytes,
            flags: self.flags & !Flags::PSH,
            window: self.window,
            timestamps: self.timestamps,
            ip_id: if with_id { self.ip_id } else { 0 },
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Identity {
    seq: u32,
    ack: u32,
    payload_bytes: u32,
    flags: u16,
    window: u16,
    timestamps: Option<(u32, u32)>,
    ip_id: u16,
}

/// A capture has more packets than fit in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooMany;

impl std::fmt::Display for TooMany {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "more than {} segments: two captures are held in memory. --filter, --from and --to \
             choose fewer",
            Trace::MOST
        )
    }
}

/// The packets of one capture, by direction.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    directions: BTreeMap<(Endpoint, Endpoint), Vec<Packet>>,
    count: usize,
    span: Option<[u64; 2]>,
}

impl Trace {
    /// Most packets of a trace: some 600 MB.
    pub const MOST: usize = 10_000_000;

    pub fn push(&mut self, segment: &Segment) -> Result<(), TooMany> {
        if self.count == Self::MOST {
            return Err(TooMany);
        }
        self.count += 1;
        let time_ns = segment.time_ns;
        let [first, last] = self.span.unwrap_or([time_ns; 2]);
        self.span = Some([first.min(time_ns), last.max(time_ns)]);
        let timestamps = segment.timestamps.and_then(|t| Some((t.value, t.echo?)));
        let packets = self.directions.entry((segment.from, segment.to));
        packets.or_default().push(Packet {
            time_ns,
            number: segment.number,
            seq: segment.seq,
            ack: segment.ack,
            payload_bytes: segment.payload_bytes,
            timestamps,
            window: segment.window,
            ip_id: segment.ip_id,
            flags: segment.flags.0,
        });
        Ok(())
    }

    pub(super) fn directions(&self) -> impl Iterator<Item = (&(Endpoint, Endpoint), &Vec<Packet>)> {
        self.directions.iter()
    }

    pub(super) fn direction(&self, ends: &(Endpoint, Endpoint)) -> Option<&[Packet]> {
        self.directions.get(ends).map(Vec::as_slice)
    }

    /// Returns the times of the first and the last packet.
    pub(super) fn span(&self) -> [u64; 2] {
        self.span.unwrap_or_default()
    }
}
