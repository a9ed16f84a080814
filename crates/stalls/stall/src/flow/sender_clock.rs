// SPDX-License-Identifier: MIT OR Apache-2.0
//! Estimates the length of a tick of the sender's timestamp clock (RFC 7323, 5.4: 1 ms to 1 s)
//! from its segments.

use units::time::{NS_PER_MS, NS_PER_S};

/// Ticks that must have passed for each tick that may be miscounted.
const TICKS_FOR_EACH_UNSURE: u64 = 8;

/// Ticks and time between segments of one sender. A delay on the path lengthens the time and
/// not the ticks, so stretches with a pause are counted apart from those without one.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SenderClock {
    last: Option<(u32, u64)>,
    running_ticks: u64,
    running_ns: u64,
    pauses: u64,
    all_ticks: u64,
    all_ns: u64,
}

/// The shortest and the longest length that a tick may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tick {
    least_ns: u64,
    most_ns: u64,
}

impl SenderClock {
    /// Notes a segment with this timestamp. `pause_ns` or more since the last one is a pause.
    pub(super) fn note(&mut self, value: u32, now: u64, pause_ns: u64) {
        let Some((last, since)) = self.last else {
            self.last = Some((value, now));
            return;
        };
        let ticks = value.wrapping_sub(last);
        if ticks >= 1 << 31 {
            return; // the segment was overtaken
        }
        let ns = now.saturating_sub(since);
        self.last = Some((value, now));
        self.all_ticks += u64::from(ticks);
        self.all_ns += ns;
        if ns < pause_ns {
            self.running_ticks += u64::from(ticks);
            self.running_ns += ns;
        } else {
            self.pauses += 1;
        }
    }

    /// Returns for how long the clock stood still at least, with ticks of this length: a host that
    /// was stopped has a clock that lags from then on. What was held up on the way has not.
    pub(crate) fn stood_still_ns(&self, tick: Tick) -> u64 {
        self.all_ns
            .saturating_sub((self.all_ticks + 1).saturating_mul(tick.most_ns))
    }

    /// Returns whether the clock ticks so often at least, by all of its segments: with a pause among
    /// them its ticks seem longer, not shorter.
    pub(crate) fn has_ticks_of(&self, ns: u64) -> bool {
        self.all_ticks > TICKS_FOR_EACH_UNSURE && self.all_ns / (self.all_ticks - 1) <= ns
    }

    /// Returns the length of a tick, estimated without the pause of `pause_ns` that is to be
    /// judged by it. `None`: too few ticks have passed.
    pub(crate) fn tick(&self, pause_ns: u64) -> Option<Tick> {
        let of = |ticks: u64, ns: u64, unsure: u64| {
            (ticks > TICKS_FOR_EACH_UNSURE * unsure)
                .then(|| Tick {
                    least_ns: ns / (ticks + unsure),
                    most_ns: ns / (ticks - unsure) + 1,
                })
                .filter(|tick| tick.is_a_clocks())
        };
        // The count of each stretch between two pauses is off by one at most.
        let running = of(self.running_ticks, self.running_ns, self.pauses + 1);
        // A single pause is a small part of a long time, whatever its cause was.
        // What was held up comes in a heap: then many ticks seem to pass in no time.
        let is_heap = self.running_ticks > TICKS_FOR_EACH_UNSURE * (self.pauses + 1);
        let is_enough = |_: &Tick| is_heap || self.all_ns / 10 >= pause_ns;
        running.or_else(|| of(self.all_ticks, self.all_ns, 1).filter(is_enough))
    }
}

impl Tick {
    /// Returns whether a clock of timestamps ticks so: each millisecond to each second (RFC 7323,
    /// 5.4), or each microsecond, which Linux can do between hosts of one site.
    fn is_a_clocks(self) -> bool {
        let fits = |ticks: std::ops::RangeInclusive<u64>| {
            self.least_ns <= *ticks.end() && self.most_ns >= *ticks.start()
        };
        fits(NS_PER_MS / 10 * 9..=NS_PER_S / 10 * 11) || fits(900..=1100)
    }

    /// Returns the longest time between the sending of two segments so many ticks apart.
    pub(crate) fn apart_most_ns(self, ticks: u32) -> u64 {
        (u64::from(ticks) + 1).saturating_mul(self.most_ns)
    }

    /// Returns the shortest time between the sending of two segments so many ticks apart.
    pub(crate) fn apart_least_ns(self, ticks: u32) -> u64 {
        u64::from(ticks)
            .saturating_sub(1)
            .saturating_mul(self.least_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn clocks_of_each_rate_in_use_are_read() {
        for hz in [2u64, 10, 100, 250, 1000] {
            let mut clock = SenderClock::default();
            for i in 0..40 {
                let now = i * 1000 / hz * MS;
                clock.note(i as u32, now, 1000 * 1000 / hz * MS);
            }
            let tick = clock.tick(MS).unwrap();
            let true_ns = 1_000_000_000 / hz;
            assert!(tick.least_ns <= true_ns && true_ns <= tick.most_ns, "{hz}");
            assert!(tick.most_ns < true_ns * 6 / 5, "{hz}: {tick:?}");
        }
    }

    #[test]
    fn few_ticks_tell_nothing() {
        let mut clock = SenderClock::default();
        for i in 0..10 {
            clock.note(i, u64::from(i) * 2000 * MS, 200 * MS);
        }
        assert_eq!(clock.tick(2000 * MS), None);
    }

    #[test]
    fn a_delay_does_not_lengthen_the_tick() {
        let mut clock = SenderClock::default();
        for i in 0..50u32 {
            let late = if i < 25 { 0 } else { 3000 };
            clock.note(i, (u64::from(i) + late) * MS, 200 * MS);
        }
        let tick = clock.tick(3000 * MS).unwrap();
        assert!(tick.most_ns < 2 * MS, "{tick:?}");
    }
}
