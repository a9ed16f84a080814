// SPDX-License-Identifier: MIT OR Apache-2.0
//! A device: a queue, the line on which it sends, and the frames in flight to the
//! far host.

use std::collections::VecDeque;

use units::clock::{Span, Time};
use units::ethernet::{INTER_FRAME_GAP_BYTES, wire_bytes};

use crate::packet::Packet;
use crate::qdisc::Qdisc;
use crate::rate_arithmetic::Instant;

/// Configuration of a device.
#[derive(Debug)]
pub struct DeviceConfig {
    /// Line rate, bit/s; above 0.
    pub rate_bps: u64,
    /// Propagation delay.
    pub delay: Span,
    /// The number of the port at the far end; several devices of one network may
    /// send into the same port.
    pub port: Option<usize>,
    /// Whether the far end counts and discards data frames.
    pub sink: bool,
    /// The queueing discipline in which packets wait for the line.
    pub qdisc: Qdisc,
}

/// A frame on the line, before its fate at a shared port is known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entering {
    pub start: Time,
    /// When the last bit reaches the far port.
    pub at: Time,
    pub wire_bytes: u32,
    /// The packet; `None` for a gap frame.
    pub packet: Option<Packet>,
}

#[derive(Debug)]
pub(crate) struct Device {
    pub rate_bps: u64,
    pub delay: Span,
    pub port: Option<usize>,
    /// Whether another device sends into the same port.
    pub shared: bool,
    pub sink: bool,
    pub qdisc: Qdisc,
    /// When the line becomes free.
    pub free: Instant,
    /// Frames in flight, by their arrival at the port (shared ports only).
    pub entering: VecDeque<Entering>,
    /// Packets in flight, by their arrival at the far host.
    pub arriving: VecDeque<(Time, Packet)>,
    /// Whether the queue is being served: a sender that fills it meanwhile need not
    /// serve it.
    pub serving: bool,
}

impl Device {
    pub fn new(config: DeviceConfig, shared: bool) -> Self {
        Self {
            rate_bps: config.rate_bps.max(1),
            delay: config.delay,
            port: config.port,
            shared,
            sink: config.sink,
            qdisc: config.qdisc,
            free: Instant::default(),
            entering: VecDeque::new(),
            arriving: VecDeque::new(),
            serving: false,
        }
    }

    /// Transmits a frame on the line. Returns when its first bit leaves and when
    /// its last bit reaches the far port.
    pub fn transmit(&mut self, now: Time, wire_bytes: u32) -> (Time, Time) {
        let start = self.free.or_now(now);
        let end = start.after(
            wire_bytes.saturating_sub(INTER_FRAME_GAP_BYTES),
            self.rate_bps,
        );
        self.free = start.after(wire_bytes, self.rate_bps);
        (start.time, end.time + self.delay)
    }

    /// Returns how long a frame occupies the line, rounded down.
    pub fn frame_span(&self, frame_bytes: u32) -> Span {
        let end = Instant::default().after(wire_bytes(frame_bytes), self.rate_bps);
        end.time.since(Time::START)
    }
}
