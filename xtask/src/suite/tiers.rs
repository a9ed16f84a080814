// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which tests run when: the rules of `tests/tiers.toml`. Pure.

use anyhow::{Context, Result};
use clap::ValueEnum;
use serde::Deserialize;

/// A set of tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Tier {
    /// The tests inside the crates
    Check,
    /// What a change must pass: each test, on one kernel where it exists for several
    Test,
    /// Each test on each kernel, all parts of it; of the guests that the store has one of sixteen runs again
    All,
}

/// Names of kernels in the names of tests, in the order in which tests move on.
const KERNELS: [&str; 3] = ["6_1", "6_12", "7"];

/// The file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tiers {
    every_kernel: Vec<String>,
    only_all: Vec<String>,
    long: Vec<String>,
}

impl Tiers {
    /// Reads the text of the file.
    pub fn parse(text: &str) -> Result<Self> {
        toml::from_str(text).context("tests/tiers.toml")
    }

    /// Returns every rule that names none of these tests.
    pub fn idle<'a>(&'a self, names: &[&str]) -> Vec<&'a str> {
        let rules = self.every_kernel.iter().chain(&self.only_all);
        rules
            .chain(&self.long)
            .map(String::as_str)
            .filter(|rule| !names.iter().any(|name| name.starts_with(rule)))
            .collect()
    }

    /// Returns whether a tier runs a test that boots a guest; `round` is of the committed tree.
    pub fn runs(&self, tier: Tier, name: &str, round: u32) -> bool {
        let is_in = |rules: &[String]| rules.iter().any(|rule| name.starts_with(rule.as_str()));
        match tier {
            Tier::Check => false,
            Tier::All => true,
            Tier::Test if is_in(&self.only_all) => false,
            Tier::Test => match family(name) {
                Some((family, kernel)) if !is_in(&self.every_kernel) => {
                    kernel == kernel_of(&family, round)
                }
                _ => true,
            },
        }
    }

    /// Returns the place in the order in which tests begin.
    pub fn rank(&self, name: &str) -> usize {
        let place = self.long.iter().position(|rule| name.starts_with(rule));
        place.unwrap_or(self.long.len())
    }
}

/// Returns on which kernel a family of tests runs in this round.
fn kernel_of(family: &str, round: u32) -> usize {
    // A sum of bytes is the same on every machine and in every version of Rust.
    let own: usize = family.bytes().map(usize::from).sum();
    (own + round as usize) % KERNELS.len()
}

/// Returns the name without the kernel, and the kernel's number; `None` if a name has none.
pub fn family(name: &str) -> Option<(String, usize)> {
    let mut parts: Vec<&str> = name.split("::").collect();
    for part in &mut parts {
        for (number, kernel) in KERNELS.iter().enumerate() {
            let rest = match part.strip_prefix('v') {
                Some(version) if version == *kernel => Some(""),
                _ => part
                    .strip_suffix(kernel)
                    .and_then(|rest| rest.strip_suffix("_on_")),
            };
            if let Some(rest) = rest {
                *part = rest;
                return Some((parts.join("::"), number));
            }
        }
    }
    None
}

/// Returns whether a test boots a guest, by the name of its file.
pub fn boots(name: &str) -> bool {
    let mut parts = name.split("::").skip(1);
    parts.any(|part| part.starts_with("lab_") || part.ends_with("_lab"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
every_kernel = ["a::x_lab::light::"]
only_all = ["a::m_lab::"]
long = ["a::t_lab::", "a::x_lab::", "a::gone_lab::"]
"#;

    fn tiers() -> Tiers {
        Tiers::parse(TEXT).unwrap_or_else(|error| panic!("{error:#}"))
    }

    #[test]
    fn kernels_are_found_in_names() {
        let some = |family: &str, kernel| Some((family.to_owned(), kernel));
        for (name, expected) in [
            ("a::x_lab::b::v6_1", some("a::x_lab::b::", 0)),
            ("a::x_lab::b::v6_12", some("a::x_lab::b::", 1)),
            ("a::x_lab::v7::b", some("a::x_lab::::b", 2)),
            ("a::x_lab::b_on_6_1", some("a::x_lab::b", 0)),
            ("a::x_lab::b_on_6_12", some("a::x_lab::b", 1)),
            ("a::x_lab::b_on_7", some("a::x_lab::b", 2)),
            ("a::x_lab::b_of_7", None),
            ("a::x_lab::v6_13", None),
            ("a::x_lab::b_on_16_1", None),
        ] {
            assert_eq!(family(name), expected, "{name}");
        }
    }

    #[test]
    fn files_of_guests_are_known() {
        assert!(boots("vmlab::lab_run::a") && boots("host-apply::edt_bpf_lab::b"));
        assert!(!boots("lab_run::a::b") && !boots("a::labels::b") && !boots("a::slab::b"));
    }

    #[test]
    fn each_kernel_has_its_round() {
        let tiers = tiers();
        let names =
            |test: &str| ["6_1", "6_12", "7"].map(|kernel| format!("a::y_lab::{test}_on_{kernel}"));
        for test in ["b", "c", "another"] {
            let names = names(test);
            let chosen: Vec<usize> = (0..3)
                .map(|round| {
                    let run = |name: &String| tiers.runs(Tier::Test, name, round);
                    assert_eq!(names.iter().filter(|name| run(name)).count(), 1);
                    names.iter().position(run).unwrap_or(9)
                })
                .collect();
            let mut sorted = chosen.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, [0, 1, 2]);
            assert!(names.iter().all(|name| tiers.runs(Tier::All, name, 0)));
            assert!(!names.iter().any(|name| tiers.runs(Tier::Check, name, 0)));
        }
    }

    #[test]
    fn the_rest_always_runs() {
        let tiers = tiers();
        for round in 0..3 {
            for name in [
                "a::x_lab::light::v6_1",
                "a::x_lab::light::v7",
                "a::x_lab::single",
            ] {
                assert!(tiers.runs(Tier::Test, name, round));
            }
        }
        assert!(!tiers.runs(Tier::Test, "a::m_lab::b", 0));
        assert!(tiers.runs(Tier::All, "a::m_lab::b", 0));
        let names = ["a::t_lab::all_on_7", "a::x_lab::light::v7", "a::m_lab::b"];
        assert_eq!(tiers.idle(&names), ["a::gone_lab::"]);
    }
}
