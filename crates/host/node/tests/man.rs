// SPDX-License-Identifier: MIT OR Apache-2.0
//! The pages pspacer-cni(8) and pspacer-node(8): they have what the programs have, and groff finds
//! no fault in them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use cni::error;

use crate::agent::program;

fn path(name: &str) -> PathBuf {
    let docs = testkit::root().join("docs/man");
    docs.join(format!("{name}.8"))
}

/// Returns a page without what marks its words.
fn page(name: &str) -> String {
    fs::read_to_string(path(name)).unwrap().replace('\\', "")
}

#[test]
fn the_agents_page_has_each_option_and_command() {
    let page = page("pspacer-node");
    for args in [&["run", "--help"][..], &["once", "--help"], &["--help"]] {
        let help = Command::new(program()).args(args).output().unwrap();
        let help = String::from_utf8(help.stdout).unwrap();
        let mut found = 0;
        for line in help.lines() {
            let words = line.split_whitespace();
            let options = words.filter_map(|word| word.strip_prefix("--"));
            for option in options.filter(|option| !option.is_empty()) {
                let option = option.trim_end_matches(|c: char| !c.is_ascii_lowercase());
                assert!(page.contains(&format!("--{option}")), "{option}");
                found += 1;
            }
        }
        assert!(found > 0, "{help}");
    }
    for command in ["run", "once", "status"] {
        assert!(page.contains(&format!(".B {command}\n")), "{command}");
    }
}

#[test]
fn the_plugins_page_has_each_error() {
    let page = page("pspacer-cni");
    for code in [
        error::INCOMPATIBLE_VERSION,
        error::UNSUPPORTED_FIELD,
        error::INVALID_ENVIRONMENT,
        error::IO_FAILURE,
        error::DECODING_FAILURE,
        error::INVALID_CONFIGURATION,
        error::NOT_AVAILABLE,
        error::NOT_PACED,
        error::DIFFERS,
        error::OVER_BUDGET,
    ] {
        assert!(page.contains(&format!(".TP\n.B {code}\n")), "{code}");
    }
}

/// Returns what groff says of a page, `None` if there is no groff.
fn faults(path: &Path) -> Option<String> {
    let mut groff = Command::new("groff");
    groff.args(["-man", "-Tutf8", "-ww", "-z", "-rCHECKSTYLE=3"]);
    let out = groff.arg(path).output().ok()?;
    Some(String::from_utf8_lossy(&out.stderr).into_owned())
}

#[test]
fn groff_finds_no_fault() {
    let folder = tempfile::tempdir().unwrap();
    let broken = folder.path().join("broken.8");
    fs::write(&broken, ".TH A 8\n.BX word\n").unwrap();
    let Some(said) = faults(&broken) else {
        println!("no groff: skipped");
        return;
    };
    assert!(said.contains("BX"), "{said}");
    for name in ["pspacer-cni", "pspacer-node", "tc-psp"] {
        assert_eq!(faults(&path(name)).unwrap(), "", "{name}");
    }
}
