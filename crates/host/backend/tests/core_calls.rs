// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random traffic by a seed, and what the core outside BPF and outside the kernel makes of it: the
//! calls of a host, with the answers, and what the core is left as.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail that way")]

use pace::{
    Burst, ClassConfig, ClassId, Config, Decision, Layer, Mode, Order, Period, ReservationStats,
    Scheduler, Stats,
};

pub const FIRST_NS: u64 = 1_000_000_000;
/// Most classes of a scenario.
pub const CLASSES_MAX: u32 = 40;
/// `struct call`, and the offset of its answer.
pub const CALL_BYTES: u64 = 48;
pub const ANSWER: u64 = 32;
/// What a host is answered that is no class.
pub const IDLE: u64 = u32::MAX as u64;
pub const WAIT: u64 = IDLE - 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Enqueued,
    Next,
    Sent,
    Dropped,
    MulDiv,
    TakeImage,
}

#[derive(Clone, Copy, Debug)]
pub struct Call {
    pub now_ns: u64,
    pub kind: Kind,
    pub slot: u32,
    pub first: u64,
    pub second: u64,
    /// What is expected of [`Kind::Next`] and [`Kind::MulDiv`].
    pub answer: u64,
    pub until_ns: u64,
}

impl Call {
    pub fn new(now_ns: u64, kind: Kind) -> Self {
        Self {
            now_ns,
            kind,
            slot: 0,
            first: 0,
            second: 0,
            answer: 0,
            until_ns: 0,
        }
    }

    /// Returns whether it has an answer.
    pub fn asks(&self) -> bool {
        matches!(self.kind, Kind::Next | Kind::MulDiv)
    }

    /// Returns `struct call`.
    pub fn words(&self) -> [u64; 6] {
        let kind = self.kind as u64 | (u64::from(self.slot) << 32);
        [self.now_ns, kind, self.first, self.second, 0, 0]
    }
}

/// What a class is left as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClassState {
    pub ps: u64,
    pub frac: u64,
    pub is_active: bool,
    pub reservation: ReservationStats,
}

/// What one side makes of a scenario: its answers, each with the instant that is waited for, and what
/// is left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    pub answers: Vec<(u64, u64)>,
    pub stats: Stats,
    pub classes: Vec<ClassState>,
}

impl Outcome {
    /// Returns where this differs from another.
    pub fn difference(&self, other: &Self) -> Option<String> {
        let answers = self.answers.iter().zip(&other.answers).enumerate();
        let mut differing = answers.filter(|(_, (one, two))| one != two);
        if let Some((number, (one, two))) = differing.next() {
            return Some(format!("answer {number}: {one:?} and {two:?}"));
        }
        let classes = self.classes.iter().zip(&other.classes).enumerate();
        let mut differing = classes.filter(|(_, (one, two))| one != two);
        if let Some((slot, (one, two))) = differing.next() {
            return Some(format!("class {slot}: {one:?} and {two:?}"));
        }
        (self != other).then(|| format!("{:?} and {:?}", self.stats, other.stats))
    }
}

/// Returns an answer as all sides are compared by it.
pub fn answer(answer: u64, until_ns: u64) -> (u64, u64) {
    (answer, if answer == WAIT { until_ns } else { 0 })
}

/// Numbers that look random and come from a seed (xorshift64*).
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self((seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % limit
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize]
    }
}

/// What a port is configured as, and its calls.
pub struct Scenario {
    pub config: Config,
    pub classes: Vec<ClassConfig>,
    pub calls: Vec<Call>,
    pub expected: Outcome,
}

impl Scenario {
    /// Makes the scenario of a seed, with so many calls.
    pub fn new(seed: u64, calls: usize) -> Self {
        let mut random = Random::new(seed);
        let config = config(&mut random);
        let classes = classes(&config, &mut random);
        let (calls, expected) = traffic(&config, &classes, calls, &mut random);
        Self {
            config,
            classes,
            calls,
            expected,
        }
    }

    /// Returns the rate of the first class that has one, which a test may change.
    pub fn first_rate(&mut self) -> Option<&mut u64> {
        self.classes.iter_mut().find_map(|class| match class {
            ClassConfig::Paced { rate_bps } => Some(rate_bps),
            _ => None,
        })
    }
}

fn config(random: &mut Random) -> Config {
    let line_rate_bps = random.of(&[1_000_000_000, 999_999_937, 10_000_000_000]);
    let length_ns = random.of(&[1_000_000, 1_999_993, 10_000_000]);
    let percent = 40 + random.below(60) as u32;
    let instant_ns = random.below(1 << 40);
    let align_ns = random.of(&[None, Some(instant_ns)]);
    Config {
        mode: Mode::Timer,
        order: random.of(&[Order::Next, Order::Clock, Order::Rate]),
        layer: random.of(&[Layer::Link, Layer::Wire, Layer::Ip]),
        max_burst_bytes: 65_536,
        guard_band: random.below(4) == 0,
        period: Some(Period {
            align_ns,
            ..Period::percent(line_rate_bps, length_ns, percent)
        }),
        ..Config::ethernet(line_rate_bps, 1514)
    }
}

fn classes(config: &Config, random: &mut Random) -> Vec<ClassConfig> {
    let line_rate_bps = config.line_rate_bps;
    let budget = config.period.map_or(0, |period| period.budget_bytes);
    let classes = 1 + random.below(CLASSES_MAX.into());
    // Half of the scenarios have no periods.
    let types = random.of(&[4, 8]);
    let classes = (0..classes).map(|_| {
        let rate_bps = 1_000_000 + random.below(line_rate_bps / 8);
        let reserve_bytes = 1 + random.below(budget / u64::from(CLASSES_MAX));
        match random.below(types) {
            0 => ClassConfig::Normal {
                quantum_bytes: random.of(&[None, Some(256), Some(9000)]),
            },
            1 => ClassConfig::Borrowing {
                rate_bps,
                ceil_bps: rate_bps + random.below(line_rate_bps - rate_bps),
            },
            4 | 5 => ClassConfig::Rt { reserve_bytes },
            6 => ClassConfig::Nrt { reserve_bytes },
            _ => ClassConfig::Paced { rate_bps },
        }
    });
    classes.collect()
}

/// Returns what the guard band takes the first packet of a class for: a longest frame.
fn head(config: &Config, class: &ClassConfig) -> Option<u32> {
    let waits = matches!(class, ClassConfig::Normal { .. } | ClassConfig::Nrt { .. });
    let wire_bytes = config.max_frame_bytes + config.overhead_bytes;
    (config.guard_band && waits).then_some(wire_bytes)
}

/// The core of this process, with the packets that wait.
struct Host {
    core: Scheduler,
    ids: Vec<ClassId>,
    queues: Vec<Vec<Burst>>,
    /// What the guard band takes the first packet of a class for, as bpf/port.h says it.
    heads: Vec<Option<u32>>,
    calls: Vec<Call>,
}

impl Host {
    fn note_head(&mut self, id: ClassId) {
        if let Some(wire_bytes) = self.heads[id.index() as usize] {
            self.core.set_head(id, wire_bytes).unwrap();
        }
    }

    fn comes(&mut self, slot: usize, burst: Burst, now_ns: u64) {
        self.calls.push(Call {
            slot: slot as u32,
            first: u64::from(burst.len_bytes),
            second: u64::from(burst.wire_bytes),
            ..Call::new(now_ns, Kind::Enqueued)
        });
        let id = self.ids[slot];
        self.core.arrived(id, burst.wire_bytes, now_ns).unwrap();
        if self.queues[slot].is_empty() {
            self.note_head(id);
            self.core.activate(id, now_ns).unwrap();
        }
        self.queues[slot].push(burst);
    }

    fn asks(&mut self, now_ns: u64) -> Decision {
        let decision = self.core.next(now_ns);
        let (answer, until_ns) = match decision {
            Decision::Send(class) => (u64::from(class.index()), 0),
            Decision::Wait { until_ns } => (WAIT, until_ns),
            Decision::Idle => (IDLE, 0),
            Decision::Gap { .. } => panic!("a gap in mode timer"),
        };
        self.calls.push(Call {
            answer,
            until_ns,
            ..Call::new(now_ns, Kind::Next)
        });
        decision
    }

    /// The first packet of a class leaves, or is dropped at its time.
    fn goes(&mut self, class: ClassId, is_dropped: bool, now_ns: u64) {
        let queue = &mut self.queues[class.index() as usize];
        let burst = queue.remove(0);
        let more = !queue.is_empty();
        let kind = if is_dropped {
            Kind::Dropped
        } else {
            Kind::Sent
        };
        self.calls.push(Call {
            slot: class.index(),
            first: (u64::from(burst.len_bytes) << 32) | u64::from(burst.wire_bytes),
            second: (u64::from(burst.frames) << 32) | u64::from(burst.len_bytes),
            ..Call::new(now_ns, kind)
        });
        let core = &mut self.core;
        match (is_dropped, more) {
            (false, _) => core.sent_burst(class, burst, more, now_ns),
            (true, true) => core.dropped(class, burst.wire_bytes, now_ns),
            (true, false) => core.deactivate(class, now_ns),
        }
        .unwrap();
        if more {
            self.note_head(class);
        }
    }

    /// A product of two random lengths divided by a third: each side has it by other instructions.
    fn divides(&mut self, random: &mut Random) {
        let bits = |random: &mut Random, most: u64| {
            let bits = 1 + random.below(most);
            1 + random.below(1 << bits)
        };
        let divisor = bits(random, 30) * bits(random, 17);
        let first = bits(random, 30) * bits(random, 31);
        let second = bits(random, 30) * bits(random, 31);
        let quotient = u128::from(first) * u128::from(second) / u128::from(divisor);
        let Ok(answer) = u64::try_from(quotient) else {
            return;
        };
        self.calls.push(Call {
            first,
            second,
            answer,
            ..Call::new(divisor, Kind::MulDiv)
        });
    }

    fn outcome(&self) -> Outcome {
        let asked = self.calls.iter().filter(|call| call.asks());
        let classes = self.ids.iter().map(|id| {
            let clock = self.core.class_clock(*id).unwrap();
            ClassState {
                ps: clock.ps,
                frac: clock.frac,
                is_active: self.core.is_active(*id).unwrap(),
                reservation: self.core.reservation_stats(*id).unwrap(),
            }
        });
        Outcome {
            answers: asked
                .map(|call| answer(call.answer, call.until_ns))
                .collect(),
            stats: self.core.stats(),
            classes: classes.collect(),
        }
    }
}

/// Runs random traffic through the core of this process.
fn traffic(
    config: &Config,
    classes: &[ClassConfig],
    calls: usize,
    random: &mut Random,
) -> (Vec<Call>, Outcome) {
    let mut core = Scheduler::new(config, FIRST_NS).unwrap();
    let added = classes.iter().map(|class| core.add_class(class).unwrap());
    let ids: Vec<ClassId> = added.collect();
    let mut host = Host {
        core,
        queues: vec![Vec::new(); ids.len()],
        heads: classes.iter().map(|class| head(config, class)).collect(),
        ids,
        calls: Vec::new(),
    };
    let mut now_ns = FIRST_NS;
    while host.calls.len() < calls {
        if random.below(20) == 0 {
            host.divides(random);
        }
        if random.below(3) == 0 {
            let slot = random.below(host.ids.len() as u64) as usize;
            let more = 1 + random.below(40) as u32;
            let frames = random.of(&[1, 1, more]);
            let len = 60 + random.below(1455) as u32;
            let burst = Burst {
                len_bytes: len * frames,
                wire_bytes: (len + 24) * frames,
                frames,
            };
            host.comes(slot, burst, now_ns);
            continue;
        }
        match host.asks(now_ns) {
            Decision::Send(class) => host.goes(class, random.below(20) == 0, now_ns),
            // Mostly a little late, sometimes too early, and once in a while hours late.
            Decision::Wait { until_ns } => {
                now_ns = match random.below(100) {
                    0 => until_ns + random.below(10_000_000_000_000),
                    1..20 => now_ns + random.below(until_ns.saturating_sub(now_ns).max(1)),
                    _ => until_ns + random.below(20_000),
                }
            }
            _ => now_ns += random.below(1_000_000),
        }
    }
    let outcome = host.outcome();
    (host.calls, outcome)
}
