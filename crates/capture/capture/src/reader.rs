// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads packet captures: pcap (microseconds or nanoseconds, either byte order) and pcapng
//! (any number of interfaces and sections), also compressed with gzip or zstd.

use std::io::Read;

use units::ethernet::wire_bytes;

use crate::classify::{FlowPlace, classify};
use crate::encapsulation::Encapsulations;
use crate::error::{Damage, ReadError};
use crate::flows::FlowTable;
use crate::frame::{Frame, Interface};
use crate::link_headers::length_as_ethernet;
use crate::packets::Packets;
use crate::record::{Fate, NO_FLOW, Record};

/// A capture, read up to its end or to the first damage.
#[derive(Clone, Debug, Default)]
pub struct Capture {
    /// Records in order of time. [`Record::queue`] holds the number of the interface.
    pub records: Vec<Record>,
    /// The flows that [`Record::flow`] is an index into.
    pub flows: FlowTable,
    pub interfaces: Vec<Interface>,
    /// Time of the first packet since 1970, ps: records count from it.
    pub origin_ps: i128,
    /// Packets whose timestamp is before that of an earlier packet in the file. The reader
    /// sorts them.
    pub out_of_order: u64,
    /// Packets whose IP headers state more bytes than the file says that they had. They count with those.
    pub cut: u64,
    /// Packets whose times have fractions of a second or more.
    pub beyond_second: u64,
    /// Packets left out because their link type is not supported, or because they name an
    /// interface that the file does not describe.
    pub skipped: u64,
    /// The damage, if the rest of the file could not be used.
    pub damage: Option<Damage>,
}

/// Reads a capture to its end, or to the first damage. It needs at most about 50 bytes of
/// memory per packet. If a zstd file is cut short, the last window (often the whole file)
/// stays in the decoder and is lost; other files lose nothing before the cut.
///
/// # Errors
/// If the file is no capture, its header is incomplete, or its timestamps
/// span more than the 213 days that fit in 64 bits of picoseconds.
pub fn read_capture<R: Read>(source: R) -> Result<Capture, ReadError> {
    let mut packets = Packets::open(source)?;
    let mut gathered = Gathered {
        fcs_bytes: packets.fcs_bytes(),
        ..Gathered::default()
    };
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
    gathered.capture.skipped += packets.skipped().no_interface;
    gathered.capture.interfaces = packets.interfaces().to_vec();
    gathered.finish()
}

/// Packets that have no order yet. They become records when all of them are sorted by time.
#[derive(Default)]
struct Gathered {
    capture: Capture,
    times_ps: Vec<i128>,
    encapsulations: Encapsulations,
    /// What the file says that frames have at their ends, and may not have.
    fcs_bytes: u32,
}

impl Gathered {
    fn add(&mut self, frame: Frame<'_>) {
        if frame.link.is_none() {
            self.capture.skipped += 1;
            return;
        }
        let (kind, place, missing_bytes) = classify(&frame, &mut self.encapsulations);
        self.capture.cut += u64::from(missing_bytes > self.fcs_bytes);
        self.capture.beyond_second += u64::from(frame.time.is_beyond_second());
        let flow = place.map_or(NO_FLOW, |place| self.flow(place));
        let frame_bytes = length_as_ethernet(&frame).saturating_add(missing_bytes);
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

    /// Returns the index of the flow. VLAN tags alone do not distinguish flows: tags differ by
    /// direction and by the point of the path at which the capture was taken.
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
