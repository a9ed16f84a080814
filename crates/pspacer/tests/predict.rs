// SPDX-License-Identifier: MIT OR Apache-2.0
//! `pspacer predict` as users and scripts call it.

use std::fs;
use std::path::Path;

use crate::common::{pspacer, refused, text, well};
use serde_json::{Value, json};
use testkit::{has, has_none};

fn predict(args: &[&str]) -> Value {
    crate::common::json(&[&["predict", "--json"], args].concat())
}

/// Checks that `delay_periods` counts from 0, and returns the probabilities.
fn distribution(answer: &Value) -> Vec<f64> {
    let rows = answer["distribution"].as_array().unwrap();
    for (k, row) in rows.iter().enumerate() {
        assert_eq!(row["delay_periods"], k);
    }
    rows.iter()
        .map(|r| r["probability"].as_f64().unwrap())
        .collect()
}

fn close(a: &[f64], b: &[f64]) {
    assert_eq!(a.len(), b.len(), "{a:?} {b:?}");
    assert!(
        a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-12),
        "{a:?} {b:?}"
    );
}

#[test]
fn the_papers_figures() {
    let answer = predict(&["--beta", "0.4", "--hops", "2"]);
    close(&distribution(&answer), &[0.36, 0.48, 0.16]);
    let answer = predict(&["--beta", "0.2", "--hops", "0", "--round-trip"]);
    close(&distribution(&answer), &[0.8, 0.2]);
    let answer = predict(&["--beta", "0.2", "--hops", "4", "--period", "10ms"]);
    close(
        &distribution(&answer),
        &[0.4096, 0.4096, 0.1536, 0.0256, 0.0016],
    );
    // The bounds are (routers + 1) x (period + slot), and in network calculus one slot less,
    // that of the media.
    assert_eq!(answer["distribution"][4]["delay_ns_max"], 55_000_000);
    assert_eq!(answer["bounds"]["isochronous_ns"], 55_000_000);
    assert_eq!(answer["bounds"]["pay_bursts_only_once_ns"], 54e6);
    // Without a slot this is the paper's bound.
    let answer = predict(&["--beta", "0.2", "--hops", "4", "--slot", "0s"]);
    assert_eq!(answer["distribution"][4]["delay_ns_max"], 50_000_000);
    assert_eq!(answer["bounds"]["pay_bursts_only_once_ns"], 50e6);
}

/// Without a router a packet still waits for its sender's period and the medium.
#[test]
fn no_router_is_not_no_delay() {
    let args = ["--beta", "0.2", "--hops", "0", "--period", "10ms"];
    let answer = predict(&args);
    assert_eq!(answer["bounds"]["isochronous_ns"], 11_000_000);
    assert_eq!(answer["bounds"]["pay_bursts_only_once_ns"], Value::Null);
    let shown = well(&[&["predict"], &args[..]].concat());
    has(&shown, ["1 x (10 ms + 1 ms): 11 ms"]);
    has_none(&shown, ["paid once"]);
    // A slot must be shorter than the period.
    refused(
        &["predict", "--beta", "0.2", "--slot", "10ms"],
        1,
        &["--slot"],
    );
}

#[test]
fn a_measured_file() {
    let folder = tempfile::tempdir().unwrap();
    let table = folder.path().join("delays.csv");
    fs::write(
        &table,
        "delay_ns,count\n5100000,6410\n15200000,3180\n25100000,410\n",
    )
    .unwrap();
    let plot = folder.path().join("delay.svg");
    let (table, plot) = (table.to_str().unwrap(), plot.to_str().unwrap());
    let answer = predict(&[table, "--hops", "2", "--plot", plot]);
    let estimate = &answer["estimate"];
    assert_eq!(estimate["beta"], 0.2);
    assert!(estimate["low"].as_f64().unwrap() < 0.2 && estimate["high"].as_f64().unwrap() > 0.2);
    assert_eq!(answer["measured"]["base_ns"], 5_100_000);
    assert_eq!(answer["measured"]["counts"].as_array().unwrap().len(), 3);
    assert!(answer["fit"]["p_value"].as_f64().unwrap() > 0.1, "{answer}");
    let svg = fs::read_to_string(plot).unwrap();
    has(&svg, [">measured<", ">predicted<"]);
    // A wrong β does not fit.
    let answer = predict(&[table, "--hops", "2", "--beta", "0.3"]);
    assert!(
        answer["fit"]["p_value"].as_f64().unwrap() < 1e-6,
        "{answer}"
    );
    assert_eq!(answer["estimate"]["beta"], 0.2);
    has(
        well(&["predict", table, "--hops", "2"]),
        ["Clopper-Pearson", "█"],
    );
}

/// Makes a run's folder: two cells, the second with two streams.
fn run(folder: &Path) -> String {
    let cell = |routers: &str, dir: &str| {
        json!({ "params": { "routers": routers, "shaper": "psp" }, "dir": dir, "windows": [],
            "bounds": [], "tc": {}, "flow_reports": {} })
    };
    let result = json!({ "format": "pspacer-result-1", "scenario": "s", "title": "", "source": "",
        "engine": "netsim", "kernel": "", "seed": 1, "ok": true,
        "cells": [cell("1", "cell-0"), cell("2", "cell-1")] });
    let write = |name: &str, text: &str| fs::write(folder.join(name), text).unwrap();
    for dir in ["cell-0", "cell-1"] {
        fs::create_dir_all(folder.join(dir)).unwrap();
    }
    write("result.json", &result.to_string());
    write(
        "cell-1/flow-rt.delays.csv",
        "delay_ns,count\n5000000,64\n15000000,32\n25000000,4\n",
    );
    write(
        "cell-1/stream-ping.delays.csv",
        "delay_ns,count\n5000000,1\n",
    );
    write(
        "cell-1/stream-ping.round-trips.csv",
        "delay_ns,count\n7000000,1\n",
    );
    folder.join("result.json").to_str().unwrap().to_owned()
}

#[test]
fn a_run_of_the_laboratory_or_the_simulator() {
    let folder = tempfile::tempdir().unwrap();
    let file = run(folder.path());
    let of = |more: &[&str]| predict(&[&[file.as_str(), "--hops", "2"], more].concat());
    let answer = of(&["--cell", "routers=2", "--flow", "rt"]);
    assert_eq!(answer["estimate"]["beta"], 0.2);
    assert_eq!(answer["measured"]["base_ns"], 5_000_000);
    let answer = of(&["--cell", "routers=2,shaper=psp", "--round-trip"]);
    assert_eq!(answer["measured"]["base_ns"], 7_000_000);
    for (more, words) in [
        (&[][..], "2 cells of s are meant"),
        (&["--cell", "routers=3"], "no cell of s has that"),
        (&["--cell", "routers=1"], "no delays were measured"),
        (&["--cell", "routers=2"], "--flow: expected one of ping, rt"),
        (
            &["--cell", "routers=2", "--flow", "x"],
            "--flow \"x\": expected one of ping, rt",
        ),
    ] {
        let args = [&["predict", &file], more].concat();
        refused(&args, 1, &[words, "result.json"]);
    }
    refused(
        &["predict", &file, "--cell", "routers"],
        2,
        &["--cell", "expected KEY=VALUE"],
    );
    let table = folder.path().join("cell-1/flow-rt.delays.csv");
    let out = pspacer(&["predict", table.to_str().unwrap(), "--flow", "rt"]);
    let said = text(&out.stderr);
    has(&said, ["expected a run's result.json"]);
}

#[test]
fn standard_input_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let table = folder.path().join("delays.csv");
    fs::write(&table, "delay_ns\n1000000\n1200000\n11000000\n").unwrap();
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_pspacer"));
    let command = command.args(["predict", "-", "--json"]);
    let out = command
        .stdin(fs::File::open(&table).unwrap())
        .output()
        .unwrap();
    assert!(
        out.status.success(),
        "{}",
        String::from_utf8_lossy(&out.stderr)
    );
    let piped: Value = serde_json::from_slice(&out.stdout).unwrap();
    let mut named = predict(&[table.to_str().unwrap()]);
    assert_eq!(piped["measured"]["file"], "-");
    named["measured"]["file"] = "-".into();
    assert_eq!(piped, named);
}

#[test]
fn what_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let broken = folder.path().join("broken.csv");
    fs::write(&broken, "delay_ns\nsoon\n").unwrap();
    let broken = broken.to_str().unwrap();
    for (args, status, words) in [
        (&["--beta", "2"][..], 2, &["--beta", "'2'", "0 to 1"][..]),
        (
            &["--beta", "0.1,0.2", "--hops", "3"],
            1,
            &["2 values", "3 hops"],
        ),
        (
            &["--beta", "0.1", "--hops", "4097"],
            1,
            &["4097", "at most 4096"],
        ),
        (
            &["--beta", "0.1", "--period", "0s"],
            2,
            &["'0s'", "--period"],
        ),
        (
            &["--beta", "0.1", "--reserve", "1kbit"],
            1,
            &["1000 bit/s", "1000000 bit/s"],
        ),
        (
            &["--beta", "0.1", "--latency", "1ms,2ms"],
            1,
            &["--latency", "2 values"],
        ),
        (&[broken], 1, &["broken.csv", "line 2", "soon"]),
        (&["/nonexistent.csv"], 1, &["/nonexistent.csv"]),
        (&[], 2, &["FILE"]),
    ] {
        refused(&[&["predict"], args].concat(), status, words);
    }
}
