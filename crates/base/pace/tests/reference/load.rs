// SPDX-License-Identifier: MIT OR Apache-2.0
//! Over-subscription: the lag of classes, and when it is forgotten.

use num_bigint::BigInt;
use num_traits::{One, Zero};

use super::{Class, LAG_MAX_PS, Mode, Order, PS_PER_NS, Reference, STALL_PS, integer, lead};

impl Reference {
    pub(super) fn over_subscribed(&self) -> bool {
        let demand: u128 = self
            .paced()
            .map(|(_, class)| {
                let wire = u128::from(class.rate_bps) * u128::from(class.last.wire_bytes);
                wire.div_ceil(u128::from(self.counted(class.last)))
            })
            .sum();
        demand > u128::from(self.cfg.line_rate_bps)
    }

    /// The virtual finish time, which orders eligible classes and measures lag.
    pub(super) fn virtual_finish(&self, class: &Class) -> BigInt {
        let largest = self.advance(class.rate_bps, self.longest());
        match self.cfg.order {
            Order::Next => class.due() + largest.ceil().to_integer(),
            Order::Clock | Order::Rate => class.due(),
        }
    }

    /// As a queue orders them.
    fn smallest_finish(&self) -> Option<BigInt> {
        self.paced()
            .map(|(_, class)| self.ordered(&self.virtual_finish(class)))
            .min()
    }

    /// The eligible time of the class that is first by it, and that class.
    pub(super) fn first_due(&self) -> Option<(BigInt, u32)> {
        self.paced()
            .map(|(&id, class)| (class.due(), id))
            .min_by_key(|(due, id)| self.key(due, *id))
    }

    pub(super) fn smallest(&self) -> Option<BigInt> {
        self.first_due().map(|(due, _)| due)
    }

    /// Rebases: moves all clocks forward together.
    fn rebase(&mut self, by: &BigInt) {
        for class in self.classes.values_mut() {
            class.clock += integer(by);
            class.ceil_clock += integer(by);
        }
        self.last_finish += by;
        self.idled += by;
        self.shifted += by;
    }

    /// Forgets the common lag when the line suffices again.
    pub(super) fn settle(&mut self, was_over: bool, left: Option<BigInt>) {
        if !was_over || self.over_subscribed() || self.cfg.order == Order::Rate {
            return;
        }
        let left = left.map(|left| self.ordered(&left));
        let smallest = self.smallest_finish().into_iter().chain(left).min();
        if let Some(smallest) = smallest.filter(|smallest| *smallest < self.global) {
            let by = &self.global - smallest;
            self.rebase(&by);
        }
    }

    /// Lateness of a timer that is made up for.
    pub(super) fn stall(&self) -> BigInt {
        match self.cfg.mode {
            Mode::Timer => BigInt::from(STALL_PS),
            Mode::Hybrid => BigInt::from(lead::LEAD_MAX_NS * PS_PER_NS),
            Mode::Gap => BigInt::zero(),
        }
    }

    pub(super) fn lag_max(&self) -> BigInt {
        let frames = self.paced().count() as u64 + 2;
        let lag = self.takes_ps(self.max_burst()) * frames + self.stall();
        lag.min(BigInt::from(LAG_MAX_PS))
    }

    pub(super) fn bound_lag(&mut self) {
        if self.cfg.order == Order::Rate {
            return;
        }
        let floor = &self.global - self.lag_max();
        if let Some(smallest) = self.smallest_finish().filter(|smallest| *smallest < floor) {
            let by = floor - smallest;
            self.rebase(&by);
        }
    }

    /// Bounds the lag of one class in order rate.
    pub(super) fn bound_class_lag(&mut self, id: u32) {
        let class = &self.classes[&id];
        let ratio_frames = self.max_burst().div_ceil(u64::from(class.last.wire_bytes));
        let frames = ((self.paced().count() as u64 + 2) * ratio_frames).min(1 << 20);
        let advance = self.advance(class.rate_bps, class.last);
        let whole: BigInt = advance.floor().to_integer() + BigInt::one();
        let lag = BigInt::from(frames) * whole + self.stall();
        let floor = &self.global - lag.min(BigInt::from(LAG_MAX_PS));
        if class.rate_due() < floor {
            self.class_mut(id).clock = integer(&floor);
        }
    }

    /// How far virtual time is behind.
    pub(super) fn standing(&self) -> BigInt {
        let floor = &self.global - self.lag_max() * 2;
        let stands = self.last_finish.clone().max(self.idled.clone()).max(floor);
        match self.cfg.order {
            Order::Clock | Order::Next => stands.min(self.global.clone()),
            Order::Rate => self.global.clone(),
        }
    }

    /// Sets the clock of a class that becomes active.
    pub(super) fn restart(&mut self, id: u32, stands: BigInt) {
        let class = &self.classes[&id];
        let idled = self.idled.clone().min(self.global.clone());
        if self.virtual_finish(class) >= stands && class.due() >= idled {
            return;
        }
        let start = if self.over_subscribed() {
            stands
        } else {
            self.global.clone()
        };
        self.class_mut(id).clock = integer(&start);
    }
}
