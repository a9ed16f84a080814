// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares the frames that left with what each class counted, and says what is wrong and, where
//! the numbers show it, why.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use tcpsp::account::{Reasons, Renewable};

use crate::tally::{Example, Matched, Sum, Trait};

/// Standard deviations of the sampling that are allowed for.
const SIGMAS: f64 = 4.0;
/// Frames that may be on their way between two counters, at each end of the window.
const FRAMES_ON_THE_WAY: u64 = 8;
/// Share of a class's frames that no cause needs to explain.
const NOISE: f64 = 0.01;
/// Why a class is not asked about.
const NOT_JUDGED: &str = "could not be judged: rules by cgroup";

/// What a class counted in the window.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClassCounted {
    /// Its name in the file.
    pub name: String,
    pub frames: u64,
    /// Bytes, without FCS, or as the layer counts with departure times.
    pub bytes: u64,
    /// Its rate in the kernel; 0: it has none.
    pub rate_bps: u64,
    /// Whether a rule of the sender's cgroup names it, or may.
    pub has_senders: bool,
}

/// What else is known of the window.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Window {
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
    pub rule: String,
    /// Frames that match it.
    pub frames: u64,
    pub example: Example,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClassReport {
    pub name: String,
    /// What is said of it.
    pub state: State,
    /// What matches by the file.
    pub matched: Sum,
    /// Of that what a rule of the sender's cgroup may have.
    pub not_asked: Sum,
    pub counted_frames: u64,
    pub counted_bytes: u64,
    /// Frames by which the two may differ.
    pub tolerance_frames: u64,
    /// Its rate in the kernel; 0: none.
    pub rate_bps: u64,
    /// Rate of what matches.
    pub seen_bps: u64,
    /// The largest queue of what matches before a bottleneck of the class's ceil or rate; null: only a
    /// sample was seen, or the class has no rate.
    pub burst_bytes: Option<u64>,
    /// Why, each sentence a cause that the numbers fit; "unknown" if none does.
    pub why: Vec<String>,
    /// The rules whose frames are missing.
    pub rules: Vec<RuleFault>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    pub device: String,
    /// Length of the window.
    pub time_ns: u64,
    /// Share of its packets that were looked at.
    pub share: f64,
    /// Packets that left, without gap frames of psp.
    pub packets: u64,
    /// Packets that nobody could look at for lack of room.
    pub lost: u64,
    /// Gap frames of psp.
    pub gap_frames: u64,
    /// What keeps the packets of classes and is not as `apply` makes it.
    pub amiss: Vec<String>,
    pub classes: Vec<ClassReport>,
}

impl Report {
    /// Returns whether neither a class nor what keeps its packets has a fault.
    pub fn is_well(&self) -> bool {
        let fault = |class: &ClassReport| matches!(class.state, State::Missing | State::Foreign);
        self.amiss.is_empty() && !self.classes.iter().any(fault)
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

/// What may explain missing frames.
struct Cause {
    text: String,
    /// What the frames have by which it is seen.
    seen_by: Option<Trait>,
    frames: u64,
}

/// Returns what the kernel's tables say, then what is special about frames, each with the frames that
/// it explains.
fn causes(matched: &Matched, reasons: &Reasons) -> (Vec<Cause>, Vec<Cause>) {
    let of = |which: Trait| matched.traits.get(&which).map(|(sum, _)| sum.frames);
    let cause = |text: String, seen_by, frames| Cause {
        text,
        seen_by,
        frames,
    };
    // What cgroups sent cannot be told in frames.
    let interfaces = reasons.renewed.iter();
    let interfaces = interfaces.filter(|renewed| renewed.what == Renewable::Interface);
    let renewed = interfaces.filter_map(|renewed| {
        let text = format!(
            "interface {} was made anew: the rule in force names index {}, it has {} now",
            renewed.name, renewed.number_in_force, renewed.number
        );
        Some(cause(text, Some(Trait::Interface), of(Trait::Interface)?))
    });
    let taken = (!reasons.taken_by.is_empty()).then(|| {
        let text = format!(
            "another program takes packets before the classifier: {}",
            reasons.taken_by.join(", ")
        );
        cause(text, None, matched.all.frames)
    });
    // That a rule names an interface says nothing by itself.
    let traits = Trait::ALL
        .into_iter()
        .filter(|which| *which != Trait::Interface);
    let traits = traits.filter_map(|which| {
        let text = which.words().to_owned();
        Some(cause(text, Some(which), of(which)?))
    });
    (renewed.chain(taken).collect(), traits.collect())
}

/// Returns sentences that explain what is missing of a class, and what frames have by which that is
/// seen. One cause goes before two, and what the kernel's tables say before what frames show.
fn why(
    matched: &Matched,
    missing: u64,
    tolerance: u64,
    reasons: &Reasons,
) -> (Vec<String>, BTreeSet<Trait>) {
    let slack = tolerance + (matched.all.frames as f64 * NOISE) as u64;
    let fits = |frames: u64| frames.abs_diff(missing) <= slack;
    let (known, seen) = causes(matched, reasons);
    for causes in [&known, &seen] {
        let fitting = causes.iter().filter(|cause| fits(cause.frames));
        let (texts, seen_by): (Vec<_>, Vec<_>) = fitting
            .map(|cause| (cause.text.clone(), cause.seen_by))
            .unzip();
        if !texts.is_empty() {
            return (texts, seen_by.into_iter().flatten().collect());
        }
    }
    // Frames that two causes explain would count twice, and fit nothing.
    let all: Vec<&Cause> = known.iter().chain(&seen).collect();
    let (mut texts, mut seen_by) = (Vec::new(), BTreeSet::new());
    for (place, one) in all.iter().enumerate() {
        for other in all.iter().skip(place + 1) {
            let both = one.frames + other.frames;
            if one.frames.min(other.frames) <= slack || !fits(both) {
                continue;
            }
            let share = |cause: &Cause| 100 * cause.frames / both.max(1);
            let parts = [one, other].map(|of| format!("of {} % {}", share(of), of.text));
            texts.push(parts.join("; "));
            seen_by.extend([one.seen_by, other.seen_by].into_iter().flatten());
        }
    }
    if texts.is_empty() {
        texts.push("unknown".to_owned());
    }
    (texts, seen_by)
}

/// Returns the rules that have frames by which a cause is seen; without such a cause all that have
/// frames.
fn rules(matched: &Matched, seen_by: &BTreeSet<Trait>, texts: &[String]) -> Vec<RuleFault> {
    let mut found: BTreeMap<usize, (u64, &Example)> = BTreeMap::new();
    for ((place, which), (sum, example)) in &matched.rule_traits {
        if seen_by.contains(which) {
            let rule = found.entry(*place).or_insert((0, example));
            rule.0 += sum.frames;
        }
    }
    if found.is_empty() {
        let all = matched.rules.iter();
        found.extend(all.map(|(place, (sum, example))| (*place, (sum.frames, example))));
    }
    let rule = |(place, (frames, example)): (usize, (u64, &Example))| RuleFault {
        rule: texts.get(place).cloned().unwrap_or_default(),
        frames,
        example: example.clone(),
    };
    found.into_iter().map(rule).collect()
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
    let (mut why_all, mut rules_all) = (Vec::new(), Vec::new());
    match state {
        State::Missing => {
            let (texts, seen_by) = why(matched, missing, tolerance, &window.reasons);
            rules_all = rules(matched, &seen_by, &window.rules);
            why_all = texts;
        }
        State::Foreign if minor == window.default => {
            why_all.push("frames of other classes come here".to_owned());
        }
        State::Foreign => why_all.push("unknown".to_owned()),
        State::Well | State::NotAsked => {}
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
        rules: rules_all,
    }
}

/// Compares. `lost` of `packets` were not looked at. O(classes * rules).
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
        let tolerance = report.tolerance_frames;
        let extra = counted.frames.saturating_sub(matched.all.frames);
        if report.state == State::Foreign && extra <= tolerance + unsure {
            report.state = State::NotAsked;
            report.why.clear();
        }
        if report.state == State::NotAsked {
            report.why.push(NOT_JUDGED.to_owned());
        }
        // Nothing came by them, and others have frames that they may claim.
        let elsewhere = unsure - matched.unsure.frames;
        let is_idle = counted.has_senders && extra <= tolerance;
        if report.state == State::Well && is_idle && elsewhere > tolerance {
            report.state = State::NotAsked;
            report.why.push(format!(
                "{NOT_JUDGED}; it counted none by them, and {elsewhere} that they may claim went elsewhere"
            ));
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
        amiss: window.reasons.amiss.clone(),
        classes: classes.collect(),
    }
}
