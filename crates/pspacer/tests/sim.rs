// SPDX-License-Identifier: MIT OR Apache-2.0
//! `pspacer sim` as users call it: the laboratory's figures, the same bytes every time, and
//! sweeps that are divided and interrupted.

use std::fs;
use std::path::Path;

use scenario::result::{Engine, RunResult};

use crate::common::{Folder, pspacer, refused, root, text, well};
use testkit::has;

fn simulate(name: &str, more: &[&str]) -> RunResult {
    let folder = Folder::new(&format!("sim-run-{name}"));
    let out = folder.at("out");
    let args = [&["sim", "run", name, "--out", &out], more].concat();
    well(&args);
    let text = String::from_utf8(folder.read("out/result.json")).unwrap();
    let result = RunResult::from_json(&text).unwrap();
    assert_eq!(result.engine, Engine::Netsim);
    assert!(fs::metadata(folder.at("out/report.html")).unwrap().len() > 10_000);
    result
}

/// Returns the cells of a line of numbers in the laboratory's committed results.
fn laboratory(experiment: &str, begins: &str, nth: usize) -> Vec<String> {
    let page = format!("docs/results/{experiment}.md");
    let text = fs::read_to_string(root().join(page)).unwrap();
    let mut lines = text
        .lines()
        .filter(|l| l.starts_with(&format!(" {begins} ")));
    let words = lines.nth(nth).unwrap().split_whitespace();
    words.map(|w| w.replace(',', "")).collect()
}

fn whole(value: Option<f64>) -> String {
    format!("{:.0}", value.unwrap())
}

/// With one flow at one rate every gap is the laboratory's, to the byte.
#[test]
fn gaps_of_one_class_are_the_laboratorys() {
    let result = simulate("pspacer-single-rate", &["--full"]);
    assert!(result.ok);
    assert_eq!(result.cells.len(), 6);
    for cell in &result.cells {
        let metrics = &cell.windows[0].flows[0].metrics;
        let of = [
            metrics.gap_p1_bytes,
            metrics.gap_p50_bytes,
            metrics.gap_p99_bytes,
        ];
        let lab = laboratory("pspacer-single-rate", &cell.params["rate"], 0);
        assert_eq!(of.map(whole), lab[4..7], "{:?}", cell.params);
    }
}

/// With five rates the median gaps are the laboratory's to the byte, and so is the number of
/// frames. The shortest and longest gaps depend on when each flow began.
#[test]
fn gaps_of_five_classes_are_the_laboratorys() {
    let result = simulate("pspacer-multi-rate", &[]);
    assert!(result.ok);
    let window = &result.cells[0].windows[0];
    assert_eq!(window.name, "all five");
    for flow in window.flows.iter().filter(|flow| flow.name != "wire") {
        let lab = laboratory("pspacer-multi-rate", &flow.name, 0);
        assert_eq!(whole(flow.metrics.gap_p50_bytes), lab[6], "{}", flow.name);
        let frames: u64 = lab[10].parse().unwrap();
        assert!(flow.metrics.frames.abs_diff(frames) <= 1, "{}", flow.name);
    }
}

#[test]
fn the_same_seed_gives_the_same_files() {
    let folder = Folder::new("sim-twice");
    let run = |name: &str, seed: &str| {
        let out = folder.at(name);
        let args = ["sim", "run", "pspacer-fifo-sizes", "--set", "shaper=none"];
        let more = [
            "--set",
            "duration=6s",
            "--set",
            "fifo=16kb",
            "--seed",
            seed,
            "--out",
            &out,
        ];
        well(&[&args[..], &more[..]].concat());
    };
    run("a", "7");
    run("b", "7");
    run("c", "8");
    for name in [
        "result.json",
        "cell-0/timeline.wire.a",
        "cell-0/flow-bulk.tcp",
    ] {
        let of = |run: &str| folder.read(&format!("{run}/{name}"));
        assert_eq!(of("a"), of("b"), "{name}");
        assert_ne!(of("a"), of("c"), "{name}: the seed makes no difference");
    }
}

#[test]
fn what_is_not_modelled_is_named_with_its_line() {
    let folder = Folder::new("sim-cake");
    let said = refused(
        &["sim", "run", "busy-host", "--out", &folder.at("o")],
        1,
        &[],
    );
    let file = fs::read_to_string(root().join("experiments/busy-host/scenario.toml")).unwrap();
    let line = 1 + file.lines().position(|l| l.contains(" cake ")).unwrap();
    let place = format!("experiments/busy-host/scenario.toml:{line}: tc: `cake`");
    has(&said, [&place]);
    let said = refused(&["sim", "run", "tcp-stops-in-the-lab", "--full"], 1, &[]);
    has(
        &said,
        [
            "tcp-stops-in-the-lab/scenario.toml:",
            "reno, bic, cubic and vegas",
        ],
    );
    // What makes no difference is reported, not rejected.
    let folder = Folder::new("sim-noise");
    let out = pspacer(&["sim", "run", "ways-to-wait", "--out", &folder.at("o")]);
    has(text(&out.stderr), ["[noise] is not modelled"]);
    let stats = String::from_utf8(folder.read("o/run.json")).unwrap();
    has(&stats, ["[noise] is not modelled"]);
}

#[test]
fn the_laboratory_refuses_a_qdisc_that_no_kernel_has() {
    let file = root().join("experiments/cascade-lab/cqf.toml");
    let text = fs::read_to_string(&file).unwrap();
    let line = 1 + text
        .lines()
        .position(|l| l.contains(": cqf cycle 10ms"))
        .unwrap();
    let folder = Folder::new("sim-no-kernel");
    let out = folder.at("o");
    let said = refused(
        &["lab", "run", &file.display().to_string(), "--out", &out],
        1,
        &[],
    );
    let place = format!("cqf.toml:{line}: tc: cqf is the simulator's own");
    has(&said, [&place]);
    assert!(!root().join(&out).exists());
}

const SWEEP: &str = r#"# SPDX-License-Identifier: MIT OR Apache-2.0
name = "lossy"
title = "Loss by seed"
duration = "300ms"
[sweep]
loss = ["0.1%", "1%"]
[[host]]
name = "tx"
[[host]]
name = "rx"
[[cable]]
name = "wire"
ends = ["tx:eth0", "rx:eth0"]
rate = "100mbit"
delay = "5ms"
snap = 0
[[tc]]
host = "tx"
lines = ["qdisc add dev eth0 root netem loss ${loss}"]
[[flow]]
name = "bulk"
type = "tcp"
from = "tx"
to = "rx"
bytes = "1mb"
sample = "10ms"
"#;

fn sweep(folder: &Folder, out: &str, more: &[&str]) {
    let (file, out) = (folder.at("lossy.toml"), folder.at(out));
    let args = ["sim", "sweep", &file, "--seeds", "1..9", "--out", &out];
    well(&[&args[..], more].concat());
}

fn tables(folder: &Folder, out: &str) -> [Vec<u8>; 2] {
    ["csv", "json"].map(|kind| folder.read(&format!("{out}/table.{kind}")))
}

/// Every column of a sweep's table has a name of its own.
#[test]
fn a_parameter_called_like_a_metric_is_refused() {
    let folder = Folder::new("sim-columns");
    for (parameter, is_fine) in [
        ("frames", false),
        ("rate_bps", false),
        ("window", false),
        ("lose", true),
    ] {
        let named = SWEEP.replace("\nloss =", &format!("\n{parameter} ="));
        fs::write(
            folder.at("lossy.toml"),
            named.replace("${loss}", &format!("${{{parameter}}}")),
        )
        .unwrap();
        let (file, out) = (folder.at("lossy.toml"), folder.at(parameter));
        let args = ["sim", "sweep", &file, "--out", &out];
        if is_fine {
            well(&args);
            let table = String::from_utf8(folder.read(&format!("{parameter}/table.csv"))).unwrap();
            let columns: Vec<&str> = table.lines().next().unwrap().split(',').collect();
            let names: std::collections::BTreeSet<&str> = columns.iter().copied().collect();
            assert_eq!(names.len(), columns.len(), "{columns:?}");
            assert!(names.contains("lose") && names.contains("frames"));
            continue;
        }
        let said = refused(&args, 1, &[]);
        has(&said, [&format!("a column `{parameter}`")]);
    }
}

#[test]
fn a_sweep_is_the_same_however_it_is_cut() {
    let folder = Folder::new("sim-sweep");
    fs::write(folder.at("lossy.toml"), SWEEP).unwrap();
    sweep(&folder, "one", &["--jobs", "1"]);
    let table = tables(&folder, "one");
    let csv = String::from_utf8(table[0].clone()).unwrap();
    assert_eq!(csv.lines().count(), 1 + 2 * 9 * 2, "{csv}");
    let json: Vec<serde_json::Value> = serde_json::from_slice(&table[1]).unwrap();
    let times: std::collections::BTreeSet<String> = json
        .iter()
        .map(|row| row["report.transfer_s"].to_string())
        .collect();
    assert!(times.len() > 5, "seeds make a difference: {times:?}");

    // The sweep runs on four threads.
    sweep(&folder, "four", &["--jobs", "4"]);
    assert_eq!(tables(&folder, "four"), table);

    // The sweep was interrupted: five pieces are done, and half of a line is written.
    let rows = String::from_utf8(folder.read("four/rows.jsonl")).unwrap();
    let mut cut: String = rows.split_inclusive('\n').take(5).collect();
    cut += &rows.lines().nth(5).unwrap()[..40];
    fs::write(folder.at("four/rows.jsonl"), cut).unwrap();
    fs::remove_file(folder.at("four/table.csv")).unwrap();
    sweep(&folder, "four", &[]);
    assert_eq!(tables(&folder, "four"), table);

    // The sweep runs in three shards.
    for (shard, out) in [("0/3", "p0"), ("1/3", "p1"), ("2/3", "p2")] {
        sweep(&folder, out, &["--shard", shard]);
    }
    let [p0, p1, p2, whole] = ["p0", "p1", "p2", "whole"].map(|name| folder.at(name));
    well(&["sim", "merge", &p2, &p0, &p1, "--out", &whole]);
    assert_eq!(tables(&folder, "whole"), table);
    // A second merge into the same folder gives the same table.
    well(&["sim", "merge", &p0, &p1, &p2, "--out", &whole]);
    assert_eq!(tables(&folder, "whole"), table);

    refusals(&folder, [&p0, &p1, &p2]);
}

fn refusals(folder: &Folder, [p0, p1, p2]: [&str; 3]) {
    let out = folder.at("bad");
    let said = refused(&["sim", "merge", p0, p1, "--out", &out], 1, &[]);
    has(&said, ["6 of 18 numbers are in no shard"]);
    let said = refused(&["sim", "merge", p0, p1, p2, p1, "--out", &out], 1, &[]);
    has(&said, ["is in both"]);
    // The same file with other settings is another sweep.
    let (file, other) = (folder.at("lossy.toml"), folder.at("other"));
    let args = ["sim", "sweep", &file, "--seeds", "1..9", "--out", &other];
    well(&[&args[..], &["--shard", "2/3", "--set", "duration=200ms"]].concat());
    let said = refused(&["sim", "merge", p0, p1, &other, "--out", &out], 1, &[]);
    has(&said, ["another sweep"]);
    // merge keeps the results of another sweep.
    let said = refused(&["sim", "merge", p0, p1, p2, "--out", &other], 1, &[]);
    has(&said, ["the folder has another sweep"]);
    let said = refused(&[&args[..], &["--shard", "1/3"]].concat(), 1, &[]);
    let why = "has another sweep: its --set is [\"duration=200ms\"], here []";
    has(&said, [why]);
    // The scenario's file has changed since the sweep began.
    fs::write(&file, format!("{SWEEP}# changed\n")).unwrap();
    let said = refused(&args, 1, &[]);
    has(&said, ["its scenario's file is "]);
    fs::write(&file, SWEEP).unwrap();
    let kept = Path::new(&other).join("sweep.json");
    let text = fs::read_to_string(&kept).unwrap();
    let (begin, end) = text.split_once("\"command_sha256\": \"").unwrap();
    let changed = format!(
        "{begin}\"command_sha256\": \"{}{}",
        "0".repeat(64),
        &end[64..]
    );
    fs::write(&kept, changed.replace("\"duration=200ms\"", "")).unwrap();
    let said = refused(&args, 1, &[]);
    has(&said, ["its command is 000000000000, here "]);
    // This shard was interrupted.
    fs::write(Path::new(p1).join("rows.jsonl"), "").unwrap();
    let said = refused(&["sim", "merge", p0, p1, p2, "--out", &out], 1, &[]);
    has(&said, ["shard 1/3 is not finished"]);
}

/// Two flows share a queue that drops its oldest packet: each flow's `dropped` counts its own
/// packets, in the window in which they were dropped.
#[test]
fn a_flows_dropped_counts_what_its_queue_dropped_for_others() {
    let folder = Folder::new("sim-head-drop");
    let flow = |name: &str, rate: &str| {
        format!(
            "[[flow]]\nname = \"{name}\"\nfrom = \"tx\"\nto = \"rx\"\ntype = \"udp\"\n\
             rate = \"{rate}\"\n"
        )
    };
    let text = format!(
        "name = \"head-drop\"\ntitle = \"t\"\nduration = \"30ms\"\n\
         [[host]]\nname = \"tx\"\n[[host]]\nname = \"rx\"\n\
         [[cable]]\nname = \"wire\"\nends = [\"tx:eth0\", \"rx:eth0\"]\nrate = \"1gbit\"\n\
         [[tc]]\nhost = \"tx\"\nlines = [\"qdisc add dev eth0 root pfifo_head_drop limit 5\"]\n\
         [[window]]\nname = \"all\"\nfrom = \"0ms\"\nto = \"30ms\"\n\
         [[window]]\nname = \"first half\"\nfrom = \"0ms\"\nto = \"15ms\"\n{}{}",
        flow("fast", "2gbit"),
        flow("slow", "50mbit")
    );
    let file = folder.at("head-drop.toml");
    fs::write(&file, text).unwrap();
    well(&["sim", "run", &file, "--out", &folder.at("out")]);
    let text = String::from_utf8(folder.read("out/result.json")).unwrap();
    let result = RunResult::from_json(&text).unwrap();
    let cell = &result.cells[0];
    let dropped = |window: usize, name: &str| {
        let mut flows = cell.windows[window].flows.iter();
        flows.find(|f| f.name == name).unwrap().metrics.dropped
    };
    for name in ["fast", "slow"] {
        let refused = cell.flow_reports[name]["refused"].as_u64().unwrap();
        assert_eq!(dropped(0, name), refused, "{name}");
        let half = dropped(1, name);
        assert!(
            half > refused / 3 && half < refused * 2 / 3,
            "{name}: {half} of {refused}"
        );
    }
    assert!(dropped(0, "slow") > 10 && dropped(0, "fast") > 1000);
    assert_eq!(dropped(0, "wire"), dropped(0, "fast") + dropped(0, "slow"));
}
