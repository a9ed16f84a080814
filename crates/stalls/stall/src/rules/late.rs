// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules for pauses in which an acknowledgement was late and nothing was retransmitted.

use std::num::NonZeroU64;

use units::time::NS_PER_MS;

use super::finding::{Context, Finding};
use super::window;
use crate::cause::{Cause, Confidence};
use crate::flow::facts::{Closed, Facts};
use crate::predictions::{HELD_BACK_NS, is_delayed_ack};
use crate::vantage::{View, ms};

/// Finds the cause of a pause that an acknowledgement ended.
pub(super) fn acknowledgement(facts: &Facts, context: &Context<'_>) -> Option<Finding> {
    let gap = &facts.gap;
    let again = gap.retransmitted.count() > 0;
    if facts.closed != Closed::Delivery || again || facts.under_way.bytes == 0 {
        return None;
    }
    // No sender leaves data unacknowledged for so long without retransmitting it: it had been
    // acknowledged, and the capture lacks the acknowledgement.
    if facts.outlasts_timers() {
        return Some(Finding::idle());
    }
    let held_ns = held_ns(facts);
    match (facts.data.unanswered_segments, gap.new_segments) {
        (..=2, 0) => held_back(facts, held_ns, context),
        (..=2, 1) => held_back_meanwhile(facts, held_ns, context),
        (..=2, _) => None,
        _ => of_many(facts, held_ns, context),
    }
}

/// Returns for how long the acknowledgement that ended the pause was held back, beside the way.
pub(super) fn held_ns(facts: &Facts) -> u64 {
    let wait_ns = match facts.gap.new_segments {
        0 => facts.end_ns.saturating_sub(facts.data.last_ns),
        _ => facts.duration_ns(),
    };
    wait_ns.saturating_sub(facts.trips.receiver_rtt_ns)
}

/// Returns whether no more was under way than a receiver may leave unacknowledged; `None`: one that
/// gathers segments may.
pub(super) fn is_few(facts: &Facts, context: &Context<'_>) -> Option<bool> {
    match facts.data.unanswered_segments {
        ..=2 => Some(true),
        few if few <= (2 * context.flow.segments_per_ack()).max(3) => None,
        _ => Some(false),
    }
}

/// Returns whether the receiver's own clock shows that it sent the acknowledgement late, or that it
/// was under way for most of the time. `None`: it shows neither.
pub(super) fn receiver_held(facts: &Facts, context: &Context<'_>) -> Option<bool> {
    let tick = context.receiver_clock.tick(facts.duration_ns())?;
    let (ticks, apart_ms) = facts.answer.apart.filter(|&(ticks, _)| ticks < 1 << 31)?;
    let late_ns = (u64::from(apart_ms) * NS_PER_MS).saturating_sub(tick.apart_most_ns(ticks));
    if late_ns >= held_ns(facts) / 4 * 3 {
        return Some(false);
    }
    (tick.apart_least_ns(ticks) >= held_ns(facts) / 2).then_some(true)
}

/// Returns whether the sender's own clock shows that it sent what came next within half of the time
/// until that was captured, or neither side's clock advanced.
pub(super) fn did_not_wait(facts: &Facts, context: &Context<'_>) -> bool {
    let after = &facts.after;
    let waited_ns = after.next_data_ns.map_or(0, NonZeroU64::get);
    let waited_ns = waited_ns.saturating_sub(facts.data.last_ns);
    let tick = context.flow.sender_clock.tick(waited_ns);
    match tick {
        Some(tick) => {
            let apart_ns = after.next_ticks.map(|ticks| tick.apart_most_ns(ticks));
            apart_ns.is_some_and(|ns| ns < waited_ns / 2)
        }
        None => {
            let clocks = [&context.flow.sender_clock, context.receiver_clock];
            let stood = [after.next_ticks, facts.answer.apart.map(|apart| apart.0)];
            stood == [Some(0); 2] && clocks.iter().all(|clock| clock.has_ticks_of(waited_ns / 4))
        }
    }
}

/// Judges a late acknowledgement of a whole flight, and of what was sent into the silence to
/// probe it.
fn of_many(facts: &Facts, held_ns: u64, context: &Context<'_>) -> Option<Finding> {
    let usual = facts.answer.delivered_bytes <= 2 * facts.data.mss_bytes;
    let segments = facts
        .answer
        .delivered_bytes
        .div_ceil(facts.data.mss_bytes.max(1));
    // Receivers acknowledge two segments at once, or more where they gather segments.
    if segments <= (2 * context.flow.segments_per_ack()).max(3) && segments > 2 {
        return held_back(facts, held_ns, context).map(|mut finding| {
            finding.confidence = finding.confidence.min(Confidence::Medium);
            finding
        });
    }
    let at_receiver = context.view == View::Receiver;
    // All of it came late only if the rest follows at once.
    let rest = facts.answer.delivered_bytes + facts.after.soon_bytes;
    if usual && !at_receiver && rest * 2 < facts.under_way.bytes {
        return None;
    }
    if usual && !at_receiver {
        let text = format!(
            "acknowledgements came {} late, one after the other as usual: nothing was lost, and \
             all was delayed",
            ms(held_ns)
        );
        return Some(Finding::new(Cause::DelaySpike, Confidence::Low, text));
    }
    if at_receiver {
        return None; // the capture does not show who held it back, if it left just here
    }
    let text = format!(
        "one acknowledgement told of {segments} segments after {}: those in between were lost, \
         or came in a heap, or the receiver gathers so many",
        ms(held_ns)
    );
    Some(Finding::new(Cause::AckLoss, Confidence::Low, text))
}

/// Judges an acknowledgement that was late while one new segment was sent. A sender that waits
/// until outstanding data is acknowledged still sends a full segment as soon as it has one (RFC
/// 1122, 4.2.3.4): the receiver caused the wait before all the same. A probe by new data looks
/// like it, except for its time and the repair that follows.
fn held_back_meanwhile(facts: &Facts, held_ns: u64, context: &Context<'_>) -> Option<Finding> {
    if facts.after.retransmissions > 0 {
        return None;
    }
    // The acknowledgement was held back since the beginning, and the last data came later. An
    // acknowledgement that comes sooner after that data than a round trip does not answer it:
    // the acknowledgement may have let the data go, and the capture have the two in the other
    // order.
    let answer_ns = facts.end_ns.saturating_sub(facts.data.last_ns);
    let is_answer = answer_ns >= facts.trips.receiver_rtt_ns;
    if is_answer && !is_delayed_ack(held_ns) {
        return None;
    }
    held_back(facts, held_ns, context)
}

/// Judges a late acknowledgement of one or two segments: a receiver may wait for more.
fn held_back(facts: &Facts, held_ns: u64, context: &Context<'_>) -> Option<Finding> {
    if !HELD_BACK_NS.contains(&held_ns) {
        return None;
    }
    if !facts.goes_on_at_once() && facts.after.retransmissions == 0 {
        // The sender did not wait for it.
        return Some(Finding::idle());
    }
    if facts.answer.has_data || facts.after.peer_spoke {
        return Some(Finding::idle()); // it came with an answer, which the sender waited for
    }
    if facts.data.sends_small_ones && facts.under_way.bytes < facts.data.mss_bytes {
        return Some(Finding::idle()); // it does not wait for acknowledgements with so little
    }
    let is_known = is_delayed_ack(held_ns);
    if let Some(finding) = window::filled(facts, is_known) {
        return Some(finding);
    }
    // What the receiver sent meanwhile, or its clock, says where the acknowledgement was.
    if let Some(sent) = facts
        .answer
        .sent
        .filter(|&sent| sent > 1 && context.view != View::Receiver)
    {
        let text = format!(
            "by the numbers of its packets the receiver sent {} more before the acknowledgement that \
             ended {}: they were lost before the capture",
            sent - 1,
            ms(held_ns)
        );
        return Some(Finding::new(Cause::AckLoss, Confidence::Low, text));
    }
    if did_not_wait(facts, context) {
        let text = format!(
            "by the sender's own clock it went on at once: the packets of {} were held up before \
             they were captured, or by the capture",
            ms(held_ns)
        );
        return Some(Finding::new(Cause::DelaySpike, Confidence::Low, text));
    }
    if receiver_held(facts, context) == Some(false) {
        let text = format!(
            "by the receiver's own clock the acknowledgement was sent when the data came: it was \
             {} on its way",
            ms(held_ns)
        );
        return Some(Finding::new(Cause::DelaySpike, Confidence::Medium, text));
    }
    let room = facts.gap.room_least_bytes.unwrap_or(u64::MAX);
    // What then fills the room to its edge may have waited for it.
    let is_enough = room >= facts.data.mss_bytes || room > facts.after.burst_bytes;
    let has_room = facts.window.is_room_known && is_enough;
    // Where segments are lost before the capture, the sender may have sent more.
    let may_lack = context.view != View::Sender && context.flow.counts().lost_before > 0;
    let confidence = if held_ns < facts.trips.receiver_rtt_ns {
        Confidence::Low
    } else if is_known && has_room && !may_lack && context.view != View::Unknown {
        Confidence::High
    } else {
        Confidence::Medium
    };
    let text = format!(
        "with {} bytes under way the sender sent no more, and the receiver acknowledged them \
         only after {}",
        facts.under_way.bytes,
        ms(held_ns)
    );
    Some(Finding::new(Cause::DelayedAck, confidence, text))
}
