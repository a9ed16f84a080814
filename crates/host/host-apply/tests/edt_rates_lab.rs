// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rates that change under load by departure times, in the laboratory's guest: a rate that is
//! raised counts at once, whatever it was, and after a change nothing exceeds the new one.

#![allow(clippy::print_stdout, reason = "tests say what they measured")]

use std::fs;
use std::time::Duration;

use scenario::Kernel;
use testkit::guest::{Frame, frames, test_program};

use crate::guest::run_in_guest;

const MODULES: &[&str] = &["wire", "sch_fq", "sch_ingress", "cls_bpf"];

/// A change: the rates, as files have them and in bit/s, what sends, and after how long at most the
/// new rate is sent. What waited leaves by the old rate, crates/host/backend/src/edt/waiting.rs; a TCP
/// finds a rate by itself, and what it had of 128 kbit/s it sends again after its own timeout.
type Change = (&'static str, u64, &'static str, u64, &'static str, u64);

const MS: u64 = 1_000_000;
const CHANGES: &[Change] = &[
    ("9600bit", 9_600, "50mbit", 50_000_000, "udp", 0),
    ("100kbit", 100_000, "50mbit", 50_000_000, "udp", 0),
    ("128kbit", 128_000, "50mbit", 50_000_000, "tcp", 1_600 * MS),
    ("1mbit", 1_000_000, "50mbit", 50_000_000, "udp", 130 * MS),
    ("20mbit", 20_000_000, "50mbit", 50_000_000, "udp", 52 * MS),
    ("50mbit", 50_000_000, "1mbit", 1_000_000, "udp", 52 * MS),
    ("50mbit", 50_000_000, "5mbit", 5_000_000, "tcp", 1_000 * MS),
];
/// Those of `make test`, up and down, by UDP and by TCP: a fifth of the packets.
const SOME: &[Change] = &[
    ("9600bit", 9_600, "10mbit", 10_000_000, "udp", 0),
    ("1mbit", 1_000_000, "10mbit", 10_000_000, "udp", 130 * MS),
    ("128kbit", 128_000, "10mbit", 10_000_000, "tcp", 1_600 * MS),
    ("10mbit", 10_000_000, "1mbit", 1_000_000, "udp", 52 * MS),
    ("20mbit", 20_000_000, "5mbit", 5_000_000, "tcp", 1_000 * MS),
];
/// What fq's timer is late by in the guest, and a tick of its kernels.
const LATE_NS: u64 = 5 * MS;
/// A change takes less: what is sent afterwards is sent for so much longer.
const CHANGE_NS: u64 = 500 * MS;
/// Over which a rate is looked for.
const WINDOW_NS: u64 = 200 * MS;
/// Over which it is measured once it is found, if frames are sent for so long: a burst of TCP is a tenth of what
/// 5 Mbit/s are in the shorter one.
const LATER_NS: u64 = 1_000 * MS;
/// Bytes of a burst of TCP.
const BURST_BYTES: u64 = 65_536;

/// Returns the most that frames are ahead of a rate from an instant on, in bytes, anywhere.
fn ahead_bytes(frames: &[Frame], from_ns: u64, rate_bps: u64) -> u64 {
    let (mut level, mut most) = (0.0f64, 0.0f64);
    let mut last = from_ns;
    for (start_ns, bytes, _) in frames.iter().filter(|frame| frame.0 >= from_ns) {
        let drained = (start_ns - last) as f64 * rate_bps as f64 / 8e9;
        level = (level - drained).max(0.0) + f64::from(*bytes);
        last = *start_ns;
        most = most.max(level);
    }
    most as u64
}

fn check(kernel: Kernel) {
    let folder = tempfile::tempdir().unwrap();
    let here = testkit::crate_folder();
    let (mut files, command) = test_program(folder.path(), "edt_bpf_lab::in_guest");
    let list = folder.path().join("list");
    let changes = if testkit::everything() { CHANGES } else { SOME };
    let lines = changes
        .iter()
        .map(|(from, from_bps, to, to_bps, kind, old_ns)| {
            let after_ns = old_ns + LATE_NS + 4 * WINDOW_NS + LATER_NS;
            // More than either rate.
            let sent_bps = from_bps.max(to_bps) * 6 / 5;
            format!(
                "{from} {to} {kind} {} {sent_bps}\n",
                (after_ns + CHANGE_NS).div_ceil(MS)
            )
        });
    fs::write(&list, lines.collect::<String>()).unwrap();
    files.push((list, "/edt/changes".to_owned()));
    for (from, to) in [
        ("tests/edt/raised.sh", "/edt/raised.sh"),
        ("../../../kernel/tests/lib.sh", "/edt/lib.sh"),
    ] {
        files.push((here.join(from), to.to_owned()));
    }
    run_in_guest(
        (kernel, MODULES),
        &files,
        &format!("EDT_PROGRAM='{command}' sh /edt/raised.sh"),
        Duration::from_secs(600),
        folder.path(),
    );
    let said = fs::read_to_string(folder.path().join("changes")).unwrap();
    assert_eq!(said.lines().count(), changes.len());
    let mut wrong = Vec::new();
    for ((from, _, to, to_bps, kind, old_ns), line) in changes.iter().zip(said.lines()) {
        let words: Vec<&str> = line.split(' ').collect();
        let ended_ns: u64 = words[4].parse().unwrap();
        let all = frames(folder.path(), &format!("{from}-{to}-{kind}"));
        let ours: Vec<Frame> = all.into_iter().filter(|frame| frame.2 == 5001).collect();
        let settled_ns = ended_ns + old_ns + LATE_NS;
        let bytes = |from_ns: u64, for_ns: u64| -> u64 {
            let within = |frame: &&Frame| (from_ns..from_ns + for_ns).contains(&frame.0);
            ours.iter()
                .filter(within)
                .map(|frame| u64::from(frame.1))
                .sum()
        };
        let part = |from_ns: u64, for_ns: u64| {
            let bits = bytes(from_ns, for_ns) * 8;
            bits as f64 * 1e9 / (for_ns as f64 * *to_bps as f64)
        };
        let mut windows = (0..40).map(|number| number * WINDOW_NS / 4);
        let after_ns = windows.find(|after_ns| part(ended_ns + after_ns, WINDOW_NS) > 0.85);
        let later_ns = settled_ns + 4 * WINDOW_NS;
        let last_ns = ours.last().map_or(0, |frame| frame.0);
        let left_ns = last_ns.saturating_sub(later_ns).clamp(1, LATER_NS);
        let later = part(later_ns, left_ns.max(WINDOW_NS));
        let burst = if *kind == "tcp" {
            BURST_BYTES
        } else {
            2 * 1_500
        };
        let slack = LATE_NS * to_bps / 8_000_000_000;
        let ahead = ahead_bytes(&ours, settled_ns, *to_bps);
        let row = format!(
            "{kernel}: {from} to {to}, {kind}: after {:?} ms, then {later:.3} of it; {ahead} bytes \
             ahead",
            after_ns.map(|ns| ns / MS)
        );
        println!("{row}");
        let is_soon = after_ns.is_some_and(|ns| ns <= *old_ns + WINDOW_NS / 4);
        // Not met, and said in docs/use/without-a-module.md: on 6.12 TCP is not back within two seconds.
        let is_judged = (kernel, *from, *kind) != (Kernel::V6_12, "128kbit", "tcp");
        if is_judged && (!is_soon || later < 0.95 || ahead > burst + slack) {
            wrong.push(row);
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

testkit::on_every_kernel! {
    rates_change_under_load: check;
}
