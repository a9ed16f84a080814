// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds consecutive rounds in which data moved slowly.

use std::num::NonZeroU64;

use units::time::{NS_PER_MS, NS_PER_S};

use super::finding::{Context, Finding, in_order};
use crate::analysis::{Stall, StallKind};
use crate::cause::{Cause, Confidence};
use crate::flow::Flow;
use crate::flow::rounds::{Limit, Phase, per_second};
use crate::vantage::{View, ms};

/// Shortest phase that is a stall, in ns: shorter ones are how TCP works.
pub(super) const LEAST_NS: u64 = 100 * NS_PER_MS;
/// Shortest plateau, in ns: a shorter one cannot be told from a window that grows slowly.
const PLATEAU_LEAST_NS: u64 = 500 * NS_PER_MS;
const PLATEAU_ROUNDS_SURE: u64 = 40;
/// Rounds after which a window that doubles in each is no longer below a tenth of the one
/// before the loss.
const PINNED_ROUNDS_AWAY: u64 = 8;

pub(super) fn stalls(flow: &Flow, context: &Context<'_>) -> Vec<Stall> {
    let phases = flow.phases().iter();
    phases
        .filter_map(|phase| stall(phase, flow, context))
        .collect()
}

fn stall(phase: &Phase, flow: &Flow, context: &Context<'_>) -> Option<Stall> {
    let duration_ns = phase.end_ns - phase.start_ns;
    if duration_ns < LEAST_NS {
        return None;
    }
    let finding = match phase.limit {
        Limit::Pinned => pinned(phase, flow, context)?,
        Limit::Growth => growth(phase),
        Limit::Window => window(phase, flow, context)?,
        Limit::Plateau => plateau(phase, flow, context)?,
    };
    let rate_before = phase.rate_before.map_or(0, NonZeroU64::get);
    let expected = u128::from(rate_before) * u128::from(duration_ns) / u128::from(NS_PER_S);
    let expected = u64::try_from(expected).unwrap_or(u64::MAX);
    let cost = expected.saturating_sub(phase.delivered_bytes);
    let compares = matches!(phase.limit, Limit::Pinned | Limit::Growth);
    let patchy = context.is_patchy && finding.confidence == Confidence::High;
    Some(Stall {
        direction: context.direction,
        start_ns: phase.start_ns.saturating_sub(context.start_ns),
        duration_ns,
        kind: StallKind::Slow,
        bytes_cost: (compares && rate_before > 0).then_some(cost),
        cause: finding.cause,
        root: context.root_of(finding.cause),
        side: finding.side,
        confidence: if patchy {
            Confidence::Medium
        } else {
            finding.confidence
        },
        evidence: in_order(vec![phase.first_packet, phase.last_packet]),
        count: 1,
        explanation: finding.explanation,
        advice: finding.cause.advice().to_owned(),
        asked: crate::predictions::Answers::default(),
        number: None,
    })
}

fn rate(phase: &Phase) -> String {
    let bps = per_second(phase.delivered_bytes, phase.end_ns - phase.start_ns).saturating_mul(8);
    crate::verdict::rate(bps)
}

fn pinned(phase: &Phase, flow: &Flow, context: &Context<'_>) -> Option<Finding> {
    // A timeout that was not captured is followed by rounds as small, but these double.
    if context.view != View::Sender && phase.rounds < PINNED_ROUNDS_AWAY {
        return None;
    }
    let text = format!(
        "{} rounds of repair at {}, {} segments retransmitted: the window was down to next to \
         nothing and could not grow before all losses were repaired",
        phase.rounds,
        rate(phase),
        phase.retransmitted
    );
    // A sender that goes back and sends everything again repeats what was not lost: its rounds
    // are small for another reason.
    let again = flow.retransmissions();
    let needless = again.spurious.max(flow.counts().resent_reported);
    let goes_back = !flow.counts().sack_seen || needless * 4 >= again.total();
    let sure = matches!(context.view, View::Sender | View::Middle) && !goes_back;
    let confidence = if sure {
        Confidence::High
    } else {
        Confidence::Medium
    };
    Some(Finding::new(Cause::RecoveryCwndPinned, confidence, text))
}

fn growth(phase: &Phase) -> Finding {
    let rate_before = phase.rate_before.map_or(0, NonZeroU64::get);
    let text = format!(
        "after a timeout {} rounds at {}, where there had been {}",
        phase.rounds,
        rate(phase),
        crate::verdict::rate(rate_before.saturating_mul(8))
    );
    Finding::new(Cause::SlowGrowth, Confidence::Medium, text)
}

/// Returns whether the round trip is far above its least: then a queue stands somewhere, and
/// the window is not what limits the rate.
fn has_queue(flow: &Flow) -> bool {
    let least_ns = flow.trips.rtt_min_ns();
    let now_ns = flow.trips.rtt_ns().unwrap_or(least_ns);
    now_ns > least_ns + (least_ns / 2).max(NS_PER_MS)
}

fn window(phase: &Phase, flow: &Flow, context: &Context<'_>) -> Option<Finding> {
    if has_queue(flow) {
        return None;
    }
    let rtt_ns = flow.trips.rtt_ns()?;
    let text = format!(
        "for {} the window of {} bytes was full each round trip of {}: {} and no more fits",
        ms(phase.end_ns - phase.start_ns),
        phase.window.1,
        ms(rtt_ns),
        rate(phase)
    );
    // A rate near the window's may be the path's as well.
    let sure = context.view == View::Sender && phase.all_reached_edge;
    let confidence = if sure {
        Confidence::High
    } else {
        Confidence::Medium
    };
    Some(Finding::new(Cause::ReceiverWindowSmall, confidence, text))
}

fn plateau(phase: &Phase, flow: &Flow, context: &Context<'_>) -> Option<Finding> {
    let is_long = phase.end_ns - phase.start_ns >= PLATEAU_LEAST_NS;
    if !is_long || has_queue(flow) || flow.trips.rtt_ns().is_none() {
        return None;
    }
    if !flow.scale_known() {
        let text = format!(
            "for {} rounds {} to {} bytes in flight, in one piece each round trip: a limit of the \
             sender, or the receiver's window, of which the capture does not show the scale",
            phase.rounds, phase.flight.0, phase.flight.1
        );
        return Some(Finding::new(Cause::Unknown, Confidence::Low, text));
    }
    let level = (phase.flight.1 - phase.flight.0) * 4 <= phase.flight.1;
    let clean = flow.loss_stats().episodes == 0 && level && phase.rounds >= PLATEAU_ROUNDS_SURE;
    let sure = clean && context.view == View::Sender;
    let text = format!(
        "for {} rounds {} to {} bytes in flight, in one piece each round trip, with nothing lost \
         and the receiver's window at {}: a limit within the sender, most likely its send buffer",
        phase.rounds, phase.flight.0, phase.flight.1, phase.window.1
    );
    let confidence = if sure {
        Confidence::Medium
    } else {
        Confidence::Low
    };
    Some(Finding::new(Cause::SendBuffer, confidence, text))
}
