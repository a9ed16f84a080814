// SPDX-License-Identifier: MIT OR Apache-2.0
//! `pspacer predict` as people and scripts call it.

#![allow(clippy::unwrap_used)]

mod common;

use std::fs;

use common::pspacer;
use serde_json::Value;

fn json(args: &[&str]) -> Value {
    let out = pspacer(&[&["predict", "--json"], args].concat());
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(out.status.success(), "{args:?}: {said}");
    serde_json::from_slice(&out.stdout).unwrap()
}

/// `delay_periods` counts from 0; the probabilities.
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
    let answer = json(&["--beta", "0.4", "--hops", "2"]);
    close(&distribution(&answer), &[0.36, 0.48, 0.16]);
    let answer = json(&["--beta", "0.2", "--hops", "0", "--round-trip"]);
    close(&distribution(&answer), &[0.8, 0.2]);
    let answer = json(&["--beta", "0.2", "--hops", "4", "--period", "10ms"]);
    close(
        &distribution(&answer),
        &[0.4096, 0.4096, 0.1536, 0.0256, 0.0016],
    );
    // Period x (routers + 1), by the prediction and by network calculus.
    assert_eq!(answer["distribution"][4]["delay_ns_max"], 50_000_000);
    assert_eq!(answer["bounds"]["pay_bursts_only_once_ns"], 50e6);
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
    let answer = json(&[table, "--hops", "2", "--plot", plot]);
    let estimate = &answer["estimate"];
    assert_eq!(estimate["beta"], 0.2);
    assert!(estimate["low"].as_f64().unwrap() < 0.2 && estimate["high"].as_f64().unwrap() > 0.2);
    assert_eq!(answer["measured"]["base_ns"], 5_100_000);
    assert_eq!(answer["measured"]["counts"].as_array().unwrap().len(), 3);
    assert!(answer["fit"]["p_value"].as_f64().unwrap() > 0.1, "{answer}");
    let svg = fs::read_to_string(plot).unwrap();
    assert!(
        svg.contains(">measured<") && svg.contains(">predicted<"),
        "{svg}"
    );
    // Another β does not fit.
    let answer = json(&[table, "--hops", "2", "--beta", "0.3"]);
    assert!(
        answer["fit"]["p_value"].as_f64().unwrap() < 1e-6,
        "{answer}"
    );
    assert_eq!(answer["estimate"]["beta"], 0.2);
    let text = pspacer(&["predict", table, "--hops", "2"]).stdout;
    let text = String::from_utf8(text).unwrap();
    assert!(
        text.contains("Clopper-Pearson") && text.contains("█"),
        "{text}"
    );
}

#[test]
fn what_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let broken = folder.path().join("broken.csv");
    fs::write(&broken, "delay_ns\nsoon\n").unwrap();
    let broken = broken.to_str().unwrap();
    for (args, status, words) in [
        (&["--beta", "2"][..], 1, &["beta 2", "0 to 1"][..]),
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
        (&["--beta", "0.1", "--period", "0s"], 1, &["--period 0"]),
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
        let out = pspacer(&[&["predict"], args].concat());
        let said = String::from_utf8(out.stderr).unwrap();
        assert_eq!(out.status.code(), Some(status), "{args:?}: {said}");
        assert!(out.stdout.is_empty(), "{args:?}");
        for word in words {
            assert!(said.contains(word), "{args:?}: {word:?} in {said}");
        }
    }
}
