// SPDX-License-Identifier: MIT OR Apache-2.0
//! A frame's buffer, and what is decided of it.

use std::sync::PoisonError;

use afxdp::{BEFORE_BYTES, Chunk};
use live::packet::VNET_BYTES;

use crate::ethernet::{self, Header, Refusal, complete_sum, forward};
use crate::itm::WireLength;
use crate::table::route;

use super::Router;

/// Room for a full frame with two VLAN tags.
pub(crate) const FRAME_BYTES: usize = 1522;

const _: () = assert!(
    BEFORE_BYTES == VNET_BYTES && VNET_BYTES + FRAME_BYTES <= afxdp::CHUNK_BYTES,
    "a chunk has a frame and what AF_PACKET has before it"
);

/// VIRTIO_NET_HDR_F_NEEDS_CSUM, in the first of the bytes before a frame.
const NEEDS_SUM: u8 = 1;

/// A frame in the chunk that it was received into, which is handed from queue to
/// queue and never copied; and what is known of it.
pub(crate) struct Frame {
    chunk: Chunk,
    /// What was read of it.
    pub header: Option<Header>,
    /// Index of its stream, if it is of one.
    pub stream: Option<usize>,
}

impl From<Chunk> for Frame {
    fn from(chunk: Chunk) -> Self {
        Self {
            chunk,
            header: None,
            stream: None,
        }
    }
}

impl Frame {
    /// What a device gets by AF_PACKET.
    pub fn with_vnet(&self) -> &[u8] {
        self.chunk.bytes()
    }

    /// What a device gets by AF_XDP.
    pub fn into_chunk(mut self) -> Chunk {
        if self
            .with_vnet()
            .first()
            .is_some_and(|flags| flags & NEEDS_SUM != 0)
        {
            self.complete_sum();
        }
        self.chunk
    }

    /// Nobody behind this router knows that something is to be done.
    pub fn complete_sum(&mut self) {
        complete_sum(self.frame_mut());
    }

    fn frame(&self) -> &[u8] {
        self.chunk.bytes().get(VNET_BYTES..).unwrap_or_default()
    }

    fn frame_mut(&mut self) -> &mut [u8] {
        self.chunk
            .bytes_mut()
            .get_mut(VNET_BYTES..)
            .unwrap_or_default()
    }
}

impl WireLength for Frame {
    fn wire_bytes(&self) -> u64 {
        ethernet::wire_bytes(self.frame().len())
    }
}

impl Router<'_> {
    /// Reads a received frame and finds its stream. `false`, counted, if it
    /// goes no further.
    pub(super) fn classify(&self, port: usize, frame: &mut Frame) -> bool {
        let Some(own) = self.ports.get(port).map(|p| p.station) else {
            return false;
        };
        let own_addresses = self.own_addresses.read();
        let own_addresses = own_addresses.unwrap_or_else(PoisonError::into_inner);
        let header = match ethernet::read(frame.frame(), own) {
            Ok(header) if own_addresses.contains(&header.destination) => {
                self.counters.not_ours.add(1);
                return false;
            }
            Ok(header) => header,
            Err(Refusal::NotOurs) => {
                self.counters.not_ours.add(1);
                return false;
            }
            Err(Refusal::Invalid) => {
                self.counters.invalid.add(1);
                return false;
            }
        };
        frame.stream = self.config.streams.iter().position(|s| s.holds(&header));
        frame.header = Some(header);
        true
    }

    /// Finds the port by which a frame leaves, and makes it ready for it.
    /// `None`, counted, if there is no way.
    pub(super) fn route(&self, frame: &mut Frame) -> Option<usize> {
        let header = frame.header?;
        if header.ttl <= 1 {
            self.counters.ttl.add(1);
            return None;
        }
        let Some(route) = route(&self.config.routes, header.destination) else {
            self.counters.no_route.add(1);
            return None;
        };
        let neighbours = self.neighbours.read();
        let neighbours = neighbours.unwrap_or_else(PoisonError::into_inner);
        let Some(station) = neighbours.station(route.device, route.via) else {
            self.counters.no_neighbour.add(1);
            return None;
        };
        let own = self.ports.get(route.device)?.station;
        forward(frame.frame_mut(), own, station);
        Some(route.device)
    }
}
