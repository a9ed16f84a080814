// SPDX-License-Identifier: MIT OR Apache-2.0
//! The least and the largest value of each key that `plan` takes is applied whole, in the
//! laboratory's guest: no change is refused, and nothing is left to plan then.
//!
//! This program runs in the guest, too, as the command: see [`in_guest`].

#![allow(clippy::print_stdout, reason = "the guest's output says what was done")]

use std::fs;
use std::path::Path;
use std::time::Duration;

use host_apply::{Chosen, Command, PlanArgs};
use host_config::Backend;
use scenario::Kernel;
use serde_json::Value;
use testkit::guest::test_program;

use crate::commands::{apply, remove, run};
use crate::extremes::{KEYS, LAYERS, Site, ends, file};
use crate::guest::run_in_guest;

const DEVICE: &str = "c1a";
const FILE: &str = "/tmp/host.toml";
/// What stands between two files.
const BETWEEN: &str = "\n# next\n";
/// Fewest files of a backend: all keys that it has, with both ends.
const LEAST: usize = 48;
/// Most files of a guest.
const OF_A_GUEST: usize = 32;

/// Returns the files of a backend that `plan` takes with the least and the largest value of a key.
fn files(backend: Backend) -> Vec<String> {
    // The fewer keys a backend has, the more layers.
    let layers = match backend {
        Backend::Module => &LAYERS[..1],
        Backend::Bpf => &LAYERS[..2],
        Backend::Edt => LAYERS,
    };
    let mut files = Vec::new();
    for layer in layers {
        let site = Site {
            backend,
            device: DEVICE,
            layer,
        };
        // The cable has no byte queue limits.
        let keys = KEYS
            .iter()
            .filter(|(_, _, key, _)| !key.starts_with("byte"));
        for (kind, place, key, unit) in keys.copied() {
            let Some((least, most)) = ends(site, (kind, place, key, unit)) else {
                continue;
            };
            for value in [least, most] {
                let text = file(site, kind, &[(place, key, unit, value)]);
                if backend == Backend::Edt {
                    files.push(text.replace("mode =", "queues = \"mq\"\nmode ="));
                }
                files.push(text);
            }
        }
    }
    files
}

/// Returns the changes that are left to plan.
fn left() -> Vec<Value> {
    let said = run(&Command::Plan(PlanArgs {
        chosen: Chosen {
            files: vec![FILE.into()],
            device: None,
            take_over: false,
        },
        json: true,
    }));
    let plan: Value = serde_json::from_str(&said).unwrap();
    plan["devices"][0]["changes"].as_array().unwrap().clone()
}

/// Applies all files that the file that `EXTREMES` names has.
#[test]
#[ignore = "runs in the guest"]
fn in_guest() {
    let files = fs::read_to_string(std::env::var("EXTREMES").unwrap()).unwrap();
    for text in files.split(BETWEEN) {
        println!("{text}");
        fs::write(FILE, text).unwrap();
        assert!(!left().is_empty());
        apply(Path::new(FILE));
        assert_eq!(left(), Vec::<Value>::new());
        remove(DEVICE);
    }
    println!("applied {}", files.split(BETWEEN).count());
}

const MODULES: &[&str] = &[
    "sch_psp",
    "wire",
    "cls_bpf",
    "cls_flower",
    "sch_fq",
    "sch_ingress",
];

/// Returns all files of a backend.
fn all_files(backend: Backend) -> Vec<String> {
    let files = files(backend);
    assert!(files.len() >= LEAST, "{backend:?} {}", files.len());
    files
}

/// Applies files one after the other, so many in each guest that it ends in its time.
fn check(kernel: Kernel, files: &[String]) {
    for files in files.chunks(OF_A_GUEST) {
        check_some(kernel, files);
    }
}

fn check_some(kernel: Kernel, files: &[String]) {
    let folder = tempfile::tempdir().unwrap();
    let (mut programs, command) = test_program(folder.path(), "extremes_lab::in_guest");
    let lib = testkit::root().join("kernel/tests/lib.sh");
    programs.push((lib, "/extremes/lib.sh".to_owned()));
    let list = folder.path().join("files");
    fs::write(&list, files.join(BETWEEN)).unwrap();
    programs.push((list, "/extremes/files".to_owned()));
    // The output of what fails ends with the file.
    let script = format!(
        "cd /extremes && . ./lib.sh && cable c1 1000000000 queues=2 && \
         EXTREMES=files {command} >/tmp/out 2>&1 || {{ tail -40 /tmp/out; exit 1; }}; \
         grep '^applied' /tmp/out; finish"
    );
    let said = run_in_guest(
        (kernel, MODULES),
        &programs,
        &script,
        Duration::from_secs(600),
        folder.path(),
    );
    let applied = said.lines().filter(|line| line.starts_with("applied "));
    let expected = format!("applied {}", files.len());
    assert_eq!(applied.collect::<Vec<_>>(), [expected], "{said}");
}

fn check_both(kernel: Kernel) {
    for backend in [Backend::Module, Backend::Edt] {
        check(kernel, &all_files(backend));
    }
}

testkit::on_every_kernel! {
    extremes_are_applied_whole: check_both;
}

/// The kernel verifies the program with each file.
#[test]
fn the_first_extremes_are_applied_whole_by_a_qdisc_of_bpf_on_7() {
    let files = all_files(Backend::Bpf);
    check(Kernel::V7, &files[..files.len() / 2]);
}

#[test]
fn the_other_extremes_are_applied_whole_by_a_qdisc_of_bpf_on_7() {
    let files = all_files(Backend::Bpf);
    check(Kernel::V7, &files[files.len() / 2..]);
}
