// SPDX-License-Identifier: MIT OR Apache-2.0
//! Processor time of `pspacer apply` for ten thousand subscribers, from nothing and again, beside that
//! of `tc -batch` for the same classes in htb, in the laboratory's guest, where it is instructions.
//!
//! `cargo test --release -p host-apply --test it -- --ignored --nocapture apply_cost_lab::measure`

#![allow(clippy::unwrap_used, reason = "tests fail that way")]
#![allow(clippy::print_stdout, reason = "tests say what they measured")]

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::time::Duration;

use scenario::Kernel;
use testkit::guest::test_program;

use crate::commands;
use crate::guest::run_in_guest;
use crate::subscribers_lab::{GROUPS, address, file};

const SUBSCRIBERS: usize = 10_000;
const MODULES: [&str; 5] = ["sch_psp", "sch_htb", "cls_flower", "cls_bpf", "veth"];
const WAYS: [&str; 4] = ["apply", "again", "classes", "filters"];

#[test]
#[ignore = "runs in the guest"]
fn in_guest() {
    commands::apply(Path::new("/cost/c1a.toml"));
}

/// Returns what makes the classes of [`file`] in htb, and what gives them their packets.
fn batches() -> (String, String) {
    let (mut classes, mut filters) = (String::new(), String::new());
    let minor = |subscriber| 0x100 + subscriber;
    classes.push_str("qdisc add dev c1a root handle 1: htb\n");
    for group in 1..=GROUPS {
        let rates = "rate 60mbit ceil 60mbit";
        writeln!(
            classes,
            "class add dev c1a parent 1: classid 1:{group:x} htb {rates}"
        )
        .unwrap();
    }
    for i in 0..SUBSCRIBERS {
        let (group, class) = (1 + i % GROUPS, minor(i));
        let add = format!("class add dev c1a parent 1:{group:x} classid 1:{class:x}");
        writeln!(classes, "{add} htb rate 1mbit ceil 2mbit").unwrap();
        for (prio, protocol, to) in [
            (1, "ip", address(i)),
            (2, "ipv6", format!("2001:db8:{i:x}::/56")),
        ] {
            let add = format!("filter add dev c1a parent 1: prio {prio} protocol {protocol}");
            writeln!(filters, "{add} flower dst_ip {to} classid 1:{class:x}").unwrap();
        }
    }
    (classes, filters)
}

#[test]
#[ignore = "measures, with the release build"]
fn measure() {
    let folder = tempfile::tempdir().unwrap();
    let (mut files, apply) = test_program(folder.path(), "apply_cost_lab::in_guest");
    let (classes, filters) = batches();
    for (name, text) in [
        ("c1a.toml", file(SUBSCRIBERS, SUBSCRIBERS, 2, 0)),
        ("classes", classes),
        ("filters", filters),
    ] {
        let from = folder.path().join(name);
        fs::write(&from, text).unwrap();
        files.push((from, format!("/cost/{name}")));
    }
    let script = format!(
        "set -e; ip link add c1a type veth peer name c1b; ip link set c1a up; ip link set c1b up
        cost() {{ way=$1; shift; busybox time -p $* >/tmp/said 2>/tmp/time || {{ cat /tmp/said /tmp/time; exit 1; }}
        echo $way $(sed -n 's/^user //p; s/^sys //p' /tmp/time); }}
        cost apply {apply}; cost again {apply}
        tc class show dev c1a | wc -l; tc qdisc del dev c1a root
        cost classes $(command -v tc) -batch /cost/classes; cost filters $(command -v tc) -batch /cost/filters
        tc class show dev c1a | wc -l"
    );
    let timeout = Duration::from_secs(1200);
    for kernel in [Kernel::V6_1, Kernel::V7] {
        let said = run_in_guest((kernel, &MODULES), &files, &script, timeout, folder.path());
        let spent = WAYS.map(|way| {
            let mut lines = said.lines().map(|line| line.split(' ').collect::<Vec<_>>());
            let words = lines.find(|words| words[0] == way).unwrap();
            words[1..]
                .iter()
                .map(|s| s.parse::<f64>().unwrap())
                .sum::<f64>()
        });
        let [first, again, classes, filters] = spent;
        println!(
            "{kernel}, s: apply {first:.2}, again {again:.2}, tc {classes:.2}, with filters {:.2}; \
             apply {:.2} of tc, {:.2} with filters; again {:.3} of tc",
            classes + filters,
            first / classes,
            first / (classes + filters),
            again / classes
        );
        assert!(first < classes, "apply takes longer than tc");
    }
}
