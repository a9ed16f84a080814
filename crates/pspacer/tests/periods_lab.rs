// SPDX-License-Identifier: MIT OR Apache-2.0
//! rt, paced and nrt classes share one port on real kernels, and each keeps its promise.

use std::process::Command;

use scenario::Kernel;
use serde_json::Value;

use crate::common::root;

fn every_promise_is_kept(kernel: Kernel) {
    let plan = root().join("crates/lab/vmlab/tests/plans/periods.toml");
    let folder = tempfile::tempdir().unwrap();
    let ran = Command::new(env!("CARGO_BIN_EXE_pspacer"))
        .args([
            "lab",
            "run",
            "--json",
            "--kernel",
            &kernel.to_string(),
            "--out",
        ])
        .arg(folder.path().join("out"))
        .arg(&plan)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ran.stderr);
    let result: Value = serde_json::from_slice(&ran.stdout)
        .unwrap_or_else(|error| panic!("{kernel}: {error}\n{said}"));
    let cell = &result["cells"][0];
    let bounds = cell["bounds"].as_array().unwrap();
    assert_eq!(bounds.len(), 6, "{kernel}: {bounds:#?}");
    let broken: Vec<_> = bounds.iter().filter(|bound| bound["ok"] != true).collect();
    assert!(broken.is_empty(), "{kernel}: {broken:#?}\n{}", cell["tc"]);
    assert!(ran.status.success(), "{kernel}: {said}");
}

testkit::on_every_kernel! {
    every_promise_of_a_port_is_kept: every_promise_is_kept;
}
