// SPDX-License-Identifier: MIT OR Apache-2.0
//! What must be seen of a pause if a cause is true, and what shows it: questions to the pause, and
//! for each cause the answers that it predicts. A cause is refuted by one answer that it excludes; how
//! sure a verdict can be follows from what the others are. `watch` asks the same of the kernel's
//! variables.

use std::ops::Range;

use serde::Serialize;
use serde::ser::{SerializeStruct, Serializer};
use units::time::NS_PER_MS;

use crate::cause::{Cause, Confidence, Side};

pub use crate::flow::round_trip::is_delayed_ack;

/// Segments behind a loss that let it be repaired without a timeout (RFC 5681).
pub const DUPACK_THRESHOLD: u64 = 3;
/// From so many segments on, a loss of all at once is no loss of single ones.
pub const WHOLE_FLIGHT: u64 = 8;
/// New data that follows data of the other side within this time is its answer.
pub const ANSWER_NS: u64 = 50 * NS_PER_MS;
/// Times for which a receiver may hold back an acknowledgement (RFC 1122: up to 500 ms).
pub const HELD_BACK_NS: Range<u64> = 15 * NS_PER_MS..520 * NS_PER_MS;

/// A question to a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ask {
    UnderWay,
    EndedByData,
    EndedByAck,
    Repeated,
    RepeatedAcked,
    FirstCopyArrived,
    BehindReported,
    SentTwiceMore,
    Room,
    TookForClosed,
    PeerSpoke,
    RequestAcked,
    SenderIsClient,
    SenderRested,
    SenderKnewAck,
    SenderKnewRequest,
    FewUnderWay,
    WithinHold,
    TimerOfReceiver,
    ReceiverHeld,
    ReceiverComplete,
    Overtaken,
    LargePassed,
}

impl Ask {
    pub const ALL: [Ask; 23] = [
        Ask::UnderWay,
        Ask::EndedByData,
        Ask::EndedByAck,
        Ask::Repeated,
        Ask::RepeatedAcked,
        Ask::FirstCopyArrived,
        Ask::BehindReported,
        Ask::SentTwiceMore,
        Ask::Room,
        Ask::TookForClosed,
        Ask::PeerSpoke,
        Ask::RequestAcked,
        Ask::SenderIsClient,
        Ask::SenderRested,
        Ask::SenderKnewAck,
        Ask::SenderKnewRequest,
        Ask::FewUnderWay,
        Ask::WithinHold,
        Ask::TimerOfReceiver,
        Ask::ReceiverHeld,
        Ask::ReceiverComplete,
        Ask::Overtaken,
        Ask::LargePassed,
    ];

    /// Returns the question, as a statement that may hold.
    pub const fn text(self) -> &'static str {
        match self {
            Ask::UnderWay => "data was under way that nothing acknowledged",
            Ask::EndedByData => "new data ended the pause",
            Ask::EndedByAck => "an acknowledgement ended the pause",
            Ask::Repeated => "data was sent again",
            Ask::RepeatedAcked => "data was sent again that the capture shows as acknowledged",
            Ask::FirstCopyArrived => "the first copy of what was sent again had arrived",
            Ask::BehindReported => "data behind a hole was reported as arrived",
            Ask::SentTwiceMore => "by timers the same was sent twice more, or oftener",
            Ask::Room => "the receiver's window had room for what came next",
            Ask::TookForClosed => "the sender took the window for closed",
            Ask::PeerSpoke => "the other side had sent data, which waited for an answer",
            Ask::RequestAcked => "the sender's host had acknowledged that for most of the pause",
            Ask::SenderIsClient => "the sender is the client, which decides when it asks",
            Ask::SenderRested => "by the sender's own clock it sent nothing meanwhile",
            Ask::SenderKnewAck => "the sender had the last acknowledgement, as it echoes it",
            Ask::SenderKnewRequest => "the sender had the request, as it echoes it",
            Ask::FewUnderWay => "no more was under way than a receiver may leave unacknowledged",
            Ask::WithinHold => "no receiver holds an acknowledgement back for longer",
            Ask::TimerOfReceiver => "the wait fits a timer that holds acknowledgements back",
            Ask::ReceiverHeld => "by the receiver's own clock it sent the acknowledgement late",
            Ask::ReceiverComplete => "by their numbers no packet of the receiver is missing",
            Ask::Overtaken => "data overtook other data",
            Ask::LargePassed => "segments of the largest size came through",
        }
    }
}

/// The answers of a pause, of which each may be missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Answers {
    held: u32,
    failed: u32,
}

impl Answers {
    /// Notes an answer. `None`: it could not be asked.
    #[must_use]
    pub fn with(mut self, ask: Ask, answer: Option<bool>) -> Self {
        match answer {
            Some(true) => self.held |= 1 << ask as u32,
            Some(false) => self.failed |= 1 << ask as u32,
            None => {}
        }
        self
    }

    /// Notes whether the receiver's window had room, which the sender knew.
    #[must_use]
    pub fn with_room(self, has_room: Option<bool>) -> Self {
        self.with(Ask::Room, has_room)
            .with(Ask::TookForClosed, has_room.map(|has| !has))
    }

    /// Returns an answer; `None`: it could not be asked.
    pub const fn of(self, ask: Ask) -> Option<bool> {
        match (
            (self.held >> ask as u32) & 1,
            (self.failed >> ask as u32) & 1,
        ) {
            (1, _) => Some(true),
            (_, 1) => Some(false),
            _ => None,
        }
    }

    /// Returns whether nothing was asked: slow phases and handshakes are judged by other means.
    pub const fn are_none(&self) -> bool {
        self.held | self.failed == 0
    }

    fn all(self, answer: Option<bool>) -> Vec<Ask> {
        let of = |ask: &Ask| self.of(*ask) == answer;
        Ask::ALL.into_iter().filter(of).collect()
    }
}

impl Serialize for Answers {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let left = |row: &&Row| row.state(*self) != State::Refuted;
        let left: Vec<_> = ROWS.iter().filter(left).map(|row| row.cause).collect();
        let mut all = serializer.serialize_struct("Answers", 4)?;
        all.serialize_field("held", &self.all(Some(true)))?;
        all.serialize_field("failed", &self.all(Some(false)))?;
        all.serialize_field("not_asked", &self.all(None))?;
        all.serialize_field("left", &left)?;
        all.end()
    }
}

/// What a cause predicts.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    pub cause: Cause,
    /// Another answer refutes the cause.
    pub must: &'static [(Ask, bool)],
    /// Each of these answers is positive evidence.
    pub shows: &'static [(Ask, bool)],
}

/// What the answers of a pause make of a cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Everything that it must be is, and something shows it.
    Shown,
    /// Everything that it must be is.
    Left,
    /// Nothing refutes it, but not everything could be asked.
    Untested,
    Refuted,
}

const fn row(cause: Cause, must: &'static [(Ask, bool)], shows: &'static [(Ask, bool)]) -> Row {
    Row { cause, must, shows }
}

/// A loss: what was sent again had not arrived.
const LOST: &[(Ask, bool)] = &[
    (Ask::Repeated, true),
    (Ask::FirstCopyArrived, false),
    (Ask::TookForClosed, false),
];
/// The first repeat repaired it.
const LOST_ONCE: &[(Ask, bool)] = &[
    (Ask::Repeated, true),
    (Ask::FirstCopyArrived, false),
    (Ask::SentTwiceMore, false),
    (Ask::TookForClosed, false),
];
const SHOWS_LOSS: &[(Ask, bool)] = &[(Ask::FirstCopyArrived, false), (Ask::BehindReported, true)];
/// What was under way had arrived, and no timer of the receiver held its acknowledgement.
const LATE: &[(Ask, bool)] = &[
    (Ask::UnderWay, true),
    (Ask::FirstCopyArrived, true),
    (Ask::TimerOfReceiver, false),
    (Ask::TookForClosed, false),
];
const NO_ROOM: &[(Ask, bool)] = &[(Ask::Room, false)];
/// It had room, or not: the sender did not know.
const NOT_TOLD: &[(Ask, bool)] = &[(Ask::TookForClosed, true)];

/// The causes of pauses.
pub const ROWS: [Row; 16] = [
    row(Cause::ReceiverWindowClosed, NO_ROOM, NO_ROOM),
    row(Cause::ZeroWindowProbe, NOT_TOLD, NOT_TOLD),
    row(
        Cause::Application,
        &[
            (Ask::EndedByData, true),
            (Ask::UnderWay, false),
            (Ask::Repeated, false),
            (Ask::PeerSpoke, false),
            (Ask::TookForClosed, false),
            (Ask::SenderRested, true),
            (Ask::SenderKnewAck, true),
        ],
        &[(Ask::SenderRested, true)],
    ),
    row(
        Cause::WaitingForPeer,
        &[
            (Ask::EndedByData, true),
            (Ask::UnderWay, false),
            (Ask::PeerSpoke, true),
            (Ask::SenderIsClient, true),
            (Ask::TookForClosed, false),
        ],
        &[(Ask::SenderRested, true)],
    ),
    row(
        Cause::ResponseTime,
        &[
            (Ask::EndedByData, true),
            (Ask::UnderWay, false),
            (Ask::PeerSpoke, true),
            (Ask::SenderIsClient, false),
            (Ask::SenderKnewRequest, true),
            (Ask::TookForClosed, false),
        ],
        &[
            (Ask::SenderRested, true),
            (Ask::SenderKnewRequest, true),
            (Ask::RequestAcked, true),
        ],
    ),
    row(
        Cause::DelayedAck,
        &[
            (Ask::EndedByAck, true),
            (Ask::FewUnderWay, true),
            (Ask::WithinHold, true),
            (Ask::ReceiverHeld, true),
            (Ask::FirstCopyArrived, true),
            (Ask::ReceiverComplete, true),
            (Ask::TookForClosed, false),
        ],
        &[
            (Ask::FewUnderWay, true),
            (Ask::TimerOfReceiver, true),
            (Ask::ReceiverHeld, true),
        ],
    ),
    row(
        Cause::AckLoss,
        LATE,
        &[
            (Ask::RepeatedAcked, true),
            (Ask::FirstCopyArrived, true),
            (Ask::ReceiverComplete, false),
        ],
    ),
    row(
        Cause::DelaySpike,
        LATE,
        &[
            (Ask::FirstCopyArrived, true),
            (Ask::SenderRested, false),
            (Ask::SenderKnewAck, false),
            (Ask::ReceiverHeld, false),
        ],
    ),
    row(
        Cause::Reordering,
        &[(Ask::Overtaken, true), (Ask::Repeated, true)],
        &[(Ask::Overtaken, true)],
    ),
    row(
        Cause::PmtuBlackHole,
        &[
            (Ask::LargePassed, false),
            (Ask::Repeated, true),
            (Ask::FirstCopyArrived, false),
            (Ask::SentTwiceMore, true),
            (Ask::TookForClosed, false),
        ],
        SHOWS_LOSS,
    ),
    row(
        Cause::RtoTail,
        &[
            (Ask::Repeated, true),
            (Ask::FirstCopyArrived, false),
            (Ask::BehindReported, false),
            (Ask::SentTwiceMore, false),
            (Ask::TookForClosed, false),
        ],
        &[(Ask::FirstCopyArrived, false)],
    ),
    row(Cause::RtoFewDupacks, LOST_ONCE, SHOWS_LOSS),
    row(Cause::RtoLostRetransmission, LOST, SHOWS_LOSS),
    row(Cause::TailLossProbe, LOST_ONCE, SHOWS_LOSS),
    row(
        Cause::RtoStorm,
        &[
            (Ask::Repeated, true),
            (Ask::FirstCopyArrived, false),
            (Ask::SentTwiceMore, true),
            (Ask::TookForClosed, false),
        ],
        SHOWS_LOSS,
    ),
    row(
        Cause::SilentPath,
        &[(Ask::Repeated, true), (Ask::TookForClosed, false)],
        &[(Ask::FirstCopyArrived, false), (Ask::RepeatedAcked, true)],
    ),
];

impl Row {
    /// Returns what the answers of a pause make of the cause.
    pub fn state(&self, answers: Answers) -> State {
        let must = || {
            self.must
                .iter()
                .map(|&(ask, is)| answers.of(ask).map(|a| a == is))
        };
        let shows = |&(ask, is): &(Ask, bool)| answers.of(ask) == Some(is);
        if must().any(|is| is == Some(false)) {
            State::Refuted
        } else if must().any(|is| is.is_none()) {
            State::Untested
        } else if self.shows.iter().any(shows) {
            State::Shown
        } else {
            State::Left
        }
    }
}

/// Returns the row of a cause, if pauses have it.
pub fn row_of(cause: Cause) -> Option<&'static Row> {
    ROWS.iter().find(|row| row.cause == cause)
}

/// Returns the causes on another side than a verdict's that are in one of these states.
pub fn others(side: Side, answers: Answers, states: &[State]) -> Vec<Cause> {
    let is_other = |row: &&Row| row.cause.side() != side && states.contains(&row.state(answers));
    ROWS.iter().filter(is_other).map(|row| row.cause).collect()
}

/// Returns how sure a verdict can be: high if something shows it and every cause on another side is
/// refuted, medium if one of these is missing, low if both are, or if others are left.
pub fn most(cause: Cause, answers: Answers) -> Confidence {
    let Some(row) = row_of(cause).filter(|_| !answers.are_none()) else {
        return Confidence::High;
    };
    let is_shown = row
        .shows
        .iter()
        .any(|&(ask, is)| answers.of(ask) == Some(is));
    let side = cause.side();
    let has = |states: &[State]| {
        let mut rows = ROWS.iter().filter(|row| row.cause.side() != side);
        rows.any(|row| states.contains(&row.state(answers)))
    };
    let are_left = has(&[State::Shown, State::Left]);
    match (is_shown, has(&[State::Untested])) {
        (true, false) if !are_left => Confidence::High,
        (true, _) | (_, false) if !are_left => Confidence::Medium,
        _ => Confidence::Low,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tail that was lost, as the sender's capture shows it.
    fn lost_tail() -> Answers {
        let all = [
            (Ask::UnderWay, true),
            (Ask::EndedByData, false),
            (Ask::EndedByAck, true),
            (Ask::Repeated, true),
            (Ask::FirstCopyArrived, false),
            (Ask::BehindReported, false),
            (Ask::SentTwiceMore, false),
            (Ask::Room, true),
            (Ask::TookForClosed, false),
            (Ask::PeerSpoke, false),
            (Ask::Overtaken, false),
        ];
        let note = |answers: Answers, (ask, is)| answers.with(ask, Some(is));
        all.into_iter().fold(Answers::default(), note)
    }

    #[test]
    fn a_verdict_is_as_sure_as_what_is_left() {
        assert_eq!(most(Cause::RtoTail, lost_tail()), Confidence::High);
        let untested = Answers {
            failed: lost_tail().failed & !(1 << Ask::FirstCopyArrived as u32),
            ..lost_tail()
        };
        assert_eq!(
            others(Side::Network, untested, &[State::Untested]),
            [Cause::DelayedAck]
        );
        let shown = untested.with(Ask::BehindReported, Some(true));
        assert_eq!(most(Cause::RtoFewDupacks, shown), Confidence::Medium);
        assert_eq!(most(Cause::RtoTail, untested), Confidence::Low);
        // No cause of the network holds the data up while the window has no room.
        let closed = Answers::default()
            .with_room(Some(false))
            .with(Ask::Overtaken, Some(false));
        assert_eq!(most(Cause::ReceiverWindowClosed, closed), Confidence::High);
        assert_eq!(most(Cause::RtoTail, closed), Confidence::Low);
    }

    #[test]
    fn one_answer_refutes_a_cause() {
        let state = |answers| row_of(Cause::RtoTail).map(|row| row.state(answers));
        assert_eq!(state(lost_tail()), Some(State::Shown));
        let mut arrived = lost_tail().with(Ask::FirstCopyArrived, Some(true));
        arrived.failed &= !(1 << Ask::FirstCopyArrived as u32);
        assert_eq!(state(arrived), Some(State::Refuted));
        assert_eq!(state(Answers::default()), Some(State::Untested));
    }

    #[test]
    fn each_question_has_a_place_and_each_cause_one_row() {
        for (place, ask) in Ask::ALL.into_iter().enumerate() {
            assert_eq!(ask as usize, place);
        }
        for row in &ROWS {
            assert_eq!(row_of(row.cause).map(|r| r.must), Some(row.must));
            assert!(!row.must.is_empty() && !row.shows.is_empty());
        }
    }
}
