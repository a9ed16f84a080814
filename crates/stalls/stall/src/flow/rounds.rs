// SPDX-License-Identifier: MIT OR Apache-2.0
//! Divides a transfer into round trips, finds what limited each, and joins consecutive rounds
//! of one limit to phases. Takes constant memory.

use std::num::NonZeroU64;

use units::time::{NS_PER_MS, NS_PER_S};

use super::at::At;
use crate::analysis::CwndEstimate;

/// Shortest round: a round lasts a round trip, and at least this.
pub(super) const ROUND_MIN_NS: u64 = 2 * NS_PER_MS;
/// Length of a round where the round trip is not known.
pub(super) const ROUND_BLIND_NS: u64 = 100 * NS_PER_MS;
/// Consecutive rounds of another limit that do not end a phase.
const MISSES_MOST: u32 = 2;
/// Most phases kept of one flow.
const PHASES_MOST: usize = 256;

/// What limited the rate of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    /// The repair of losses at one segment or a few each round trip.
    Pinned,
    /// Growth of the window after a collapse: less than half of the rate before.
    Growth,
    /// The receiver's window.
    Window,
    /// The same amount each round, in one piece, below both windows.
    Plateau,
}

impl Limit {
    /// Returns the number of rounds in a row that make a phase of this limit.
    fn rounds_least(self) -> u64 {
        match self {
            Limit::Pinned => 4,
            Limit::Growth | Limit::Window | Limit::Plateau => 10,
        }
    }
}

/// Consecutive rounds of one limit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Phase {
    pub(crate) limit: Limit,
    pub(crate) start_ns: u64,
    pub(crate) end_ns: u64,
    pub(crate) rounds: u64,
    /// Whether the sender reached the window's edge in each round.
    pub(crate) all_reached_edge: bool,
    pub(crate) delivered_bytes: u64,
    /// Smallest and largest amount of a round: its bytes in flight, or delivered if that is
    /// more.
    pub(crate) flight: (u64, u64),
    pub(crate) window: (u64, u64),
    pub(crate) retransmitted: u64,
    pub(crate) first_packet: u64,
    pub(crate) last_packet: u64,
    /// Rate before the phase, in bytes per second, if it is known.
    pub(crate) rate_before: Option<NonZeroU64>,
    first_amount: u64,
    misses: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct Round {
    new_bytes: u64,
    delivered: u64,
    retransmitted: u64,
    flight: u64,
    window: Option<(u64, u64)>,
    /// Most bytes outstanding when the sender sent, as far as the sender knew.
    sender_flight: u64,
    /// Whether the sender reached the window's edge.
    reached_edge: bool,
    /// How often new data began to flow again, and how often an acknowledgement had just let it
    /// go.
    bursts: u32,
    bursts_let_go: u32,
    idle_starts: u64,
    silence_ns: u64,
    last_event_ns: Option<NonZeroU64>,
    first_packet: Option<NonZeroU64>,
    last_packet: u64,
}

/// What the flow knows when a round ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RoundState {
    pub(super) length_ns: u64,
    pub(super) is_recovering: bool,
    pub(super) is_in_loss: bool,
    pub(super) window_known: bool,
    pub(super) mss: u64,
}

/// The rounds of one flow.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rounds {
    start_ns: Option<u64>,
    now: Round,
    /// Rate of undisturbed rounds, smoothed, in bytes per second.
    rate: Option<NonZeroU64>,
    /// The same rate before the last loss.
    rate_before_loss: Option<NonZeroU64>,
    collapsed: bool,
    phase: Option<Phase>,
    done: Vec<Phase>,
    dropped: u64,
    cwnd: Option<CwndEstimate>,
}

impl Rounds {
    pub(super) fn is_over(&self, now: u64) -> bool {
        self.start_ns
            .is_none_or(|end| now.saturating_sub(end) >= ROUND_MIN_NS)
    }

    pub(super) fn tick(&mut self, now: u64, state: RoundState) {
        let start = *self.start_ns.get_or_insert(now);
        let duration = now.saturating_sub(start);
        if duration < state.length_ns {
            return;
        }
        if let Some(last_ns) = self.now.last_event_ns {
            let silence_ns = now.saturating_sub(last_ns.get());
            self.now.silence_ns = self.now.silence_ns.max(silence_ns);
        }
        self.close(start, now, state);
        self.start_ns = Some(now);
        self.now = Round {
            last_event_ns: NonZeroU64::new(now),
            ..Round::default()
        };
    }

    /// Ends the last round and the phase, because the connection ends.
    pub(super) fn end(&mut self, state: RoundState) {
        if let Some(start) = self.start_ns {
            let last_ns = self.now.last_event_ns;
            let now = last_ns.map_or(start, |ns| ns.get().max(start));
            if now > start {
                self.close(start, now, state);
            }
        }
        self.end_phase();
    }

    fn note_event(&mut self, at: At) {
        let round = &mut self.now;
        if let Some(last_ns) = round.last_event_ns {
            let silence_ns = at.now.saturating_sub(last_ns.get());
            round.silence_ns = round.silence_ns.max(silence_ns);
        }
        round.last_event_ns = NonZeroU64::new(at.now);
        if round.first_packet.is_none() {
            round.first_packet = Some(at.packet);
        }
        round.last_packet = at.packet.get();
    }

    pub(super) fn note_new(&mut self, at: At, bytes: u64, idle: bool) {
        self.note_event(at);
        self.now.new_bytes += bytes;
        self.now.idle_starts += u64::from(idle);
    }

    pub(super) fn note_delivered(&mut self, at: At, bytes: u64) {
        if self.now.first_packet.is_none() {
            self.note_event(at);
        }
        self.now.last_packet = at.packet.get();
        self.now.delivered += bytes;
    }

    pub(super) fn note_retransmitted(&mut self, at: At, segments: u64) {
        self.note_event(at);
        if self.now.retransmitted == 0 && !self.collapsed {
            self.rate_before_loss = self.rate_before_loss.max(self.rate);
        }
        self.now.retransmitted += segments;
    }

    /// Notes that the congestion window fell to one segment.
    pub(super) fn note_collapse(&mut self) {
        self.collapsed = true;
    }

    pub(super) fn note_flight(&mut self, bytes: u64) {
        self.now.flight = self.now.flight.max(bytes);
    }

    /// Notes how many bytes were outstanding, as far as the sender knew, and whether the window
    /// had room for less than one segment more.
    pub(super) fn note_used_window(&mut self, bytes: u64, at_edge: bool) {
        self.now.sender_flight = self.now.sender_flight.max(bytes);
        self.now.reached_edge |= at_edge;
    }

    /// Notes new data after a quarter of a round trip without any. `let_go`: an acknowledgement
    /// had just reached the sender.
    pub(super) fn note_burst(&mut self, let_go: bool) {
        self.now.bursts += 1;
        self.now.bursts_let_go += u32::from(let_go);
    }

    pub(super) fn note_window(&mut self, window: u64) {
        let (least, most) = self.now.window.unwrap_or((window, window));
        self.now.window = Some((least.min(window), most.max(window)));
    }

    /// Returns the rate before the present disturbance, in bytes per second, if it is known.
    pub(crate) fn rate(&self) -> Option<NonZeroU64> {
        self.rate.max(self.rate_before_loss)
    }

    pub(crate) fn cwnd(&self) -> Option<CwndEstimate> {
        self.cwnd
    }

    pub(crate) fn phases(&self) -> &[Phase] {
        &self.done
    }

    pub(crate) fn dropped(&self) -> u64 {
        self.dropped
    }

    fn close(&mut self, start: u64, end: u64, state: RoundState) {
        let round = self.now;
        if round.new_bytes == 0 && round.delivered == 0 && round.retransmitted == 0 {
            return;
        }
        let duration = end - start;
        let rate = per_second(round.delivered, duration);
        if duration > 3 * state.length_ns {
            self.end_phase();
            return; // a pause lies within the round
        }
        let disturbed = round.retransmitted > 0 || state.is_recovering || state.is_in_loss;
        let limit = self.limit(&round, rate, duration, disturbed, state);
        self.estimate_cwnd(&round, limit);
        if !disturbed && !self.collapsed && round.idle_starts == 0 {
            let smooth = |of: NonZeroU64| of.get() - of.get() / 4 + rate / 4;
            self.rate = NonZeroU64::new(self.rate.map_or(rate, smooth));
            self.rate_before_loss = self.rate_before_loss.min(self.rate);
        }
        let before = self.rate_before_loss.map_or(0, NonZeroU64::get);
        if self.collapsed && !disturbed && rate >= before / 2 {
            self.collapsed = false;
            self.rate = NonZeroU64::new(rate);
            self.rate_before_loss = None;
        }
        self.extend(limit, &round, start, end);
    }

    fn limit(
        &self,
        round: &Round,
        rate: u64,
        duration: u64,
        disturbed: bool,
        state: RoundState,
    ) -> Option<Limit> {
        let before = self.rate_before_loss.map_or(0, NonZeroU64::get);
        let before_per_round = (u128::from(before) * u128::from(duration) / 1_000_000_000) as u64;
        let crawls = round.delivered <= (3 * state.mss).max(before_per_round / 10)
            && before_per_round >= 10 * state.mss;
        if state.is_recovering && !state.is_in_loss && round.retransmitted > 0 && crawls {
            return Some(Limit::Pinned);
        }
        if state.is_in_loss && crawls {
            return Some(Limit::Growth);
        }
        let idle = round.idle_starts > 0;
        let window = round.window.map_or(0, |(_, most)| most);
        let full = state.window_known && window > 0 && {
            let per_round = u128::from(round.delivered) * u128::from(state.length_ns);
            let by_rate = per_round / u128::from(duration.max(1));
            let at_edge = round.reached_edge && round.sender_flight * 10 >= window * 7;
            at_edge || by_rate * 100 >= u128::from(window) * 85
        };
        if full && !disturbed {
            return Some(Limit::Window);
        }
        if self.collapsed && !disturbed && !idle && rate < before / 2 {
            return Some(Limit::Growth);
        }
        let in_pieces = round.silence_ns * 10 >= duration * 4;
        let below = !state.window_known || round.flight * 2 <= window;
        let moves = round.new_bytes > 0 && round.delivered > 0;
        // A full send buffer accepts more when an acknowledgement frees room in it; a program
        // that sends by the clock does so at any time.
        let let_go = round.bursts_let_go * 2 >= round.bursts;
        if !disturbed && !idle && in_pieces && below && moves && let_go && !self.collapsed {
            return Some(Limit::Plateau);
        }
        None
    }

    fn estimate_cwnd(&mut self, round: &Round, limit: Option<Limit>) {
        if round.new_bytes == 0 && round.retransmitted == 0 {
            return;
        }
        let low = round.flight;
        // Where neither the receiver's window nor the sender's supply is the limit, the
        // congestion window is. A burst that the device holds back is allowed for.
        let free = round.idle_starts == 0 && !matches!(limit, Some(Limit::Window | Limit::Plateau));
        let high = free.then(|| low + (low / 4).max(2 * 1448));
        self.cwnd = Some(CwndEstimate {
            low_bytes: low,
            high_bytes: high,
        });
    }

    fn extend(&mut self, limit: Option<Limit>, round: &Round, start: u64, end: u64) {
        // A capture at the receiver, or between, sees less outstanding than there is.
        let amount = round.flight.max(round.delivered);
        let steady = |phase: &Phase| {
            // A plateau lasts only as long as its rounds are of about the same amount.
            let level = amount.abs_diff(phase.first_amount) * 8 <= phase.first_amount;
            limit != Some(Limit::Plateau) || level
        };
        if let Some(phase) = &mut self.phase {
            if limit == Some(phase.limit) && steady(phase) {
                phase.end_ns = end;
                phase.rounds += 1;
                phase.all_reached_edge &= round.reached_edge;
                phase.delivered_bytes += round.delivered;
                phase.retransmitted += round.retransmitted;
                phase.last_packet = phase.last_packet.max(round.last_packet);
                phase.flight.0 = phase.flight.0.min(amount);
                phase.flight.1 = phase.flight.1.max(amount);
                if let Some((least, most)) = round.window {
                    phase.window.0 = phase.window.0.min(least);
                    phase.window.1 = phase.window.1.max(most);
                }
                phase.misses = 0;
                return;
            }
            phase.misses += 1;
            if phase.misses <= MISSES_MOST {
                phase.delivered_bytes += round.delivered;
                return;
            }
            self.end_phase();
        }
        let Some(limit) = limit else {
            return;
        };
        let window = round.window.unwrap_or((0, 0));
        self.phase = Some(Phase {
            limit,
            start_ns: start,
            end_ns: end,
            rounds: 1,
            all_reached_edge: round.reached_edge,
            delivered_bytes: round.delivered,
            flight: (amount, amount),
            first_amount: amount,
            window,
            retransmitted: round.retransmitted,
            first_packet: round
                .first_packet
                .map_or(round.last_packet, NonZeroU64::get),
            last_packet: round.last_packet,
            rate_before: self.rate(),
            misses: 0,
        });
    }

    fn end_phase(&mut self) {
        let Some(phase) = self.phase.take() else {
            return;
        };
        if phase.rounds < phase.limit.rounds_least() {
            return;
        }
        if self.done.len() < PHASES_MOST {
            self.done.push(phase);
        } else {
            self.dropped += 1;
        }
    }
}

/// Returns a rate in bytes per second.
pub(crate) fn per_second(bytes: u64, ns: u64) -> u64 {
    let whole = u128::from(bytes) * u128::from(NS_PER_S) / u128::from(ns.max(1));
    u64::try_from(whole).unwrap_or(u64::MAX)
}
