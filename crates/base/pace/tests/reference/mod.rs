// SPDX-License-Identifier: MIT OR Apache-2.0
//! The scheduler written down a second time, as plainly as possible: clocks
//! are rational numbers that never wrap, choices are linear scans, and moving
//! all clocks means adding to all of them. It shares nothing with the core
//! but the description (docs of scheduling, docs/decisions/core.md).

mod borrow;
mod hybrid;
mod lead;
mod line;
mod load;
mod next;
mod periods;
mod reservation;

use std::collections::{BTreeMap, VecDeque};
use std::mem::discriminant;

use lead::Lead;
use num_bigint::{BigInt, BigUint};
use num_rational::BigRational;
use num_traits::{One, ToPrimitive, Zero};
use pace::{Burst, Config, LEAD_MAX_PS, Layer, Mode, Order};
use periods::{Periods, Reservation};

/// One byte at 1 bit/s, in picoseconds.
const BYTE_PS: u64 = 8_000_000_000_000;
const PS_PER_NS: u64 = 1000;
const SLACK_PS: u64 = 100_000_000;
const STALL_PS: u64 = 4_000_000_000;
const LAG_MAX_PS: u64 = 1 << 46;
/// What a queue orders clocks by: so many picoseconds are one instant.
const UNIT_PS: u64 = 64;
const RING_FRAMES: u64 = 256;
/// How far behind the port's a new class's clock is.
const NEVER_SERVED_PS: u64 = 480_000_000_000_000;
/// In units of 2^32 ns.
const SILENT_MAX: u32 = 1 << 21;
/// The longest silence of a host that counts.
const STEP_MAX_NS: u64 = 1 << 42;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// A ceil of 0: none.
    Paced {
        rate_bps: u64,
        ceil_bps: u64,
    },
    Normal {
        quantum_bytes: u32,
    },
    Rt {
        reserve_bytes: u64,
    },
    Nrt {
        reserve_bytes: u64,
    },
}

impl Type {
    /// What the class reserves of a period.
    fn reserve_bytes(self) -> Option<u64> {
        match self {
            Type::Rt { reserve_bytes } | Type::Nrt { reserve_bytes } => Some(reserve_bytes),
            Type::Paced { .. } | Type::Normal { .. } => None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    Idle,
    Send(u32),
    Gap(u32),
    Wait(u64),
}

struct Class {
    class_type: Type,
    active: bool,
    /// Its last rate; 0 if it was never paced.
    rate_bps: u64,
    /// Its last ceil, or 0.
    ceil_bps: u64,
    /// Exact, as the next two clocks.
    clock: BigRational,
    ceil_clock: BigRational,
    borrow_clock: BigRational,
    /// Is among those that borrow.
    borrowing: bool,
    last: Burst,
    /// When it was last active: clocks wrap, so silence beyond SILENT_MAX clears its debt.
    left_ns: u64,
    deficit_bytes: i64,
    /// Guard band: its visit ended unserved.
    passed: bool,
    head: u64,
    reservation: Reservation,
}

impl Class {
    fn set(&mut self, class_type: Type) {
        self.class_type = class_type;
        self.head = 0;
        if let Type::Paced { rate_bps, ceil_bps } = class_type {
            self.rate_bps = rate_bps;
            self.ceil_bps = if ceil_bps > rate_bps { ceil_bps } else { 0 };
        }
    }

    /// The first whole picosecond at which its rate lets it send.
    fn rate_due(&self) -> BigInt {
        self.clock.ceil().to_integer()
    }

    fn ceil_due(&self) -> BigInt {
        self.ceil_clock.ceil().to_integer()
    }

    /// The first whole picosecond at which it may send.
    fn due(&self) -> BigInt {
        match self.ceil_bps {
            0 => self.rate_due(),
            _ => self.rate_due().max(self.ceil_due()),
        }
    }
}

pub struct Reference {
    cfg: Config,
    pub global: BigInt,
    /// Virtual finish time of the last paced frame.
    last_finish: BigInt,
    /// The last time at which no paced class was eligible.
    idled: BigInt,
    busy_until: BigInt,
    /// What was charged to the line and is below a picosecond.
    carried: BigRational,
    /// The host's clock, as `global` counts.
    line: BigInt,
    line_ns: u64,
    classes: BTreeMap<u32, Class>,
    round: VecDeque<u32>,
    /// Borrow clock of the last borrowed frame.
    borrow_time: BigInt,
    lead: Lead,
    pub periods: Periods,
    /// The answer WAIT that stands, as nothing has changed since.
    standing_ns: Option<u64>,
    /// When next() was last asked while that answer stood.
    asked_ns: u64,
    pub shifted: BigInt,
    pub borrowed_frames: u64,
    pub guard_band_held: u64,
}

fn ratio(a: u64, b: u64) -> BigRational {
    BigRational::new(BigInt::from(a), BigInt::from(b))
}

fn integer(a: &BigInt) -> BigRational {
    BigRational::from_integer(a.clone())
}

/// The clock goes by the second rate from `now` on: what it is ahead takes as long as those
/// bytes take at that, in whole picoseconds, and so does what it is behind, if that is less.
fn rescale(clock: &mut BigRational, now: &BigInt, (from, to): (u64, u64)) {
    if from == to {
        return;
    }
    *clock = clock.ceil();
    let lead = &*clock - integer(now);
    if from != 0 && (lead > BigRational::zero() || from < to) {
        let lead = (lead * ratio(from, to)).ceil();
        *clock = integer(now) + lead.min(integer(&BigInt::from(LEAD_MAX_PS - 1)));
    }
}

impl Reference {
    pub fn new(cfg: &Config, global: u64, now_ns: u64) -> Self {
        let global = BigInt::from(global);
        Reference {
            cfg: *cfg,
            last_finish: global.clone(),
            idled: global.clone(),
            busy_until: global.clone(),
            carried: BigRational::zero(),
            line: global.clone(),
            global,
            line_ns: now_ns,
            classes: BTreeMap::new(),
            round: VecDeque::new(),
            borrow_time: BigInt::zero(),
            lead: Lead::new(),
            periods: Periods::new(),
            standing_ns: None,
            asked_ns: 0,
            borrowed_frames: 0,
            guard_band_held: 0,
            shifted: BigInt::zero(),
        }
    }

    fn wire(&self, len: u32) -> u64 {
        u64::from(len.max(self.cfg.min_frame_bytes) + self.cfg.overhead_bytes)
    }

    /// A frame as a burst of one.
    pub fn frame(&self, len_bytes: u32) -> Burst {
        Burst {
            len_bytes,
            wire_bytes: self.wire(len_bytes) as u32,
            frames: 1,
        }
    }

    /// The longest burst, of largest frames.
    fn longest(&self) -> Burst {
        match self.cfg.max_burst_bytes {
            0 => self.frame(self.cfg.max_frame_bytes),
            len_bytes => {
                let frames = len_bytes.div_ceil(self.cfg.max_frame_bytes);
                let wire_bytes = len_bytes + frames * self.cfg.overhead_bytes;
                Burst {
                    len_bytes,
                    wire_bytes,
                    frames,
                }
            }
        }
    }

    fn counted(&self, burst: Burst) -> u64 {
        let headers = u64::from(burst.frames) * u64::from(self.cfg.link_header_bytes);
        match self.cfg.layer {
            Layer::Link => u64::from(burst.len_bytes),
            Layer::Wire => u64::from(burst.wire_bytes),
            Layer::Ip => u64::from(burst.len_bytes).saturating_sub(headers).max(1),
        }
    }

    fn is_active_paced(class: &Class) -> bool {
        class.active && matches!(class.class_type, Type::Paced { .. })
    }

    fn paced(&self) -> impl Iterator<Item = (&u32, &Class)> {
        self.classes
            .iter()
            .filter(|(_, class)| Self::is_active_paced(class))
    }

    fn max_wire(&self) -> u64 {
        self.wire(self.cfg.max_frame_bytes)
    }

    fn max_burst(&self) -> u64 {
        u64::from(self.longest().wire_bytes)
    }

    fn advance(&self, rate_bps: u64, burst: Burst) -> BigRational {
        ratio(self.counted(burst), 1) * ratio(BYTE_PS, rate_bps)
    }

    fn class_mut(&mut self, id: u32) -> &mut Class {
        self.classes.get_mut(&id).expect("a known class")
    }

    pub fn add(&mut self, id: u32, class_type: Type) {
        self.invalidate();
        let never = integer(&(&self.global - NEVER_SERVED_PS));
        let mut class = Class {
            class_type,
            active: false,
            rate_bps: 0,
            ceil_bps: 0,
            clock: never.clone(),
            ceil_clock: never,
            borrow_clock: integer(&self.borrow_time),
            borrowing: false,
            last: self.frame(self.cfg.max_frame_bytes),
            left_ns: self.asked_ns,
            deficit_bytes: 0,
            passed: false,
            head: 0,
            reservation: Reservation::new(class_type.reserve_bytes()),
        };
        class.set(class_type);
        assert!(self.classes.insert(id, class).is_none(), "id {id} is taken");
    }

    pub fn remove(&mut self, id: u32) {
        self.invalidate();
        self.unschedule(id);
        self.classes.remove(&id);
        self.stop_without_reservations(None);
    }

    pub fn change(&mut self, id: u32, class_type: Type, now_ns: u64) {
        self.invalidate();
        self.advance_clock(now_ns);
        let was_over = self.over_subscribed();
        let active = self.classes[&id].active;
        let same = discriminant(&self.classes[&id].class_type) == discriminant(&class_type);
        if !same {
            self.unschedule(id);
            let reserve_bytes = class_type.reserve_bytes();
            self.class_mut(id).reservation.change(reserve_bytes);
            self.stop_without_reservations(Some(id));
        }
        let had_ceil = self.classes[&id].ceil_bps != 0;
        if same && active && had_ceil {
            self.class_mut(id).borrowing = false;
        }
        let (now, borrow_time) = (self.global.clone(), self.borrow_time.clone());
        let class = self.class_mut(id);
        let old = (class.rate_bps, class.ceil_bps);
        class.set(class_type);
        let (rate, ceil) = ((old.0, class.rate_bps), (old.1, class.ceil_bps));
        rescale(&mut class.clock, &now, rate);
        rescale(&mut class.borrow_clock, &borrow_time, rate);
        if class.ceil_bps != 0 {
            rescale(&mut class.ceil_clock, &now, ceil);
        }
        if old.1 == 0 && matches!(class_type, Type::Paced { .. }) {
            self.ceil_return(id);
        }
        if !same && active {
            self.schedule(id, now_ns);
        } else if same && active {
            let paced = matches!(class_type, Type::Paced { .. });
            if self.cfg.order == Order::Next && paced {
                let stands = self.standing();
                self.restart(id, stands);
            }
            if paced && self.classes[&id].ceil_bps != 0 {
                self.insert_borrowing(id);
            }
            self.settle(was_over, None);
        }
    }

    /// A class that was silent for so long has no debt.
    fn forget_if_silent(&mut self, id: u32, now_ns: u64) {
        let paced = matches!(self.classes[&id].class_type, Type::Paced { .. });
        let units = (now_ns >> 32).wrapping_sub(self.classes[&id].left_ns >> 32) as u32;
        if paced && units > SILENT_MAX {
            let never = integer(&(&self.global - NEVER_SERVED_PS));
            let borrow_time = integer(&self.borrow_time);
            let class = self.class_mut(id);
            class.clock = never.clone();
            class.ceil_clock = never;
            class.borrow_clock = borrow_time;
        }
    }

    fn schedule(&mut self, id: u32, now_ns: u64) {
        self.forget_if_silent(id, now_ns);
        if matches!(self.classes[&id].class_type, Type::Normal { .. }) {
            let class = self.class_mut(id);
            class.active = true;
            class.deficit_bytes = class.deficit_bytes.min(0);
            class.passed = false;
            self.round.push_back(id);
            return;
        }
        if self.has_reservation(id) {
            self.class_mut(id).active = true;
            self.insert_reservation(id);
            return;
        }
        let stands = self.standing();
        self.class_mut(id).active = true;
        self.restart(id, stands);
        if self.classes[&id].ceil_bps != 0 {
            self.ceil_return(id);
            self.insert_borrowing(id);
        }
    }

    fn unschedule(&mut self, id: u32) {
        if !self.classes[&id].active {
            return;
        }
        let was_over = self.over_subscribed();
        let left_ns = self.asked_ns;
        let class = self.class_mut(id);
        class.active = false;
        class.left_ns = left_ns;
        class.borrowing = false;
        class.head = 0;
        if matches!(class.class_type, Type::Normal { .. }) {
            self.round.retain(|&other| other != id);
        } else if self.has_reservation(id) {
            self.remove_reservation(id);
        } else {
            let left = self.virtual_finish(&self.classes[&id]);
            self.settle(was_over, Some(left));
        }
        if self.nobody_active() {
            self.lead.armed = None;
        }
    }

    pub fn activate(&mut self, id: u32, now_ns: u64) {
        if self.classes[&id].active {
            return;
        }
        self.advance_to_arrival(now_ns);
        self.schedule(id, now_ns);
    }

    pub(super) fn invalidate(&mut self) {
        if self.standing_ns.take().is_some() {
            self.advance_period(self.asked_ns);
        }
    }

    pub(super) fn nobody_active(&self) -> bool {
        self.classes.values().all(|class| !class.active)
    }

    fn advance_to_arrival(&mut self, now_ns: u64) {
        self.invalidate();
        self.advance_port_clock(now_ns);
        if self.cfg.mode != Mode::Timer && self.nobody_active() {
            self.end_idle(now_ns);
        }
        self.advance_period(now_ns);
    }

    pub fn deactivate(&mut self, id: u32, now_ns: u64) {
        if self.classes[&id].active {
            self.invalidate();
            self.advance_clock(now_ns);
            self.unschedule(id);
        }
    }

    fn first_eligible(&self) -> Option<u32> {
        let due = self
            .paced()
            .filter(|(_, class)| self.is_reached(&class.due()));
        match self.cfg.order {
            Order::Clock => due.min_by_key(|(id, class)| self.key(&class.due(), **id)),
            Order::Rate => due.min_by_key(|(id, class)| (u64::MAX - class.rate_bps, **id)),
            Order::Next => {
                due.min_by_key(|(id, class)| self.key(&self.virtual_finish(class), **id))
            }
        }
        .map(|(&id, _)| id)
    }

    /// Lateness of a class that sends at its rate.
    pub fn late(&self, id: u32) -> i64 {
        let class = &self.classes[&id];
        if matches!(class.class_type, Type::Paced { .. }) && self.at_rate(class) {
            (&self.global - class.due()).to_i64().expect("late")
        } else {
            0
        }
    }

    pub fn is_throttled(&self, id: u32) -> bool {
        let class = &self.classes[&id];
        let at = match class.ceil_bps {
            0 => class.rate_due(),
            _ => class.ceil_due(),
        };
        Self::is_active_paced(class) && !self.is_reached(&at)
    }

    pub fn set_head(&mut self, id: u32, wire_bytes: u32) {
        self.invalidate();
        self.class_mut(id).head = u64::from(wire_bytes);
    }

    pub fn sent(&mut self, id: u32, burst: Burst, more: bool, now_ns: u64) {
        self.invalidate();
        self.advance_clock(now_ns);
        self.class_mut(id).head = 0;
        self.charge(burst);
        if self.has_reservation(id) {
            if self.first_eligible().is_none() {
                self.idled = self.global.clone();
            }
        } else if matches!(self.classes[&id].class_type, Type::Paced { .. }) {
            self.class_mut(id).last = burst;
            if self.at_rate(&self.classes[&id]) {
                self.sent_at_rate(id);
            } else {
                self.sent_borrowed(id);
            }
        } else {
            self.idled = self.global.clone();
            self.class_mut(id).deficit_bytes -= i64::from(burst.wire_bytes);
        }
        let takes = self.charge_line(u64::from(burst.wire_bytes));
        match self.cfg.mode {
            Mode::Gap | Mode::Hybrid => {
                self.global += takes;
                self.lead.handed_out();
                self.lead.frame();
            }
            Mode::Timer => {
                let floor = &self.global - SLACK_PS;
                self.busy_until = self.busy_until.clone().max(floor) + takes;
            }
        }
        if self.has_reservation(id) {
            self.reservation_sent(id, burst, more);
        } else if !more {
            self.unschedule(id);
        } else if matches!(self.classes[&id].class_type, Type::Paced { .. }) {
            if self.classes[&id].ceil_bps != 0 {
                self.class_mut(id).borrowing = false;
                self.insert_borrowing(id);
            }
        } else if self.classes[&id].deficit_bytes <= 0 && self.round.front() == Some(&id) {
            self.round.rotate_left(1);
        }
        // With a timer frames do not move the clock.
        if self.cfg.mode != Mode::Timer {
            self.bound_lag();
        }
    }

    fn sent_at_rate(&mut self, id: u32) {
        if self.cfg.order == Order::Rate {
            self.bound_class_lag(id);
        }
        self.last_finish = self.virtual_finish(&self.classes[&id]);
        self.ceil_sent(id);
        let class = &self.classes[&id];
        let advance = self.advance(class.rate_bps, class.last);
        self.class_mut(id).clock += advance;
    }

    pub fn gap_sent(&mut self, bytes: u32) {
        self.invalidate();
        self.idled = self.global.clone();
        if self.cfg.mode != Mode::Timer {
            let takes = self.charge_line(u64::from(bytes));
            self.global += takes;
        }
        self.lead.handed_out();
        self.lead.gapped = self.cfg.mode == Mode::Hybrid;
    }

    pub fn reconfigure(&mut self, cfg: &Config, now_ns: u64) {
        let was_over = self.over_subscribed();
        self.invalidate();
        self.advance_clock(now_ns);
        self.advance_line(now_ns);
        if cfg.mode != self.cfg.mode {
            self.lead.handed_out();
            if self.cfg.mode == Mode::Timer {
                self.global = self.global.clone().max(self.busy_until.clone());
            } else if cfg.mode == Mode::Timer {
                // What was handed out has to leave; a ring holds no more.
                self.busy_until = self.global.clone();
                let least = &self.global - self.ring();
                self.line = self.line.clone().clamp(least, self.global.clone());
            }
        }
        if self.cfg.order != Order::Clock
            && (cfg.order != self.cfg.order || cfg.order == Order::Next)
        {
            let floor = &self.global - self.lag_max();
            for class in self.classes.values_mut() {
                if Self::is_active_paced(class) && class.due() < floor {
                    class.clock = integer(&floor);
                }
            }
        }
        if cfg.period.map(|period| period.length_ns)
            != self.cfg.period.map(|period| period.length_ns)
        {
            self.periods.running = false;
        }
        self.cfg = *cfg;
        self.carried = BigRational::zero();
        self.lead.frames = 0;
        for id in self.classes.keys().copied().collect::<Vec<_>>() {
            let len = self.classes[&id].last.len_bytes;
            self.class_mut(id).last = self.frame(len.min(cfg.max_frame_bytes));
        }
        self.settle(was_over, None);
    }

    /// The class clock as the core stores it: rounded up, wrapped, and the
    /// fraction in units of 1 / rate.
    pub fn clock(&self, id: u32) -> (u64, u64) {
        let class = &self.classes[&id];
        let frac = (&class.clock - class.clock.floor()) * ratio(class.rate_bps.max(1), 1);
        assert!(frac.is_integer(), "a fraction in other units");
        let frac = frac.to_integer().to_u64().expect("frac");
        (wrapped(&class.rate_due()), frac)
    }
}

/// Modulo 2^64.
pub fn wrapped(number: &BigInt) -> u64 {
    let modulus = BigInt::from(BigUint::one() << 64u32);
    let low = ((number % &modulus) + &modulus) % &modulus;
    low.to_u64().expect("below 2^64")
}
