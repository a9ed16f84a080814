// SPDX-License-Identifier: MIT OR Apache-2.0
//! Packet captures: pcap (microseconds or nanoseconds, either byte order) and
//! pcapng (any number of interfaces and sections), also gzip or zstd packed.

use std::io::Read;

use units::ethernet::wire_bytes;

use crate::classify::{FlowPlace, classify};
use crate::encapsulation::Encapsulations;
use crate::error::{Damage, ReadError};
use crate::flows::FlowTable;
use crate::frame::{Frame, Interface};
use crate::packets::Packets;
use crate::record::{Fate, NO_FLOW, Record};

/// A capture, read as far as possible.
#[derive(Clone, Debug, Default)]
pub struct Capture {
    /// In order of time. The queue of a record is the number of its interface.
    pub records: Vec<Record>,
    /// What [`Record::flow`] means.
    pub flows: FlowTable,
    /// By number.
    pub interfaces: Vec<Interface>,
    /// Time of the first packet since 1970: records count from it.
    pub origin_ps: i128,
    /// Packets that came before an earlier one in the file, and were sorted.
    pub out_of_order: u64,
    /// Packets left out: of a link type that is not understood.
    pub skipped: u64,
    /// Set if the rest of the file could not be used.
    pub damage: Option<Damage>,
}

/// Reads a capture to its end, or to where it is damaged. About 50 bytes of
/// memory per packet at the peak. Of a zstd file cut short, the last window
/// (often everything) stays in the decoder and is lost; of other files nothing.
///
/// # Errors
/// If the file is no capture, its header is incomplete, or its timestamps
/// span more than the 213 days that fit in 64 bits of picoseconds.
pub fn read_capture<R: Read>(source: R) -> Result<Capture, ReadError> {
    let mut packets = Packets::open(source)?;
    let mut gathered = Gathered::default();
    loop {
        match packets.next(|frame| gathered.add(frame)) {
            Ok(Some(())) => {}
            Ok(None) => break,
            Err(error) => {
                gathered.capture.damage = Some(Damage::from(error));
                break;
            }
        }
    }
    gathered.capture.interfaces = packets.interfaces().to_vec();
    gathered.finish()
}

/// Packets on their way to become records: their order is not known yet.
#[derive(Default)]
struct Gathered {
    capture: Capture,
    times_ps: Vec<i128>,
    encapsulations: Encapsulations,
}

impl Gathered {
    fn add(&mut self, frame: Frame<'_>) {
        let Some(link) = frame.link else {
            self.capture.skipped += 1;
            return;
        };
        let (kind, place) = classify(&frame, &mut self.encapsulations);
        let flow = place.map_or(NO_FLOW, |place| self.flow(place));
        let frame_bytes = link.frame_bytes(frame.packet_bytes);
        self.capture.records.push(Record {
            start_ps: 0,
            arrive_ps: 0,
            frame_bytes,
            wire_bytes: wire_bytes(frame_bytes),
            flow,
            kind,
            fate: Fate::Delivered,
            queue: u16::try_from(frame.interface).unwrap_or(u16::MAX),
        });
        self.times_ps.push(frame.time.ps());
    }

    /// VLAN tags alone do not tell flows apart: they differ by direction and by
    /// where on the path the capture was taken.
    fn flow(&mut self, place: FlowPlace) -> u32 {
        let flows = &mut self.capture.flows;
        if !self.encapsulations.has_tunnel(place.encapsulation) {
            return flows.index_of(place.key);
        }
        let name = || self.encapsulations.name(place.encapsulation);
        flows.index_in_tunnel(place.key, place.encapsulation, name)
    }

    fn finish(mut self) -> Result<Capture, ReadError> {
        let Some(origin_ps) = self.times_ps.iter().copied().min() else {
            return Ok(self.capture);
        };
        self.capture.origin_ps = origin_ps;
        for (record, time_ps) in self.capture.records.iter_mut().zip(&self.times_ps) {
            record.start_ps = u64::try_from(time_ps - origin_ps).map_err(|_| {
                let what = "timestamps that span more than 213 days".into();
                ReadError::Malformed { offset: 0, what }
            })?;
        }
        let late = self.times_ps.windows(2).filter(|w| w[1] < w[0]).count();
        self.capture.out_of_order = late as u64;
        if late > 0 {
            self.capture.records.sort_by_key(|r| r.start_ps);
        }
        Ok(self.capture)
    }
}
