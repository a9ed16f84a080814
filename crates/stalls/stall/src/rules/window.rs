// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules for pauses in which the receiver's window was closed.

use units::time::NS_PER_MS;

use super::finding::{Context, Finding};
use crate::cause::{Cause, Confidence, Side};
use crate::flow::facts::{Closed, Facts, LET_GO_NS};
use crate::vantage::{View, ms};

/// Finds a lost window update: the window was open long before the sender went on, and the
/// sender had to probe. What reported the opening was lost after the capture.
pub(super) fn update_lost(facts: &Facts, context: &Context<'_>) -> Option<Finding> {
    let gap = &facts.gap;
    let opened = gap.opened?;
    let opened_ns = opened.now;
    if gap.window_probes.count() == 0 || gap.timeouts > 0 {
        return None;
    }
    let probe_ns = gap.last_window_probe_ns;
    let answer_ns = facts.trips.receiver_rtt_ns.saturating_mul(3) / 2 + NS_PER_MS;
    let packets = gap
        .closed_window
        .iter()
        .chain(gap.window_probes.iter())
        .chain([opened.packet.get()]);
    if let Some(ignored_ns) = ignored_ns(facts, context) {
        let text = format!(
            "the window was open again after {}, but the sender still probed {} later: what told \
             it was lost between the capture and the sender",
            ms(opened_ns - gap.closed_ns.min(opened_ns)),
            ms(ignored_ns)
        );
        let finding = Finding::new(Cause::ZeroWindowProbe, Confidence::Medium, text);
        return Some(finding.on(Side::Network).shown_by(packets));
    }
    let by_answer = opened_ns >= probe_ns && opened_ns - probe_ns <= answer_ns;
    if !by_answer || probe_ns < gap.closed_ns {
        return None;
    }
    let text = format!(
        "the window closed, and the sender learnt that it was open again by probe {} after {}",
        gap.window_probes.count(),
        ms(opened_ns - gap.closed_ns.min(opened_ns))
    );
    // From here, a receiver that reported the opening and one that did not look alike.
    let finding = Finding::new(Cause::ZeroWindowProbe, Confidence::Medium, text);
    Some(finding.on(Side::Unknown).shown_by(packets))
}

/// Returns for how long the sender probed a window that was open where it was captured, if that
/// is longer than the news took to reach it.
pub(super) fn ignored_ns(facts: &Facts, context: &Context<'_>) -> Option<u64> {
    let opened_ns = facts.gap.opened?.now;
    let ignored_ns = facts.gap.last_window_probe_ns.saturating_sub(opened_ns);
    let way_ns = facts
        .trips
        .rtt_ns
        .unwrap_or(facts.trips.rtt_min_ns)
        .max(NS_PER_MS);
    let is_late = facts.gap.window_probes.count() > 0
        && facts.gap.timeouts == 0
        && ignored_ns > way_ns.saturating_mul(2);
    (is_late && context.view != View::Sender).then_some(ignored_ns)
}

/// Finds a window that was closed for at least half of the pause.
pub(super) fn closed(facts: &Facts, context: &Context<'_>) -> Option<Finding> {
    let gap = &facts.gap;
    let probes = gap.window_probes.count();
    let is_closed = gap.window_least == Some(0) || probes > 0;
    if gap.closed_window.count() == 0 || !is_closed {
        return None;
    }
    let closed_ns = closed_ns(facts);
    if closed_ns.saturating_mul(2) < facts.duration_ns() {
        return None;
    }
    let rest = match (gap.opened, facts.closed) {
        (Some(_), _) => "until it told of room again",
        (None, Closed::Reset) => "until the connection was reset",
        (None, Closed::Capture) => "and had not opened when the capture ended",
        (None, _) => "until data passed again",
    };
    let text = format!(
        "the receiver's window was closed for {}, {rest}; the sender probed it {probes} times",
        ms(closed_ns)
    );
    let packets = gap
        .closed_window
        .iter()
        .chain(gap.opened.map(|at| at.packet.get()));
    // A closed window holds up only a sender that has something to send. A probe shows that,
    // and so does data that follows the opening at once.
    let waited = probes > 0 || gap.opened.is_some_and(|at| is_let_go(facts, at.now));
    // Where probes were not answered, or acknowledged data came again, packets of the receiver were lost, and one of them may have
    // told of room. At the receiver it would have been captured.
    let lost = gap.probes_unanswered > 0 || gap.retransmitted_acked.count() > 0;
    let saw_all = !lost || context.view == View::Receiver;
    // With a queue in the way, what told of room may be the answer to a probe.
    let now_ns = facts.trips.rtt_ns.unwrap_or(0).saturating_mul(3) / 2 + NS_PER_MS;
    let probe_ns = gap.last_window_probe_ns;
    let may_answer = probes > 0
        && gap
            .opened
            .is_some_and(|at| (probe_ns..=probe_ns + now_ns).contains(&at.now));
    let confidence = match facts.closed {
        _ if waited && gap.timeouts == 0 && saw_all && !may_answer => Confidence::High,
        Closed::Capture | Closed::Reset if !waited => Confidence::Low,
        _ => Confidence::Medium,
    };
    let finding = Finding::new(Cause::ReceiverWindowClosed, confidence, text);
    Some(finding.shown_by(packets))
}

/// Returns for how long of the pause the window was closed.
pub(super) fn closed_ns(facts: &Facts) -> u64 {
    let from = facts.gap.closed_ns.max(facts.start_ns);
    let until = facts.gap.opened.map_or(facts.end_ns, |at| at.now);
    until.saturating_sub(from)
}

/// Returns whether the data that ended the pause followed the packet captured at `at_ns` as
/// soon as it could.
fn is_let_go(facts: &Facts, at_ns: u64) -> bool {
    let way_ns = facts.trips.sender_rtt_ns;
    let allowed_ns = way_ns / 4 * 3..=way_ns + (way_ns / 4).max(LET_GO_NS);
    facts.closed == Closed::NewData && allowed_ns.contains(&facts.end_ns.saturating_sub(at_ns))
}

/// Finds a window that was filled before the acknowledgement that ended the pause and had room
/// with it. One that is then as large as it ever was, after a time that fits a timer, may have
/// been read at once, and only told of late.
pub(super) fn filled(facts: &Facts, is_timer: bool) -> Option<Finding> {
    let room = facts
        .gap
        .room_least_bytes
        .filter(|_| facts.window.is_room_known)?;
    let had = facts.after.burst_bytes;
    let enough = had
        .min(facts.data.mss_bytes)
        .min(facts.window.max_bytes / 2);
    let untold = is_timer && facts.window.is_whole;
    let is_filled = room == 0 || facts.window.has_grown;
    if facts.closed != Closed::Delivery || room >= enough || !is_filled || untold {
        return None;
    }
    let text = format!(
        "what had been sent left room for {room} bytes in the receiver's window, and {had} \
         bytes followed when it had more"
    );
    Some(Finding::new(
        Cause::ReceiverWindowClosed,
        Confidence::Medium,
        text,
    ))
}

/// Finds a window without room for what came next, when everything that was sent had arrived. A
/// sender may send what it has if that fits, or if it makes a full segment or half of the
/// largest window (RFC 1122, 4.2.3.4): the size of a full segment says nothing by itself.
pub(super) fn no_room(facts: &Facts) -> Option<Finding> {
    let room = facts
        .gap
        .room_least_bytes
        .filter(|_| facts.window.is_room_known)?;
    let text = |what: &str| format!("the receiver's window had room for {room} bytes: {what}");
    let found = |confidence, text| Finding::new(Cause::ReceiverWindowClosed, confidence, text);
    if facts.closed != Closed::NewData {
        return None; // nothing shows that there was more to send
    }
    let had = facts.after.prompt_bytes;
    let enough = had
        .min(facts.data.mss_bytes)
        .min(facts.window.max_bytes / 2);
    let update = facts.gap.update.filter(|at| is_let_go(facts, at.now));
    if let Some(at) = update.filter(|_| room < enough) {
        let what = format!("{had} bytes followed as soon as it had more");
        let confidence = if facts.peer_spoke() || facts.window.bytes.is_none() {
            Confidence::Medium
        } else {
            Confidence::High
        };
        return Some(found(confidence, text(&what)).shown_by([at.packet.get()]));
    }
    // It opened so late in the pause that the sender could not have sent for most of it.
    let opened = facts.gap.update.filter(|at| {
        let closed_ns = at.now.saturating_sub(facts.start_ns);
        closed_ns >= facts.duration_ns() / 4 * 3
    });
    if let Some(at) = opened.filter(|_| room < enough) {
        let what = format!("{had} bytes followed when it had more");
        return Some(found(Confidence::Medium, text(&what)).shown_by([at.packet.get()]));
    }
    // It fills the window as it was before the update: that never told the sender of room.
    if let (true, Some(at)) = (
        facts.next.fills_untold && had < facts.data.mss_bytes,
        facts.gap.update,
    ) {
        let text = "the sender waited, and then filled the window as it was before the update that \
                    told of room: that was lost between the capture and the sender";
        let finding = Finding::new(Cause::ZeroWindowProbe, Confidence::Medium, text.to_owned());
        return Some(finding.on(Side::Network).shown_by([at.packet.get()]));
    }
    // A timer made the sender send into the room that there was, and no more than that.
    if facts.next.fills_window && room > 0 && room < facts.data.mss_bytes && had >= room {
        let what = "the sender waited, and then filled it to its edge";
        return Some(found(Confidence::Medium, text(what)));
    }
    None
}
