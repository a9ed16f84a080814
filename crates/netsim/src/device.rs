// SPDX-License-Identifier: MIT OR Apache-2.0
//! A device: a queue, the line it sends on, and what is on its way to the far
//! host.

use std::collections::VecDeque;

use units::clock::{Span, Time};
use units::ethernet::{INTER_FRAME_GAP_BYTES, wire_bytes};

use crate::packet::Packet;
use crate::qdisc::Qdisc;
use crate::rate_arithmetic::Instant;

/// What a device is made of.
#[derive(Debug)]
pub struct DeviceConfig {
    /// Line rate, above 0.
    pub rate_bps: u64,
    /// Propagation.
    pub delay: Span,
    /// The port at the far end, by number; several devices of one network may
    /// send into the same.
    pub port: Option<usize>,
    /// The far end counts and discards data frames.
    pub sink: bool,
    /// Where packets wait for the line.
    pub qdisc: Qdisc,
}

/// A frame on the line, before its fate at a shared port is known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entering {
    pub start: Time,
    /// Last bit at the far port.
    pub at: Time,
    pub wire_bytes: u32,
    /// `None`: a gap frame.
    pub packet: Option<Packet>,
}

#[derive(Debug)]
pub(crate) struct Device {
    pub rate_bps: u64,
    pub delay: Span,
    pub port: Option<usize>,
    /// Another device sends into the port too.
    pub shared: bool,
    pub sink: bool,
    pub qdisc: Qdisc,
    /// When the line becomes free.
    pub free: Instant,
    /// On their way, by their arrival at the port (shared ports only).
    pub entering: VecDeque<Entering>,
    /// On their way, by their arrival at the far host.
    pub arriving: VecDeque<(Time, Packet)>,
    /// Its queue is being served: who fills it need not.
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

    /// Gives a frame to the line, which is free: when its first bit leaves, and
    /// when its last bit is at the far port.
    pub fn transmit(&mut self, now: Time, wire_bytes: u32) -> (Time, Time) {
        let start = self.free.or_now(now);
        let end = start.after(
            wire_bytes.saturating_sub(INTER_FRAME_GAP_BYTES),
            self.rate_bps,
        );
        self.free = start.after(wire_bytes, self.rate_bps);
        (start.time, end.time + self.delay)
    }

    /// How long a frame takes on the line, rounded down.
    pub fn frame_span(&self, frame_bytes: u32) -> Span {
        let end = Instant::default().after(wire_bytes(frame_bytes), self.rate_bps);
        end.time.since(Time::START)
    }
}
