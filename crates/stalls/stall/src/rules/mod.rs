// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the cause of each pause: one rule for each cause, tried in order. `docs/use/stalls.md`
//! explains each rule.

mod acknowledged;
mod asked;
mod finding;
mod heartbeats;
mod idle;
mod late;
mod losses;
mod phases;
mod setup;
mod timeouts;
mod window;

use std::num::NonZeroU64;

use finding::{Finding, Finds, in_order};
use units::time::NS_PER_S;

use crate::analysis::{Idle, Stall, StallKind};
use crate::cause::{Cause, Confidence};
use crate::flow::Flow;
use crate::flow::facts::{Closed, Facts};
use crate::predictions::{self, Answers, State};
use crate::report::phrases::words;

pub(crate) use finding::{Context, Origin};
pub(crate) use losses::origin;
pub(crate) use setup::waits;

/// Consecutive stalls are merged only if none is more than so many times longer or shorter than
/// the mean of those before.
const ALIKE: u64 = 8;

type Rule = fn(&Facts, &Context<'_>) -> Option<Finding>;

/// The rules, in order. The first one that applies gives the cause.
const RULES: [Rule; 15] = [
    window::update_lost,
    window::closed,
    timeouts::one_direction,
    acknowledged::retransmitted_acked,
    acknowledged::needless,
    timeouts::large_packets_lost,
    timeouts::never_answered,
    timeouts::repeated,
    timeouts::of_lost_retransmission,
    timeouts::first,
    timeouts::probe,
    timeouts::probe_by_new_data,
    timeouts::fast_only,
    late::acknowledgement,
    idle::nothing_to_send,
];

/// Returns all stalls of one flow, in order, and its idle times.
pub(crate) fn stalls(flow: &Flow, context: &Context<'_>) -> (Vec<Stall>, Idle) {
    let (mut all, idle) = pauses(&flow.stalls(), context);
    if !context.is_filtered {
        all.extend(phases::stalls(flow, context));
        let slow = losses::stall(flow, context);
        all.extend(slow.filter(|slow| !all.iter().any(|stall| is_most_of(stall, slow))));
    }
    all.sort_by_key(|stall| (stall.start_ns, stall.duration_ns, stall.cause));
    (all, idle)
}

/// Returns the stalls among some pauses of a flow, in order, and the idle times.
pub(crate) fn pauses(facts: &[Facts], context: &Context<'_>) -> (Vec<Stall>, Idle) {
    let mut idle = Idle::default();
    if context.flow.counts().bytes == 0 {
        return (Vec::new(), idle); // a flow of a FIN alone is no transfer
    }
    let mut all: Vec<Stall> = Vec::new();
    let beats = heartbeats::of(facts, context);
    for (facts, beat) in facts.iter().zip(beats) {
        let judged = match beat {
            heartbeats::Beat::Yes => Judged::Idle,
            _ => of_pause(facts, context),
        };
        match judged {
            Judged::Stall(mut stall) => {
                if beat == heartbeats::Beat::Perhaps && stall.cause == Cause::ResponseTime {
                    stall.confidence = Confidence::Low;
                }
                all.push(*stall);
            }
            Judged::Idle => idle.note(facts.duration_ns()),
            Judged::Nothing => {}
        }
    }
    if !context.is_subflow {
        merge(&mut all, context.flow.trips.rtt_ns().unwrap_or(0));
    }
    (all, idle)
}

/// Returns whether a stop is three quarters of a slow time or more: then nothing else was slow.
fn is_most_of(stop: &Stall, slow: &Stall) -> bool {
    let end_ns = |stall: &Stall| stall.start_ns + stall.duration_ns;
    let shared_ns = end_ns(stop)
        .min(end_ns(slow))
        .saturating_sub(stop.start_ns.max(slow.start_ns));
    stop.kind == StallKind::Silence && shared_ns >= slow.duration_ns / 4 * 3
}

/// The judgement of a pause.
enum Judged {
    Stall(Box<Stall>),
    Idle,
    Nothing,
}

fn of_pause(facts: &Facts, context: &Context<'_>) -> Judged {
    // All data had been acknowledged; or the sender gave the connection up by itself.
    if facts.under_way.is_only_fin || facts.is_own_reset && facts.gap.retransmitted.count() < 2 {
        return Judged::Nothing;
    }
    let (finding, answers) = if context.is_filtered {
        (idle::without_acks(facts, context), Answers::default())
    } else {
        let answers = asked::answers(facts, context);
        let is_left = |finding: &Finding| {
            let row = predictions::row_of(finding.cause).filter(|_| finding.what != Finds::Idle);
            row.is_none_or(|row| row.state(answers) != State::Refuted)
        };
        let mut findings = RULES.iter().filter_map(|rule| rule(facts, context));
        (findings.find(is_left), answers)
    };
    let finding = finding.unwrap_or_else(|| unknown(facts));
    if facts.is_only_late && finding.cause != Cause::DelayedAck {
        return Judged::Nothing; // an answer was late, and nothing waited for it
    }
    let rtt_ns = context
        .flow
        .trips
        .rtt_ns()
        .filter(|_| facts.trips.rtt_ns.is_none());
    if rtt_ns.is_some_and(|rtt_ns| facts.duration_ns() < 2 * rtt_ns) {
        return Judged::Nothing; // too short for the round trip, which was not known yet
    }
    let (start_ns, first) = match finding.what {
        Finds::Idle if facts.closed == Closed::NewData || facts.outlasts_timers() => {
            return Judged::Idle;
        }
        Finds::Idle => return Judged::Nothing, // an answer was late, and nothing waited for it
        Finds::Stall => (facts.start_ns, facts.packet_before),
        Finds::Wait(start_ns, packet) => (start_ns, packet),
    };
    let kind = match finding.what {
        Finds::Wait(..) => StallKind::Wait,
        _ => StallKind::Silence,
    };
    let (end_ns, last) = finding.until.unwrap_or((facts.end_ns, facts.packet_after));
    if finding.until.is_some() && end_ns.saturating_sub(start_ns) < facts.threshold_ns {
        return Judged::Nothing; // no silence is shorter than that
    }
    let rate_before = facts.rate_before.map_or(0, NonZeroU64::get);
    let cost = u128::from(rate_before) * u128::from(end_ns.saturating_sub(facts.start_ns));
    let cost = u64::try_from(cost / u128::from(NS_PER_S)).unwrap_or(u64::MAX);
    let mut packets = vec![first];
    packets.extend(&finding.evidence);
    packets.push(last);
    let most = predictions::most(finding.cause, answers);
    let confidence = doubt(finding.confidence.min(most), facts, context);
    Judged::Stall(Box::new(Stall {
        direction: context.direction,
        start_ns: start_ns.saturating_sub(context.start_ns),
        duration_ns: end_ns.saturating_sub(start_ns),
        kind,
        bytes_cost: (rate_before > 0 && kind == StallKind::Silence).then_some(cost),
        cause: finding.cause,
        root: context.root_of(finding.cause),
        side: finding.side,
        confidence,
        evidence: in_order(packets),
        count: 1,
        explanation: finding.explanation + &not_excluded(finding.cause, answers),
        advice: finding.cause.advice().to_owned(),
        asked: answers,
        number: None,
    }))
}

/// Names the causes on other sides that nothing excludes, if there are some.
fn not_excluded(cause: Cause, answers: Answers) -> String {
    let known = predictions::row_of(cause).is_some() && !answers.are_none();
    let left = predictions::others(cause.side(), answers, &[State::Shown, State::Left]);
    if !known || left.is_empty() {
        return String::new();
    }
    let names: Vec<_> = left.iter().map(words).collect();
    format!("; not excluded: {}", names.join(", "))
}

/// Lowers the confidence where the capture lacks packets, most where it lacks those of the
/// pause itself.
fn doubt(confidence: Confidence, facts: &Facts, context: &Context<'_>) -> Confidence {
    match confidence {
        _ if facts.answer.hole_bytes > 0 && context.is_patchy => Confidence::Low,
        _ if facts.gap.holes > 0 && !facts.after.is_hole_filled => Confidence::Low,
        _ if context.is_filtered => Confidence::Low,
        Confidence::High if context.is_patchy => Confidence::Medium,
        as_it_is => as_it_is,
    }
}

fn unknown(facts: &Facts) -> Finding {
    let what = match facts.closed {
        Closed::Reset => "a reset ended it",
        Closed::Capture => "the capture ended in it",
        Closed::NewData => "new data ended it",
        Closed::Delivery => "an acknowledgement ended it",
    };
    let bytes = facts.under_way.bytes;
    let text = format!("nothing moved, with {bytes} bytes under way; {what}");
    Finding::new(Cause::Unknown, Confidence::Low, text)
}

/// Consecutive stalls of one cause that are being merged.
struct Series {
    stall: Stall,
    paused_ns: u64,
    /// Parts of `paused_ns` with low, medium and high confidence.
    by_confidence: [u64; 3],
}

impl Series {
    fn of(stall: Stall) -> Self {
        let mut by_confidence = [0; 3];
        by_confidence[stall.confidence as usize] = stall.duration_ns;
        Self {
            paused_ns: stall.duration_ns,
            stall,
            by_confidence,
        }
    }

    /// Returns whether a stall belongs to the series: it has the same cause, with next to
    /// nothing between. A stall that is far longer or shorter than the others is judged for
    /// itself.
    fn takes(&self, stall: &Stall, near_ns: u64) -> bool {
        let last = &self.stall;
        let end_ns = last.start_ns + last.duration_ns;
        let mean_ns = self.paused_ns / last.count.max(1);
        stall.cause.is_serial()
            && (last.cause, last.side) == (stall.cause, stall.side)
            && stall.start_ns.saturating_sub(end_ns) <= near_ns
            && stall.duration_ns.max(mean_ns)
                <= stall.duration_ns.min(mean_ns).saturating_mul(ALIKE)
    }

    fn take(&mut self, stall: &Stall) {
        self.paused_ns += stall.duration_ns;
        self.by_confidence[stall.confidence as usize] += stall.duration_ns;
        self.stall.take_in(stall);
        self.stall.evidence.extend(&stall.evidence);
        self.stall.evidence = in_order(std::mem::take(&mut self.stall.evidence));
    }

    /// Ends the series. The confidence is the one that most of its time has.
    fn end(mut self) -> Stall {
        // Of equal ones the last.
        let levels = [Confidence::High, Confidence::Medium, Confidence::Low];
        let most = levels
            .into_iter()
            .max_by_key(|&level| self.by_confidence[level as usize]);
        self.stall.confidence = most.unwrap_or(self.stall.confidence);
        self.stall
    }
}

/// Merges consecutive stalls of one cause. O(stalls).
pub(crate) fn merge(all: &mut Vec<Stall>, rtt_ns: u64) {
    let near_ns = rtt_ns.saturating_mul(4).max(NS_PER_S / 20);
    let mut merged: Vec<Series> = Vec::with_capacity(all.len());
    for stall in all.drain(..) {
        match merged.last_mut() {
            Some(last) if last.takes(&stall, near_ns) => last.take(&stall),
            _ => merged.push(Series::of(stall)),
        }
    }
    all.extend(merged.into_iter().map(Series::end));
}
