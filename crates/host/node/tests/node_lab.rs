// SPDX-License-Identifier: MIT OR Apache-2.0
//! A node in the laboratory's guest: a claim's rate is in force on its pod's device after ADD, and
//! the agent puts back what was deleted.

#![allow(clippy::print_stdout, reason = "tests say what they measured")]

use std::time::Duration;

use cni::{Io, run};
use scenario::Kernel;
use testkit::guest::{frames, program, starts, test_program};

use crate::guest::run_in_guest;

const MODULES: &[&str] = &[
    "sch_psp",
    "wire",
    "veth",
    "cls_bpf",
    "sch_fq",
    "sch_ingress",
];
const FRAME_BYTES: u64 = 1500;
const RATE_BPS: f64 = 60e6;
const GUEST_TIMEOUT: Duration = Duration::from_secs(600);

fn check(kernel: Kernel, backends: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let here = testkit::crate_folder();
    let (mut files, plugin) = test_program(folder.path(), "node_lab::as_plugin");
    files.extend(program(
        &crate::agent::program(),
        folder.path(),
        "node",
        "pspacer-node",
    ));
    for (from, to) in [
        ("tests/guest/node.sh", "/node/node.sh"),
        ("../cni/tests/pods/pod.sh", "/node/pod.sh"),
        ("../../../kernel/tests/lib.sh", "/node/lib.sh"),
    ] {
        files.push((here.join(from), to.to_owned()));
    }
    let node = "/node/ld.so --library-path /node /node/pspacer-node";
    let command = format!(
        "PLUGIN='{plugin}' NODE='{node}' sh /node/node.sh {}",
        backends.join(" ")
    );
    run_in_guest(
        (kernel, MODULES),
        &files,
        &command,
        GUEST_TIMEOUT,
        folder.path(),
    );
    for backend in backends {
        for name in ["claim", "repaired"] {
            let starts = starts(&frames(folder.path(), &format!("{backend}-{name}")), 5001);
            assert!(starts.len() > 50, "{} frames", starts.len());
            let span_ns = (starts[starts.len() - 1] - starts[0]) as f64;
            let bits = (starts.len() as u64 - 1) * FRAME_BYTES * 8;
            let found_bps = bits as f64 * 1e9 / span_ns;
            println!(
                "{kernel}, {backend}, {name}: {:.2} Mbit/s of 60",
                found_bps / 1e6
            );
            assert!(
                found_bps <= RATE_BPS * 1.01,
                "{backend}, {name}: {found_bps}"
            );
            assert!(
                found_bps >= RATE_BPS * 0.97,
                "{backend}, {name}: {found_bps}"
            );
        }
    }
}

/// Answers a call of CNI in the guest.
#[test]
#[ignore = "runs in the guest"]
fn as_plugin() {
    let mut input = std::fs::File::open("/tmp/conf").unwrap();
    let mut variable = |name: &str| std::env::var(name).ok();
    let mut io = Io {
        input: &mut input,
        out: &mut std::io::stdout(),
        log: &mut std::io::stderr(),
    };
    assert!(run(&[], &mut variable, &mut io));
}

testkit::on_every_kernel! {
    claims_are_in_force: |kernel| check(kernel, if kernel == Kernel::V7 {
        &["module", "bpf", "edt"]
    } else {
        &["module", "edt"]
    });
}
