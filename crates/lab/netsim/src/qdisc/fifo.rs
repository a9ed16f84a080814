// SPDX-License-Identifier: MIT OR Apache-2.0
//! pfifo and bfifo: first in, first out, drop-tail; pfifo_head_drop, which drops the
//! oldest packet.

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
    /// A number of packets; a full queue drops its oldest one (pfifo_head_drop).
    NewestPackets(u32),
}

/// A queue with a limit.
#[derive(Debug)]
pub struct Fifo {
    packets: VecDeque<Packet>,
    bytes: u64,
    limit: Limit,
}

impl Fifo {
    /// Makes an empty queue.
    pub fn new(limit: Limit) -> Self {
        Self {
            packets: VecDeque::new(),
            bytes: 0,
            limit,
        }
    }

    /// Returns the name that tc has for it.
    pub fn name(&self) -> &'static str {
        match self.limit {
            Limit::Packets(_) => "pfifo",
            Limit::Bytes(_) => "bfifo",
            Limit::NewestPackets(_) => "pfifo_head_drop",
        }
    }

    /// Enqueues a packet if there is room for it, or if the oldest packet can make room.
    pub fn enqueue(&mut self, packet: Packet) -> Verdict {
        let has_room = match self.limit {
            Limit::Packets(most) => self.packets.len() < most as usize,
            Limit::Bytes(most) => self.bytes + u64::from(packet.frame_bytes) <= most,
            Limit::NewestPackets(most) => self.packets.len() < most as usize,
        };
        let mut verdict = Verdict::Queued;
        if !has_room {
            // As in Linux, a queue with a limit of 0 refuses every packet.
            let oldest = match self.limit {
                Limit::NewestPackets(_) => self.pop(),
                Limit::Packets(_) | Limit::Bytes(_) => None,
            };
            let Some(oldest) = oldest else {
                return Verdict::Refused;
            };
            verdict = Verdict::Displaced(oldest);
        }
        self.bytes += u64::from(packet.frame_bytes);
        self.packets.push_back(packet);
        verdict
    }

    /// Removes and returns the first packet.
    pub fn pop(&mut self) -> Option<Packet> {
        let packet = self.packets.pop_front()?;
        self.bytes -= u64::from(packet.frame_bytes);
        Some(packet)
    }

    /// Returns the first packet without removing it.
    pub fn head(&self) -> Option<&Packet> {
        self.packets.front()
    }

    /// Returns the number of packets in the queue.
    pub fn len(&self) -> usize {
        self.packets.len()
    }

    /// Returns whether the queue is empty.
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// Returns the bytes of frames in the queue.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}
