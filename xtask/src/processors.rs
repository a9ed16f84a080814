// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cargo xtask processors`: frames a second through qdiscs against the number of processors that
//! send, in a guest with several.

use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::Args;
use draw::table::Table;
use scenario::Kernel;
use units::display::number;
use vmlab::{QDISC_MODULES, ScriptSpec, run_script};

use crate::notes::Notes;

/// Limit of the guest's processor time.
const TIMEOUT: Duration = Duration::from_secs(3600);
/// What is measured unless the command says it.
const SHAPERS: [&str; 8] = [
    "mq-pfifo",
    "mq-shared",
    "mq-psp",
    "mq-fq",
    "mq-htb",
    "cake_mq",
    "psp",
    "htb",
];

/// Arguments of `cargo xtask processors`.
#[derive(Debug, Args)]
pub struct Processors {
    /// Processors of the guest; more than the machine has say nothing
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=8))]
    cpus: u32,
    /// How long each is measured, in seconds
    #[arg(long, value_name = "S", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=60))]
    seconds: u32,
    /// mq-shared (classes of the device), mq-psp, mq-htb, mq-fq, mq-pfifo, cake_mq, psp or htb; all by default
    shapers: Vec<String>,
}

/// One measurement of `lab/tests/processors.sh`.
#[derive(Debug, PartialEq)]
struct Line<'a> {
    shaper: &'a str,
    senders: u32,
    frames_per_s: f64,
    dropped: f64,
    /// Acquisitions of spinlocks that found them taken, for each thousand frames.
    contended: f64,
}

impl<'a> Line<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let words: Vec<&str> = text.split(' ').collect();
        let [shaper, senders, numbers @ ..] = words.as_slice() else {
            return None;
        };
        let numbers: Vec<f64> = numbers.iter().flat_map(|n| n.parse()).collect();
        let [frames, ns, dropped, contended, meanwhile] = numbers.as_slice() else {
            return None;
        };
        Some(Self {
            shaper,
            senders: senders.parse().ok()?,
            frames_per_s: frames * 1e9 / ns,
            dropped: *dropped,
            contended: contended * 1e3 / meanwhile.max(1.0),
        })
    }
}

/// Measures, and returns the table.
///
/// # Errors
/// If the guest fails, or a shaper is unknown.
pub fn main(args: &Processors) -> Result<String> {
    let mut lab = vmlab::Lab::find()?;
    lab.cpus = args.cpus;
    let script = lab.sources.path().join("lab/tests/processors.sh");
    let shapers: Vec<&str> = match args.shapers.as_slice() {
        [] => SHAPERS.to_vec(),
        given => given.iter().map(String::as_str).collect(),
    };
    let unknown = shapers.iter().find(|shaper| !SHAPERS.contains(shaper));
    ensure!(
        unknown.is_none(),
        "shaper {}: expected one of {}",
        unknown.unwrap_or(&""),
        SHAPERS.join(", ")
    );
    let command = format!(
        "sh /processors.sh {} {} {}",
        args.cpus,
        args.seconds,
        shapers.join(" ")
    );
    let spec = ScriptSpec {
        // cake_mq is there.
        kernel: Kernel::V7,
        modules: QDISC_MODULES,
        files: &[(&script, "/processors.sh")],
        command: &command,
        seed: 1,
        timeout: TIMEOUT,
        out_dir: Path::new("out/processors"),
    };
    let ran = run_script(&lab, &spec, &Notes::default())?;
    ensure!(ran.status == 0, "{}", ran.output);
    table(&ran.output)
}

fn table(output: &str) -> Result<String> {
    let lines = output
        .lines()
        .map(|line| Line::parse(line).with_context(|| format!("the guest said: {line}")));
    let lines: Vec<Line<'_>> = lines.collect::<Result<_>>()?;
    let mut table = Table::default();
    table.text("shaper");
    table.number("senders", "");
    table.number("frames", "a second");
    table.number("ratio", "to one sender");
    table.number("dropped", "");
    table.number("contended locks", "a thousand frames");
    for line in &lines {
        let one = lines
            .iter()
            .find(|l| l.shaper == line.shaper && l.senders == 1);
        let ratio = one.map_or(f64::NAN, |one| line.frames_per_s / one.frames_per_s);
        table.rows.push(vec![
            line.shaper.to_owned().into(),
            line.senders.to_string().into(),
            number(line.frames_per_s, 0).into(),
            number(ratio, 2).into(),
            number(line.dropped, 0).into(),
            number(line.contended, 1).into(),
        ]);
    }
    let mut text = String::new();
    writeln!(
        text,
        "{}",
        draw::terminal::table(&table, draw::Style::PLAIN)
    )?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_rates() {
        let line = Line::parse("mq-psp 2 1000 500000000 7 30 300").unwrap();
        let expected = Line {
            shaper: "mq-psp",
            senders: 2,
            frames_per_s: 2000.0,
            dropped: 7.0,
            contended: 100.0,
        };
        assert_eq!(line, expected);
        for text in ["", "mq-psp 2", "mq-psp 2 1 2 3 4 x", "processors: no cable"] {
            assert_eq!(Line::parse(text), None, "{text}");
        }
        assert!(
            table("mq-psp 1 10 10 0 0 1\nmq-psp 2 19 10 0 0 1\n")
                .unwrap()
                .contains("1.90")
        );
    }
}
