// SPDX-License-Identifier: MIT OR Apache-2.0
//! The seeds of property tests. Each test runs this program again, in a known environment.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::cell::RefCell;
use std::path::Path;
use std::process::Command;

use proptest::prelude::*;
use proptest::test_runner::TestRunner;

/// What a run of `shows_its_cases` prints.
struct Run {
    passed: bool,
    text: String,
}

impl Run {
    fn new(environment: &[(&str, &str)]) -> Self {
        Self::of("shows_its_cases", environment)
    }

    fn of(test: &str, environment: &[(&str, &str)]) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        // The environment of this program may itself set a seed.
        for (name, _) in std::env::vars_os() {
            let name = name.to_string_lossy().into_owned();
            if name == "PSPACER_SEED" || name.starts_with("PROPTEST_") {
                command.env_remove(name);
            }
        }
        let run = command
            .args(["--exact", "--ignored", test])
            .envs(environment.iter().copied())
            .output()
            .unwrap();
        Self {
            passed: run.status.success(),
            text: String::from_utf8(run.stdout).unwrap(),
        }
    }

    fn seed(&self) -> u64 {
        let line = "PSPACER_SEED=";
        let at = self
            .text
            .find(line)
            .unwrap_or_else(|| panic!("{}", self.text));
        let number = self.text[at + line.len()..].split(' ').next().unwrap();
        number.parse().unwrap()
    }

    fn cases(&self) -> Vec<&str> {
        let lines = self.text.lines();
        lines
            .filter_map(|line| line.strip_prefix("case "))
            .collect()
    }
}

proptest! {
    #![proptest_config(testkit::cases(20))]

    /// Prints its cases and fails at the last one, because the harness shows output only of a
    /// test that fails.
    #[test]
    #[ignore = "fails on purpose: the other tests run it"]
    fn shows_its_cases(value: u64) {
        thread_local!(static SEEN: RefCell<u32> = const { RefCell::new(0) });
        println!("case {value}");
        let seen = SEEN.with_borrow_mut(|seen| { *seen += 1; *seen });
        prop_assert!(seen != 5);
    }
}

/// Without shrinking, which would run more cases, and without files of failures.
const PLAIN: [(&str, &str); 2] = [
    ("PROPTEST_MAX_SHRINK_ITERS", "0"),
    ("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "1"),
];

fn run(more: &[(&str, &str)]) -> Run {
    Run::new(&[&PLAIN, more].concat())
}

#[test]
fn every_run_has_the_same_cases() {
    let [one, other] = [run(&[]), run(&[])];
    assert_eq!(one.cases().len(), 5, "{}", one.text);
    assert_eq!(one.cases(), other.cases());
    assert_eq!(one.seed(), 20_060_601);
}

#[test]
fn a_seed_that_is_asked_for_is_used_and_printed() {
    let seven = run(&[("PSPACER_SEED", "7")]);
    assert_eq!(seven.seed(), 7);
    assert_ne!(seven.cases(), run(&[]).cases());
}

#[test]
fn the_seed_of_a_random_run_repeats_it() {
    let random = run(&[("PSPACER_SEED", "random")]);
    let again = run(&[("PSPACER_SEED", &random.seed().to_string())]);
    assert_eq!(random.cases(), again.cases());
    assert_ne!(random.cases(), run(&[]).cases());
}

#[test]
fn a_seed_that_is_none_is_refused() {
    let run = run(&[("PSPACER_SEED", "often")]);
    assert!(!run.passed);
    assert!(
        run.text.contains("\"often\": expected a number"),
        "{}",
        run.text
    );
}

/// Proptest's own variables have priority over ours.
#[test]
fn proptests_own_variables_have_priority() {
    let other = run(&[("PROPTEST_RNG_SEED", "7"), ("PSPACER_SEED", "9")]);
    assert_eq!(other.seed(), 7);
    assert_eq!(other.cases(), run(&[("PSPACER_SEED", "7")]).cases());
    let few = run(&[("PROPTEST_CASES", "4")]);
    assert!(few.passed, "{}", few.text);
}

/// A case that failed is stored beside its test. From then on every run tries it first, with
/// any seed.
#[test]
fn a_case_that_failed_is_tried_first() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("some_test.rs");
    std::fs::write(&source, "").unwrap();
    // The configuration borrows the path for as long as the program runs.
    let source: &'static str = Box::leak(source.to_str().unwrap().into());
    let values = |seed: u64, fails: &dyn Fn(usize) -> bool| {
        let mut config = testkit::properties();
        config.source_file = Some(source);
        config.rng_seed = proptest::test_runner::RngSeed::Fixed(seed);
        config.max_shrink_iters = 0;
        let seen = RefCell::new(Vec::new());
        let _ = TestRunner::new(config).run(&any::<u64>(), |value| {
            seen.borrow_mut().push(value);
            prop_assert!(!fails(seen.borrow().len()));
            Ok(())
        });
        seen.into_inner()
    };
    let failed = values(1, &|count| count == 3);
    assert_eq!(failed.len(), 3);
    assert!(
        Path::new(source)
            .with_extension("proptest-regressions")
            .is_file()
    );
    let later = values(2, &|_| false);
    assert_eq!((later.len(), later[0]), (257, failed[2]));
}
