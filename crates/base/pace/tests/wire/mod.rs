// SPDX-License-Identifier: MIT OR Apache-2.0
//! A port whose wire is recorded, and what can be said about the record.
#![allow(dead_code)] // every test file uses its part

use pace::{ClassConfig, ClassId, Config, Decision, Scheduler};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// When its first byte left, in byte times of the line.
    pub start: u64,
    pub class: ClassId,
    pub len: u32,
}

/// What the line carries in so many picoseconds, to the nearest byte.
pub fn line_bytes(ps: u64, line_rate_bps: u64) -> u64 {
    let bits = u128::from(ps) * u128::from(line_rate_bps);
    ((bits + 4_000_000_000_000) / 8_000_000_000_000) as u64
}

/// The clocks of a port in bytes of a line of 1 Gbit/s.
pub trait Gigabit {
    fn global_bytes(&self) -> u64;
    fn clock_bytes(&self, class: ClassId) -> u64;
    fn early_bytes_max(&self) -> u64;
    fn late_bytes_max(&self) -> u64;
}

const GBIT: u64 = 1_000_000_000;

impl Gigabit for Scheduler {
    fn global_bytes(&self) -> u64 {
        line_bytes(self.global_ps(), GBIT)
    }

    /// Rounded up.
    fn clock_bytes(&self, class: ClassId) -> u64 {
        self.class_clock(class).unwrap().ps.div_ceil(8000)
    }

    fn early_bytes_max(&self) -> u64 {
        line_bytes(self.stats().early_max_ps, GBIT)
    }

    fn late_bytes_max(&self) -> u64 {
        line_bytes(self.stats().late_max_ps, GBIT)
    }
}

pub struct Wire {
    pub port: Scheduler,
    pub cfg: Config,
    pub frames: Vec<Frame>,
    pub gaps: Vec<u32>,
}

impl Wire {
    pub fn new(cfg: Config) -> Self {
        Wire {
            port: Scheduler::new(&cfg, 0).unwrap(),
            cfg,
            frames: Vec::new(),
            gaps: Vec::new(),
        }
    }

    pub fn paced(&mut self, rate_bps: u64) -> ClassId {
        let id = self
            .port
            .add_class(&ClassConfig::Paced { rate_bps })
            .unwrap();
        self.port.activate(id, 0).unwrap();
        id
    }

    /// Guaranteed its rate; shares what is spare up to its ceil.
    pub fn sharing(&mut self, rate_bps: u64, ceil_bps: u64) -> ClassId {
        let config = ClassConfig::Borrowing { rate_bps, ceil_bps };
        let id = self.port.add_class(&config).unwrap();
        self.port.activate(id, 0).unwrap();
        id
    }

    pub fn normal(&mut self, quantum_bytes: Option<u32>) -> ClassId {
        let config = ClassConfig::Normal { quantum_bytes };
        let id = self.port.add_class(&config).unwrap();
        self.port.activate(id, 0).unwrap();
        id
    }

    /// Carries out one decision; `head` gives length and whether more follow.
    pub fn step(&mut self, head: impl FnOnce(ClassId) -> (u32, bool)) -> Decision {
        let decision = self.port.next(0);
        match decision {
            Decision::Send(class) => {
                let (len, more) = head(class);
                let start = self.port.global_bytes();
                self.frames.push(Frame { start, class, len });
                self.port.sent(class, len, more, 0).unwrap();
            }
            Decision::Gap { wire_bytes } => {
                self.gaps.push(wire_bytes);
                self.port.gap_sent(wire_bytes);
            }
            Decision::Idle | Decision::Wait { .. } => {}
        }
        decision
    }

    /// Until so many frames have left; all classes always have another of
    /// `len` bytes.
    pub fn run(&mut self, frames: usize, len: u32) {
        let until = self.frames.len() + frames;
        while self.frames.len() < until {
            self.step(|_| (len, true));
        }
    }

    /// Until the byte clock reaches this.
    pub fn run_until(&mut self, global: u64, len: u32) {
        while self.port.global_bytes() < global {
            self.step(|_| (len, true));
        }
    }

    pub fn of(&self, class: ClassId) -> impl Iterator<Item = &Frame> {
        self.frames.iter().filter(move |frame| frame.class == class)
    }

    pub fn bytes_of(&self, class: ClassId) -> u64 {
        self.of(class).map(|frame| u64::from(frame.len)).sum()
    }

    /// Paper 000, 4.1, with the class's own rate as the bottleneck's: the
    /// largest queue in bytes, rounded up. A frame enters whole, at its start.
    pub fn burstiness(&self, class: ClassId, rate_bps: u64) -> u64 {
        let line = u128::from(self.cfg.line_rate_bps);
        let (mut queue, mut largest, mut last) = (0u128, 0u128, 0u64);
        for frame in self.of(class) {
            // In units of a byte over the line rate.
            let drained = u128::from(frame.start - last) * u128::from(rate_bps);
            queue = queue.saturating_sub(drained) + u128::from(frame.len) * line;
            largest = largest.max(queue);
            last = frame.start;
        }
        largest.div_ceil(line) as u64
    }
}

/// A small seeded generator: xorshift64*, for inputs only.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11) % end
    }

    /// Rates that sum up to at most `sum`, uneven by up to `spread` + 1 times.
    pub fn rates(&mut self, n: usize, sum: u64, spread: u64) -> Vec<u64> {
        let weights: Vec<u64> = (0..n).map(|_| 1000 + self.below(1000 * spread)).collect();
        Self::shares(sum, &weights)
    }

    /// The same, as many between 1 and 10 times the lowest as between 10 and 100.
    pub fn rates_log(&mut self, n: usize, sum: u64, spread: u64) -> Vec<u64> {
        let mut weight = || 1000.0 * (spread as f64).powf(self.below(1 << 20) as f64 / 1048576.0);
        let weights: Vec<u64> = (0..n).map(|_| weight() as u64).collect();
        Self::shares(sum, &weights)
    }

    fn shares(sum: u64, weights: &[u64]) -> Vec<u64> {
        let total: u64 = weights.iter().sum();
        let share = |weight: &u64| u128::from(sum) * u128::from(*weight) / u128::from(total);
        weights.iter().map(|weight| share(weight) as u64).collect()
    }
}
