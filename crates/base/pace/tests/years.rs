// SPDX-License-Identifier: MIT OR Apache-2.0
//! Classes that have been silent for months, while the port's clock went more
//! than half around: clocks wrap after 213 days.

use pace::{ClassConfig, ClassId, Config, Decision, Mode, Order, Scheduler};

const TBIT: u64 = 1_000_000_000_000;
const DAY_NS: u64 = 86_400_000_000_000;
/// 347 days: more than the circle at once.
const SPELL_NS: u64 = 30_000_000_000_000_000;

fn two_classes(mode: Mode, order: Order) -> (Scheduler, [ClassId; 2]) {
    let config = Config {
        mode,
        order,
        ..Config::ethernet(TBIT, 1514)
    };
    let mut port = Scheduler::new(&config, 0).unwrap();
    let class = ClassConfig::Paced { rate_bps: TBIT / 4 };
    let classes = [0, 1].map(|_| port.add_class(&class).unwrap());
    (port, classes)
}

/// Sends one packet of the class, which is alone.
fn one_packet(port: &mut Scheduler, class: ClassId, now_ns: u64) {
    port.activate(class, now_ns).unwrap();
    for _ in 0..100 {
        match port.next(now_ns) {
            Decision::Gap { wire_bytes } => port.gap_sent(wire_bytes),
            Decision::Send(_) => break,
            other => panic!("{other:?}"),
        }
    }
    port.sent(class, 1514, false, now_ns).unwrap();
}

/// A signed comparison would take the clock left behind for one far ahead, and
/// the class would wait for as long again.
#[test]
fn a_class_left_behind_by_more_than_half_the_circle_sends_at_once() {
    let days = [106, 107, 110, 150, 212].map(|days| (DAY_NS, days));
    let spells = [1, 2, 3, 4].map(|spells| (SPELL_NS, spells));
    for mode in [Mode::Gap, Mode::Timer, Mode::Hybrid] {
        for order in [Order::Clock, Order::Rate, Order::Next] {
            for (step_ns, steps) in days.into_iter().chain(spells) {
                let case = format!("{mode:?}, {order:?}, {steps} times {step_ns} ns");
                let (mut port, [silent, other]) = two_classes(mode, order);
                one_packet(&mut port, silent, 0);
                for step in 1..=steps {
                    one_packet(&mut port, other, step * step_ns);
                }
                let now = steps * step_ns + 1_000_000;
                assert_eq!(port.debt_ns(silent, now), Ok(0), "{case}");
                port.activate(silent, now).unwrap();
                assert_eq!(port.next(now), Decision::Send(silent), "{case}");
            }
        }
    }
}

/// After 213 days a clock left behind is as if it were ahead: within what a class may owe, to
/// the nanosecond. The class has been silent for too long to owe anything.
#[test]
fn a_class_left_behind_by_all_of_the_circle_sends_at_once() {
    const HOUR_NS: u64 = 3_600_000_000_000;
    const CIRCLE_NS: u64 = ((1u128 << 64) / 1000) as u64;
    for mode in [Mode::Gap, Mode::Timer, Mode::Hybrid] {
        for before_ns in [1, 100_000_000_000, 479_000_000_000] {
            let (mut port, [silent, other]) = two_classes(mode, Order::Next);
            one_packet(&mut port, silent, 0);
            let end = CIRCLE_NS - before_ns;
            for now in (HOUR_NS..end).step_by(HOUR_NS as usize).chain([end - 1]) {
                one_packet(&mut port, other, now);
            }
            assert_eq!(port.debt_ns(silent, end), Ok(0), "{mode:?}, {before_ns} ns");
            port.activate(silent, end).unwrap();
            let next = port.next(end);
            assert_eq!(next, Decision::Send(silent), "{mode:?}, {before_ns} ns");
        }
    }
}
