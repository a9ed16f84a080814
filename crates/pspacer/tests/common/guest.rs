// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs a script with the command in a guest of the laboratory.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use scenario::Kernel;
use testkit::guest::program;
use vmlab::{Lab, Quiet, ScriptSpec, run_script};

use super::root;

/// Limit of a guest's processor time.
const TIMEOUT: Duration = Duration::from_secs(600);

/// What a guest printed below each name, and the exit status of its command.
pub type Outputs = BTreeMap<String, (String, i32)>;

/// Returns the parts of what a script printed: after a line `=== NAME` what a command says, then
/// its exit status after `=== status`.
pub fn outputs(output: &str) -> Outputs {
    let mut said = Outputs::new();
    let mut parts = output.split("=== ").skip(1);
    while let (Some(part), Some(status)) = (parts.next(), parts.next()) {
        let (name, text) = part.split_once('\n').unwrap();
        let status = status.lines().next().unwrap();
        let status = status.trim().strip_prefix("status ").unwrap();
        said.insert(
            name.to_owned(),
            (text.trim().to_owned(), status.parse().unwrap()),
        );
    }
    said
}

/// Runs a script, and returns what it printed; it must succeed. `files` are paths in the project's
/// folder: the script, then what it needs. They are below `/GUEST`, beside the command.
pub fn output(kernel: Kernel, guest: &str, modules: &[&str], files: &[&str]) -> String {
    output_in(&Lab::find().unwrap(), kernel, guest, modules, files)
}

/// As [`output`], in this laboratory.
pub fn output_in(
    lab: &Lab,
    kernel: Kernel,
    guest: &str,
    modules: &[&str],
    files: &[&str],
) -> String {
    let folder = tempfile::tempdir().unwrap();
    let command = |script: &str| format!("sh {script}");
    run_in(
        lab,
        kernel,
        guest,
        modules,
        files,
        (folder.path(), &command),
        TIMEOUT,
    )
}

/// As [`output`], but what the script leaves in `/out` is in `folder` then, and `command` gives the
/// command for the script's path.
pub fn run(
    kernel: Kernel,
    guest: &str,
    modules: &[&str],
    files: &[&str],
    place: (&Path, &dyn Fn(&str) -> String),
) -> String {
    run_within(TIMEOUT, kernel, guest, modules, files, place)
}

/// As [`run`], with this limit of the guest's processor time.
pub fn run_within(
    timeout: Duration,
    kernel: Kernel,
    guest: &str,
    modules: &[&str],
    files: &[&str],
    place: (&Path, &dyn Fn(&str) -> String),
) -> String {
    let lab = Lab::find().unwrap();
    run_in(&lab, kernel, guest, modules, files, place, timeout)
}

fn run_in(
    lab: &Lab,
    kernel: Kernel,
    guest: &str,
    modules: &[&str],
    files: &[&str],
    (folder, command): (&Path, &dyn Fn(&str) -> String),
    timeout: Duration,
) -> String {
    let built = Path::new(env!("CARGO_BIN_EXE_pspacer"));
    let mut placed = program(built, folder, guest, "pspacer");
    let named = |file: &str| file.rsplit('/').next().unwrap_or(file).to_owned();
    for file in files {
        placed.push((root().join(file), format!("/{guest}/{}", named(file))));
    }
    let placed: Vec<_> = placed
        .iter()
        .map(|(from, to)| (from.as_path(), to.as_str()))
        .collect();
    let spec = ScriptSpec {
        kernel,
        modules,
        files: &placed,
        command: &command(&format!("/{guest}/{}", named(files[0]))),
        seed: 1,
        timeout,
        out_dir: folder,
    };
    let ran = run_script(lab, &spec, &Quiet).unwrap_or_else(|error| {
        let console = std::fs::read_to_string(folder.join("console.log"));
        panic!("{kernel}: {error}\n{}", console.unwrap_or_default())
    });
    assert_eq!(ran.status, 0, "{kernel}:\n{}", ran.output);
    ran.output
}

/// Returns how far CLOCK_TAI of a guest is ahead of its CLOCK_MONOTONIC, which the cable records by:
/// from its /proc/timer_list, which the script has copied.
pub fn tai_ahead_ns(folder: &Path) -> u64 {
    let timers = std::fs::read_to_string(folder.join("timer_list")).unwrap();
    let fields: Vec<_> = timers
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .collect();
    // The clock base of CLOCK_TAI has the index 3 (HRTIMER_BASE_TAI).
    let base = fields.iter().position(|f| f == &[".index:", "3"]).unwrap();
    let offset = fields[base..]
        .iter()
        .find(|f| f.first() == Some(&".offset:"));
    offset.unwrap()[1].parse().unwrap()
}
