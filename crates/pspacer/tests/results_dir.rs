// SPDX-License-Identifier: MIT OR Apache-2.0
//! `--out DIR`: pspacer removes only what it wrote, and only from a folder that it has marked.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use crate::common::{Folder, root, text};
use testkit::{has, has_none};

/// A scenario of one short cell.
const SCENARIO: &str = r#"
name = "tiny"
title = "A datagram now and then"
duration = "20ms"
[param]
rate = "10mbit"
[[host]]
name = "tx"
[[host]]
name = "rx"
[[cable]]
name = "wire"
ends = ["tx:eth0", "rx:eth0"]
rate = "100mbit"
snap = 0
[[flow]]
name = "beat"
type = "udp"
from = "tx"
to = "rx"
rate = "${rate}"
payload = "1000b"
"#;

fn command(scenario: &str, out: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pspacer"));
    command.args(["sim", "run", scenario, "--out", out]);
    command.current_dir(root());
    command
}

struct Place {
    folder: Folder,
    scenario: String,
}

impl Place {
    fn new(name: &str) -> Self {
        let folder = Folder::new(name);
        let scenario = folder.file("tiny.toml", SCENARIO.as_bytes());
        Self { folder, scenario }
    }

    fn at(&self, name: &str) -> String {
        self.folder.0.join(name).display().to_string()
    }

    fn run(&self, out: &str) -> Output {
        command(&self.scenario, out).output().unwrap()
    }

    fn fine(&self, out: &str) {
        let ran = self.run(out);
        assert!(ran.status.success(), "{}", text(&ran.stderr));
        assert!(Path::new(out).join("result.json").is_file());
    }

    /// Checks that a run into `out` is rejected by one sentence with these words.
    fn refused(&self, out: &str, words: &[&str]) {
        let ran = self.run(out);
        let said = text(&ran.stderr);
        assert_eq!(ran.status.code(), Some(1), "{said}");
        for word in words {
            assert!(said.contains(word), "expected {word:?} in: {said}");
        }
        assert_eq!(said.lines().count(), 1, "{said}");
        has_none(&said, ["panicked"]);
    }
}

#[test]
fn a_folder_with_a_result_json_that_is_not_ours_is_left_alone() {
    let place = Place::new("out-foreign");
    let out = place.at("thesis");
    fs::create_dir(&out).unwrap();
    fs::write(format!("{out}/result.json"), "years of work").unwrap();
    fs::write(format!("{out}/thesis.txt"), "more years").unwrap();
    place.refused(
        &out,
        &["--out", "thesis", "expected a new or an empty folder"],
    );
    assert_eq!(
        fs::read_to_string(format!("{out}/result.json")).unwrap(),
        "years of work"
    );
    assert_eq!(
        fs::read_to_string(format!("{out}/thesis.txt")).unwrap(),
        "more years"
    );
}

#[test]
fn files_put_beside_results_stay() {
    let place = Place::new("out-beside");
    let out = place.at("run");
    place.fine(&out);
    fs::write(format!("{out}/notes.txt"), "mine").unwrap();
    fs::create_dir(format!("{out}/mine")).unwrap();
    fs::write(format!("{out}/mine/result.json"), "mine too").unwrap();
    let stale = format!("{out}/cell-0/curves.json");
    fs::write(&stale, "changed").unwrap();
    place.fine(&out);
    assert_eq!(
        fs::read_to_string(format!("{out}/notes.txt")).unwrap(),
        "mine"
    );
    assert_eq!(
        fs::read_to_string(format!("{out}/mine/result.json")).unwrap(),
        "mine too"
    );
    assert_ne!(fs::read_to_string(&stale).unwrap(), "changed");
}

#[test]
fn what_an_earlier_run_wrote_goes() {
    let place = Place::new("out-replaced");
    let out = place.at("run");
    place.fine(&out);
    // The first run has two cells, the second one: the folder of the second cell must go.
    let two = SCENARIO.replace("[param]", "[sweep]");
    let two = two.replace("rate = \"10mbit\"", "rate = [\"10mbit\", \"20mbit\"]");
    fs::write(&place.scenario, two).unwrap();
    place.fine(&out);
    assert!(Path::new(&out).join("cell-1").is_dir());
    fs::write(&place.scenario, SCENARIO).unwrap();
    place.fine(&out);
    assert!(!Path::new(&out).join("cell-1").exists());
}

#[test]
fn a_file_of_the_users_in_the_way_is_refused_before_the_run() {
    let place = Place::new("out-in-the-way");
    let out = place.at("run");
    place.fine(&out);
    // The user's file is in a folder that pspacer made.
    let mine = format!("{out}/cell-0/notes.txt");
    fs::write(&mine, "mine").unwrap();
    place.refused(&out, &["cell-0", "not written by pspacer"]);
    assert_eq!(fs::read_to_string(&mine).unwrap(), "mine");
}

#[test]
fn a_marker_that_names_other_places_removes_nothing_there() {
    let place = Place::new("out-marker");
    let out = place.at("run");
    place.fine(&out);
    let keep = place.at("keep.txt");
    fs::write(&keep, "mine").unwrap();
    let marker = Path::new(&out).join(".pspacer");
    let text = fs::read_to_string(&marker).unwrap();
    let hostile = format!("{text}../keep.txt\n{keep}\ncell-0/../../keep.txt\n");
    fs::write(&marker, hostile).unwrap();
    place.refused(&out, &[".pspacer", "keep.txt"]);
    assert_eq!(fs::read_to_string(&keep).unwrap(), "mine");
    // The user replaced a folder of pspacer's by a link.
    let out = place.at("linked");
    place.fine(&out);
    let elsewhere = place.at("elsewhere");
    fs::rename(format!("{out}/cell-0"), &elsewhere).unwrap();
    symlink(&elsewhere, format!("{out}/cell-0")).unwrap();
    place.refused(&out, &["cell-0", "not written by pspacer"]);
    assert!(Path::new(&elsewhere).join("curves.json").is_file());
}

#[test]
fn odd_places_are_refused_and_left_alone() {
    let place = Place::new("out-odd");
    place.refused("/", &["--out /", "expected a new or an empty folder"]);
    place.refused(".", &["--out .", "expected a new or an empty folder"]);
    let file = place.folder.file("file", b"mine");
    place.refused(&file, &["--out", "file", "expected a folder"]);
    place.refused(&format!("{file}/below"), &["--out", "below"]);
    assert_eq!(fs::read(&file).unwrap(), b"mine");
    let dangling = place.at("dangling");
    symlink(place.at("nowhere"), &dangling).unwrap();
    place.refused(&dangling, &["--out", "dangling", "link"]);
    place.refused("/proc/pspacer", &["--out /proc/pspacer"]);
    // A link to an empty folder counts as an empty folder.
    let real = place.at("real");
    fs::create_dir(&real).unwrap();
    let link = place.at("link");
    symlink(&real, &link).unwrap();
    place.fine(&link);
    assert!(Path::new(&real).join("result.json").is_file());
    place.fine(&link);
    assert!(Path::new(&link).is_symlink());
}

#[test]
fn the_working_folder_can_be_the_folder_of_results() {
    let place = Place::new("out-here");
    let here = place.at("here");
    fs::create_dir(&here).unwrap();
    for _ in 0..2 {
        let mut command = command(&place.scenario, ".");
        let ran = command.current_dir(&here).output().unwrap();
        assert!(ran.status.success(), "{}", text(&ran.stderr));
    }
    assert!(Path::new(&here).join("result.json").is_file());
}

/// A run that has begun in its folder and does not end.
fn endless_in(place: &Place, out: &str) -> Child {
    let long = SCENARIO.replace("20ms", "3600s");
    let scenario = place.folder.file("long.toml", long.as_bytes());
    let child = command(&scenario, out)
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    while !Path::new(out).join(".pspacer").is_file() {
        std::thread::yield_now();
    }
    child
}

#[test]
fn one_run_at_a_time_and_an_interrupted_one_is_taken_away() {
    let place = Place::new("out-twice");
    let out = place.at("run");
    let mut child = endless_in(&place, &out);
    let second = place.run(&out);
    child.kill().unwrap();
    child.wait().unwrap();
    let said = text(&second.stderr);
    assert_eq!(second.status.code(), Some(1), "{said}");
    has(&said, ["--out", "another run"]);
    place.fine(&out);
}

#[test]
fn one_sweep_at_a_time_in_a_folder() {
    let place = Place::new("out-sweeps");
    let long = SCENARIO.replace("20ms", "3600s");
    let scenario = place.folder.file("long.toml", long.as_bytes());
    let out = place.at("sweep");
    let sweep = |seeds: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pspacer"));
        command.args(["sim", "sweep", &scenario, "--seeds", seeds, "--out", &out]);
        command
    };
    let mut first = sweep("1..2").stderr(Stdio::null()).spawn().unwrap();
    while !Path::new(&out).join("rows.jsonl").is_file() {
        std::thread::yield_now();
    }
    let second = sweep("1..2").output().unwrap();
    first.kill().unwrap();
    first.wait().unwrap();
    let said = text(&second.stderr);
    assert_eq!(second.status.code(), Some(1), "{said}");
    has(&said, ["--out", "another run"]);
}

/// A folder in which a sweep could not begin can be used again.
#[test]
fn a_sweep_that_could_not_begin_leaves_nothing() {
    let place = Place::new("out-sweep-full");
    let out = place.at("sweep");
    fs::create_dir(&out).unwrap();
    // A limit of 0 bytes for files acts as a full disk, also for root.
    let sweep = |limit: &str| {
        let mut shell = Command::new("sh");
        shell
            .arg("-c")
            .arg("trap '' XFSZ; ulimit -f $1; shift; exec \"$@\"");
        shell.args(["sh", limit, env!("CARGO_BIN_EXE_pspacer"), "sim", "sweep"]);
        shell
            .args([&place.scenario, "--out", &out])
            .output()
            .unwrap()
    };
    let failed = sweep("0");
    let said = text(&failed.stderr);
    assert_eq!(failed.status.code(), Some(1), "{said}");
    has(&said, ["sweep.json", "too large"]);
    let next = sweep("unlimited");
    assert!(next.status.success(), "{}", text(&next.stderr));
}

/// More threads than pieces of work are not started.
#[test]
fn absurdly_many_jobs_are_as_many_as_there_is_work() {
    let place = Place::new("out-jobs");
    let mut command = command(&place.scenario, &place.at("run"));
    let ran = command.args(["--jobs", "99999999"]).output().unwrap();
    assert!(ran.status.success(), "{}", text(&ran.stderr));
}

/// Root may write anywhere, so this test is for other users.
#[test]
fn a_folder_that_cannot_be_written_is_named() {
    let place = Place::new("out-read-only");
    let shut = place.at("shut");
    fs::create_dir(&shut).unwrap();
    fs::set_permissions(&shut, fs::Permissions::from_mode(0o555)).unwrap();
    let probe = fs::write(format!("{shut}/probe"), "");
    let out = format!("{shut}/run");
    match probe {
        Err(_) => place.refused(&out, &["--out", "shut", "Permission denied"]),
        Ok(()) => place.refused("/proc/1/run", &["--out /proc/1/run"]),
    }
}
