// SPDX-License-Identifier: MIT OR Apache-2.0
//! Handles a received frame: finds its stream and its next hop, or sends an ICMP error.

use std::net::Ipv4Addr;
use std::sync::PoisonError;

use linux_io::clock::monotonic_ns;
use linux_io::packet::VNET_BYTES;

use super::frame::Frame;
use super::shared::Router;
use crate::ebox::Notify;
use crate::ethernet::{self, ETHERNET, Header, Refusal, forward};
use crate::fragments::Fragments;
use crate::icmp::{Problem, error};
use crate::table::route;

impl Router<'_> {
    /// Reads a received frame and finds its stream. Returns `false`, and counts the reason, if the
    /// frame is not forwarded.
    pub(super) fn classify(
        &self,
        port: usize,
        frame: &mut Frame,
        fragments: &mut Fragments,
    ) -> bool {
        let Some(own) = self.ports.get(port).map(|p| p.mac) else {
            return false;
        };
        let own_addresses = self.own_addresses.read();
        let own_addresses = own_addresses.unwrap_or_else(PoisonError::into_inner);
        let is_own = |address| own_addresses.iter().any(|(_, own)| *own == address);
        let header = match ethernet::read(frame.bytes(), own) {
            Ok(header) if is_own(header.destination) => {
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
        let streams = &self.config.streams;
        let by_header = |header: &Header| streams.iter().position(|s| s.holds(header));
        frame.stream = fragments.stream(&header, by_header);
        frame.header = Some(header);
        frame.from = port;
        true
    }

    /// Finds the port through which a frame leaves, and rewrites its headers for that port. If it
    /// cannot be forwarded, counts the reason, reports it to the sender, and returns `None`.
    pub(super) fn route(&self, frame: &mut Frame) -> Option<usize> {
        match self.find_way(frame.header?) {
            Ok((port, mac)) => {
                let own = self.ports.get(port)?.mac;
                forward(frame.bytes_mut(), own, mac);
                Some(port)
            }
            Err(problem) => {
                let counter = match problem {
                    Problem::NoHopLeft => &self.counters.ttl,
                    Problem::NoRoute => &self.counters.no_route,
                    Problem::NoNeighbour => &self.counters.no_neighbour,
                    Problem::TooLong { .. } => &self.counters.too_long,
                };
                counter.add(1);
                self.tell_sender(problem, frame);
                None
            }
        }
    }

    /// Returns the port and the next hop's MAC address.
    fn find_way(&self, header: Header) -> Result<(usize, ethernet::Mac), Problem> {
        if header.ttl <= 1 {
            return Err(Problem::NoHopLeft);
        }
        let route = route(&self.config.routes, header.destination).ok_or(Problem::NoRoute)?;
        let neighbours = self.neighbours.read();
        let neighbours = neighbours.unwrap_or_else(PoisonError::into_inner);
        let mtu_bytes = neighbours.mtu_bytes(route.device);
        if header.total_bytes > mtu_bytes {
            return Err(Problem::TooLong { mtu_bytes });
        }
        let mac = neighbours.mac(route.device, route.via);
        Ok((route.device, mac.ok_or(Problem::NoNeighbour)?))
    }

    /// Sends an ICMP error, as best effort, if the rate limit allows it.
    fn tell_sender(&self, problem: Problem, about: &Frame) {
        let Some(packet) = self
            .address_of(about.from)
            .and_then(|from| error(problem, about.packet(), from))
        else {
            return;
        };
        // Without a clock no error is sent: the rate limit could not be kept.
        let Ok(now_ns) = monotonic_ns() else { return };
        if !self.errors.allow(now_ns) {
            self.counters.icmp_limited.add(1);
            return;
        }
        let Some(mut frame) = self.new_frame(&packet) else {
            self.counters.no_buffer.add(1);
            return;
        };
        // This recursion ends: no error is sent about an error.
        let Some(port) = self.route(&mut frame).and_then(|p| self.ports.get(p)) else {
            return;
        };
        match port.routed.notify(frame, Notify::Stay) {
            Ok(()) => self.counters.icmp_sent.add(1),
            Err(_) => self.counters.box_full.add(1),
        }
    }

    /// Returns an address of the port's device, else any address of this host.
    fn address_of(&self, port: usize) -> Option<Ipv4Addr> {
        let name = &self.config.devices.get(port)?.name;
        let own = self.own_addresses.read();
        let own = own.unwrap_or_else(PoisonError::into_inner);
        let others = own.iter().filter(|(_, address)| !address.is_loopback());
        let found = own.iter().find(|(device, _)| device == name);
        found.or(others.into_iter().next()).map(|(_, a)| *a)
    }

    /// Returns a frame for a packet that this router itself sends.
    fn new_frame(&self, packet: &[u8]) -> Option<Frame> {
        let mut chunk = self.pool.take()?;
        chunk.set_length(VNET_BYTES + ETHERNET + packet.len());
        let mut frame = Frame::from(chunk);
        let (ethernet, room) = frame.bytes_mut().split_first_chunk_mut::<ETHERNET>()?;
        // Both MAC addresses are 0 until the frame is routed.
        *ethernet = [0; ETHERNET];
        ethernet[12..].copy_from_slice(&[0x08, 0x00]);
        room.get_mut(..packet.len())?.copy_from_slice(packet);
        frame.header = Some(ethernet::read(frame.bytes(), [0; 6]).ok()?);
        Some(frame)
    }
}
