// SPDX-License-Identifier: MIT OR Apache-2.0
//! The text that `pspacer router` prints for people.

use std::fmt::Write as _;

use units::display::{count, time};

use crate::Report;
use crate::config::Config;

/// Returns the budget of each device.
pub fn budgets(config: &Config) -> String {
    let mut out = format!("period {}\n", time(config.period_ns as f64 / 1e9));
    for device in &config.devices {
        let reserved: u64 = config.reserve_bytes(device).iter().sum();
        // Writing to a String cannot fail.
        let _ = writeln!(
            out,
            "{}: {} bytes a period; {} reserved for {} streams, {} for best effort; io {}",
            device.name,
            count(device.budget_bytes),
            count(reserved),
            device.streams.len(),
            count(device.budget_bytes.saturating_sub(reserved)),
            device.io,
        );
    }
    out
}

/// Returns the counts of all packets.
pub fn summary(report: &Report) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    for stream in &report.streams {
        let c = stream.counts;
        let _ = writeln!(
            out,
            "stream {} by {}: {} sent, {} of them late, {} periods deferred, {} excess, {} dropped",
            stream.name,
            stream.device,
            count(c.sent),
            count(c.late),
            count(c.deferred),
            count(c.excess),
            count(c.dropped)
        );
    }
    for device in &report.devices {
        let c = device.counts;
        let _ = writeln!(
            out,
            "best effort by {}: {} sent, {} dropped",
            device.name,
            count(c.sent),
            count(c.dropped)
        );
        let _ = writeln!(out, "{}: {}", device.name, device.io);
    }
    let c = &report.counts;
    let _ = writeln!(out, "{} frames received", count(c.received));
    for (number, what) in [
        (c.not_ours, "to others, to many or to this host"),
        (c.invalid, "without a sound IPv4 header"),
        (
            c.oversize,
            "longer than a frame: switch segmentation off where they come from",
        ),
        (c.no_buffer, "without a free buffer, or longer than one"),
        (c.ttl, "without a hop left"),
        (c.too_long, "longer than the MTU towards the next hop"),
        (c.no_route, "without a route"),
        (c.no_neighbour, "whose next hop did not answer"),
        (c.icmp_sent, "senders told by ICMP"),
        (
            c.icmp_limited,
            "senders not told, because there were too many",
        ),
        (c.box_full, "without room between threads"),
        (c.send_failed, "not taken by the device"),
        (c.undelivered, "still queued at the end"),
        (c.periods_missed, "periods missed by a periodic thread"),
    ] {
        if number > 0 {
            let _ = writeln!(out, "{} {what}", count(number));
        }
    }
    for thread in &report.threads {
        let _ = writeln!(out, "{thread}");
    }
    out
}
