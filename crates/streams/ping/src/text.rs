// SPDX-License-Identifier: MIT OR Apache-2.0
//! The text that people read, in the manner of ping(8).

use std::fmt::Write;

use units::display::{count, number, short};
use units::time::NS_PER_MS;

use crate::delays::Summary;
use crate::run::{Answer, Done, Plan};
use crate::statistics::Outcome;

/// Returns the first line.
pub fn head(plan: &Plan) -> String {
    format!(
        "PING {}: {} bytes every {}{}",
        plan.address,
        count(plan.size_bytes as u64),
        units::display::time(plan.period_ns as f64 / 1e9),
        if plan.one_way {
            ", round trip and one way"
        } else {
            ", round trip"
        }
    )
}

pub fn line(plan: &Plan, answer: &Answer) -> String {
    let mut line = format!(
        "{} bytes from {}: seq={}",
        count(answer.bytes as u64),
        plan.address.ip(),
        answer.sequence
    );
    // Writing to a String cannot fail.
    let _ = match answer.outcome {
        Outcome::Answer {
            round_trip_ns,
            one_way_ns,
        } => {
            let one_way = one_way_ns.map(|ns| format!(" one-way={} ms", ms(ns)));
            let one_way = one_way.unwrap_or_default();
            write!(line, " time={} ms{one_way}", ms(round_trip_ns))
        }
        Outcome::Duplicate => write!(line, " (DUP!)"),
        Outcome::Stranger => write!(line, " (not of this run)"),
    };
    line
}

/// Returns the summary at the end.
pub fn summary(plan: &Plan, done: &Done) -> String {
    let results = &done.results;
    let c = &results.counts;
    let mut out = format!("\n--- {} pspacer ping statistics ---\n", plan.address);
    let loss = match c.sent {
        0 => 0.0,
        sent => c.lost as f64 * 100.0 / sent as f64,
    };
    let _ = writeln!(
        out,
        "{} probes sent, {} received, {} % lost, {} duplicates, {} reordered",
        count(c.sent),
        count(c.received),
        short(loss, 4),
        count(c.duplicates),
        count(c.reordered),
    );
    for (number, what) in [
        (c.unsent, "probes were not taken by the kernel"),
        (
            c.overrun,
            "packets found no room in this host's socket: lost here, not on the way",
        ),
        (c.strangers, "packets were answers to nothing of this run"),
        (
            c.implausible,
            "one-way delays were below 0: the clocks disagree",
        ),
    ] {
        if number > 0 {
            let _ = writeln!(out, "{} {what}", count(number));
        }
    }
    for (name, summary) in [
        ("round trip", &results.round_trip),
        ("one way", &results.one_way),
        ("with wait", &results.one_way_with_wait),
        ("way back", &results.way_back),
        ("sent late", &results.send_late),
    ] {
        if let Some(summary) = summary {
            out.push_str(&row(name, summary));
        }
    }
    if let Some(round_trip) = &results.round_trip {
        let worst = round_trip.max_sequence;
        let _ = writeln!(out, "worst round trip: seq={worst}");
    }
    let _ = writeln!(
        out,
        "timestamps: {} of {} round trips by the kernel at both ends (SO_TIMESTAMPING, software), \
         the others by this program",
        count(c.kernel_stamped),
        count(c.received)
    );
    let _ = writeln!(out, "sender: {}", done.scheduling);
    if done.clock_step_ns > CLOCK_STEP_NS {
        let step = ms(done.clock_step_ns);
        let _ = writeln!(
            out,
            "the clock was set by {step} ms meanwhile: delays may be wrong by that"
        );
    }
    if let Some(above) = done.above {
        let _ = writeln!(
            out,
            "stopped: seq={} took {} ms, above {} ms",
            above.sequence,
            ms(above.round_trip_ns),
            ms(plan.stop_above_ns.unwrap_or(0))
        );
    }
    out
}

/// Smallest change of the clock that is reported: a clock that is only slewed moves less in a
/// minute.
pub const CLOCK_STEP_NS: u64 = 30_000_000;

fn row(name: &str, s: &Summary) -> String {
    let values = [s.min_ns, s.p50_ns, s.p90_ns, s.p99_ns, s.p999_ns, s.max_ns].map(ms);
    format!(
        "{name:<10} min/p50/p90/p99/p99.9/max = {} ms\n",
        values.join("/")
    )
}

/// Prints milliseconds, to a microsecond.
fn ms(ns: u64) -> String {
    number(ns as f64 / NS_PER_MS as f64, 3)
}
