// SPDX-License-Identifier: MIT OR Apache-2.0
//! The programs of the tests, and the tests in them, as cargo and the programs say.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

/// A compiled program of tests.
pub struct Program {
    /// `CRATE::`, or `CRATE::TARGET::` if the tests' names do not begin with their files'.
    pub prefix: String,
    pub executable: PathBuf,
    /// The crate's folder, in which its tests run.
    pub folder: PathBuf,
    /// Whether its tests' names begin with the names of files in `tests`.
    pub has_files: bool,
    /// `lib`, `bin` or `test`, as cargo has it.
    pub kind: String,
}

pub struct Test {
    /// As the program knows it.
    pub name: String,
    pub is_ignored: bool,
}

#[derive(Deserialize)]
struct Message {
    reason: String,
    #[serde(default)]
    manifest_path: PathBuf,
    executable: Option<PathBuf>,
    target: Option<Target>,
    profile: Option<Profile>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
}

#[derive(Deserialize)]
struct Profile {
    test: bool,
}

/// Compiles the programs, those inside the crates alone or all, and returns them.
pub fn compile(root: &Path, inside_alone: bool) -> Result<Vec<Program>> {
    let mut cargo = Command::new("cargo");
    cargo
        .current_dir(root)
        .args(["test", "--workspace", "--locked", "--no-run"]);
    cargo.args(["--quiet", "--message-format", "json-render-diagnostics"]);
    if inside_alone {
        cargo.args(["--lib", "--bins"]);
    }
    let out = cargo.stderr(Stdio::inherit()).output().context("cargo")?;
    ensure!(out.status.success(), "the tests do not compile");
    let programs = parse(&String::from_utf8_lossy(&out.stdout));
    ensure!(!programs.is_empty(), "cargo named no program");
    Ok(programs)
}

fn parse(text: &str) -> Vec<Program> {
    let messages = text
        .lines()
        .filter_map(|line| serde_json::from_str::<Message>(line).ok());
    let mut programs: Vec<_> = messages.filter_map(program).collect();
    programs.sort_by(|a, b| {
        a.prefix
            .cmp(&b.prefix)
            .then(a.executable.cmp(&b.executable))
    });
    programs
}

fn program(message: Message) -> Option<Program> {
    let is_test = message.profile.is_some_and(|profile| profile.test);
    if message.reason != "compiler-artifact" || !is_test {
        return None;
    }
    let (executable, target) = (message.executable?, message.target?);
    let folder = message.manifest_path.parent()?.to_owned();
    let package = folder.file_name()?.to_string_lossy().into_owned();
    let is_file = target.kind.iter().any(|kind| kind == "test");
    let has_files = is_file && target.name == "it";
    let prefix = if is_file && !has_files {
        format!("{package}::{}::", target.name)
    } else {
        format!("{package}::")
    };
    Some(Program {
        prefix,
        executable,
        folder,
        has_files,
        kind: target.kind.into_iter().next().unwrap_or_default(),
    })
}

impl Program {
    pub fn tests(&self) -> Result<Vec<Test>> {
        let list = |options: &[&str]| -> Result<Vec<String>> {
            let mut command = Command::new(&self.executable);
            let out = command
                .current_dir(&self.folder)
                .args(["--list", "--format", "terse"])
                .args(options)
                .output();
            let what = || self.executable.display().to_string();
            let out = out.with_context(what)?;
            ensure!(
                out.status.success(),
                "{}: {}",
                what(),
                String::from_utf8_lossy(&out.stderr)
            );
            let text = String::from_utf8_lossy(&out.stdout);
            let names = text.lines().filter_map(|line| line.strip_suffix(": test"));
            Ok(names.map(ToOwned::to_owned).collect())
        };
        let ignored = list(&["--ignored"])?;
        let all = list(&[])?.into_iter();
        Ok(all
            .map(|name| Test {
                is_ignored: ignored.contains(&name),
                name,
            })
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_named_by_crate_and_file() {
        let line = |name: &str, kind: &str, test: bool| {
            format!(
                r#"{{"reason":"compiler-artifact","package_id":"x","manifest_path":"/w/crates/a/Cargo.toml","target":{{"kind":["{kind}"],"name":"{name}"}},"profile":{{"test":{test}}},"executable":"/t/{name}","fresh":true}}"#
            )
        };
        let text = [
            line("a", "lib", true),
            line("it", "test", true),
            line("x_lab", "test", true),
            line("a", "bin", false),
            r#"{"reason":"build-finished","success":true}"#.into(),
            "noise".into(),
        ];
        let programs = parse(&text.join("\n"));
        let found: Vec<_> = programs
            .iter()
            .map(|program| (&*program.prefix, program.has_files))
            .collect();
        assert_eq!(
            found,
            [("a::", false), ("a::", true), ("a::x_lab::", false)]
        );
        assert_eq!(programs[0].folder, Path::new("/w/crates/a"));
    }
}
