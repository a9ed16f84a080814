// SPDX-License-Identifier: MIT OR Apache-2.0
//! `pspacer router`: forwards packets in user space, streams in time.

use std::fmt::Write as _;
use std::fs;
use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;
use router::Report;
use router::config::{Config, read};
use serde::Serialize;
use units::display::{count, time};

use crate::cli::{OUTPUT, RUN};
use crate::output;

/// Arguments of `pspacer router`.
#[derive(Debug, Args)]
pub struct RouterArgs {
    /// Devices, routes and streams, as TOML
    #[arg(value_name = "CONFIG.toml")]
    pub config: PathBuf,
    /// Only check the configuration, and say what each device may send in a period
    #[arg(long, help_heading = RUN)]
    pub check: bool,
    /// One JSON object on standard output at the end, nothing else there
    #[arg(long, conflicts_with = "check", help_heading = OUTPUT)]
    pub json: bool,
}

/// What `--json` prints.
#[derive(Serialize)]
struct Json<'a> {
    format: &'static str,
    #[serde(flatten)]
    report: &'a Report,
}

/// Forwards until SIGINT or SIGTERM, sends what is queued, and says what became
/// of all packets.
///
/// # Errors
/// When the configuration cannot be read or is refused, or a device cannot be used.
pub fn main(args: &RouterArgs) -> Result<()> {
    let name = || args.config.display().to_string();
    let text = fs::read_to_string(&args.config).with_context(name)?;
    let config = read(&text).with_context(name)?;
    let mut out = output::out();
    if args.check {
        out.write_all(budgets(&config).as_bytes())?;
        return Ok(());
    }
    let ready = || output::note("pspacer: routing; SIGINT or SIGTERM ends it");
    let report = router::run(&config, ready)?;
    if args.json {
        let json = Json {
            format: "pspacer-router-1",
            report: &report,
        };
        serde_json::to_writer_pretty(&mut out, &json)?;
        writeln!(out)?;
    } else {
        out.write_all(summary(&report).as_bytes())?;
    }
    Ok(())
}

/// What each device may send.
fn budgets(config: &Config) -> String {
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

fn summary(report: &Report) -> String {
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
