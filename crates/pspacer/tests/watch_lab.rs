// SPDX-License-Identifier: MIT OR Apache-2.0
//! `pspacer watch` on the kernels of distributions: it sees and names stalls that are made in
//! the laboratory's guest.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail that way")]

mod common;

use std::time::Duration;

use common::root;
use scenario::Kernel;
use serde_json::Value;
use vmlab::{Lab, Quiet, ScriptSpec, run_script};

const MODULES: &[&str] = &["veth", "sch_netem"];

fn watched(kernel: Kernel) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let mut files = common::program(folder.path(), "watch");
    let script = root().join("crates/pspacer/tests/watch/stops.sh");
    files.push((script, "/watch/stops.sh".to_owned()));
    let files: Vec<_> = files
        .iter()
        .map(|(from, to)| (from.as_path(), to.as_str()))
        .collect();
    let spec = ScriptSpec {
        kernel,
        modules: MODULES,
        files: &files,
        command: "sh /watch/stops.sh",
        seed: 1,
        timeout: Duration::from_secs(600),
        out_dir: folder.path(),
    };
    let ran = run_script(&Lab::find().unwrap(), &spec, &Quiet).unwrap_or_else(|error| {
        let console = std::fs::read_to_string(folder.path().join("console.log"));
        panic!("{kernel}: {error}\n{}", console.unwrap_or_default())
    });
    assert_eq!(ran.status, 0, "{kernel}:\n{}", ran.output);
    common::watched(&ran.output)
}

fn check(kernel: Kernel) {
    let watched = watched(kernel);
    assert_eq!(watched["lost_records"], 0, "{kernel}: {watched:#}");
    let connections = watched["connections"].as_array().unwrap();
    let sender = connections
        .iter()
        .find(|c| c["acked_bytes"].as_u64() > Some(1_000_000));
    let sender = sender.unwrap_or_else(|| panic!("{kernel}: {watched:#}"));
    assert_eq!(sender["server"], "10.1.1.2:5001");
    for (cause, side) in [
        ("ack-loss", "network"),
        ("silent-path", "network"),
        ("receiver-window-closed", "receiver"),
    ] {
        let stops = sender["stops"].as_array().unwrap();
        let stop = stops
            .iter()
            .find(|stop| stop["cause"] == cause && stop["kind"] == "silence");
        let stop = stop.unwrap_or_else(|| panic!("{kernel}: no {cause}: {watched:#}"));
        assert_eq!(stop["side"], side);
        assert!(
            stop["duration_s"].as_f64() > Some(0.9),
            "{kernel}: {stop:#}"
        );
    }
    let ran = |cost: &Value| cost["runs"].as_u64() > Some(0);
    let costs = watched["costs"].as_array().unwrap();
    assert!(costs.iter().all(ran), "{kernel}: {costs:?}");
}

#[test]
fn stops_are_named_on_6_1() {
    check(Kernel::V6_1);
}

#[test]
fn stops_are_named_on_6_12() {
    check(Kernel::V6_12);
}

#[test]
fn stops_are_named_on_7() {
    check(Kernel::V7);
}
