// SPDX-License-Identifier: MIT OR Apache-2.0
//! An installed command finds its files from any working folder.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::common::{Folder, root, text};
use testkit::has;

/// Runs a program in an empty folder, with a bare environment.
fn run(program: &Path, args: &[&str], root: Option<&Path>, from: &Path) -> Output {
    let mut command = Command::new(program);
    command.args(args).current_dir(from).env_clear();
    if let Some(root) = root {
        command.env("PSPACER_ROOT", root);
    }
    command.output().unwrap()
}

fn names(out: &Output) -> Vec<String> {
    assert!(out.status.success(), "{}", text(&out.stderr));
    let rows: Vec<Value> = serde_json::from_slice(&out.stdout).unwrap();
    let name = |row: &Value| row["name"].as_str().unwrap().to_owned();
    rows.iter().map(name).collect()
}

#[test]
fn the_root_is_obeyed_by_list_and_by_names() {
    let folder = Folder::new("installed-root");
    let tree = folder.0.join("tree");
    let tiny = tree.join("experiments/tiny");
    fs::create_dir_all(&tiny).unwrap();
    let busy = fs::read_to_string(root().join("experiments/busy-host/scenario.toml")).unwrap();
    let busy = busy.replace("name = \"busy-host\"", "name = \"tiny\"");
    fs::write(tiny.join("scenario.toml"), busy).unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_pspacer"));
    let list = ["lab", "list", "--json"];
    assert_eq!(
        names(&run(program, &list, Some(&tree), &folder.0)),
        ["tiny"]
    );
    // The named root has priority over the tree around the working folder.
    assert_eq!(names(&run(program, &list, Some(&tree), &root())), ["tiny"]);
    let none = run(program, &["sim", "run", "no-such"], Some(&tree), &root());
    has(text(&none.stderr), ["there are: tiny"]);
    // A root that does not exist is named, and no other is used.
    let gone = folder.0.join("gone");
    let wrong = run(program, &list, Some(&gone), &root());
    assert_eq!(wrong.status.code(), Some(1));
    let said = text(&wrong.stderr);
    has(&said, ["PSPACER_ROOT", "gone"]);
}

#[test]
fn a_relative_prefix_is_below_the_working_folder() {
    let folder = Folder::new("installed-relative");
    let mut command = Command::new(root().join("tools/install.sh"));
    command.arg("install-command").current_dir(&folder.0);
    command.env("PREFIX", "usr");
    command.env("PSPACER", env!("CARGO_BIN_EXE_pspacer"));
    let out = command.output().unwrap();
    assert!(out.status.success(), "{}", text(&out.stderr));
    assert!(folder.0.join("usr/bin/pspacer").is_file());
    let scenario = "usr/share/pspacer/experiments/busy-host/scenario.toml";
    assert!(folder.0.join(scenario).is_file());
}

#[test]
fn an_installed_command_has_its_experiments_sources_and_pages() {
    let folder = Folder::new("installed-files");
    let prefix = folder.0.join("usr");
    let install = |verb: &str| {
        let mut command = Command::new(root().join("tools/install.sh"));
        command.arg(verb).env("PREFIX", &prefix);
        command.env("PSPACER", env!("CARGO_BIN_EXE_pspacer"));
        let out = command.output().unwrap();
        assert!(
            out.status.success(),
            "{}{}",
            text(&out.stdout),
            text(&out.stderr)
        );
    };
    install("install-command");
    let program = prefix.join("bin/pspacer");
    let here = names(&run(&program, &["lab", "list", "--json"], None, &folder.0));
    let list = ["lab", "list", "--json"];
    let there = names(&run(
        Path::new(env!("CARGO_BIN_EXE_pspacer")),
        &list,
        None,
        &root(),
    ));
    assert_eq!(here, there);
    assert!(here.contains(&"busy-host".to_owned()));
    // The installed command runs an experiment by name on the simulator, which needs nothing
    // else.
    let args = ["sim", "run", "pspacer-single-rate", "--set", "rate=500mbit"];
    let ran = run(&program, &args, None, &folder.0);
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    assert!(
        folder
            .0
            .join("out/pspacer-single-rate/result.json")
            .exists()
            || folder
                .0
                .join("out/pspacer-single-rate-sim/result.json")
                .exists()
    );
    // The installed folders have everything from which a guest is compiled, unchanged.
    let share = prefix.join("share/pspacer");
    for folder in ["core", "kernel", "lab", "uapi", "tc"] {
        let mut kept = Command::new("git");
        kept.args(["ls-files", folder]).current_dir(root());
        for name in text(&kept.output().unwrap().stdout).lines() {
            let there = fs::read(share.join(name));
            assert_eq!(there.ok(), fs::read(root().join(name)).ok(), "{name}");
        }
    }
    // The conformance cases are not installed: developers run them from the source.
    assert!(!share.join("tests").exists());
    for name in [
        "share/man/man1/pspacer.1",
        "share/pspacer/wireshark/pspacer.lua",
        "share/bash-completion/completions/pspacer",
        "share/zsh/site-functions/_pspacer",
        "share/fish/vendor_completions.d/pspacer.fish",
    ] {
        assert!(
            fs::metadata(prefix.join(name)).unwrap().len() > 500,
            "{name}"
        );
    }
    // Other programs, which lie beside the command if they were built, bring their pages.
    for (program, page) in [
        ("lib/cni/pspacer-cni", "pspacer-cni.8"),
        ("lib/pspacer/pspacer-node", "pspacer-node.8"),
    ] {
        let page = prefix.join("share/man/man8").join(page);
        assert_eq!(prefix.join(program).exists(), page.exists(), "{program}");
    }
    install("uninstall-command");
    let mut left = vec![];
    for entry in walk(&prefix) {
        left.push(entry);
    }
    assert_eq!(left, Vec::<String>::new());
}

#[test]
fn the_unit_of_systemd_runs_the_command_that_was_installed() {
    let folder = Folder::new("installed-unit");
    let install = |verb: &str| {
        let mut command = Command::new(root().join("tools/install.sh"));
        command.arg(verb).env("DESTDIR", &folder.0);
        command.env("PREFIX", "/opt/psp");
        command.env("PSPACER", env!("CARGO_BIN_EXE_pspacer"));
        command.output().unwrap()
    };
    let out = install("install-command");
    assert!(out.status.success(), "{}", text(&out.stderr));
    for (unit, command, count) in [
        ("pspacer@.service", "apply", 2),
        ("pspacer-follow.service", "apply --follow", 1),
        ("pspacer-agent.service", "agent", 1),
        ("pspacer-manager.service", "manager", 1),
    ] {
        let path = folder.0.join("opt/psp/lib/systemd/system").join(unit);
        let installed = fs::read_to_string(&path).unwrap();
        let packaged = fs::read_to_string(root().join("packaging/systemd").join(unit)).unwrap();
        assert_eq!(
            installed.replace("=/opt/psp/bin/", "=/usr/bin/"),
            packaged,
            "only the command's path differs"
        );
        let words = format!("=/opt/psp/bin/pspacer {command}");
        assert_eq!(installed.matches(&words).count(), count);
    }
    assert!(folder.0.join("opt/psp/bin/pspacer").is_file());
    assert!(install("uninstall-command").status.success());
    assert_eq!(walk(&folder.0), Vec::<String>::new());
    // The module is built on the machine that it is for.
    let out = install("install");
    assert_eq!(out.status.code(), Some(1));
    has(text(&out.stderr), ["DESTDIR"]);
    assert_eq!(walk(&folder.0), Vec::<String>::new());
}

/// Has systemd check the unit, if this machine has the program for it.
#[test]
fn systemd_finds_no_fault_in_the_unit() {
    let folder = Folder::new("installed-verify");
    let verify = |text: String| {
        let path = folder.file("pspacer@.service", text.as_bytes());
        let path = path.replace('@', "@eth0");
        let mut command = Command::new("systemd-analyze");
        command.args(["verify", "--man=no", "--recursive-errors=no", &path]);
        command.output()
    };
    let unit = fs::read_to_string(root().join("packaging/systemd/pspacer@.service")).unwrap();
    let unit = unit.replace("/usr/bin/pspacer", env!("CARGO_BIN_EXE_pspacer"));
    let Ok(out) = verify(unit.clone()) else {
        return;
    };
    let said = text(&out.stderr);
    assert!(out.status.success() && said.is_empty(), "{said}");
    let out = verify(unit.replace("Type=oneshot", "Type=onceshot")).unwrap();
    assert!(!text(&out.stderr).is_empty());
    for other in [
        "pspacer-follow.service",
        "pspacer-agent.service",
        "pspacer-manager.service",
    ] {
        let unit = fs::read_to_string(root().join("packaging/systemd").join(other)).unwrap();
        let out = verify(unit.replace("/usr/bin/pspacer", env!("CARGO_BIN_EXE_pspacer"))).unwrap();
        let said = text(&out.stderr);
        assert!(out.status.success() && said.is_empty(), "{said}");
    }
}

/// Returns every file below a folder.
fn walk(folder: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder) else {
        return vec![];
    };
    let mut found = vec![];
    for path in entries.map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            found.extend(walk(&path))
        } else {
            found.push(path.display().to_string())
        }
    }
    found
}
