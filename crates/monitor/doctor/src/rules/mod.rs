// SPDX-License-Identifier: MIT OR Apache-2.0
//! The rules: each looks at facts and says what it finds.

mod device;
mod host;
mod launch;
mod psp;

use crate::facts::{Device, Facts};
use crate::finding::Finding;

/// Rules about the host.
const HOST: &[fn(&Facts) -> Option<Finding>] = &[
    host::module,
    host::module_version,
    host::kernel,
    host::timer_resolution,
    host::clocksource,
    host::idle_states,
    host::late_timers,
    host::paced_sockets,
];

/// Rules about a device.
const DEVICE: &[fn(&Facts, &Device) -> Option<Finding>] = &[
    device::link,
    device::not_paced,
    device::queues_not_paced,
    device::no_wire,
    device::line_rate,
    device::duplex,
    device::held_by_pause,
    device::queue_limit,
    device::bursts,
    device::inner_pacing,
    launch::unused,
    launch::by_timer,
    launch::no_clock,
    launch::not_in_kernel,
    launch::software,
    psp::dropped_gap_frames,
    psp::pause_replaced,
    psp::verdict,
    psp::lost_gap_frames,
    psp::slow_wire,
    psp::fast_line,
    psp::wire_stops,
    psp::oversubscribed,
    psp::drops,
    psp::unclassified,
    psp::gap_memory,
];

/// Judges a host: the worst findings first, those of the host before those of devices.
#[must_use]
pub fn findings(facts: &Facts) -> Vec<Finding> {
    let mut found: Vec<_> = HOST.iter().filter_map(|rule| rule(facts)).collect();
    for device in &facts.devices {
        found.extend(DEVICE.iter().filter_map(|rule| rule(facts, device)));
    }
    found.sort_by_key(|finding| finding.severity);
    found
}
