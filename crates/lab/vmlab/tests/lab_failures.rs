// SPDX-License-Identifier: MIT OR Apache-2.0
//! A guest that fails is reported by one sentence, with the console's path.

use std::path::Path;
use std::time::Duration;

use scenario::Kernel;
use vmlab::{Answers, Cache, Error, Failure, Lab, Quiet, ScriptSpec, Sources};

use crate::common::{LONG, run, scenario};

fn failure(error: Error) -> Failure {
    let text = error.to_string();
    match error {
        Error::Guest { failure, console } => {
            assert!(text.contains(&console.display().to_string()), "{text}");
            assert!(console.is_file(), "{text}");
            failure
        }
        other => panic!("{other}"),
    }
}

fn script(command: &str, timeout: Duration, out_dir: &Path) -> Result<vmlab::ScriptOutput, Error> {
    let spec = ScriptSpec {
        kernel: Kernel::V6_1,
        modules: &[],
        files: &[],
        command,
        seed: 1,
        timeout,
        out_dir,
    };
    vmlab::run_script(&Lab::find()?, &spec, &Quiet)
}

#[test]
fn a_failed_tc_line_is_quoted_with_its_output() {
    let folder = tempfile::tempdir().unwrap();
    let scenario =
        scenario("[[tc]]\nhost = \"tx\"\nlines = [\"qdisc add dev eth0 root tbf rate 1mbit\"]\n");
    let error = run(&scenario, folder.path(), LONG).unwrap_err();
    match failure(error) {
        Failure::Step(text) => {
            assert!(
                text.contains("tc -n tx qdisc add dev eth0 root tbf rate 1mbit"),
                "{text}"
            );
            assert!(
                text.contains("the \"burst\" parameter is mandatory"),
                "{text}"
            );
        }
        other => panic!("{other}"),
    }
}

/// The cable has no TSO, and its driver fixes nothing: ethtool itself says so.
#[test]
fn a_feature_that_a_device_does_not_have_fails_with_what_ethtool_says() {
    let folder = tempfile::tempdir().unwrap();
    let more = "[[host]]\nname = \"other\"\noffloads = \"gro off tso on\"\n\
                [[cable]]\nname = \"side\"\nends = [\"other:eth0\", \"tx:eth1\"]\nrate = \"1gbit\"\n";
    match failure(run(&scenario(more), folder.path(), LONG).unwrap_err()) {
        Failure::Step(text) => {
            assert!(text.contains("ethtool"), "{text}");
            assert!(text.contains("tcp-segmentation-offload: off"), "{text}");
        }
        other => panic!("{other}"),
    }
}

/// Nothing is booted.
#[test]
fn a_program_that_the_guest_does_not_have_is_named_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let more = "[[program]]\nhost = \"tx\"\nrun = \"iperf9 -s\"\n";
    let error = run(&scenario(more), folder.path(), LONG).unwrap_err();
    assert_eq!(
        error.to_string(),
        "test.toml:17: `run` names \"iperf9\", expected `pspacer` or a program of the guest, such \
         as `sleep`, `tc` or `psp-send`"
    );
    assert!(!folder.path().join("boot-0").exists());
}

#[test]
fn a_program_that_fails_is_named_with_what_it_said() {
    let folder = tempfile::tempdir().unwrap();
    let more = "[[program]]\nhost = \"tx\"\nrun = \"ls /nowhere\"\nstop = \"15ms\"\n";
    match failure(run(&scenario(more), folder.path(), LONG).unwrap_err()) {
        Failure::Step(text) => assert!(text.contains("/nowhere"), "{text}"),
        other => panic!("{other}"),
    }
}

#[test]
fn a_panic_differs_from_other_ends() {
    let folder = tempfile::tempdir().unwrap();
    let command = "echo 1 > /proc/sys/kernel/sysrq; echo c > /proc/sysrq-trigger";
    match failure(script(command, LONG, folder.path()).unwrap_err()) {
        Failure::Panic(line) => assert!(line.contains("sysrq triggered crash"), "{line}"),
        other => panic!("{other}"),
    }
}

#[test]
fn a_guest_that_does_not_end_is_ended() {
    let folder = tempfile::tempdir().unwrap();
    let timeout = Duration::from_secs(2);
    let error = script("while :; do :; done", timeout, folder.path()).unwrap_err();
    assert_eq!(failure(error), Failure::Timeout(2));
}

#[test]
fn a_script_gives_its_output_and_exit_status() {
    let folder = tempfile::tempdir().unwrap();
    let output = script("echo out; echo err >&2; exit 3", LONG, folder.path()).unwrap();
    assert_eq!((output.status, output.output.as_str()), (3, "out\nerr\n"));
}

#[test]
fn without_an_archive_and_with_an_empty_cache_there_is_one_clear_error() {
    let folder = tempfile::tempdir().unwrap();
    let lab = Lab {
        cache: Cache::at(folder.path().join("cache")),
        sources: Sources::find().unwrap(),
        refresh: false,
        debug_kernel: false,
        nics: Vec::new(),
        cpus: 1,
        profile: false,
        signatures: false,
        answers: Answers::Stored,
        command: None,
    };
    // apt reads this list instead of the machine's. Its only source exists, but has a name that
    // no archive has.
    let sources = folder.path().join("sources.list");
    std::fs::write(&sources, "deb file:/nonexistent/debian bookworm main\n").unwrap();
    let config = folder.path().join("apt.conf");
    let text = format!(
        "Dir::Etc::sourcelist \"{}\";\nDir::Etc::sourceparts \"-\";\n",
        sources.display()
    );
    std::fs::write(&config, text).unwrap();
    let program = std::env::current_exe().unwrap();
    let output = std::process::Command::new(program)
        .args([
            "--exact",
            "lab_failures::prepares_in_a_given_cache",
            "--ignored",
            "--nocapture",
        ])
        .env("APT_CONFIG", &config)
        .env("PSPACER_CACHE", lab.cache.path())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        text.contains("the packages for qemu are not in the cache"),
        "{text}"
    );
    assert!(text.contains("/nonexistent/debian"), "{text}");
}

/// The test above runs this one in a process with an environment of its own.
#[test]
#[ignore = "run by another test"]
fn prepares_in_a_given_cache() {
    match Lab::find().unwrap().prepare(Kernel::V6_1, &Quiet) {
        Ok(release) => println!("prepared {release}"),
        Err(error) => println!("{error}"),
    }
}
