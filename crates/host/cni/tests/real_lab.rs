// SPDX-License-Identifier: MIT OR Apache-2.0
//! Real parts beside the stock bandwidth plugin, in the laboratory's guest (`make cni`): bytes of the
//! first second, how far they are ahead of the rate, how long a probe waits.

#![allow(clippy::print_stdout, reason = "tests say what they measured")]

use std::path::{Path, PathBuf};

use scenario::Kernel;
use testkit::guest::{first_second, frames, plugins, program};

use crate::GUEST_TIMEOUT;
use crate::guest::run_in_guest;

const MODULES: &[&str] = &[
    "sch_psp",
    "wire",
    "veth",
    "bridge",
    "ifb",
    "sch_tbf",
    "sch_fq",
    "sch_ingress",
    "cls_bpf",
    "cls_u32",
    "act_mirred",
];
const MBIT: u64 = 100;
const MS: u64 = 1300;

fn check(kernel: Kernel) {
    let folder = tempfile::tempdir().unwrap();
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let built = crate::plugin();
    let mut files = program(&built, folder.path(), "cni", "pspacer-cni");
    let tool = std::env::var("CNITOOL").expect("make cni names cnitool");
    files.push((PathBuf::from(tool), "/cni/cnitool".to_owned()));
    files.extend(plugins(&["ptp", "bridge", "host-local", "bandwidth"]));
    for (from, to) in [
        ("tests/pods/real.sh", "/cni/real.sh"),
        ("../../../kernel/tests/lib.sh", "/cni/lib.sh"),
    ] {
        files.push((here.join(from), to.to_owned()));
    }
    let command = format!("sh /cni/real.sh {MBIT} {MS}");
    run_in_guest(
        (kernel, MODULES),
        &files,
        &command,
        GUEST_TIMEOUT,
        folder.path(),
    );
    let second_bytes = (MBIT * 125_000) as f64;
    for name in ["stock", "stock-small", "module", "edt", "bridged"] {
        let (bytes, ahead_bytes) = first_second(&frames(folder.path(), name), 5001, MBIT);
        println!(
            "{kernel}, {name}: {:.2} of {MBIT} Mbit/s in the first second, at most {:.0} kB ahead",
            bytes as f64 / 125_000.0,
            ahead_bytes / 1000.0
        );
        if !name.starts_with("stock") {
            assert!(bytes as f64 <= second_bytes * 1.01, "{name}: {bytes}");
        }
    }
}

#[test]
#[ignore = "make cni: needs cnitool and Debian's plugins"]
fn real_parts_on_6_12() {
    check(Kernel::V6_12);
}
