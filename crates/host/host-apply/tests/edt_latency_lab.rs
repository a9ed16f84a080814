// SPDX-License-Identifier: MIT OR Apache-2.0
//! How long a packet waits behind TCP flows of its class, in the laboratory's guest: a probe of
//! 58 bytes each 10 ms beside endless TCP flows.
//!
//! [`tables`] prints the tables of docs/decisions/host.md. `PSPACER_CELLS=FILE` measures other
//! cells with [`explore`], a line each as `tests/edt/latency.sh` reads it.

#![allow(clippy::print_stdout, reason = "tests say what they measured")]

use std::fmt::Write as _;
use std::fs;
use std::time::Duration;

use scenario::Kernel;
use testkit::guest::test_program;

use crate::guest::run_in_guest;

const MODULES: &[&str] = &[
    "wire",
    "sch_fq",
    "sch_ingress",
    "cls_bpf",
    "sch_psp",
    "sch_fq_codel",
    "veth",
    "tcp_bbr",
];
/// Cells of a guest.
const CELLS: usize = 4;

/// What was measured in a cell.
#[derive(Debug)]
struct Cell {
    /// The line that asked for it.
    asked: String,
    /// What left the device, in bit/s.
    sent_bps: f64,
    /// TCP segments, and how many of them were sent again.
    segments: u64,
    retransmitted: u64,
    /// Frames that departure times dropped and marked.
    dropped: u64,
    marked: u64,
    /// The probe's packets that left, and their waits.
    probes: u64,
    probes_due: f64,
    p50_ms: f64,
    p99_ms: f64,
    worst_ms: f64,
}

impl Cell {
    fn read(line: &str) -> Option<Self> {
        let (asked, measured) = line.split_once(" | ")?;
        let mut words = measured.split(' ');
        let [us, bytes, segments, retransmitted, dropped, marked] = [(); 6].map(|()| {
            words
                .next()
                .and_then(|word| word.parse::<u64>().ok())
                .unwrap_or(0)
        });
        let waits = words.next()?;
        let number = |key: &str| {
            let pair = waits.split(',').find_map(|pair| pair.strip_prefix(key));
            pair?.strip_prefix(':')?.parse::<f64>().ok()
        };
        Some(Self {
            asked: asked.to_owned(),
            sent_bps: bytes as f64 * 8e6 / us as f64,
            segments,
            retransmitted,
            dropped,
            marked,
            probes: number("frames").unwrap_or(0.0) as u64,
            // One each 10 ms; the first may be as late.
            probes_due: (us as f64 / 1e4).floor(),
            p50_ms: number("p50_ns").unwrap_or(f64::NAN) / 1e6,
            p99_ms: number("p99_ns").unwrap_or(f64::NAN) / 1e6,
            worst_ms: number("most_ns").unwrap_or(f64::NAN) / 1e6,
        })
    }

    fn waits(&self) -> String {
        format!(
            "{:.1} / {:.1} / {:.1}",
            self.p50_ms, self.p99_ms, self.worst_ms
        )
    }

    fn sent(&self) -> String {
        let percent = |part: f64, of: f64| 100.0 * part / of.max(1.0);
        format!(
            "{:.1}; {:.1}; {:.0}",
            self.sent_bps / 1e6,
            percent(self.retransmitted as f64, self.segments as f64),
            percent(
                (self.probes_due - self.probes as f64).max(0.0),
                self.probes_due
            ),
        )
    }
}

/// Measures cells in one guest.
fn measure(kernel: Kernel, cells: &[String]) -> Vec<Cell> {
    let folder = tempfile::tempdir().unwrap();
    let here = testkit::crate_folder();
    let (mut files, command) = test_program(folder.path(), "edt_bpf_lab::in_guest");
    let list = folder.path().join("list");
    fs::write(&list, cells.join("\n") + "\n").unwrap();
    files.push((list, "/edt/cells".to_owned()));
    let script = here.join("tests/edt/latency.sh");
    files.push((script, "/edt/latency.sh".to_owned()));
    let lib = here.join("../../../kernel/tests/lib.sh");
    files.push((lib, "/edt/lib.sh".to_owned()));
    run_in_guest(
        (kernel, MODULES),
        &files,
        &format!("EDT_PROGRAM='{command}' sh /edt/latency.sh"),
        Duration::from_secs(600),
        folder.path(),
    );
    let measured = fs::read_to_string(folder.path().join("cells")).unwrap();
    let measured: Vec<Cell> = measured.lines().filter_map(Cell::read).collect();
    for cell in &measured {
        println!(
            "ROW | {} | {:.2} | {} | {} | {} | {} | {} | {:.1} | {:.1} | {:.1} |",
            cell.asked,
            cell.sent_bps / 1e6,
            cell.segments,
            cell.retransmitted,
            cell.dropped,
            cell.marked,
            cell.probes,
            cell.p50_ms,
            cell.p99_ms,
            cell.worst_ms
        );
    }
    assert_eq!(measured.len(), cells.len(), "{measured:?}");
    measured
}

/// Measures cells of any number.
fn measure_all(kernel: Kernel, cells: &[String]) -> Vec<Cell> {
    let chunks = cells.chunks(CELLS);
    chunks.flat_map(|cells| measure(kernel, cells)).collect()
}

#[test]
#[ignore = "measures what PSPACER_CELLS asks for"]
fn explore() {
    let cells = fs::read_to_string(std::env::var("PSPACER_CELLS").unwrap()).unwrap();
    let cells: Vec<String> = cells.lines().map(str::to_owned).collect();
    measure_all(Kernel::V6_12, &cells);
}

/// What shapes a class of 100 Mbit/s: as the script names it, whether flows have ECN, and what the
/// table calls it.
type Shaper = (&'static str, bool, &'static str);

const OLD: Shaper = ("edt:2s:off", false, "2 s, no marks");
const OLD_MARKS: Shaper = ("edt:2s:5ms", true, "2 s, marks from 5 ms, ECN");
const NEW: Shaper = ("edt", false, "`edt`");
const NEW_MARKS: Shaper = ("edt", true, "`edt`, ECN");
const MODULE: Shaper = ("psp", false, "module");
const MODULE_CODEL: Shaper = ("psp-codel", false, "module, fq_codel");
const RATE_MBIT: u32 = 100;

fn line((shaper, ecn, _): Shaper, rtt_us: u32, from: &str, flows: u32) -> String {
    // A queue of 2 s takes longer to grow.
    let warm_ms = if shaper.contains(":2s") { 3000 } else { 1500 };
    let ecn = u8::from(ecn);
    format!("{shaper} {RATE_MBIT} {rtt_us} {ecn} {from} cubic {flows} {warm_ms} 2000")
}

/// Prints two tables: waits, and what was sent, sent again and lost.
fn table(kernel: Kernel, from: &str, rtt_us: u32, flows: &[u32], shapers: &[Shaper]) {
    let lines = flows.iter().flat_map(|flows| {
        shapers
            .iter()
            .map(|shaper| line(*shaper, rtt_us, from, *flows))
    });
    let cells = measure_all(kernel, &lines.collect::<Vec<_>>());
    let mut head = "| flows |".to_owned();
    for (_, _, name) in shapers {
        write!(head, " {name} |").unwrap();
    }
    let rule = format!("|---|{}", "---|".repeat(shapers.len()));
    for (what, of_cell) in [
        (
            "wait in ms: median / p99 / worst",
            Cell::waits as fn(&Cell) -> String,
        ),
        (
            "Mbit/s; % of segments sent again; % of probes that did not leave",
            Cell::sent,
        ),
    ] {
        println!("\n{kernel}, {from}, round trip {rtt_us} us, {what}\n\n{head}\n{rule}");
        for (flows, row) in flows.iter().zip(cells.chunks(shapers.len())) {
            let row: Vec<String> = row.iter().map(of_cell).collect();
            println!("| {flows} | {} |", row.join(" | "));
        }
    }
}

#[test]
#[ignore = "measures 88 cells, which nothing compares"]
fn tables() {
    let many = [1, 2, 4, 8, 16, 32, 64, 128];
    let some = [1, 8, 32, 128];
    let all = [OLD, OLD_MARKS, NEW, NEW_MARKS, MODULE, MODULE_CODEL];
    table(Kernel::V6_12, "routed", 1_000, &many, &all);
    let own = [OLD, NEW, NEW_MARKS, MODULE];
    table(Kernel::V6_12, "own", 1_000, &some, &own);
    table(Kernel::V6_12, "routed", 20_000, &some, &all);
}

/// 32 flows of 100 Mbit/s, with ECN and without, keep the rate, and nothing waits for longer than
/// the defaults say. One frame on the wire and fq's timer come to it.
fn check(kernel: Kernel) {
    let marked = ["own", "routed"].map(|from| line(NEW_MARKS, 1_000, from, 32));
    // `make test` has one cell with ECN: the host's own flows.
    let marked = &marked[..if testkit::everything() { 2 } else { 1 }];
    let dropped = line(NEW, 1_000, "routed", 32);
    let cells = measure(kernel, &[marked, &[dropped]].concat());
    let (dropped, marked) = cells.split_last().unwrap();
    for cell in &cells {
        let part = cell.sent_bps / (f64::from(RATE_MBIT) * 1e6);
        assert!((0.995..1.005).contains(&part), "{kernel}: {cell:?}");
    }
    for cell in marked {
        assert!(cell.marked > 0 && cell.dropped == 0, "{kernel}: {cell:?}");
        assert!(cell.worst_ms < 25.0, "{kernel}: {cell:?}");
    }
    assert!(dropped.dropped > 0 && dropped.marked == 0, "{cells:?}");
    assert!(dropped.worst_ms < 51.0, "{kernel}: {cells:?}");
}

/// A class has the same default by every backend: one flow fills it at 1, 10 and 100 Mbit/s.
fn check_backend(kernel: Kernel, backend: &str) {
    let lines = [(1, 122.0, 4000), (10, 51.0, 2500), (100, 51.0, 1500)];
    let asked = lines.map(|(mbit, _, warm_ms)| {
        format!("{backend} {mbit} 20000 0 routed cubic 1 {warm_ms} 2000")
    });
    for (cell, (mbit, most_ms, _)) in measure(kernel, &asked).iter().zip(lines) {
        let part = cell.sent_bps / (f64::from(mbit) * 1e6);
        assert!((0.97..1.02).contains(&part), "{kernel}: {cell:?}");
        assert!(cell.worst_ms < most_ms, "{kernel}: {cell:?}");
        assert!(cell.p50_ms > 1.0, "{kernel}: {cell:?}");
    }
}

#[test]
fn waits_are_bounded_by_the_module_on_6_12() {
    check_backend(Kernel::V6_12, "module");
}

#[test]
fn waits_are_bounded_by_a_qdisc_of_bpf_on_7() {
    check_backend(Kernel::V7, "bpf");
}

#[test]
fn waits_are_bounded_by_departure_times_on_6_12() {
    check_backend(Kernel::V6_12, "edt");
}

testkit::on_every_kernel! {
    waits_are_bounded: check;
}
