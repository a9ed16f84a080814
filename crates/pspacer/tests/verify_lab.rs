// SPDX-License-Identifier: MIT OR Apache-2.0
//! `pspacer verify` finds frames that do not come to their class, and says why, in the laboratory's
//! guest.

use scenario::Kernel;
use serde_json::Value;

use crate::common::guest::{self, Outputs, outputs};
use crate::common::root;

const MODULES: &[&str] = &[
    "sch_psp",
    "wire",
    "8021q",
    "veth",
    "dummy",
    "cls_bpf",
    "cls_flower",
    "cls_matchall",
    "act_gact",
    "sch_fq",
    "sch_ingress",
];

/// Three frames of a class whose sender is even.
const BURST_MAX_BYTES: u64 = 3 * 1042;

/// Returns a class of what verify said, with its exit status.
fn class(said: &Outputs, name: &str, class: &str) -> (Value, i32) {
    let (text, status) = &said[name];
    let json: Value =
        serde_json::from_str(text).unwrap_or_else(|error| panic!("{name}: {error}: {text}"));
    assert_eq!(json["format"], "pspacer-verify-1");
    let classes = json["devices"][0]["classes"].as_array().unwrap().clone();
    let found = classes.into_iter().find(|found| found["name"] == class);
    (found.unwrap(), *status)
}

/// A program of others at tcx is named where it came later, and departure times are refused behind it.
fn check_tcx(kernel: Kernel, said: &Outputs) {
    if kernel == Kernel::V6_1 {
        let (text, _) = &said["tcx"];
        assert!(text.contains("Invalid argument"), "{kernel}: {text}");
        return;
    }
    let (class, status) = class(said, "tcx verify", "c0");
    assert_eq!(
        (&class["state"], status),
        (&"missing".into(), 1),
        "{class:#}"
    );
    let why = class["why"].to_string();
    for words in [
        "takes packets before the classifier: program pass (id",
        "at tcx egress",
    ] {
        assert!(why.contains(words), "{kernel}: {why}");
    }
    for (name, expected, words) in [
        ("tcx doctor", 1, "\"id\": \"taken-before\""),
        ("tcx apply", 1, "expected none before ours"),
        ("tcx gone", 0, ""),
    ] {
        let (text, status) = &said[name];
        let is_said = *status == expected && text.contains(words);
        assert!(is_said, "{kernel}: {name}: {status} {text}");
    }
}

/// Of small frames a part is looked at, and stands for all.
fn check_sample(kernel: Kernel, said: &Outputs) {
    let (class, status) = class(said, "sampled", "c0");
    let json: Value = serde_json::from_str(&said["sampled"].0).unwrap();
    let device = &json["devices"][0];
    let share = device["share"].as_f64().unwrap();
    let what = format!("{kernel}: {share} {class:#}");
    assert_eq!((&class["state"], status), (&"well".into(), 0), "{what}");
    assert!((0.05..0.5).contains(&share), "{what}");
    assert_eq!(
        (&device["lost"], &class["burst_bytes"]),
        (&0.into(), &Value::Null)
    );
    let number = |key: &Value| key.as_u64().unwrap();
    // Gap frames between them take no part of the budget.
    assert!(number(&device["gap_frames"]) > 100, "{device:#}");
    let (matched, counted) = (
        number(&class["matched"]["frames"]),
        number(&class["counted_frames"]),
    );
    let tolerance = number(&class["tolerance_frames"]);
    assert!(matched > 3000 && tolerance < matched / 4, "{what}");
    assert!(matched.abs_diff(counted) <= tolerance, "{what}");
}

/// A user whom the kernel does not show BPF is told so, and gets no plan.
fn check_user(kernel: Kernel, said: &Outputs) {
    for name in [
        "user: module, new",
        "user: module",
        "user: edt, new",
        "user: edt",
        "user: module in the place of edt",
    ] {
        let (text, status) = &said[name];
        let is_told = text
            .contains("run it as root with its capabilities, the kernel tells this to nobody else");
        let is_planned = text.contains(" changes") || text.contains("nothing to change");
        assert!(
            *status == 1 && is_told && !is_planned,
            "{kernel}: {name}: {status} {text}"
        );
    }
    let (text, status) = &said["user: no matches"];
    let is_planned = text.contains("add     qdisc psp at root");
    assert!(*status == 0 && is_planned, "{kernel}: {status} {text}");
}

fn check(kernel: Kernel) {
    let folder = tempfile::tempdir().unwrap();
    let tcx = folder.path().join("tcx");
    testkit::guest::compile(&root().join("crates/pspacer/tests/verify/tcx.c"), &tcx);
    let files = [
        "crates/pspacer/tests/verify/faults.sh",
        "kernel/tests/lib.sh",
        tcx.to_str().unwrap(),
    ];
    let said = outputs(&guest::output(kernel, "verify", MODULES, &files));
    for (name, of) in [
        ("untagged", "c0"),
        ("tags applied", "c0"),
        ("tags applied", "c1"),
        ("tags applied", "c2"),
        ("fragments applied", "c0"),
        ("interface", "c0"),
        ("edt", "c0"),
    ] {
        let (class, status) = class(&said, name, of);
        let what = format!("{kernel}: {name}: {of}: {class:#}");
        assert_eq!((&class["state"], status), (&"well".into(), 0), "{what}");
        assert!(class["matched"]["frames"].as_u64() > Some(200), "{what}");
        // A paced class: the kernel hands on a few of its frames at once, at most.
        assert!(
            class["burst_bytes"].as_u64() < Some(BURST_MAX_BYTES),
            "{what}"
        );
        println!(
            "{kernel}: {name}: {of}: bursts of {} bytes",
            class["burst_bytes"]
        );
    }
    for (name, of, why) in [
        ("tags", "c1", "VLAN tag"),
        ("tags", "c2", "two tags"),
        ("fragments", "c0", "fragments"),
        ("interface anew", "c0", "made anew"),
        ("taken", "c0", "matchall"),
    ] {
        let (class, status) = class(&said, name, of);
        let what = format!("{kernel}: {name}: {of}: {class:#}");
        assert_eq!((&class["state"], status), (&"missing".into(), 1), "{what}");
        assert!(class["why"].to_string().contains(why), "{what}");
        let example = &class["rules"][0]["example"];
        assert!(example["what"].to_string().contains("10."), "{what}");
    }
    for (name, id) in [
        ("doctor anew", "interface-renewed"),
        ("doctor taken", "taken-before"),
        ("doctor bypassed", "bypassed"),
    ] {
        let (text, status) = &said[name];
        let is_named = text.contains(&format!("\"id\": \"{id}\""));
        assert!(is_named && *status == 1, "{kernel}: {name}: {text}");
    }
    let (text, status) = &said["taken text"];
    // Lines are folded.
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for line in [
        " packets in 1",
        "% of them looked at, 0 lost",
        "c0: FAULT, ",
        " frames missing; ",
        "Why: another program takes packets before the classifier: ",
        "frames match { to = \"10.8.0.2\" }, such as ",
        "rest: well; ",
    ] {
        assert!(words.contains(line), "{kernel}: {line} in {text}");
    }
    assert_eq!(*status, 1, "{kernel}: {text}");
    let (text, status) = &said["apply verify"];
    assert_eq!(*status, 0, "{kernel}: {text}");
    let (text, status) = &said["apply verify taken"];
    assert!(
        *status == 1 && text.contains("c0: FAULT"),
        "{kernel}: {text}"
    );
    check_sample(kernel, &said);
    check_tcx(kernel, &said);
    check_user(kernel, &said);
    let (text, _) = &said["doctor edt"];
    assert!(!text.contains("\"bypassed\""), "{kernel}: {text}");
}

testkit::on_every_kernel! {
    faults_are_found: check;
}
