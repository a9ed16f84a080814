// SPDX-License-Identifier: MIT OR Apache-2.0
//! Transfers of known length over several runs, from which the table of paper 001's experiment
//! is made.

use std::fs;
use std::process::Output;

use scenario::result::{RunResult, TransferRow};

use crate::common::{Folder, pspacer, text};
use testkit::has;

/// The experiment's path with a tenth of its bytes.
const SCENARIO: &str = r#"
name = "small"
title = "100 MB through a policer"
duration = "60s"
runs = 4
[sweep]
variant = ["2.6.17", "2.6.22", "fix-skip", "rack"]
[[host]]
name = "tx"
[[host]]
name = "rx"
[[cable]]
name = "wire"
ends = ["tx:eth0", "rx:eth0"]
rate = "1gbit"
delay = "5ms"
snap = 0
[[bottleneck]]
cable = "wire"
from = "tx"
rate = "500mbit"
burst = "16000000b"
refresh = "500us"
[[tc]]
host = "tx"
lines = ["qdisc add dev eth0 root pfifo limit 10000"]
[[flow]]
name = "bulk"
type = "tcp"
from = "tx"
to = "rx"
congestion = "bic"
stack = "${variant} initial_cwnd=2 initial_ssthresh=1000"
window = "2250000b"
bytes = "100000000b"
[[bound]]
flow = "bulk"
metric = "time_mean_s"
max = 2.5
when = { variant = "rack" }
"#;

struct Case(Folder);

impl Case {
    fn new(name: &str, scenario: &str) -> Self {
        let folder = Folder::new(&format!("transfers-{name}"));
        folder.file("s.toml", scenario.as_bytes());
        Self(folder)
    }

    fn run(&self, out: &str, more: &[&str]) -> Output {
        let (file, out) = (self.0.at("s.toml"), self.0.at(out));
        pspacer(&[&["sim", "run", &file, "--json", "--out", &out], more].concat())
    }
}

fn row<'a>(result: &'a RunResult, variant: &str) -> &'a TransferRow {
    let mut rows = result.table.iter();
    rows.find(|row| row.params["variant"] == variant).unwrap()
}

/// Old kernels time out where the repair does not, and with the first defect they stall for
/// seconds, with any number of threads.
#[test]
fn the_table_tells_the_kernels_apart() {
    let case = Case::new("table", SCENARIO);
    let one = case.run("one", &["--jobs", "1"]);
    assert!(one.status.success(), "{one:?}");
    let result = RunResult::from_json(&String::from_utf8(one.stdout.clone()).unwrap()).unwrap();
    assert_eq!((result.table.len(), result.cells.len()), (4, 4));
    for row in &result.table {
        assert_eq!((row.runs, row.unfinished), (4, 0.0));
        assert_eq!(
            (row.burst_bytes, row.bottleneck_bps),
            (Some(16_000_000), 500_000_000)
        );
        assert!(row.time_min_s <= row.time_mean_s && row.time_mean_s <= row.time_max_s);
        let worst = 8e8 / row.time_max_s / 5e8;
        assert!((row.efficiency_min - worst).abs() < 1e-9, "{row:?}");
    }
    let [old, newer, repaired, today] =
        ["2.6.17", "2.6.22", "fix-skip", "rack"].map(|variant| row(&result, variant));
    assert!(
        old.stall_max_s > 1.0 && old.time_max_s > 2.0 * newer.time_max_s,
        "{old:?}"
    );
    assert!(
        newer.rto_mean >= 2.0 && newer.stall_max_s < 0.5,
        "{newer:?}"
    );
    assert!(
        repaired.rto_mean < newer.rto_mean && repaired.efficiency_min > 0.8,
        "{repaired:?}"
    );
    assert!(
        today.rto_mean == 0.0 && today.efficiency_min > 0.9,
        "{today:?}"
    );
    // The bound applies to all runs.
    let bound = &result.cells[3].bounds[0];
    assert_eq!(
        (&*bound.window, bound.value),
        ("all runs", Some(today.time_mean_s))
    );

    let three = case.run("three", &["--jobs", "3"]);
    assert_eq!(one.stdout, three.stdout);
}

/// Flows without an end have the metrics of each run, and their bounds hold in each.
#[test]
fn the_metrics_of_each_run_are_kept() {
    let scenario = SCENARIO
        .replace("bytes = \"100000000b\"\n", "")
        .replace("duration = \"60s\"", "duration = \"1s\"")
        .replace("time_mean_s", "rate_bps");
    let case = Case::new("runs", &scenario);
    case.run("out", &[]);
    let text = fs::read_to_string(case.0.at("out/result.json")).unwrap();
    let result: serde_json::Value = serde_json::from_str(&text).unwrap();
    for cell in result["cells"].as_array().unwrap() {
        let flow = &cell["windows"][0]["flows"][0];
        let rates = flow["runs"]["rate_bps"].as_array().unwrap();
        assert_eq!(rates.len(), 4, "{flow}");
        assert_eq!(rates[0], flow["rate_bps"]);
    }
}

#[test]
fn what_makes_no_table_is_refused() {
    let cases = [
        (
            SCENARIO.replace("bytes = \"100000000b\"\n", ""),
            "s.toml:37: `metric` is \"time_mean_s\", expected a metric of a window",
        ),
        (
            SCENARIO.replace("[sweep]", "[sweep]\nflow = [\"a\", \"b\"]"),
            "the table of transfers has a column `flow`",
        ),
        (
            SCENARIO.replace("runs = 4", "runs = 0"),
            "s.toml:5: `runs` is \"0\", expected a whole number, 1 to 10000",
        ),
    ];
    for (number, (scenario, said)) in cases.iter().enumerate() {
        let case = Case::new(&format!("refused-{number}"), scenario);
        let out = case.run("out", &[]);
        assert_eq!(out.status.code(), Some(1));
        let error = text(&out.stderr);
        has(&error, [said]);
        assert!(!case.0.0.join("out").exists());
    }
}
