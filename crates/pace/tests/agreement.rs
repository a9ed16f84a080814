// SPDX-License-Identifier: MIT OR Apache-2.0
//! The core and the reference scheduler make the same decisions and keep the
//! same clocks, step by step, whatever happens to them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod reference;

use pace::{ClassConfig, ClassId, Config, Decision, Layer, Mode, Order, Scheduler, Train};
use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, RngSeed};
use reference::{Choice, Kind, Reference, wrapped};

/// What happens to a port. Classes are picked by a number, modulo how many
/// there are; sizes and rates are picked inside what the port allows.
#[derive(Clone, Debug)]
enum Op {
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
    /// A train of so many frames.
    Train {
        frames: u32,
        size: Size,
        more: bool,
    },
    Head(usize, Size),
    Rate(usize, Part),
    Kind(usize, Option<Part>, u32),
    Add(Option<Part>),
    Remove(usize),
    Pass(u64),
    Back(u64),
    Reconfigure {
        line: f64,
        max_frame_bytes: u32,
        order: Order,
        guard: bool,
    },
    Mode(Mode),
    /// From so many classes on a wheel orders them.
    WheelFrom(u32),
}

/// Of the line: a rate, and a ceil so much of the way up from there.
#[derive(Clone, Copy, Debug)]
struct Part {
    rate: f64,
    ceil: Option<f64>,
}

/// The most frames in one train.
const FRAMES_MAX: u32 = 8;

#[derive(Clone, Copy, Debug)]
enum Size {
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

struct Pair {
    cfg: Config,
    core: Scheduler,
    plain: Reference,
    classes: Vec<ClassId>,
    now_ns: u64,
}

impl Pair {
    fn new(cfg: Config, start_bytes: u64) -> Self {
        let mut core = Scheduler::new(&cfg, 0).unwrap();
        core.set_global_bytes(start_bytes).unwrap();
        // Room for a wheel, which few classes have no need of.
        core.reserve(2048);
        Pair {
            cfg,
            core,
            plain: Reference::new(&cfg, start_bytes, 0),
            classes: Vec::new(),
            now_ns: 0,
        }
    }

    fn pick(&self, number: usize) -> Option<ClassId> {
        self.classes
            .get(number % self.classes.len().max(1))
            .copied()
    }

    /// This part of the line, or as close as is allowed.
    fn paced(&self, part: Part) -> (ClassConfig, Kind) {
        let line = self.cfg.line_rate_bps;
        let longest = self.cfg.max_train_bytes.max(self.cfg.max_frame_bytes);
        let frames = longest.div_ceil(self.cfg.max_frame_bytes) + FRAMES_MAX;
        let counted = u128::from(longest + frames * 356);
        let lowest = (counted * u128::from(line)) >> 42;
        let rate_bps = ((line as f64 * part.rate) as u64).clamp(lowest as u64 + 1, line);
        let Some(up) = part.ceil else {
            let ceil_bps = 0;
            return (
                ClassConfig::Paced { rate_bps },
                Kind::Paced { rate_bps, ceil_bps },
            );
        };
        let ceil_bps = rate_bps + ((line - rate_bps) as f64 * up) as u64;
        let config = ClassConfig::Sharing { rate_bps, ceil_bps };
        (config, Kind::Paced { rate_bps, ceil_bps })
    }

    fn any_kind(&self, fraction: Option<Part>, quantum: u32) -> (ClassConfig, Kind) {
        match fraction {
            Some(fraction) => self.paced(fraction),
            None if quantum == 0 => (
                ClassConfig::Normal {
                    quantum_bytes: None,
                },
                Kind::Normal { quantum_bytes: 0 },
            ),
            None => {
                let quantum_bytes = quantum.clamp(256, 1 << 20);
                (
                    ClassConfig::Normal {
                        quantum_bytes: Some(quantum_bytes),
                    },
                    Kind::Normal { quantum_bytes },
                )
            }
        }
    }

    fn add(&mut self, fraction: Option<Part>) {
        let (config, kind) = self.any_kind(fraction, 0);
        let id = self.core.add_class(&config).unwrap();
        self.plain.add(id.index(), kind);
        self.classes.push(id);
    }

    fn activate(&mut self, id: ClassId) {
        self.core.activate(id, self.now_ns).unwrap();
        self.plain.activate(id.index(), self.now_ns);
    }

    /// What is sent as `frames`, which is only a train if trains are allowed.
    fn train(&self, frames: u32, size: Size) -> Train {
        let longest = self.cfg.max_train_bytes;
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
        Train {
            len_bytes,
            wire_bytes: len_bytes.max(padding).max(1) + frames * self.cfg.overhead_bytes,
            frames,
        }
    }

    fn sent(&mut self, id: ClassId, train: Train, more: bool) {
        match train.frames {
            1 => self.core.sent(id, train.len_bytes, more, self.now_ns),
            _ => self.core.sent_train(id, train, more, self.now_ns),
        }
        .unwrap();
        self.plain.sent(id.index(), train, more, self.now_ns);
    }

    fn set_head(&mut self, id: ClassId, size: Size) {
        let wire_bytes = self.core.wire_bytes(size.bytes(&self.cfg)).unwrap();
        self.core.set_head(id, wire_bytes).unwrap();
        self.plain.set_head(id.index(), wire_bytes);
    }

    /// One decision, and what follows from it. False when there is none.
    fn step(&mut self, frames: u32, size: Size, more: bool, late_ns: u64) -> bool {
        let (decision, late_bytes) = self.core.next_and_lateness(self.now_ns);
        let choice = self.plain.next(self.now_ns);
        match (decision, choice) {
            (Decision::Idle, Choice::Idle) => return false,
            (Decision::Send(id), Choice::Send(index)) if id.index() == index => {
                assert_eq!(late_bytes, self.plain.late(index), "lateness");
                self.sent(id, self.train(frames, size), more);
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

    /// What follows time is compared once the core has to look at it.
    fn check_what_follows_time(&self) {
        assert_eq!(
            self.core.global_bytes(),
            wrapped(&self.plain.global),
            "global"
        );
        assert_eq!(
            self.core.stats().shifted_bytes,
            wrapped(&self.plain.shifted),
            "shifts"
        );
        for id in &self.classes {
            let throttled = self.plain.is_throttled(id.index());
            assert_eq!(self.core.is_throttled(*id).unwrap(), throttled);
        }
    }

    fn check(&self) {
        if !self.core.is_quiet() {
            self.check_what_follows_time();
        }
        let stats = self.core.stats();
        let timers = (stats.waits, stats.wait_late_max_ns, stats.lead_ns);
        assert_eq!(timers, self.plain.timers(), "timers");
        assert_eq!(stats.spare_frames, self.plain.spare_frames, "spare");
        assert_eq!(stats.guarded, self.plain.guarded, "guarded");
        for id in &self.classes {
            let clock = self.core.class_clock(*id).unwrap();
            let expected = self.plain.clock(id.index());
            assert_eq!((clock.bytes, clock.frac), expected, "clock of {id:?}");
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
        | Op::Kind(number, _, _)
        | Op::Remove(number)) = op
        else {
            return;
        };
        let Some(id) = self.pick(*number) else {
            return;
        };
        match *op {
            Op::Activate(_) => self.activate(id),
            Op::Deactivate(_) => {
                self.core.deactivate(id, self.now_ns).unwrap();
                self.plain.deactivate(id.index(), self.now_ns);
            }
            Op::Head(_, size) => self.set_head(id, size),
            Op::Rate(_, fraction) => self.change(id, Some(fraction), 0),
            Op::Kind(_, fraction, quantum) => self.change(id, fraction, quantum),
            _ => {
                self.core.remove_class(id).unwrap();
                self.plain.remove(id.index());
                self.classes.retain(|other| *other != id);
            }
        }
    }

    fn change(&mut self, id: ClassId, fraction: Option<Part>, quantum: u32) {
        let (config, kind) = self.any_kind(fraction, quantum);
        self.core.change_class(id, &config).unwrap();
        self.plain.change(id.index(), kind);
    }

    fn apply(&mut self, op: &Op) {
        match *op {
            Op::ActivateAll => {
                for id in self.classes.clone() {
                    self.activate(id);
                }
            }
            Op::Step {
                size,
                more,
                late_ns,
            } => {
                self.step(1, size, more, late_ns);
            }
            Op::Train { frames, size, more } => {
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
                guard,
            } => {
                let line_rate_bps = (self.cfg.line_rate_bps as f64 * line) as u64;
                self.reconfigure(Config {
                    line_rate_bps: line_rate_bps.clamp(8000, 1_000_000_000_000),
                    max_frame_bytes: max_frame_bytes.max(self.cfg.min_frame_bytes),
                    max_train_bytes: match self.cfg.max_train_bytes {
                        0 => 0,
                        bytes => bytes.max(max_frame_bytes).max(self.cfg.min_frame_bytes),
                    },
                    order,
                    guard,
                    ..self.cfg
                });
            }
            Op::Mode(mode) => self.reconfigure(Config { mode, ..self.cfg }),
            Op::WheelFrom(classes) => self.core.use_wheel_from(classes),
            _ => self.class_op(op),
        }
        self.check();
    }
}

fn size() -> impl Strategy<Value = Size> {
    prop_oneof![
        1 => Just(Size::Smallest),
        3 => Just(Size::Largest),
        2 => any::<u32>().prop_map(Size::Any),
    ]
}

/// From a hundred-thousandth of the line to all of it; often round parts.
fn fraction() -> impl Strategy<Value = f64> {
    prop_oneof![
        (-5.0..0.0f64).prop_map(|exponent| 10f64.powf(exponent)),
        (1u32..=8).prop_map(|parts| 1.0 / f64::from(parts)),
        (1u32..=100).prop_map(|percent| f64::from(percent) / 100.0),
        Just(0.0),
    ]
}

fn part() -> impl Strategy<Value = Part> {
    (fraction(), prop::option::weighted(0.3, 0.0..=1.0f64))
        .prop_map(|(rate, ceil)| Part { rate, ceil })
}

fn elapsed() -> impl Strategy<Value = u64> {
    prop_oneof![
        4 => 0u64..20_000,
        4 => 0u64..2_000_000,
        2 => 0u64..20_000_000_000,
        1 => 0u64..1 << 54,
    ]
}

fn order() -> impl Strategy<Value = Order> {
    prop_oneof![Just(Order::Clock), Just(Order::Rate), Just(Order::Next)]
}

fn mode() -> impl Strategy<Value = Mode> {
    prop_oneof![2 => Just(Mode::Gap), 1 => Just(Mode::Timer), 2 => Just(Mode::Hybrid)]
}

fn op() -> impl Strategy<Value = Op> {
    let class = any::<usize>;
    prop_oneof![
        6 => class().prop_map(Op::Activate),
        3 => Just(Op::ActivateAll),
        2 => class().prop_map(Op::Deactivate),
        12 => (size(), any::<bool>(), 0u64..200_000)
            .prop_map(|(size, more, late_ns)| Op::Step { size, more, late_ns }),
        6 => (1usize..40, size(), any::<bool>())
            .prop_map(|(steps, size, heads)| Op::Run { steps, size, heads }),
        3 => (1..=FRAMES_MAX, size(), any::<bool>())
            .prop_map(|(frames, size, more)| Op::Train { frames, size, more }),
        1 => (class(), size()).prop_map(|(number, size)| Op::Head(number, size)),
        2 => (class(), part()).prop_map(|(number, part)| Op::Rate(number, part)),
        1 => (class(), prop::option::of(part()), 0u32..4000)
            .prop_map(|(number, part, quantum)| Op::Kind(number, part, quantum)),
        1 => prop::option::weighted(0.7, part()).prop_map(Op::Add),
        1 => class().prop_map(Op::Remove),
        3 => elapsed().prop_map(Op::Pass),
        1 => (0u64..5_000_000).prop_map(Op::Back),
        1 => (0.1..10.0f64, 1u32..10_000, order(), any::<bool>()).prop_map(
            |(line, max_frame_bytes, order, guard)| Op::Reconfigure {
                line, max_frame_bytes, order, guard
            }
        ),
        1 => mode().prop_map(Op::Mode),
        2 => wheel_from().prop_map(Op::WheelFrom),
    ]
}

/// Never, always, or above a number of classes that comes and goes.
fn wheel_from() -> impl Strategy<Value = u32> {
    prop_oneof![1 => Just(u32::MAX), 2 => Just(0u32), 2 => 1u32..12, 1 => 50u32..200]
}

fn layer() -> impl Strategy<Value = Layer> {
    prop_oneof![Just(Layer::Link), Just(Layer::Wire), Just(Layer::Ip)]
}

fn config() -> impl Strategy<Value = Config> {
    let line = prop_oneof![
        3 => Just(1_000_000_000u64),
        2 => Just(10_000_000_000u64),
        1 => Just(1_000_000_000_000u64),
        2 => 8000u64..1_000_000_000_000,
        1 => 8000u64..20_000,
    ];
    let frame = prop_oneof![
        4 => Just((60u32, 1514u32, 24u32)),
        1 => Just((60, 9014, 24)),
        1 => Just((60, 60, 24)),
        2 => (0u32..100, 0u32..10_000, 0u32..=256)
            .prop_map(|(min, more, overhead)| (min, (min + more).max(1), overhead)),
    ];
    let train = prop_oneof![2 => Just(0u32), 1 => 1u32..60_000];
    let how = (layer(), order(), mode(), any::<bool>());
    (line, frame, 0u32..20, train, how).prop_map(
        |(line_rate_bps, (min, max, overhead), header, train, how)| Config {
            line_rate_bps,
            overhead_bytes: overhead,
            min_frame_bytes: min,
            max_frame_bytes: max,
            max_train_bytes: match train == 0 || train / max * overhead > 1 << 20 {
                true => 0,
                false => max + train,
            },
            link_header_bytes: header,
            layer: how.0,
            order: how.1,
            mode: how.2,
            guard: how.3,
        },
    )
}

/// Near what wraps: the clock in a queue key (44 bits) and the clock itself.
fn start() -> impl Strategy<Value = u64> {
    prop_oneof![
        2 => Just(0u64),
        2 => (0u64..100_000).prop_map(|before| (1 << 44) - before),
        2 => (0u64..100_000).prop_map(|before| (1 << 43) - before),
        2 => (0u64..100_000).prop_map(|before| 0u64.wrapping_sub(before)),
        1 => any::<u64>(),
    ]
}

fn deterministic(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        rng_algorithm: RngAlgorithm::ChaCha,
        rng_seed: RngSeed::Fixed(20_060_601),
        failure_persistence: None,
        max_shrink_iters: 20_000,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(deterministic(2000))]

    #[test]
    fn core_and_reference_agree(
        cfg in config(),
        start_bytes in start(),
        first in prop::collection::vec(prop::option::weighted(0.8, part()), 1..8),
        ops in prop::collection::vec(op(), 1..60),
        wheel_from in wheel_from(),
    ) {
        let mut pair = Pair::new(cfg, start_bytes);
        pair.core.use_wheel_from(wheel_from);
        for part in first {
            pair.add(part);
        }
        for op in &ops {
            pair.apply(op);
        }
    }
}

proptest! {
    #![proptest_config(deterministic(36))]

    /// Queues of several levels, with places freed and taken in the middle.
    #[test]
    fn core_and_reference_agree_on_many_classes(
        cfg in config(),
        start_bytes in start(),
        first in prop::collection::vec(prop::option::weighted(0.95, part()), 50..250),
        ops in prop::collection::vec(op(), 20..60),
        wheel_from in wheel_from(),
    ) {
        let mut pair = Pair::new(cfg, start_bytes);
        pair.core.use_wheel_from(wheel_from);
        for part in first {
            pair.add(part);
        }
        pair.apply(&Op::ActivateAll);
        for op in &ops {
            pair.apply(op);
        }
    }
}

/// A class that waits for its ceil is not behind, whatever its rate's clock
/// says.
#[test]
fn another_order_leaves_the_clock_of_a_class_that_waits_for_its_ceil() {
    let cfg = Config {
        line_rate_bps: 1_000_000_000,
        overhead_bytes: 24,
        min_frame_bytes: 60,
        max_frame_bytes: 1514,
        max_train_bytes: 0,
        link_header_bytes: 0,
        layer: Layer::Link,
        order: Order::Clock,
        mode: Mode::Gap,
        guard: false,
    };
    let reconfigure = |line, max_frame_bytes, order| Op::Reconfigure {
        line,
        max_frame_bytes,
        order,
        guard: false,
    };
    let train = Op::Train {
        frames: 1,
        size: Size::Smallest,
        more: false,
    };
    let run = Op::Run {
        steps: 16,
        size: Size::Largest,
        heads: false,
    };
    let mut pair = Pair::new(cfg, 0);
    pair.add(Some(Part {
        rate: 0.74,
        ceil: Some(0.44),
    }));
    pair.apply(&Op::Activate(0));
    pair.apply(&reconfigure(7.4, 298, Order::Next));
    pair.apply(&run);
    pair.apply(&train);
    pair.apply(&train);
    pair.apply(&reconfigure(4.5, 1, Order::Clock));
}
