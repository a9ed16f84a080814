// SPDX-License-Identifier: MIT OR Apache-2.0
//! `pspacer watch` on the kernels of distributions: it sees and names stalls that are made in
//! the laboratory's guest.

use crate::common;

use crate::common::guest;
use scenario::Kernel;
use serde_json::Value;

const MODULES: &[&str] = &["veth", "sch_netem"];

fn watched(kernel: Kernel) -> Value {
    let script = "crates/pspacer/tests/watch/stops.sh";
    common::watched(&guest::output(kernel, "watch", MODULES, &[script]))
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
        let stalls = sender["stalls"].as_array().unwrap();
        let stall = stalls
            .iter()
            .find(|stall| stall["cause"] == cause && stall["kind"] == "silence");
        let stall = stall.unwrap_or_else(|| panic!("{kernel}: no {cause}: {watched:#}"));
        assert_eq!(stall["side"], side);
        assert!(
            stall["duration_s"].as_f64() > Some(0.9),
            "{kernel}: {stall:#}"
        );
    }
    let ran = |cost: &Value| cost["runs"].as_u64() > Some(0);
    let costs = watched["costs"].as_array().unwrap();
    assert!(costs.iter().all(ran), "{kernel}: {costs:?}");
}

#[test]
fn stalls_are_named_on_6_1() {
    check(Kernel::V6_1);
}

#[test]
fn stalls_are_named_on_6_12() {
    check(Kernel::V6_12);
}

#[test]
fn stalls_are_named_on_7() {
    check(Kernel::V7);
}
