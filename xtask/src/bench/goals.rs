// SPDX-License-Identifier: MIT OR Apache-2.0
//! The goals of the benchmarks, and the measured results.

use crate::bench::model::{Contest, Dpdk, Rival, Spread, Structures, named, ratio};

/// The bound that a figure should keep.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Aim {
    AtMost(f64),
    AtLeast(f64),
}

impl Aim {
    fn holds(self, value: f64) -> bool {
        match self {
            Self::AtMost(goal) => value <= goal,
            Self::AtLeast(goal) => value >= goal,
        }
    }
}

/// A goal, with its result.
#[derive(Clone, Debug)]
pub(crate) struct Goal {
    pub what: String,
    pub aim: Aim,
    /// The result; `None`: not measured in this run.
    pub measured: Option<Spread>,
}

impl Goal {
    /// Returns whether the goal was met; `None` if it was not measured.
    pub fn met(&self) -> Option<bool> {
        self.measured.map(|m| self.aim.holds(m.median))
    }
}

const HEAPS: [&str; 3] = ["binary_heap", "quad_heap", "4ary_heap"];
const MILLION: u32 = 1_000_000;

/// Returns all goals for what these programs measure.
pub(crate) fn goals(s: &Structures, dpdk: Option<&Dpdk>) -> Vec<Goal> {
    let mut goals = vec![
        Goal {
            what: "1M classes: the core's structure, of touching one random class".to_owned(),
            aim: Aim::AtMost(0.8),
            measured: against(s, "standard", MILLION, |c, ours| {
                ratio(ours, named(&c.rivals, "touch")?)
            }),
        },
        Goal {
            what: "1M classes, of 100 classes".to_owned(),
            aim: Aim::AtMost(2.0),
            measured: growth(s, 100, MILLION),
        },
    ];
    for (classes, factor) in [(1000, 4.0), (100_000, 10.0), (MILLION, 40.0)] {
        goals.push(Goal {
            what: format!(
                "{} classes: faster than the red-black tree, times",
                units::display::count(classes.into())
            ),
            aim: Aim::AtLeast(factor),
            measured: against(s, "standard", classes, |c, ours| {
                ratio(named(&c.rivals, "red_black")?, ours)
            }),
        });
    }
    for (classes, factor) in [(100_000, 2.0), (MILLION, 6.0)] {
        goals.push(Goal {
            what: format!(
                "{} classes: faster than the best heap, times",
                units::display::count(classes.into())
            ),
            aim: Aim::AtLeast(factor),
            measured: against(s, "standard", classes, |c, ours| ratio(best_heap(c)?, ours)),
        });
    }
    for classes in [131_072, 1_048_576] {
        goals.push(Goal {
            what: format!(
                "{} classes, mbufs, unshaped: faster than rte_sched, times",
                units::display::count(classes.into())
            ),
            aim: Aim::AtLeast(2.0),
            measured: dpdk.and_then(|d| against_dpdk(d, classes)),
        });
    }
    goals.push(Goal {
        what: "any number of classes: 99.99th percentile of one operation, of its mean".to_owned(),
        aim: Aim::AtMost(25.0),
        measured: worst_tail(s),
    });
    for classes in [1000, 100_000, MILLION] {
        goals.push(Goal {
            what: format!(
                "{} classes, all clocks coincide: of the best heap",
                units::display::count(classes.into())
            ),
            aim: Aim::AtMost(1.0),
            measured: against(s, "coincide", classes, |c, ours| ratio(ours, best_heap(c)?)),
        });
    }
    goals
}

/// Compares the structure that the core would choose with another of the same contest.
fn against(
    s: &Structures,
    case: &str,
    classes: u32,
    ratio: impl Fn(&Contest, &Rival) -> Option<Spread>,
) -> Option<Spread> {
    let contest = s.contest(case, classes)?;
    ratio(contest, named(&contest.rivals, s.cores_choice(classes))?)
}

fn best_heap(contest: &Contest) -> Option<&Rival> {
    let median = |r: &&Rival| Spread::of(&r.ns).map_or(f64::INFINITY, |s| s.median);
    HEAPS
        .iter()
        .filter_map(|name| named(&contest.rivals, name))
        .min_by(|a, b| median(a).total_cmp(&median(b)))
}

/// Returns how the cost grows with the number of classes. Two contests have no rounds in common, so
/// this is a ratio of medians.
fn growth(s: &Structures, few: u32, many: u32) -> Option<Spread> {
    let median = |classes| {
        let contest = s.contest("standard", classes)?;
        let ours = named(&contest.rivals, s.cores_choice(classes))?;
        Spread::of(&ours.ns)
    };
    let (few, many) = (median(few)?.median, median(many)?);
    Some(Spread {
        low: many.low / few,
        median: many.median / few,
        high: many.high / few,
    })
}

fn against_dpdk(dpdk: &Dpdk, classes: u32) -> Option<Spread> {
    let contest = dpdk
        .contests
        .iter()
        .find(|c| !c.shaped && c.classes == classes)?;
    ratio(
        named(&contest.rivals, "rte_sched")?,
        named(&contest.rivals, "ours")?,
    )
}

/// Returns the largest ratio of the 99.99th percentile to the mean, over all numbers of classes.
fn worst_tail(s: &Structures) -> Option<Spread> {
    let tail = s.latency.iter().filter_map(|at| {
        let name = s.cores_choice(at.classes);
        let ours = at.rivals.iter().find(|r| r.name == name)?;
        Some(ours.p9999_ns / ours.mean_ns)
    });
    Spread::of(&[tail.reduce(f64::max)?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goals_are_met_from_their_own_side() {
        let goal = |aim, median| Goal {
            what: String::new(),
            aim,
            measured: Some(Spread {
                low: 0.0,
                median,
                high: 9.0,
            }),
        };
        assert_eq!(goal(Aim::AtMost(0.8), 0.8).met(), Some(true));
        assert_eq!(goal(Aim::AtMost(0.8), 0.81).met(), Some(false));
        assert_eq!(goal(Aim::AtLeast(2.0), 2.0).met(), Some(true));
        assert_eq!(goal(Aim::AtLeast(2.0), 1.99).met(), Some(false));
    }
}
