// SPDX-License-Identifier: MIT OR Apache-2.0
//! How long a tick of the sender's timestamp clock is (RFC 7323, 5.4: 1 ms to 1 s), as
//! far as its segments tell.

/// So many ticks must have passed for each one that may be counted too much.
const TICKS_FOR_EACH_UNSURE: u64 = 8;

/// Ticks and time between segments of one sender. A delay on the way lengthens the time
/// and not the ticks, so pauses are counted apart from what runs without one.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SenderClock {
    last: Option<(u32, u64)>,
    running_ticks: u64,
    running_ns: u64,
    pauses: u64,
    all_ticks: u64,
    all_ns: u64,
}

/// The shortest and the longest that a tick may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tick {
    least_ns: u64,
    most_ns: u64,
}

impl SenderClock {
    /// A segment with this timestamp. After `pause_ns` without one there was a pause.
    pub(super) fn note(&mut self, value: u32, now: u64, pause_ns: u64) {
        let Some((last, since)) = self.last else {
            self.last = Some((value, now));
            return;
        };
        let ticks = value.wrapping_sub(last);
        if ticks >= 1 << 31 {
            return; // it was overtaken
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

    /// What a tick is, known without the pause of `pause_ns` that is to be judged by it.
    /// `None`: too few ticks passed to say.
    pub(crate) fn tick(&self, pause_ns: u64) -> Option<Tick> {
        let of = |ticks: u64, ns: u64, unsure: u64| {
            (ticks > TICKS_FOR_EACH_UNSURE * unsure).then(|| Tick {
                least_ns: ns / (ticks + unsure),
                most_ns: ns / (ticks - unsure) + 1,
            })
        };
        // The count of each stretch between two pauses is off by one at most.
        let running = of(self.running_ticks, self.running_ns, self.pauses + 1);
        // Of a long time a single pause makes a small part, whatever it was.
        let all = || of(self.all_ticks, self.all_ns, 1).filter(|_| self.all_ns / 10 >= pause_ns);
        running.or_else(all)
    }
}

impl Tick {
    /// Two segments so many ticks apart were sent within this.
    pub(crate) fn apart_most_ns(self, ticks: u32) -> u64 {
        (u64::from(ticks) + 1).saturating_mul(self.most_ns)
    }

    /// And not closer together than this.
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
