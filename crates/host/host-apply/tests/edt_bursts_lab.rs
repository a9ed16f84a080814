// SPDX-License-Identifier: MIT OR Apache-2.0
//! What makes the bursts of TCP smaller where nothing cuts them, in the laboratory's guest: a transfer in a
//! class of 10 Mbit/s over a round trip of a tenth of a millisecond. docs/use/without-a-module.md has the
//! table.

#![allow(clippy::print_stdout, reason = "tests say what they measured")]

use std::path::Path;
use std::time::Duration;

use scenario::Kernel;
use testkit::guest::{compile, frames, test_program};

use crate::guest::run_in_guest;

const MODULES: &[&str] = &["wire", "sch_fq", "sch_ingress", "cls_bpf"];

/// Frames that follow each other within this leave back to back: a full one takes 12 us.
const TOGETHER_NS: u64 = 20_000;

/// Returns the sizes of bursts, in frames, the smallest first.
fn bursts(folder: &Path, name: &str) -> Vec<usize> {
    let frames = frames(folder, name);
    let ours = frames.iter().filter(|frame| frame.2 == 5001);
    let starts: Vec<u64> = ours.map(|frame| frame.0).collect();
    let mut sizes = vec![1];
    for two in starts.windows(2) {
        if two[1] - two[0] <= TOGETHER_NS {
            *sizes.last_mut().unwrap() += 1;
        } else {
            sizes.push(1);
        }
    }
    sizes.sort_unstable();
    sizes
}

/// Returns the median and the largest burst of each way.
fn measure(kernel: Kernel) -> Vec<(usize, usize)> {
    let folder = tempfile::tempdir().unwrap();
    let here = testkit::crate_folder();
    let (mut files, command) = test_program(folder.path(), "edt_bpf_lab::in_guest");
    let offload = folder.path().join("offload");
    compile(&here.join("tests/edt/offload.c"), &offload);
    files.push((offload, "/edt/offload".to_owned()));
    for (from, to) in [
        ("tests/edt/bursts.sh", "/edt/bursts.sh"),
        ("../../../kernel/tests/lib.sh", "/edt/lib.sh"),
    ] {
        files.push((here.join(from), to.to_owned()));
    }
    run_in_guest(
        (kernel, MODULES),
        &files,
        &format!("EDT_PROGRAM='{command}' sh /edt/bursts.sh"),
        Duration::from_secs(600),
        folder.path(),
    );
    let ways = ["plain", "ethtool", "size", "segs", "log"];
    let measured = ways.map(|way| {
        let sizes = bursts(folder.path(), way);
        let (median, most) = (sizes[sizes.len() / 2], sizes[sizes.len() - 1]);
        println!(
            "{kernel}: {way}: {median} frames in half of the bursts at most, {most} in the largest, {} bursts",
            sizes.len()
        );
        (median, most)
    });
    measured.to_vec()
}

fn check(kernel: Kernel) {
    let [plain, ethtool, size, segs, log] = measure(kernel)[..] else {
        panic!("five ways");
    };
    assert!(plain.0 >= 10, "{kernel}: {plain:?}");
    // What the page advised until it was measured.
    assert!(ethtool.0 * 10 >= plain.0 * 8, "{kernel}: {ethtool:?}");
    // 8000 bytes are five frames.
    assert!(size.1 <= 6, "{kernel}: {size:?}");
    assert!(segs.1 <= 2, "{kernel}: {segs:?}");
    assert!(log.0 * 3 <= plain.0 * 2, "{kernel}: {log:?}");
}

#[test]
fn what_makes_bursts_of_tcp_smaller_on_6_12() {
    check(Kernel::V6_12);
}

#[test]
fn what_makes_bursts_of_tcp_smaller_on_7() {
    check(Kernel::V7);
}
