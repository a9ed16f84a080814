// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules for pauses in which nothing was outstanding.

use units::time::NS_PER_MS;

use super::finding::{Context, Finding};
use super::window;
use crate::cause::{Cause, Confidence, Side};
use crate::flow::Flow;
use crate::flow::at::At;
use crate::flow::facts::{Closed, Facts};
use crate::flow::state::peer::Message;
use crate::predictions::{ANSWER_NS, WHOLE_FLIGHT};
use crate::vantage::{View, ms};

/// A response that takes less time than this is not reported as a wait.
const WAIT_LEAST_NS: u64 = 100 * NS_PER_MS;

/// Messages up to so many bytes may be keep-alives, keys and reports.
const SMALL_MESSAGE_BYTES: u64 = 128;
/// Smallest size of a full segment (RFC 9293, 3.7.1).
const MSS_LEAST_BYTES: u64 = 536;

/// Finds pauses in which everything that was sent had arrived.
pub(super) fn nothing_to_send(facts: &Facts, context: &Context<'_>) -> Option<Finding> {
    let gap = &facts.gap;
    let delivered = is_next_to_nothing(facts, context);
    if facts.closed != Closed::NewData || gap.retransmitted.count() > 0 || !delivered {
        return None;
    }
    if facts.under_way.bytes > 0 && gap.duplicate_acks.count() > 0 {
        return None;
    }
    let before = window::no_room(facts).or_else(|| lost_before_the_capture(facts, context));
    let is_small = facts.after.burst_bytes <= SMALL_MESSAGE_BYTES;
    let is_last_word = facts.after.has_ended && is_small && !facts.is_asked();
    if facts.peer.has_ended || is_last_word {
        // What is said after the other side's end, or just before the own, says good-bye.
        return before.or_else(|| Some(Finding::idle()));
    }
    if facts.next.is_fin {
        // The end of the stream alone answers nothing, and is nothing that was to be sent.
        return before.or_else(|| Some(Finding::idle()));
    }
    before.or_else(|| Some(who_acts(facts, context)))
}

/// Returns whether hardly anything was under way: away from the sender a little may be acknowledged.
pub(super) fn is_next_to_nothing(facts: &Facts, context: &Context<'_>) -> bool {
    let little = facts.under_way.bytes <= 2 * facts.data.mss_bytes && context.view != View::Sender;
    // Data that is sent now and then, each time with next to nothing outstanding before it.
    let new_segments = facts.gap.new_segments;
    let lone = (2 + new_segments) * facts.data.mss_bytes;
    let now_and_then = new_segments > 0 && facts.under_way.bytes <= lone;
    facts.under_way.bytes == 0 || little || now_and_then
}

/// Finds which side had to act while nothing was outstanding.
fn who_acts(facts: &Facts, context: &Context<'_>) -> Finding {
    let peer_ns = facts.peer.data_ns();
    // Without the SYN, the largest segment captured counts as a full one, and it may be a
    // message.
    let is_full = |bytes: u64| bytes >= facts.data.mss_bytes.max(MSS_LEAST_BYTES);
    if facts.is_asked() {
        let since_ns = facts.end_ns.saturating_sub(peer_ns);
        if !context.knows_roles {
            // The one's work on an answer, or the other's thinking before it asks.
            return Finding::idle();
        }
        if !context.is_client {
            return response(facts, context);
        }
        // The client decides when to send the next request; between parts of an upload it may
        // wait for a word of the server, and goes on as soon as that has come.
        let answer_ns = facts
            .trips
            .rtt_ns
            .unwrap_or(0)
            .saturating_mul(2)
            .max(ANSWER_NS);
        let is_upload = is_full(facts.data.burst_bytes) && is_full(facts.after.burst_bytes);
        if !is_upload || since_ns > answer_ns {
            return Finding::idle();
        }
        let text = format!(
            "all that was sent had arrived; the sender went on {} after the other side sent data",
            ms(since_ns)
        );
        // Or nobody had anything to do until then.
        let finding = Finding::new(Cause::WaitingForPeer, Confidence::Low, text);
        return finding.shown_by(facts.gap.receiver_data.iter());
    }
    if !is_full(facts.data.burst_bytes) && !is_full(facts.after.burst_bytes) {
        return Finding::idle(); // one small message, and later another
    }
    if context.is_client && !context.is_upload {
        return Finding::idle(); // a person or a program at its client decides when to go on
    }
    paused(facts, context)
}

/// Judges a pause where the capture lacks the receiver's acknowledgements: by data alone.
pub(super) fn without_acks(facts: &Facts, context: &Context<'_>) -> Option<Finding> {
    let again = facts.gap.retransmitted.count();
    if again > 0 {
        let text = format!(
            "{again} segments were sent again in {}; the acknowledgements are not in the capture",
            ms(facts.duration_ns())
        );
        let finding = Finding::new(Cause::Unknown, Confidence::Low, text);
        return Some(finding.shown_by(facts.gap.retransmitted.iter()));
    }
    let is_next = facts.closed == Closed::NewData && !facts.next.is_fin && context.knows_roles;
    if !is_next || context.is_client || facts.peer.has_ended {
        return Some(Finding::idle());
    }
    if facts.is_asked() {
        return Some(response(facts, context));
    }
    let text = format!(
        "the sender sent nothing for {}; whether it waited for acknowledgements is not to be seen",
        ms(facts.duration_ns())
    );
    Some(Finding::new(Cause::Application, Confidence::Low, text))
}

/// Judges the time that the server took to answer after the client's last data.
fn response(facts: &Facts, context: &Context<'_>) -> Finding {
    let Some(At {
        now: asked_ns,
        packet,
    }) = facts.peer.data
    else {
        return Finding::idle(); // nobody asked
    };
    let way_ns = facts.trips.sender_rtt_ns;
    let took_ns = facts.end_ns.saturating_sub(asked_ns).saturating_sub(way_ns);
    let settled_ns = facts.peer.settled_ns;
    let handshake_ns = context.flow.trips.handshake_sender_ns;
    let times_ns = (asked_ns, settled_ns, facts.end_ns);
    let beyond = Beyond::of(times_ns, handshake_ns, context.flow);
    if took_ns < wait_least_ns(facts.trips.rtt_ns)
        || is_dialogue(facts)
        || facts.next.knows_request == Some(false)
        || beyond == Beyond::Nothing
    {
        return Finding::idle(); // what had not arrived was not answered
    }
    let had_it = had_request(facts);
    if was_way_late(asked_ns, settled_ns, facts.end_ns) {
        let text = format!(
            "the answer came {} after the request, and just before it the acknowledgement, which \
             was as late: the way took the time",
            ms(took_ns)
        );
        let finding = Finding::new(Cause::DelaySpike, Confidence::Low, text);
        return finding.waited_since(facts.end_ns - took_ns, packet.get());
    }
    let acked = if had_it {
        ", which its host had acknowledged"
    } else {
        ""
    };
    let text = format!(
        "the answer came {} after the request{acked}, with nothing else under way",
        ms(took_ns)
    );
    let confidence = match context.view {
        // Where the server spoke first, what the client says may be no request.
        View::Sender if context.has_client_begun => Confidence::High,
        View::Sender => Confidence::Medium,
        // An answer that was lost before the capture looks the same.
        _ if had_it => Confidence::Medium,
        _ => Confidence::Low,
    };
    let confidence = confidence.min(window_allows(facts));
    // The answer acknowledges all of the request, else it is none, or not to this.
    // A small word at once after this side's may be the answer to that, and this a push.
    let is_doubtful = settled_ns < asked_ns || beyond == Beyond::Little;
    let confidence = if is_doubtful || is_said_at_once(facts) {
        Confidence::Low
    } else {
        confidence
    };
    let finding = Finding::new(Cause::ResponseTime, confidence, text);
    finding.waited_since(facts.end_ns - took_ns, packet.get())
}

/// Returns whether the server's host had acknowledged the request for half of the time or more.
pub(super) fn had_request(facts: &Facts) -> bool {
    let asked_ns = facts.peer.data_ns();
    let took_ns = facts
        .end_ns
        .saturating_sub(asked_ns + facts.trips.sender_rtt_ns);
    let since_ns = facts.end_ns.saturating_sub(facts.peer.settled_ns);
    facts.peer.settled_ns >= asked_ns && since_ns * 2 >= took_ns
}

/// Returns whether both sides sent small messages of one length: keep-alives, keys and their echo.
fn is_dialogue(facts: &Facts) -> bool {
    let bytes = facts.peer.message.bytes;
    let own_bytes = facts.after.burst_bytes;
    if own_bytes.max(bytes.into()) > SMALL_MESSAGE_BYTES {
        return false;
    }
    own_bytes == u64::from(bytes)
}

/// Returns whether the other side's last message is small and followed this side's at once.
fn is_said_at_once(facts: &Facts) -> bool {
    let Message { bytes, behind_ms } = facts.peer.message;
    let answer_ns = facts
        .trips
        .rtt_ns
        .unwrap_or(0)
        .saturating_mul(2)
        .max(ANSWER_NS);
    let is_soon = behind_ms.is_some_and(|ms| u64::from(ms) * NS_PER_MS <= answer_ns);
    is_soon && u64::from(bytes) <= SMALL_MESSAGE_BYTES
}

/// How much of the time that an answer took lies beyond the round trip of the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Beyond {
    /// The handshake tells nothing: the request was acknowledged as from where that came, or some
    /// answer came sooner than it.
    Unknown,
    /// None of it. A host on the way acknowledged the request, a proxy or one that translates
    /// addresses, and the answer took what the handshake took; or acknowledgement and answer came
    /// together, and sooner than the handshake.
    Nothing,
    /// Less than people notice.
    Little,
    More,
}

impl Beyond {
    /// Judges the time of a request, of its acknowledgement, and of its answer, by the time from the
    /// SYN to its answer, if that is known and no coarse clock made it 0.
    pub(super) fn of(times_ns: (u64, u64, u64), handshake_ns: Option<u64>, server: &Flow) -> Self {
        let (asked_ns, settled_ns, answered_ns) = times_ns;
        let acked_ns = settled_ns.saturating_sub(asked_ns);
        let took_ns = answered_ns.saturating_sub(asked_ns);
        let Some(handshake_ns) = handshake_ns.filter(|&ns| ns > 0 && settled_ns >= asked_ns) else {
            return Beyond::Unknown;
        };
        let is_together = acked_ns >= took_ns / 4 * 3;
        let alike = handshake_ns / 100 * 85..=handshake_ns / 100 * 115;
        let is_near = acked_ns <= handshake_ns / 4 && !server.has_answered_within(*alike.start());
        match took_ns.saturating_sub(handshake_ns) {
            0 if is_together => Beyond::Nothing,
            _ if !is_near => Beyond::Unknown,
            _ if alike.contains(&took_ns) => Beyond::Nothing,
            ..WAIT_LEAST_NS => Beyond::Little,
            _ => Beyond::More,
        }
    }
}

/// Returns whether the acknowledgement of a request took most of the time that its answer took, and
/// came apart from it: hosts acknowledge without their applications.
pub(super) fn was_way_late(asked_ns: u64, settled_ns: u64, answered_ns: u64) -> bool {
    let acked_ns = settled_ns.saturating_sub(asked_ns);
    settled_ns < answered_ns && acked_ns >= answered_ns.saturating_sub(asked_ns) / 4 * 3
}

/// Returns the time after which an answer is late: two round trips, and at least 100 ms, which
/// people notice.
pub(super) fn wait_least_ns(rtt_ns: Option<u64>) -> u64 {
    rtt_ns.unwrap_or(0).saturating_mul(2).max(WAIT_LEAST_NS)
}

/// Judges a pause of the application: it supplied nothing to send, although it went on later.
fn paused(facts: &Facts, context: &Context<'_>) -> Finding {
    let confidence = match context.view {
        View::Sender => Confidence::High,
        // Only the sender's clock shows that it did not send. What follows a timeout is sent at
        // that time too, but a timeout lets a single segment go.
        View::Receiver | View::Middle
            if rested(facts, context) == Some(true) && !is_alone(facts) =>
        {
            Confidence::Medium
        }
        View::Receiver | View::Middle => Confidence::Low,
        View::Unknown => Confidence::Low,
    };
    let confidence = confidence.min(window_allows(facts));
    let confidence = if context.knows_roles {
        confidence
    } else {
        Confidence::Low // a client that thinks looks the same
    };
    // After an answer of the other side, what comes next may be another transfer.
    let confidence = if facts.peer_spoke() {
        confidence.min(Confidence::Medium)
    } else {
        confidence
    };
    let room = facts.window.bytes.and(facts.gap.room_least_bytes);
    let room = room.map_or_else(String::new, |room| {
        format!(" and the window had room for {room} bytes")
    });
    let text = format!(
        "all that was sent had arrived{room}: the sender had no more for {}",
        ms(facts.duration_ns())
    );
    Finding::new(Cause::Application, confidence, text)
}

/// Returns how sure it is that the sender did not wait for the window. Where the window's scale
/// is unknown, the capture only shows whether the window fell to a fraction of what it had
/// been.
fn window_allows(facts: &Facts) -> Confidence {
    let least = facts.gap.window_least.unwrap_or(0);
    match facts.window.bytes {
        Some(_) => Confidence::High,
        None if least > facts.window.field_max / 4 => Confidence::Medium,
        None => Confidence::Low,
    }
}

/// Returns whether the sender's own clock shows that it sent nothing for at least half of the
/// pause, or that what ended it was sent within a quarter. `None`: it shows neither.
pub(super) fn rested(facts: &Facts, context: &Context<'_>) -> Option<bool> {
    let waited_ns = facts.duration_ns();
    let tick = context.flow.sender_clock.tick(waited_ns);
    let ticks = facts.next.ticks_apart?;
    let (least_ns, most_ns) = match tick {
        Some(tick) => (tick.apart_least_ns(ticks), tick.apart_most_ns(ticks)),
        // There are as many ticks as milliseconds: that is no coincidence.
        None => {
            let ticks_ns = u64::from(ticks) * NS_PER_MS;
            let is_it = ticks_ns.abs_diff(waited_ns) <= waited_ns / 16;
            return is_it.then_some(true);
        }
    };
    if least_ns.saturating_mul(2) >= waited_ns {
        return Some(true);
    }
    (most_ns.saturating_mul(4) < waited_ns).then_some(false)
}

/// Returns whether one segment came, and more only when an answer can have let it go.
fn is_alone(facts: &Facts) -> bool {
    facts.after.prompt_segments <= 1
}

/// Finds a tail that was lost before it reached the capture. Such a tail looks like a sender
/// that has no more data, except for how the sender goes on: a timer's time after the last
/// data, with one full segment and then a round trip of nothing, or with a probe that leaves a
/// hole.
fn lost_before_the_capture(facts: &Facts, context: &Context<'_>) -> Option<Finding> {
    if context.view == View::Sender || facts.closed == Closed::Reset {
        return None;
    }
    let waited_ns = facts.duration_ns();
    // A tail loss probe may have come before the timeout, and restarts the timer (RFC 8985,
    // section 7.3: after two round trips).
    let probe_ns = facts.trips.rtt_ns.unwrap_or(0).saturating_mul(2);
    let timer = facts.trips.rto_ns / 20 * 17..facts.trips.rto_ns / 4 * 5 + probe_ns;
    let tick = context.flow.sender_clock.tick(waited_ns);
    let apart_ns = tick
        .zip(facts.next.ticks_apart)
        .map(|(tick, ticks)| tick.apart_most_ns(ticks));
    if let Some(apart_ns) = apart_ns.filter(|apart_ns| apart_ns.saturating_mul(4) < waited_ns) {
        let stood_ns = tick.map_or(0, |tick| context.flow.sender_clock.stood_still_ns(tick));
        let lags = stood_ns.saturating_mul(2) >= waited_ns;
        let text = format!(
            "by the sender's own clock what came {} apart was sent within {}: {}",
            ms(waited_ns),
            ms(apart_ns),
            if lags {
                "the clock lags from then on, so its host stood still"
            } else {
                "it was held up on its way to the capture"
            }
        );
        let finding = Finding::new(Cause::DelaySpike, Confidence::Medium, text);
        return Some(if lags {
            finding.on(Side::Sender)
        } else {
            finding
        });
    }
    // A hole that no repair filled is the capture's own.
    let left_hole = facts.gap.holes > 0 && facts.after.is_hole_filled;
    if left_hole {
        let text = format!(
            "after {} the sender went on behind a hole: what came before was lost on its way to \
             the capture",
            ms(waited_ns)
        );
        let cause = if waited_ns < timer.start {
            Cause::TailLossProbe
        } else {
            Cause::RtoTail
        };
        return Some(Finding::new(cause, Confidence::Low, text));
    }
    if let Some(missed) = facts
        .next
        .missed
        .filter(|missed| u64::from(*missed) >= WHOLE_FLIGHT)
    {
        let text = format!(
            "by the numbers of its packets the sender sent {missed} more in these {}, none of which \
             came here",
            ms(waited_ns)
        );
        // Or to others: a host that counts all its packets with one number looks the same while it
        // has one connection.
        return Some(Finding::new(Cause::SilentPath, Confidence::Low, text));
    }
    if facts.next.knows_ack == Some(false) {
        let text = format!(
            "what came after {} had been sent before the last acknowledgement reached its sender: \
             the way takes so long by now, and the sender waited for acknowledgements",
            ms(waited_ns)
        );
        return Some(Finding::new(Cause::DelaySpike, Confidence::Low, text));
    }
    if facts.peer_spoke() || facts.next.missed == Some(0) {
        return None; // it answers the other side's, at whatever time, or sent nothing meanwhile
    }
    let alone = is_alone(facts);
    let is_full = facts.data.last_bytes >= facts.data.mss_bytes.max(MSS_LEAST_BYTES);
    // Timeouts double: two, three, four, five of them take so many times the first.
    let several = [3, 7, 15, 31].into_iter().any(|times| {
        let due_ns = facts.trips.rto_ns.saturating_mul(times);
        let (least_ns, most_ns) = (due_ns / 10 * 9, due_ns / 10 * 11 + probe_ns);
        (least_ns..=most_ns).contains(&waited_ns)
    });
    if several && alone && is_full && facts.trips.rtt_ns.is_some() {
        let text = format!(
            "after {} the sender went on with a single segment, as after several timeouts: the \
             tail and its repairs were lost before the capture, or the sender paused",
            ms(waited_ns)
        );
        return Some(Finding::new(Cause::RtoTail, Confidence::Low, text));
    }
    if timer.contains(&waited_ns) && alone && is_full && facts.trips.rtt_ns.is_some() {
        let text = format!(
            "after {}, which is a timer's time, the sender went on with a single segment: the \
             tail was lost on its way to the capture, or the sender paused by chance as long",
            ms(waited_ns)
        );
        return Some(Finding::new(Cause::RtoTail, Confidence::Low, text));
    }
    None
}
