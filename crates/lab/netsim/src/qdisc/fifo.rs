// SPDX-License-Identifier: MIT OR Apache-2.0
//! pfifo and bfifo: first in, first out, drop-tail.

use std::collections::VecDeque;

use super::answer::Verdict;
use crate::packet::Packet;

/// The limit of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// A number of packets (pfifo); Linux's default is the device's txqueuelen.
    Packets(u32),
    /// A number of bytes of frames (bfifo).
    Bytes(u64),
}

/// A drop-tail queue.
#[derive(Debug)]
pub struct Fifo {
    packets: VecDeque<Packet>,
    bytes: u64,
    limit: Limit,
}

impl Fifo {
    /// Makes an empty queue.
    #[must_use]
    pub fn new(limit: Limit) -> Self {
        Self {
            packets: VecDeque::new(),
            bytes: 0,
            limit,
        }
    }

    /// Returns the name that tc has for it.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self.limit {
            Limit::Packets(_) => "pfifo",
            Limit::Bytes(_) => "bfifo",
        }
    }

    /// Enqueues a packet if there is room for it.
    pub fn enqueue(&mut self, packet: Packet) -> Verdict {
        let has_room = match self.limit {
            Limit::Packets(most) => self.packets.len() < most as usize,
            Limit::Bytes(most) => self.bytes + u64::from(packet.frame_bytes) <= most,
        };
        if !has_room {
            return Verdict::Refused;
        }
        self.bytes += u64::from(packet.frame_bytes);
        self.packets.push_back(packet);
        Verdict::Queued
    }

    /// Removes and returns the first packet.
    pub fn pop(&mut self) -> Option<Packet> {
        let packet = self.packets.pop_front()?;
        self.bytes -= u64::from(packet.frame_bytes);
        Some(packet)
    }

    /// Returns the first packet without removing it.
    #[must_use]
    pub fn head(&self) -> Option<&Packet> {
        self.packets.front()
    }

    /// Returns the number of packets in the queue.
    #[must_use]
    pub fn len(&self) -> usize {
        self.packets.len()
    }

    /// Returns whether the queue is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// Returns the bytes of frames in the queue.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}
