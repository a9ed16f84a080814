// SPDX-License-Identifier: MIT OR Apache-2.0
//! One file by each backend in turn, in the laboratory's guest: what is saved of one is restored,
//! matches by cgroup find their senders, and nothing stays behind.
//!
//! This program runs in the guest, too, as the command: see [`in_guest`].

#![allow(clippy::print_stdout, reason = "the guest's script reads it")]

use std::fs;
use std::path::Path;
use std::time::Duration;

use host_apply::{Command, RestoreArgs, SaveArgs};
use host_config::{ClassNames, Host, minor};
use libbpf_rs::query::ProgInfoIter;
use scenario::Kernel;
use tcpsp::account::Sent;
use tcpsp::attribute::Attribute;
use tcpsp::{PlainQdisc, Tc};
use testkit::guest::{compile, test_program};

use crate::commands::{apply, remove, run};
use crate::guest::run_in_guest;

/// Where the guest's script writes the file.
const FILE: &str = "/tmp/host.toml";

/// Does what the guest's script asks for in `BACKENDS`.
#[test]
#[ignore = "runs in the guest"]
fn in_guest() {
    let words = std::env::var("BACKENDS").unwrap();
    let words: Vec<&str> = words.split_whitespace().collect();
    let said = match words[..] {
        ["apply", file] => apply(Path::new(file)),
        ["remove", device] => remove(device),
        ["save", device, to] => {
            let devices = vec![device.to_owned()];
            fs::write(to, run(&Command::Save(SaveArgs { devices }))).unwrap();
            String::new()
        }
        ["restore", file] => run(&Command::Restore(RestoreArgs {
            guard: false,
            file: file.into(),
            after: None,
            drain: 10_000_000_000,
        })),
        ["show", device] => show(device),
        ["sums", device] => sums(device),
        ["programs"] => {
            let programs = backend::edt::programs().unwrap() + backend::qdisc::programs();
            format!("{programs}\n")
        }
        ["verified"] => verified(),
        ["bands", device] => bands(device),
        _ => panic!("{words:?}"),
    };
    for line in said.lines().filter(|line| !line.contains(": note: ")) {
        println!("PSP {line}");
    }
}

/// Returns the name of each of our programs that the kernel has, and how many instructions the
/// verifier went through to load it.
fn verified() -> String {
    let is_ours = |name: &str| name.starts_with("psp_") || name == "set_departure";
    let programs = ProgInfoIter::default().map(|info| {
        let name = info.name.to_string_lossy().into_owned();
        (name, info.verified_insns)
    });
    let ours = programs.filter(|(name, _)| is_ours(name));
    ours.map(|(name, count)| format!("{name} {count}\n"))
        .collect()
}

/// Gives an fq of ours other bands, as a newer tc does.
fn bands(device: &str) -> String {
    let mut tc = Tc::open().unwrap();
    let observed = host_apply::observe(&mut tc, device).unwrap();
    let mut map = 3u32.to_ne_bytes().to_vec();
    map.extend([0, 2, 2, 2, 1, 2, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1]);
    let weights = [20_000u32, 196_608, 65_536].map(u32::to_ne_bytes).concat();
    let fq = PlainQdisc {
        parent: minor::mq_class(1),
        handle: minor::below_mq(1),
        kind: "fq",
        options: vec![Attribute::new(16, map), Attribute::new(17, weights)],
    };
    tc.put_qdisc(observed.facts.index, &fq, true).unwrap();
    String::new()
}

/// Returns the name of each class of a device, and the frames that it has sent.
fn show(device: &str) -> String {
    let mut names = ClassNames::default();
    let host = Host::read(FILE, &fs::read_to_string(FILE).unwrap()).unwrap();
    host.devices.iter().for_each(|device| names.add(device));
    let mut tc = Tc::open().unwrap();
    let ports = backend::ports(&mut tc).unwrap_or_else(|error| panic!("{error}"));
    let of_device = ports.iter().filter(|port| port.device == device);
    let classes = of_device.flat_map(|port| &port.classes);
    let lines = classes.map(|class| {
        let name = names.of(device, class.id).unwrap_or("?");
        format!("{name} {}\n", class.psp.stats.sent_frames)
    });
    lines.collect()
}

/// Returns frames and bytes of a device: of its classes and of what has none together, the same with
/// gap frames, then of its qdiscs.
fn sums(device: &str) -> String {
    let mut tc = Tc::open().unwrap();
    let ports = backend::ports(&mut tc).unwrap_or_else(|error| panic!("{error}"));
    let mut of_classes = (0, 0);
    let mut of_qdiscs = (0, 0);
    for port in ports.iter().filter(|port| port.device == device) {
        for class in &port.classes {
            let (counters, stats) = (&class.counters, &class.psp.stats);
            assert_eq!(counters.sent_packets, stats.sent_frames, "{class:?}");
            // Each frame is longer than the shortest: its bytes on the wire are 24 more.
            let wire_bytes = counters.sent_bytes + 24 * stats.sent_frames;
            assert_eq!(stats.sent_wire_bytes, wire_bytes, "{class:?}");
            of_classes.0 += counters.sent_packets;
            of_classes.1 += counters.sent_bytes;
        }
        of_qdiscs.0 += port.counters.sent_packets;
        of_qdiscs.1 += port.counters.sent_bytes;
        assert_eq!(port.psp.stats.sent_frames, of_qdiscs.0, "{port:?}");
    }
    let of_device = ports.iter().filter(|port| port.device == device);
    let sent = Sent::new(of_device).unwrap();
    format!(
        "{} {}\n{} {}\n{} {}\n",
        of_classes.0,
        of_classes.1,
        sent.counted.frames,
        sent.counted.bytes,
        of_qdiscs.0,
        of_qdiscs.1
    )
}

/// Goes from each backend to the next, and where everything is tested back again.
fn check(kernel: Kernel, backends: [&str; 2]) {
    let [once, all] = backends;
    let backends = if testkit::everything() { all } else { once };
    run_script(kernel, MODULES, "backends.sh", backends);
}

fn run_script(kernel: Kernel, modules: &[&str], script: &str, backends: &str) {
    let folder = tempfile::tempdir().unwrap();
    let here = testkit::crate_folder();
    let (mut files, command) = test_program(folder.path(), "backends_lab::in_guest");
    let listener = folder.path().join("listener");
    compile(&here.join("tests/backends/listener.c"), &listener);
    files.push((listener, "/backends/listener".to_owned()));
    for (from, to) in [
        (
            format!("tests/backends/{script}"),
            format!("/backends/{script}"),
        ),
        (
            "../../../kernel/tests/lib.sh".to_owned(),
            "/backends/lib.sh".to_owned(),
        ),
    ] {
        files.push((here.join(from), to));
    }
    run_in_guest(
        (kernel, modules),
        &files,
        &format!(
            "{} PROGRAM='{command}' sh /backends/{script} {backends}",
            testkit::part()
        ),
        Duration::from_secs(600),
        folder.path(),
    );
}

const MODULES: &[&str] = &[
    "sch_psp",
    "wire",
    "cls_flower",
    "cls_bpf",
    "sch_fq",
    "sch_ingress",
    "dummy",
];

testkit::on_every_kernel! {
    one_file_by_each_backend: |kernel| check(kernel, if kernel == Kernel::V7 {
        ["module bpf edt", "module bpf edt bpf module"]
    } else {
        ["module edt", "module edt module"]
    });
}

#[test]
fn whose_packets_are_whose_by_cgroup_on_6_12() {
    run_script(Kernel::V6_12, MODULES, "cgroups.sh", "module edt");
}

#[test]
fn whose_packets_are_whose_by_cgroup_on_7() {
    run_script(Kernel::V7, MODULES, "cgroups.sh", "module bpf edt");
}
