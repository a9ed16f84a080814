// SPDX-License-Identifier: MIT OR Apache-2.0
//! Borrowing above a rate and below a ceil, and the guard band.

use num_bigint::BigInt;
use num_integer::Integer;
use num_rational::BigRational;

use super::{Class, Mode, Reference, SLACK_PS, Type, UNIT_PS, integer};

impl Reference {
    fn sharing(&self) -> impl Iterator<Item = (&u32, &Class)> {
        self.paced().filter(|(_, class)| class.ceil_bps != 0)
    }

    /// A frame up to half a smallest gap ahead of its clock leaves now.
    pub(super) fn at_rate(&self, class: &Class) -> bool {
        let early = match self.cfg.mode {
            Mode::Timer => BigInt::ZERO,
            Mode::Gap | Mode::Hybrid => self.half_gap_ps(),
        };
        class.ceil_bps == 0 || self.ordered(&class.due()) <= &self.global + early
    }

    /// Raises the ceil clock of a class that could have sent and did not.
    pub(super) fn ceil_return(&mut self, id: u32) {
        let floor = self.classes[&id].rate_due().min(self.global.clone());
        let class = self.class_mut(id);
        if class.ceil_due() < floor {
            class.ceil_clock = integer(&floor);
        }
    }

    /// Moves classes below their ceil to those that borrow, at the others' time.
    fn promote(&mut self) {
        let ready = |class: &Class| !class.borrowing && self.is_reached(&class.ceil_due());
        let ids: Vec<u32> = self
            .sharing()
            .filter(|(_, class)| ready(class))
            .map(|(&id, _)| id)
            .collect();
        for id in ids {
            self.raise_borrow_clock(id);
            self.class_mut(id).borrowing = true;
        }
    }

    fn raise_borrow_clock(&mut self, id: u32) {
        let floor = self.borrow_time.clone();
        let class = self.class_mut(id);
        if class.borrow_clock.ceil().to_integer() < floor {
            class.borrow_clock = integer(&floor);
        }
    }

    pub(super) fn insert_borrowing(&mut self, _id: u32) {
        self.promote();
    }

    pub(super) fn borrow_next(&mut self) -> Option<u32> {
        self.promote();
        loop {
            let unit = BigInt::from(UNIT_PS);
            let key = |class: &Class| class.borrow_clock.ceil().to_integer().div_floor(&unit);
            let (&id, class) = self
                .sharing()
                .filter(|(_, class)| class.borrowing)
                .min_by_key(|(id, class)| (key(class), **id))?;
            if self.is_reached(&class.ceil_due()) {
                return Some(id);
            }
            self.class_mut(id).borrowing = false;
        }
    }

    /// Returns the first clock ahead and its class, or the end of the period.
    pub(super) fn first_ahead(&self) -> Option<(BigInt, Option<u32>)> {
        let clock = self.first_clock().map(|(at, id)| (at, Some(id)));
        let period = self.awaited_period().map(|at| (at, None));
        match (clock, period) {
            (Some(clock), Some(period)) if period.0 < clock.0 => Some(period),
            (clock, period) => clock.or(period),
        }
    }

    /// The first eligible time or ceil clock.
    fn first_clock(&self) -> Option<(BigInt, u32)> {
        let rate = self.first_due();
        let waiting = self.sharing().filter(|(_, class)| !class.borrowing);
        let ceil = waiting
            .filter(|_| self.budget_left())
            .map(|(&id, class)| (class.ceil_due(), id))
            .min_by_key(|(due, id)| self.key(due, *id));
        match (rate, ceil) {
            (Some(rate), Some(ceil)) if ceil.0 < rate.0 => Some(ceil),
            (rate, ceil) => rate.or(ceil),
        }
    }

    fn ceil_advance(&mut self, id: u32, floor: BigInt) {
        let class = &self.classes[&id];
        let advance = self.advance(class.ceil_bps, class.last);
        let class = self.class_mut(id);
        if class.ceil_due() < floor {
            class.ceil_clock = integer(&floor);
        }
        class.ceil_clock += advance;
    }

    /// The least ceil clock: lag behind it is not made up for.
    fn slack_floor(&self, id: u32) -> BigInt {
        let class = &self.classes[&id];
        let period: BigRational = self.advance(class.ceil_bps, class.last).floor();
        let floor = &self.global - period.to_integer() * 2;
        match self.cfg.mode {
            Mode::Timer => floor - SLACK_PS,
            Mode::Gap | Mode::Hybrid => floor,
        }
    }

    pub(super) fn ceil_sent(&mut self, id: u32) {
        if self.classes[&id].ceil_bps != 0 {
            let floor = self.slack_floor(id).min(self.classes[&id].rate_due());
            self.ceil_advance(id, floor);
        }
    }

    pub(super) fn sent_borrowed(&mut self, id: u32) {
        self.idled = self.global.clone();
        self.ceil_advance(id, self.slack_floor(id));
        self.raise_borrow_clock(id);
        self.borrow_time = self.classes[&id].borrow_clock.ceil().to_integer();
        let class = &self.classes[&id];
        let advance = self.advance(class.rate_bps, class.last);
        self.class_mut(id).borrow_clock += advance;
        self.borrowed_frames += 1;
    }

    /// Returns true if so many bytes end before a paced class is eligible.
    pub(super) fn fits(&self, wire: u64) -> bool {
        self.smallest()
            .is_none_or(|first| &self.global + self.takes_ps(wire) <= first)
    }

    pub(super) fn head_fits(&self, id: u32) -> bool {
        match self.classes[&id].head {
            0 => self.fits(self.max_burst()),
            head => self.fits(head),
        }
    }

    fn quantum(&self, id: u32) -> i64 {
        match self.classes[&id].class_type {
            Type::Normal { quantum_bytes: 0 } => i64::from(self.cfg.max_frame_bytes),
            Type::Normal { quantum_bytes } => i64::from(quantum_bytes),
            _ => unreachable!("only normal classes are in the round"),
        }
    }

    pub(super) fn guarded_next(&mut self) -> Option<u32> {
        let fits: Vec<bool> = self.round.iter().map(|&id| self.head_fits(id)).collect();
        if !fits[0] {
            self.guard_band_held += 1;
        }
        if !fits.contains(&true) {
            return None;
        }
        for place in (0..fits.len()).cycle() {
            let id = *self.round.front()?;
            let quantum = self.quantum(id);
            let class = self.class_mut(id);
            if class.deficit_bytes <= 0 || class.passed {
                class.deficit_bytes += quantum;
            }
            class.passed = !fits[place];
            if class.passed {
                class.deficit_bytes = class.deficit_bytes.min(2 * quantum);
            } else if class.deficit_bytes > 0 {
                return Some(id);
            }
            self.round.rotate_left(1);
        }
        None
    }
}
