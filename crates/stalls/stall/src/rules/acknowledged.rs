// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules for repairs of what had arrived: acknowledgements that were lost, late, or never sent.

use units::time::NS_PER_MS;

use super::finding::{Context, Finding};
use super::timeouts::{arrived_unanswered, is_late_repeat};
use crate::cause::{Cause, Confidence, Side};
use crate::flow::facts::{Closed, Facts};
use crate::flow::state::acks::Answered;
use crate::predictions::{DUPACK_THRESHOLD, WHOLE_FLIGHT, is_delayed_ack};
use crate::vantage::{View, ms};

/// Up to so many repeats are a probe and the timer's.
const FEW_REPEATS: u64 = 3;
/// After so many of the timer's times without a repeat nothing passes.
const DEAF_TIMERS: u64 = 8;
/// Most stacks hold an acknowledgement back no longer than this; RFC 1122 allows half a second.
const LONGEST_HELD_NS: u64 = 200 * NS_PER_MS;

/// Finds retransmissions of data whose acknowledgement was captured: it was lost, or far too
/// late, between the capture and the sender.
pub(super) fn retransmitted_acked(facts: &Facts, context: &Context<'_>) -> Option<Finding> {
    let gap = &facts.gap;
    if gap.retransmitted_acked.count() == 0 || gap.retransmitted.count() > 0 {
        return None;
    }
    let first_ns = gap.first_acked_ns;
    let is_late =
        !facts.peer_spoke() && is_late_repeat(facts, first_ns) && context.view != View::Sender;
    // With few acknowledgements, a repeat that was lost as well is likely, but only the loss of
    // the acknowledgements is proved.
    let before = if is_late {
        format!("; nothing passed for {}", ms(first_ns - facts.start_ns))
    } else {
        String::new()
    };
    let text = format!(
        "the sender retransmitted {} times what the capture shows as acknowledged: the \
         acknowledgements did not reach it in time{before}",
        gap.retransmitted_acked.count()
    );
    let packets = gap.retransmitted_acked.iter();
    let known = &gap.known;
    if known.crossed {
        return Some(Finding::idle()); // the original had been held up, and came with its repeat
    }
    if known.at_repeat {
        let text = "the sender sent again what it knew to be acknowledged: its repeat echoes the \
                    acknowledgement, or what came later";
        let finding = Finding::new(Cause::Unknown, Confidence::Low, text.to_owned());
        return Some(finding.on(Side::Sender).shown_by(packets));
    }
    if known.late {
        let text = format!(
            "the sender sent {} segments again, and then went on with the acknowledgements of the \
             first copies: these were late, not lost",
            gap.retransmitted_acked.count()
        );
        let finding = Finding::new(Cause::DelaySpike, Confidence::Medium, text);
        return Some(finding.shown_by(packets));
    }
    // A retransmission that was sent before the acknowledgement can have reached the sender
    // does not show that the acknowledgement was lost.
    // It may have waited in a queue in front of the capture: one that has room for longer than
    // a timer takes is not known to stand there.
    if is_late && acks_lost(facts, context) >= DUPACK_THRESHOLD {
        // Some acknowledgements in a row were lost, and repeats before this one: nothing passed
        // in either direction.
        let text = format!(
            "nothing passed for {}: {} acknowledgements or more did not reach the sender, and the \
             repeat that came then is too late to be the first one",
            ms(first_ns - facts.start_ns),
            acks_lost(facts, context)
        );
        let finding = Finding::new(Cause::SilentPath, Confidence::Medium, text);
        return Some(finding.shown_by(gap.retransmitted_acked.iter()));
    }
    // Of a few, the first may be a probe, and the last the timer's. A sender that goes back to a
    // loss sends copies for as long as its flight lasts.
    let repeat_ns = match gap.retransmitted_acked.count() {
        ..=FEW_REPEATS => gap.last_acked_ns,
        _ => first_ns,
    };
    let waited_ns = repeat_ns.saturating_sub(facts.start_ns);
    let had_time = waited_ns > facts.trips.sender_rtt_ns.saturating_mul(2);
    let by_timer = had_time && waited_ns >= facts.trips.rto_ns / 10 * 8;
    // What the receiver said again ended the stop; the sender may have had no more to send.
    let end = gap.acked_answer.map(|at| (at.now, at.packet.get()));
    if !by_timer && !known.never {
        // One that waited, and then repeats what it does not know, lacked what was sent to it.
        let has_waited = had_time && known.is_lacking() && facts.closed == Closed::NewData;
        if !has_waited {
            return Some(Finding::idle());
        }
        let finding = Finding::new(Cause::AckLoss, Confidence::Low, text);
        return Some(finding.until(end).shown_by(packets));
    }
    if known.missed >= DUPACK_THRESHOLD {
        let text = format!(
            "nothing passed for {}: by the numbers of its packets the sender sent {} more that are \
             not in the capture, and it did not get what this side sent",
            ms(first_ns - facts.start_ns),
            known.missed
        );
        let finding = Finding::new(Cause::SilentPath, Confidence::Low, text);
        return Some(finding.shown_by(packets));
    }
    let room = gap.room_least_bytes.unwrap_or(u64::MAX);
    let is_open = gap.window_probes.count() == 0 && room >= facts.data.mss_bytes;
    if known.below_window {
        let text = format!(
            "{text}; it has a number below what the sender had of the other direction, for which a \
             host drops it"
        );
        let finding = Finding::new(Cause::AckLoss, Confidence::Low, text);
        return Some(finding.on(Side::Unknown).shown_by(packets));
    }
    // Only what the sender echoes afterwards tells that the acknowledgements never came.
    let confidence = match context.view {
        View::Receiver if is_open && !is_late && known.never => Confidence::High,
        _ => Confidence::Medium,
    };
    let finding = Finding::new(Cause::AckLoss, confidence, text);
    let finding = finding.until(end);
    Some(finding.shown_by(gap.retransmitted_acked.iter()))
}

/// Returns the number of acknowledgements in a row that the sender does not have, as it repeats
/// what they are about: at least so many, if the receiver acknowledged as it usually does.
fn acks_lost(facts: &Facts, context: &Context<'_>) -> u64 {
    let at_once_bytes = facts.data.mss_bytes * (2 * context.flow.segments_per_ack()).max(2);
    facts.gap.unknown_acked_bytes.div_ceil(at_once_bytes.max(1))
}

/// Finds retransmissions of data that had arrived.
pub(super) fn needless(facts: &Facts, context: &Context<'_>) -> Option<Finding> {
    let gap = &facts.gap;
    let reported = gap.spurious + facts.after.spurious + u64::from(are_both_answered(facts));
    if gap.retransmitted.count() == 0 || facts.closed != Closed::Delivery {
        return None;
    }
    if is_keepalive(facts) {
        return Some(Finding::idle());
    }
    let only_fast = gap.timeouts + gap.probes == 0;
    if only_fast && gap.overtaken + facts.after.overtaken > 0 {
        let text = "data that overtook other data made the sender repair what was not lost";
        let finding = Finding::new(Cause::Reordering, Confidence::Medium, text.to_owned());
        return Some(finding.shown_by(gap.retransmitted.iter()));
    }
    // The answer to the repair of the head acknowledges the whole flight: the rest had arrived.
    // A receiver reports such data at once (RFC 5681, 4.2), and no report was captured.
    let sent_above = gap
        .first_timeout
        .map_or(0, |retransmitted| retransmitted.sent_above);
    let all_at_once = facts.answer.delivered_bytes >= facts.under_way.bytes
        && sent_above > 0
        && gap.retransmitted_segments == 1
        && facts.under_way.sacked_bytes == 0
        && gap.duplicate_acks.count() == 0;
    let came_late = are_answers_of_before(facts) || facts.answer.copy == Answered::Older;
    if only_fast || (reported == 0 && !all_at_once && !came_late) {
        return None;
    }
    let covers_all = facts.answer.delivered_bytes * 10 >= facts.under_way.bytes * 9;
    let needed = facts.after.retransmissions > facts.after.spurious + gap.spurious + 2;
    let first_ns = gap
        .first_timeout
        .map_or(facts.start_ns, |retransmitted| retransmitted.at_ns);
    // A first copy that had arrived shows that repeats before this one did not matter; unless
    // nothing passed of a whole flight for so long.
    let is_deaf = first_ns > facts.start_ns + DEAF_TIMERS * facts.trips.rto_ns
        && facts.under_way.bytes >= WHOLE_FLIGHT * facts.data.mss_bytes;
    let no_matter = facts.answer.reported_twice && !is_deaf;
    let others_before =
        is_late_repeat(facts, first_ns) && context.view != View::Sender && !no_matter;
    // If each copy was reported as received twice, none was lost, however many there were.
    let several = gap.timeouts > 1
        && reported < gap.retransmitted.count()
        && facts.answer.copy != Answered::Older;
    if others_before || (!covers_all && !came_late && (several || needed)) {
        return None; // there was loss as well
    }
    let confidence = if reported > 0 || came_late || all_at_once {
        Confidence::Medium
    } else {
        Confidence::Low
    };
    let captured = gap
        .first_timeout
        .or(gap.first_probe)
        .filter(|retransmitted| retransmitted.copies_before > 0);
    if context.view == View::Receiver && captured.is_some() {
        // What leaves the receiver is captured: it sent no acknowledgement before.
        return Some(arrived_unanswered(facts));
    }
    // A repeat may bring new data, too.
    let sent_ns = captured.map_or(u64::MAX, |retransmitted| retransmitted.last_ns);
    let sent_ns = sent_ns.min(facts.data.last_ns);
    let wait_ns = facts.end_ns.saturating_sub(sent_ns);
    if let Some(held_ns) = held_back(facts, sent_ns) {
        let text = format!(
            "the data had arrived, and the repair was needless: a receiver may hold back the \
             acknowledgement of so little for the {} that it took",
            ms(held_ns)
        );
        let finding = Finding::new(Cause::DelayedAck, Confidence::Medium, text);
        return Some(finding.shown_by(gap.retransmitted.iter()));
    }
    let late = || {
        format!(
            "what was retransmitted had arrived: its acknowledgement came {} after the last data",
            ms(wait_ns)
        )
    };
    let (cause, confidence, text) = match was_it_lost(facts) {
        Some(true) => {
            let text = "the answer reports the repair as received twice: the data had arrived, and \
                        its own acknowledgement did not come";
            (Cause::AckLoss, confidence, text.to_owned())
        }
        Some(false) => (Cause::DelaySpike, confidence, late()),
        None if !covers_all => {
            let text = format!("{}, and those of the rest came behind it", late());
            (Cause::DelaySpike, confidence, text)
        }
        None => {
            let text = "the data had arrived; no acknowledgement of it came before the repair: it \
                        was lost, or late by as much";
            (Cause::AckLoss, Confidence::Low, text.to_owned())
        }
    };
    let finding = Finding::new(cause, confidence, text);
    Some(finding.shown_by(gap.retransmitted.iter()))
}

/// Returns whether all that was repeated is one byte that had arrived, after longer than any timer
/// waits for the first repeat: it asks for a sign of life.
fn is_keepalive(facts: &Facts) -> bool {
    let first = facts.gap.first_timeout.or(facts.gap.first_probe);
    let is_late = first.is_some_and(|first| {
        let since_ns = first.at_ns.saturating_sub(first.last_ns);
        first.copies_before == 1 && since_ns > facts.longest_timer_ns()
    });
    is_late && facts.under_way.bytes == 1 && facts.answer.reported_twice
}

/// Returns for how long a receiver may have held back the acknowledgement of one or two segments,
/// until its timer, or the repair, made it answer.
fn held_back(facts: &Facts, sent_ns: u64) -> Option<u64> {
    if facts.data.unanswered_segments > 2 {
        return None;
    }
    let held_ns = facts
        .end_ns
        .saturating_sub(sent_ns + facts.trips.receiver_rtt_ns);
    // The repair came before the longest timer in use, and was answered at once.
    let repaired_ns = facts.gap.last_resent_ns.saturating_sub(sent_ns);
    let by_repair = facts.answer.reported_twice && repaired_ns < LONGEST_HELD_NS;
    (by_repair || is_delayed_ack(held_ns)).then_some(held_ns)
}

/// Returns whether the acknowledgement of data that had arrived was lost, as far as the answer
/// that ended the pause tells: one that reports the repair as received twice is the repair's own,
/// one that comes sooner than that can, or next after the one before, is the first copy's.
fn was_it_lost(facts: &Facts) -> Option<bool> {
    if facts.answer.reported_twice {
        return Some(facts.answer.sent != Some(1));
    }
    let since_ns = facts.end_ns.saturating_sub(facts.gap.last_resent_ns);
    let is_too_soon = since_ns < facts.trips.receiver_rtt_ns / 4 * 3;
    let is_late = is_too_soon
        || are_both_answered(facts)
        || are_answers_of_before(facts)
        || facts.answer.copy == Answered::Older
        || facts.answer.sent == Some(1);
    is_late.then_some(false)
}

/// Returns whether the only segment and its repeat were each answered: both arrived. Without
/// reports of duplicates nothing else tells.
fn are_both_answered(facts: &Facts) -> bool {
    let is_alone = facts.under_way.packets == 1 && facts.gap.retransmitted.count() == 1;
    is_alone && facts.after.extra_acks > 0
}

/// Returns whether the first answer was followed by answers for more than had been
/// retransmitted, before anything sent since can have been answered: the rest of the flight had
/// been on its way.
fn are_answers_of_before(facts: &Facts) -> bool {
    let gap = &facts.gap;
    let repeats = gap
        .retransmitted_segments
        .saturating_mul(facts.data.mss_bytes);
    gap.timeouts > 0 && facts.after.soon_bytes >= repeats + DUPACK_THRESHOLD * facts.data.mss_bytes
}
