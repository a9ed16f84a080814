// SPDX-License-Identifier: MIT OR Apache-2.0
//! Asks a pause the questions of `predictions`.

use super::finding::Context;
use super::{idle, late, timeouts, window};
use crate::flow::facts::{Closed, Facts};
use crate::flow::state::acks::Answered;
use crate::predictions::{Answers, Ask, HELD_BACK_NS, is_delayed_ack};
use crate::vantage::View;

/// Returns the answers of a pause.
pub(super) fn answers(facts: &Facts, context: &Context<'_>) -> Answers {
    let gap = &facts.gap;
    let at_sender = context.view == View::Sender;
    let at_receiver = context.view == View::Receiver;
    let ended = |by: Closed| match facts.closed {
        Closed::NewData | Closed::Delivery => Some(facts.closed == by),
        Closed::Reset | Closed::Capture => None,
    };
    let by_ack = ended(Closed::Delivery) == Some(true);
    let by_data = ended(Closed::NewData) == Some(true);
    // A probe may be new data (RFC 8985, 7.3): the repeat follows.
    let after = facts.after.retransmissions * u64::from(gap.new_segments == 1);
    let again = gap.retransmitted.count() + gap.retransmitted_acked.count() + after > 0;
    // Away from the sender, what was lost before is not seen, nor what repeats it.
    let saw_all = at_sender || by_ack || facts.next.missed == Some(0);
    let of_sender = |known: Option<bool>| known.or(at_sender.then_some(true)).filter(|_| by_data);
    // Near the receiver, what it holds back, or repeats not, is its own doing, for however long.
    let of_receiver = |is: bool| (is || !at_receiver).then_some(is);
    let held = if by_ack && late::did_not_wait(facts, context) {
        Some(false) // whatever the packets' times are
    } else {
        late::receiver_held(facts, context).filter(|_| !at_receiver)
    };
    let complete = facts.answer.sent.map(|sent| sent == 1 || at_receiver);
    let is_timed = by_ack && !again && held != Some(false) && complete != Some(false);
    let is_short = facts.duration_ns() < HELD_BACK_NS.end + facts.trips.receiver_rtt_ns;
    let timed = is_timed.then(|| is_delayed_ack(late::held_ns(facts)));
    let by_timer = gap.timeouts + gap.probes > 0;
    let several = gap.timeouts >= 2 || gap.head_copies >= 2 && by_timer;
    let first = gap.first_timeout.or(gap.first_probe);
    let behind_bytes = first.map_or(facts.under_way.sacked_bytes, |first| first.sacked_above);
    let largest_bytes = facts
        .under_way
        .delivered_max_bytes
        .max(facts.answer.largest_bytes);
    let all = [
        (Ask::UnderWay, under_way(facts, context)),
        (Ask::EndedByData, ended(Closed::NewData)),
        (Ask::EndedByAck, ended(Closed::Delivery)),
        (Ask::Repeated, (again || saw_all).then_some(again)),
        (
            Ask::RepeatedAcked,
            Some(gap.retransmitted_acked.count() > 0),
        ),
        (Ask::FirstCopyArrived, first_copy_arrived(facts, context)),
        (
            Ask::BehindReported,
            Some(behind_bytes + gap.duplicate_acks.count() > 0),
        ),
        (
            Ask::SentTwiceMore,
            (several || at_sender || facts.next.missed == Some(0)).then_some(several),
        ),
        (Ask::Room, room(facts)),
        (Ask::TookForClosed, took_for_closed(facts, context)),
        (Ask::PeerSpoke, Some(facts.is_asked())),
        (
            Ask::RequestAcked,
            facts.is_asked().then(|| idle::had_request(facts)),
        ),
        (
            Ask::SenderIsClient,
            context.knows_roles.then_some(context.is_client),
        ),
        (
            Ask::SenderRested,
            of_sender(idle::rested(facts, context).filter(|_| !at_sender)),
        ),
        (
            Ask::SenderKnewAck,
            of_sender(facts.next.knows_ack.filter(|_| !at_sender)),
        ),
        (
            Ask::SenderKnewRequest,
            of_sender(facts.next.knows_request.filter(|_| !at_sender)),
        ),
        (
            Ask::FewUnderWay,
            late::is_few(facts, context).and_then(of_receiver),
        ),
        (Ask::WithinHold, of_receiver(is_short)),
        (
            Ask::TimerOfReceiver,
            timed.or((!is_short && !at_receiver).then_some(false)),
        ),
        (
            Ask::ReceiverHeld,
            held.or(at_receiver.then_some(true)).filter(|_| by_ack),
        ),
        (
            Ask::ReceiverComplete,
            complete.or(at_receiver.then_some(true)),
        ),
        (
            Ask::Overtaken,
            Some(gap.overtaken + facts.after.overtaken > 0),
        ),
        (
            Ask::LargePassed,
            Some(largest_bytes * 10 >= facts.data.mss_bytes * 9),
        ),
    ];
    let note = |answers: Answers, (ask, answer)| answers.with(ask, answer);
    all.into_iter().fold(Answers::default(), note)
}

/// Returns whether the sender had data under way, as far as it knew.
fn under_way(facts: &Facts, context: &Context<'_>) -> Option<bool> {
    let again = facts.gap.retransmitted.count() + facts.gap.retransmitted_acked.count() > 0;
    if again || facts.next.knows_ack == Some(false) {
        return Some(true);
    }
    if idle::rested(facts, context) == Some(false) {
        return Some(true); // what ended the pause was on its way
    }
    match facts.under_way.bytes {
        0 if context.view == View::Sender || facts.next.knows_ack == Some(true) => Some(false),
        0 => None,
        _ if idle::is_next_to_nothing(facts, context) => None,
        _ => Some(true),
    }
}

/// Returns whether the first copy of what was sent again had arrived.
fn first_copy_arrived(facts: &Facts, context: &Context<'_>) -> Option<bool> {
    let gap = &facts.gap;
    let Some(first) = gap.first_timeout.or(gap.first_probe) else {
        return (gap.retransmitted_acked.count() > 0).then_some(true);
    };
    let is_reported = facts.answer.reported_twice || gap.spurious + facts.after.spurious > 0;
    if is_reported
        || facts.answer.copy == Answered::Older
        || timeouts::had_arrived(facts, &first, context)
    {
        return Some(true);
    }
    let would_report = context.flow.uses_sack() && facts.answer.copy == Answered::Last;
    let was_unseen = context.view == View::Receiver && first.copies_before == 0;
    (would_report || was_unseen || first.sacked_above > 0).then_some(false)
}

/// Returns whether the sender took the window for closed: because it was, or because nothing that
/// reached it told of room.
fn took_for_closed(facts: &Facts, context: &Context<'_>) -> Option<bool> {
    let is_untold = window::ignored_ns(facts, context).is_some();
    room(facts).map(|has_room| !has_room || is_untold)
}

/// Returns whether the window had room for what came next. What is sent again needs none.
fn room(facts: &Facts) -> Option<bool> {
    let gap = &facts.gap;
    if gap.closed_window.count() > 0 {
        let is_most = window::closed_ns(facts).saturating_mul(2) >= facts.duration_ns();
        return Some(!is_most);
    }
    if gap.retransmitted.count() + gap.retransmitted_acked.count() > 0 {
        return Some(true);
    }
    let room = gap
        .room_least_bytes
        .filter(|_| facts.window.is_room_known)?;
    let had = match facts.closed {
        Closed::NewData => facts.after.prompt_bytes,
        _ => facts.after.burst_bytes,
    };
    let is_filled = facts.next.fills_window && room < facts.data.mss_bytes && had >= room
        || facts.next.fills_untold && had < facts.data.mss_bytes;
    let enough = had
        .min(facts.data.mss_bytes)
        .min(facts.window.max_bytes / 2);
    // Nothing shows that it was the window which let the data go.
    let is_untold = room > 0 && !facts.window.has_grown
        || facts.window.is_whole && is_delayed_ack(late::held_ns(facts));
    match facts.closed {
        _ if room >= enough && !is_filled => Some(true),
        Closed::Delivery if is_untold => None,
        _ => Some(false),
    }
}
