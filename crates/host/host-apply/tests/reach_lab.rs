// SPDX-License-Identifier: MIT OR Apache-2.0
//! Packets reach the classes that the file says, by what the far end receives, in the laboratory's
//! guest: behind tags, in fragments, in through interfaces that come later.
//!
//! This program runs in the guest, too, as the command: see [`in_guest`].

#![allow(clippy::print_stdout, reason = "the guest's script reads it")]

use std::path::Path;
use std::time::Duration;

use host_apply::{Chosen, Command, PlanArgs};
use scenario::Kernel;
use testkit::guest::test_program;

use crate::commands::{apply, follow, remove, run};
use crate::guest::run_in_guest;

const MODULES: &[&str] = &[
    "sch_psp",
    "wire",
    "8021q",
    "dummy",
    "tun",
    "cls_bpf",
    "cls_flower",
    "cls_matchall",
    "act_gact",
    "sch_fq",
    "sch_ingress",
];

/// Does what the guest's script asks for in `REACH`.
#[test]
#[ignore = "runs in the guest"]
fn in_guest() {
    let words = std::env::var("REACH").unwrap();
    let words: Vec<&str> = words.split_whitespace().collect();
    let said = match words[..] {
        ["apply", file] => apply(Path::new(file)),
        ["plan", file] => run(&Command::Plan(PlanArgs {
            chosen: Chosen {
                files: vec![file.into()],
                device: None,
                take_over: false,
            },
            json: false,
        })),
        ["remove", device] => remove(device),
        ["follow"] => follow(),
        _ => panic!("{words:?}"),
    };
    for line in said.lines() {
        let is_note = line.contains(": note: ");
        println!("{}{line}", if is_note { "" } else { "PSP " });
    }
}

fn check(kernel: Kernel, backends: &str) {
    let folder = tempfile::tempdir().unwrap();
    let here = testkit::crate_folder();
    let (mut files, command) = test_program(folder.path(), "reach_lab::in_guest");
    for (from, to) in [
        ("tests/reach/reach.sh", "/reach/reach.sh"),
        ("../../../kernel/tests/lib.sh", "/reach/lib.sh"),
    ] {
        files.push((here.join(from), to.to_owned()));
    }
    run_in_guest(
        (kernel, MODULES),
        &files,
        &format!(
            "{} PROGRAM='{command}' sh /reach/reach.sh {backends}",
            testkit::part()
        ),
        Duration::from_secs(600),
        folder.path(),
    );
}

testkit::on_every_kernel! {
    packets_reach_their_classes: |kernel| check(kernel, if kernel == Kernel::V7 {
        "module bpf edt"
    } else {
        "module edt"
    });
}
