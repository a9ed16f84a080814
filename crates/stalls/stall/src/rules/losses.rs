// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds where a flow's losses come from, by their pattern over the whole flow.

use units::time::NS_PER_MS;

use super::finding::{Context, Origin, in_order};
use crate::analysis::{Stall, StallKind};
use crate::cause::{Cause, Confidence};
use crate::flow::Flow;
use crate::flow::loss_stats::LossStats;

/// Mean number of segments of one loss, up to which losses are no bursts.
const FEW_SEGMENTS: u64 = 8;

/// Finds the origin of the losses, where there is a pattern.
pub(crate) fn origin(flow: &Flow) -> Option<Origin> {
    let loss_stats = flow.loss_stats();
    reordering(flow, loss_stats)
        .or_else(|| marked(flow))
        .or_else(|| policer(flow, loss_stats))
        .or_else(|| congestion(flow, loss_stats))
        .or_else(|| path_loss(flow, loss_stats))
}

/// Finds congestion from marks of routers (RFC 3168): a queue stood there. Marks show the path
/// before the capture, echoes the whole path.
fn marked(flow: &Flow) -> Option<Origin> {
    let (marks, echoes) = (flow.counts().ce_marked, flow.counts().ecn_echoes);
    (marks + echoes > 0).then(|| Origin {
        cause: Cause::Congestion,
        confidence: Confidence::High,
        explanation: format!(
            "{marks} segments were marked by a queue on the way, and {echoes} acknowledgements \
             echo such marks"
        ),
        rate_bps: None,
    })
}

fn reordering(flow: &Flow, loss_stats: &LossStats) -> Option<Origin> {
    // Near the receiver, overtaken data is acknowledged before its repair comes. So is what a
    // sender repeats that goes back to the first loss and sends everything again, or whose
    // acknowledgements were lost: only data that was seen to come late was overtaken. And data
    // that came late costs nothing unless its sender repaired it for nothing.
    let late = flow.counts().retransmitted_acked;
    let fast = flow.retransmissions().fast + late;
    let reported = loss_stats.spurious_fast + late.min(loss_stats.overtaken);
    let mostly = reported >= 3 && reported * 2 >= fast;
    // Reports of needless repairs may be cut off, or not be in use: what is acknowledged sooner
    // than its repair can be answered needed none.
    let filled = loss_stats.overtaken + flow.counts().lost_before;
    let needless = reported.max(loss_stats.needless);
    let seen = loss_stats.overtaken >= 3
        && loss_stats.overtaken * 2 >= loss_stats.holes.max(filled)
        && needless >= 3;
    if !mostly && !seen {
        return None;
    }
    // A capture that lacks packets, or has them in another order than the path, shows the same.
    let is_proved = loss_stats.spurious_fast >= 3
        && loss_stats.spurious_fast * 2 >= fast
        && loss_stats.overtaken * 2 >= loss_stats.holes
        && flow.counts().unseen_bytes == 0
        && has_few_timeouts(flow);
    Some(Origin {
        cause: Cause::Reordering,
        confidence: if is_proved {
            Confidence::High
        } else {
            Confidence::Medium
        },
        explanation: format!(
            "of {fast} segments repaired at once {reported} had arrived; {} came late",
            loss_stats.overtaken
        ),
        rate_bps: None,
    })
}

/// Returns whether timeouts are next to nothing beside the repairs on acknowledgements: behind a
/// timeout a sender goes back and repeats what had arrived.
fn has_few_timeouts(flow: &Flow) -> bool {
    let again = flow.retransmissions();
    (again.timeout + again.after_timeout) * 4 <= again.fast
}

/// Returns whether most round trips at losses are those of an empty path (Flach et al., SIGCOMM
/// 2016, tell policers from queues by the same). The few that are not contain an
/// acknowledgement that was held back.
fn has_no_queue(loss_stats: &LossStats) -> bool {
    let judged = loss_stats.queue_ns.count;
    judged > 0 && u64::from(loss_stats.holes_without_queue) * 10 >= judged * 7
}

/// Returns the length of the queue at losses, if each loss found one of about that length.
fn short_queue_ns(loss_stats: &LossStats) -> Option<u64> {
    let queue_ns = loss_stats.queue_ns.mean();
    let is_one = queue_ns >= NS_PER_MS as f64 && loss_stats.queue_ns.variation() <= 0.35;
    is_one.then_some(queue_ns as u64)
}

/// Returns whether holes were repaired because of losses: reordering fills holes with data that
/// comes late.
fn are_losses(flow: &Flow, loss_stats: &LossStats) -> bool {
    let again = flow.retransmissions();
    let needed = again.total().saturating_sub(again.spurious);
    let filled = needed.saturating_mul(flow.sizes.mss()).saturating_mul(2);
    filled >= loss_stats.hole_bytes && loss_stats.overtaken * 4 <= loss_stats.holes
}

fn policer(flow: &Flow, loss_stats: &LossStats) -> Option<Origin> {
    let sent = loss_stats.passed_bytes + loss_stats.lost_bytes;
    let is_heavy = loss_stats.lost_bytes * 10 >= sent && sent > 0;
    let steady = loss_stats.passed.count >= 2 && loss_stats.passed.variation() <= 0.15;
    let once =
        loss_stats.passed.count >= 1 && loss_stats.holes >= 8 && loss_stats.lost_bytes * 5 >= sent;
    if !is_heavy || !(steady || once) || !has_no_queue(loss_stats) || !are_losses(flow, loss_stats)
    {
        return None;
    }
    let rate_bps = (loss_stats.passed.mean() * 8.0) as u64;
    // A line with a short buffer does the same, except that it drops when the buffer is full:
    // each of its losses finds a queue. A burst may stand in the sender's own line meanwhile.
    if u64::from(loss_stats.holes_on_empty_path) * 2 < loss_stats.queue_ns.count {
        return None;
    }
    Some(Origin {
        cause: Cause::Policer,
        confidence: if steady {
            Confidence::High
        } else {
            Confidence::Low
        },
        explanation: format!(
            "in {} bursts of loss {} passed each time, the rest was dropped, and no \
             queue built up before",
            loss_stats.passed.count,
            crate::verdict::rate(rate_bps)
        ),
        rate_bps: Some(rate_bps),
    })
}

fn congestion(flow: &Flow, loss_stats: &LossStats) -> Option<Origin> {
    let least_ns = flow.trips.rtt_min_ns();
    let queue_ns = loss_stats.queue_ns.mean() as u64;
    if loss_stats.queue_ns.count == 0 || queue_ns < (least_ns / 2).max(2 * NS_PER_MS) {
        return None;
    }
    Some(Origin {
        cause: Cause::Congestion,
        confidence: Confidence::Medium,
        explanation: format!(
            "at losses the round trip was {} above its least: a queue was full",
            crate::vantage::ms(queue_ns)
        ),
        rate_bps: None,
    })
}

fn path_loss(flow: &Flow, loss_stats: &LossStats) -> Option<Origin> {
    // A host's own queue drops a few segments at once: those that its device would segment.
    let few = loss_stats.hole_bytes <= loss_stats.holes * flow.sizes.mss() * FEW_SEGMENTS
        && loss_stats.hole_bytes <= flow.counts().bytes / 10;
    if loss_stats.episodes < 3
        || loss_stats.holes < 3
        || !few
        || !has_no_queue(loss_stats)
        || !are_losses(flow, loss_stats)
    {
        return None;
    }
    let (confidence, queue) = match short_queue_ns(loss_stats) {
        None => (Confidence::Medium, "no queue before them".to_owned()),
        Some(ns) => {
            let ms = crate::vantage::ms(ns);
            let text = format!("{ms} of queue before each: it may have been a short buffer's end");
            (Confidence::Low, text)
        }
    };
    Some(Origin {
        cause: Cause::PathLoss,
        confidence,
        explanation: format!(
            "{} losses of a segment or a few in {} repairs, with {queue}",
            loss_stats.holes, loss_stats.episodes
        ),
        rate_bps: None,
    })
}

/// Returns the time in which losses held the flow down, as one stall.
pub(super) fn stall(flow: &Flow, context: &Context<'_>) -> Option<Stall> {
    let origin = context.origin?;
    let loss_stats = flow.loss_stats();
    let span = loss_stats.longest_span()?;
    let is_short = span.last_ns < span.first_ns + super::phases::LEAST_NS;
    if origin.cause == Cause::Congestion || is_short {
        return None; // sharing a path is normal, and a moment is no stall
    }
    Some(Stall {
        direction: context.direction,
        start_ns: span.first_ns.saturating_sub(context.start_ns),
        duration_ns: span.last_ns - span.first_ns,
        kind: StallKind::Slow,
        bytes_cost: None,
        cause: origin.cause,
        root: None,
        side: origin.cause.side(),
        confidence: origin.confidence,
        evidence: in_order(span.packets.iter().collect()),
        count: span.episodes.max(1),
        explanation: origin.explanation.clone(),
        advice: origin.cause.advice().to_owned(),
        asked: crate::predictions::Answers::default(),
        number: None,
    })
}
