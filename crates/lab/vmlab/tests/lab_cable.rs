// SPDX-License-Identifier: MIT OR Apache-2.0
//! The cable as a NIC: several transmit queues, and the faults that it can have.

use std::fs;
use std::path::Path;

use scenario::Kernel;
use vmlab::{Lab, Quiet, ScriptSpec, run_script};

use crate::common::{LONG, run, scenario};

/// Returns start, type and queue of each record.
fn records(timeline: &[u8]) -> Vec<(u64, u8, u16)> {
    timeline
        .chunks_exact(32)
        .map(|record| {
            (
                u64::from_le_bytes(record[..8].try_into().unwrap()),
                record[28],
                u16::from_le_bytes(record[30..].try_into().unwrap()),
            )
        })
        .collect()
}

/// Four senders, each on its own queue; the last one has larger frames.
const QUEUES: &str = r#"
queues = 4
bql_min = "64kb"
coalesce_frames = 64
coalesce_time = "2ms"
[[tc]]
host = "tx"
lines = [
  "qdisc add dev eth0 root handle 1: mq",
  "qdisc add dev eth0 clsact",
]
[[tc]]
host = "tx"
each = { q = "0..3" }
lines = [
  "qdisc add dev eth0 parent 1:${q + 1:x} pfifo limit 500",
  "filter add dev eth0 egress protocol ip flower ip_proto udp dst_port ${5001 + q} action skbedit queue_mapping ${q}",
]
[[flow]]
name = "more-${q}"
type = "udp"
from = "tx"
to = "rx"
port = "${5001 + q}"
payload = "1000b"
each = { q = "0..2" }
"#;

#[test]
fn queues_take_turns_on_the_wire() {
    let folder = tempfile::tempdir().unwrap();
    let output = run(&scenario(QUEUES), folder.path(), LONG).unwrap();
    let dir = &output.cells[0].dir;
    let sent = records(&fs::read(dir.join("timeline.wire.a")).unwrap());
    // In 20 ms at 100 Mbit/s three frames of 1066 bytes leave for one of 1538.
    assert!(sent.len() > 200, "{} frames", sent.len());
    assert!(
        sent.is_sorted_by(|a, b| a.0 < b.0),
        "not in order of departure"
    );
    let busy = &sent[20..180];
    for four in busy.chunks_exact(4) {
        let mut queues: Vec<u16> = four.iter().map(|record| record.2).collect();
        let first = queues.iter().position(|queue| *queue == 0);
        queues.rotate_left(first.unwrap_or(0));
        assert_eq!(queues, [0, 1, 2, 3], "at {} ps", four[0].0);
    }
    // The wire has no gap between frames, although the driver runs only once in 2 ms.
    let bytes = |queue: u16| if queue == 3 { 1538 } else { 1066 };
    for pair in busy.windows(2) {
        assert_eq!(pair[1].0 - pair[0].0, bytes(pair[0].2) * 80_000);
    }
}

/// Four sockets of one flow send for 2 ms each. Each may queue four frames, which leave within a
/// millisecond beside those of the next socket.
const TURNS: &str = r#"
queues = 4
sink = true
[[tc]]
host = "tx"
lines = [
  "qdisc add dev eth0 root handle 1: mq",
  "qdisc add dev eth0 clsact",
]
[[tc]]
host = "tx"
each = { q = "1..4" }
lines = ["filter add dev eth0 egress protocol ip pref 1 handle ${q} fw action skbedit queue_mapping ${q - 1}"]
[[flow]]
name = "turns"
type = "udp"
from = "tx"
to = "rx"
sockets = 4
turn = "2ms"
buffer = "4kb"
"#;

#[test]
fn the_sockets_of_a_flow_send_one_after_the_other() {
    let folder = tempfile::tempdir().unwrap();
    let mut scenario = scenario(TURNS);
    for cell in &mut scenario.cells {
        cell.flows.retain(|flow| flow.name == "turns");
    }
    let output = run(&scenario, folder.path(), LONG).unwrap();
    let cell = &output.cells[0];
    let sent = records(&fs::read(cell.dir.join("timeline.wire.a")).unwrap());
    assert!(sent.len() > 140, "{} frames", sent.len());
    for (start_ps, _, queue) in &sent {
        let at_us = start_ps / 1_000_000 - cell.zero_ns / 1_000;
        let (turn, into_us) = (at_us / 2_000, at_us % 2_000);
        let before = (turn + 3) % 4;
        let is_left = into_us < 1_300 && turn > 0 && u64::from(*queue) == before;
        assert!(
            u64::from(*queue) == turn % 4 || is_left,
            "queue {queue} at {at_us} us"
        );
    }
    let report = &cell.flow_reports["turns"];
    assert_eq!(report["datagrams"], sent.len(), "{report}");
}

/// Each processor's generator has a queue.
const PROCESSORS: &str = r#"
queues = 2
sink = true
ring = 1024
bql_min = "1mb"
[[tc]]
host = "tx"
lines = [
  "qdisc add dev eth0 root handle 1: mq",
  "qdisc add dev eth0 clsact",
]
[[tc]]
host = "tx"
each = { q = "1..2" }
lines = [
  "qdisc add dev eth0 parent 1:${q:x} pfifo limit 500",
  "filter add dev eth0 egress protocol ip flower ip_proto udp dst_port ${5000 + q} action skbedit queue_mapping ${q - 1}",
]
[[flow]]
name = "generator-${q}"
type = "pktgen"
from = "tx"
to = "rx"
port = "${5000 + q}"
payload = "100b"
each = { q = "1..2" }
"#;

/// Two processors send through one cable at once. Neither was idle, no frame is lost, and the wire
/// is one: frames leave one after the other.
#[test]
fn two_processors_share_a_cable() {
    let folder = tempfile::tempdir().unwrap();
    let mut scenario = scenario(PROCESSORS);
    for cell in &mut scenario.cells {
        cell.cpus = 2;
        cell.flows.retain(|flow| flow.name != "bulk");
        cell.cables[0].rate_bps = 10_000_000_000;
        cell.duration_ns = 600_000_000;
        (cell.windows[0].from_ns, cell.windows[0].to_ns) = (100_000_000, cell.duration_ns);
        cell.flows
            .iter_mut()
            .for_each(|f| f.stop_ns = cell.duration_ns);
    }
    let output = run(&scenario, folder.path(), LONG).unwrap();
    let cell = &output.cells[0];
    assert!(
        cell.busy_ns[0] > 750_000_000,
        "{} ns of 500 ms",
        cell.busy_ns[0]
    );
    let sent = records(&fs::read(cell.dir.join("timeline.wire.a")).unwrap());
    for queue in 0..2 {
        let frames = sent.iter().filter(|record| record.2 == queue).count();
        assert!(frames > 500, "{frames} frames on queue {queue}");
    }
    let of_frame_ps = (142 + 24) * 800;
    for pair in sent.windows(2) {
        assert!(pair[1].0 >= pair[0].0 + of_frame_ps, "{pair:?}");
    }
    let counters = fs::read_to_string(cell.dir.join("counters.wire")).unwrap();
    let of = |key: &str| -> usize {
        let value = counters.lines().find_map(|line| line.strip_prefix(key));
        value.unwrap().trim().parse().unwrap()
    };
    assert_eq!(of("a.data_frames "), sent.len(), "{counters}");
    assert_eq!(of("a.sunk "), sent.len(), "{counters}");
}

fn lost_frames_are_counted(kernel: Kernel) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let (library, script) = (
        root.join("kernel/tests/lib.sh"),
        root.join("lab/tests/faults.sh"),
    );
    let folder = tempfile::tempdir().unwrap();
    let spec = ScriptSpec {
        kernel,
        modules: &["wire", "sch_psp", "pktgen"],
        files: &[(&library, "/tests/lib.sh"), (&script, "/tests/faults.sh")],
        command: "sh /tests/faults.sh",
        seed: 1,
        timeout: LONG,
        out_dir: folder.path(),
    };
    let output = run_script(&Lab::find().unwrap(), &spec, &Quiet)
        .unwrap_or_else(|error| panic!("{kernel}: {error}"));
    let text = &output.output;
    let done = text.lines().any(|line| line.starts_with("1.."));
    assert!(output.status == 0 && done, "{kernel}:\n{text}");
}

testkit::on_every_kernel! {
    every_frame_lost_by_a_fault_is_counted: lost_frames_are_counted;
}
