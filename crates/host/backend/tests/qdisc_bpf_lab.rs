// SPDX-License-Identifier: MIT OR Apache-2.0
//! The qdisc of BPF on a stock kernel, in the laboratory's guest: packets of two classes leave when
//! the core says, also after their rates have changed under traffic, and nothing stays behind.
//!
//! This program runs in the guest, too, as the command that sets the qdisc up: see [`in_guest`].

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail that way")]
#![allow(clippy::print_stdout, reason = "the guest's script reads it")]

use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use backend::qdisc::{Place, PortClass, PortConfig, Qdisc};
use linux_io::links::links;
use pace::{ClassConfig, Config as Port, Decision, Mode, Order, Scheduler};
use scenario::Kernel;
use testkit::guest::{check_times, frames, starts, test_program};
use vmlab::{Lab, Quiet, ScriptSpec, run_script};

const MODULES: &[&str] = &["wire"];
/// The rates of the two classes, before and after a change, and the frames sent to them.
const RATES_BPS: [[u64; 2]; 2] = [[70_000_003, 9_000_000], [20_000_000, 9_000_000]];
const FRAME_BYTES: [u32; 2] = [1500, 1000];
const LINE_BPS: u64 = 1_000_000_000;
/// The guest's timer, and the other class's frame on the wire (12 us).
const LATE_NS: u64 = 60_000;

fn port() -> Port {
    Port {
        mode: Mode::Timer,
        order: Order::Next,
        max_burst_bytes: 65_536,
        ..Port::ethernet(LINE_BPS, 1514)
    }
}

fn wanted(rates_bps: [u64; 2]) -> PortConfig {
    let classes = (0x8001..).zip(rates_bps).map(|(minor, rate_bps)| {
        Some(PortClass {
            minor,
            limit: 1000,
            config: ClassConfig::Paced { rate_bps },
        })
    });
    PortConfig {
        config: port(),
        classes: classes.collect(),
        default: None,
    }
}

fn now_ns() -> u64 {
    let now = nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC).unwrap();
    u64::try_from(now.tv_sec() * 1_000_000_000 + now.tv_nsec()).unwrap()
}

/// Waits until the script makes a file.
fn wait_for(file: &str) {
    for _ in 0..60_000 {
        if Path::new(file).exists() {
            return;
        }
        sleep(Duration::from_millis(1));
    }
    panic!("nobody makes {file}");
}

/// Loads the qdisc, changes rates when the script says, and prints what was counted.
#[test]
#[ignore = "runs in the guest"]
fn in_guest() {
    let link = links().unwrap();
    let link = link.into_iter().find(|link| link.name == "c1a").unwrap();
    let netns = fs::read_link("/proc/self/ns/net").unwrap();
    let netns = netns.to_string_lossy();
    let netns = netns.trim_matches(|c: char| !c.is_ascii_digit());
    let place = Place {
        netns: netns.parse().unwrap(),
        ifindex: link.index,
        parent: u32::MAX,
    };
    let qdisc = Qdisc::load("psp_bpf", &[place], 64).unwrap_or_else(|error| panic!("{error}"));
    let configure = |rates| {
        let configured = qdisc.configure(0, &wanted(rates), now_ns());
        configured.unwrap_or_else(|error| panic!("{error}"));
    };
    configure(RATES_BPS[0]);
    fs::write("/tmp/loaded", "").unwrap();
    wait_for("/tmp/change");
    configure(RATES_BPS[1]);
    wait_for("/tmp/count");
    for slot in 0..2 {
        let count = qdisc.counters(0, slot);
        println!(
            "BPFQ class {slot}: sent {} packets {} bytes, {} wait, {} dropped at the limit",
            count.sent_packets, count.sent_bytes, count.packets, count.dropped_full
        );
    }
    let port = qdisc.port_counters(0);
    println!(
        "BPFQ port: {} images taken, {} of no class, {} lost",
        port.images_taken, port.dropped_unclassified, port.dropped_lost
    );
    wait_for("/tmp/gone");
    println!("BPFQ left: {}", qdisc.counters(0, 0).dropped_removed);
}

/// Returns when the core sends a class's frames that all wait since 0.
fn by_core(rate_bps: u64, bytes: u32, count: usize) -> Vec<u64> {
    let mut core = Scheduler::new(&port(), 0).unwrap();
    let class = core.add_class(&ClassConfig::Paced { rate_bps }).unwrap();
    core.activate(class, 0).unwrap();
    let mut now = 0;
    let mut left = Vec::new();
    while left.len() < count {
        match core.next(now) {
            Decision::Send(_) => {
                core.sent(class, bytes, left.len() + 1 < count, now)
                    .unwrap();
                left.push(now);
            }
            Decision::Wait { until_ns } => now = until_ns,
            other => panic!("{other:?}"),
        }
    }
    left
}

#[test]
fn packets_leave_when_the_core_says() {
    let folder = tempfile::tempdir().unwrap();
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (mut files, command) = test_program(folder.path(), "qdisc_bpf_lab::in_guest");
    let script = here.join("tests/guest/qdisc.sh");
    files.push((script, "/bpfq/qdisc.sh".to_owned()));
    let lib = here.join("../../../kernel/tests/lib.sh");
    files.push((lib, "/bpfq/lib.sh".to_owned()));
    let files: Vec<_> = files
        .iter()
        .map(|(from, to)| (from.as_path(), to.as_str()))
        .collect();
    let spec = ScriptSpec {
        kernel: Kernel::V7,
        modules: MODULES,
        files: &files,
        command: &format!("BPFQ='{command}' sh /bpfq/qdisc.sh"),
        seed: 1,
        timeout: Duration::from_secs(600),
        out_dir: folder.path(),
    };
    let ran = run_script(&Lab::find().unwrap(), &spec, &Quiet).unwrap_or_else(|error| {
        let console = fs::read_to_string(folder.path().join("console.log"));
        panic!("{error}\n{}", console.unwrap_or_default())
    });
    println!("{}", ran.output);
    assert_eq!(ran.status, 0, "{}", ran.output);

    let first = frames(folder.path(), "first");
    for (class, port) in (0..).zip([5001, 5002]) {
        let starts = starts(&first, port);
        let due = by_core(RATES_BPS[0][class], FRAME_BYTES[class], starts.len());
        check_times(&format!("port {port}"), &starts, &due, LATE_NS);
    }
    // At the change no frame is too early for the faster rate, and both rates are kept.
    let changed = starts(&frames(folder.path(), "changed"), 5001);
    let gap_ns = |rate_bps: u64| u64::from(FRAME_BYTES[0]) * 8_000_000_000 / rate_bps;
    let gaps: Vec<u64> = changed.windows(2).map(|two| two[1] - two[0]).collect();
    for rates in RATES_BPS {
        let is_near = |gap: &&u64| gap.abs_diff(gap_ns(rates[0])) < LATE_NS;
        let near = gaps.iter().filter(is_near).count();
        assert!(near > 100, "{}: {near} of {gaps:?}", rates[0]);
    }
    let least = gaps.iter().min().unwrap();
    assert!(least + LATE_NS >= gap_ns(RATES_BPS[0][0]), "{least}");
}
