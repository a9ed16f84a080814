// SPDX-License-Identifier: MIT OR Apache-2.0
//! The page and its plots, of numbers that are made up.
//!
//! After a change of the page that is meant, `BENCH_GOLDEN=1 cargo test -p
//! xtask` writes the expected files anew.

use std::fs;
use std::path::{Path, PathBuf};

use xtask::bench::figures::figures;
use xtask::bench::model::{Dpdk, Structures};
use xtask::bench::page::page;

fn structures() -> Structures {
    serde_json::from_str(include_str!("structures.json")).unwrap()
}

fn dpdk() -> Dpdk {
    serde_json::from_str(include_str!("dpdk.json")).unwrap()
}

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(name)
}

fn expect(name: &str, made: &str) {
    let path = golden(name);
    if std::env::var_os("BENCH_GOLDEN").is_some() {
        fs::write(&path, made).unwrap();
    }
    let expected = fs::read_to_string(&path).unwrap();
    assert!(
        made == expected,
        "{name} is not what it was:\n{made}\nsee the head of this file"
    );
}

#[test]
fn the_page_is_as_it_was() {
    expect("benchmarks.md", &page(&structures(), Some(&dpdk())));
}

#[test]
fn the_plots_are_as_they_were() {
    let plots = figures(&structures(), Some(&dpdk()));
    let names: Vec<_> = plots.iter().map(|p| p.name.as_str()).collect();
    let all = [
        "bench-structures.svg",
        "bench-core.svg",
        "bench-tails.svg",
        "bench-dpdk.svg",
    ];
    assert_eq!(names, all);
    expect("bench-structures.svg", &plots[0].svg);
}

#[test]
fn goals_stand_beside_what_was_measured() {
    let page = page(&structures(), Some(&dpdk()));
    let row = |what: &str| {
        let found = page.lines().find(|l| l.contains(what));
        found.unwrap().to_owned()
    };
    // 14 of 29 ns, and 13 of 28: the middle round
    let touch = row("of touching one random class");
    assert!(touch.contains("≤ 0.8 | 0.47 (") && touch.ends_with("| met |"));
    // at 100 classes the core has its heap: 14 / 21
    assert!(row("of 100 classes").contains("≤ 2 | 0.67 ("));
    // 75 / 31
    let dpdk = row("131,072 classes, mbufs, unshaped");
    assert!(dpdk.contains("≥ 2 | 2.42 (") && dpdk.ends_with("| met |"));
    // 700 / 20
    let tail = row("99.99th percentile of one operation, of its mean");
    assert!(tail.contains("≤ 25 | 35.0") && tail.ends_with("| **missed** |"));
    assert!(row("1,000 classes, all clocks coincide").ends_with("| **missed** |"));
    assert!(row("100,000 classes, all clocks").ends_with("– | not measured |"));
}

#[test]
fn without_dpdk_the_page_says_so() {
    let page = page(&structures(), None);
    assert!(page.contains("DPDK was not to be had"));
    assert!(!page.contains("bench-dpdk.svg"));
    assert_eq!(figures(&structures(), None).len(), 3);
}

#[test]
fn a_quick_run_is_marked() {
    let text = include_str!("structures.json").replace("\"quick\": false", "\"quick\": true");
    let quick: Structures = serde_json::from_str(&text).unwrap();
    assert!(page(&quick, None).contains("Taken with `--quick`"));
    assert!(!page(&structures(), None).contains("Taken with"));
}
