// SPDX-License-Identifier: MIT OR Apache-2.0
//! `pspacer stalls`: tells why transfers stalled, from captures of them.

mod files;
mod outputs;
mod qlogs;

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use capture::choice::{Choice, Moment};
use capture::expression::Expression;
use capture::selector::Selector;
use clap::Args;
use linux_io::signals::Signals;
use stall::captures::{CaptureResults, read, worst_first};
use stall::files::follow::{Input, Plan, follow};
use stall::files::{annotate, json, two_ends};
use stall::follow::Limits;

use crate::headings::{FILTERS, OUTPUT, RUN};
use crate::output;
use crate::values;

/// Arguments of `pspacer stalls`.
#[derive(Debug, Args)]
pub struct StallsArgs {
    /// Captures (pcap or pcapng, also gzip or zstd packed); of several, such as
    /// those of a rotated capture, the packets are merged in order of time. "-"
    /// is standard input. Or qlogs of QUIC connections (.qlog, .sqlog), as one
    /// of their ends wrote them
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Only these connections: conditions and ends as for measure, as in "dst 10.1.0.0/16 port 80"
    /// or "10.1.1.1 10.1.2.1:80"; or a number in the list; may be repeated
    #[arg(long, value_name = "FILTER|ENDS|N", alias = "connection", help_heading = FILTERS)]
    pub flow: Vec<Selector>,
    /// Shortest stall, as in 50ms. It does two things: a pause that is long for the round trip is
    /// a stall from this length on [default: 20ms, or 200ms where the round trip is not known],
    /// and shorter stalls of every kind are left out of the sentences, the sums and the list
    #[arg(long, value_name = "TIME", value_parser = values::time, help_heading = FILTERS)]
    pub min_duration: Option<u64>,
    /// Only packets from this time on: seconds since the capture's start as in 12.5, or a time
    /// as in 2026-11-23T02:19:57.5Z (RFC 3339)
    #[arg(long, value_name = "TIME", help_heading = FILTERS)]
    pub from: Option<Moment>,
    /// Only packets before this time, given as for --from
    #[arg(long, value_name = "TIME", help_heading = FILTERS)]
    pub to: Option<Moment>,
    /// Only packets that a capture filter chooses, as in "host 10.1.1.1 and tcp port 80"
    /// (pcap-filter(7): host, net, port, portrange, protocols, ether host, vlan, less, greater;
    /// and, or, not); it sees the outermost headers
    #[arg(long, value_name = "EXPRESSION", help_heading = FILTERS)]
    pub filter: Option<Expression>,
    /// List the worst N connections; the sums count all
    #[arg(long, value_name = "N", help_heading = FILTERS)]
    pub top: Option<usize>,
    /// Every connection and every stall; else the worst of each. The sum by cause
    /// counts all, listed or not
    #[arg(long, help_heading = OUTPUT)]
    pub all: bool,
    /// One JSON object on standard output, nothing else there
    #[arg(long, help_heading = OUTPUT)]
    pub json: bool,
    /// Instead of the list, print what the verdict of stall N of it follows from: what each cause
    /// predicts, and whether that held, was refuted or could not be asked
    #[arg(long, value_name = "N", conflicts_with_all = ["json", "all", "top", "follow"],
        help_heading = OUTPUT)]
    pub explain: Option<u64>,
    /// Also write a page with the worst connection (or the one named by
    /// --flow) drawn: sequence numbers, flight, window and throughput
    /// over time
    #[arg(long, value_name = "OUT.html", help_heading = OUTPUT)]
    pub report: Option<PathBuf>,
    /// Interval of the throughput in the page, as in 10ms [default: about 200 of them]
    #[arg(long, value_name = "TIME", value_parser = values::some_time, help_heading = OUTPUT)]
    pub interval: Option<u64>,
    /// Also write a copy of the capture, as pcapng, whose packets carry the findings as comments
    #[arg(long, value_name = "OUT.pcapng", help_heading = OUTPUT)]
    pub annotate: Option<PathBuf>,
    /// A capture of the same connections from their other end: its packets are paired with those
    /// of FILE, which places losses, gives one-way delays, and proves causes
    #[arg(long, value_name = "FILE", conflicts_with = "follow", help_heading = RUN)]
    pub other_end: Option<PathBuf>,
    /// Read FILE while it is written, and print each stall as a line of JSON when it is over: FILE
    /// is "-", a file that grows, or what tcpdump -w was given, whose files of -C, -W and -G are
    /// read one after the other; ends at Ctrl-C, or with standard input
    #[arg(long, help_heading = RUN,
        conflicts_with_all = ["flow", "top", "all", "report", "annotate"])]
    pub follow: bool,
    /// Exit with 3 if a stall was found, for scripts
    #[arg(long, help_heading = RUN)]
    pub exit_code: bool,
}

impl StallsArgs {
    /// Returns what is wrong with the arguments together.
    pub fn fault(&self) -> Option<String> {
        let is_range = |(from, to): (Moment, Moment)| from.is_at_or_after(to) != Some(true);
        let has_stdin = self.files.iter().any(|path| path.as_os_str() == "-");
        let fault = if has_stdin && self.files.len() > 1 {
            "- cannot be merged with files: standard input is read once"
        } else if has_stdin && self.other_end.is_some() {
            "--other-end reads the capture twice: expected a file instead of -"
        } else if has_stdin && self.report.is_some() {
            "--report reads the capture twice: expected a file instead of -"
        } else if let Some(fault) = qlogs::fault(&self.files, &self.of_packets()) {
            return Some(fault);
        } else if self.annotate.is_some() && (has_stdin || self.files.len() > 1) {
            "--annotate copies one capture: expected one FILE; mergecap merges several"
        } else if self.follow && self.files.len() > 1 {
            "--follow reads one ring of files: expected one FILE"
        } else if !self.from.zip(self.to).is_none_or(is_range) {
            "--from is not before --to: expected an earlier time"
        } else {
            return outputs::fault(&self.inputs(), &self.outputs());
        };
        Some(fault.to_owned())
    }

    /// Returns the files that are read.
    fn inputs(&self) -> Vec<&Path> {
        let files = self.files.iter().chain(&self.other_end);
        files.map(PathBuf::as_path).collect()
    }

    /// Returns the files that are written, with their options.
    fn outputs(&self) -> Vec<(&'static str, &Path)> {
        let report = self.report.as_deref().map(|path| ("--report", path));
        let annotate = self.annotate.as_deref().map(|path| ("--annotate", path));
        report.into_iter().chain(annotate).collect()
    }

    /// Returns the options that are for captures alone, and whether each was given.
    fn of_packets(&self) -> [(&'static str, bool); 9] {
        [
            ("--flow", !self.flow.is_empty()),
            ("--from", self.from.is_some()),
            ("--to", self.to.is_some()),
            ("--filter", self.filter.is_some()),
            ("--report", self.report.is_some()),
            ("--annotate", self.annotate.is_some()),
            ("--other-end", self.other_end.is_some()),
            ("--follow", self.follow),
            ("--explain", self.explain.is_some()),
        ]
    }

    fn choice(&self) -> Choice {
        Choice {
            from: self.from,
            to: self.to,
            filter: self.filter.clone(),
        }
    }
}

/// Analyses the captures and prints the results. Returns `false` if `--exit-code` was given and a
/// stall was found.
///
/// # Errors
/// When a file cannot be read at all, there is no TCP in the files, no connection matches, or an
/// output cannot be written. A file that is damaged further on is analysed up to the damage.
pub fn main(args: &StallsArgs) -> Result<bool> {
    if args.follow {
        return followed(args);
    }
    if args.files.iter().any(|path| qlogs::is_qlog(path)) {
        let found = qlogs::read(&args.files, args.min_duration)?;
        qlogs::print(&found, args.json, args.all, args.top)?;
        let has_stall = found.connections.iter().any(|c| !c.stalls.is_empty());
        return Ok(!(args.exit_code && has_stall));
    }
    let mut found = analyse(args, None)?;
    found.most = args.top;
    if let Some(path) = &args.other_end {
        let other = std::slice::from_ref(path);
        // Its clock is its own: --from and --to are the first capture's.
        let choice = || Choice {
            filter: args.filter.clone(),
            ..Choice::default()
        };
        let mut ends = files::read(&args.files, args.choice(), |near| {
            files::read(other, choice(), |far| two_ends(near, far))
        })?;
        let far = files::read(other, choice(), |segments| {
            Ok(read(segments, Vec::new(), args.min_duration, None))
        })?;
        ends.prove(&mut found.analysis, &far.analysis);
        found.two_ends = Some(ends);
    }
    found.shown = worst_first(&found.analysis, &args.flow);
    for note in found.notes() {
        output::note(&format!("pspacer: {note}"));
    }
    if found.shown.is_empty() && !args.flow.is_empty() {
        bail!(
            "no connection matches --flow; there are {}, as \"pspacer stalls --all\" lists them",
            found.analysis.connections.len()
        );
    }
    if let Some(path) = &args.report {
        let page = draw(args, &mut found)?;
        psp_files::write::replace(path, page)
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    if let (Some(path), [capture]) = (&args.annotate, args.files.as_slice()) {
        annotate::write(capture, path, &found)?;
    }
    let mut out = std::io::BufWriter::new(output::out());
    let style = crate::terminal::style();
    if let Some(number) = args.explain {
        let all = found.analysis.connections.iter().flat_map(|c| &c.stalls);
        let stalls = all.clone().count();
        let Some(stall) = all.into_iter().find(|stall| stall.number == Some(number)) else {
            bail!("--explain {number}: expected the number of a stall, from 1 to {stalls}");
        };
        stall::report::explain::write(&mut out, stall, style)?;
    } else if args.json {
        json::write(&mut out, &found)?;
    } else {
        stall::report::text::write(&mut out, &found, args.all, style)?;
    }
    out.flush()?;
    let stalls = |i: &usize| found.analysis.connections[*i].stalls.len();
    Ok(!args.exit_code || found.shown.iter().map(stalls).sum::<usize>() == 0)
}

/// Follows the captures until they are over, or a signal comes.
fn followed(args: &StallsArgs) -> Result<bool> {
    let signals = Signals::block()?;
    let plan = Plan {
        choice: args.choice(),
        min_stall_ns: args.min_duration,
        limits: Limits::default(),
    };
    let mut out = std::io::BufWriter::new(output::out());
    let input = Input::new(&args.files[0]);
    let stalls = follow(input, plan, &mut out, || Ok(signals.came()?))?;
    Ok(!args.exit_code || stalls == 0)
}

/// Reads all files once. `history_of` is the connection whose events are kept.
fn analyse(args: &StallsArgs, history_of: Option<usize>) -> Result<CaptureResults> {
    let names = args.files.iter().map(|p| p.display().to_string()).collect();
    let found = files::read(&args.files, args.choice(), |segments| {
        Ok(read(segments, names, args.min_duration, history_of))
    })?;
    if found.counts.segments == 0 {
        let why = found.damages.first();
        let mut why = why.map_or(String::new(), |(name, d)| format!("; {name}: {d}"));
        for note in found.counts.notes() {
            why += &format!("; {note}");
        }
        if found.counts.left_out > 0 {
            why += "; --from, --to or --filter leave packets out";
        }
        if !found.insides.is_empty() && found.counts.packets > 0 {
            why = format!(" ({}){why}", found.insides);
        }
        bail!("no TCP segment among {} packets{why}", found.counts.packets);
    }
    Ok(found)
}

/// Returns the page, in which the first of the listed connections is drawn. A second reading of the
/// files keeps its events.
fn draw(args: &StallsArgs, found: &mut CaptureResults) -> Result<String> {
    if let Some(&index) = found.shown.first() {
        let again = analyse(args, Some(index))?;
        let history = again.analysis.connections.into_iter().nth(index);
        if let Some(connection) = found.analysis.connections.get_mut(index) {
            connection.history = history.and_then(|c| c.history);
        }
    }
    Ok(stall::report::page::html(found, args.interval))
}
