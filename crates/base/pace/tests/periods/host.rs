// SPDX-License-Identifier: MIT OR Apache-2.0
//! A host of one port at 100 Mbit/s whose frames are all of one length.

use std::collections::BTreeMap;

use pace::{ClassConfig, ClassId, Config, Decision, Order, Period, Scheduler};

use crate::wire::line_bytes;

pub const MBIT: u64 = 1_000_000;
pub const LINE: u64 = 100 * MBIT;
/// Of the line at 100 Mbit/s: 125,000 bytes; the budget, 70 %, is 87,500.
pub const PERIOD_NS: u64 = 10_000_000;
pub const PERIOD_BYTES: u64 = 125_000;
pub const BUDGET: u64 = 87_500;
/// All frames here, on a wire that adds nothing.
pub const FRAME: u32 = 1000;

pub fn config() -> Config {
    Config {
        overhead_bytes: 0,
        min_frame_bytes: 60,
        max_frame_bytes: FRAME,
        order: Order::Next,
        period: Some(Period::percent(LINE, PERIOD_NS, 70)),
        ..Config::ethernet(LINE, FRAME)
    }
}

/// A host that counts frames, and remembers when each class sent.
pub struct Host {
    pub port: Scheduler,
    pub queued: BTreeMap<ClassId, u64>,
    pub sent: Vec<(u64, ClassId)>,
    pub now_ns: u64,
}

impl Host {
    pub fn new(config: &Config) -> Self {
        Host {
            port: Scheduler::new(config, 0).unwrap(),
            queued: BTreeMap::new(),
            sent: Vec::new(),
            now_ns: 0,
        }
    }

    pub fn add(&mut self, config: ClassConfig) -> ClassId {
        self.port.add_class(&config).unwrap()
    }

    pub fn rt(&mut self, reserve_bytes: u64) -> ClassId {
        self.add(ClassConfig::Rt { reserve_bytes })
    }

    pub fn nrt(&mut self, reserve_bytes: u64) -> ClassId {
        self.add(ClassConfig::Nrt { reserve_bytes })
    }

    pub fn normal(&mut self) -> ClassId {
        self.add(ClassConfig::Normal {
            quantum_bytes: None,
        })
    }

    pub fn come(&mut self, class: ClassId, frames: u64) {
        // Nobody counts those of a class that is backlogged without end.
        for _ in 0..frames.min(1000) {
            self.port.arrived(class, FRAME, self.now_ns).unwrap();
            self.port.activate(class, self.now_ns).unwrap();
        }
        *self.queued.entry(class).or_default() += frames;
    }

    /// One decision; false if there is nothing to send.
    pub fn step(&mut self) -> bool {
        match self.port.next(self.now_ns) {
            Decision::Idle => return false,
            Decision::Send(class) => {
                let queued = self.queued.get_mut(&class).unwrap();
                *queued -= 1;
                let more = *queued > 0;
                self.sent
                    .push((line_bytes(self.port.global_ps(), LINE), class));
                self.port.sent(class, FRAME, more, self.now_ns).unwrap();
            }
            Decision::Gap { wire_bytes } => self.port.gap_sent(wire_bytes),
            Decision::Wait { until_ns } => self.now_ns = until_ns,
        }
        true
    }

    /// Until the port's clock is there; a class that is always backlogged keeps
    /// it from standing still.
    pub fn run_until_ps(&mut self, ps: u64) {
        while self.port.global_ps() < ps && self.step() {}
    }

    pub fn run_until(&mut self, bytes: u64) {
        self.run_until_ps(bytes * (8_000_000_000_000 / LINE));
    }

    pub fn run_periods(&mut self, periods: u64) {
        self.run_until(periods * PERIOD_BYTES);
    }

    /// Frames of a class, by the period that they began in.
    pub fn by_period(&self, class: ClassId) -> Vec<u64> {
        let mut periods = Vec::new();
        for (start, sender) in &self.sent {
            let period = (start / PERIOD_BYTES) as usize;
            periods.resize(periods.len().max(period + 1), 0);
            periods[period] += u64::from(*sender == class);
        }
        periods
    }
}

/// Without end, and never in a period's way.
pub const ENDLESS: u64 = 1 << 40;
