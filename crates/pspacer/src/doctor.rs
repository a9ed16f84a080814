// SPDX-License-Identifier: MIT OR Apache-2.0
//! `pspacer doctor`: what keeps this host from pacing well, and what mends it (docs/use/monitoring.md).

use std::io::Write;

use anyhow::Result;
use clap::Args;
use doctor::read::{Wanted, facts};
use doctor::{Facts, Finding, Severity, findings};
use draw::terminal::paragraph;
use linux_io::clock::{monotonic_ns, sleep_until};
use linux_io::links::links;
use serde::Serialize;
use tcpsp::Tc;
use tcpsp::account::Sent;
use tcpsp::ports::Port;

use crate::headings::{OUTPUT, RUN};
use crate::{output, terminal};

/// Least time over which what devices send is compared with what psp counts.
const ACCOUNT_NS: u64 = 300_000_000;

/// Arguments of `pspacer doctor`.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Device [default: those of the host's files and all with psp; if there is none, all NICs with a
    /// link]
    #[arg(value_name = "DEV")]
    pub device: Option<String>,
    /// Measure for a second: how late timers are, and whether the device sends what psp gives it
    #[arg(long = "try", help_heading = RUN)]
    pub is_tried: bool,
    /// One JSON object on standard output, nothing else there
    #[arg(long, help_heading = OUTPUT)]
    pub json: bool,
}

/// The JSON object that `--json` prints.
#[derive(Serialize)]
struct Json<'a> {
    format: &'static str,
    findings: &'a [Finding],
    facts: &'a Facts,
}

/// Examines the host. Returns `true` if nothing was found.
///
/// # Errors
/// When the device does not exist or the kernel's tables cannot be read.
pub fn main(args: &DoctorArgs) -> Result<bool> {
    let before = Reading::new();
    let mut facts = facts(&Wanted {
        device: args.device.clone(),
        others: of_files(),
        is_tried: args.is_tried,
        program_version: env!("CARGO_PKG_VERSION").to_owned(),
    })?;
    match host_apply::differences() {
        Ok(found) => {
            facts.absent_devices = found.absent;
            for device in &mut facts.devices {
                device.is_file_unread = found.untold.contains(&device.name);
            }
            for (name, changes) in found.changes {
                let mut devices = facts.devices.iter_mut();
                let device = devices.find(|device| device.name == name);
                match (changes, device) {
                    (Ok(changes), Some(device)) => device.file_changes = Some(changes),
                    (Ok(_), None) => {}
                    (Err(why), _) => facts.file_refusal = facts.file_refusal.or(Some(why)),
                }
            }
        }
        Err(error) => facts.file_refusal = Some(format!("{error:#}")),
    }
    read_reasons(&mut facts);
    if let Some(before) = before {
        before.accounts(&mut facts)?;
    }
    let findings = findings(&facts);
    let mut out = output::out();
    if args.json {
        let json = Json {
            format: "pspacer-doctor-1",
            findings: &findings,
            facts: &facts,
        };
        serde_json::to_writer_pretty(&mut out, &json)?;
        writeln!(out)?;
    } else {
        out.write_all(text(&facts, &findings).as_bytes())?;
    }
    Ok(findings.is_empty())
}

/// Returns the devices of this host's files. What is wrong with a file is a finding of its own.
fn of_files() -> Vec<String> {
    let devices = host_apply::devices_of(&[], None).unwrap_or_default();
    devices.into_iter().map(|device| device.name).collect()
}

/// What devices have sent at an instant.
struct Reading {
    time_ns: u64,
    ports: Vec<Port>,
}

impl Reading {
    /// What cannot be read is left out.
    fn new() -> Option<Self> {
        let time_ns = monotonic_ns().ok()?;
        let psps = backend::standing(&mut Tc::open().ok()?).ok()?;
        let ports = psps.into_iter().filter_map(|psp| psp.statistics().ok());
        Some(Self {
            time_ns,
            ports: ports.collect(),
        })
    }

    fn of(&self, device: &str) -> Option<Sent> {
        Sent::new(self.ports.iter().filter(|port| port.device == device))
    }

    /// Gives each device what it has sent since, for at least [`ACCOUNT_NS`].
    fn accounts(&self, facts: &mut Facts) -> Result<()> {
        if self.ports.is_empty() {
            return Ok(());
        }
        sleep_until(self.time_ns + ACCOUNT_NS)?;
        let Some(now) = Self::new() else {
            return Ok(());
        };
        for device in &mut facts.devices {
            let before = self.of(&device.name);
            let now = now.of(&device.name);
            device.account = now.zip(before).and_then(|(now, before)| now.since(&before));
        }
        Ok(())
    }
}

/// Reads why packets may not come to their classes. Without root that is not known.
fn read_reasons(facts: &mut Facts) {
    let (Ok(mut tc), Ok(links)) = (Tc::open(), links()) else {
        return;
    };
    for device in &mut facts.devices {
        let Ok(seen) = host_apply::observe(&mut tc, &device.name) else {
            continue;
        };
        if let Ok(reasons) = backend::reasons(&mut tc, &seen.port, &seen.facts, &links) {
            device.reasons = reasons;
        }
    }
}

/// Returns of each finding what, why, and the command, which is not folded.
fn text(facts: &Facts, findings: &[Finding]) -> String {
    let style = terminal::style();
    let mut text = String::new();
    for finding in findings {
        let severity = match finding.severity {
            Severity::Fault => "fault",
            Severity::Warning => "warning",
            Severity::Note => "note",
        };
        let whose = finding.device.as_deref().unwrap_or("host");
        text += &format!("{whose}: {severity} ({})\n", finding.id);
        text += &paragraph(&format!("{} {}", finding.what, finding.why), style);
        text += &format!("  $ {}\n\n", finding.command);
    }
    if let Some(timers) = facts.timers {
        let us = |ns: u64| ns.div_ceil(1000);
        text += &format!(
            "{} timers: median {} µs late, one of a hundred {} µs, the latest {} µs.\n",
            timers.timers,
            us(timers.median_ns),
            us(timers.p99_ns),
            us(timers.max_ns)
        );
    }
    let devices: Vec<_> = facts.devices.iter().map(|d| d.name.as_str()).collect();
    let devices = if devices.is_empty() {
        "no device".to_owned()
    } else {
        devices.join(", ")
    };
    let count = match findings.len() {
        0 => "nothing was found".to_owned(),
        1 => "1 finding".to_owned(),
        count => format!("{count} findings"),
    };
    text + &format!("Looked at the host and {devices}: {count}.\n")
}
