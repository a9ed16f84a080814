// SPDX-License-Identifier: MIT OR Apache-2.0
//! The port's clock, and the class to serve next.

use num_bigint::BigInt;
use num_integer::Integer;
use num_traits::ToPrimitive;

use super::{
    Choice, Mode, PS_PER_NS, RING_FRAMES, Reference, STALL_PS, STEP_MAX_NS, Type, integer,
};

impl Reference {
    pub(super) fn advance_line(&mut self, now_ns: u64) {
        if now_ns > self.line_ns {
            let elapsed_ns = (now_ns - self.line_ns).min(STEP_MAX_NS);
            self.line += elapsed_ns * PS_PER_NS;
            self.line_ns = now_ns;
        }
    }

    pub(super) fn advance_clock(&mut self, now_ns: u64) {
        self.advance_port_clock(now_ns);
        if self.cfg.mode == Mode::Timer || self.lead.idling || !self.nobody_active() {
            self.advance_period(now_ns);
        }
    }

    pub(super) fn advance_port_clock(&mut self, now_ns: u64) {
        match self.cfg.mode {
            Mode::Timer if now_ns <= self.line_ns => {}
            Mode::Timer => {
                let nobody_was_due = self.first_eligible().is_none();
                self.advance_line(now_ns);
                self.global = self.global.clone().max(self.line.clone());
                if nobody_was_due {
                    self.note_idle(&self.busy_until.clone());
                }
                self.bound_lag();
            }
            Mode::Hybrid | Mode::Gap => {
                if self.lead.idling {
                    self.idle_follow(now_ns);
                }
            }
        }
    }

    /// Notes until when the line idled: it was free from `free` on, until now or the
    /// first clock.
    pub(super) fn note_idle(&mut self, free: &BigInt) {
        let first = self.smallest().unwrap_or(self.global.clone());
        let until = first.min(self.global.clone());
        if until > *free {
            self.idled = until;
        }
    }

    pub(super) fn ring(&self) -> BigInt {
        (self.takes_ps(self.max_burst()) * RING_FRAMES).max(BigInt::from(STALL_PS))
    }

    pub(super) fn end_idle(&mut self, now_ns: u64) {
        self.advance_line(now_ns);
        let ring = self.ring();
        if self.line >= self.global {
            self.global = self.line.clone();
            self.idled = self.global.clone();
        } else if &self.global - &self.line > ring {
            self.line = &self.global - ring;
        }
    }

    pub(super) fn normal_next(&mut self) -> Option<u32> {
        loop {
            let id = *self.round.front()?;
            let max_frame = self.cfg.max_frame_bytes;
            let class = self.class_mut(id);
            if class.deficit_bytes > 0 {
                return Some(id);
            }
            let Type::Normal { quantum_bytes } = class.class_type else {
                unreachable!("only normal classes are in the round");
            };
            class.deficit_bytes += i64::from(match quantum_bytes {
                0 => max_frame,
                bytes => bytes,
            });
            if class.deficit_bytes > 0 {
                return Some(id);
            }
            self.round.rotate_left(1);
        }
    }

    /// The class to serve now: paced, by the period, best effort, borrowing, excess.
    pub(super) fn pick(&mut self) -> Option<u32> {
        let rt = self.rt_next();
        if rt.is_some() && self.rt_is_urgent() {
            return rt;
        }
        if let Some(id) = self.first_eligible().or(rt) {
            return Some(id);
        }
        if !self.budget_left() {
            return None;
        }
        let mut held = false;
        if let Some(id) = self.nrt_next() {
            if !self.cfg.guard_band || self.head_fits(id) {
                return Some(id);
            }
            self.guard_band_held += 1;
            held = true;
        }
        if !self.round.is_empty() {
            let normal = if self.cfg.guard_band {
                self.guarded_next()
            } else {
                self.normal_next()
            };
            if normal.is_some() {
                return normal;
            }
            held = true;
        }
        if let Some(id) = self.borrow_next() {
            let wire = u64::from(self.classes[&id].last.wire_bytes);
            return (!held || self.fits(wire)).then_some(id);
        }
        let id = self.excess_next()?;
        if !self.cfg.guard_band || self.head_fits(id) {
            return Some(id);
        }
        self.guard_band_held += 1;
        None
    }

    pub fn next(&mut self, now_ns: u64) -> Choice {
        if let Some(until_ns) = self.standing_ns.filter(|&until_ns| now_ns < until_ns) {
            self.advance_port_clock(now_ns);
            self.asked_ns = now_ns;
            return Choice::Wait(until_ns);
        }
        self.invalidate();
        self.asked_ns = now_ns;
        self.advance_clock(now_ns);
        let choice = self.decide(now_ns);
        self.standing_ns = match choice {
            Choice::Wait(until_ns)
                if !self.cfg.guard_band
                    || (self.round.is_empty() && !self.has_active_reservations()) =>
            {
                Some(until_ns)
            }
            _ => None,
        };
        choice
    }

    fn decide(&mut self, now_ns: u64) -> Choice {
        if self.cfg.mode == Mode::Timer {
            return self.next_timer();
        }
        loop {
            if let Some(id) = self.pick() {
                return Choice::Send(id);
            }
            let Some((first, id)) = self.first_ahead() else {
                return Choice::Idle;
            };
            let gap = &first - &self.global;
            match id {
                Some(id) if gap <= self.half_gap_ps() => return Choice::Send(id),
                _ => {}
            }
            if self.cfg.mode == Mode::Gap || gap <= self.lead_ps() + self.idle_least() {
                let bytes = integer(&(gap - self.rounding_ps())) / self.takes(1);
                return self.gap(bytes.ceil().to_integer().to_u64().expect("a gap"));
            }
            if self.lead.idling {
                let until = first - self.lead_ps();
                let choice = self.wait(&until);
                if let Choice::Wait(until_ns) = choice {
                    self.lead.armed = Some(until_ns);
                }
                return choice;
            }
            self.idle_begin(now_ns);
            self.advance_period(now_ns);
        }
    }

    pub(super) fn next_timer(&mut self) -> Choice {
        if self.nobody_active() {
            return Choice::Idle;
        }
        let busy_until = self.busy_until.clone();
        if busy_until <= self.global {
            if let Some(id) = self.pick() {
                return Choice::Send(id);
            }
        } else if self.any_ready() {
            return self.wait(&busy_until);
        }
        let (first, _) = self.first_ahead().expect("somebody waits");
        if busy_until <= self.global {
            self.wait(&first)
        } else {
            self.wait(&first.max(busy_until))
        }
    }

    fn any_ready(&mut self) -> bool {
        self.first_eligible().is_some()
            || self.rt_next().is_some()
            || (self.budget_left()
                && (!self.round.is_empty()
                    || self.nrt_next().is_some()
                    || self.borrow_next().is_some()
                    || self.excess_next().is_some()))
    }

    pub(super) fn wait(&self, until: &BigInt) -> Choice {
        let ns = (until - &self.line).div_ceil(&BigInt::from(PS_PER_NS));
        Choice::Wait(self.line_ns + ns.to_u64().expect("ns"))
    }

    pub(super) fn gap(&self, gap: u64) -> Choice {
        let min = self.wire(self.cfg.min_frame_bytes);
        let max = self.max_wire();
        // The longest frame that leaves no remainder too small for another.
        let fits = |frame: &u64| *frame == gap || (*frame < gap && gap - frame >= min);
        let frame = (min..=max).rev().find(fits).unwrap_or(min);
        Choice::Gap(frame as u32)
    }
}
