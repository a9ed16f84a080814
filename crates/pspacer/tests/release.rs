// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a release publishes is collected from what was committed and built, or refused before anything is
//! written.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::common::root;
use testkit::{has, has_none};

const CHANGES: &str = "# Changes\n\n## 1.2.0\n2027-01-31.\n\n### It\n- Came.\n";
const SCRIPTS: [&str; 2] = ["release.sh", "version.sh"];

/// Makes a clone with one commit, whose list of crates is a constant.
fn repository(folder: &Path) {
    fs::create_dir_all(folder.join("packaging")).unwrap();
    for script in SCRIPTS {
        let name = format!("packaging/{script}");
        fs::copy(root().join(&name), folder.join(&name)).unwrap();
    }
    let crates = folder.join("packaging/crates.pl");
    fs::write(&crates, "#!/bin/sh\necho '{}'\n").unwrap();
    assert!(run(folder, "chmod +x packaging/crates.pl").status.success());
    write(
        folder,
        "Cargo.toml",
        "[workspace.package]\nversion = \"1.2.0\"\n",
    );
    write(folder, "CHANGELOG.md", CHANGES);
    write(folder, ".gitignore", "/build\n");
    commit(folder);
}

fn write(folder: &Path, name: &str, text: &str) {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn run(folder: &Path, command: &str) -> Output {
    let mut shell = Command::new("sh");
    shell.current_dir(folder).args(["-c", command]);
    for name in ["DEBS", "RPMS", "IMAGE", "OUT"] {
        shell.env_remove(name);
    }
    shell.output().unwrap()
}

fn commit(folder: &Path) {
    let who = "-c user.name=Nobody -c user.email=nobody@example.invalid";
    let all = format!("git init -q . && git add -A && git {who} commit -q -m It");
    let output = run(folder, &all);
    assert!(output.status.success(), "{output:?}");
}

/// Writes packages of a version, as their makers name them.
fn packages(folder: &Path, version: &str) {
    write(
        folder,
        &format!("build/deb/pspacer_{version}_amd64.deb"),
        "deb",
    );
    write(
        folder,
        &format!("build/rpm/pspacer-{version}-1.x86_64.rpm"),
        "rpm",
    );
    write(
        folder,
        &format!("build/image/pspacer-{version}.oci.tar"),
        "oci",
    );
}

/// Asks for a release that has to be refused, and returns why. Nothing was written.
fn refusal(folder: &Path) -> String {
    let output = run(folder, "packaging/release.sh");
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(!folder.join("build/release").exists(), "{said}");
    said
}

#[test]
fn what_is_published_is_collected_with_its_sums() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    repository(folder);
    packages(folder, "1.2.0");
    // What lies there of another version is not published.
    packages(folder, "1.1.0");
    let output = run(folder, "packaging/release.sh");
    assert!(output.status.success(), "{output:?}");
    let sums = fs::read_to_string(folder.join("build/release/SHA256SUMS")).unwrap();
    let names: Vec<&str> = sums
        .lines()
        .filter_map(|line| line.split_whitespace().nth(1))
        .collect();
    assert_eq!(
        names,
        [
            "pspacer-1.2.0-1.x86_64.rpm",
            "pspacer-1.2.0.cdx.json",
            "pspacer-1.2.0.oci.tar",
            "pspacer-1.2.0.tar.gz",
            "pspacer_1.2.0_amd64.deb",
        ]
    );
    let check =
        "cd build/release && sha256sum --quiet -c SHA256SUMS && tar tzf pspacer-1.2.0.tar.gz";
    let output = run(folder, check);
    assert!(output.status.success(), "{output:?}");
    let files = String::from_utf8(output.stdout).unwrap();
    has(&files, ["pspacer-1.2.0/CHANGELOG.md"]);
    has_none(&files, ["build/"]);
    // The same commit gives the same bytes.
    fs::rename(
        folder.join("build/release/SHA256SUMS"),
        folder.join("build/before"),
    )
    .unwrap();
    assert!(run(folder, "packaging/release.sh").status.success());
    assert!(
        run(folder, "cmp build/before build/release/SHA256SUMS")
            .status
            .success()
    );
}

#[test]
fn what_is_no_release_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    repository(folder);
    has(refusal(folder), ["run 'make deb' first"]);
    packages(folder, "1.2.0");
    fs::remove_dir_all(folder.join("build/image")).unwrap();
    has(refusal(folder), ["run 'make image' first"]);
    packages(folder, "1.2.0");
    let old = "touch -d '2001-01-01' build/rpm/*.rpm";
    assert!(run(folder, old).status.success());
    has(
        refusal(folder),
        ["older than the commit: run 'make rpm' again"],
    );
    write(folder, "new", "text");
    has(refusal(folder), ["not committed: ?? new"]);
    fs::remove_file(folder.join("new")).unwrap();
    let newer = CHANGES.replacen("\n## ", "\n## Next\nNot released.\n\n## ", 1);
    write(folder, "CHANGELOG.md", &newer);
    commit(folder);
    has(refusal(folder), ["'Next', expected '1.2.0'"]);
    write(
        folder,
        "CHANGELOG.md",
        &CHANGES.replace("2027-01-31.", "Not released."),
    );
    commit(folder);
    has(refusal(folder), ["'Not released.', expected a date"]);
    write(
        folder,
        "Cargo.toml",
        "[workspace.package]\nversion = \"1.3.0-dev\"\n",
    );
    commit(folder);
    has(refusal(folder), ["1.3.0~dev is none of a release"]);
    assert_eq!(
        run(folder, "packaging/release.sh --now").status.code(),
        Some(2)
    );
}
