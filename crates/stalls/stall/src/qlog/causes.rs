// SPDX-License-Identifier: MIT OR Apache-2.0
//! The cause of a pause of a QUIC connection, from what its log shows.

use units::display::count;
use units::terse::ms;

use crate::analysis::StallKind;
use crate::cause::{Cause, Confidence};

/// Probe timeouts from which on the path, and not the loss of a tail, is the cause.
const SILENT_EXPIRIES: u64 = 3;

/// Numbers that the other end skips at most on purpose (RFC 9000, 21.4), and one more.
const MISSING_LEAST: u64 = 2;

/// Packet number space, path and packet number.
pub(super) type Key = (u8, u64, u64);

/// What has happened since something moved last.
#[derive(Debug, Default)]
pub(super) struct Pause {
    pub(super) begin_ns: u64,
    pub(super) evidence: Vec<u64>,
    /// The oldest packet that was outstanding, and the last before the probes.
    pub(super) oldest: Option<Key>,
    pub(super) newest: Option<Key>,
    /// Expiries of the timer, probe timeouts by their count, times at which old data was sent
    /// again, and whether there were probes: a log may have any of them.
    pub(super) timers: u64,
    pub(super) timeouts: u64,
    pub(super) repeats: u64,
    pub(super) has_probe: bool,
    /// When old data was sent again last.
    pub(super) repeated_ns: Option<u64>,
    pub(super) losses: u64,
    /// Whether credit was missing, at this end or at the other: by blocked frames, or by the limits.
    pub(super) was_blocked: bool,
    pub(super) peer_was_blocked: bool,
    pub(super) was_full: bool,
    pub(super) peer_was_full: bool,
    /// Packets of the other end that did not come, by their numbers.
    pub(super) missing: u64,
    /// When credit came or was given.
    pub(super) credit_ns: Option<u64>,
}

impl Pause {
    /// Returns the number of probe timeouts.
    pub(super) fn expiries(&self) -> u64 {
        let counted = self.timers.max(self.timeouts).max(self.repeats);
        counted.max(self.has_probe.into())
    }

    /// Whether credit came in the first half of the pause: it does not explain the rest.
    pub(super) fn is_credit_early(&self, duration_ns: u64) -> bool {
        let waited_ns = |at: u64| at.saturating_sub(self.begin_ns);
        self.credit_ns
            .is_some_and(|at| waited_ns(at) <= duration_ns / 2)
    }
}

/// How a pause ended.
pub(super) enum End {
    /// Data was sent: on a stream that had carried data, on one with a request, or neither.
    Sent { goes_on: bool, answers: bool },
    /// A packet was acknowledged.
    Acknowledged {
        /// Whether the pause's oldest was among them.
        oldest: bool,
        /// Whether all that was outstanding was.
        all: bool,
        /// Whether something was not that was sent since, before what was acknowledged.
        is_probe_lost: bool,
        /// How long the receiver says that it held the acknowledgement.
        held_ns: Option<u64>,
    },
    Received {
        /// On a stream that had carried data.
        goes_on: bool,
        /// The first on a stream that this end has sent on.
        is_answer: bool,
        /// New data, in the packet whose number follows that of the one before: the other end sent
        /// nothing meanwhile.
        follows: bool,
    },
    /// The log is over, or the connection.
    Over,
}

/// What is known of the connection at the end of a pause.
pub(super) struct Context {
    pub(super) duration_ns: u64,
    pub(super) rtt_ns: Option<u64>,
    pub(super) is_application_limited: bool,
    /// Whether more could have been sent.
    pub(super) has_room: bool,
}

/// A cause and what speaks for it.
pub(super) struct Judgement {
    pub(super) cause: Cause,
    pub(super) confidence: Confidence,
    pub(super) kind: StallKind,
    /// Whether the data is that of the other end.
    pub(super) is_peers: bool,
    pub(super) explanation: String,
}

fn ours(cause: Cause, confidence: Confidence, explanation: String) -> Judgement {
    Judgement {
        cause,
        confidence,
        kind: StallKind::Silence,
        is_peers: false,
        explanation,
    }
}

/// Judges a pause in which one end had no credit from the other.
fn closed_window(pause: &Pause, duration_ns: u64, end: &End) -> Option<Judgement> {
    let time = ms(duration_ns);
    let is_credits = !pause.is_credit_early(duration_ns);
    let is_ended = pause.credit_ns.is_some();
    let closed = (Cause::ReceiverWindowClosed, Confidence::Medium);
    // While data is outstanding, what it waits for is an acknowledgement.
    let is_free = pause.oldest.is_none() && pause.expiries() == 0 && is_credits;
    if is_free && pause.was_blocked {
        let explanation =
            format!("This end had data and no credit for {time}: it sent blocked frames.");
        return Some(ours(closed.0, closed.1, explanation));
    }
    if is_free && pause.was_full && is_ended && matches!(end, End::Sent { .. }) {
        let explanation = format!(
            "All that the other end allowed was sent and acknowledged, and credit ended the pause of {time}."
        );
        return Some(ours(closed.0, closed.1, explanation));
    }
    let is_peers_pause = pause.peer_was_blocked || pause.peer_was_full && is_ended;
    if is_peers_pause && is_credits && !matches!(end, End::Sent { .. } | End::Acknowledged { .. }) {
        let how = if pause.peer_was_blocked {
            "it sent blocked frames"
        } else {
            "it had sent all that was allowed, and went on after credit"
        };
        let explanation =
            format!("The other end had data and no credit from this one for {time}: {how}.");
        return Some(peers(ours(closed.0, closed.1, explanation)));
    }
    None
}

/// Judges a pause whose acknowledgement says that the receiver held it.
fn held_back(pause: &Pause, context: &Context, end: &End) -> Option<Judgement> {
    let &End::Acknowledged {
        held_ns: Some(held_ns),
        ..
    } = end
    else {
        return None;
    };
    let duration_ns = context.duration_ns;
    let rest_ns = duration_ns.saturating_sub(held_ns);
    let is_most = held_ns <= duration_ns && held_ns > duration_ns / 2;
    let is_all = context.rtt_ns.is_none_or(|rtt| rest_ns <= 2 * rtt);
    if is_most && is_all && pause.expiries() == 0 {
        let explanation = format!(
            "The acknowledgement came after {}, and says itself that the receiver held it for {}.",
            ms(duration_ns),
            ms(held_ns)
        );
        return Some(ours(Cause::DelayedAck, Confidence::High, explanation));
    }
    None
}

/// Returns the cause of a pause; `None` if neither end had anything to do.
pub(super) fn judgement(pause: &Pause, context: &Context, end: &End) -> Option<Judgement> {
    let time = ms(context.duration_ns);
    let known = closed_window(pause, context.duration_ns, end);
    let known = known.or_else(|| held_back(pause, context, end));
    if known.is_some() {
        return known;
    }
    if pause.oldest.is_some() {
        return outstanding_data(pause, context, &time, end);
    }
    match end {
        End::Sent { goes_on: true, .. } => {
            let confidence = if context.is_application_limited {
                Confidence::Medium
            } else {
                Confidence::Low
            };
            let explanation = format!(
                "All that was sent was acknowledged, and a stream went on {time} later: its \
                 application had given nothing."
            );
            Some(ours(Cause::Application, confidence, explanation))
        }
        End::Sent { answers: true, .. } => {
            let explanation = format!("A request was answered {time} after it had come.");
            Some(wait(ours(
                Cause::ResponseTime,
                Confidence::Medium,
                explanation,
            )))
        }
        End::Received {
            is_answer: true,
            goes_on: false,
            ..
        } => {
            let explanation = format!(
                "The request was acknowledged, and the first of the answer came {time} later."
            );
            let found = ours(Cause::ResponseTime, Confidence::Low, explanation);
            Some(peers(wait(found)))
        }
        End::Received {
            goes_on: true,
            follows: true,
            ..
        } => {
            let explanation = format!(
                "A stream that had begun brought nothing for {time}, and the packet that went on bears the next \
                 number: the other end sent nothing meanwhile."
            );
            // A probe after lost acknowledgements looks the same.
            let found = ours(Cause::Application, Confidence::Low, explanation);
            Some(peers(found))
        }
        End::Received { goes_on: true, .. } => {
            let explanation = format!(
                "A stream that had begun brought nothing for {time}; why, only a qlog of its \
                 sender shows."
            );
            Some(peers(ours(Cause::Unknown, Confidence::Low, explanation)))
        }
        _ => None,
    }
}

/// Judges a pause that began while packets were outstanding.
fn outstanding_data(pause: &Pause, context: &Context, time: &str, end: &End) -> Option<Judgement> {
    let expiries = pause.expiries();
    let expired = match expiries {
        0 => "no probe timeout is logged".to_owned(),
        1 => "one probe timeout expired".to_owned(),
        n => format!("{} probe timeouts expired", count(n)),
    };
    let is_probe_lost = matches!(
        end,
        End::Acknowledged {
            is_probe_lost: true,
            ..
        }
    );
    let is_lost = is_probe_lost || pause.losses > 0;
    let (cause, confidence, what) = match (end, expiries) {
        (End::Over, 0) => return None,
        (End::Over, _) => (
            Cause::SilentPath,
            Confidence::Medium,
            "nothing came any more until the log's end",
        ),
        (End::Acknowledged { all, .. }, SILENT_EXPIRIES..) if !all || is_lost => (
            Cause::SilentPath,
            Confidence::Medium,
            "and what was sent meanwhile was lost, or its acknowledgements",
        ),
        (End::Acknowledged { oldest: true, .. }, _) if pause.missing >= MISSING_LEAST => (
            Cause::AckLoss,
            Confidence::Medium,
            "then what had been sent before was acknowledged by a packet before which, by the numbers, others of the \
             other end were lost",
        ),
        (End::Acknowledged { oldest: true, .. }, _) => (
            Cause::DelaySpike,
            Confidence::Medium,
            "then what had been sent before was acknowledged: it was late and not lost",
        ),
        (End::Acknowledged { .. }, SILENT_EXPIRIES..) => (
            Cause::SilentPath,
            Confidence::Medium,
            "and all that was sent meanwhile was lost",
        ),
        (End::Acknowledged { .. }, 2) => (
            Cause::RtoTail,
            Confidence::Medium,
            "and the second probe found out that the last packets were lost",
        ),
        (End::Acknowledged { .. }, 1) => (
            Cause::TailLossProbe,
            Confidence::Medium,
            "and the probe found out that the last packets were lost",
        ),
        (End::Acknowledged { .. }, 0) => (
            Cause::RtoOther,
            Confidence::Low,
            "and later packets were acknowledged first",
        ),
        (End::Sent { .. }, 0) if context.has_room => (
            Cause::Application,
            Confidence::Low,
            "and the congestion window had room: the application had given nothing",
        ),
        _ => (
            Cause::Unknown,
            Confidence::Low,
            "and the log does not show what was waited for",
        ),
    };
    let losses = match pause.losses {
        0 => String::new(),
        1 => "; one packet was taken for lost".to_owned(),
        n => format!("; {} packets were taken for lost", count(n)),
    };
    Some(Judgement {
        cause,
        confidence,
        kind: StallKind::Silence,
        is_peers: false,
        explanation: format!("Packets were outstanding for {time}: {expired}, {what}{losses}."),
    })
}

/// The data that stalled is that of the other end.
fn peers(judgement: Judgement) -> Judgement {
    Judgement {
        is_peers: true,
        ..judgement
    }
}

/// One end was to act.
fn wait(judgement: Judgement) -> Judgement {
    Judgement {
        kind: StallKind::Wait,
        ..judgement
    }
}
