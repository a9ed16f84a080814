// SPDX-License-Identifier: MIT OR Apache-2.0
//! `pspacer watch` on the kernels of distributions: it sees and names stalls that are made in
//! the laboratory's guest.

use crate::common;

use crate::common::guest;
use scenario::Kernel;
use serde_json::Value;

const MODULES: &[&str] = &["veth", "sch_netem"];

fn check(kernel: Kernel) {
    let script = "crates/pspacer/tests/watch/stops.sh";
    let printed = guest::output(kernel, "watch", MODULES, &[script]);
    let watched = common::watched(&printed);
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
    assert_eq!(
        sender["process"]["comm"], "psp-send",
        "{kernel}: {sender:#}"
    );
    assert_eq!(sender["cgroup"], "/system.slice/sender.service/below");
    assert_eq!(sender["unit"], "sender.service");
    check_drops(kernel, sender);
    check_saved(kernel, &printed);
    // The filter by the other unit's cgroup leaves this connection out.
    assert!(printed.contains("other: {"), "{kernel}: {printed}");
    assert!(
        printed
            .lines()
            .any(|line| line.starts_with("other: ") && line.contains("\"connections\":0")),
        "{kernel}: {printed}"
    );
    let ran = |cost: &Value| cost["runs"].as_u64() > Some(0);
    let costs = watched["costs"].as_array().unwrap();
    assert!(costs.iter().all(ran), "{kernel}: {costs:?}");
}

/// The qdisc of the sender's own host dropped what it sent: a stall says so.
fn check_drops(kernel: Kernel, sender: &Value) {
    let of_qdisc = |drop: &Value| {
        let reason = drop["reason"].as_str().unwrap_or_default();
        reason.contains("QDISC") && drop["segments"].as_u64() > Some(1)
    };
    let drops = sender["drops"].as_array().unwrap();
    assert!(drops.iter().any(of_qdisc), "{kernel}: {sender:#}");
    let says = |stall: &Value| {
        let explanation = stall["explanation"].as_str().unwrap_or_default();
        explanation.contains("dropped on this host: QDISC")
    };
    let stalls = sender["stalls"].as_array().unwrap();
    assert_eq!(
        stalls.iter().filter(|stall| says(stall)).count(),
        1,
        "{kernel}: {stalls:#?}"
    );
}

/// `pspacer stalls` finds the stalls in the packets that were saved around them, and agrees.
fn check_saved(kernel: Kernel, printed: &str) {
    let saved = printed
        .lines()
        .filter_map(|line| line.strip_prefix("saved: "));
    let mut found = Vec::new();
    for file in saved {
        let judged: Value = serde_json::from_str(file).unwrap();
        let connections = judged["connections"].as_array().unwrap();
        assert_eq!(connections.len(), 1, "{kernel}: {judged:#}");
        let stalls = connections[0]["stalls"].as_array().unwrap();
        found.extend(
            stalls
                .iter()
                .map(|stall| stall["cause"].as_str().unwrap().to_owned()),
        );
    }
    for cause in ["ack-loss", "silent-path", "receiver-window-closed"] {
        assert!(
            found.iter().any(|other| other == cause),
            "{kernel}: no {cause}: {found:?}"
        );
    }
    assert!(
        printed.contains(", of 0 not; 0 packets dropped"),
        "{kernel}: {printed}"
    );
}

testkit::on_every_kernel! {
    stalls_are_named: check;
}
