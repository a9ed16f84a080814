// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the log of a pause answers of the questions that causes are told apart by: a verdict is as
//! sure as they let it be, as of TCP.

use super::causes::{Context, End, Pause};
use crate::predictions::{Answers, Ask, HELD_BACK_NS};

/// Returns the answers of a pause of this end's data, or of the other end's, which waits for less that
/// the log shows.
pub(super) fn answers(pause: &Pause, context: &Context, end: &End, is_peers: bool) -> Answers {
    let room = |is_short: bool| Some(!is_short || pause.is_credit_early(context.duration_ns));
    if is_peers {
        let (is_received, rested) = match end {
            End::Received { follows, .. } => (true, follows.then_some(true)),
            _ => (false, None),
        };
        return Answers::default()
            .with(Ask::EndedByData, Some(is_received))
            .with(Ask::SenderRested, rested)
            .with_room(room(pause.peer_was_blocked || pause.peer_was_full));
    }
    let is_under_way = pause.oldest.is_some();
    let expiries = pause.expiries();
    let (is_sent, answers) = match end {
        End::Sent { answers, .. } => (true, Some(*answers)),
        _ => (false, None),
    };
    let (acked_oldest, held) = match end {
        End::Acknowledged {
            oldest, held_ns, ..
        } => (
            is_under_way.then_some(*oldest),
            held_ns.map(|ns| ns > context.duration_ns / 2),
        ),
        _ => (None, None),
    };
    let is_short = pause.was_blocked || pause.was_full;
    Answers::default()
        .with(Ask::UnderWay, Some(is_under_way))
        .with(Ask::EndedByData, Some(is_sent))
        .with(
            Ask::EndedByAck,
            Some(matches!(end, End::Acknowledged { .. })),
        )
        .with(Ask::Repeated, Some(expiries > 0))
        .with(Ask::SentTwiceMore, Some(expiries > 1))
        .with(Ask::FirstCopyArrived, acked_oldest)
        .with(Ask::PeerSpoke, answers)
        .with(Ask::SenderKnewRequest, answers.filter(|is| *is))
        .with(Ask::SenderRested, Some(is_sent && expiries == 0))
        .with(Ask::ReceiverHeld, held)
        .with(Ask::TimerOfReceiver, held.filter(|is| *is))
        .with(
            Ask::WithinHold,
            Some(HELD_BACK_NS.contains(&context.duration_ns)),
        )
        .with(Ask::ReceiverComplete, Some(pause.missing == 0))
        // While data is under way, what it waits for is an acknowledgement.
        .with_room(room(is_short).filter(|is| *is || !is_under_way))
}
