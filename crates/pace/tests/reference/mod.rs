// SPDX-License-Identifier: MIT OR Apache-2.0
//! The scheduler written down a second time, as plainly as possible: clocks
//! are rational numbers that never wrap, choices are linear scans, and moving
//! all clocks means adding to all of them. It shares nothing with the core
//! but the description (docs of scheduling, decisions 0010 to 0014).

use num_bigint::{BigInt, BigUint};
use num_rational::BigRational;
use num_traits::{One, ToPrimitive, Zero};
use pace::{Config, Layer, Mode, Order};
use std::collections::{BTreeMap, VecDeque};

const PARTS: u64 = 8_000_000_000;
const SLACK_NS: u64 = 100_000;
const STALL_NS: u64 = 4_000_000;
const RING_FRAMES: u64 = 256;
/// How far behind the port's a new class's clock is, in bytes.
const NEVER_HAD_A_TURN: u64 = 1 << 43;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Paced { rate_bps: u64 },
    Normal { quantum_bytes: u32 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    Idle,
    Send(u32),
    Gap(u32),
    Wait(u64),
}

struct Class {
    kind: Kind,
    active: bool,
    /// The last it had; 0 if it was never paced.
    rate_bps: u64,
    /// Exact.
    clock: BigRational,
    /// Length of the last frame.
    len_bytes: u32,
    deficit_bytes: i64,
}

impl Class {
    fn set(&mut self, kind: Kind) {
        self.kind = kind;
        if let Kind::Paced { rate_bps } = kind {
            self.rate_bps = rate_bps;
        }
    }

    /// The first whole byte time at which it may send.
    fn due(&self) -> BigInt {
        self.clock.ceil().to_integer()
    }
}

pub struct Reference {
    cfg: Config,
    pub global: BigInt,
    /// Turn of the last paced frame.
    served: BigInt,
    /// Nobody was due then.
    idled: BigInt,
    busy_until: BigInt,
    line: BigRational,
    line_ns: u64,
    classes: BTreeMap<u32, Class>,
    round: VecDeque<u32>,
    pub shifted: BigInt,
}

fn ratio(a: u64, b: u64) -> BigRational {
    BigRational::new(BigInt::from(a), BigInt::from(b))
}

fn integer(a: &BigInt) -> BigRational {
    BigRational::from_integer(a.clone())
}

impl Reference {
    pub fn new(cfg: &Config, global: u64, now_ns: u64) -> Self {
        let global = BigInt::from(global);
        Reference {
            cfg: *cfg,
            served: global.clone(),
            idled: global.clone(),
            busy_until: global.clone(),
            line: integer(&global),
            global,
            line_ns: now_ns,
            classes: BTreeMap::new(),
            round: VecDeque::new(),
            shifted: BigInt::zero(),
        }
    }

    fn wire(&self, len: u32) -> u64 {
        u64::from(len.max(self.cfg.min_frame_bytes) + self.cfg.overhead_bytes)
    }

    fn counted(&self, len: u32) -> u64 {
        match self.cfg.layer {
            Layer::Link => u64::from(len),
            Layer::Wire => self.wire(len),
            Layer::Ip => u64::from(len.saturating_sub(self.cfg.link_header_bytes).max(1)),
        }
    }

    fn line_bytes(&self, ns: u64) -> BigInt {
        (ratio(ns, 1) * ratio(self.cfg.line_rate_bps, PARTS))
            .floor()
            .to_integer()
    }

    fn is_active_paced(class: &Class) -> bool {
        class.active && matches!(class.kind, Kind::Paced { .. })
    }

    fn paced(&self) -> impl Iterator<Item = (&u32, &Class)> {
        self.classes
            .iter()
            .filter(|(_, class)| Self::is_active_paced(class))
    }

    fn max_wire(&self) -> u64 {
        self.wire(self.cfg.max_frame_bytes)
    }

    fn over_subscribed(&self) -> bool {
        let demand: u128 = self
            .paced()
            .map(|(_, class)| {
                let wire = u128::from(class.rate_bps) * u128::from(self.wire(class.len_bytes));
                wire.div_ceil(u128::from(self.counted(class.len_bytes)))
            })
            .sum();
        demand > u128::from(self.cfg.line_rate_bps)
    }

    /// What those due are compared by, and lag is measured by.
    fn turn(&self, class: &Class) -> BigInt {
        let largest = self.advance(class.rate_bps, self.cfg.max_frame_bytes);
        match self.cfg.order {
            Order::Next => class.due() + largest.ceil().to_integer(),
            Order::Clock | Order::Rate => class.due(),
        }
    }

    fn smallest_turn(&self) -> Option<BigInt> {
        self.paced().map(|(_, class)| self.turn(class)).min()
    }

    /// The first instant at which a class may send.
    fn smallest(&self) -> Option<BigInt> {
        self.paced().map(|(_, class)| class.due()).min()
    }

    /// Moves all clocks forward together.
    fn shift(&mut self, by: &BigInt) {
        for class in self.classes.values_mut() {
            class.clock += integer(by);
        }
        self.served += by;
        self.idled += by;
        self.shifted += by;
    }

    /// The line suffices again: the smallest turn is set to the port's.
    fn settle(&mut self, was_over: bool, left: Option<BigInt>) {
        if !was_over || self.over_subscribed() || self.cfg.order == Order::Rate {
            return;
        }
        let smallest = self.smallest_turn().into_iter().chain(left).min();
        if let Some(smallest) = smallest
            && smallest < self.global
        {
            let by = &self.global - smallest;
            self.shift(&by);
        }
    }

    fn stall(&self) -> BigInt {
        match self.cfg.mode {
            Mode::Timer => self.line_bytes(STALL_NS),
            Mode::Gap | Mode::Hybrid => BigInt::zero(),
        }
    }

    fn lag_max(&self) -> BigInt {
        BigInt::from((self.paced().count() as u64 + 2) * self.max_wire()) + self.stall()
    }

    fn bound_lag(&mut self) {
        if self.cfg.order == Order::Rate {
            return;
        }
        let floor = &self.global - self.lag_max();
        if let Some(smallest) = self.smallest_turn()
            && smallest < floor
        {
            let by = floor - smallest;
            self.shift(&by);
        }
    }

    /// Order by rate: what one class may be behind when it sends.
    fn bound_owed(&mut self, id: u32) {
        let class = &self.classes[&id];
        let ratio_frames = self.max_wire().div_ceil(self.wire(class.len_bytes));
        let frames = ((self.paced().count() as u64 + 2) * ratio_frames).min(1 << 20);
        let advance = self.advance(class.rate_bps, class.len_bytes);
        let whole: BigInt = advance.floor().to_integer() + BigInt::one();
        let floor = &self.global - BigInt::from(frames) * whole - self.stall();
        if class.due() < floor {
            self.class_mut(id).clock = integer(&floor);
        }
    }

    fn advance(&self, rate_bps: u64, len: u32) -> BigRational {
        ratio(self.counted(len), 1) * ratio(self.cfg.line_rate_bps, rate_bps)
    }

    fn class_mut(&mut self, id: u32) -> &mut Class {
        self.classes.get_mut(&id).expect("a known class")
    }

    pub fn add(&mut self, id: u32, kind: Kind) {
        let mut class = Class {
            kind,
            active: false,
            rate_bps: 0,
            clock: integer(&(&self.global - NEVER_HAD_A_TURN)),
            len_bytes: self.cfg.max_frame_bytes,
            deficit_bytes: 0,
        };
        class.set(kind);
        assert!(self.classes.insert(id, class).is_none(), "id {id} is taken");
    }

    pub fn remove(&mut self, id: u32) {
        self.leave(id);
        self.classes.remove(&id);
    }

    pub fn change(&mut self, id: u32, kind: Kind) {
        let was_over = self.over_subscribed();
        let active = self.classes[&id].active;
        let same = matches!(self.classes[&id].kind, Kind::Paced { .. })
            == matches!(kind, Kind::Paced { .. });
        if !same {
            self.leave(id);
        }
        let class = self.class_mut(id);
        if let Kind::Paced { rate_bps } = kind
            && rate_bps != class.rate_bps
        {
            // The fraction has another denominator now: it is rounded up.
            class.clock = class.clock.ceil();
        }
        class.set(kind);
        if !same && active {
            self.join(id);
        } else if same && active {
            if self.cfg.order == Order::Next && matches!(kind, Kind::Paced { .. }) {
                let stands = self.standing();
                self.restart(id, stands);
            }
            self.settle(was_over, None);
        }
    }

    fn follow_line(&mut self, now_ns: u64) {
        if now_ns > self.line_ns {
            let elapsed = ratio(now_ns - self.line_ns, 1);
            self.line += elapsed * ratio(self.cfg.line_rate_bps, PARTS);
            self.line_ns = now_ns;
        }
    }

    fn line_floor(&self) -> BigInt {
        self.line.floor().to_integer()
    }

    fn pass_time(&mut self, now_ns: u64) {
        if self.cfg.mode == Mode::Timer {
            let nobody_was_due = self.due_class().is_none();
            self.follow_line(now_ns);
            self.global = self.line_floor();
            if nobody_was_due {
                let first = self.smallest().unwrap_or(self.global.clone());
                let until = first.min(self.global.clone());
                if until > self.busy_until {
                    self.idled = until;
                }
            }
            self.bound_lag();
        }
    }

    fn wake(&mut self, now_ns: u64) {
        self.follow_line(now_ns);
        let ring = BigInt::from(RING_FRAMES * self.max_wire()).max(self.line_bytes(STALL_NS));
        if self.line_floor() >= self.global {
            self.global = self.line_floor();
            self.idled = self.global.clone();
        } else if &self.global - self.line_floor() > ring {
            self.line = integer(&(&self.global - ring));
        }
    }

    /// Classes of an earlier turn have had it.
    fn standing(&self) -> BigInt {
        let floor = &self.global - self.lag_max() * 2;
        let stands = self.served.clone().max(self.idled.clone()).max(floor);
        match self.cfg.order {
            Order::Clock | Order::Next => stands.min(self.global.clone()),
            Order::Rate => self.global.clone(),
        }
    }

    /// A class that missed its turn starts anew.
    fn restart(&mut self, id: u32, stands: BigInt) {
        let class = &self.classes[&id];
        let idled = self.idled.clone().min(self.global.clone());
        if self.turn(class) >= stands && class.due() >= idled {
            return;
        }
        let start = match self.over_subscribed() {
            true => stands,
            false => self.global.clone(),
        };
        self.class_mut(id).clock = integer(&start);
    }

    fn join(&mut self, id: u32) {
        if matches!(self.classes[&id].kind, Kind::Normal { .. }) {
            let class = self.class_mut(id);
            class.active = true;
            class.deficit_bytes = class.deficit_bytes.min(0);
            self.round.push_back(id);
            return;
        }
        let stands = self.standing();
        self.class_mut(id).active = true;
        self.restart(id, stands);
    }

    fn leave(&mut self, id: u32) {
        if !self.classes[&id].active {
            return;
        }
        let was_over = self.over_subscribed();
        let class = self.class_mut(id);
        class.active = false;
        if matches!(class.kind, Kind::Normal { .. }) {
            self.round.retain(|&other| other != id);
            return;
        }
        let left = self.turn(&self.classes[&id]);
        self.settle(was_over, Some(left));
    }

    pub fn activate(&mut self, id: u32, now_ns: u64) {
        if self.classes[&id].active {
            return;
        }
        if self.cfg.mode == Mode::Timer {
            self.pass_time(now_ns);
        } else if self.classes.values().all(|class| !class.active) {
            self.wake(now_ns);
        }
        self.join(id);
    }

    pub fn deactivate(&mut self, id: u32, now_ns: u64) {
        if self.classes[&id].active {
            self.pass_time(now_ns);
            self.leave(id);
        }
    }

    fn due_class(&self) -> Option<u32> {
        let due = self.paced().filter(|(_, class)| class.due() <= self.global);
        match self.cfg.order {
            Order::Clock => due.min_by_key(|(id, class)| (class.due(), **id)),
            Order::Rate => due.min_by_key(|(id, class)| (u64::MAX - class.rate_bps, **id)),
            Order::Next => due.min_by_key(|(id, class)| (self.turn(class), **id)),
        }
        .map(|(&id, _)| id)
    }

    fn normal_turn(&mut self) -> Option<u32> {
        loop {
            let id = *self.round.front()?;
            let max_frame = self.cfg.max_frame_bytes;
            let class = self.class_mut(id);
            if class.deficit_bytes > 0 {
                return Some(id);
            }
            let Kind::Normal { quantum_bytes } = class.kind else {
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

    pub fn next(&mut self, now_ns: u64) -> Choice {
        self.pass_time(now_ns);
        if self.cfg.mode == Mode::Timer && self.busy_until > self.global {
            let nobody = self.classes.values().all(|class| !class.active);
            let mut at = self.busy_until.clone();
            if self.due_class().is_none() && self.round.is_empty() {
                at = self.smallest().map_or(at.clone(), |first| first.max(at));
            }
            return if nobody { Choice::Idle } else { self.wait(&at) };
        }
        if let Some(id) = self.due_class() {
            return Choice::Send(id);
        }
        if let Some(id) = self.normal_turn() {
            return Choice::Send(id);
        }
        let Some(first) = self.smallest() else {
            return Choice::Idle;
        };
        if self.cfg.mode == Mode::Timer {
            return self.wait(&first);
        }
        self.gap(&first)
    }

    fn wait(&self, until: &BigInt) -> Choice {
        let bytes = integer(until) - &self.line;
        let ns = (bytes * ratio(PARTS, self.cfg.line_rate_bps)).ceil();
        Choice::Wait(self.line_ns + ns.to_integer().to_u64().expect("ns"))
    }

    fn gap(&self, first: &BigInt) -> Choice {
        let gap = (first - &self.global).to_u64().expect("a gap");
        let min = self.wire(self.cfg.min_frame_bytes);
        let max = self.max_wire();
        if 2 * gap <= min {
            let next = self.paced().min_by_key(|(id, class)| (class.due(), **id));
            return next.map_or(Choice::Idle, |(&id, _)| Choice::Send(id));
        }
        // The longest frame that leaves no remainder too small for another.
        let fits = |frame: &u64| *frame == gap || (*frame < gap && gap - frame >= min);
        let frame = (min..=max).rev().find(fits).unwrap_or(min);
        Choice::Gap(frame as u32)
    }

    pub fn sent(&mut self, id: u32, len: u32, more: bool, now_ns: u64) {
        self.pass_time(now_ns);
        let wire = BigInt::from(self.wire(len));
        if let Kind::Paced { rate_bps } = self.classes[&id].kind {
            self.class_mut(id).len_bytes = len;
            if self.cfg.order == Order::Rate {
                self.bound_owed(id);
            }
            self.served = self.turn(&self.classes[&id]);
            let advance = self.advance(rate_bps, len);
            self.class_mut(id).clock += advance;
        } else {
            self.idled = self.global.clone();
            let paid = wire.to_i64().expect("a frame");
            self.class_mut(id).deficit_bytes -= paid;
        }
        match self.cfg.mode {
            Mode::Gap | Mode::Hybrid => self.global += &wire,
            Mode::Timer => {
                let floor = &self.global - self.line_bytes(SLACK_NS);
                self.busy_until = self.busy_until.clone().max(floor) + &wire;
            }
        }
        if !more {
            self.leave(id);
        } else if self.classes[&id].deficit_bytes <= 0 && self.round.front() == Some(&id) {
            self.round.rotate_left(1);
        }
        self.bound_lag();
    }

    pub fn gap_sent(&mut self, bytes: u32) {
        self.idled = self.global.clone();
        self.global += bytes;
    }

    pub fn reconfigure(&mut self, cfg: &Config, now_ns: u64) {
        let was_over = self.over_subscribed();
        self.follow_line(now_ns);
        self.pass_time(now_ns);
        if cfg.mode != self.cfg.mode {
            self.line = integer(&self.global);
            self.busy_until = self.global.clone();
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
        self.cfg = *cfg;
        for class in self.classes.values_mut() {
            class.len_bytes = class.len_bytes.min(cfg.max_frame_bytes);
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
        (wrapped(&class.due()), frac)
    }
}

/// Modulo 2^64.
pub fn wrapped(number: &BigInt) -> u64 {
    let modulus = BigInt::from(BigUint::one() << 64u32);
    let low = ((number % &modulus) + &modulus) % &modulus;
    low.to_u64().expect("below 2^64")
}
