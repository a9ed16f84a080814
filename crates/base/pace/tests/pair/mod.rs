// SPDX-License-Identifier: MIT OR Apache-2.0
//! The core and the reference side by side: each operation is done on both, and all
//! public state is compared after it.

mod bytes;
mod reservation;

use std::collections::{BTreeMap, VecDeque};

use pace::{Burst, ClassConfig, ClassId, Config, Decision, LEAD_MAX_PS, Mode, Order, Scheduler};

use crate::reference::{Choice, Reference, Type, wrapped};

pub use bytes::replay;

/// The longest burst of a port: so much more than a frame, or none where its
/// frames' overhead would be more than a port may have.
pub fn burst_bytes(more: u32, frame_bytes: u32, overhead_bytes: u32) -> u32 {
    if more == 0 || more / frame_bytes * overhead_bytes > 1 << 20 {
        0
    } else {
        frame_bytes + more
    }
}

/// What happens to a port. Classes are picked by a number, modulo how many
/// there are; sizes and rates are picked inside what the port allows.
#[derive(Clone, Debug)]
pub enum Op {
    Activate(usize),
    ActivateAll,
    Deactivate(usize),
    Step {
        size: Size,
        more: bool,
        late_ns: u64,
    },
    Run {
        steps: usize,
        size: Size,
        heads: bool,
    },
    /// A burst of so many frames.
    Burst {
        frames: u32,
        size: Size,
        more: bool,
    },
    Head(usize, Size),
    Rate(usize, Part),
    Type(usize, Option<Part>, u32),
    Add(Option<Part>),
    Remove(usize),
    Pass(u64),
    Back(u64),
    Reconfigure {
        line: f64,
        max_frame_bytes: u32,
        order: Order,
        guard_band: bool,
    },
    Mode(Mode),
    /// An rt or nrt class that reserves so much of the budget.
    Reservation(usize, bool, f64),
    /// An rt class drops its first frame.
    Drop(usize),
    /// A period of this length, with a budget in per cent of the line.
    Period(u64, u32, bool),
    /// From so many classes on the wheel is used.
    WheelFrom(u32),
}

/// Of the line: a rate, and a ceil so much of the way up from there.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    pub rate: f64,
    pub ceil: Option<f64>,
}

/// The most frames in one burst.
pub const FRAMES_MAX: u32 = 8;

#[derive(Clone, Copy, Debug)]
pub enum Size {
    Smallest,
    Largest,
    Any(u32),
}

impl Size {
    fn bytes(self, cfg: &Config) -> u32 {
        match self {
            Size::Smallest => 1,
            Size::Largest => cfg.max_frame_bytes,
            Size::Any(number) => 1 + number % cfg.max_frame_bytes,
        }
    }
}

pub struct Pair {
    cfg: Config,
    pub core: Scheduler,
    plain: Reference,
    classes: Vec<ClassId>,
    /// Lengths of the frames that rt classes have.
    frames: BTreeMap<ClassId, VecDeque<u32>>,
    now_ns: u64,
}

impl Pair {
    pub fn new(cfg: Config, start_ps: u64) -> Self {
        let mut core = Scheduler::new(&cfg, 0).unwrap();
        core.set_global_ps(start_ps).unwrap();
        // Room for a wheel, which few classes have no need of.
        core.reserve(2048);
        Pair {
            cfg,
            core,
            plain: Reference::new(&cfg, start_ps, 0),
            classes: Vec::new(),
            frames: BTreeMap::new(),
            now_ns: 0,
        }
    }

    fn pick(&self, number: usize) -> Option<ClassId> {
        self.classes
            .get(number % self.classes.len().max(1))
            .copied()
    }

    /// This part of the line, or as close as is allowed.
    fn paced(&self, part: Part) -> (ClassConfig, Type) {
        let line = self.cfg.line_rate_bps;
        let longest = self.cfg.max_burst_bytes.max(self.cfg.max_frame_bytes);
        let frames = longest.div_ceil(self.cfg.max_frame_bytes) + FRAMES_MAX;
        let counted = u128::from(longest + frames * 356);
        let lowest = counted * 8_000_000_000_000 / u128::from(LEAD_MAX_PS) + 1;
        if lowest > u128::from(line) {
            // A longest burst takes the line too long for any rate.
            return self.any_type(None, 0);
        }
        let rate_bps = ((line as f64 * part.rate) as u64).clamp(lowest as u64, line);
        let Some(up) = part.ceil else {
            let ceil_bps = 0;
            return (
                ClassConfig::Paced { rate_bps },
                Type::Paced { rate_bps, ceil_bps },
            );
        };
        let ceil_bps = rate_bps + ((line - rate_bps) as f64 * up) as u64;
        let config = ClassConfig::Borrowing { rate_bps, ceil_bps };
        (config, Type::Paced { rate_bps, ceil_bps })
    }

    fn any_type(&self, fraction: Option<Part>, quantum: u32) -> (ClassConfig, Type) {
        match fraction {
            Some(fraction) => self.paced(fraction),
            None if quantum == 0 => (
                ClassConfig::Normal {
                    quantum_bytes: None,
                },
                Type::Normal { quantum_bytes: 0 },
            ),
            None => {
                let quantum_bytes = quantum.clamp(256, 1 << 20);
                (
                    ClassConfig::Normal {
                        quantum_bytes: Some(quantum_bytes),
                    },
                    Type::Normal { quantum_bytes },
                )
            }
        }
    }

    pub fn add(&mut self, fraction: Option<Part>) {
        let (config, class_type) = self.any_type(fraction, 0);
        let id = self.core.add_class(&config).unwrap();
        self.plain.add(id.index(), class_type);
        self.classes.push(id);
    }

    fn activate(&mut self, id: ClassId) {
        self.core.activate(id, self.now_ns).unwrap();
        self.plain.activate(id.index(), self.now_ns);
    }

    /// A burst of `frames`, or one frame where bursts are not allowed.
    fn burst(&self, frames: u32, size: Size) -> Burst {
        let longest = self.cfg.max_burst_bytes;
        if longest == 0 || frames == 1 {
            return self.plain.frame(size.bytes(&self.cfg));
        }
        let frames = frames.min(FRAMES_MAX);
        let len_bytes = match size {
            Size::Smallest => frames,
            Size::Largest => longest,
            Size::Any(number) => 1 + number % longest,
        };
        let padding = frames * self.cfg.min_frame_bytes;
        Burst {
            len_bytes,
            wire_bytes: len_bytes.max(padding).max(1) + frames * self.cfg.overhead_bytes,
            frames,
        }
    }

    fn sent(&mut self, id: ClassId, burst: Burst, more: bool) {
        match burst.frames {
            1 => self.core.sent(id, burst.len_bytes, more, self.now_ns),
            _ => self.core.sent_burst(id, burst, more, self.now_ns),
        }
        .unwrap();
        self.plain.sent(id.index(), burst, more, self.now_ns);
    }

    fn set_head(&mut self, id: ClassId, size: Size) {
        let wire_bytes = self.core.wire_bytes(size.bytes(&self.cfg)).unwrap();
        self.core.set_head(id, wire_bytes).unwrap();
        self.plain.set_head(id.index(), wire_bytes);
    }

    /// Carries out one decision; false if there is none.
    fn step(&mut self, frames: u32, size: Size, more: bool, late_ns: u64) -> bool {
        let (decision, late_ps) = self.core.next_and_lateness(self.now_ns);
        let choice = self.plain.next(self.now_ns);
        match (decision, choice) {
            (Decision::Idle, Choice::Idle) => return false,
            (Decision::Send(id), Choice::Send(index)) if id.index() == index => {
                assert_eq!(late_ps, self.plain.late(index), "lateness");
                match self.take_frame(id) {
                    Some((burst, more)) => self.sent(id, burst, more),
                    None => self.sent(id, self.burst(frames, size), more),
                }
            }
            (Decision::Gap { wire_bytes }, Choice::Gap(bytes)) if wire_bytes == bytes => {
                assert_ne!(self.cfg.mode, Mode::Timer);
                self.core.gap_sent(wire_bytes);
                self.plain.gap_sent(bytes);
            }
            (Decision::Wait { until_ns }, Choice::Wait(until)) if until_ns == until => {
                assert_ne!(self.cfg.mode, Mode::Gap);
                assert!(
                    until_ns > self.now_ns.min(until_ns - 1),
                    "waits for the past"
                );
                self.now_ns = until_ns.max(self.now_ns) + late_ns;
            }
            other => panic!("core and reference differ: {other:?}"),
        }
        self.check();
        true
    }

    /// Compares what depends on time, once the core has advanced its clock.
    fn check_what_follows_time(&self) {
        assert_eq!(self.core.global_ps(), wrapped(&self.plain.global), "global");
        assert_eq!(
            self.core.stats().rebased_ps,
            wrapped(&self.plain.shifted),
            "rebases"
        );
        for id in &self.classes {
            let throttled = self.plain.is_throttled(id.index());
            assert_eq!(self.core.is_throttled(*id).unwrap(), throttled);
        }
    }

    fn check(&self) {
        if !self.core.is_quiet() {
            self.check_what_follows_time();
            self.check_periods();
        }
        let stats = self.core.stats();
        let timers = (stats.waits, stats.wait_late_max_ns, stats.lead_ns);
        assert_eq!(timers, self.plain.timers(), "timers");
        assert_eq!(stats.borrowed_frames, self.plain.borrowed_frames, "spare");
        assert_eq!(
            stats.guard_band_held, self.plain.guard_band_held,
            "guard_band_held"
        );
        for id in &self.classes {
            let clock = self.core.class_clock(*id).unwrap();
            let expected = self.plain.clock(id.index());
            // Rebases depend on time: clocks are compared without them.
            let ps = clock.ps.wrapping_sub(stats.rebased_ps);
            let moved = wrapped(&self.plain.shifted);
            let expected = (expected.0.wrapping_sub(moved), expected.1);
            assert_eq!((ps, clock.frac), expected, "clock of {id:?}");
        }
    }

    fn reconfigure(&mut self, cfg: Config) {
        // A class may not fit the new line: then nothing changes.
        if self.core.reconfigure(&cfg, self.now_ns).is_ok() {
            self.plain.reconfigure(&cfg, self.now_ns);
            self.cfg = cfg;
        }
    }

    fn class_op(&mut self, op: &Op) {
        let (Op::Activate(number)
        | Op::Deactivate(number)
        | Op::Head(number, _)
        | Op::Rate(number, _)
        | Op::Type(number, _, _)
        | Op::Reservation(number, _, _)
        | Op::Drop(number)
        | Op::Remove(number)) = op
        else {
            return;
        };
        let Some(id) = self.pick(*number) else {
            return;
        };
        match *op {
            Op::Activate(number) => self.come(id, number),
            Op::Reservation(_, rt, part) => self.reservation(id, rt, part),
            Op::Drop(_) => self.drop_frame(id),
            Op::Deactivate(_) => {
                self.frames.remove(&id);
                self.core.deactivate(id, self.now_ns).unwrap();
                self.plain.deactivate(id.index(), self.now_ns);
            }
            Op::Head(_, size) => self.set_head(id, size),
            Op::Rate(_, fraction) => self.change(id, Some(fraction), 0),
            Op::Type(_, fraction, quantum) => self.change(id, fraction, quantum),
            _ => {
                self.frames.remove(&id);
                self.core.remove_class(id).unwrap();
                self.plain.remove(id.index());
                self.classes.retain(|other| *other != id);
            }
        }
    }

    fn change(&mut self, id: ClassId, fraction: Option<Part>, quantum: u32) {
        self.frames.remove(&id);
        let (config, class_type) = self.any_type(fraction, quantum);
        self.core.change_class(id, &config, self.now_ns).unwrap();
        self.plain.change(id.index(), class_type, self.now_ns);
    }

    pub fn apply(&mut self, op: &Op) {
        match *op {
            Op::ActivateAll => {
                for id in self.classes.clone() {
                    self.come(id, 0);
                }
            }
            Op::Step {
                size,
                more,
                late_ns,
            } => {
                self.step(1, size, more, late_ns);
            }
            Op::Burst { frames, size, more } => {
                self.step(frames, size, more, 0);
            }
            Op::Run { steps, size, heads } => {
                for _ in 0..steps {
                    for id in self.classes.clone() {
                        if heads {
                            self.set_head(id, size);
                        }
                    }
                    if !self.step(1, size, true, 0) {
                        break;
                    }
                }
            }
            Op::Add(fraction) => self.add(fraction),
            Op::Pass(ns) => self.now_ns += ns,
            Op::Back(ns) => self.now_ns = self.now_ns.saturating_sub(ns),
            Op::Reconfigure {
                line,
                max_frame_bytes,
                order,
                guard_band,
            } => {
                let line_rate_bps = (self.cfg.line_rate_bps as f64 * line) as u64;
                self.reconfigure(Config {
                    line_rate_bps: line_rate_bps.clamp(8000, 1_000_000_000_000),
                    max_frame_bytes: max_frame_bytes.max(self.cfg.min_frame_bytes),
                    max_burst_bytes: match self.cfg.max_burst_bytes {
                        0 => 0,
                        bytes => bytes.max(max_frame_bytes).max(self.cfg.min_frame_bytes),
                    },
                    order,
                    guard_band,
                    ..self.cfg
                });
            }
            Op::Period(length_ns, percent, aligned) => {
                self.period(length_ns, percent, aligned);
            }
            Op::Mode(mode) => self.reconfigure(Config { mode, ..self.cfg }),
            Op::WheelFrom(classes) => self.core.use_wheel_from(classes),
            _ => self.class_op(op),
        }
        self.check();
    }
}
