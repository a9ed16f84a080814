// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ends a run in which simulated time stands still.

use units::clock::Time;

/// Events that one instant may have: wake-ups of event sources, packets that queues
/// take, and decisions of queues. Of the scenarios in experiments/, pspacer-96-flows
/// has the most at one instant: 88,033, when its flows fill their socket buffers. The
/// limit is 200 times as many, which take a second.
const EVENTS_MAX: u64 = 20_000_000;

/// Simulated time stands still: one instant has more than [`EVENTS_MAX`] events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "simulated time stands still at {at}: more than {EVENTS_MAX} events at this instant, the last \
     of them at device {device} ({qdisc})"
)]
pub struct Standstill {
    pub at: Time,
    /// The number of the device that had the last of these events.
    pub device: usize,
    /// The name that tc has for the device's queueing discipline.
    pub qdisc: &'static str,
}

/// Counts the events of an instant.
#[derive(Debug, Default)]
pub(super) struct EventCount {
    at: Time,
    events: u64,
    exceeded: Option<Standstill>,
}

impl EventCount {
    /// Counts an event at `now` of the device with this number and queueing
    /// discipline.
    pub(super) fn add(&mut self, now: Time, device: usize, qdisc: &'static str) {
        if now > self.at {
            self.at = now;
            self.events = 0;
        }
        self.events += 1;
        if self.events > EVENTS_MAX && self.exceeded.is_none() {
            self.exceeded = Some(Standstill {
                at: self.at,
                device,
                qdisc,
            });
        }
    }

    /// Returns whether an instant had too many events: the run must end.
    pub(super) fn is_exceeded(&self) -> bool {
        self.exceeded.is_some()
    }

    /// Returns an error if an instant had too many events.
    pub(super) fn check(&self) -> Result<(), Standstill> {
        self.exceeded.map_or(Ok(()), Err)
    }
}
