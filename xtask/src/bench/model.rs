// SPDX-License-Identifier: MIT OR Apache-2.0
//! The JSON of `bench/structures` and `bench/dpdk`, and what is read out of it.

use serde::Deserialize;

/// What `structures --json` writes.
#[derive(Clone, Debug, Deserialize)]
pub struct Structures {
    pub(crate) machine: Machine,
    pub(crate) huge_pages: bool,
    pub(crate) quick: bool,
    /// From how many classes on the core uses its wheel.
    pub(crate) wheel_from: u32,
    pub(crate) contests: Vec<Contest>,
    pub(crate) latency: Vec<LatencyAt>,
}

/// What `dpdk --json` writes.
#[derive(Clone, Debug, Deserialize)]
pub struct Dpdk {
    /// Its version, as it names itself.
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
    /// Of the stamps around single operations: cost, and smallest step.
    pub stamp_ns: f64,
    pub stamp_step_ns: f64,
}

/// Structures at the same work.
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
    /// Fastest rate, of the slowest.
    pub spread: f64,
    /// Shaped: what a packet takes at the rate that is asked for.
    pub asked_ns: Option<f64>,
    pub rivals: Vec<Rival>,
}

/// One of those compared.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Rival {
    pub name: String,
    pub title: String,
    pub bytes_per_class: f64,
    /// Per packet, by round; rounds of all rivals alternate.
    pub ns: Vec<f64>,
}

/// Single operations at one number of classes.
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
    /// Of one run alone, whatever the machine did meanwhile.
    pub once_p9999_ns: f64,
    pub once_max_ns: f64,
}

/// Median and quartiles of some rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    pub low: f64,
    pub median: f64,
    pub high: f64,
}

impl Spread {
    /// `None` of nothing.
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

/// `rival / of`, round by round: what slowed the machine down in one round is
/// in both, and falls out.
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

    /// Contests of a case, by number of classes.
    pub(crate) fn of_case(&self, case: &str) -> Vec<&Contest> {
        let mut found: Vec<_> = self.contests.iter().filter(|c| c.case == case).collect();
        found.sort_by_key(|c| c.classes);
        found
    }

    /// Which structure the core itself takes for so many classes.
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
