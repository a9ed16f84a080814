// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs conformance cases in the form of the kernel's tc-testing suite (tdc) without Python: a
//! case's commands become a shell script for the guest, and this module judges their output as
//! tdc.py does.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use regex::RegexBuilder;
use serde::Deserialize;

use crate::error::{At, Error};

/// Names that tdc.py replaces as `$NAME`; it leaves all others to the shell.
const NAMES: &[(&str, &str)] = &[
    ("TC", "tc"),
    ("IP", "ip"),
    ("DEV0", "v0p0"),
    ("DEV1", "v0p1"),
    ("DUMMY", "dummy1"),
    ("WIRE", "sh /tdc/wire.sh"),
    ("FLOW", "sh /tdc/flow.sh"),
];

/// One case. Its keys and their meaning are tdc's.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Case {
    /// Identifier: four hexadecimal digits, unique.
    pub id: String,
    /// Title, one line.
    pub name: String,
    /// Subjects of the case.
    pub category: Vec<String>,
    /// tdc's plugins; always nsPlugin, which gives the case a network namespace of its own.
    pub plugins: Plugins,
    /// Commands that must succeed before the command under test.
    pub setup: Vec<String>,
    /// The command under test.
    pub cmd_under_test: String,
    /// Expected exit status of the command under test.
    pub exp_exit_code: String,
    /// Command whose output is matched.
    pub verify_cmd: String,
    /// Regular expression; `.` matches newlines, `^` and `$` match at lines.
    pub match_pattern: String,
    /// Exact number of matches that is expected.
    pub match_count: String,
    /// Commands that must succeed after the command under test.
    pub teardown: Vec<String>,
}

/// The tdc plugins that a case needs.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Plugins {
    /// Name of the plugin.
    pub requires: String,
}

/// The verdict on one case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Identifier of the case.
    pub id: String,
    /// Title of the case.
    pub name: String,
    /// Differences from what the case expects; empty: passed.
    pub faults: Vec<String>,
    /// Everything that its commands printed.
    pub log: String,
}

impl Verdict {
    /// Returns a line of TAP and, after a failure, the faults and the log as comments.
    pub fn tap(&self, number: usize) -> String {
        let result = if self.faults.is_empty() {
            "ok"
        } else {
            "not ok"
        };
        let mut text = format!("{result} {number} {} - {}\n", self.id, self.name);
        if !self.faults.is_empty() {
            for line in self
                .faults
                .iter()
                .map(String::as_str)
                .chain(self.log.lines())
            {
                text += &format!("#   {line}\n");
            }
        }
        text
    }
}

/// Reads all cases of a folder's `*.json`, sorted by id.
///
/// # Errors
/// If a file cannot be read, is not in tdc's form, or an id is used twice.
pub fn load(folder: &Path) -> Result<Vec<Case>, Error> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .at("read", folder)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|e| e == "json"))
        .collect();
    files.sort();
    let mut cases = Vec::new();
    let mut ids = BTreeSet::new();
    for file in files {
        let text = fs::read_to_string(&file).at("read", &file)?;
        let fault = |detail: String| Error::Case {
            file: file.clone(),
            detail,
        };
        let found: Vec<Case> =
            serde_json::from_str(&text).map_err(|error| fault(error.to_string()))?;
        for case in found {
            check(&case).map_err(|what| fault(format!("case {}: {what}", case.id)))?;
            if !ids.insert(case.id.clone()) {
                return Err(fault(format!("case {}: the id is used twice", case.id)));
            }
            cases.push(case);
        }
    }
    Ok(cases)
}

/// Checks a case for what tdc.py would reject or misunderstand.
fn check(case: &Case) -> Result<(), String> {
    let hex = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
    if case.id.len() != 4 || !case.id.chars().all(hex) {
        return Err("id: expected four hexadecimal digits".into());
    }
    if case.plugins.requires != "nsPlugin" {
        return Err("plugins: expected nsPlugin".into());
    }
    pattern(case)?;
    number(&case.match_count).ok_or("matchCount: expected a number")?;
    number(&case.exp_exit_code).ok_or("expExitCode: expected a number")?;
    commands(case)
        .find(|command| leaves_namespace(command))
        .map_or(Ok(()), |command| {
            Err(format!(
                "{command}: tdc runs only the first command in the namespace; put it in sh -c '...'"
            ))
        })
}

fn commands(case: &Case) -> impl Iterator<Item = &str> {
    let one = [&case.cmd_under_test, &case.verify_cmd];
    case.setup
        .iter()
        .chain(one)
        .chain(&case.teardown)
        .map(String::as_str)
}

/// Returns whether a part of the command would run outside the namespace: tdc puts `ip netns exec
/// NAMESPACE` before a command, which does not reach what follows `;` or `&&`.
fn leaves_namespace(command: &str) -> bool {
    let mut quote = None;
    let mut before = ' ';
    for c in command.chars() {
        match quote {
            Some(open) if open == c => quote = None,
            Some(_) => {}
            None if c == '\'' || c == '"' => quote = Some(c),
            None if c == ';' || (c == '&' && before == '&') => return true,
            None => {}
        }
        before = c;
    }
    false
}

fn pattern(case: &Case) -> Result<regex::Regex, String> {
    RegexBuilder::new(&case.match_pattern)
        .dot_matches_new_line(true)
        .multi_line(true)
        .build()
        .map_err(|error| format!("matchPattern: {error}"))
}

fn number(text: &str) -> Option<usize> {
    text.parse().ok()
}

/// Replaces `$NAME` and `${NAME}`, as Python's Template does.
fn substitute(command: &str) -> String {
    let mut text = command.to_owned();
    // Longer names come first: $DEV1 is not $DEV followed by 1.
    let mut names: Vec<_> = NAMES.to_vec();
    names.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
    for (name, value) in names {
        text = text.replace(&format!("${{{name}}}"), value);
        text = text.replace(&format!("${name}"), value);
    }
    text
}

/// Returns the case as lines for `tests/tdc/guest.sh`.
pub(crate) fn script(case: &Case) -> String {
    let step = |stage: &str, command: &str| {
        let command = substitute(command).replace('\'', r"'\''");
        format!("step {stage} '{command}'\n")
    };
    let mut text = format!("case_id {}\n", case.id);
    for command in &case.setup {
        text += &step("setup", command);
    }
    text += &step("execute", &case.cmd_under_test);
    text += &step("verify", &case.verify_cmd);
    for command in &case.teardown {
        text += &step("teardown", command);
    }
    text
}

/// The exit of one command.
#[derive(Debug, PartialEq, Eq)]
struct Step<'a> {
    stage: &'a str,
    status: &'a str,
    printed: &'a str,
}

/// Splits the guest's output by case.
fn split(output: &str) -> BTreeMap<&str, (Vec<Step<'_>>, &str)> {
    let mut found: BTreeMap<&str, (Vec<Step<'_>>, &str)> = BTreeMap::new();
    let mut id = "";
    let mut rest = output;
    let mut begin = 0;
    while let Some(at) = rest.find("\n@@ ") {
        let (printed, after) = rest.split_at(at);
        let after = &after["\n@@ ".len()..];
        let (mark, after) = after.split_once('\n').unwrap_or((after, ""));
        let (stage, value) = mark.split_once(' ').unwrap_or((mark, ""));
        let end = output.len() - after.len();
        if stage == "case" {
            id = value;
            begin = end;
        }
        let (steps, log) = found.entry(id).or_default();
        steps.push(Step {
            stage,
            status: value,
            printed,
        });
        *log = &output[begin..end];
        rest = after;
    }
    found
}

/// Judges all cases by the guest's output.
pub(crate) fn judge(cases: &[Case], output: &str) -> Vec<Verdict> {
    let found = split(output);
    cases
        .iter()
        .map(|case| {
            let (steps, log) = found
                .get(case.id.as_str())
                .map_or((&[][..], ""), |(steps, log)| (&steps[..], *log));
            Verdict {
                id: case.id.clone(),
                name: case.name.clone(),
                faults: faults(case, steps),
                log: log.to_owned(),
            }
        })
        .collect()
}

fn faults(case: &Case, steps: &[Step<'_>]) -> Vec<String> {
    let mut faults = Vec::new();
    for (stage, commands) in [("setup", &case.setup), ("teardown", &case.teardown)] {
        let ran = steps.iter().filter(|step| step.stage == stage);
        if ran.clone().count() != commands.len() {
            faults.push(format!("{stage}: not all of it ran"));
        }
        for (step, command) in ran.zip(commands) {
            if step.status != "0" {
                faults.push(format!("{stage}: {command}: exit status {}", step.status));
            }
        }
    }
    let one = |stage: &str| steps.iter().find(|step| step.stage == stage);
    match one("execute") {
        Some(step) if step.status == case.exp_exit_code => {}
        Some(step) => faults.push(format!(
            "{}: exit status {}, expected {}",
            case.cmd_under_test, step.status, case.exp_exit_code
        )),
        None => faults.push("it did not run".into()),
    }
    if let (Some(step), Ok(pattern)) = (one("verify"), pattern(case)) {
        let count = pattern.find_iter(step.printed).count();
        if Some(count) != number(&case.match_count) {
            faults.push(format!(
                "{}: {count} matches of {:?}, expected {}",
                case.verify_cmd, case.match_pattern, case.match_count
            ));
        }
    }
    faults
}

/// Returns the references to the module after all cases, as the guest counted them.
pub(crate) fn references(output: &str) -> Option<u32> {
    let (_, after) = output.rsplit_once("\n@@ references ")?;
    after.lines().next()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case() -> Case {
        let text = r#"{
            "id": "0a1b", "name": "n", "category": ["qdisc"],
            "plugins": {"requires": "nsPlugin"},
            "setup": ["$TC one || true"], "cmdUnderTest": "${TC} add dev $DEV1",
            "expExitCode": "2", "verifyCmd": "$TC 'show' $other",
            "matchPattern": "^a.*z$", "matchCount": "1", "teardown": []}"#;
        serde_json::from_str(text).unwrap()
    }

    const PASSED: &str = "\n@@ case 0a1b\n\n@@ setup 0\nError: no.\n\n@@ execute 2\n\
                          b\na\nz\n\n@@ verify 0\n\n@@ references 0\n";

    #[test]
    fn commands_for_the_guest() {
        assert_eq!(
            script(&case()),
            "case_id 0a1b\nstep setup 'tc one || true'\nstep execute 'tc add dev v0p1'\n\
             step verify 'tc '\\''show'\\'' $other'\n"
        );
    }

    #[test]
    fn cases_are_judged_as_tdc_does() {
        let judged = |output: &str| judge(&[case()], output).remove(0).faults;
        assert_eq!(judged(PASSED), Vec::<String>::new());
        assert_eq!(references(PASSED), Some(0));
        let failed = [
            ("setup 0", "setup 1", "setup: "),
            ("execute 2", "execute 0", "exit status 0, expected 2"),
            ("a\nz\n", "a\nz\na\nz\n\na\nz\n", "1 matches"),
            ("\n@@ setup 0", "", "not all of it ran"),
        ];
        for (from, to, expected) in failed {
            let output = PASSED.replace(from, to);
            let faults = judged(&output);
            if expected == "1 matches" {
                // A pattern that is greedy over lines counts as one match, as in Python.
                assert_eq!(faults, Vec::<String>::new());
                continue;
            }
            assert!(
                faults.len() == 1 && faults[0].contains(expected),
                "{expected}: {faults:?}"
            );
        }
        assert!(judged("").iter().any(|fault| fault == "it did not run"));
        let text = judge(&[case()], "").remove(0).tap(7);
        assert!(text.starts_with("not ok 7 0a1b - n\n#   "), "{text}");
    }

    #[test]
    fn cases_that_tdc_cannot_run_are_rejected() {
        type Change = fn(&mut Case);
        let changes: [(Change, &str); 6] = [
            (|case| case.id = "XYZ1".into(), "id"),
            (|case| case.id = "12345".into(), "id"),
            (
                |case| case.plugins.requires = "scapyPlugin".into(),
                "plugins",
            ),
            (|case| case.match_pattern = "(".into(), "matchPattern"),
            (|case| case.match_count = "one".into(), "matchCount"),
            (
                |case| case.setup.push("$TC a; $TC b".into()),
                "first command",
            ),
        ];
        for (change, expected) in changes {
            let mut case = case();
            change(&mut case);
            let error = check(&case).unwrap_err();
            assert!(error.contains(expected), "{expected}: {error}");
        }
        assert_eq!(check(&case()), Ok(()));
        assert!(!leaves_namespace("sh -c 'a; b && c' || true"));
        assert!(leaves_namespace("a && b"));
    }
}
