// SPDX-License-Identifier: MIT OR Apache-2.0
//! The decisions of the core before its clocks counted time, in mode gap on a line that does
//! not change: today's are the same. The rates are whole fractions of the line, so that clocks
//! were whole bytes: what was equal then is equal now.

use pace::{ClassConfig, ClassId, Config, Decision, Layer, Mode, Order, Scheduler};

use crate::wheel_queue::Random;

const LINE_BPS: u64 = 1_000_000_000;
const CLASSES: usize = 24;
const STEPS: u32 = 20_000;

/// Of the decisions and counters, FNV-1a, as the core of version 0.2.0 made them.
const RECORDED: [(Order, bool, bool, u64); 12] = [
    (Order::Clock, false, false, 0xc453_ede4_81ca_ce77),
    (Order::Clock, false, true, 0xc453_ede4_81ca_ce77),
    (Order::Clock, true, false, 0xa0ea_6864_4fe5_cbfe),
    (Order::Clock, true, true, 0xa0ea_6864_4fe5_cbfe),
    (Order::Rate, false, false, 0xf711_6dcc_5230_7b47),
    (Order::Rate, false, true, 0xf711_6dcc_5230_7b47),
    (Order::Rate, true, false, 0x914a_23ae_379d_5594),
    (Order::Rate, true, true, 0x914a_23ae_379d_5594),
    (Order::Next, false, false, 0x32af_fe7d_5be7_d757),
    (Order::Next, false, true, 0x32af_fe7d_5be7_d757),
    (Order::Next, true, false, 0x9a6b_34f4_85f2_3e7d),
    (Order::Next, true, true, 0x9a6b_34f4_85f2_3e7d),
];

struct Recorder {
    port: Scheduler,
    classes: Vec<(ClassId, u32)>,
    random: Random,
    now_ns: u64,
    hash: u64,
}

/// Integers by which the line's rate divides whole.
const PARTS: [u64; 12] = [2, 5, 10, 20, 25, 40, 50, 80, 100, 125, 200, 1000];

impl Recorder {
    fn new(order: Order, guard_band: bool, wheel: bool) -> Self {
        let cfg = Config {
            order,
            guard_band,
            layer: Layer::Wire,
            mode: Mode::Gap,
            ..Config::ethernet(LINE_BPS, 1514)
        };
        let mut port = Scheduler::new(&cfg, 0).unwrap();
        port.reserve(2048);
        port.use_wheel_from(if wheel { 0 } else { u32::MAX });
        let mut random = Random::new(order as u64 * 4 + u64::from(guard_band) * 2);
        let classes = (0..CLASSES)
            .map(|_| (port.add_class(&class(&mut random)).unwrap(), 0))
            .collect();
        Recorder {
            port,
            classes,
            random,
            now_ns: 0,
            hash: 0xcbf2_9ce4_8422_2325,
        }
    }

    fn note(&mut self, number: u64) {
        for byte in number.to_le_bytes() {
            self.hash = (self.hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
    }

    fn arrive(&mut self) {
        let number = self.random.below(CLASSES as u64) as usize;
        let frames = 1 + self.random.below(8) as u32;
        self.classes[number].1 += frames;
        self.port
            .activate(self.classes[number].0, self.now_ns)
            .unwrap();
    }

    fn serve(&mut self) {
        match self.port.next(self.now_ns) {
            Decision::Send(class) => {
                let number = self.classes.iter().position(|c| c.0 == class).unwrap();
                let len_bytes = 60 + self.random.below(1455) as u32;
                self.classes[number].1 -= 1;
                let more = self.classes[number].1 != 0;
                self.note(number as u64);
                self.port.sent(class, len_bytes, more, self.now_ns).unwrap();
                self.now_ns += u64::from(len_bytes + 24) * 8;
            }
            Decision::Gap { wire_bytes } => {
                self.note(1000 + u64::from(wire_bytes));
                self.port.gap_sent(wire_bytes);
                self.now_ns += u64::from(wire_bytes) * 8;
            }
            Decision::Idle => self.now_ns += 8 * self.random.below(100_000),
            Decision::Wait { .. } => panic!("a timer in mode gap"),
        }
    }

    /// Another class takes the place of one. (What a change does to a class's clock is another
    /// since then: changes.rs.)
    fn change(&mut self) {
        let number = self.random.below(CLASSES as u64) as usize;
        let config = class(&mut self.random);
        self.port.remove_class(self.classes[number].0).unwrap();
        self.classes[number] = (self.port.add_class(&config).unwrap(), 0);
    }
}

fn class(random: &mut Random) -> ClassConfig {
    let rate_bps = LINE_BPS / PARTS[random.below(PARTS.len() as u64) as usize];
    match random.below(6) {
        0 => ClassConfig::Normal {
            quantum_bytes: None,
        },
        1 => ClassConfig::Borrowing {
            rate_bps: rate_bps / 2,
            ceil_bps: rate_bps,
        },
        _ => ClassConfig::Paced { rate_bps },
    }
}

fn decisions(order: Order, guard_band: bool, wheel: bool) -> u64 {
    let mut recorder = Recorder::new(order, guard_band, wheel);
    for _ in 0..STEPS {
        match recorder.random.below(40) {
            0 => recorder.change(),
            1..=5 => recorder.arrive(),
            _ => recorder.serve(),
        }
    }
    let stats = recorder.port.stats();
    assert!(
        stats.sent_frames > 1000 && stats.gap_frames > 500,
        "{stats:?}"
    );
    recorder.note(stats.sent_wire_bytes);
    recorder.note(stats.borrowed_frames);
    recorder.note(stats.guard_band_held);
    recorder.hash
}

#[test]
fn decisions_in_mode_gap_are_those_of_version_0_2_0() {
    let mut found = Vec::new();
    for order in [Order::Clock, Order::Rate, Order::Next] {
        for guard_band in [false, true] {
            for wheel in [false, true] {
                found.push((
                    order,
                    guard_band,
                    wheel,
                    decisions(order, guard_band, wheel),
                ));
            }
        }
    }
    assert_eq!(found, RECORDED, "{found:#x?}");
}
