// SPDX-License-Identifier: MIT OR Apache-2.0
//! A frame's buffer, and what is decided of it.

use live::packet::VNET_BYTES;

use crate::ethernet::{self, Header, Refusal, forward};
use crate::itm::WireLength;
use crate::table::route;

use super::Router;

/// Room for a full frame with two VLAN tags.
pub(crate) const FRAME_BYTES: usize = 1522;

/// A buffer by its address: it is handed from queue to queue, never copied.
pub(crate) type Buffer = Box<Frame>;

/// A buffer and what is known of the frame in it.
#[derive(Debug)]
pub(crate) struct Frame {
    /// What is to be done to the frame, and the frame.
    pub bytes: [u8; VNET_BYTES + FRAME_BYTES],
    /// How much of it there is.
    pub length: usize,
    /// What was read of it.
    pub header: Option<Header>,
    /// Index of its stream, if it is of one.
    pub stream: Option<usize>,
}

impl Default for Frame {
    fn default() -> Self {
        Self {
            bytes: [0; VNET_BYTES + FRAME_BYTES],
            length: 0,
            header: None,
            stream: None,
        }
    }
}

impl Frame {
    /// What the device gets.
    pub fn with_vnet(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }

    fn frame(&self) -> &[u8] {
        self.bytes.get(VNET_BYTES..self.length).unwrap_or_default()
    }

    fn frame_mut(&mut self) -> &mut [u8] {
        self.bytes
            .get_mut(VNET_BYTES..self.length)
            .unwrap_or_default()
    }
}

impl WireLength for Buffer {
    fn wire_bytes(&self) -> u64 {
        ethernet::wire_bytes(self.length.saturating_sub(VNET_BYTES))
    }
}

impl Router<'_> {
    /// Reads a received frame and finds its stream. `false`, counted, if it
    /// goes no further.
    pub(super) fn classify(&self, port: usize, frame: &mut Frame) -> bool {
        let Some(own) = self.ports.get(port).map(|p| p.socket.mac()) else {
            return false;
        };
        let header = match ethernet::read(frame.frame(), own) {
            Ok(header) if self.own_addresses.contains(&header.destination) => {
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
        let neighbours = neighbours.unwrap_or_else(std::sync::PoisonError::into_inner);
        let Some(station) = neighbours.station(route.device, route.via) else {
            self.counters.no_neighbour.add(1);
            return None;
        };
        let own = self.ports.get(route.device)?.socket.mac();
        forward(frame.frame_mut(), own, station);
        Some(route.device)
    }
}
