// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares the frames that left with what each class counted, and says what is wrong and, where
//! the numbers show it, why.

use std::collections::BTreeMap;

use serde::Serialize;
use tcpsp::account::Reasons;

use crate::tally::{Example, Matched, Sum, Trait};

/// Standard deviations of the sampling that are allowed for.
const SIGMAS: f64 = 4.0;
/// Frames that may be on their way between two counters, at each end of the window.
const FRAMES_ON_THE_WAY: u64 = 8;
/// Share of a class's frames that no cause needs to explain.
const NOISE: f64 = 0.01;

/// What a class counted in the window.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClassCounted {
    /// Its name in the file.
    pub name: String,
    /// Frames.
    pub frames: u64,
    /// Bytes, without FCS, or as the layer counts with departure times.
    pub bytes: u64,
    /// Its rate in the kernel; 0: it has none.
    pub rate_bps: u64,
}

/// What else is known of the window.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Window {
    /// Its length.
    pub time_ns: u64,
    /// Frames that waited at its two ends where they had been counted already.
    pub waiting_frames: u64,
    /// How long the counters took to be read, both times together.
    pub reading_ns: u64,
    /// Minor number of the default class; 0: none.
    pub default: u16,
    /// What of each class counts: by minor number, 0 for what no class has.
    pub classes: BTreeMap<u16, ClassCounted>,
    /// What the kernel's tables say.
    pub reasons: Reasons,
    /// The rules as text, by their place in the file.
    pub rules: Vec<String>,
}

/// Whether a class counted what the file gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// It did.
    Well,
    /// It counted fewer frames than match.
    Missing,
    /// It counted frames that do not match, too.
    Foreign,
    /// Its frames cannot be told by what is in them.
    NotAsked,
}

/// A rule whose frames its class did not count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RuleFault {
    /// The rule.
    pub rule: String,
    /// Frames that match it.
    pub frames: u64,
    /// One of them.
    pub example: Example,
}

/// A class.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClassReport {
    /// Its name.
    pub name: String,
    /// What is said of it.
    pub state: State,
    /// What matches by the file.
    pub matched: Sum,
    /// Of that what a rule of the sender's cgroup may have.
    pub not_asked: Sum,
    /// What it counted.
    pub counted_frames: u64,
    /// Bytes of that.
    pub counted_bytes: u64,
    /// Frames by which the two may differ.
    pub tolerance_frames: u64,
    /// Its rate in the kernel; 0: none.
    pub rate_bps: u64,
    /// Rate of what matches.
    pub seen_bps: u64,
    /// The largest queue of what matches before a bottleneck of the class's rate; null: only a sample
    /// was seen, or the class has no rate.
    pub burst_bytes: Option<u64>,
    /// Why, each sentence a cause that the numbers fit; "unknown" if none does.
    pub why: Vec<String>,
    /// The rules whose frames are missing.
    pub rules: Vec<RuleFault>,
}

/// A device.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// Its name.
    pub device: String,
    /// Length of the window.
    pub time_ns: u64,
    /// Share of its packets that were looked at.
    pub share: f64,
    /// Packets that left.
    pub packets: u64,
    /// Packets that nobody could look at for lack of room.
    pub lost: u64,
    /// Gap frames of psp.
    pub gap_frames: u64,
    /// Its classes.
    pub classes: Vec<ClassReport>,
}

impl Report {
    /// Returns whether no class has a fault, and something could be judged.
    #[must_use]
    pub fn is_well(&self) -> bool {
        let fault = |class: &ClassReport| matches!(class.state, State::Missing | State::Foreign);
        !self.classes.iter().any(fault)
    }
}

fn rate(bytes: u64, time_ns: u64) -> u64 {
    let bits = u128::from(bytes) * 8 * 1_000_000_000;
    u64::try_from(bits / u128::from(time_ns.max(1))).unwrap_or(u64::MAX)
}

fn tolerance(matched: &Matched, window: &Window, lost: u64, packets: u64) -> u64 {
    let sampling = SIGMAS * matched.all.variance.sqrt();
    let frames = matched.all.frames;
    let of = |part: u64, whole: u64| frames.saturating_mul(part) / whole.max(1);
    FRAMES_ON_THE_WAY * 2
        + sampling as u64
        + window.waiting_frames
        + of(window.reading_ns, window.time_ns)
        + of(lost, packets)
}

/// Returns the causes that fit what is missing of a class.
fn why(
    matched: &Matched,
    missing: u64,
    tolerance: u64,
    window: &Window,
) -> Vec<(String, Option<Trait>)> {
    let slack = tolerance + (matched.all.frames as f64 * NOISE) as u64;
    let all = missing.abs_diff(matched.all.frames) <= slack;
    let reasons = &window.reasons;
    let mut causes = Vec::new();
    let of_interface = matched.traits.get(&Trait::Interface);
    let fits = |sum: &Sum| sum.frames.abs_diff(missing) <= slack;
    if of_interface.is_some_and(|(sum, _)| fits(sum)) {
        let renewed = reasons.renewed.iter().map(|renewed| {
            format!(
                "interface {} was made anew: the rule in force names index {}, it has {} now",
                renewed.name, renewed.index_in_force, renewed.index
            )
        });
        causes.extend(renewed.map(|text| (text, Some(Trait::Interface))));
    }
    if all && !reasons.taken_by.is_empty() {
        let text = format!(
            "another program takes packets before the classifier: {}",
            reasons.taken_by.join(", ")
        );
        causes.push((text, None));
    }
    if !causes.is_empty() {
        return causes;
    }
    for which in Trait::ALL {
        let Some((sum, _)) = matched.traits.get(&which) else {
            continue;
        };
        // That a rule names an interface says nothing by itself.
        if which != Trait::Interface && fits(sum) {
            causes.push((which.words().to_owned(), Some(which)));
        }
    }
    if causes.is_empty() {
        causes = pair(matched, missing, slack);
    }
    causes
}

/// Returns two causes that only together fit what is missing, with the share of each. Frames that have
/// both would count twice, and fit nothing.
fn pair(matched: &Matched, missing: u64, slack: u64) -> Vec<(String, Option<Trait>)> {
    let known = || {
        let traits = matched.traits.iter();
        traits.filter(|(which, (sum, _))| **which != Trait::Interface && sum.frames > slack)
    };
    for (one, (of_one, _)) in known() {
        for (other, (of_other, _)) in known().filter(|(other, _)| *other > one) {
            let both = of_one.frames + of_other.frames;
            if both.abs_diff(missing) <= slack {
                let cause = |which: &Trait, sum: &Sum| {
                    let share = 100 * sum.frames / both.max(1);
                    (format!("of {share} %: {}", which.words()), Some(*which))
                };
                return vec![cause(one, of_one), cause(other, of_other)];
            }
        }
    }
    Vec::new()
}

fn class(
    minor: u16,
    matched: &Matched,
    counted: &ClassCounted,
    window: &Window,
    of: (u64, u64),
) -> ClassReport {
    let tolerance = tolerance(matched, window, of.0, of.1);
    let (all, unsure) = (matched.all.frames, matched.unsure.frames);
    let missing = all.saturating_sub(unsure).saturating_sub(counted.frames);
    let extra = counted.frames.saturating_sub(all);
    let state = if missing > tolerance {
        State::Missing
    } else if extra > tolerance {
        State::Foreign
    } else if unsure > tolerance {
        State::NotAsked
    } else {
        State::Well
    };
    let (mut why_all, mut rules) = (Vec::new(), Vec::new());
    if state == State::Missing {
        let causes = why(matched, missing, tolerance, window);
        // Of a cause that is seen in frames only the rules that have such frames.
        let seen: Vec<Trait> = causes.iter().filter_map(|(_, which)| *which).collect();
        let of_cause = matched.rule_traits.iter();
        let of_cause = of_cause.filter(|((_, which), _)| seen.first() == Some(which));
        let of_cause: Vec<_> = of_cause.map(|((place, _), found)| (place, found)).collect();
        let named = if of_cause.is_empty() {
            matched.rules.iter().collect()
        } else {
            of_cause
        };
        rules.extend(named.into_iter().map(|(place, (sum, example))| RuleFault {
            rule: window.rules.get(*place).cloned().unwrap_or_default(),
            frames: sum.frames,
            example: example.clone(),
        }));
        why_all = causes.into_iter().map(|(text, _)| text).collect();
        if why_all.is_empty() {
            why_all.push("unknown".to_owned());
        }
    } else if state == State::Foreign && minor == window.default {
        why_all.push("frames of other classes come here".to_owned());
    } else if state == State::Foreign {
        why_all.push("unknown".to_owned());
    }
    ClassReport {
        name: counted.name.clone(),
        state,
        matched: matched.all,
        not_asked: matched.unsure,
        counted_frames: counted.frames,
        counted_bytes: counted.bytes,
        tolerance_frames: tolerance,
        rate_bps: counted.rate_bps,
        seen_bps: rate(matched.all.bytes, window.time_ns),
        burst_bytes: matched
            .queue
            .largest_bytes()
            .filter(|_| counted.rate_bps > 0),
        why: why_all,
        rules,
    }
}

/// Compares. `lost` of `packets` were not looked at. O(classes * rules).
#[must_use]
pub fn report(
    device: &str,
    tallied: &BTreeMap<u16, Matched>,
    window: &Window,
    totals: (u64, u64),
    share: f64,
    gap_frames: u64,
) -> Report {
    let none = Matched::default();
    // A rule of cgroups may have moved any of these frames.
    let unsure: u64 = tallied.values().map(|matched| matched.unsure.frames).sum();
    let classes = window.classes.iter().map(|(minor, counted)| {
        let matched = tallied.get(minor).unwrap_or(&none);
        let mut report = class(*minor, matched, counted, window, totals);
        let extra = counted.frames.saturating_sub(matched.all.frames);
        if report.state == State::Foreign && extra <= report.tolerance_frames + unsure {
            report.state = State::NotAsked;
            report.why.clear();
        }
        report
    });
    Report {
        device: device.to_owned(),
        time_ns: window.time_ns,
        share,
        packets: totals.1,
        lost: totals.0,
        gap_frames,
        classes: classes.collect(),
    }
}
