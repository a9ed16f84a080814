// SPDX-License-Identifier: MIT OR Apache-2.0
//! The configuration of every property test: each run uses the same cases.

use std::env;
use std::hash::{BuildHasher, RandomState};
use std::sync::OnceLock;

use proptest::test_runner::{Config, FileFailurePersistence, RngSeed};

/// Variable that sets another seed: a number, or `random`.
const VARIABLE: &str = "PSPACER_SEED";
/// Seed of a run whose environment sets none. The value has no meaning.
const SEED: u64 = 20_060_601;
/// Number of cases of a test that sets none.
const CASES: u32 = 256;
/// Extension of the files of seeds whose cases failed: `tests/x.proptest-regressions` belongs
/// to `tests/x.rs`, and likewise in `src`.
const EXTENSION: &str = "proptest-regressions";

/// The seed that the environment sets.
#[derive(Debug, PartialEq, Eq)]
enum Asked {
    Seed(u64),
    Random,
}

/// Returns the configuration of a property test of 256 cases.
pub fn properties() -> Config {
    cases(CASES)
}

/// Returns the configuration of a property test of `cases` cases.
///
/// The seed is fixed, unless `PSPACER_SEED` or proptest's own `PROPTEST_RNG_SEED` sets another
/// one. It is printed; the harness shows the output of a test that fails. Proptest's other
/// variables work as usual.
///
/// # Panics
/// If `PSPACER_SEED` is neither a number nor `random`.
pub fn cases(cases: u32) -> Config {
    // Proptest has read its variables here, and reads them once more in `proptest!`; the
    // second reading wins.
    let config = Config::default();
    let seed = match config.rng_seed {
        RngSeed::Fixed(seed) => seed,
        RngSeed::Random => seed_of_run(),
    };
    println!("{VARIABLE}={seed} repeats the cases of this property test");
    Config {
        cases,
        rng_seed: RngSeed::Fixed(seed),
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource(EXTENSION))),
        ..config
    }
}

/// Returns the seed of this run: one for all tests of a program, so that one number repeats
/// them all.
fn seed_of_run() -> u64 {
    static RUN: OnceLock<u64> = OnceLock::new();
    let asked = env::var_os(VARIABLE).map(|value| value.to_string_lossy().into_owned());
    #[allow(clippy::panic)] // A test's set-up has nobody else to tell.
    let asked = parse(asked.as_deref()).unwrap_or_else(|error| panic!("{error}"));
    *RUN.get_or_init(|| match asked {
        Asked::Seed(seed) => seed,
        // The standard library has no other source of randomness.
        Asked::Random => RandomState::new().hash_one(VARIABLE),
    })
}

fn parse(value: Option<&str>) -> Result<Asked, String> {
    match value {
        None => Ok(Asked::Seed(SEED)),
        Some("random") => Ok(Asked::Random),
        Some(value) => value.parse().map(Asked::Seed).map_err(|_| {
            format!(
                "environment variable {VARIABLE}: \"{value}\": \
                 expected a number from 0 to {}, or random",
                u64::MAX
            )
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_is_a_number_or_random() {
        assert_eq!(parse(None), Ok(Asked::Seed(SEED)));
        assert_eq!(parse(Some("7")), Ok(Asked::Seed(7)));
        assert_eq!(parse(Some("random")), Ok(Asked::Random));
        for bad in ["", "-1", "Random", "1.5", "18446744073709551616"] {
            let expected = format!(
                "environment variable PSPACER_SEED: \"{bad}\": \
                 expected a number from 0 to 18446744073709551615, or random"
            );
            assert_eq!(parse(Some(bad)), Err(expected));
        }
    }
}
