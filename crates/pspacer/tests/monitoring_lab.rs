// SPDX-License-Identifier: MIT OR Apache-2.0
//! `pspacer exporter`, `top` and `doctor` beside `tc`, in a guest whose line has more to send than
//! it takes.

use scenario::Kernel;
use serde_json::Value;

use crate::common::guest::{self, Outputs, outputs};
use testkit::has;

const MODULES: &[&str] = &[
    "sch_psp",
    "wire",
    "pktgen",
    "dummy",
    "cls_u32",
    "cls_flower",
    "cls_bpf",
    "sch_fq",
    "sch_ingress",
];

fn said(kernel: Kernel) -> Outputs {
    let files = [
        "crates/pspacer/tests/monitoring/load.sh",
        "kernel/tests/lib.sh",
    ];
    outputs(&guest::output(kernel, "monitoring", MODULES, &files))
}

fn json(said: &Outputs, name: &str) -> Value {
    let text = &said[name].0;
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{name}: {error}: {text}"))
}

/// The number of a key, wherever in what tc printed it is.
fn number(value: &Value, key: &str) -> Option<u64> {
    match value {
        Value::Object(map) => map
            .get(key)
            .and_then(Value::as_u64)
            .or_else(|| map.values().find_map(|value| number(value, key))),
        Value::Array(all) => all.iter().find_map(|value| number(value, key)),
        _ => None,
    }
}

/// What tc printed of a class, as text: it knows no JSON for classes. A word is followed by its
/// value, but for bytes and packets.
fn class(of_tc: &str, id: &str) -> Value {
    let is_head = |line: &&str| line.starts_with(&format!("class psp {id} "));
    let lines: Vec<_> = of_tc.lines().skip_while(|line| !is_head(line)).collect();
    assert!(!lines.is_empty(), "no {id}: {of_tc}");
    let mut found = serde_json::Map::new();
    let body = lines[1..]
        .iter()
        .take_while(|line| !line.starts_with("class "));
    for line in body {
        let words: Vec<_> = line.split_whitespace().collect();
        for pair in words.windows(2) {
            let (key, value) = match pair[0] {
                "Sent" => ("bytes", pair[1]),
                "bytes" => ("packets", pair[1]),
                key => (key, pair[1]),
            };
            if let Ok(value) = value.parse::<u64>() {
                found.entry(key).or_insert(value.into());
            }
        }
    }
    found.into()
}

/// The value of the sample whose name and labels are these.
fn sample(text: &str, name: &str, labels: &[&str]) -> u64 {
    let is_it = |line: &&str| {
        line.split(['{', ' ']).next() == Some(name)
            && labels.iter().all(|label| line.contains(label))
    };
    let line = text.lines().find(is_it);
    let line = line.unwrap_or_else(|| panic!("no {name} {labels:?} in\n{text}"));
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

const ON_C1: &str = "device=\"c1a\"";

/// Metrics, and tc's keys of the same.
const OF_CLASS: &[(&str, &str)] = &[
    ("psp_class_sent_bytes_total", "bytes"),
    ("psp_class_sent_packets_total", "packets"),
    ("psp_class_sent_frames_total", "sent_frames"),
    ("psp_class_sent_wire_bytes_total", "sent_wire_bytes"),
    ("psp_class_throttled_total", "throttled"),
];
const OF_QDISC: &[(&str, &str)] = &[
    ("psp_qdisc_sent_bytes_total", "bytes"),
    ("psp_qdisc_sent_wire_bytes_total", "sent_wire_bytes"),
    ("psp_qdisc_gap_wire_bytes_total", "gap_wire_bytes"),
    ("psp_qdisc_rebases_total", "rebases"),
];

fn exported(kernel: Kernel, said: &Outputs) {
    let text = &said["export"].0;
    let qdisc = json(said, "rest qdisc");
    for (metric, key) in OF_QDISC {
        let expected = number(&qdisc, key).unwrap_or_else(|| panic!("no {key}: {qdisc:#}"));
        assert_eq!(
            sample(text, metric, &[ON_C1]),
            expected,
            "{kernel}: {metric}"
        );
    }
    let classes = &said["rest class"].0;
    let mut drops = 0;
    for id in ["1:1", "1:2", "1:3"] {
        let class = class(classes, id);
        let label = format!("class=\"{id}\"");
        let labels = [ON_C1, label.as_str()];
        for (metric, key) in OF_CLASS {
            let expected = number(&class, key).unwrap_or_else(|| panic!("no {key}: {class:#}"));
            assert_eq!(
                sample(text, metric, &labels),
                expected,
                "{kernel}: {id} {metric}"
            );
            let between = |name: &str| {
                let of_tc = &said[&format!("{name} class")].0;
                number(&self::class(of_tc, id), key).unwrap()
            };
            let loaded = sample(&said["export under load"].0, metric, &labels);
            let range = between("before")..=between("after");
            assert!(
                range.contains(&loaded),
                "{kernel}: {id} {metric}: {loaded} in {range:?}"
            );
        }
        let child = [ON_C1, label.as_str(), "cause=\"child\""];
        let dropped = sample(text, "psp_class_dropped_frames_total", &child);
        assert_eq!(
            Some(dropped),
            number(&class, "drop_child"),
            "{kernel}: {id}"
        );
        drops += dropped;
        // Paced classes want more than the line, so the normal one has nothing.
        let sent = sample(text, "psp_class_sent_bytes_total", &labels);
        assert!(sent > 1_000_000 || id == "1:3", "{kernel}: {id}");
    }
    assert!(drops > 0, "{kernel}");
    assert_eq!(Some(drops), number(&qdisc, "drop_child"), "{kernel}");
    assert_eq!(sample(text, "psp_exporter_scrape_errors_total", &[]), 0);
    // Of few classes the others are summed, and the sum stays.
    let few = &said["export few"].0;
    let sum = |text: &str| -> u64 {
        let lines = text
            .lines()
            .filter(|line| line.starts_with("psp_class_sent_bytes_total{"));
        lines
            .map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap())
            .sum()
    };
    assert_eq!(sum(few), sum(text), "{kernel}");
    assert_eq!(
        sample(few, "psp_exporter_classes_summed", &[ON_C1]),
        2,
        "{kernel}"
    );
    has(
        &said["file"].0,
        ["# TYPE psp_class_sent_bytes_total counter\n"],
    );
}

fn topped(kernel: Kernel, said: &Outputs) {
    let top = json(said, "top");
    assert_eq!(top["format"], "pspacer-top-1");
    let of_c1 = |row: &&Value| row["device"] == "c1a";
    let classes = top["classes"].as_array().unwrap();
    let ids: Vec<_> = classes
        .iter()
        .filter(of_c1)
        .map(|row| row["class"].clone())
        .collect();
    assert_eq!(ids, ["1:1", "1:2", "1:3"], "{kernel}");
    for row in classes.iter().filter(of_c1).take(2) {
        let (rate, target) = (row["rate_bps"].as_u64(), row["target_bps"].as_u64());
        // The line is oversubscribed: more than none, and no more than the class may.
        assert!(
            rate > Some(0) && rate.unwrap() < target.unwrap() / 100 * 101,
            "{kernel}: {row:#}"
        );
        assert!(
            row["late"]["frames"].as_u64() > Some(0),
            "{kernel}: {row:#}"
        );
    }
    let qdiscs = top["qdiscs"].as_array().unwrap();
    let c1 = qdiscs.iter().find(of_c1).unwrap();
    assert_eq!(c1["line_bps"], 1_000_000_000, "{kernel}: {c1:#}");
    let sent = |row: &Value| row["statistics"]["sent_frames"].as_u64();
    for row in classes.iter().filter(of_c1).take(2).chain([c1]) {
        assert!(sent(row) > Some(0), "{kernel}: {row:#}");
    }
    let d1 = qdiscs.iter().find(|row| row["device"] == "d1").unwrap();
    assert_eq!(
        (&d1["mode"], &d1["why"]),
        (&"timer".into(), &"no_transmit_queue".into())
    );
}

/// Names, targets and rates of the file's classes, as a person reads them.
fn read(kernel: Kernel, said: &Outputs) {
    assert_eq!(said["apply"].1, 0, "{kernel}: {}", said["apply"].0);
    let (text, status) = &said["top text"];
    assert_eq!(*status, 0, "{kernel}: {text}");
    assert!(
        text.starts_with("pspacer top: 1 qdisc, 2 classes by device"),
        "{kernel}: {text}"
    );
    let line = text.lines().find(|line| line.contains("backup")).unwrap();
    let words: Vec<_> = line.split_whitespace().collect();
    assert_eq!(
        words[..5],
        ["c1a", "backup", "paced", "500", "Mbit/s"],
        "{kernel}: {line}"
    );
    let rate: f64 = words[5].parse().unwrap();
    assert!((rate - 500.0).abs() < 5.0, "{kernel}: {line}");
    assert!(text.contains("c1a        rest "), "{kernel}: {text}");
}

fn examined(kernel: Kernel, said: &Outputs) {
    assert_eq!(said["doctor"].1, 1, "{kernel}");
    let doctor = json(said, "doctor");
    assert_eq!(doctor["format"], "pspacer-doctor-1");
    assert_eq!(doctor["facts"]["is_module_loaded"], true);
    assert_eq!(doctor["facts"]["module_version"], env!("CARGO_PKG_VERSION"));
    let findings = doctor["findings"].as_array().unwrap();
    let has = |id: &str, device: &str| {
        findings
            .iter()
            .any(|finding| finding["id"] == id && finding["device"] == device)
    };
    for (id, device) in [
        ("drops", "c1a"),
        ("oversubscribed", "c1a"),
        ("line-unknown", "d1"),
    ] {
        assert!(
            has(id, device),
            "{kernel}: no {id} of {device}: {findings:#?}"
        );
    }
    for (id, device) in [("no-wire", "c1a"), ("drops", "d1")] {
        assert!(
            !has(id, device),
            "{kernel}: {id} of {device}: {findings:#?}"
        );
    }
    let is_of_module = |finding: &&Value| finding["id"].as_str().unwrap().starts_with("module-");
    assert_eq!(findings.iter().find(is_of_module), None, "{kernel}");
    let (text, status) = &said["doctor text"];
    assert_eq!(*status, 1);
    assert!(text.contains("c1a: warning (drops)\n"), "{kernel}: {text}");
    assert!(
        text.contains("  $ tc -s class show dev c1a\n"),
        "{kernel}: {text}"
    );
    let ids = |name: &str| -> Vec<String> {
        let findings = json(said, name)["findings"].clone();
        let all = findings.as_array().unwrap().iter();
        all.map(|finding| finding["id"].as_str().unwrap().to_owned())
            .collect()
    };
    let names = [
        "doctor as applied",
        "doctor differs",
        "doctor absent",
        "doctor refused",
    ];
    let found = names.map(|name| {
        let mut ids = ids(name);
        let of_files = ["other-manager", "device-absent"];
        ids.retain(|id| id.starts_with("file-") || of_files.contains(&id.as_str()));
        ids
    });
    let expected: [&[&str]; 4] = [
        &[],
        &["file-differs", "other-manager"],
        &["file-differs", "other-manager", "device-absent"],
        &["file-refused", "other-manager"],
    ];
    assert_eq!(found, expected, "{kernel}: {:#?}", said["doctor differs"]);
    let (text, status) = &said["doctor unknown"];
    assert_eq!(*status, 2, "{kernel}: {text}");
    assert!(
        text.contains("eth9: no such device; expected one of "),
        "{kernel}: {text}"
    );
}

/// Without the module the same is found, and what takes root is said to be unread.
fn examined_without_module(kernel: Kernel, said: &Outputs, backend: &str) {
    let name = |what: &str| format!("{what} {backend}");
    let findings = |name: &str| -> Vec<(String, String)> {
        let findings = json(said, name)["findings"].clone();
        let word = |finding: &Value, key: &str| finding[key].as_str().unwrap().to_owned();
        let all = findings.as_array().unwrap().iter();
        let of_c1 = all.filter(|finding| finding["device"] == "c1a");
        of_c1
            .map(|finding| (word(finding, "id"), word(finding, "command")))
            .collect()
    };
    let (text, status) = &said[&name("apply")];
    assert_eq!(*status, 0, "{kernel}: {text}");
    let found = findings(&name("doctor"));
    let drops = ("drops".to_owned(), "pspacer top --once".to_owned());
    assert!(found.contains(&drops), "{kernel}: {found:#?}");
    let has = |found: &[(String, String)], of: &str| found.iter().any(|(id, _)| id == of);
    assert_eq!(
        has(&found, "unclassified"),
        backend == "edt",
        "{kernel}: {found:#?}"
    );
    let of_tc = |(_, command): &&(String, String)| command.starts_with("tc ");
    assert_eq!(found.iter().find(of_tc), None, "{kernel}");
    let facts = &json(said, &name("doctor"))["facts"]["devices"][0];
    let psp = &facts["psp"][0];
    assert_eq!(psp["backend"], backend, "{kernel}: {psp:#}");
    assert_eq!(facts["leaves_bursts_whole"], true, "{kernel}: {facts:#}");
    let sent = facts["trial"]["sent_frames"].as_u64();
    assert!(sent > Some(1000), "{kernel}: {facts:#}");
    let (text, _) = &said[&name("doctor text")];
    assert!(text.contains("c1a: warning (drops)\n"), "{kernel}: {text}");
    // Of another user nothing is said of what psp did, but that it is there.
    let unread = name("doctor unprivileged");
    let facts = &json(said, &unread)["facts"]["devices"][0];
    assert_eq!(facts["unread_psp"][0]["backend"], backend, "{facts:#}");
    let found = findings(&unread);
    let ids: Vec<_> = found.iter().map(|(id, _)| id.as_str()).collect();
    let expected = ["other-manager", "file-unread", "statistics-unread"];
    assert_eq!(ids, expected, "{kernel}, {backend}: {}", said[&unread].0);
    assert_eq!(found[2].1, "sudo pspacer doctor c1a", "{kernel}");
}

/// The class of a pod on the host's end of its device has the pod's name.
fn named_by_pods(kernel: Kernel, said: &Outputs) {
    assert_eq!(said["apply pod"].1, 0, "{kernel}: {}", said["apply pod"].0);
    let without = &said["top without a record"].0;
    assert!(!without.contains("web-0"), "{kernel}: {without}");
    let top = &said["top of a pod"].0;
    assert!(top.contains("d2         default/web-0 "), "{kernel}: {top}");
    let labels = ["device=\"d2\"", "name=\"default/web-0\""];
    let exported = &said["export of a pod"].0;
    assert_eq!(sample(exported, "psp_class_sent_bytes_total", &labels), 0);
}

fn check(kernel: Kernel) {
    let said = said(kernel);
    exported(kernel, &said);
    topped(kernel, &said);
    read(kernel, &said);
    examined(kernel, &said);
    if kernel == Kernel::V7 {
        examined_without_module(kernel, &said, "bpf");
    }
    examined_without_module(kernel, &said, "edt");
    named_by_pods(kernel, &said);
}

testkit::on_every_kernel! {
    a_host_under_load_is_monitored: check;
}
