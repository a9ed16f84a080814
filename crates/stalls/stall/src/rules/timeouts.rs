// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules for pauses in which something was retransmitted.

use units::time::{NS_PER_MS, NS_PER_S};

use super::finding::{Context, Finding};
use crate::cause::{Cause, Confidence, Side};
use crate::flow::facts::{Closed, Facts, Retransmitted};
use crate::flow::state::acks::Answered;
use crate::history::RetransmissionKind;
use crate::predictions::{DUPACK_THRESHOLD, WHOLE_FLIGHT};
use crate::vantage::{View, ms};

/// Longest first timeout in use is 3 s (RFC 1122, 4.2.3.1), and clocks tick each half second.
const LONGEST_FIRST_NS: u64 = 3500 * NS_PER_S / 1000;
/// Each path carries packets of 1280 bytes (RFC 8200, 5): with timestamps, so much data.
const CARRIED_BYTES: u64 = 1208;
/// Least timeout of stacks that follow RFC 6298, 2.4.
const RTO_LEAST_NS: u64 = NS_PER_S;
/// With a first timeout of a second (RFC 6298, 2.4) the second is over after three; with the round
/// trip, a little later.
const LONGEST_SECOND_NS: u64 = 3250 * NS_PER_MS;

/// Finds a path on which full segments never came through, and small ones did. What is captured at
/// the receiver came through.
pub(super) fn large_packets_lost(facts: &Facts, context: &Context<'_>) -> Option<Finding> {
    let gap = &facts.gap;
    let size = gap.retransmitted_bytes_max.min(facts.data.mss_bytes);
    let passed = facts.under_way.delivered_max_bytes;
    let reports = facts.under_way.sacked_bytes > 0 || gap.duplicate_acks.count() > 0;
    let has_small = gap.retransmitted_bytes_min * 10 < size * 9;
    if facts.gap.from_receiver == 0 && facts.closed != Closed::Delivery && has_small {
        return None; // nothing small was answered either
    }
    if facts.answer.largest_bytes * 10 >= size * 9 {
        return None; // one of them did come through, and ended the stop
    }
    if gap.timeouts < 2 || size <= CARRIED_BYTES || context.view == View::Receiver {
        return None;
    }
    if passed * 10 > size * 9 || (passed == 0 && !reports) {
        return None;
    }
    let text = format!(
        "segments of {size} bytes were sent {} times in vain, and none that large ever came \
         through; the largest that did has {passed}",
        gap.timeouts + 1
    );
    let confidence = if reports {
        Confidence::High
    } else {
        Confidence::Medium
    };
    let finding = Finding::new(Cause::PmtuBlackHole, confidence, text);
    Some(finding.shown_by(gap.retransmitted.iter()))
}

/// Finds a capture without any segment of the receiver: it does not show what the sender waited
/// for.
pub(super) fn one_direction(facts: &Facts, context: &Context<'_>) -> Option<Finding> {
    if context.flow.counts().acks > 0 {
        return None;
    }
    let copies = facts.gap.retransmitted.count();
    let text = match copies {
        0 => "only one direction was captured: whether the sender waited or had no more is not \
              to be seen"
            .to_owned(),
        _ => format!(
            "only one direction was captured: the sender sent {copies} segments again, and what \
             came back is not to be seen"
        ),
    };
    let finding = Finding::new(Cause::Unknown, Confidence::Low, text);
    Some(finding.shown_by(facts.gap.retransmitted.iter()))
}

/// Finds retransmissions that were never answered. A host that is gone and a path that is
/// broken look alike.
pub(super) fn never_answered(facts: &Facts, _: &Context<'_>) -> Option<Finding> {
    let gap = &facts.gap;
    let is_open_end = matches!(facts.closed, Closed::Capture | Closed::Reset);
    if !is_open_end || facts.gap.from_receiver > 0 || gap.retransmitted.count() == 0 {
        return None;
    }
    let until = match facts.closed {
        Closed::Reset => "until a reset ended it",
        _ => "until the capture ends",
    };
    let text = format!(
        "nothing came back for {}, {until}; {}: the receiving host was gone, or the path to it",
        ms(facts.duration_ns()),
        copies(facts)
    );
    let finding = Finding::new(Cause::SilentPath, Confidence::Medium, text);
    Some(finding.on(Side::Unknown).shown_by(gap.retransmitted.iter()))
}

/// Says in words how often the first unacknowledged segment was retransmitted.
fn copies(facts: &Facts) -> String {
    let gap = &facts.gap;
    let count = match gap.head_copies {
        1 => "the first segment under way was sent once more".to_owned(),
        count => format!("the first segment under way was sent {count} times more"),
    };
    match gap.backoffs {
        0 => count,
        _ => format!("{count}, the last time {} later", ms(gap.head_interval_ns)),
    }
}

/// Finds more than one timeout.
pub(super) fn repeated(facts: &Facts, context: &Context<'_>) -> Option<Finding> {
    let gap = &facts.gap;
    let by_timer = gap.timeouts + gap.probes > 0;
    if gap.timeouts < 2 && (gap.head_copies < 2 || !by_timer) {
        return repeated_unseen(facts, context);
    }
    let segments = facts.under_way.bytes.div_ceil(facts.data.mss_bytes.max(1));
    let is_silent = facts.gap.from_receiver == 0 && facts.under_way.sacked_bytes == 0;
    let packets = gap.retransmitted.iter();
    let took = ms(facts.duration_ns());
    if is_silent && (segments >= DUPACK_THRESHOLD || gap.timeouts >= 3) {
        let text = format!(
            "for {took} nothing came back of {segments} segments under way; {}",
            copies(facts)
        );
        // A host that slept for the time would look the same.
        let finding = Finding::new(Cause::SilentPath, proof(facts, context), text);
        let finding = finding.at_most(Confidence::Medium);
        return Some(finding.shown_by(packets));
    }
    let answered = match facts.answer.copy {
        Answered::Last => "; the answer is to the last copy",
        Answered::Older | Answered::Unknown => "",
    };
    let text = format!("{}{answered}: {took} in all", copies(facts));
    if gap.timeouts >= 3 && gap.backoffs > 0 {
        let finding = Finding::new(Cause::RtoStorm, Confidence::Medium, text);
        return Some(finding.shown_by(packets));
    }
    let confidence = proof(facts, context);
    let finding = Finding::new(Cause::RtoLostRetransmission, confidence, text);
    Some(finding.shown_by(packets))
}

/// Returns the confidence that copies were lost, and not their acknowledgements. The proof is
/// an answer to the last copy, at a capture that saw all copies, of a receiver that would report
/// a copy of what it had (RFC 2883): without such a report, it answers both alike.
fn proof(facts: &Facts, context: &Context<'_>) -> Confidence {
    let would_report = context.flow.uses_sack() && !facts.answer.reported_twice;
    match (facts.answer.copy, context.view) {
        (Answered::Last, View::Sender) if would_report => Confidence::High,
        (_, View::Receiver) => Confidence::Medium,
        _ if would_report => Confidence::Medium,
        _ => Confidence::Low,
    }
}

/// Returns whether a retransmission comes too late to be the first one: a timer sends the first
/// one sooner. Before it has measured round trips, it waits for the longest time in use.
pub(super) fn is_late_repeat(facts: &Facts, at_ns: u64) -> bool {
    let timer_ns = facts.trips.rto_ns.max(RTO_LEAST_NS).saturating_mul(17) / 10;
    let least_ns = if facts.trips.is_timer_measured {
        timer_ns
    } else {
        timer_ns.max(LONGEST_FIRST_NS)
    };
    at_ns.saturating_sub(facts.start_ns) >= least_ns
}

/// Returns whether a repair came no later than the answer to what was captured last: away from the
/// sender, that is a round trip behind it.
fn is_within_a_round(facts: &Facts, retransmitted: &Retransmitted, context: &Context<'_>) -> bool {
    let way_ns = facts.trips.sender_rtt_ns;
    let waited_ns = retransmitted.at_ns.saturating_sub(facts.start_ns);
    context.view == View::Receiver && way_ns > 0 && waited_ns < way_ns.saturating_mul(3) / 2
}

/// Finds a single captured timeout that is so late that others must have preceded it.
fn repeated_unseen(facts: &Facts, context: &Context<'_>) -> Option<Finding> {
    let gap = &facts.gap;
    let retransmitted = gap.first_timeout?;
    if context.view == View::Sender || !is_late_repeat(facts, retransmitted.at_ns) {
        return None;
    }
    if retransmitted.missed == Some(0) {
        return None; // its numbers show that it sent nothing before: its timer was long
    }
    let waited_ns = retransmitted.at_ns.saturating_sub(facts.start_ns);
    let packets = gap.retransmitted.iter();
    if facts.under_way.sacked_bytes == 0
        && facts.gap.from_receiver == 0
        && retransmitted.copies_before > 0
    {
        let text = format!(
            "nothing passed for {}, and the first that did was a repeat: those before it were \
             lost as well",
            ms(waited_ns)
        );
        let finding = Finding::new(Cause::SilentPath, Confidence::Medium, text);
        return Some(finding.shown_by(packets));
    }
    // Three timeouts, each twice as long as the one before, take seven times the first; of three,
    // two did not come here.
    let is_long = waited_ns >= facts.trips.rto_ns.saturating_mul(6).max(LONGEST_SECOND_NS);
    let is_third = retransmitted.missed.is_some_and(|missed| missed >= 2);
    // What was captured at the receiver behind a hole has arrived, reported or not.
    let is_passed = context.view == View::Receiver
        && retransmitted.copies_before == 0
        && retransmitted.sent_above > 0;
    let is_hole = facts.under_way.sacked_bytes > 0 || is_passed;
    if is_hole && (is_long || is_third) {
        let text = format!(
            "a hole was filled only after {}, when three timeouts or more had passed: their \
             repairs were lost before the capture",
            ms(waited_ns)
        );
        let finding = Finding::new(Cause::RtoStorm, Confidence::Medium, text);
        return Some(finding.shown_by(packets));
    }
    if is_hole {
        let text = format!(
            "a hole was filled only after {}: a repair before was lost on its way to the capture",
            ms(waited_ns)
        );
        let finding = Finding::new(Cause::RtoLostRetransmission, Confidence::Medium, text);
        return Some(finding.shown_by(packets));
    }
    None
}

/// Finds one timeout, of a segment that had been retransmitted before.
pub(super) fn of_lost_retransmission(facts: &Facts, context: &Context<'_>) -> Option<Finding> {
    let gap = &facts.gap;
    let retransmitted = gap.first_timeout?;
    let enough = DUPACK_THRESHOLD * facts.data.mss_bytes;
    let was_repaired = retransmitted.copies_before >= 2
        && retransmitted.kind_before != Some(RetransmissionKind::Probe);
    // A capture at the receiver does not show the lost repair, but with so much reported the
    // sender must have sent it. Without SACK, data that passed a capture at the receiver has
    // arrived there.
    let arrived_above = match context.view {
        View::Sender => 0,
        View::Receiver => retransmitted.sacked_above.max(retransmitted.sent_above),
        View::Middle | View::Unknown => retransmitted.sacked_above,
    };
    let is_late = !is_within_a_round(facts, &retransmitted, context);
    let must_have_been = retransmitted.copies_before == 0 && arrived_above >= enough && is_late;
    let packets = gap.retransmitted.iter();
    if must_have_been {
        let text = format!(
            "a hole below {} bytes that had arrived was filled only after {}: the repair that so \
             much makes due was lost before the capture, and a timeout sent another",
            arrived_above,
            ms(facts.duration_ns())
        );
        let finding = Finding::new(Cause::RtoLostRetransmission, Confidence::Medium, text);
        return Some(finding.shown_by(packets));
    }
    if !was_repaired {
        return None;
    }
    let sent_for = ms(retransmitted.at_ns.saturating_sub(retransmitted.last_ns));
    if retransmitted.was_knowable {
        let text = format!(
            "a retransmission was lost, data sent after it was reported as arrived, and still \
             the sender waited {sent_for} for its timer: its recovery does not find lost \
             retransmissions"
        );
        let finding = Finding::new(Cause::RtoLostRetransmission, Confidence::Medium, text);
        return Some(finding.on(Side::Sender).shown_by(packets));
    }
    let text = format!(
        "a retransmission was lost, and nothing sent after it came back to tell: the timer took \
         {sent_for}"
    );
    let confidence = proof(facts, context);
    let finding = Finding::new(Cause::RtoLostRetransmission, confidence, text);
    Some(finding.shown_by(packets))
}

/// Finds one timeout, of a segment that was lost for the first time.
pub(super) fn first(facts: &Facts, context: &Context<'_>) -> Option<Finding> {
    let gap = &facts.gap;
    let retransmitted = gap.first_timeout?;
    if is_within_a_round(facts, &retransmitted, context) {
        return None; // what told of the loss may have brought the repair
    }
    let behind = segments_behind(facts, &retransmitted);
    let under_way = facts.under_way.bytes.div_ceil(facts.data.mss_bytes.max(1));
    // A packet that the sender's device cuts up, or the receiver's put together, is lost as one.
    let at_once = under_way.min(facts.under_way.packets.into());
    let packets = gap.retransmitted.iter();
    // SACK shows the hole; without it only the answer shows which copy arrived.
    let sure = match context.view {
        // What the answer delivers beside the repair had arrived without a report.
        View::Sender
            if facts.under_way.sacked_bytes > 0
                && facts.answer.delivered_bytes <= retransmitted.bytes =>
        {
            Confidence::High
        }
        _ if facts.answer.delivered_bytes > retransmitted.bytes => {
            proof(facts, context).min(Confidence::Medium)
        }
        _ => proof(facts, context),
    };
    let timer = ms(retransmitted.at_ns.saturating_sub(facts.start_ns));
    if behind == 0 && facts.under_way.is_recovering {
        let text = format!(
            "the sender was repairing a flight of which more was lost, and went on with the next \
             loss only by its timer, after {timer}: its recovery repairs one loss in a flight"
        );
        let finding = Finding::new(Cause::RtoOther, Confidence::Low, text);
        return Some(finding.on(Side::Unknown).shown_by(packets));
    }
    if behind == 0 && at_once >= WHOLE_FLIGHT && facts.gap.from_receiver == 0 && has_lost_all(facts)
    {
        let text = format!(
            "all {under_way} segments under way were lost at once; the timer repaired it \
             after {timer}"
        );
        let finding = Finding::new(Cause::SilentPath, Confidence::Medium, text);
        return Some(finding.shown_by(packets));
    }
    if behind == 0 && had_arrived(facts, &retransmitted, context) {
        return Some(arrived_unanswered(facts));
    }
    if behind == 0 {
        let text = format!(
            "of the last {under_way} segments before the pause the first or all were lost: none \
             behind was reported, and the timer repaired it after {timer}"
        );
        return Some(Finding::new(Cause::RtoTail, sure, text).shown_by(packets));
    }
    // What the answer delivers beside the repair had arrived as well, and its reports were lost.
    // Without SACK, duplicate acknowledgements told of some of the same segments.
    let unreported = facts
        .answer
        .delivered_bytes
        .saturating_sub(retransmitted.bytes);
    let unreported = unreported / facts.data.mss_bytes.max(1);
    let arrived = match facts.under_way.sacked_bytes {
        0 => behind.max(unreported),
        _ => behind + unreported,
    };
    if behind < DUPACK_THRESHOLD && arrived < DUPACK_THRESHOLD {
        let text = format!(
            "a loss with {behind} segments behind it that arrived, where {DUPACK_THRESHOLD} are \
             needed to repair it at once; the timer did after {timer}"
        );
        return Some(Finding::new(Cause::RtoFewDupacks, sure, text).shown_by(packets));
    }
    let text = format!(
        "{arrived} segments behind a loss had arrived, {behind} were reported before, and only the \
         timer repaired it, after {timer}"
    );
    let finding = Finding::new(Cause::RtoOther, Confidence::Low, text);
    Some(finding.on(Side::Unknown).shown_by(packets))
}

/// Returns whether the data had arrived before it was sent again: it was captured at the
/// receiver, and the answer to the repair acknowledges everything.
pub(super) fn had_arrived(
    facts: &Facts,
    retransmitted: &Retransmitted,
    context: &Context<'_>,
) -> bool {
    context.view == View::Receiver
        && retransmitted.copies_before > 0
        && facts.closed == Closed::Delivery
        && facts.answer.delivered_bytes >= facts.under_way.bytes
}

/// Judges data that had arrived and was not acknowledged before the sender's timer repeated it.
pub(super) fn arrived_unanswered(facts: &Facts) -> Finding {
    if !facts.goes_on_at_once() {
        return Finding::idle(); // nothing waited for the acknowledgement
    }
    let text = format!(
        "the data came in here and was not acknowledged for {}, until the sender's timer \
         repeated it",
        ms(facts.duration_ns())
    );
    let finding = Finding::new(Cause::DelayedAck, Confidence::Medium, text);
    finding.shown_by(facts.gap.retransmitted.iter())
}

/// Returns whether the answer to the repair delivered nothing but the repair itself.
fn has_lost_all(facts: &Facts) -> bool {
    facts.closed != Closed::Delivery
        || facts.answer.delivered_bytes <= facts.gap.retransmitted_bytes_max
}

/// Returns the number of segments that arrived behind the retransmitted one, as the receiver
/// reported: by SACK, else by duplicate acknowledgements.
fn segments_behind(facts: &Facts, retransmitted: &Retransmitted) -> u64 {
    let reported = retransmitted
        .sacked_above
        .div_ceil(facts.data.mss_bytes.max(1));
    reported.max(facts.gap.duplicate_acks.count().min(DUPACK_THRESHOLD))
}

/// Finds a tail loss probe without a timeout.
pub(super) fn probe(facts: &Facts, context: &Context<'_>) -> Option<Finding> {
    let gap = &facts.gap;
    let retransmitted = gap.first_probe?;
    if gap.timeouts > 0 {
        return None;
    }
    // A timeout repairs the first outstanding segment. Where that is the last one as well, a probe
    // and the timeout of a stack without probes are the same packet.
    if retransmitted.is_head && had_arrived(facts, &retransmitted, context) {
        return Some(arrived_unanswered(facts));
    }
    if retransmitted.is_head {
        let text = format!(
            "the last segment was lost, and its sender's timer repaired it after {}",
            ms(retransmitted.at_ns.saturating_sub(facts.start_ns))
        );
        let finding = Finding::new(Cause::RtoTail, proof(facts, context), text);
        let finding = finding.at_most(Confidence::Medium);
        return Some(finding.shown_by(gap.retransmitted.iter()));
    }
    let text = format!(
        "the tail was lost; after {} a probe of {} bytes brought the answer that repaired it",
        ms(retransmitted.at_ns.saturating_sub(facts.start_ns)),
        retransmitted.bytes
    );
    let confidence = match facts.closed {
        Closed::Delivery => proof(facts, context),
        _ => Confidence::Low,
    };
    let finding = Finding::new(Cause::TailLossProbe, confidence, text);
    Some(finding.shown_by(gap.retransmitted.iter()))
}

/// Finds a tail loss probe that was new data: a sender that has new data uses it for the probe
/// (RFC 8985, section 7.3). It was sent into the silence, and its answer reported a loss.
pub(super) fn probe_by_new_data(facts: &Facts, context: &Context<'_>) -> Option<Finding> {
    let gap = &facts.gap;
    let is_probe = gap.new_segments == 1 && gap.retransmitted.count() == 0;
    let reported_loss = facts.closed == Closed::Delivery && facts.after.retransmissions > 0;
    if !is_probe || !reported_loss || facts.under_way.bytes <= facts.data.last_bytes {
        return None;
    }
    let text = format!(
        "the tail was lost; after {} a probe, {} bytes of new data, brought the answer that \
         made the sender repair it",
        ms(facts.data.last_ns.saturating_sub(facts.start_ns)),
        facts.data.last_bytes
    );
    // A probe comes after two round trips (RFC 8985, 7.2); what comes at another time is new data
    // by chance.
    let waited_ns = facts.data.last_ns.saturating_sub(facts.start_ns);
    let due_ns = facts.trips.rtt_ns.unwrap_or(0);
    let is_due = waited_ns >= due_ns / 4 * 5 && waited_ns <= 4 * due_ns + 10 * NS_PER_MS;
    let confidence = match context.view {
        View::Sender if is_due && context.origin.is_some() => Confidence::Medium,
        _ => Confidence::Low,
    };
    Some(Finding::new(Cause::TailLossProbe, confidence, text))
}

/// Finds a pause in spite of retransmissions on acknowledgements.
pub(super) fn fast_only(facts: &Facts, _: &Context<'_>) -> Option<Finding> {
    let gap = &facts.gap;
    if gap.fast == 0 {
        return None;
    }
    let packets = gap.retransmitted.iter();
    let text = format!(
        "{} repairs were under way and none was answered for {}",
        gap.retransmitted.count(),
        ms(facts.duration_ns())
    );
    // Whatever lost the data, what then held up the repair is not known.
    Some(Finding::new(Cause::Unknown, Confidence::Low, text).shown_by(packets))
}
