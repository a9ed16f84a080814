// SPDX-License-Identifier: MIT OR Apache-2.0
//! `pspacer agent` with a manager on loopback and the ports of a real kernel, in a guest: grants
//! that are told when they are in force, agents and managers that are killed, leases that end.

use scenario::Kernel;
use serde_json::Value;

use crate::common::guest::{self, Outputs};

/// 10.0.0.2, 2001:db8::2 and port 5004, as `save` writes them.
const IPV4: &str = "0a000002";
const IPV6: &str = "20010db8000000000000000000000002";
const PORT: &str = "138c";
const MODULES: &[&str] = &["sch_psp", "dummy", "cls_flower", "cls_bpf"];

/// 10,000 bytes of payload: six datagrams of 1472 and one of 1168, each with 66 bytes around it.
const WIRE_BYTES: u64 = 10_000 + 7 * 66;

fn said(kernel: Kernel) -> Outputs {
    let files = [
        "crates/pspacer/tests/agents/force.sh",
        "kernel/tests/lib.sh",
    ];
    guest::outputs(&guest::output(kernel, "agents", MODULES, &files))
}

fn reservations_are_put_into_force(kernel: Kernel) {
    let said = said(kernel);
    let of = |name: &str| &said[name];
    let granted = |name: &str| {
        let (text, status) = of(name);
        assert_eq!(*status, 0, "{kernel}: {name}: {text}\n{:#?}", said);
        let view: Value = serde_json::from_str(text).unwrap();
        assert_eq!(view["in_force"], true, "{kernel}: {name}: {view}");
    };
    // Without agents, or without a word about its frames, nothing is reserved.
    for name in ["without agents", "no frames"] {
        let (text, status) = of(name);
        assert_eq!(*status, 1, "{kernel}: {name}: {text}");
        let words = "not in force in time at camera, r1";
        assert!(text.contains(words), "{kernel}: {name}: {text}");
    }
    granted("granted");
    let reserve = format!("reserve {WIRE_BYTES}");
    for (name, address) in [
        ("camera", IPV4),
        ("r1", IPV4),
        ("camera again", IPV4),
        ("away", IPV4),
        ("camera at last", IPV6),
        ("stays", IPV6),
    ] {
        let port = &of(name).0;
        for words in ["mode rt", "mode nrt", &reserve, address, PORT, "layer wire"] {
            assert!(port.contains(words), "{kernel}: {name}: {words}:\n{port}");
        }
    }
    assert_eq!(of("camera again"), of("camera"), "{kernel}");
    // What has ended is best effort: a class of its bytes, and no filter.
    for name in ["released", "ended"] {
        let port = &of(name).0;
        let is_best_effort = port.contains("mode nrt") && !port.contains("mode rt");
        assert!(
            is_best_effort && !port.contains("flower"),
            "{kernel}: {name}:\n{port}"
        );
    }
    granted("short");
    granted("back");
    // The loss of the manager is said aloud, and what came of it.
    let log = &of("camera log").0;
    assert!(
        log.contains("1 of its reservations stay in force until"),
        "{kernel}: {log}"
    );
    assert!(
        log.contains("the lease of reservation x3 has ended"),
        "{kernel}: {log}"
    );
    assert!(
        log.contains("reservation x2 does not say which frames"),
        "{kernel}: {log}"
    );
    let events: Vec<Value> = of("camera events")
        .0
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let count = |event: &str, id: &str| {
        let mut found = events.clone();
        found.retain(|of| of["event"] == event && of["id"] == id);
        found.len()
    };
    assert_eq!(
        (count("in-force", "x1"), count("in-force", "x4")),
        (1, 1),
        "{kernel}"
    );
    assert_eq!(count("lease-ended", "x3"), 1, "{kernel}");
    assert_eq!(of("stopped").0, "0", "{kernel}");
}

#[test]
fn reservations_are_put_into_force_on_6_1() {
    reservations_are_put_into_force(Kernel::V6_1);
}

#[test]
fn reservations_are_put_into_force_on_6_12() {
    reservations_are_put_into_force(Kernel::V6_12);
}

#[test]
fn reservations_are_put_into_force_on_7() {
    reservations_are_put_into_force(Kernel::V7);
}
