// SPDX-License-Identifier: MIT OR Apache-2.0
//! The patch series for the kernel's tree: the qdisc of each, as a module for the newest kernel,
//! passes its selftest and its conformance cases in a guest.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use scenario::Kernel;
use vmlab::{Lab, Quiet, ScriptSpec, Sources, load_cases, run_script, run_tdc};

use crate::common::{LONG, check_tap, console, run_in, scenario_at};

fn ours() -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../packaging/upstream/pspacer");
    folder.canonicalize().unwrap()
}

fn perl(script: &str, argument: &Path, text: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("text");
    fs::write(&path, text).unwrap();
    let made = Command::new("perl")
        .arg(ours().join(script))
        .arg(argument)
        .stdin(fs::File::open(path).unwrap())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&made.stderr);
    assert!(made.status.success(), "{said}");
    String::from_utf8(made.stdout).unwrap()
}

/// Returns one of our files as a series has it.
fn text(series: &str, name: &str) -> String {
    let all = fs::read_to_string(ours().join(name)).unwrap();
    perl("upto.pl", Path::new(series), &all)
}

/// Makes the C file of a series. Its header has what the series adds to one of the kernel's.
fn qdisc(root: &Path, series: &str) -> String {
    let template = text(series, "sch_pspacer.c.in");
    let qdisc = perl("take.pl", &root.join("core"), &template);
    let attributes = text(series, "pkt_sched_pspacer.h");
    let behind = "#include <net/sch_generic.h>\n";
    assert!(qdisc.contains(behind));
    qdisc.replace(behind, &format!("{behind}{attributes}"))
}

/// Makes sources of which the laboratory compiles a series' qdisc, and its part of tc, where
/// psp and its plugin are.
fn sources_of(series: &str, folder: &Path) -> Sources {
    let root = ours().join("../../..");
    for name in ["lab", "uapi", "core"] {
        symlink(root.join(name), folder.join(name)).unwrap();
    }
    let write = |name: &str, text: &str| {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    let module = "obj-m := sch_psp.o\nsch_psp-y := sch_pspacer.o\n";
    write("kernel/Kbuild", module);
    write("kernel/sch_pspacer.c", &qdisc(&root, series));
    let plugin =
        "q_psp.so: q_pspacer.c\n\t$(CC) $(CFLAGS) -shared -fPIC -Icompat -I. -o $@ q_pspacer.c\n";
    write("tc/Makefile", plugin);
    let read = |path: PathBuf| fs::read_to_string(path).unwrap();
    for name in ["q_pspacer.c", "pkt_sched_pspacer.h"] {
        write(&format!("tc/{name}"), &text(series, name));
    }
    let compat = "tc/compat/iproute2.h";
    write(compat, &read(root.join(compat)));
    for name in ["wire.sh", "flow.sh", "modprobe.sh"] {
        let name = format!("tests/tdc/{name}");
        write(&name, &read(root.join(&name)));
    }
    let guest = read(root.join("tests/tdc/guest.sh"));
    write("tests/tdc/guest.sh", &format!("{PLUGIN}{guest}"));
    Sources::at(folder.to_owned()).unwrap()
}

/// The guest has the plugin by another name.
const PLUGIN: &str = "
for folder in $(find / -xdev -name q_psp.so); do ln -sf q_psp.so ${folder%/*}/q_pspacer.so; done
";

fn selftest(series: &str) {
    run(series, "sch_pspacer.sh", &text(series, "sch_pspacer.sh"));
}

/// Runs a script that says in TAP what it found, in a guest with the qdisc of a series.
fn run(series: &str, name: &str, script_text: &str) {
    let folder = tempfile::tempdir().unwrap();
    let mut lab = Lab::find().unwrap();
    lab.sources = sources_of(series, folder.path());
    let out = folder.path().join("out");
    let script = folder.path().join("script.sh");
    fs::write(&script, script_text).unwrap();
    let sender = folder.path().join("sch_pspacer_txtime");
    let mut files = vec![(script.as_path(), "/tests/script.sh")];
    if ["launch", "gap"].contains(&series) {
        let source = sender.with_extension("c");
        fs::write(&source, text(series, "sch_pspacer_txtime.c")).unwrap();
        testkit::guest::compile(&source, &sender);
        files.push((&sender, "/tests/sch_pspacer_txtime"));
    }
    // The guest's shell has a tc and an ip of its own.
    let command = format!(
        r#"{PLUGIN}
            tc() {{ /usr/sbin/tc "$@"; }}
            ip() {{ /usr/sbin/ip "$@"; }}
            chmod +x /tests/*
            TXTIME=/tests/sch_pspacer_txtime TC=/usr/sbin/tc
            . /tests/script.sh"#
    );
    let spec = ScriptSpec {
        kernel: Kernel::V7,
        modules: &[
            "sch_psp",
            "dummy",
            "pktgen",
            "sch_tbf",
            "cls_matchall",
            "veth",
            "bridge",
        ],
        files: &files,
        command: &command,
        seed: 1,
        timeout: LONG,
        out_dir: &out,
    };
    let ran = run_script(&lab, &spec, &Quiet)
        .unwrap_or_else(|error| panic!("{error}\n{}", console(&out)));
    check_tap(Kernel::V7, name, ran.status, &ran.output);
}

#[test]
fn the_selftest_passes() {
    selftest("first");
}

#[test]
fn the_selftest_with_a_ceil_passes() {
    selftest("ceil");
}

#[test]
fn the_selftest_with_launch_times_passes() {
    selftest("launch");
}

#[test]
fn the_selftest_with_gap_frames_passes() {
    selftest("gap");
}

/// A class of 300 Mbit/s on a cable of 1 Gbit/s, and interrupts that are held up at random. The
/// qdisc is told a rate of the line.
const WIRE: &str = r#"
sink = true
bql_min = "64kb"
[noise]
hold_max = "60us"
every = "500us"
[[tc]]
host = "tx"
lines = [
  "qdisc add dev eth0 root handle 1: OPTIONS default 1",
  "class add dev eth0 parent 1: classid 1:1 psp rate 300mbit",
]
"#;

/// Returns when packets of that class begin on the cable, in ps.
fn departures(options: &str) -> Vec<u64> {
    let folder = tempfile::tempdir().unwrap();
    let mut lab = Lab::find().unwrap();
    let sources = folder.path().join("sources");
    fs::create_dir(&sources).unwrap();
    lab.sources = sources_of("gap", &sources);
    // A scenario's guest loads psp's plugin, so the qdisc has that name.
    for (name, from, to) in [
        (
            "kernel/sch_pspacer.c",
            ".id\t\t= \"pspacer\"",
            ".id\t\t= \"psp\"",
        ),
        ("tc/q_pspacer.c", "pspacer_qdisc_util", "psp_qdisc_util"),
        ("tc/q_pspacer.c", ".id = \"pspacer\"", ".id = \"psp\""),
    ] {
        let text = fs::read_to_string(sources.join(name)).unwrap();
        assert!(text.contains(from), "{name}: {from}");
        fs::write(sources.join(name), text.replace(from, to)).unwrap();
    }
    let scenario = scenario_at("1gbit", "100ms", &WIRE.replace("OPTIONS", options));
    let out = folder.path().join("out");
    let output = run_in(&lab, Kernel::V7, &scenario, &out, LONG)
        .unwrap_or_else(|error| panic!("{error}\n{}", console(&out)));
    let timeline = fs::read(output.cells[0].dir.join("timeline.wire.a")).unwrap();
    // Start and length on the wire; the kind is 0 for what a flow sends.
    let packets = timeline.chunks_exact(32).filter(|record| record[28] == 0);
    let starts: Vec<u64> = packets
        .filter(|record| record[20..24] == 1538_u32.to_le_bytes())
        .map(|record| u64::from_le_bytes(record[..8].try_into().unwrap()))
        .skip(20)
        .collect();
    assert!(starts.len() > 2000, "{} packets", starts.len());
    starts
}

/// Returns how long so many packets take at 300 Mbit/s.
fn exact_ps(packets: usize) -> u64 {
    packets as u64 * 1538 * 8_000_000 / 300
}

/// Returns how far packets are from where that rate has them, at most, in ps.
fn deviation_ps(starts: &[u64]) -> u64 {
    let each = starts.iter().enumerate();
    each.map(|(n, start)| (start - starts[0]).abs_diff(exact_ps(n)))
        .max()
        .unwrap()
}

#[test]
fn gap_frames_space_packets_to_the_byte() {
    let byte_ps = 8000;
    let gaps = departures("psp line 1gbit gap 1");
    // What counts is the same.
    let timer = departures("stab overhead 24 linklayer ethernet psp line 1gbit gap 0");
    for (name, starts) in [("gap frames", &gaps), ("timer", &timer)] {
        let between = || starts.windows(2).map(|pair| pair[1] - pair[0]);
        println!(
            "{name}: {} packets, off by {} ps at most, {} to {} ps after one another",
            starts.len(),
            deviation_ps(starts),
            between().min().unwrap(),
            between().max().unwrap(),
        );
    }
    assert!(deviation_ps(&gaps) <= byte_ps);
    assert!(deviation_ps(&timer) > 1000 * byte_ps);
}

#[test]
fn rates_hold_on_a_wire_that_is_not_as_told() {
    for line in ["500mbit", "2gbit"] {
        let starts = departures(&format!("psp line {line} gap 1"));
        let took_ps = starts.last().unwrap() - starts[0];
        let off_ps = took_ps.abs_diff(exact_ps(starts.len() - 1));
        println!(
            "{line}: {} packets took {off_ps} ps more or less",
            starts.len()
        );
        // The clock of bytes may be 4 ms ahead or behind, and a packet.
        let may_be_ps = 4_000_000_000 + took_ps / 4096 + 12_304_000;
        assert!(off_ps <= may_be_ps, "{line}: {off_ps} ps of {took_ps}");
    }
}

fn attack(series: &str, name: &str, script: &str) {
    let begins = include_str!("attack.sh");
    run(series, name, &format!("{begins}{script}"));
}

/// What a hostile sender, a clock that is set and a device that goes make of launch times.
#[test]
fn launch_times_withstand_senders_and_clocks() {
    let script = include_str!("launch_attack.sh");
    attack("launch", "launch_attack.sh", script);
}

/// Lines that no host fills, devices that change, and who is behind the next port.
#[test]
fn gap_frames_withstand_lines_and_devices() {
    attack("gap", "gap_attack.sh", include_str!("gap_attack.sh"));
}

fn cases_of_tdc(series: &str, least: usize) {
    let folder = tempfile::tempdir().unwrap();
    let mut lab = Lab::find().unwrap();
    lab.sources = sources_of(series, folder.path());
    let cases = folder.path().join("cases");
    fs::create_dir(&cases).unwrap();
    fs::write(cases.join("pspacer.json"), text(series, "pspacer.json")).unwrap();
    let cases = load_cases(&cases).unwrap();
    assert!(cases.len() >= least, "only {} cases", cases.len());
    let out = folder.path().join("out");
    let ran = run_tdc(&lab, Kernel::V7, &cases, LONG, &out, &Quiet)
        .unwrap_or_else(|error| panic!("{error}\n{}", console(&out)));
    assert!(ran.is_ok(), "{}", ran.tap());
}

#[test]
fn the_cases_of_tdc_pass() {
    cases_of_tdc("first", 15);
}

#[test]
fn the_cases_of_tdc_with_a_ceil_pass() {
    cases_of_tdc("ceil", 21);
}

#[test]
fn the_cases_of_tdc_with_launch_times_pass() {
    cases_of_tdc("launch", 28);
}

#[test]
fn the_cases_of_tdc_with_gap_frames_pass() {
    cases_of_tdc("gap", 32);
}
