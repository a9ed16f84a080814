// SPDX-License-Identifier: MIT OR Apache-2.0
//! Cells on a real kernel: their files, and that a run repeats.

use std::fs;
use std::path::Path;

use scenario::Kernel;
use vmlab::{Lab, Quiet, ScriptSpec, run_script};

use crate::common::{LONG, run, run_on, run_unstored, scenario, scenario_at};

/// Returns every file of a cell, by name.
fn files(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let mut all: Vec<_> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| {
            (
                path.file_name().unwrap().to_string_lossy().into_owned(),
                fs::read(path).unwrap(),
            )
        })
        .collect();
    all.sort();
    all
}

/// Returns when the data frames of a timeline left.
fn starts_ns(timeline: &[u8]) -> Vec<u64> {
    timeline
        .chunks_exact(32)
        .filter(|record| record[28] == 0)
        .map(|record| u64::from_le_bytes(record[..8].try_into().unwrap()) / 1000)
        .collect()
}

const SHAPED: &str = r#"
[sweep]
rate = ["20mbit", "50mbit"]
per_boot = 2
[noise]
hold_max = "40us"
every = "300us"
[[tc]]
host = "tx"
lines = ["qdisc add dev eth0 root tbf rate ${rate} burst 1600b limit 1mb"]
"#;

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_seed_others() {
    let folder = tempfile::tempdir().unwrap();
    let mut scenario = scenario(SHAPED);
    let one = run_unstored(&scenario, &folder.path().join("one")).unwrap();
    let two = run_unstored(&scenario, &folder.path().join("two")).unwrap();
    scenario.seed = 2;
    let other = run_unstored(&scenario, &folder.path().join("other")).unwrap();
    assert_eq!(one.cells.len(), 2);
    for (a, b) in one.cells.iter().zip(&two.cells) {
        assert_eq!(a.zero_ns, b.zero_ns);
        assert_eq!(a.tc, b.tc);
        assert_eq!(a.flow_reports, b.flow_reports);
        let (a, b) = (files(&a.dir), files(&b.dir));
        for ((name, a), (_, b)) in a.iter().zip(&b) {
            assert!(a == b, "{name} differs");
        }
        assert_eq!(a.len(), b.len());
    }
    let timeline = |cell: &vmlab::CellOutput| fs::read(cell.dir.join("timeline.wire.a")).unwrap();
    assert_ne!(timeline(&one.cells[0]), timeline(&other.cells[0]));
    // 20 ms at 20 and 50 Mbit/s carry 33 and 82 frames of 1514 bytes, give or take a burst.
    for (cell, frames) in one.cells.iter().zip([33, 82]) {
        let sent = starts_ns(&timeline(cell));
        let sent = sent
            .iter()
            .filter(|start| **start < cell.zero_ns + 20_000_000)
            .count();
        assert!(
            sent.abs_diff(frames) <= 3,
            "{sent} frames, expected {frames}"
        );
        let report = &cell.flow_reports["bulk"];
        assert_eq!(report["receiver"]["lost"], 0, "{report}");
        assert_eq!(cell.tc["tx"][0]["kind"], "tbf");
    }
}

/// Keeps the guest falling idle and waking: hundreds of thousands of times in a second. Once in
/// some ten thousand times QEMU's two threads came in another order, and time with them.
const RESTLESS: &str = r#"
name = "restless"
title = "Three rates on a busy host"
duration = "1500ms"
[[host]]
name = "tx"
[[host]]
name = "rx"
[[cable]]
name = "wire"
ends = ["tx:eth0", "rx:eth0"]
rate = "1gbit"
sink = true
bql_min = "64kb"
[noise]
hold_max = "60us"
every = "500us"
[[tc]]
host = "tx"
lines = [
  "qdisc add dev eth0 root handle 1: htb default 1",
  "class add dev eth0 parent 1: classid 1:1 htb rate 400mbit burst 64kb cburst 64kb",
  "class add dev eth0 parent 1: classid 1:2 htb rate 300mbit burst 64kb cburst 64kb",
  "class add dev eth0 parent 1: classid 1:3 htb rate 200mbit burst 64kb cburst 64kb",
  "filter add dev eth0 parent 1: protocol ip pref 1 u32 match ip dport 5002 0xffff classid 1:2",
  "filter add dev eth0 parent 1: protocol ip pref 1 u32 match ip dport 5003 0xffff classid 1:3",
]
[[flow]]
name = "first"
type = "udp"
batch = 16
from = "tx"
to = "rx"
port = 5001
[[flow]]
name = "second"
type = "udp"
batch = 16
from = "tx"
to = "rx"
port = 5002
[[flow]]
name = "third"
type = "udp"
batch = 16
from = "tx"
to = "rx"
port = 5003
"#;

/// Two guests side by side disturb each other's threads, as those of a sweep do.
#[test]
fn a_restless_guest_gives_the_same_bytes_beside_another() {
    let folder = tempfile::tempdir().unwrap();
    // A fifth of the time has that often, too.
    let text = if testkit::everything() {
        RESTLESS.to_owned()
    } else {
        RESTLESS.replace("1500ms", "300ms")
    };
    let scenario = scenario::parse("restless.toml", &text, &scenario::Options::default());
    let scenario = scenario.unwrap_or_else(|error| panic!("{error}"));
    let outputs = std::thread::scope(|threads| {
        ["one", "two"]
            .map(|name| {
                let (scenario, folder) = (&scenario, folder.path().join(name));
                threads.spawn(move || run_unstored(scenario, &folder))
            })
            .map(|guest| guest.join().unwrap().unwrap())
    });
    let [one, two] = outputs.map(|output| files(&output.cells[0].dir));
    assert!(one.iter().any(|(name, _)| name == "timeline.wire.a"));
    assert_eq!(one.len(), two.len());
    for ((name, one), (_, two)) in one.iter().zip(&two) {
        assert!(one == two, "{name} differs");
    }
}

#[test]
fn two_cables_a_router_tcp_and_a_bottleneck() {
    let folder = tempfile::tempdir().unwrap();
    let scenario = scenario::parse(
        "routed.toml",
        r#"
name = "routed"
title = "TCP through a router and a policer"
duration = "300ms"
host = [{ name = "tx" }, { name = "mid" }, { name = "rx", addresses = 2 }]
[[cable]]
name = "near"
ends = ["tx:eth0", "mid:left"]
rate = "100mbit"
[[cable]]
name = "far"
ends = ["rx:eth0", "mid:right"]
rate = "50mbit"
snap = 0
[[bottleneck]]
cable = "far"
from = "mid"
rate = "20mbit"
fifo = "64kb"
delay = "2ms"
[[sysctl]]
host = "tx"
set = "net.ipv4.tcp_wmem=4096 65536 262144"
[[tc]]
host = "mid"
at = "100ms"
lines = ["qdisc add dev right root netem delay 1ms"]
[[flow]]
name = "bulk"
type = "tcp"
from = "tx"
to = "rx#2"
congestion = "bic"
window = "200kb"
sample = "50ms"
[[flow]]
name = "gen"
type = "pktgen"
from = "tx"
to = "rx"
rate = "5mbit"
start = "50ms"
stop = "250ms"
"#,
        &scenario::Options::default(),
    )
    .unwrap();
    let output = run(&scenario, folder.path(), LONG).unwrap();
    let cell = &output.cells[0];
    let bulk = &scenario.cells[0].flows[0];
    let flows = fs::read_to_string(cell.dir.join("flows.near.a")).unwrap();
    let tcp = format!(
        "tcp {} {} {} {}",
        bulk.source, bulk.source_port, bulk.destination, bulk.port
    );
    assert_eq!(tcp, "tcp 10.1.1.1 20001 10.2.1.2 5001");
    assert!(flows.contains(&tcp), "{flows}");
    assert!(
        flows.contains("udp 10.1.1.1 20002 10.2.1.1 5002"),
        "{flows}"
    );
    assert!(!cell.dir.join("snap.far.a").exists());
    let counters = fs::read_to_string(cell.dir.join("counters.far")).unwrap();
    let data = counters
        .lines()
        .find_map(|line| line.strip_prefix("b.data_bytes "))
        .unwrap();
    let data: u64 = data.parse().unwrap();
    // 300 ms at 20 Mbit/s carry at most 750 kB; slow start takes its part.
    assert!((250_000..1_300_000).contains(&data), "{counters}");
    let kinds: Vec<_> = cell.tc["mid"]
        .as_array()
        .unwrap()
        .iter()
        .map(|q| &q["kind"])
        .collect();
    assert!(kinds.iter().any(|kind| *kind == "netem"), "{kinds:?}");
    let report = &cell.flow_reports["bulk"];
    assert_eq!(report["congestion"], "bic", "{report}");
    let acked = report["bytes"].as_u64().unwrap();
    let received = report["receiver"]["bytes"].as_u64().unwrap();
    assert!(
        (200_000..data).contains(&acked) && received + 1 >= acked && received < data,
        "{report}"
    );
    let samples = fs::read_to_string(cell.dir.join("flow-bulk.tcp")).unwrap();
    let mut lines = samples.lines();
    assert!(lines.next().unwrap().starts_with("time_ns,cwnd_segments,"));
    let times: Vec<u64> = lines
        .map(|line| line.split(',').next().unwrap().parse().unwrap())
        .collect();
    // The samples are at 0, at 50 ms and so on, and at the end.
    assert_eq!(times.len(), 7, "{samples}");
    for (number, time_ns) in (0..).zip(&times) {
        let late_ns = time_ns - number * 50_000_000;
        assert!(late_ns < 100_000, "{samples}");
    }
}

#[test]
fn a_frozen_receiver_closes_its_window() {
    let folder = tempfile::tempdir().unwrap();
    let text = r#"
name = "frozen"
title = "A receiver that does not read"
duration = "200ms"
[[host]]
name = "tx"
[[host]]
name = "rx"
[[cable]]
name = "wire"
ends = ["tx:eth0", "rx:eth0"]
rate = "100mbit"
[[flow]]
name = "bulk"
type = "tcp"
from = "tx"
to = "rx"
window = "64kb"
sample = "10ms"
[[freeze]]
host = "rx"
program = "receiver"
from = "45ms"
to = "155ms"
"#;
    let scenario = scenario::parse("frozen.toml", text, &scenario::Options::default()).unwrap();
    let output = run(&scenario, folder.path(), LONG).unwrap();
    let samples = fs::read_to_string(output.cells[0].dir.join("flow-bulk.tcp")).unwrap();
    let samples = acked_bytes(&samples);
    // Once the window is closed hardly anything is acknowledged; the line's rate would be 1 MB.
    let acked = |ms: usize| samples[ms / 10];
    assert!(acked(40) > 200_000, "{samples:?}");
    assert!(acked(150) - acked(70) < 100_000, "{samples:?}");
    assert!(acked(190) > acked(150) + 100_000, "{samples:?}");
}

/// Returns `acked_bytes` of each sample.
fn acked_bytes(samples: &str) -> Vec<u64> {
    let mut lines = samples.lines();
    let names: Vec<_> = lines.next().unwrap().split(',').collect();
    let column = names.iter().position(|&n| n == "acked_bytes").unwrap();
    let acked = |line: &str| line.split(',').nth(column).unwrap().parse().unwrap();
    lines.map(acked).collect()
}

fn paces(kernel: Kernel) {
    let folder = tempfile::tempdir().unwrap();
    // Gap frames count against the byte queue limit, so a limit that is still small starves
    // the wire.
    let scenario = scenario(
        r#"
bql_min = "64kb"
[[tc]]
host = "tx"
lines = [
  "qdisc add dev eth0 root handle 1: psp default 1",
  "class add dev eth0 parent 1: classid 1:1 psp rate 50mbit",
]
"#,
    );
    let output = run_on(kernel, &scenario, folder.path(), LONG)
        .unwrap_or_else(|error| panic!("{kernel}: {error}"));
    assert!(
        output.kernel_release.starts_with(&format!("{kernel}.")),
        "{}",
        output.kernel_release
    );
    let timeline = fs::read(output.cells[0].dir.join("timeline.wire.a")).unwrap();
    let starts = starts_ns(&timeline);
    assert!(starts.len() > 70, "{kernel}: {} frames", starts.len());
    // 1514 bytes at half of 100 Mbit/s take 242.24 us, to the byte of 80 ns, once the
    // sender is ahead of the wire.
    for pair in starts[5..].windows(2) {
        let gap_ns = pair[1] - pair[0];
        assert!(gap_ns.abs_diff(242_240) <= 80, "{kernel}: {gap_ns} ns");
    }
}

testkit::on_every_kernel! {
    the_qdisc_under_test_paces: paces;
}

/// Files of more than half of the shared memory are in the initial file system of a guest that
/// boots. Others reach a resumed guest. Both have the same plan and seed.
#[test]
fn files_reach_a_guest_that_boots_and_one_that_resumes() {
    let folder = tempfile::tempdir().unwrap();
    let big = folder.path().join("big");
    for (bytes, boots) in [(1_000_000, false), (33 << 20, true)] {
        fs::write(&big, vec![b'x'; bytes]).unwrap();
        let spec = ScriptSpec {
            kernel: Kernel::V6_1,
            modules: &["dummy"],
            files: &[(&big, "/deep/folder/big")],
            command: "wc -c < /deep/folder/big; tr -d x < /deep/folder/big | wc -c; \
                      uname -r >&2; dmesg | grep -c 'Linux version'",
            seed: 1,
            timeout: LONG,
            out_dir: &folder.path().join(boots.to_string()),
        };
        let output = run_script(&Lab::find().unwrap(), &spec, &Quiet).unwrap();
        let lines: Vec<&str> = output.output.lines().collect();
        assert_eq!(lines[..2], [&bytes.to_string(), "0"], "{lines:?}");
        assert!(lines[2].starts_with("6.1."), "{lines:?}");
        assert_eq!((lines[3], output.status), ("1", 0), "{lines:?}");
    }
}

/// Lines with `at` act at that instant, and not when a program has started: the first frames at the new
/// rate follow within a millisecond. Two lines of one instant are in their order.
#[test]
fn lines_of_tc_act_at_their_instant() {
    let folder = tempfile::tempdir().unwrap();
    let scenario = scenario_at(
        "100mbit",
        "200ms",
        r#"
[[tc]]
host = "tx"
lines = ["qdisc add dev eth0 root handle 1: psp default 1 mode timer", "class add dev eth0 parent 1: classid 1:1 psp rate 1mbit"]
[[tc]]
host = "tx"
at = "100ms"
lines = ["class change dev eth0 parent 1: classid 1:1 psp rate 2mbit", "class change dev eth0 parent 1: classid 1:1 psp rate 50mbit"]
"#,
    );
    let output = run(&scenario, folder.path(), LONG).unwrap();
    let sent = starts_ns(&fs::read(output.cells[0].dir.join("timeline.wire.a")).unwrap());
    let zero_ns = output.cells[0].zero_ns;
    let is_fast = |pair: &&[u64]| pair[1] - pair[0] < 400_000 && pair[0] > zero_ns + 50_000_000;
    let first = sent.windows(2).find(is_fast).unwrap()[0] - zero_ns;
    assert!((100_000_000..101_000_000).contains(&first), "{first} ns");
}

/// ethtool and the hosts' programs are those of a guest that asks for them.
#[test]
fn offloads_are_switched_and_programs_run_on_their_hosts() {
    let folder = tempfile::tempdir().unwrap();
    let more = r#"
[[host]]
name = "other"
offloads = "gso off gro off tx off"
[[cable]]
name = "side"
ends = ["other:eth7", "tx:eth1"]
rate = "1gbit"
[[program]]
host = "other"
run = "ethtool -k eth7"
[[program]]
host = "other"
run = "tail -f names"
file = "names"
text = "ready, steady\n"
ready = "steady"
[[program]]
host = "rx"
run = "ip -o link show"
start = "5ms"
stop = "55ms"
"#;
    let scenario = scenario_at("100mbit", "60ms", more);
    let output = run(&scenario, folder.path(), LONG).unwrap();
    let read = |name: &str| fs::read_to_string(output.cells[0].dir.join(name)).unwrap();
    let features = read("program.0.other");
    for off in [
        "generic-segmentation-offload",
        "generic-receive-offload",
        "tx-checksumming",
    ] {
        assert!(features.contains(&format!("{off}: off")), "{features}");
    }
    assert_eq!(read("program.1.other"), "ready, steady\n");
    let links = read("program.2.rx");
    assert!(links.contains("eth0") && !links.contains("eth7"), "{links}");
}
