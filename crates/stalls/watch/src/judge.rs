// SPDX-License-Identifier: MIT OR Apache-2.0
//! Judges why a sender stalled, by its own kernel's variables: the rules of `docs/use/stalls.md`
//! that these can answer, in the same order (`docs/use/watch.md`).

use stall::predictions::{
    self, ANSWER_NS, Answers, Ask, DUPACK_THRESHOLD, HELD_BACK_NS, State, WHOLE_FLIGHT,
    is_delayed_ack,
};
use stall::{Cause, Confidence};
use units::terse::ms;

use crate::facts::{Closed, Facts, IdleFacts, Resent};

/// The result of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) cause: Cause,
    pub(crate) confidence: Confidence,
    pub(crate) explanation: String,
    /// The answers that it follows from.
    pub(crate) answers: Answers,
}

fn found(cause: Cause, confidence: Confidence, explanation: String) -> Option<Finding> {
    Some(Finding {
        cause,
        confidence,
        explanation,
        answers: Answers::default(),
    })
}

type Rule = fn(&Facts) -> Option<Finding>;

/// The rules, in order. The first one that applies gives the cause.
const RULES: [Rule; 8] = [
    window_closed,
    needless,
    timeouts_repeated,
    of_lost_retransmission,
    timeout_of_first_loss,
    tail_probe,
    fast_only,
    held_back,
];

impl Finding {
    /// Returns the finding with what the answers let it be sure of.
    fn asked(mut self, answers: Answers) -> Self {
        self.confidence = self.confidence.min(predictions::most(self.cause, answers));
        self.answers = answers;
        self
    }
}

/// Judges a pause: a time without delivery.
pub(crate) fn judge(facts: &Facts) -> Finding {
    let answers = answers(facts);
    let is_left = |finding: &Finding| {
        let row = predictions::row_of(finding.cause);
        row.is_none_or(|row| row.state(answers) != State::Refuted)
    };
    let named = RULES.iter().filter_map(|rule| rule(facts)).find(is_left);
    let finding = named.unwrap_or_else(|| Finding {
        cause: Cause::Unknown,
        confidence: Confidence::Low,
        explanation: format!(
            "nothing was delivered for {}, with {} segments under way; {}",
            ms(facts.duration_ns()),
            facts.packets_out,
            how_it_ended(facts.closed)
        ),
        answers,
    });
    finding.asked(answers)
}

/// Returns what the kernel's variables answer. What they do not show could not be asked.
fn answers(facts: &Facts) -> Answers {
    let by_ack = matches!(facts.closed, Closed::Delivery(_)).then_some(true);
    let again = facts.timeouts > 0 || facts.first_probe_ns.is_some() || facts.fast > 0;
    let again = again || facts.tail_probe && facts.after.resent > 0;
    let arrived = facts.after.dsacks > 0;
    let sacked_out = facts.first_timeout.map_or(0, |timeout| timeout.sacked_out);
    let held_ns = facts.duration_ns().saturating_sub(facts.srtt_ns);
    let all = [
        (Ask::UnderWay, Some(facts.packets_out > 0)),
        (Ask::EndedByData, by_ack.map(|is| !is)),
        (Ask::EndedByAck, by_ack),
        (Ask::Repeated, Some(again)),
        (Ask::RepeatedAcked, Some(false)),
        (
            Ask::FirstCopyArrived,
            by_ack.filter(|_| again).map(|_| arrived),
        ),
        (Ask::BehindReported, Some(facts.idle_acks + sacked_out > 0)),
        (Ask::SentTwiceMore, Some(facts.timeouts >= 2)),
        (Ask::FewUnderWay, Some(facts.packets_out <= 2)),
        (Ask::WithinHold, Some(held_ns < HELD_BACK_NS.end)),
        (
            Ask::TimerOfReceiver,
            by_ack.filter(|_| !again).map(|_| is_delayed_ack(held_ns)),
        ),
        (
            Ask::Overtaken,
            Some(arrived && facts.timeouts == 0 && facts.first_probe_ns.is_none()),
        ),
        (Ask::LargePassed, Some(true)),
    ];
    let note = |answers: Answers, (ask, answer)| answers.with(ask, answer);
    let known = Answers::default().with_room(Some(!was_window_closed(facts)));
    all.into_iter().fold(known, note)
}

fn was_window_closed(facts: &Facts) -> bool {
    let waited = facts.window_ns.saturating_mul(2) >= facts.duration_ns();
    facts.timeouts == 0 && waited && facts.window_bytes < facts.mss_bytes.max(1)
}

fn how_it_ended(closed: Closed) -> &'static str {
    match closed {
        Closed::Delivery(_) => "an acknowledgement ended it",
        Closed::End => "the connection ended in it",
        Closed::Open => "it goes on",
    }
}

fn window_closed(facts: &Facts) -> Option<Finding> {
    if !was_window_closed(facts) {
        return None;
    }
    let until = match facts.closed {
        Closed::Delivery(_) => "until it told of room again",
        Closed::End => "until the connection ended",
        Closed::Open => "and still is",
    };
    let text = format!(
        "the receiver's window had room for {} bytes for {}, {until}; it answered {} times without \
         room",
        facts.window_bytes,
        ms(facts.duration_ns()),
        facts.idle_acks
    );
    found(Cause::ReceiverWindowClosed, Confidence::High, text)
}

/// Finds retransmissions of data that had arrived.
fn needless(facts: &Facts) -> Option<Finding> {
    let Closed::Delivery(segments) = facts.closed else {
        return None;
    };
    let resent = facts.timeouts > 0 || facts.first_probe_ns.is_some() || facts.fast > 0;
    if !resent || facts.after.dsacks == 0 {
        return None;
    }
    if facts.timeouts == 0 && facts.first_probe_ns.is_none() {
        let text = "data that overtook other data made the sender repair what was not lost";
        return found(Cause::Reordering, Confidence::Medium, text.to_owned());
    }
    if facts.after.resent > 0 {
        return None; // there was loss as well
    }
    if segments >= facts.packets_out && facts.packets_out > 1 {
        let text = "the data had arrived; no acknowledgement of it came before the repair";
        return found(Cause::AckLoss, Confidence::Medium, text.to_owned());
    }
    let text = format!(
        "the retransmitted data had arrived: its acknowledgement came after {}, and nothing was lost",
        ms(facts.duration_ns())
    );
    found(Cause::DelaySpike, Confidence::Medium, text)
}

fn timeouts_repeated(facts: &Facts) -> Option<Finding> {
    if facts.timeouts < 2 {
        return None;
    }
    let took = ms(facts.duration_ns());
    let sacked_out = facts.first_timeout.map_or(0, |timeout| timeout.sacked_out);
    let is_silent = facts.idle_acks == 0 && sacked_out == 0;
    if is_silent && u64::from(facts.packets_out) >= DUPACK_THRESHOLD {
        let confidence = if facts.timeouts >= 3 {
            Confidence::High
        } else {
            Confidence::Medium
        };
        let text = format!(
            "for {took} nothing came back: {} segments under way, and {} repeats of the first were \
             lost",
            facts.packets_out, facts.timeouts
        );
        return found(Cause::SilentPath, confidence, text);
    }
    if facts.timeouts >= 3 {
        let text = format!(
            "{} timeouts in a row, each twice as long as the one before, {took} in all",
            facts.timeouts
        );
        return found(Cause::RtoStorm, Confidence::High, text);
    }
    let text = format!(
        "the repair after a timeout was lost too, and the next timeout is twice as long: {took}"
    );
    found(Cause::RtoLostRetransmission, Confidence::High, text)
}

fn of_lost_retransmission(facts: &Facts) -> Option<Finding> {
    let timeout = facts.first_timeout?;
    match timeout.resent_before {
        None | Some(Resent::Probe) => return None,
        Some(Resent::Fast | Resent::Timeout) => {}
    }
    let text = format!(
        "a retransmission was lost, and nothing sent after it came back to tell: the timer took {}",
        ms(timeout.at_ns.saturating_sub(facts.start_ns))
    );
    found(Cause::RtoLostRetransmission, Confidence::High, text)
}

fn timeout_of_first_loss(facts: &Facts) -> Option<Finding> {
    let timeout = facts.first_timeout?;
    let behind = u64::from(timeout.sacked_out);
    let timer = ms(timeout.at_ns.saturating_sub(facts.start_ns));
    let under_way = u64::from(facts.packets_out);
    let only_the_repair = matches!(facts.closed, Closed::Delivery(..=1) | Closed::End);
    if behind == 0 && under_way >= WHOLE_FLIGHT && facts.idle_acks == 0 && only_the_repair {
        let text = format!(
            "all {under_way} segments under way were lost at once; the timer repaired it after \
             {timer}"
        );
        return found(Cause::SilentPath, Confidence::Medium, text);
    }
    match behind {
        0 => {
            let text = format!(
                "the last {under_way} segments before the pause were lost, or the first of them: \
                 nothing behind them could tell, and the timer repaired it after {timer}"
            );
            found(Cause::RtoTail, Confidence::High, text)
        }
        1..DUPACK_THRESHOLD => {
            let text = format!(
                "a loss with {behind} segments behind it that arrived, where {DUPACK_THRESHOLD} \
                 are needed to repair it at once; the timer did after {timer}"
            );
            found(Cause::RtoFewDupacks, Confidence::High, text)
        }
        _ => {
            let text = format!(
                "{behind} segments behind a loss were reported as arrived, but only the timer \
                 repaired it, after {timer}"
            );
            found(Cause::RtoOther, Confidence::Low, text)
        }
    }
}

fn tail_probe(facts: &Facts) -> Option<Finding> {
    if let Some(at_ns) = facts.first_probe_ns {
        let text = format!(
            "the tail was lost; after {} a probe brought the answer that repaired it",
            ms(at_ns.saturating_sub(facts.start_ns))
        );
        return found(Cause::TailLossProbe, Confidence::High, text);
    }
    // The probe was new data: the sender repairs next what the probe found lost.
    if !facts.tail_probe || facts.fast + facts.after.resent == 0 {
        return None;
    }
    let text = "the tail was lost; a probe with new data brought the answer that repaired it";
    found(Cause::TailLossProbe, Confidence::High, text.to_owned())
}

/// Finds a pause in spite of retransmissions on acknowledgements: the variables do not show why
/// those were not answered.
fn fast_only(facts: &Facts) -> Option<Finding> {
    if facts.fast == 0 {
        return None;
    }
    let text = format!(
        "{} repairs were under way and none was answered for {}",
        facts.fast,
        ms(facts.duration_ns())
    );
    found(Cause::Unknown, Confidence::Low, text)
}

fn held_back(facts: &Facts) -> Option<Finding> {
    let held_ns = facts.duration_ns().saturating_sub(facts.srtt_ns);
    let delivered = matches!(facts.closed, Closed::Delivery(_));
    let few = (1..=2).contains(&facts.packets_out);
    if !delivered || !few || !HELD_BACK_NS.contains(&held_ns) {
        return None;
    }
    let confidence = if is_delayed_ack(held_ns) {
        Confidence::High
    } else {
        Confidence::Medium
    };
    let text = format!(
        "{} under way, acknowledged {} later than the round trip, and nothing could be sent before",
        match facts.packets_out {
            1 => "one segment was",
            _ => "two segments were",
        },
        ms(held_ns)
    );
    found(Cause::DelayedAck, confidence, text)
}

/// Judges a time without anything to send. Returns `None` if it is no stall because less than a
/// segment had been sent since the pause before: one small message, and later another.
pub(crate) fn judge_idle(facts: &IdleFacts) -> Option<Finding> {
    if facts.sent_bytes < u64::from(facts.mss_bytes) {
        return None;
    }
    let answer_ns = facts.srtt_ns.saturating_mul(2).max(ANSWER_NS);
    // The beginning is known to one or two ticks.
    let apart_ns = facts.end_ns.abs_diff(facts.peer_data_ns);
    let is_asked = facts.peer_data_ns > facts.start_ns && apart_ns <= answer_ns;
    let answers = [
        (Ask::EndedByData, true),
        (Ask::EndedByAck, false),
        (Ask::UnderWay, false),
        (Ask::Repeated, false),
        (Ask::RepeatedAcked, false),
        (Ask::PeerSpoke, is_asked),
        (Ask::SenderRested, true),
        (Ask::SenderKnewAck, true),
        (Ask::Overtaken, false),
        (Ask::LargePassed, true),
    ];
    let note = |answers: Answers, (ask, is)| answers.with(ask, Some(is));
    let has_room = facts.window_bytes >= facts.mss_bytes;
    let known = Answers::default().with_room(Some(has_room));
    let answers = answers.into_iter().fold(known, note);
    let found = |cause, confidence, text| Some(found(cause, confidence, text)?.asked(answers));
    if is_asked {
        let text = "all that was sent had arrived; the sender went on when the other side had \
                    sent data";
        return found(Cause::WaitingForPeer, Confidence::Medium, text.to_owned());
    }
    let text = format!(
        "all that was sent had arrived and the window had room for {} bytes: the application gave \
         nothing to send for {}",
        facts.window_bytes,
        ms(facts.duration_ns())
    );
    found(Cause::Application, Confidence::High, text)
}

#[cfg(test)]
#[path = "judge_tests.rs"]
mod tests;
