// SPDX-License-Identifier: MIT OR Apache-2.0
//! `pspacer predict`: predicts the delay over cascaded routers, from a β or from measured delays.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use clap::Args;
use lab_run::measured_delays;
use predict::answer::{Answer, Measured, Question, stages};
use predict::classes::Classes;
use predict::measured;
use predict::report::{plot, text, time as shown};
use predict::service::Given;

use crate::headings::{FILTERS, OUTPUT};
use crate::output;
use crate::values::Pair;
use crate::values::{level, pair, probability, rate, size, some_time, time};

/// Heading of the options that describe the chain of routers.
const CHAIN: &str = "Routers";

/// Arguments of `pspacer predict`.
#[derive(Debug, Args)]
pub struct PredictArgs {
    /// Measured delays: what "pspacer ping --json" prints, a table whose first line is
    /// delay_ns or delay_ns,count, or the result.json of a run with its folder; "-" is standard
    /// input
    #[arg(required_unless_present = "beta")]
    pub file: Option<PathBuf>,
    /// Of a run: what tells the cell, as in routers=2
    #[arg(
        long,
        value_name = "KEY=VALUE,...",
        value_delimiter = ',',
        value_parser = pair,
        requires = "file",
        help_heading = FILTERS
    )]
    pub cell: Vec<Pair>,
    /// Of a run: the flow or stream [default: the one whose delays are known]
    #[arg(long, value_name = "NAME", requires = "file", help_heading = FILTERS)]
    pub flow: Option<String>,
    /// Probability that a packet misses its period at a router: one for all, or one for each,
    /// as in 0.2,0.1; with --round-trip one more, for the host that reflects [default: estimated
    /// from FILE]
    #[arg(long, value_name = "P,...", value_delimiter = ',', value_parser = probability,
        help_heading = CHAIN)]
    pub beta: Vec<f64>,
    /// Routers one way [default: one for each value of --beta, or 1]
    #[arg(long, value_name = "N", help_heading = CHAIN)]
    pub hops: Option<usize>,
    /// Period of the routers
    #[arg(long, value_name = "TIME", value_parser = some_time, default_value = "10ms",
        help_heading = CHAIN)]
    pub period: u64,
    /// Between RT-IP and ITM threads of a router [default: a tenth of the period]
    #[arg(long, value_name = "TIME", value_parser = time, help_heading = CHAIN)]
    pub slot: Option<u64>,
    /// There and back: 2N + 1 stages, because the host that reflects may be late too
    #[arg(long, help_heading = CHAIN)]
    pub round_trip: bool,
    /// Delay of a packet that is not late [default: the least in FILE]
    #[arg(long, value_name = "TIME", value_parser = time, requires = "file",
        help_heading = FILTERS)]
    pub base: Option<u64>,
    /// Confidence of the interval of beta
    #[arg(long, value_name = "P", default_value_t = 0.95, value_parser = level,
        help_heading = CHAIN)]
    pub level: f64,
    /// Of the stream, for the bounds
    #[command(flatten, next_help_heading = "Stream")]
    pub stream: Stream,
    /// One JSON object on standard output, nothing else there
    #[arg(long, help_heading = OUTPUT)]
    pub json: bool,
    /// Also draw the distribution, measured beside predicted
    #[arg(long, value_name = "OUT.svg", help_heading = OUTPUT)]
    pub plot: Option<PathBuf>,
}

/// The stream and its reservations.
#[derive(Debug, Args)]
pub struct Stream {
    /// Rate of the stream [default: 1mbit; the bounds below depend on it only with --burst or
    /// --reserve]
    #[arg(long, value_name = "RATE", value_parser = rate)]
    pub rate: Option<u64>,
    /// What the stream sends at once, as in 1500b [default: what its rate gives in a period]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub burst: Option<u64>,
    /// What a router serves of the stream: one rate for all, or one for each stage
    /// [default: the stream's rate]
    #[arg(long, value_name = "RATE,...", value_parser = rate, value_delimiter = ',')]
    pub reserve: Vec<u64>,
    /// How late a router begins to serve it: one time for all, or one for each stage
    /// [default: the period and the slot]
    #[arg(long, value_name = "TIME,...", value_parser = time, value_delimiter = ',')]
    pub latency: Vec<u64>,
    /// Largest packet of the stream: with --latency, each stage but the last stores one before it
    /// forwards it [default: what the stream sends at once, at most 1500b]
    #[arg(long, value_name = "SIZE", value_parser = size, requires = "latency")]
    pub packet: Option<u64>,
}

/// Predicts the delay and prints it.
///
/// # Errors
/// When the file cannot be read or holds no delays, a value is out of its
/// range, or an output cannot be written.
pub fn main(args: &PredictArgs) -> Result<()> {
    let slot_ns = slot_ns(args);
    ensure!(
        slot_ns < args.period,
        "--slot: {} is not below the period of {}",
        shown(slot_ns as f64),
        shown(args.period as f64)
    );
    let answer = answer(args)?;
    if let Some(path) = &args.plot {
        let svg = plot(&answer).svg;
        psp_files::write::replace(path, svg)
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    let mut out = output::out();
    if args.json {
        serde_json::to_writer_pretty(&mut out, &answer)?;
        writeln!(out)?;
    } else {
        out.write_all(text(&answer, crate::terminal::style()).as_bytes())?;
    }
    Ok(())
}

fn answer(args: &PredictArgs) -> Result<Answer> {
    let hops = args.hops.unwrap_or_else(|| hops_of(args));
    let stages = stages(hops, args.round_trip)?;
    let classes = match &args.file {
        Some(path) => Some((path, classes(args, path, stages)?)),
        None => None,
    };
    ensure!(
        !args.beta.is_empty() || stages > 0,
        "--hops 0: nothing to estimate beta from; expected 1 or more"
    );
    let slot_ns = slot_ns(args);
    let given = Given {
        rate_bps: args.stream.rate,
        burst_bytes: args.stream.burst,
        reserve_bps: &args.stream.reserve,
        latency_ns: &args.stream.latency,
        packet_bytes: args.stream.packet,
    };
    let (stream, servers) = given.curves(args.period, slot_ns, stages)?;
    let question = Question {
        period_ns: args.period,
        slot_ns,
        hops,
        round_trip: args.round_trip,
        betas: &args.beta,
        level: args.level,
        stream,
        servers,
    };
    let measured = classes.map(|(path, classes)| Measured::new(path, classes));
    Ok(question.answer(measured)?)
}

/// Returns the slot, ns. The default is the router's: a tenth of the period.
fn slot_ns(args: &PredictArgs) -> u64 {
    args.slot.unwrap_or(args.period / 10)
}

fn hops_of(args: &PredictArgs) -> usize {
    match args.beta.len() {
        0 | 1 => 1,
        n if args.round_trip => n - 1,
        n => n,
    }
}

fn classes(args: &PredictArgs, path: &Path, stages: usize) -> Result<Classes> {
    let name = || path.display().to_string();
    let text = if path.as_os_str() == "-" {
        std::io::read_to_string(std::io::stdin())
    } else {
        psp_files::read::text(path)
    };
    let text = text.with_context(name)?;
    let cell: Vec<_> = args
        .cell
        .iter()
        .map(|pair| (pair.key.clone(), pair.value.clone()))
        .collect();
    let wanted = measured_delays::Wanted {
        cell: &cell,
        flow: args.flow.as_deref(),
        round_trip: args.round_trip,
    };
    let text = measured_delays::table(path, &text, &wanted)
        .with_context(name)?
        .unwrap_or(text);
    let delays = measured::read(&text, args.round_trip).with_context(name)?;
    Classes::new(&delays, args.period, args.base, stages).with_context(name)
}
