// SPDX-License-Identifier: MIT OR Apache-2.0
//! The JSON of `bench/structures` and `bench/dpdk`, and figures computed from it.

use serde::Deserialize;

/// The output of `structures --json`.
#[derive(Clone, Debug, Deserialize)]
pub struct Structures {
    pub(crate) machine: Machine,
    pub(crate) huge_pages: bool,
    pub(crate) quick: bool,
    /// Smallest number of classes for which the core uses its wheel.
    pub(crate) wheel_from: u32,
    pub(crate) contests: Vec<Contest>,
    pub(crate) latency: Vec<LatencyAt>,
}

/// The output of `dpdk --json`.
#[derive(Clone, Debug, Deserialize)]
pub struct Dpdk {
    /// DPDK's version, as DPDK prints it.
    pub(crate) dpdk: String,
    pub(crate) machine: Machine,
    pub(crate) quick: bool,
    pub(crate) contests: Vec<DpdkContest>,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Machine {
    pub cpu: String,
    pub cpus: u32,
    pub caches: Vec<String>,
    pub memory_bytes: u64,
    pub kernel: String,
    pub architecture: String,
    #[serde(rename = "virtual")]
    pub is_virtual: bool,
    pub compiler: String,
    pub flags: String,
    pub pinned_to_cpu: Option<u32>,
    /// Cost of the timestamps around single operations; below, their smallest step.
    #[serde(rename = "stamp_ns")]
    pub timestamp_ns: f64,
    #[serde(rename = "stamp_step_ns")]
    pub timestamp_step_ns: f64,
}

/// Structures that do the same work.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Contest {
    pub case: String,
    pub title: String,
    pub classes: u32,
    pub load: f64,
    pub decisions: u64,
    pub rivals: Vec<Rival>,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct DpdkContest {
    pub shaped: bool,
    pub classes: u32,
    /// Ratio of the fastest rate to the slowest.
    pub spread: f64,
    /// Time per packet at the requested rate, if rates are shaped.
    pub asked_ns: Option<f64>,
    pub rivals: Vec<Rival>,
}

/// A structure or scheduler in a contest.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Rival {
    pub name: String,
    pub title: String,
    pub bytes_per_class: f64,
    /// Time per packet, by round; the rounds of all rivals alternate.
    pub ns: Vec<f64>,
}

/// Latencies of single operations at one number of classes.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct LatencyAt {
    pub classes: u32,
    pub operations: u64,
    pub rivals: Vec<Latency>,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Latency {
    pub name: String,
    pub title: String,
    pub mean_ns: f64,
    pub p50_ns: f64,
    pub p99_ns: f64,
    pub p9999_ns: f64,
    pub max_ns: f64,
    /// Percentile of a single run, including disturbances by the machine.
    pub once_p9999_ns: f64,
    pub once_max_ns: f64,
}

/// Median and quartiles of the rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    pub low: f64,
    pub median: f64,
    pub high: f64,
}

impl Spread {
    /// Computes them; `None` if there are no values.
    pub fn of(values: &[f64]) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        Some(Self {
            low: quantile(&sorted, 0.25)?,
            median: quantile(&sorted, 0.5)?,
            high: quantile(&sorted, 0.75)?,
        })
    }
}

fn quantile(sorted: &[f64], share: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let at = share * last as f64;
    let below = at.floor() as usize;
    let (low, high) = (sorted[below], sorted[(below + 1).min(last)]);
    Some(low + (at - at.floor()) * (high - low))
}

/// Returns the ratio `rival / of` of each round: what slowed the machine down in one round affects
/// both, and cancels out.
pub(crate) fn ratio(rival: &Rival, of: &Rival) -> Option<Spread> {
    let ratios: Vec<f64> = rival.ns.iter().zip(&of.ns).map(|(a, b)| a / b).collect();
    Spread::of(&ratios)
}

pub(crate) fn named<'a>(rivals: &'a [Rival], name: &str) -> Option<&'a Rival> {
    rivals.iter().find(|r| r.name == name)
}

impl Structures {
    pub(crate) fn contest(&self, case: &str, classes: u32) -> Option<&Contest> {
        self.contests
            .iter()
            .find(|c| c.case == case && c.classes == classes)
    }

    /// Returns the contests of a case, by number of classes.
    pub(crate) fn of_case(&self, case: &str) -> Vec<&Contest> {
        let mut found: Vec<_> = self.contests.iter().filter(|c| c.case == case).collect();
        found.sort_by_key(|c| c.classes);
        found
    }

    /// Returns the structure that the core itself chooses for that many classes.
    pub(crate) fn cores_choice(&self, classes: u32) -> &'static str {
        if classes < self.wheel_from {
            "4ary_heap"
        } else {
            "wheel"
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn quartiles_lie_between_values() {
        let spread = Spread::of(&[5.0, 1.0, 2.0, 4.0]).unwrap();
        assert_eq!((spread.low, spread.median, spread.high), (1.75, 3.0, 4.25));
        assert_eq!(Spread::of(&[]), None);
        assert_eq!(Spread::of(&[7.0]).unwrap().high, 7.0);
    }

    #[test]
    fn a_ratio_is_of_rounds_not_of_medians() {
        let rival = |ns: &[f64]| Rival {
            name: String::new(),
            title: String::new(),
            bytes_per_class: 0.0,
            ns: ns.to_vec(),
        };
        // every round the double, whatever else happens
        let (a, b) = (rival(&[2.0, 20.0, 6.0]), rival(&[1.0, 10.0, 3.0]));
        let spread = ratio(&a, &b).unwrap();
        assert_eq!((spread.low, spread.median, spread.high), (2.0, 2.0, 2.0));
    }
}
