// SPDX-License-Identifier: MIT OR Apache-2.0
//! A measured second: how late timers are, and whether the device sends what psp gives it.

use std::io;

use linux_io::clock::{monotonic_ns, sleep_until};
use tcpsp::ports::Port;

use crate::facts::{Lateness, Trial};

/// Timers of the second.
const TIMERS: u64 = 1000;
/// Time between two of them.
const EVERY_NS: u64 = 1_000_000;

/// Measures for a second how late timers are.
pub fn timers() -> io::Result<Lateness> {
    let start_ns = monotonic_ns()?;
    let mut late_ns = Vec::new();
    for i in 1..=TIMERS {
        let due_ns = start_ns + i * EVERY_NS;
        // A timer that is over already says nothing of the next one.
        if monotonic_ns()? >= due_ns {
            continue;
        }
        sleep_until(due_ns)?;
        late_ns.push(monotonic_ns()?.saturating_sub(due_ns));
    }
    Ok(lateness(late_ns))
}

/// Returns the quantiles of latenesses.
pub fn lateness(mut late_ns: Vec<u64>) -> Lateness {
    late_ns.sort_unstable();
    let at = |share: usize| {
        let index = (late_ns.len() * share / 100).min(late_ns.len().saturating_sub(1));
        late_ns.get(index).copied().unwrap_or(0)
    };
    Lateness {
        timers: late_ns.len(),
        median_ns: at(50),
        p99_ns: at(99),
        max_ns: late_ns.last().copied().unwrap_or(0),
    }
}

/// What is counted of a device at one instant.
#[derive(Clone, Debug)]
pub struct Instant {
    /// Its psp qdiscs.
    pub ports: Vec<Port>,
    /// Frames that the device counted as sent; `None` of a device that does not count.
    pub device_frames: Option<u64>,
}

/// Returns what happened on a device between two instants; `None` if it has no psp, does not
/// count, or its psp was made anew meanwhile.
pub fn between(device: &str, before: &Instant, after: &Instant) -> Option<Trial> {
    let mut trial = Trial {
        device_frames: after.device_frames?.checked_sub(before.device_frames?)?,
        ..Trial::default()
    };
    let of_device = |port: &&Port| port.device == device;
    let mut is_any = false;
    for port in after.ports.iter().filter(of_device) {
        let earlier = before
            .ports
            .iter()
            .find(|p| (p.index, p.handle) == (port.index, port.handle))?;
        let (now, then) = (&port.psp.stats, &earlier.psp.stats);
        trial.sent_frames += now.sent_frames.checked_sub(then.sent_frames)?;
        trial.gap_frames += now.gap_frames.checked_sub(then.gap_frames)?;
        trial.wire_stops += now.wire_stops.checked_sub(then.wire_stops)?;
        is_any = true;
    }
    is_any.then_some(trial)
}
