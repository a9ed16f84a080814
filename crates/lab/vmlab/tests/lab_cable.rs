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

#[test]
fn every_frame_lost_by_a_fault_is_counted() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let (library, script) = (
        root.join("kernel/tests/lib.sh"),
        root.join("lab/tests/faults.sh"),
    );
    for kernel in Kernel::ALL {
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
}
