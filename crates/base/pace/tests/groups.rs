// SPDX-License-Identifier: MIT OR Apache-2.0
//! Groups: one level above classes. Shares on both levels are compared with rational numbers,
//! in bytes; what is late, with a bound of frames.

use pace::{ClassConfig, ClassId, Config, Decision, GroupId, Layer, Mode, Order, Scheduler};

use crate::wire::{Gigabit, Random, Wire};

const GBIT: u64 = 1_000_000_000;
const MBIT: u64 = 1_000_000;
/// A tenth of a second at 1 Gbit/s.
const RUN: u64 = 12_500_000;
const LEN: u32 = 1514;
const WIRE_BYTES: u64 = 1538;

fn config(mode: Mode) -> Config {
    Config {
        order: Order::Next,
        layer: Layer::Wire,
        mode,
        ..Config::ethernet(GBIT, LEN)
    }
}

/// A port on which all classes always have another frame, in any mode.
struct Host {
    port: Scheduler,
    now_ns: u64,
    /// Frames: when it was sent (as the port's clock counts, in ps), class.
    sent: Vec<(u64, ClassId)>,
    decisions: u64,
}

impl Host {
    fn new(config: &Config) -> Self {
        Host {
            port: Scheduler::new(config, 0).unwrap(),
            now_ns: 0,
            sent: Vec::new(),
            decisions: 0,
        }
    }

    fn group(&mut self, rate: u64, ceil: u64) -> GroupId {
        self.port.add_group(rate * MBIT, ceil * MBIT).unwrap()
    }

    /// A class of a group, or of the port; active. A ceil of 0 is none, a rate of 0 best effort.
    fn class(&mut self, group: Option<GroupId>, rate_bps: u64, ceil_bps: u64) -> ClassId {
        let config = match (rate_bps, ceil_bps) {
            (0, _) => ClassConfig::Normal {
                quantum_bytes: None,
            },
            (_, 0) => ClassConfig::Paced { rate_bps },
            _ => ClassConfig::Borrowing { rate_bps, ceil_bps },
        };
        let id = match group {
            Some(group) => self.port.add_class_in(group, &config).unwrap(),
            None => self.port.add_class(&config).unwrap(),
        };
        self.port.activate(id, self.now_ns).unwrap();
        id
    }

    /// Carries out one decision; `more`: has the class another frame?
    fn step(&mut self, more: impl FnOnce(ClassId) -> bool) -> Decision {
        let decision = self.port.next(self.now_ns);
        self.decisions += 1;
        match decision {
            Decision::Send(class) => {
                self.sent.push((self.port.global_ps(), class));
                self.port
                    .sent(class, LEN, more(class), self.now_ns)
                    .unwrap();
            }
            Decision::Gap { wire_bytes } => self.port.gap_sent(wire_bytes),
            Decision::Wait { until_ns } => {
                assert!(until_ns > self.now_ns, "waits for {until_ns}");
                self.now_ns = until_ns;
            }
            Decision::Idle => {}
        }
        decision
    }

    fn run_until(&mut self, global_bytes: u64) {
        while self.port.global_bytes() < global_bytes {
            self.step(|_| true);
        }
    }

    /// Wire bytes of a class since byte `from`.
    fn bytes(&self, class: ClassId, from: u64) -> u64 {
        let frames = self
            .sent
            .iter()
            .filter(|&&(ps, id)| id == class && ps >= from * 8000);
        frames.count() as u64 * WIRE_BYTES
    }

    /// Asserts Mbit/s over the run, to so many frames.
    fn assert_rates(&self, classes: &[(ClassId, u64)], frames: u64) {
        for &(class, rate) in classes {
            let expected = self.port.global_bytes() * rate / 1000;
            let got = self.bytes(class, 0);
            assert!(
                got.abs_diff(expected) <= frames * WIRE_BYTES,
                "{class:?} of {classes:?}: {got} bytes, not {expected}"
            );
        }
    }
}

const MODES: [Mode; 3] = [Mode::Gap, Mode::Timer, Mode::Hybrid];

#[test]
fn each_class_has_its_rate_if_both_levels_carry_all() {
    for mode in MODES {
        let mut host = Host::new(&config(mode));
        let (one, two) = (host.group(300, 300), host.group(400, 400));
        let classes = [
            (host.class(Some(one), 20 * MBIT, 0), 20),
            (host.class(Some(one), 100 * MBIT, 0), 100),
            (host.class(Some(one), 180 * MBIT, 0), 180),
            (host.class(Some(two), 5 * MBIT, 0), 5),
            (host.class(Some(two), 150 * MBIT, 0), 150),
            (host.class(None, 300 * MBIT, 0), 300),
        ];
        host.run_until(4 * RUN);
        host.assert_rates(&classes, 2);
    }
}

/// Also if a group's classes have all of its rate, and the groups all of the line.
#[test]
fn rates_do_not_drift_on_a_full_port() {
    let mut random = Random(3);
    for round in 0..30 {
        let mode = MODES[round % 3];
        let mut host = Host::new(&config(mode));
        let n = 2 + random.below(4) as usize;
        let groups = random.rates(n, 999 * MBIT, 10);
        let mut classes = Vec::new();
        for rate in groups {
            let group = host.port.add_group(rate, rate).unwrap();
            let n = 1 + random.below(6) as usize;
            for rate in random.rates(n, rate, 10) {
                classes.push((host.class(Some(group), rate, 0), rate));
            }
        }
        host.run_until(4 * RUN);
        for &(class, rate) in &classes {
            let expected =
                (u128::from(host.port.global_bytes()) * u128::from(rate) / u128::from(GBIT)) as u64;
            let off = host.bytes(class, 0).abs_diff(expected);
            assert!(
                off <= 4 * WIRE_BYTES,
                "{mode:?} {classes:?}: {off} bytes off"
            );
        }
    }
}

#[test]
fn spare_rate_of_a_class_goes_to_its_group() {
    for mode in MODES {
        let mut host = Host::new(&config(mode));
        let group = host.group(300, 300);
        let classes = [
            (host.class(Some(group), 50 * MBIT, 300 * MBIT), 100),
            (host.class(Some(group), 100 * MBIT, 300 * MBIT), 200),
            (host.class(None, 100 * MBIT, 0), 100),
        ];
        host.run_until(4 * RUN);
        host.assert_rates(&classes, 3);
    }
}

#[test]
fn spare_rate_of_the_port_goes_to_groups_in_proportion_to_their_rates() {
    for mode in MODES {
        let mut host = Host::new(&config(mode));
        let (one, two) = (host.group(100, 1000), host.group(300, 1000));
        let classes = [
            (host.class(Some(one), 50 * MBIT, 1000 * MBIT), 250),
            (host.class(Some(two), 100 * MBIT, 1000 * MBIT), 375),
            (host.class(Some(two), 100 * MBIT, 1000 * MBIT), 375),
        ];
        host.run_until(4 * RUN);
        host.assert_rates(&classes, 3);
    }
}

#[test]
fn classes_share_an_over_subscribed_group_in_proportion_to_their_rates() {
    for mode in MODES {
        // Beside a full line the group has its rate, else its ceil.
        for (others, most) in [(800, 200), (100, 400)] {
            let mut host = Host::new(&config(mode));
            let group = host.group(200, 400);
            let classes = [
                (host.class(Some(group), 200 * MBIT, 0), most / 4),
                (host.class(Some(group), 400 * MBIT, 0), most / 2),
                (host.class(Some(group), 200 * MBIT, 0), most / 4),
                (host.class(None, others * MBIT, 0), others),
            ];
            host.run_until(4 * RUN);
            host.assert_rates(&classes, 4);
        }
    }
}

#[test]
fn groups_share_an_over_subscribed_port_in_proportion_to_their_rates() {
    for mode in MODES {
        let mut host = Host::new(&config(mode));
        let (one, two) = (host.group(600, 600), host.group(900, 900));
        let classes = [
            (host.class(Some(one), 100 * MBIT, 0), 400 / 6),
            (host.class(Some(one), 500 * MBIT, 0), 400 * 5 / 6),
            (host.class(Some(two), 300 * MBIT, 0), 200),
            (host.class(Some(two), 600 * MBIT, 0), 400),
        ];
        host.run_until(4 * RUN);
        host.assert_rates(&classes[2..], 4);
        // 66.7 and 333.3: not whole.
        let first = host.bytes(classes[0].0, 0);
        let second = host.bytes(classes[1].0, 0);
        assert!(second.abs_diff(5 * first) <= 8 * WIRE_BYTES);
        let expected = host.port.global_bytes() * 2 / 5;
        assert!((first + second).abs_diff(expected) <= 4 * WIRE_BYTES);
    }
}

/// What a group leaves of its share of an over-subscribed port is not lost to it: a class
/// below its share has its rate.
#[test]
fn a_group_below_its_share_has_what_it_asks_for() {
    for mode in MODES {
        let mut host = Host::new(&config(mode));
        let (one, two) = (host.group(500, 500), host.group(900, 900));
        let small = host.class(Some(one), 50 * MBIT, 0);
        let full = host.class(Some(two), 900 * MBIT, 0);
        let more = host.class(None, 200 * MBIT, 0);
        host.run_until(4 * RUN);
        host.assert_rates(&[(small, 50)], 4);
        let rest = host.bytes(full, 0) + host.bytes(more, 0);
        let expected = host.port.global_bytes() * 95 / 100;
        assert!(
            rest + 20 * WIRE_BYTES >= expected,
            "{mode:?}: {rest} of {expected}"
        );
    }
}

#[test]
fn best_effort_of_a_group_has_what_its_classes_leave() {
    for mode in MODES {
        let mut host = Host::new(&config(mode));
        let group = host.group(300, 300);
        let classes = [
            (host.class(Some(group), 100 * MBIT, 0), 100),
            (host.class(Some(group), 0, 0), 100),
            (host.class(Some(group), 0, 0), 100),
            // Of the port: what is left there.
            (host.class(None, 0, 0), 700),
        ];
        host.run_until(4 * RUN);
        host.assert_rates(&classes, 4);
    }
}

/// The most that classes sent in any window beyond `rate_bps` x its length, in wire bytes.
fn excess(host: &Host, classes: &[ClassId], rate_bps: u64) -> u64 {
    let rate = i128::from(rate_bps);
    let (mut queue, mut most, mut last) = (0i128, 0i128, 0u64);
    for &(ps, class) in &host.sent {
        if !classes.contains(&class) {
            continue;
        }
        queue = (queue - i128::from(ps - last) * rate).max(0);
        queue += i128::from(WIRE_BYTES) * 8_000_000_000_000;
        most = most.max(queue);
        last = ps;
    }
    (most / 8_000_000_000_000) as u64
}

/// On and off at random: no window has more than the ceil of the group and a few bursts.
#[test]
fn a_group_never_passes_its_ceil() {
    let mut random = Random(5);
    for round in 0..30 {
        let mode = MODES[round % 3];
        let mut host = Host::new(&config(mode));
        let ceil = 250 + random.below(4) * 50;
        let group = host.group(200, ceil);
        let mut classes = Vec::new();
        for _ in 0..5 {
            let rate = (10 + random.below(90)) * MBIT;
            classes.push(host.class(Some(group), rate, ceil * MBIT));
        }
        let beside = host.class(None, 700 * MBIT, 0);
        for _ in 0..20_000 {
            if random.below(10) == 0 {
                let class = classes[random.below(5) as usize];
                host.port.activate(class, host.now_ns).unwrap();
            }
            if random.below(100) == 0 {
                host.port.activate(beside, host.now_ns).unwrap();
            }
            let more = random.below(4) > 0;
            if host.step(|_| more) == Decision::Idle {
                host.now_ns += 10_000;
            }
        }
        let got = excess(&host, &classes, ceil * MBIT);
        // Three bursts and, of the timer, 100 us.
        let slack = if mode == Mode::Timer {
            ceil * 25 / 2
        } else {
            0
        };
        assert!(
            got <= 4 * WIRE_BYTES + slack,
            "{mode:?} {ceil}: {got} bytes"
        );
    }
}

/// A class of rate r in a group of rate g: 2 + r/g longest bursts.
#[test]
fn burstiness_on_two_levels_is_bounded() {
    let mut random = Random(7);
    let mut most = 0.0f64;
    for round in 0..60 {
        let mode = [Mode::Gap, Mode::Hybrid][round % 2];
        let mut host = Host::new(&config(mode));
        let n = 2 + random.below(10) as usize;
        let mut classes = Vec::new();
        for of_group in random.rates_log(n, 980 * MBIT, 100) {
            let group = host.port.add_group(of_group, of_group).unwrap();
            let n = 1 + random.below(10) as usize;
            for rate in random.rates_log(n, of_group, 100) {
                classes.push((host.class(Some(group), rate, 0), rate, of_group));
            }
        }
        host.run_until(2 * RUN);
        for (class, rate, of_group) in classes {
            let got = excess(&host, &[class], rate) as f64 / WIRE_BYTES as f64;
            let bound = 2.0 + rate as f64 / of_group as f64;
            most = most.max(got / bound);
            assert!(
                got <= bound + 0.06,
                "{mode:?} {rate} of {of_group}: {got} MTU"
            );
        }
    }
    assert!(most > 0.6, "the bound is not loose: {most}");
}

/// A port that waits for a group asks once for each frame, and once for the end of a wait.
#[test]
fn the_port_does_not_wake_for_a_group_in_which_nothing_is_due() {
    let mut host = Host::new(&config(Mode::Timer));
    let group = host.group(500, 1000);
    host.class(Some(group), 5 * MBIT, 0);
    host.class(Some(group), 7 * MBIT, 20 * MBIT);
    host.run_until(4 * RUN);
    let frames = host.sent.len() as u64;
    assert!(
        host.decisions <= 2 * frames + 4,
        "{} for {frames}",
        host.decisions
    );
}

/// Random operations; nothing is lost, nothing waits for ever.
#[test]
fn any_operations_keep_the_port_serving() {
    let mut random = Random(11);
    for round in 0..60 {
        let cfg = Config {
            order: [Order::Clock, Order::Rate, Order::Next][round % 3],
            ..config(MODES[round / 3 % 3])
        };
        let mut host = Host::new(&cfg);
        let groups = [host.group(100, 400), host.group(300, 300)];
        let mut classes = Vec::new();
        for _ in 0..12 {
            let rate = random.below(100) * MBIT;
            let ceil = random.below(2) * 300 * MBIT;
            let group = [None, Some(groups[0]), Some(groups[1])][random.below(3) as usize];
            classes.push(host.class(group, rate, ceil));
        }
        for _ in 0..4000 {
            let class = classes[random.below(classes.len() as u64) as usize];
            match random.below(40) {
                0 => host.port.deactivate(class, host.now_ns).unwrap(),
                1..4 => host.port.activate(class, host.now_ns).unwrap(),
                4 => {
                    let rate_bps = (1 + random.below(100)) * MBIT;
                    host.port
                        .change_class(class, &ClassConfig::Paced { rate_bps }, host.now_ns)
                        .unwrap();
                }
                5 => {
                    let rate = 100 + random.below(100);
                    let (rate, ceil) = (rate * MBIT, (rate + 150 + random.below(100)) * MBIT);
                    let group = groups[random.below(2) as usize];
                    match host.port.change_group(group, &cfg, rate, ceil, host.now_ns) {
                        Ok(()) | Err(pace::Error::Ceil | pace::Error::RateLine) => {}
                        other => panic!("{other:?}"),
                    }
                }
                6 => {
                    let mode = MODES[random.below(3) as usize];
                    let changed = Config { mode, ..cfg };
                    host.port.reconfigure(&changed, host.now_ns).unwrap();
                }
                7 if classes.len() > 4 => {
                    host.port.remove_class(class).unwrap();
                    classes.retain(|&id| id != class);
                }
                8 => host.now_ns += random.below(20_000_000),
                _ => {}
            }
            let more = random.below(3) > 0;
            host.step(|_| more);
        }
        // All have a frame: all send one.
        for &class in &classes {
            host.port.activate(class, host.now_ns).unwrap();
        }
        let from = host.sent.len();
        for _ in 0..200_000 {
            host.step(|_| true);
            if classes
                .iter()
                .all(|&class| host.sent[from..].iter().any(|&(_, id)| id == class))
            {
                break;
            }
        }
        for &class in &classes {
            let served = host.sent[from..].iter().any(|&(_, id)| id == class);
            assert!(
                served || cfg.order == Order::Rate,
                "round {round}: {class:?} waits"
            );
        }
    }
}

/// A group of one class, each with the whole line as its ceil, is that class.
#[test]
fn a_group_of_one_class_sends_as_the_class_alone() {
    let mut alone = Wire::new(config(Mode::Gap));
    let rates = [50, 120, 300];
    let classes: Vec<_> = rates.iter().map(|&rate| alone.paced(rate * MBIT)).collect();
    alone.run_until(RUN, LEN);
    let mut host = Host::new(&config(Mode::Gap));
    let mut members = Vec::new();
    for rate in rates {
        let group = host.group(rate, 1000);
        members.push(host.class(Some(group), rate * MBIT, 0));
    }
    host.run_until(RUN);
    for (class, member) in classes.into_iter().zip(members) {
        let starts = alone.of(class).map(|frame| frame.start);
        let got = host.sent.iter().filter(|&&(_, id)| id == member);
        for (start, &(ps, _)) in starts.zip(got) {
            assert!(
                start.abs_diff(ps / 8000) <= 2 * WIRE_BYTES,
                "{start} {}",
                ps / 8000
            );
        }
    }
}

#[test]
fn a_group_refuses_what_it_cannot_hold() {
    let mut port = Scheduler::new(&config(Mode::Gap), 0).unwrap();
    let refused = |result: Result<_, pace::Error>| result.err();
    use pace::Error::{Busy, Ceil, RateLine, RateLow, RateZero};
    assert_eq!(port.add_group(0, 0).err(), Some(RateZero));
    assert_eq!(port.add_group(2 * GBIT, 2 * GBIT).err(), Some(RateLine));
    assert_eq!(port.add_group(100, 2 * GBIT).err(), Some(Ceil));
    assert_eq!(port.add_group(MBIT, 0).err(), Some(Ceil));
    let group = port.add_group(100 * MBIT, 200 * MBIT).unwrap();
    let paced = |rate_bps| ClassConfig::Paced { rate_bps };
    let mut add = |config| refused(port.add_class_in(group, &config).map(|_| ()));
    assert_eq!(add(paced(201 * MBIT)), Some(RateLine));
    assert_eq!(add(paced(1)), Some(RateLow));
    assert_eq!(add(ClassConfig::Launching { rate_bps: MBIT }), Some(Busy));
    assert_eq!(add(ClassConfig::Rt { reserve_bytes: 1 }), Some(Busy));
    let over = ClassConfig::Borrowing {
        rate_bps: MBIT,
        ceil_bps: 201 * MBIT,
    };
    assert_eq!(add(over), Some(Ceil));
    assert_eq!(add(paced(150 * MBIT)), None);
    let cfg = config(Mode::Gap);
    let changed = port.change_group(group, &cfg, 50 * MBIT, 149 * MBIT, 0);
    assert_eq!(changed.err(), Some(RateLine));
    port.change_group(group, &cfg, 50 * MBIT, 150 * MBIT, 0)
        .unwrap();
}
