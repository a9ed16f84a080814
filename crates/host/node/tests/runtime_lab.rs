// SPDX-License-Identifier: MIT OR Apache-2.0
//! Debian's containerd lays pods out in the laboratory's guest (`make cni`), and pspacer-cni paces
//! them: bytes of the first second of two pods beside a transfer of the host, what `list` says, and
//! what is left of sandboxes that were stopped or killed.

use std::path::Path;
use std::time::Duration;

use scenario::Kernel;
use testkit::guest::{first_second, frames, plugins, program, test_program};

use crate::guest::run_in_guest;

const MODULES: &[&str] = &[
    "sch_psp",
    "wire",
    "veth",
    "overlay",
    "sch_fq",
    "sch_fq_codel",
    "sch_tbf",
    "ifb",
    "cls_u32",
    "act_mirred",
    "sch_ingress",
    "cls_bpf",
];
const MBIT: u64 = 100;
const MS: u64 = 1300;
const GUEST_TIMEOUT: Duration = Duration::from_secs(600);

fn check(kernel: Kernel, backend: &str) {
    let folder = tempfile::tempdir().unwrap();
    let here = testkit::crate_folder();
    let (mut files, kubelet) = test_program(folder.path(), "runtime_lab::as_kubelet");
    let built = crate::agent::program().with_file_name("pspacer-cni");
    assert!(built.exists(), "{}: no such file", built.display());
    files.extend(program(&built, folder.path(), "cni", "pspacer-cni"));
    files.extend(plugins(&["ptp", "host-local", "loopback", "bandwidth"]));
    let runtime = std::env::var("CONTAINERD").expect("make cni names containerd's folder");
    for (from, to) in [
        ("usr/bin/containerd", "/ctr/containerd"),
        (
            "usr/bin/containerd-shim-runc-v2",
            "/ctr/containerd-shim-runc-v2",
        ),
        ("usr/bin/ctr", "/ctr/ctr"),
        ("usr/sbin/runc", "/ctr/runc"),
        (
            "usr/lib/x86_64-linux-gnu/libseccomp.so.2",
            "/lib/x86_64-linux-gnu/libseccomp.so.2",
        ),
    ] {
        files.push((Path::new(&runtime).join(from), to.to_owned()));
    }
    for (from, to) in [
        ("tests/guest/runtime.sh", "/cni/runtime.sh"),
        ("../../../kernel/tests/lib.sh", "/cni/lib.sh"),
    ] {
        files.push((here.join(from), to.to_owned()));
    }
    let command = format!("KUBELET='{kubelet}' sh /cni/runtime.sh {MBIT} {MS} {backend}");
    run_in_guest(
        (kernel, MODULES),
        &files,
        &command,
        GUEST_TIMEOUT,
        folder.path(),
    );
    let frames = frames(folder.path(), backend);
    for (name, port) in [("pod a", 5001), ("pod b", 5002), ("the host", 5003)] {
        let (bytes, ahead_bytes) = first_second(&frames, port, MBIT);
        let found_mbit = bytes as f64 / 125_000.0;
        println!(
            "{kernel}, {backend}, {name}: {found_mbit:.2} Mbit/s in the first second, at most {:.0} kB \
             ahead of {MBIT} Mbit/s",
            ahead_bytes / 1000.0
        );
        let rate = MBIT as f64;
        let bounds = match backend {
            // The bucket of tokens that containerd asks for lets a second of the line's speed through.
            "stock" => rate * 1.5..=1000.0,
            _ if port != 5003 => rate * 0.97..=rate * 1.01,
            _ => 500.0..=1000.0,
        };
        assert!(bounds.contains(&found_mbit), "{name}: {found_mbit}");
    }
}

/// Makes a call of CRI in the guest.
#[test]
#[ignore = "runs in the guest"]
fn as_kubelet() {
    crate::runtime::make(&std::env::var("CRI_CALL").unwrap());
}

#[test]
#[ignore = "make cni: needs Debian's containerd and plugins"]
fn pods_of_containerd_by_the_module() {
    check(Kernel::V6_12, "module");
}

#[test]
#[ignore = "make cni: needs Debian's containerd and plugins"]
fn pods_of_containerd_by_departure_times() {
    check(Kernel::V6_12, "edt");
}

#[test]
#[ignore = "make cni: needs Debian's containerd and plugins"]
fn pods_of_containerd_by_the_stock_plugin() {
    check(Kernel::V6_12, "stock");
}
