// SPDX-License-Identifier: MIT OR Apache-2.0
//! Classes by the period. Each frame is kept with the number of the period in which
//! it arrived.

use num_bigint::BigInt;
use num_traits::ToPrimitive;
use pace::{Burst, ReservationStats, Stats};

use super::periods::SAVED_AND_OWN;
use super::{Class, PS_PER_NS, Reference, Type, integer};

impl Class {
    fn reserve(&self) -> Option<i128> {
        self.class_type.reserve_bytes().map(i128::from)
    }

    fn is_rt(&self) -> bool {
        matches!(self.class_type, Type::Rt { .. })
    }

    /// Wire bytes that arrived before a period.
    fn gated(&self, number: u64) -> u64 {
        let came_before = self
            .reservation
            .frames
            .iter()
            .filter(|frame| frame.1 < number);
        came_before.map(|frame| frame.0).sum()
    }
}

impl Reference {
    pub(super) fn has_reservation(&self, id: u32) -> bool {
        self.classes[&id].reserve().is_some()
    }

    fn in_force(&self) -> bool {
        self.classes.values().any(|class| class.reserve().is_some())
    }

    pub(super) fn has_active_reservations(&self) -> bool {
        let mut active = self.classes.values().filter(|class| class.active);
        active.any(|class| class.reserve().is_some())
    }

    /// Ends the period if no class but maybe `but` has a reservation.
    pub(super) fn stop_without_reservations(&mut self, but: Option<u32>) {
        let mut others = self.classes.iter().filter(|(id, _)| Some(**id) != but);
        if others.all(|(_, class)| class.reserve().is_none()) {
            self.periods.running = false;
        }
    }

    pub(super) fn budget_left(&self) -> bool {
        !self.in_force() || self.periods.budget_left > 0
    }

    pub(super) fn charge(&mut self, burst: Burst) {
        if self.in_force() {
            self.periods.budget_left -= i128::from(self.counted(burst));
        }
    }

    fn ended(&self) -> bool {
        self.global >= self.periods.end
    }

    pub(super) fn advance_period(&mut self, now_ns: u64) {
        if !self.in_force() || (self.periods.running && !self.ended()) {
            return;
        }
        let period = self.cfg.period.expect("reservations have a period");
        let length = BigInt::from(period.length_ns * PS_PER_NS);
        let mut missed = 0;
        if self.periods.running {
            self.count_left();
            let past = &self.global - &self.periods.end;
            missed = (past / &length).to_u64().expect("periods");
            if missed > 0 {
                self.periods.budget_left = 0;
            }
        } else {
            self.periods.running = true;
            self.periods.end_ns = None;
            self.periods.budget_left = 0;
            self.periods.end = self.global.clone();
        }
        let budget = i128::from(period.budget_bytes);
        self.periods.budget_left = self.periods.budget_left.clamp(-budget, 0) + budget;
        self.begin_period(missed);
        self.periods.end = match period.align_ns {
            Some(align_ns) => {
                let before_ns = self.periods.end_ns;
                let ns = to_next(now_ns, align_ns, period.length_ns, before_ns);
                self.periods.end_ns = Some(now_ns + ns);
                &self.global + ns * PS_PER_NS
            }
            None => {
                self.periods.end_ns = None;
                let whole = (&self.global - &self.periods.end) / &length;
                let end = &self.periods.end + (whole + 1u32) * length;
                debug_assert!(end > self.global);
                end
            }
        };
    }

    /// Begins a period, after `missed` ones of an idle port.
    fn begin_period(&mut self, missed: u64) {
        let periods = &mut self.periods;
        periods.number += missed + 1;
        periods.begun += 1;
        periods.rt.append(&mut periods.late);
        periods.rt.append(&mut periods.excess);
        periods.rt.append(&mut periods.rt_next);
        periods.nrt.append(&mut periods.nrt_next);
        for class in self.classes.values_mut() {
            let Some(reserve) = class.reserve() else {
                continue;
            };
            let brought = i128::from(missed) * reserve;
            if class.is_rt() {
                let credit = class.reservation.credit + brought + reserve;
                class.reservation.credit = credit.min(SAVED_AND_OWN * reserve);
                class.reservation.late_left = reserve;
                class.reservation.left = reserve;
            } else {
                class.reservation.left = (class.reservation.left + brought).min(0) + reserve;
            }
        }
    }

    fn count_left(&mut self) {
        let rt = self.periods.rt.clone();
        let late = self.periods.late.clone();
        let nrt = self.periods.nrt.clone();
        let excess = self.periods.excess.clone();
        let spent = !self.budget_left();
        for id in rt {
            self.class_mut(id).reservation.stats.overrun += 1;
            self.periods.all_rt.overrun += 1;
        }
        for &id in &excess {
            let reservation = &mut self.class_mut(id).reservation;
            if reservation.credit > 0 {
                reservation.stats.deferred += 1;
                self.periods.all_rt.deferred += 1;
            }
        }
        for &id in &late {
            let stats = &mut self.class_mut(id).reservation.stats;
            if spent {
                stats.deferred += 1;
                self.periods.all_rt.deferred += 1;
            } else {
                stats.overrun += 1;
                self.periods.all_rt.overrun += 1;
            }
        }
        if spent {
            for &id in &nrt {
                self.class_mut(id).reservation.stats.deferred += 1;
                self.periods.nrt_deferred += 1;
            }
            if !(late.is_empty() && excess.is_empty() && nrt.is_empty() && self.round.is_empty()) {
                self.periods.spent += 1;
            }
        }
    }

    pub fn arrived(&mut self, id: u32, wire_bytes: u32, now_ns: u64) {
        self.advance_to_arrival(now_ns);
        let number = self.periods.number;
        let frames = &mut self.class_mut(id).reservation.frames;
        frames.push_back((u64::from(wire_bytes), number));
    }

    pub fn dropped(&mut self, id: u32, now_ns: u64) {
        self.advance_to_arrival(now_ns);
        self.class_mut(id).reservation.frames.pop_front();
        if !self.periods.rt_next.contains(&id) {
            self.requeue_rt(id);
        }
    }

    fn forget(&mut self, id: u32) {
        let periods = &mut self.periods;
        for turns in [
            &mut periods.rt,
            &mut periods.late,
            &mut periods.excess,
            &mut periods.rt_next,
            &mut periods.nrt,
            &mut periods.nrt_next,
        ] {
            turns.retain(|&other| other != id);
        }
    }

    pub(super) fn insert_reservation(&mut self, id: u32) {
        let class = &self.classes[&id];
        let gated = class.gated(self.periods.number) > 0;
        let left = class.reservation.left > 0;
        let turns = match (class.is_rt(), gated, left) {
            (true, true, _) => &mut self.periods.rt,
            (true, false, _) => &mut self.periods.rt_next,
            (false, _, true) => &mut self.periods.nrt,
            (false, _, false) => &mut self.periods.nrt_next,
        };
        turns.push_back(id);
    }

    pub(super) fn remove_reservation(&mut self, id: u32) {
        self.class_mut(id).reservation.frames.clear();
        self.forget(id);
    }

    pub(super) fn reservation_sent(&mut self, id: u32, burst: Burst, more: bool) {
        let counted = i128::from(self.counted(burst));
        let is_rt = self.classes[&id].is_rt();
        if is_rt {
            let own = counted.min(self.classes[&id].reservation.left.max(0));
            let late = u64::try_from(counted - own).expect("a frame");
            let reservation = &mut self.class_mut(id).reservation;
            reservation.frames.pop_front();
            if reservation.credit > 0 {
                reservation.credit -= counted;
                reservation.left -= own;
                reservation.late_left -= counted - own;
                reservation.stats.catchup_bytes += late;
                self.periods.all_rt.catchup_bytes += late;
            }
        } else {
            self.class_mut(id).reservation.left -= counted;
        }
        if !more {
            self.unschedule(id);
        } else if is_rt {
            self.requeue_rt(id);
        } else {
            self.forget(id);
            if self.classes[&id].reservation.left > 0 {
                self.periods.nrt.push_back(id);
            } else {
                self.class_mut(id).reservation.stats.deferred += 1;
                self.periods.nrt_deferred += 1;
                self.periods.nrt_next.push_back(id);
            }
        }
    }

    fn requeue_rt(&mut self, id: u32) {
        let within = self.periods.rt.contains(&id);
        let was_excess = self.periods.excess.contains(&id);
        self.forget(id);
        let reservation = &self.classes[&id].reservation;
        let (left, late_left, credit) =
            (reservation.left, reservation.late_left, reservation.credit);
        if self.classes[&id].gated(self.periods.number) == 0 {
            self.periods.rt_next.push_back(id);
            return;
        }
        if credit > 0 && left > 0 {
            self.periods.rt.push_back(id);
            return;
        }
        if within {
            self.class_mut(id).reservation.stats.over += 1;
            self.periods.all_rt.over += 1;
        }
        if credit > 0 && late_left > 0 {
            self.periods.late.push_back(id);
            return;
        }
        if credit <= 0 && !was_excess {
            self.class_mut(id).reservation.stats.excess += 1;
            self.periods.all_rt.excess += 1;
        }
        self.periods.excess.push_back(id);
    }

    pub(super) fn excess_next(&self) -> Option<u32> {
        let excess = self.periods.excess.front().filter(|_| self.budget_left());
        excess.copied()
    }

    pub(super) fn rt_next(&mut self) -> Option<u32> {
        while let Some(&id) = self.periods.rt.front() {
            if self.classes[&id].reservation.credit > 0 {
                return Some(id);
            }
            self.requeue_rt(id);
        }
        let late = self.periods.late.front().filter(|_| self.budget_left());
        late.copied()
    }

    pub(super) fn rt_is_urgent(&self) -> bool {
        let number = self.periods.number;
        let gated: u64 = self
            .classes
            .iter()
            .filter(|(id, class)| class.is_rt() && !self.periods.excess.contains(id))
            .map(|(_, class)| class.gated(number))
            .sum();
        let left = integer(&(&self.periods.end - &self.global)) / self.takes(1);
        left.floor().to_integer() <= BigInt::from(gated + self.max_burst())
    }

    pub(super) fn nrt_next(&mut self) -> Option<u32> {
        if !self.budget_left() {
            return None;
        }
        while let Some(&id) = self.periods.nrt.front() {
            if self.classes[&id].reservation.left > 0 {
                return Some(id);
            }
            self.forget(id);
            self.periods.nrt_next.push_back(id);
        }
        None
    }

    /// When the next period begins, or None if no frame waits for it.
    pub(super) fn awaited_period(&self) -> Option<BigInt> {
        let periods = &self.periods;
        let until_then = !periods.rt_next.is_empty() || !periods.nrt_next.is_empty();
        let for_its_budget = !periods.late.is_empty()
            || !periods.excess.is_empty()
            || !periods.nrt.is_empty()
            || !self.round.is_empty()
            || self.paced().any(|(_, class)| class.ceil_bps != 0);
        let held = until_then || (!self.budget_left() && for_its_budget);
        (self.in_force() && held).then(|| periods.end.clone())
    }

    pub fn reservation_stats(&self, id: u32) -> ReservationStats {
        self.classes[&id].reservation.stats
    }

    /// The counters of the core that are kept here.
    pub fn counted_periods(&self, others: Stats) -> Stats {
        let periods = &self.periods;
        Stats {
            periods: periods.begun,
            periods_spent: periods.spent,
            rt_over: periods.all_rt.over,
            rt_deferred: periods.all_rt.deferred,
            rt_overrun: periods.all_rt.overrun,
            rt_catchup_bytes: periods.all_rt.catchup_bytes,
            nrt_deferred: periods.nrt_deferred,
            rt_excess: periods.all_rt.excess,
            ..others
        }
    }
}

/// The ns to the next instant of the alignment that is not, within half a period, the
/// one before.
fn to_next(now_ns: u64, align_ns: u64, length_ns: u64, before_ns: Option<u64>) -> u64 {
    let apart = i128::from(now_ns) - i128::from(align_ns);
    let length = i128::from(length_ns);
    let past = apart.rem_euclid(length);
    let ahead = u64::try_from(length - past).expect("a period at most");
    let again = before_ns.is_some_and(|ns| ns.abs_diff(now_ns + ahead) < length_ns / 2);
    ahead + if again { length_ns } else { 0 }
}
