// SPDX-License-Identifier: MIT OR Apache-2.0
//! `pspacer verify`: whether the frames that leave were counted by the classes that the file gives
//! them (docs/use/verify.md).

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result, anyhow, ensure};
use clap::Args;
use draw::terminal::paragraph;
use host_apply::ApplyArgs;
use linux_io::links::{links, named};
use serde::Serialize;
use tcpsp::Tc;
use verify::live::{Wanted, verify};
use verify::report::{ClassReport, Report, State};

use crate::headings::{OUTPUT, RUN};
use crate::{output, terminal, values};

/// Packets a second of a processor that are looked at one by one.
const BUDGET: u32 = 100_000;

/// Arguments of `pspacer verify`.
#[derive(Debug, Args)]
pub struct VerifyArgs {
    /// A device of the files [default: all], and files of the host, whose names have a `/` or end in
    /// `.toml` [default: /etc/pspacer/*.toml]
    #[arg(value_name = "DEV|FILE")]
    pub words: Vec<String>,
    /// How long to look
    #[arg(long = "for", value_name = "TIME", default_value = "10s", value_parser = values::some_time,
        help_heading = RUN)]
    pub time: u64,
    /// Packets a second of a processor that are looked at one by one; of more, a sample
    #[arg(long, value_name = "PACKETS", default_value_t = BUDGET,
        value_parser = clap::value_parser!(u32).range(1000..), help_heading = RUN)]
    pub budget: u32,
    /// One JSON object on standard output, nothing else there
    #[arg(long, help_heading = OUTPUT)]
    pub json: bool,
}

/// The JSON object that `--json` prints.
#[derive(Serialize)]
struct Json<'a> {
    format: &'static str,
    is_well: bool,
    devices: &'a [Report],
}

/// Looks at the devices, one after the other. Returns `true` if nothing is wrong.
///
/// # Errors
/// A fault in a file, no psp, or no permission.
pub fn main(args: &VerifyArgs) -> Result<bool> {
    let is_file = |word: &&String| word.contains('/') || word.ends_with(".toml");
    let (files, names): (Vec<_>, Vec<_>) = args.words.iter().partition(is_file);
    ensure!(names.len() < 2, "{}: expected one device", names.len());
    let files: Vec<PathBuf> = files.into_iter().map(PathBuf::from).collect();
    let device = names.first().map(|name| name.as_str());
    let reports = look(&files, device, (args.time, args.budget))?;
    let is_well = reports.iter().all(Report::is_well);
    let mut out = output::out();
    if args.json {
        let json = Json {
            format: "pspacer-verify-1",
            is_well,
            devices: &reports,
        };
        serde_json::to_writer_pretty(&mut out, &json)?;
        writeln!(out)?;
    } else {
        for report in &reports {
            out.write_all(text(report).as_bytes())?;
        }
    }
    Ok(is_well)
}

/// Looks for so long at the devices that `apply` has set up by these files, and notes what is
/// wrong. Returns `true` if nothing is.
pub fn after_apply(args: &ApplyArgs, time_ns: u64) -> Result<bool> {
    let chosen = &args.chosen;
    let reports = look(&chosen.files, chosen.device.as_deref(), (time_ns, BUDGET))?;
    let bad: Vec<_> = reports.iter().filter(|report| !report.is_well()).collect();
    for report in &bad {
        output::note(&text(report));
    }
    Ok(bad.is_empty())
}

/// Looks at the devices of files, one after the other, each for a time in ns, at so many packets a
/// second one by one.
fn look(files: &[PathBuf], device: Option<&str>, of: (u64, u32)) -> Result<Vec<Report>> {
    let mut tc = Tc::open()?;
    let mut reports = Vec::new();
    for device in host_apply::devices_of(files, device)? {
        let links = links().context("the kernel's table of devices")?;
        let link = named(&links, &device.name);
        let link = link.ok_or_else(|| anyhow!("{}: no such device", device.name))?;
        let observed = host_apply::observe(&mut tc, &device.name)?;
        let (facts, port) = (&observed.facts, &observed.port);
        let reasons = backend::reasons(&mut tc, port, facts, &links)?;
        let wanted = Wanted {
            time_ns: of.0,
            frames_per_s: of.1,
        };
        let report = verify(&mut tc, &device, &links, link, reasons, wanted);
        reports.push(report?);
    }
    Ok(reports)
}

fn text(report: &Report) -> String {
    let style = terminal::style();
    let time = units::display::time(report.time_ns as f64 / 1e9);
    let mut text = format!(
        "{}: {} packets in {time}, {:.1} % of them looked at, {} lost\n",
        report.device,
        report.packets,
        report.share * 100.0,
        report.lost
    );
    for amiss in &report.amiss {
        text += &format!("  FAULT, {amiss}\n");
    }
    for class in &report.classes {
        text += &format!(
            "  {}: {}; {} frames match, {} counted, {} seen{}\n",
            class.name,
            said(class),
            class.matched.frames,
            class.counted_frames,
            units::display::rate(class.seen_bps as f64),
            class.burst_bytes.map_or_else(String::new, |bytes| {
                format!(", bursts of {bytes} bytes at most")
            })
        );
        for why in &class.why {
            text += &paragraph(&format!("Why: {why}."), style);
        }
        for rule in &class.rules {
            let line = format!(
                "{} frames match {}, such as {}.",
                rule.frames,
                rule.rule,
                rule.example.words()
            );
            text += &paragraph(&line, style);
        }
    }
    text
}

fn said(class: &ClassReport) -> String {
    match class.state {
        State::Well => "well".to_owned(),
        State::Missing => {
            let sure = class.matched.frames.saturating_sub(class.not_asked.frames);
            format!(
                "FAULT, {} frames missing",
                sure.saturating_sub(class.counted_frames)
            )
        }
        State::Foreign => {
            let more = class.counted_frames.saturating_sub(class.matched.frames);
            format!("FAULT, {more} frames that do not match")
        }
        State::NotAsked => "its frames cannot be told without their sockets".to_owned(),
    }
}
