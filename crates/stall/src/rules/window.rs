// SPDX-License-Identifier: MIT OR Apache-2.0
//! The receiver's window was closed.

use units::time::NS_PER_MS;

use super::{Context, Finding};
use crate::cause::{Cause, Confidence, Side};
use crate::flow::facts::{Closed, Facts};
use crate::vantage::{View, ms};

/// The window was open for long before the sender went on, and it had to
/// probe: what told of it was lost after the capture.
pub(super) fn update_lost(facts: &Facts, context: &Context<'_>) -> Option<Finding> {
    let gap = &facts.gap;
    let (opened_ns, opened) = gap.opened?;
    if gap.window_probes.count() == 0 || gap.timeouts > 0 {
        return None;
    }
    let probe_ns = gap.last_window_probe_ns;
    let answer_ns = facts.receiver_rtt_ns.saturating_mul(3) / 2 + NS_PER_MS;
    let packets = gap
        .closed_window
        .iter()
        .chain(gap.window_probes.iter())
        .chain([opened]);
    let ignored_ns = probe_ns.saturating_sub(opened_ns);
    let way_ns = facts.rtt_ns.unwrap_or(facts.rtt_min_ns).max(NS_PER_MS);
    if probe_ns > opened_ns && ignored_ns > way_ns.saturating_mul(2) && context.view != View::Sender
    {
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
    // A receiver that had told of it, and one that did not, look alike from here.
    let finding = Finding::new(Cause::ZeroWindowProbe, Confidence::Medium, text);
    Some(finding.on(Side::Unknown).shown_by(packets))
}

/// Closed for at least half of the pause.
pub(super) fn closed(facts: &Facts, _: &Context<'_>) -> Option<Finding> {
    let gap = &facts.gap;
    if gap.closed_window.count() == 0 || gap.timeouts > 0 {
        return None;
    }
    let from = gap.closed_ns.max(facts.start_ns);
    let until = gap.opened.map_or(facts.end_ns, |(at, _)| at);
    let closed_ns = until.saturating_sub(from);
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
        "the receiver's window was closed for {}, {rest}; the sender probed it {} times",
        ms(closed_ns),
        gap.window_probes.count()
    );
    let packets = gap
        .closed_window
        .iter()
        .chain(gap.opened.map(|(_, packet)| packet));
    let finding = Finding::new(Cause::ReceiverWindowClosed, Confidence::High, text);
    Some(finding.shown_by(packets))
}
