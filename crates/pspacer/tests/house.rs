// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules of the source tree that a test can check: who may depend on whom, licences, sizes,
//! names, and what pure code may not use.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Command;

use crate::common::root;
use crate::map::{Row, map_rows, rows};

/// Returns every file that git would commit, with its text (binary files are left out).
pub fn files() -> Vec<(String, String)> {
    let out = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(root())
        .output()
        .expect("git lists the files");
    assert!(out.status.success(), "git ls-files failed");
    let names = String::from_utf8(out.stdout).unwrap();
    let listed: Vec<_> = names
        .lines()
        .filter_map(|n| Some((n.to_string(), fs::read_to_string(root().join(n)).ok()?)))
        .collect();
    assert!(listed.len() > 20, "only {} files found", listed.len());
    listed
}

pub fn report(what: &str, bad: &[String]) {
    assert!(bad.is_empty(), "{what}:\n  {}", bad.join("\n  "));
}

/// Returns whether a file needs a licence line of its own. Licence texts, generated locks and
/// figures, and test vectors do not.
fn needs_spdx(name: &str) -> bool {
    let generated = [
        "Cargo.lock",
        "go.sum",
        "LICENSES/",
        "docs/understand/figures/",
        "docs/results/figures/",
        ".gitignore",
    ];
    let data = [
        ".svg",
        ".json",
        ".snap",
        ".proptest-regressions",
        "py.typed",
    ];
    !generated
        .iter()
        .any(|g| name.starts_with(g) || name.ends_with(g))
        && !data.iter().any(|d| name.ends_with(d))
        && !name.contains("/corpus/")
}

#[test]
fn every_file_names_its_licence() {
    let expected = |name: &str| match name.split('/').next().unwrap_or("") {
        _ if name.starts_with("packaging/upstream/pspacer/") => "GPL-2.0-only",
        // The benchmark includes core's own files.
        "core" | "bench" => "GPL-2.0-only OR MIT",
        "kernel" | "tc" | "bpf" | "lab" => "GPL-2.0-only",
        "uapi" => "GPL-2.0-only WITH Linux-syscall-note",
        _ => "MIT OR Apache-2.0",
    };
    let mut bad = vec![];
    for (name, text) in files() {
        if !needs_spdx(&name) {
            continue;
        }
        let head: String = text.lines().take(5).collect::<Vec<_>>().join("\n");
        let line = format!("SPDX-License-Identifier: {}", expected(&name));
        if !head.contains(&line) {
            bad.push(format!("{name}: expected \"{line}\" in its first lines"));
        }
    }
    report("licence lines", &bad);
}

/// Files that may be longer than 600 lines, each with its reason.
const LONG_FILES: &[(&str, &str)] = &[
    ("kernel/sch_psp.c", "the whole path of a packet"),
    ("kernel/psp_class.c", "classes and what tc asks of them"),
    ("kernel/psp_dev.c", "all that depends on the device"),
    ("kernel/psp_flow.c", "flows, their users, rates and queues"),
    (
        "kernel/psp_netlink.c",
        "options, statistics, texts of refusals",
    ),
];

#[test]
fn files_are_small() {
    let code = [".rs", ".c", ".h", ".sh", ".py"];
    let long: BTreeMap<_, _> = files()
        .into_iter()
        .filter(|(name, _)| code.iter().any(|ending| name.ends_with(ending)))
        .map(|(name, text)| (name, text.lines().count()))
        .filter(|(_, lines)| *lines > 620)
        .collect();
    let bad: Vec<_> = long
        .iter()
        .filter(|(name, _)| !LONG_FILES.iter().any(|(exempt, _)| exempt == name))
        .map(|(name, lines)| format!("{name}: {lines} lines"))
        .collect();
    report("files over about 600 lines", &bad);
    let outdated: Vec<_> = LONG_FILES
        .iter()
        .filter(|(name, _)| !long.contains_key(*name))
        .map(|(name, _)| format!("{name} needs none"))
        .collect();
    report("exemptions that are outdated", &outdated);
}

#[test]
fn no_machine_and_no_archive_is_named() {
    // The names are in pieces, so that this file does not contain them.
    let forbidden = [
        ["debian", ".org"].concat(),
        ["crates", ".io/"].concat(),
        ["pypi", ".org"].concat(),
        ["/wo", "rk/"].concat(),
        ["/ro", "ot/"].concat(),
        ["/home", "/"].concat(),
    ];
    let mut bad = vec![];
    for (name, text) in files() {
        if name.starts_with("LICENSES/") || name == "Cargo.lock" {
            continue;
        }
        for (i, line) in text.lines().enumerate() {
            for f in &forbidden {
                if line.contains(f.as_str()) {
                    bad.push(format!("{name}:{}: contains {f}", i + 1));
                }
            }
        }
    }
    report("hosts and paths", &bad);
}

/// Returns the crates of this workspace as the tables should have them.
fn workspace() -> BTreeMap<String, Row> {
    let out = Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--format-version",
            "1",
            "--no-deps",
            "--offline",
        ])
        .current_dir(root())
        .output()
        .unwrap();
    let meta: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    let packages = meta["packages"].as_array().unwrap();
    let name = |value: &serde_json::Value| value["name"].as_str().unwrap().to_owned();
    let ours: BTreeSet<String> = packages.iter().map(name).collect();
    assert!(ours.contains("pspacer"));
    let row = |package: &serde_json::Value| {
        let depends = package["dependencies"].as_array().unwrap();
        let of = |is_for_tests: bool| -> BTreeSet<String> {
            let those = depends
                .iter()
                .filter(|d| (d["kind"] == "dev") == is_for_tests);
            those.map(name).filter(|name| ours.contains(name)).collect()
        };
        let manifest = package["manifest_path"].as_str().unwrap();
        let folder = manifest.trim_end_matches("/Cargo.toml");
        let folder = folder.strip_prefix(root().canonicalize().unwrap().to_str().unwrap());
        let folder = folder.unwrap().trim_start_matches('/');
        let uses = of(false);
        // What tests of several crates share needs no mention.
        let tests_use = of(true).into_iter();
        let tests_use = tests_use.filter(|name| name != "testkit" && !uses.contains(name));
        Row {
            folder: folder.trim_start_matches("crates/").to_owned(),
            tests_use: tests_use.collect(),
            uses: uses.into_iter().collect(),
        }
    };
    packages.iter().map(|p| (name(p), row(p))).collect()
}

/// Returns what is wrong in the tables: a row that is not as cargo has it, or a crate that uses one
/// further down.
fn row_faults(rows: &[(String, Row)], actual: &BTreeMap<String, Row>) -> Vec<String> {
    let mut bad = vec![];
    for (at, (name, row)) in rows.iter().enumerate() {
        match actual.get(name) {
            Some(expected) if expected == row => {}
            expected => bad.push(format!("{name}: expected {expected:?}, found {row:?}")),
        }
        let stands = |used: &str| rows[..at].iter().any(|(name, _)| name == used);
        let up = row.uses.iter().filter(|used| !stands(used));
        bad.extend(up.map(|used| format!("{name}: uses {used}, which does not stand above it")));
    }
    let has_row = |name: &str| rows.iter().any(|(of, _)| of == name);
    let none = actual.keys().filter(|name| !has_row(name));
    bad.extend(none.map(|name| format!("{name}: no row")));
    bad
}

/// The tables of crates in architecture.md say who uses whom, and each crate uses only those that
/// stand above it: the wings have an order, too.
#[test]
fn crates_use_whom_the_map_says() {
    report("crates", &row_faults(&map_rows(), &workspace()));
}

#[test]
fn a_row_that_is_wrong_is_found() {
    let row = |name: &str, uses: &[&str]| {
        let row = Row {
            folder: format!("base/{name}"),
            uses: uses.iter().map(|&used| used.to_owned()).collect(),
            tests_use: vec!["c".to_owned()],
        };
        (name.to_owned(), row)
    };
    let table = "# A\n## Crates\n### `base`: low\n| crate | purpose | uses | tests |\n|---|---|---|---|\n\
                 | `a` | x | - | `c` |\n| `b` | y | `a` | `c` |\n## B\n| `c` | z | - | - |\n";
    let good = [row("a", &[]), row("b", &["a"])];
    let actual: BTreeMap<String, Row> = [row("a", &[]), row("b", &["a"])].into();
    assert_eq!(rows(table), good);
    assert_eq!(row_faults(&good, &actual), [""; 0]);
    let upside_down = [row("b", &["a"]), row("a", &[])];
    assert_eq!(row_faults(&upside_down, &actual).len(), 1);
    assert_eq!(row_faults(&[row("a", &[])], &actual), ["b: no row"]);
    assert_eq!(
        row_faults(&[row("a", &[]), row("b", &[])], &actual).len(),
        1
    );
}

/// The rules for C: `(folder, prefixes an #include "..." or <pace/...> may have)`.
#[test]
fn c_rooms_include_only_what_they_may() {
    let ours = ["pace", "sch_psp", "wire"];
    let rules: [(&str, &[&str]); 6] = [
        ("core/", &["pace"]),
        ("kernel/", &["pace", "sch_psp"]),
        ("tc/", &["sch_psp"]),
        // The random requests to psp consist of its own attributes.
        ("lab/fuzz/", &["sch_psp"]),
        // The core in a module alone.
        ("lab/core/", &["pace"]),
        ("lab/", &["wire"]),
    ];
    let mut bad = vec![];
    for (name, text) in files() {
        let Some((_, may)) = rules.iter().find(|(r, _)| name.starts_with(r)) else {
            continue;
        };
        if !(name.ends_with(".c") || name.ends_with(".h")) {
            continue;
        }
        for line in text
            .lines()
            .filter(|l| l.trim_start().starts_with("#include"))
        {
            let path = line.split(['"', '<', '>']).nth(1).unwrap_or("");
            let base = path.rsplit('/').next().unwrap_or(path);
            if let Some(room) = ours.iter().find(|o| base.starts_with(**o)) {
                if !may.contains(room) {
                    bad.push(format!("{name}: {line}"));
                }
            }
        }
        if name.starts_with("core/src") || name.starts_with("core/include") {
            for line in text
                .lines()
                .filter(|l| l.trim_start().starts_with("#include <"))
            {
                if !line.contains("<pace/") {
                    bad.push(format!(
                        "{name}: the core includes nothing of its host: {line}"
                    ));
                }
            }
        }
    }
    report("includes", &bad);
}

/// The workspace, the kernel module, its DKMS package and the images of manifests have the same version.
#[test]
fn there_is_one_version() {
    let version = |name: &str, before: &str| {
        let text = fs::read_to_string(root().join(name)).unwrap();
        let line = text.lines().find_map(|l| l.strip_prefix(before));
        line.and_then(|rest| rest.split('"').next())
            .unwrap_or_else(|| panic!("{name}: expected {before}...\""))
            .to_owned()
    };
    let ours = env!("CARGO_PKG_VERSION");
    assert_eq!(version("kernel/dkms.conf", "PACKAGE_VERSION=\""), ours);
    assert_eq!(version("kernel/sch_psp.c", "MODULE_VERSION(\""), ours);
    for name in ["pspacer-cni.yaml", "pspacer-node.yaml"] {
        let path = root().join("packaging/kubernetes").join(name);
        let text = fs::read_to_string(path).unwrap();
        let images: Vec<_> = text.split("image: pspacer:").skip(1).collect();
        assert!(!images.is_empty(), "{name} names no image");
        for image in images {
            let tag = image.split_whitespace().next();
            assert_eq!(tag, Some(ours), "{name}");
        }
    }
}

/// Wall clock, environment, randomness and processes belong to `pspacer`, `vmlab` and the live
/// tools; callers give everything else what it needs.
#[test]
fn pure_crates_touch_no_world() {
    let pure = [
        "crates/base/units/src",
        "crates/base/toml-reader/src",
        "crates/base/draw/src",
        "crates/base/pace/src",
        "crates/lab/scenario/src",
        "crates/capture/sender-log/src",
        "crates/capture/st2110/src",
        "crates/capture/capture/src",
        "crates/lab/metrics/src",
        "crates/lab/report/src",
        "crates/streams/predict/src",
        "crates/host/host-config/src",
        "crates/streams/admission/src",
        "crates/stalls/stall/src/report",
        "crates/pspacer/src/import/",
        "crates/streams/media/src/document.rs",
        "crates/monitor/top/src",
        // But for reading the host.
        "crates/monitor/doctor/src/rules",
        "crates/monitor/exporter/src/families.rs",
        "crates/monitor/exporter/src/reservations.rs",
        "crates/monitor/exporter/src/text.rs",
        // But for its store, its service and its client.
        "crates/streams/manager-proto/src/answer.rs",
        "crates/streams/manager-proto/src/machine",
        "crates/streams/manager-proto/src/message.rs",
        "crates/streams/manager-proto/src/overview.rs",
        "crates/streams/manager-proto/src/parts.rs",
        "crates/streams/manager-proto/src/pending.rs",
        "crates/streams/manager-proto/src/record.rs",
        // These are the pure files of ping; run.rs and reflect.rs have the sockets.
        "crates/streams/ping/src/delays.rs",
        "crates/streams/ping/src/packet.rs",
        "crates/streams/ping/src/reflector.rs",
        "crates/streams/ping/src/schedule.rs",
        "crates/streams/ping/src/statistics.rs",
        // These are the pure files of the router; src/run has the threads.
        "crates/streams/router/src/config.rs",
        "crates/streams/router/src/ebox.rs",
        "crates/streams/router/src/ethernet.rs",
        "crates/streams/router/src/itm.rs",
        "crates/streams/router/src/table.rs",
    ];
    let world = [
        "std::time::Instant",
        "SystemTime",
        "std::env::",
        "std::process",
        "thread_rng",
    ];
    let mut bad = vec![];
    for (name, text) in files() {
        if !pure.iter().any(|p| name.starts_with(p)) || name.ends_with("_tests.rs") {
            continue;
        }
        let code = text.split("#[cfg(test)]").next().unwrap_or("");
        for (i, line) in code.lines().enumerate() {
            if let Some(w) = world.iter().find(|w| line.contains(**w)) {
                bad.push(format!("{name}:{}: {w}", i + 1));
            }
        }
    }
    report("pure code that is not", &bad);
}

/// Returns the faults in a file's set-up of property tests.
fn property_faults(text: &str) -> Vec<String> {
    let mut bad = vec![];
    for (number, line) in (1..).zip(text.lines()) {
        // Each of these brings a configuration with a seed of its own.
        let own = [
            "proptest!(",
            "ProptestConfig::",
            "TestRunner",
            "rng_seed",
            "RngSeed",
        ];
        bad.extend(
            own.iter()
                .filter(|own| line.contains(**own))
                .map(|own| format!("{number}: {own}")),
        );
    }
    for (at, _) in text.match_indices("proptest! {") {
        let number = text[..at].lines().count();
        let block = text[at + "proptest! {".len()..].trim_start();
        let config = block
            .strip_prefix("#![proptest_config(")
            .and_then(|rest| rest.split_once(")]"))
            .map_or("", |(config, _)| config);
        if !config.contains("testkit::") {
            bad.push(format!(
                "{number}: expected #![proptest_config(testkit::...)]"
            ));
        }
    }
    bad
}

/// Property tests have the same cases in every run, because testkit fixes the seed.
#[test]
fn property_tests_use_the_shared_set_up() {
    let mut bad = vec![];
    let mut blocks = 0;
    for (name, text) in files() {
        let rust = name.starts_with("crates/") && name.ends_with(".rs");
        if !rust || name.starts_with("crates/base/testkit/") || name.ends_with("tests/house.rs") {
            continue;
        }
        blocks += text.matches("proptest! {").count();
        bad.extend(
            property_faults(&text)
                .iter()
                .map(|fault| format!("{name}:{fault}")),
        );
    }
    assert!(blocks > 20, "only {blocks} property tests found");
    report("property tests that may differ from run to run", &bad);
}

#[test]
fn a_property_test_of_its_own_seed_is_found() {
    let faults = |text: &str| property_faults(text).len();
    assert_eq!(
        faults("proptest! {\n    #![proptest_config(testkit::cases(3))]\n}"),
        0
    );
    let more = "proptest! {\n #![proptest_config(ProptestConfig { max_shrink_iters: 9, ..testkit::cases(3) })]";
    assert_eq!(faults(more), 0);
    assert_eq!(
        faults("proptest! {\n    #[test]\n    fn any(x: u8) {}\n}"),
        1
    );
    assert_eq!(
        faults("proptest! {\n #![proptest_config(ProptestConfig::with_cases(3))]"),
        2
    );
    assert_eq!(faults("proptest!(|(x: u8)| {});"), 1);
    let seed = "proptest! { #![proptest_config(ProptestConfig { rng_seed: RngSeed::Random, ..testkit::cases(3) })]";
    assert_eq!(faults(seed), 2);
}

/// A file of tests that its program does not name would never be compiled.
#[test]
fn every_file_of_tests_is_in_a_program() {
    let all: BTreeMap<String, String> = files().into_iter().collect();
    let mut bad = vec![];
    let mut count = 0;
    for name in all.keys() {
        let parts: Vec<&str> = name.split('/').collect();
        let (folder, file) = match parts[..] {
            ["crates", krate, "tests", file] => (format!("crates/{krate}"), file),
            ["crates", wing, krate, "tests", file] => (format!("crates/{wing}/{krate}"), file),
            ["xtask", "tests", file] => ("xtask".to_owned(), file),
            _ => continue,
        };
        let Some(file) = file.strip_suffix(".rs").filter(|file| *file != "main") else {
            continue;
        };
        let Some(main) = all.get(&format!("{folder}/tests/main.rs")) else {
            continue;
        };
        count += 1;
        let line = format!("mod {file};");
        let is_named = main.lines().any(|l| l.trim_start_matches("pub ") == line);
        let own = format!("[[test]]\nname = \"{file}\"\n");
        if !is_named && !all[&format!("{folder}/Cargo.toml")].contains(&own) {
            bad.push(name.clone());
        }
    }
    assert!(count > 100, "only {count} files found");
    report("in no program", &bad);
}

/// Only bindings may be unsafe.
#[test]
fn unsafe_stays_in_the_bindings() {
    let bindings = [
        "crates/base/pace/",
        "crates/streams/router/src/afxdp/",
        "crates/streams/psp-reserve/",
        "crates/host/backend/src/qdisc/memory.rs",
    ];
    let bad: Vec<_> = files()
        .iter()
        .filter(|(n, _)| n.starts_with("crates/") && n.ends_with(".rs"))
        .filter(|(n, _)| {
            !bindings.iter().any(|b| n.starts_with(b)) && !n.ends_with("tests/house.rs")
        })
        .filter(|(_, t)| t.contains("unsafe {") || t.contains("allow(unsafe_code)"))
        .map(|(n, _)| n.clone())
        .collect();
    report("unsafe outside of bindings", &bad);
}

/// Files that people name are written by `psp-files`, which writes through nothing. Others write into
/// folders that are their own.
#[test]
fn nobody_else_creates_files() {
    let own = [
        "crates/base/psp-files/",
        "crates/base/bpf-build/",
        "crates/base/testkit/",
        "crates/lab/",
        // A limit of the kernel's; names in the folder of pspacer.
        "crates/host/host-apply/src/queue_limits.rs",
        "crates/host/host-apply/src/confirm.rs",
    ];
    let ways = [
        "fs::write(",
        " File::create",
        "fs::rename(",
        ".create(true)",
    ];
    let bad: Vec<_> = files()
        .iter()
        .filter(|(n, _)| n.starts_with("crates/") && n.contains("/src/") && n.ends_with(".rs"))
        .filter(|(n, _)| !n.ends_with("_tests.rs") && !own.iter().any(|own| n.starts_with(own)))
        .filter(|(n, t)| {
            let code = t.split("#[cfg(test)]").next().unwrap_or_default();
            let is_lock = n.ends_with("host-apply/src/run_dir.rs");
            ways.iter()
                .any(|way| code.contains(way) && !(is_lock && *way == ".create(true)"))
        })
        .map(|(n, _)| n.clone())
        .collect();
    report("files that psp-files does not write", &bad);
}
