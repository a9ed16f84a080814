// SPDX-License-Identifier: MIT OR Apache-2.0
//! A hundred thousand classes leave in the same order whichever structure
//! orders them.

use pace::{ClassConfig, ClassId, Config, Decision, Mode, Order, Scheduler, Stats};

use crate::wheel_queue::Random;

const CLASSES: u32 = 100_000;
const LINE_BPS: u64 = 1_000_000_000_000;
const FRAMES: u32 = 250_000;
const HEAP_ONLY: u32 = u32::MAX;

/// What classes there are, and what happens to them.
#[derive(Clone, Copy)]
struct Case {
    order: Order,
    mode: Mode,
    /// Of all rates, relative to the line.
    load: f64,
    /// Largest rate over smallest.
    ratio: f64,
    /// Classes come, go, and get other rates.
    churn: bool,
}

fn rates(case: &Case, random: &mut Random) -> Vec<u64> {
    let parts: Vec<f64> = (0..CLASSES)
        .map(|_| (case.ratio.ln() * random.part()).exp())
        .collect();
    let sum: f64 = parts.iter().sum();
    let bps = LINE_BPS as f64 * case.load / sum;
    // The least that leads by less than 2^42 byte times.
    let least = 1514 * 8 / 240 + 1;
    parts
        .iter()
        .map(|part| ((part * bps) as u64).clamp(least, LINE_BPS))
        .collect()
}

struct Run {
    port: Scheduler,
    classes: Vec<ClassId>,
    random: Random,
    now_ns: u64,
    /// Of who was sent, and when.
    sum: u64,
}

impl Run {
    fn new(case: &Case, wheel_from: impl Fn(u32) -> u32) -> Self {
        let cfg = Config {
            order: case.order,
            mode: case.mode,
            ..Config::ethernet(LINE_BPS, 1514)
        };
        let mut random = Random(77);
        let mut port = Scheduler::new(&cfg, 0).unwrap();
        // Across the wrap of values in keys.
        port.set_global_ps((1 << 50) - 100_000_000_000).unwrap();
        port.use_wheel_from(wheel_from(0));
        let rates = rates(case, &mut random);
        let classes: Vec<ClassId> = rates
            .iter()
            .map(|&rate_bps| port.add_class(&ClassConfig::Paced { rate_bps }).unwrap())
            .collect();
        for &class in &classes {
            port.activate(class, 0).unwrap();
        }
        let (now_ns, sum) = (0, 0);
        Run {
            port,
            classes,
            random,
            now_ns,
            sum,
        }
    }

    fn churn(&mut self) {
        let random = &mut self.random;
        let count = u64::from(CLASSES);
        let mut any = || self.classes[random.below(count) as usize];
        let (coming, going, changing) = (any(), any(), any());
        self.port.activate(coming, self.now_ns).unwrap();
        self.port.deactivate(going, self.now_ns).unwrap();
        let rate_bps = 1_000_000 + random.below(100_000_000);
        let config = ClassConfig::Paced { rate_bps };
        let now_ns = self.now_ns;
        self.port.change_class(changing, &config, now_ns).unwrap();
    }

    /// The next frame; gaps and waits before it pass.
    fn frame(&mut self, more: bool) {
        loop {
            match self.port.next(self.now_ns) {
                Decision::Send(class) => {
                    let global = self.port.global_ps();
                    self.sum = (self.sum ^ u64::from(class.index()) ^ (global << 20))
                        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
                        .rotate_left(23);
                    self.port.sent(class, 1514, more, self.now_ns).unwrap();
                    return;
                }
                Decision::Gap { wire_bytes } => self.port.gap_sent(wire_bytes),
                Decision::Wait { until_ns } => self.now_ns = until_ns,
                Decision::Idle => return,
            }
        }
    }

    fn all(case: &Case, wheel_from: impl Fn(u32) -> u32) -> (u64, Stats) {
        let mut run = Run::new(case, &wheel_from);
        for frame in 0..FRAMES {
            if frame % 50_000 == 0 {
                run.port.use_wheel_from(wheel_from(frame));
            }
            let more = !case.churn || frame % 7 > 0;
            run.frame(more);
            if case.churn && frame % 3 == 0 {
                run.churn();
            }
        }
        (run.sum, run.port.stats())
    }
}

fn assert_same_order(case: Case) {
    let heap = Run::all(&case, |_| HEAP_ONLY);
    assert!(heap.1.sent_frames > u64::from(FRAMES) * 9 / 10);
    assert_eq!(heap, Run::all(&case, |_| 0), "the wheel alone");
    assert_eq!(heap, Run::all(&case, |_| 2000), "as many have it");
    // Back and forth while both hold classes.
    let change = |frame| match frame / 50_000 % 2 {
        0 => 0,
        _ => HEAP_ONLY,
    };
    assert_eq!(heap, Run::all(&case, change), "changing over");
}

#[test]
fn smallest_clock_first() {
    assert_same_order(Case {
        order: Order::Clock,
        mode: Mode::Gap,
        load: 0.9,
        ratio: 100.0,
        churn: false,
    });
}

#[test]
fn smallest_virtual_finish_time_first_beyond_the_line() {
    assert_same_order(Case {
        order: Order::Next,
        mode: Mode::Gap,
        load: 1.5,
        ratio: 100.0,
        churn: false,
    });
}

#[test]
fn highest_rate_first() {
    assert_same_order(Case {
        order: Order::Rate,
        mode: Mode::Gap,
        load: 0.9,
        ratio: 1e5,
        churn: false,
    });
}

#[test]
fn classes_that_come_and_go_by_a_timer() {
    assert_same_order(Case {
        order: Order::Next,
        mode: Mode::Timer,
        load: 0.9,
        ratio: 1e5,
        churn: true,
    });
}

#[test]
fn classes_that_come_and_go_with_little_load() {
    assert_same_order(Case {
        order: Order::Clock,
        mode: Mode::Hybrid,
        load: 0.01,
        ratio: 100.0,
        churn: true,
    });
}

#[test]
fn clocks_that_coincide() {
    assert_same_order(Case {
        order: Order::Next,
        mode: Mode::Gap,
        load: 1.2,
        ratio: 1.0,
        churn: false,
    });
}

/// What the wheel knows of its second key may be no key of a class: bursts are denser than what
/// is sorted at once, with silence between them.
#[test]
fn the_wait_after_the_next_frame_is_asked_between_bursts() {
    const IN_BURST: u64 = 10_000;
    let cfg = Config {
        order: Order::Next,
        mode: Mode::Timer,
        ..Config::ethernet(1_000_000_000, 1514)
    };
    let mut port = Scheduler::new(&cfg, 0).unwrap();
    let rate_bps = 5_680;
    let classes = (0..IN_BURST).map(|_| port.add_class(&ClassConfig::Paced { rate_bps }).unwrap());
    let classes: Vec<ClassId> = classes.collect();
    let (mut now_ns, mut sent, mut asked) = (0, 0, 0);
    let mut coming = classes.iter().enumerate();
    let mut next = coming.next();
    while sent < 5 * IN_BURST {
        if let Some((_, &class)) = next.filter(|(place, _)| *place as u64 * 7_000 <= now_ns) {
            port.activate(class, now_ns).unwrap();
            next = coming.next();
        }
        match port.next(now_ns) {
            Decision::Send(class) => {
                port.sent(class, 142, true, now_ns).unwrap();
                sent += 1;
            }
            Decision::Wait { until_ns } => {
                if let Some(after_ns) = port.after_ns() {
                    assert!(after_ns >= until_ns, "frame {sent}: {after_ns}, {until_ns}");
                    asked += 1;
                }
                let arrival = next.map_or(u64::MAX, |(place, _)| place as u64 * 7_000);
                now_ns = until_ns.min(arrival);
            }
            other => panic!("{other:?} after {sent} frames"),
        }
    }
    assert!(asked > IN_BURST, "{asked}");
}
