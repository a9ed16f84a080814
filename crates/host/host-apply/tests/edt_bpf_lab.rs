// SPDX-License-Identifier: MIT OR Apache-2.0
//! Departure times on the kernels of distributions, in the laboratory's guest: two classes of two
//! rates leave when the core says, within what fq's timer is late by.
//!
//! This program runs in the guest, too, as the command that sets departure times up: see
//! [`in_guest`].

#![allow(clippy::print_stdout, reason = "the guest's script reads it")]

use std::fs;
use std::path::Path;
use std::time::Duration;

use pace::{ClassConfig, Config as Port, Decision, Mode, Scheduler};
use scenario::Kernel;
use tcpsp::Tc;
use tempfile::TempDir;
use testkit::guest::{check_times, compile, frames, starts, test_program};

use crate::commands::{apply, remove};
use crate::guest::run_in_guest;

const MODULES: &[&str] = &["wire", "sch_fq", "sch_ingress", "cls_bpf"];

/// A socket's buffer holds a third of a second of the slow class, which shall wait for all of it.
const FIRST: &str = r#"
[[device]]
name = "c1a"
backend = "edt"
default = "slow"
[[device.class]]
name = "fast"
rate = "70000003bit"
deadline = "2s"
match = [{ to = "10.0.0.0/24", to_port = 5001, protocol = "udp" }]
[[device.class]]
name = "slow"
rate = "9mbit"
deadline = "2s"
match = [{ to = "10.0.0.2" }]
"#;
/// The rates of the two ports, and the frames sent to them, in bytes.
const RATES_BPS: [u64; 2] = [70_000_003, 9_000_000];
const FRAME_BYTES: [u32; 2] = [1500, 1000];
const SECOND_BPS: u64 = 20_000_000;
/// fq's timer in the guest, and the other class's frame on the wire (12 us).
const LATE_NS: u64 = 60_000;

/// Does what the guest's script asks for in `EDT`.
#[test]
#[ignore = "runs in the guest"]
fn in_guest() {
    let words = std::env::var("EDT").unwrap();
    let words: Vec<&str> = words.split_whitespace().collect();
    if words == ["programs"] {
        let programs = backend::edt::programs().unwrap() + backend::qdisc::programs();
        println!("EDT {programs}");
        return;
    }
    let said = match words[..] {
        ["apply" | "notes", file] => apply(Path::new(file)),
        ["remove"] => remove("c1a"),
        ["horizon"] => {
            let mut tc = Tc::open().unwrap();
            let ports = backend::ports(&mut tc).unwrap_or_else(|error| panic!("{error}"));
            let drops = ports.iter().map(|port| port.psp.stats.drop_horizon);
            format!("{}\n", drops.sum::<u64>())
        }
        ["show"] => {
            let mut tc = Tc::open().unwrap();
            let ports = backend::ports(&mut tc).unwrap_or_else(|error| panic!("{error}"));
            let classes = ports.iter().flat_map(|port| &port.classes);
            let lines = classes.map(|class| {
                let stats = &class.psp.stats;
                let (rate, frames) = (stats.rate_bps, stats.sent_frames);
                let (bytes, late) = (class.counters.sent_bytes, stats.drop_late);
                let marked = class.counters.overlimits;
                format!("{rate} {frames} {bytes} {late} {marked}\n")
            });
            lines.collect()
        }
        _ => panic!("{words:?}"),
    };
    let has_notes = words[0] == "notes";
    let is_said = |line: &&str| has_notes || !line.contains(": note: ");
    for line in said.lines().filter(is_said) {
        println!("EDT {line}");
    }
}

/// Returns when the core sends a class's bursts that all wait since 0, with timers on a line that
/// carries a byte in a nanosecond.
fn by_core(rate_bps: u64, bursts: &[u32]) -> Vec<u64> {
    let config = Port {
        mode: Mode::Timer,
        ..Port::ethernet(8_000_000_000, 100_000)
    };
    let mut core = Scheduler::new(&config, 0).unwrap();
    let class = core.add_class(&ClassConfig::Paced { rate_bps }).unwrap();
    core.activate(class, 0).unwrap();
    let mut now = 0;
    let mut left = Vec::new();
    while left.len() < bursts.len() {
        match core.next(now) {
            Decision::Send(_) => {
                let more = left.len() + 1 < bursts.len();
                core.sent(class, bursts[left.len()], more, now).unwrap();
                left.push(now);
            }
            Decision::Wait { until_ns } => now = until_ns,
            other => panic!("{other:?}"),
        }
    }
    left
}

fn check(kernel: Kernel, backend: &str) {
    let folder = tempfile::tempdir().unwrap();
    let here = testkit::crate_folder();
    let (mut files, command) = test_program(folder.path(), "edt_bpf_lab::in_guest");
    let first = FIRST.replace("edt", backend);
    let second = first.replace("70000003bit", &format!("{SECOND_BPS}bit"));
    let gap = first.replace("[[device.class]]\nname = \"fast\"", "mode = \"gap\"\n$0");
    let gap = gap.replace("$0", "[[device.class]]\nname = \"fast\"");
    for (name, text) in [("first", &first), ("second", &second), ("gap", &gap)] {
        let path = folder.path().join(format!("{name}.toml"));
        fs::write(&path, text).unwrap();
        files.push((path, format!("/edt/{name}.toml")));
    }
    files.push((
        here.join("tests/edt/departures.sh"),
        "/edt/departures.sh".to_owned(),
    ));
    let lib = here.join("../../../kernel/tests/lib.sh");
    files.push((lib, "/edt/lib.sh".to_owned()));
    run_in_guest(
        (kernel, MODULES),
        &files,
        &format!("EDT_PROGRAM='{command}' sh /edt/departures.sh"),
        Duration::from_secs(600),
        folder.path(),
    );

    // Frame by frame.
    let first = frames(folder.path(), "first");
    for (number, port) in (0..).zip([5001, 5002]) {
        let starts = starts(&first, port);
        let due = by_core(RATES_BPS[number], &vec![FRAME_BYTES[number]; starts.len()]);
        check_times(&format!("{kernel}, port {port}"), &starts, &due, LATE_NS);
    }
    // A burst of ten datagrams is charged as ten frames, whether the device cut it or the kernel.
    let bursts = starts(&frames(folder.path(), "bursts"), 5001);
    assert_eq!(bursts.len() % 10, 0, "{kernel}: {} frames", bursts.len());
    let first_of_each: Vec<u64> = bursts.iter().step_by(10).copied().collect();
    let due = by_core(
        RATES_BPS[0],
        &vec![10 * FRAME_BYTES[0]; first_of_each.len()],
    );
    check_times(&format!("{kernel}, bursts"), &first_of_each, &due, LATE_NS);
    // Both rates are kept, and at the change no frame is too early for the faster one.
    let changed = starts(&frames(folder.path(), "changed"), 5001);
    let gap_ns = |rate_bps: u64| 1500 * 8_000_000_000 / rate_bps;
    let gaps: Vec<u64> = changed.windows(2).map(|two| two[1] - two[0]).collect();
    let count = |rate_bps: u64| {
        let is_near = |gap: &&u64| gap.abs_diff(gap_ns(rate_bps)) < LATE_NS;
        gaps.iter().filter(is_near).count()
    };
    assert!(count(RATES_BPS[0]) > 100, "{kernel}: {gaps:?}");
    assert!(count(SECOND_BPS) > 100, "{kernel}: {gaps:?}");
    // After a late frame the gap is shorter by as much: what counts is the last one in time.
    let gap = gap_ns(RATES_BPS[0]);
    for (place, at) in changed.iter().enumerate().skip(1) {
        let mut before = (1..=place.min(4)).map(|back| (back, changed[place - back]));
        let is_in_time = before.any(|(back, ns)| at - ns + LATE_NS >= back as u64 * gap);
        assert!(
            is_in_time,
            "{kernel}: frame {place} at {at} ns: {:?}",
            &gaps[place - 1]
        );
    }
}

testkit::on_every_kernel! {
    classes_leave_when_the_core_says: |kernel| check(kernel, "edt");
}

#[test]
fn classes_leave_when_the_core_says_by_a_qdisc_on_7() {
    check(Kernel::V7, "bpf");
}

/// Runs a script of edt in the guest, and returns what it leaves.
fn check_script(kernel: Kernel, name: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let here = testkit::crate_folder();
    let (mut files, command) = test_program(folder.path(), "edt_bpf_lab::in_guest");
    let script = format!("/edt/{name}");
    let tai = folder.path().join("tai");
    compile(&here.join("tests/edt/tai.c"), &tai);
    files.push((tai, "/edt/tai".to_owned()));
    files.push((here.join(format!("tests/edt/{name}")), script.clone()));
    files.push((
        here.join("../../../kernel/tests/lib.sh"),
        "/edt/lib.sh".to_owned(),
    ));
    run_in_guest(
        (kernel, MODULES),
        &files,
        &format!("EDT_PROGRAM='{command}' sh {script}"),
        Duration::from_secs(600),
        folder.path(),
    );
    folder
}

testkit::on_every_kernel! {
    launch_times_of_any_clock_are_kept: |kernel| drop(check_script(kernel, "launches.sh"));
}

/// A class whose link comes back is silent until its clock is reached: no longer than a packet may
/// wait.
fn check_down(kernel: Kernel) {
    const DEADLINE_NS: u64 = 1_000_000_000;
    let folder = check_script(kernel, "down.sh");
    let up = fs::read_to_string(folder.path().join("up")).unwrap();
    let up_ns: u64 = up.trim().parse().unwrap();
    let starts = starts(&frames(folder.path(), "down"), 5001);
    let first = starts.iter().find(|start_ns| **start_ns > up_ns);
    let silent_ns = first.unwrap() - up_ns;
    println!("{kernel}: silent for {silent_ns} ns once the link is up");
    assert!(
        silent_ns < DEADLINE_NS + 100_000_000,
        "{kernel}: {silent_ns} ns"
    );
    // Its rate is kept from then on: a frame of 1,000 bytes each 8 ms.
    let after = starts.iter().filter(|start_ns| **start_ns > up_ns);
    let after: Vec<_> = after.collect();
    let took_ns = after[after.len() - 1] - after[0];
    let frames = u64::try_from(after.len() - 1).unwrap();
    assert!(frames > 50, "{kernel}: {frames} frames");
    assert!(
        took_ns.abs_diff(frames * 8_000_000) < 1_000_000,
        "{kernel}: {took_ns} ns"
    );
}

testkit::on_every_kernel! {
    a_link_that_comes_back_has_its_classes: check_down;
}
