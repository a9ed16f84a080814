// SPDX-License-Identifier: MIT OR Apache-2.0
//! `pspacer sim`: scenarios on the simulator.

mod isochronous;
mod merge;
pub mod senders;
mod shard;
mod sweep;
mod table;
mod transfers;

use senders::Senders;
use transfers::Outcome;

pub use shard::{Shard, seeds};

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result};
use capture::timeline::write_timeline;
use indicatif::{ProgressBar, ProgressStyle};
use metrics::curves::Curves;
use metrics::waits::timestamps_ps;
use netsim::record::Recorder;
use netsim::run::{FlowReport, Ran, run_cell};
use rayon::ThreadPoolBuilder;
use rayon::prelude::*;
use scenario::result::{CellResult, Engine};
use scenario::{Cell, FlowKind, Scenario, TcLine};
use serde_json::{Value, json};

use crate::cells::{self, Sent};
use crate::cli::{Run, Sim};
use crate::output;
use crate::results_dir::{ResultsDir, Writer};
use crate::runs::Finished;
use crate::terminal;

/// At most so many cells side by side.
const MOST_THREADS: usize = 1024;
/// Steps of a cell in the progress bar.
const CELL_STEPS: f64 = 100.0;

/// Runs a subcommand of `pspacer sim`; `false` if a bound did not hold.
pub fn main(sim: &Sim) -> Result<bool> {
    match sim {
        Sim::Run(args) => run_and_show(args),
        Sim::Sweep(args) => sweep::main(args).map(|()| true),
        Sim::Merge(args) => merge::main(args).map(|()| true),
    }
}

fn run_and_show(args: &Run) -> Result<bool> {
    let scenario = args.scenario()?;
    let out = args.out(&format!("{}-sim", scenario.name));
    run(&scenario, &out, args.jobs)?.show(args.json)
}

/// Whether only the simulator can run a scenario.
pub fn is_needed(scenario: &Scenario) -> bool {
    let mut flows = scenario.cells.iter().flat_map(|cell| &cell.flows);
    if isochronous::is_meant(scenario) {
        return true;
    }
    let is_modelled = flows.any(|flow| match &flow.kind {
        FlowKind::Tcp { stack, bytes, .. } => stack.is_some() || bytes.is_some(),
        FlowKind::Udp { on_off, .. } => on_off.is_some(),
        _ => false,
    });
    is_modelled || scenario.runs > 1 || own_qdisc(scenario).is_some()
}

/// The first line of tc about a qdisc that no kernel has.
pub fn own_qdisc(scenario: &Scenario) -> Option<&TcLine> {
    let mut lines = scenario.cells.iter().flat_map(|cell| &cell.tc);
    lines.find(|line| line.args.iter().any(|word| word == "cqf"))
}

/// Whether a cell has nothing that is not modelled.
pub fn can_run(cell: &Cell) -> bool {
    netsim::build::build(cell, 1).is_ok()
}

/// Refuses a scenario before anything of it is run.
fn check(scenario: &Scenario) -> Result<()> {
    for cell in &scenario.cells {
        netsim::build::build(cell, scenario.seed)
            .with_context(|| format!("cell {} of {}", cell.index, scenario.name))?;
    }
    transfers::check(scenario)
}

/// Runs a scenario into `out` and measures it.
pub fn run(scenario: &Scenario, out: &Path, jobs: Option<NonZeroUsize>) -> Result<Finished> {
    if isochronous::is_meant(scenario) {
        return isochronous::run(scenario, out, jobs);
    }
    check(scenario)?;
    let room = ResultsDir::open(out, Writer::Run)?;
    let begin = Instant::now();
    // At most 1000.
    let runs = usize::try_from(scenario.runs).unwrap_or(1).max(1);
    let count = scenario.cells.len() * runs;
    let bar = progress_bar(count as u64 * CELL_STEPS as u64, "simulating");
    let pieces = side_by_side(count, jobs, |index| {
        let (cell, run) = (&scenario.cells[index / runs], index % runs);
        let seed = scenario.seed.wrapping_add(run as u64);
        // The files are those of the first run.
        let out = (run == 0).then_some(&room);
        run_one(cell, seed, out, &bar)
            .with_context(|| format!("cell {} of {}, seed {seed}", cell.index, scenario.name))
    });
    bar.finish_and_clear();
    let mut pieces = pieces?.into_iter();
    let wall_s = begin.elapsed().as_secs_f64();
    let mut notes: Vec<String> = vec![];
    let (mut hops, mut simulated_s) = (0, 0.0);
    let (mut results, mut table, mut senders) = (vec![], vec![], vec![]);
    for cell in &scenario.cells {
        let mut outcomes = vec![];
        let mut first = None;
        for one in pieces.by_ref().take(runs) {
            hops += one.hops;
            simulated_s += (cell.duration_ns + cell.settle_ns) as f64 / 1e9;
            notes.extend(one.notes);
            outcomes.push(one.outcomes);
            first = first.or(one.measured);
        }
        let rows = transfers::rows(cell, &outcomes);
        if let Some((mut result, curves, records)) = first {
            transfers::judge(cell, &rows, &mut result);
            results.push((result, curves));
            senders.push(records);
        }
        table.extend(rows);
    }
    notes.sort();
    notes.dedup();
    for note in &notes {
        output::note(&format!("pspacer: {note}"));
    }
    let stats = json!({
        "wall_s": wall_s,
        "simulated_s": simulated_s,
        "speed": simulated_s / wall_s,
        "packet_hops": hops,
        "packet_hops_per_s": (hops as f64 / wall_s).round(),
        "not_modelled": notes,
    });
    let engine = (Engine::Netsim, String::new());
    let mut finished = Finished::write(scenario, engine, (results, table), &room, &stats)?;
    finished.plots = Senders::plots(senders);
    for plot in &finished.plots {
        room.write(&out.join(&plot.name), plot.svg.as_bytes())?;
    }
    Ok(finished)
}

/// What a run of a cell came to.
struct One {
    /// What was measured, if its files were written.
    measured: Option<(CellResult, Curves, Senders)>,
    outcomes: Vec<Outcome>,
    notes: Vec<String>,
    hops: u64,
}

/// Runs a cell; into `out`, if there is one, it writes the cell's folder as the
/// laboratory's guest leaves one.
fn run_one(cell: &Cell, seed: u64, out: Option<&ResultsDir>, bar: &ProgressBar) -> Result<One> {
    let mut told = 0;
    let ran = run_cell(cell, seed, out.is_some(), &mut |share| {
        // Between 0 and CELL_STEPS.
        let steps = (share * CELL_STEPS) as u64;
        bar.inc(steps.saturating_sub(told));
        told = told.max(steps);
    })?;
    let (notes, hops) = (ran.notes.clone(), ran.counts.frames);
    let outcomes = transfers::outcomes(cell, &ran);
    let measured = out.map(|out| measure(cell, ran, out)).transpose()?;
    Ok(One {
        measured,
        outcomes,
        notes,
        hops,
    })
}

/// Writes a cell's folder, and measures it.
fn measure(cell: &Cell, ran: Ran, out: &ResultsDir) -> Result<(CellResult, Curves, Senders)> {
    let dir = out.folder(&format!("cell-{}", cell.index))?;
    let reports = reports(cell, &ran);
    let senders = Senders::keep(cell, &ran.recorder, (out, &dir))?;
    let (sent, tcp) = recorded(cell, ran.recorder, Some((out, &dir)))?;
    let analysis = cells::analyse(cell, &sent, &tcp, (0, &[]))?;
    let (mut result, curves) = cells::keep(cell, (out, &dir), &sent, 0, analysis)?;
    result.flow_reports = reports;
    Ok((result, curves, senders))
}

/// What a recorder holds, as the measurements take it; written down too if
/// there is a folder for it.
fn recorded(
    cell: &Cell,
    recorder: Recorder,
    folder: Option<(&ResultsDir, &Path)>,
) -> Result<(Vec<Sent>, Vec<Vec<sender_log::sample::TcpSample>>)> {
    let mut sent = vec![];
    for (index, of) in recorder.sent.into_iter().enumerate() {
        let direction = Recorder::direction(index);
        let cable = &cell.cables[direction.cable];
        let name = format!("{}.{}", cable.name, direction.end);
        if let Some((out, dir)) = folder {
            let mut bytes = vec![];
            write_timeline(&mut bytes, &of.records)?;
            out.write(&dir.join(format!("timeline.{name}")), &bytes)?;
            let flows = of.flows.to_text();
            out.write(&dir.join(format!("flows.{name}")), flows.as_bytes())?;
            if cable.snap_bytes > 0 {
                out.write(&dir.join(format!("snap.{name}")), &of.snap)?;
            }
        }
        sent.push(Sent {
            direction,
            name,
            records: of.records,
            flows: of.flows,
            timestamps_ps: timestamps_ps(&of.snap, cable.snap_bytes as usize),
            snap: of.snap,
        });
    }
    let mut tcp = vec![];
    for (flow, of) in cell.flows.iter().zip(recorder.tcp) {
        if let (Some((out, dir)), false) = (folder, of.csv.is_empty()) {
            let path = dir.join(format!("flow-{}.tcp", flow.name));
            out.write(&path, of.csv.as_bytes())?;
        }
        tcp.push(of.samples);
    }
    Ok((sent, tcp))
}

/// What the ends of each flow know themselves.
fn reports(cell: &Cell, ran: &Ran) -> BTreeMap<String, Value> {
    let of = |report: &FlowReport| match &report.stream {
        None => json!({ "refused": report.refused }),
        Some(stream) => {
            let (sender, counters) = (&stream.sender, &stream.sender.counters);
            let mut value = json!({
                "refused": report.refused,
                "acked_bytes": sender.acked_bytes,
                "sent_bytes": sender.sent_bytes,
                "received_bytes": stream.received_bytes,
                "retransmits": counters.retransmits,
                "timeouts": counters.timeouts,
                "recoveries": counters.recoveries,
                "lost_retransmits": counters.lost_retransmits,
                "loss_probes": counters.loss_probes,
                "local_drops": counters.local_drops,
            });
            if let (Some(transfer), Some(fields)) = (stream.transfer, value.as_object_mut()) {
                let bps = sender.acked_bytes as f64 * 8.0 / transfer.as_s();
                fields.insert("transfer_s".into(), json!(transfer.as_s()));
                fields.insert("transfer_bps".into(), json!(bps.round()));
            }
            value
        }
    };
    let names = cell.flows.iter().map(|flow| flow.name.clone());
    names.zip(ran.flows.iter().map(of)).collect()
}

/// A bar on standard error, if that is a terminal.
fn progress_bar(length: u64, what: &str) -> ProgressBar {
    const TEMPLATE: &str = "{spinner} {msg:12} {bar:40} {percent:>3} % {eta:>5}";
    if terminal::is_quiet() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(length);
    // The template is a constant; the default is there if it is none.
    let style = ProgressStyle::with_template(TEMPLATE);
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar.set_message(what.to_owned());
    bar
}

/// Does `count` pieces of work, `jobs` at a time; the results in order. After
/// an error no other piece is begun.
fn side_by_side<T: Send>(
    count: usize,
    jobs: Option<NonZeroUsize>,
    work: impl Fn(usize) -> Result<T> + Sync + Send,
) -> Result<Vec<T>> {
    // 0: one for each core. More threads than work, or than any machine has cores, are a slip.
    let threads = jobs.map_or(0, |jobs| jobs.get().min(count.clamp(1, MOST_THREADS)));
    let pool = ThreadPoolBuilder::new().num_threads(threads).build()?;
    let pieces = (0..count).into_par_iter().with_max_len(1);
    pool.install(|| pieces.map(work).collect())
}
