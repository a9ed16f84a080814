// SPDX-License-Identifier: MIT OR Apache-2.0
//! `pspacer agent` with a manager on loopback and the ports of a real kernel, in a guest: grants
//! that are told when they are in force, agents and managers that are killed, leases that end.

use scenario::Kernel;
use serde_json::Value;

use crate::common::guest;

/// 10.0.0.2, 2001:db8::2 and port 5004, as `save` writes them.
const IPV4: &str = "0a000002";
const IPV6: &str = "20010db8000000000000000000000002";
const PORT: &str = "138c";
const MODULES: &[&str] = &["sch_psp", "dummy", "cls_flower", "cls_bpf"];

/// What a port must say of a stream of 10,000 bytes of payload: six datagrams of 1472 and one of 1168, each
/// with 66 bytes around it, are 10,462 on the wire; in what is saved of BPF's in hexadecimal.
struct Signs {
    stream: [&'static str; 3],
    best_effort: &'static str,
}

const BY_MODULE: Signs = Signs {
    stream: ["mode rt", "reserve 10462", "layer wire"],
    best_effort: "mode nrt",
};
const BY_BPF: Signs = Signs {
    stream: ["\"made\": \"bpf\"", "de28000000000000", "flower"],
    best_effort: "\"made\": \"bpf\"",
};

fn reservations_are_put_into_force(kernel: Kernel) {
    let files = [
        "crates/pspacer/tests/agents/force.sh",
        "kernel/tests/lib.sh",
    ];
    check(
        kernel,
        &BY_MODULE,
        &guest::output(kernel, "agents", MODULES, &files),
    );
}

fn check(kernel: Kernel, signs: &Signs, output: &str) {
    let said = guest::outputs(output);
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
    for (name, address) in [
        ("camera", IPV4),
        ("r1", IPV4),
        ("camera again", IPV4),
        ("away", IPV4),
        ("camera at last", IPV6),
        ("stays", IPV6),
    ] {
        let port = &of(name).0;
        let words = signs.stream.into_iter();
        for words in words.chain([signs.best_effort, address, PORT]) {
            assert!(port.contains(words), "{kernel}: {name}: {words}:\n{port}");
        }
    }
    assert_eq!(of("camera again"), of("camera"), "{kernel}");
    // What has ended is best effort: a class of its bytes, and no filter.
    for name in ["released", "ended"] {
        let port = &of(name).0;
        let is_best_effort = port.contains(signs.best_effort) && !port.contains("mode rt");
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

testkit::on_every_kernel! {
    reservations_are_put_into_force: reservations_are_put_into_force;
}

#[test]
fn reservations_are_put_into_force_by_bpf_on_7() {
    let files = [
        "crates/pspacer/tests/agents/force-bpf.sh",
        "crates/pspacer/tests/agents/force.sh",
        "kernel/tests/lib.sh",
    ];
    let kernel = Kernel::V7;
    check(
        kernel,
        &BY_BPF,
        &guest::output(kernel, "agents", &MODULES[1..], &files),
    );
}
