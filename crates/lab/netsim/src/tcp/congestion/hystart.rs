// SPDX-License-Identifier: MIT OR Apache-2.0
//! HyStart, as Linux' CUBIC has it: slow start ends when the acknowledgements of a round come close
//! together for half of the least round trip (all of it, if the sender paces), or when round trips grow by
//! an eighth (Ha and Rhee, "Taming the elephants: New TCP slow start", 2011).

use units::clock::{Span, Time};

use super::window::Window;

/// Windows below this are left alone, segments.
const WINDOW_LEAST: u32 = 16;
/// Acknowledgements of one train are no further apart.
const TRAIN_GAP: Span = Span::from_ns(2_000_000);
/// Most time that a train is given for what the sender hands over at once, and bits of that.
const HANDED_MOST: Span = Span::from_ns(1_000_000);
const HANDED_BITS: u64 = 4 * 65_536 * 8;
/// Samples of a round before its least round trip counts.
const SAMPLES: u32 = 8;
/// Growth of round trips that counts: an eighth, within these.
const GROWTH_LEAST: Span = Span::from_ns(4_000_000);
const GROWTH_MOST: Span = Span::from_ns(16_000_000);

/// A measured round trip, and where the sender is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RttSample {
    pub now: Time,
    pub rtt: Span,
    pub una: u64,
    pub nxt: u64,
    /// Whether the sender spaces its segments.
    pub is_paced: bool,
    /// Twice the window in a smoothed round trip, bit/s; 0: not known.
    pub rate_bps: u64,
}

#[derive(Clone, Debug, Default)]
pub(super) struct HyStart {
    least: Option<Span>,
    is_found: bool,
    round: Round,
}

#[derive(Clone, Debug, Default)]
struct Round {
    start: Time,
    last: Time,
    /// The round ends when this is acknowledged.
    end: u64,
    least: Option<Span>,
    samples: u32,
}

impl HyStart {
    /// Ends slow start, if a round trip says so.
    pub fn on_rtt(&mut self, window: &mut Window, sample: &RttSample) {
        let rtt = sample.rtt;
        let least = self.least.map_or(rtt, |least| least.min(rtt));
        self.least = Some(least);
        if self.is_found || !window.in_slow_start(false) || window.cwnd < WINDOW_LEAST {
            return;
        }
        let now = sample.now;
        if sample.una > self.round.end {
            self.round = Round {
                start: now,
                last: now,
                end: sample.nxt,
                ..Round::default()
            };
        }
        let round = &mut self.round;
        if now.since(round.last) <= TRAIN_GAP {
            round.last = now;
            let whole = least + handed(sample.rate_bps);
            let most = if sample.is_paced {
                whole
            } else {
                Span::from_ps(whole.as_ps() / 2)
            };
            self.is_found |= now.since(round.start) > most;
        }
        let of_round = round.least.map_or(rtt, |least| least.min(rtt));
        round.least = Some(of_round);
        if round.samples < SAMPLES {
            round.samples += 1;
        } else {
            let eighth = Span::from_ps(least.as_ps() / 8);
            self.is_found |= of_round > least + eighth.clamp(GROWTH_LEAST, GROWTH_MOST);
        }
        if self.is_found {
            window.ssthresh = window.cwnd;
        }
    }
}

/// Returns the time that what the sender hands over at once takes at its rate.
fn handed(rate_bps: u64) -> Span {
    let ns = (HANDED_BITS * 1_000_000_000).checked_div(rate_bps);
    ns.map_or(Span::ZERO, |ns| Span::from_ns(ns).min(HANDED_MOST))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Rounds of acknowledgements, each `gap_ns` apart, of a window that doubles; returns it as slow start
    /// leaves it, or after ten rounds.
    fn window_after(gap_ns: u64, is_paced: bool, rtt_ns: impl Fn(u32, u64) -> u64) -> u32 {
        let mut hystart = HyStart::default();
        let mut window = Window {
            cwnd: 10,
            ssthresh: u32::MAX,
            count: 0,
            abc_bytes: 0,
        };
        let (mut begin_ns, mut una) = (100 * MS, 0);
        for round in 0..10 {
            let flight = u64::from(window.cwnd);
            let nxt = una + flight;
            for number in 0..flight {
                una += 1;
                let sample = RttSample {
                    now: Time::START + Span::from_ns(begin_ns + number * gap_ns),
                    rtt: Span::from_ns(rtt_ns(round, number)),
                    una,
                    nxt,
                    is_paced,
                    rate_bps: 1_000_000_000,
                };
                hystart.on_rtt(&mut window, &sample);
                if window.cwnd >= window.ssthresh {
                    return window.cwnd;
                }
                window.grow();
            }
            begin_ns += 100 * MS;
        }
        window.cwnd
    }

    /// Of a round trip of 100 ms, 0.1 ms between acknowledgements: a train of half of that, and 1 ms more for
    /// what is handed over, has 505 segments and more; paced 1,010.
    #[test]
    fn a_long_train_ends_slow_start() {
        let even = |_, _| 100 * MS;
        let alone = window_after(100_000, false, even);
        let paced = window_after(100_000, true, even);
        assert_eq!(alone, 640 + 506);
        assert_eq!(paced, 1280 + 1011);
    }

    #[test]
    fn a_round_trip_that_grows_by_an_eighth_ends_slow_start() {
        let grown_ns = |by_ns: u64| {
            move |round, _| {
                if round == 3 {
                    100 * MS + by_ns
                } else {
                    100 * MS
                }
            }
        };
        // The ninth sample of the round that begins with 80 segments.
        assert_eq!(window_after(5 * MS, false, grown_ns(13 * MS)), 88);
        assert_eq!(window_after(5 * MS, false, grown_ns(12 * MS)), 10 << 10);
    }
}
