// SPDX-License-Identifier: MIT OR Apache-2.0
//! How real time enters: idle spells in gap mode, and timer mode.

use pace::{ClassConfig, ClassId, Config, Decision, Mode, Order, Scheduler};

use crate::wire::Gigabit;

const GBIT: u64 = 1_000_000_000;
/// One byte at 1 Gbit/s.
const BYTE_NS: u64 = 8;

fn config(mode: Mode, order: Order) -> Config {
    Config {
        mode,
        order,
        ..Config::ethernet(GBIT, 1514)
    }
}

fn port(mode: Mode, rates: &[u64]) -> (Scheduler, Vec<ClassId>) {
    let mut port = Scheduler::new(&config(mode, Order::Clock), 0).unwrap();
    let add = |&rate_bps: &u64| port.add_class(&ClassConfig::Paced { rate_bps }).unwrap();
    let ids = rates.iter().map(add).collect();
    (port, ids)
}

/// A class sends one packet and runs empty.
fn one_packet(port: &mut Scheduler, class: ClassId, now_ns: u64) {
    port.activate(class, now_ns).unwrap();
    while let Decision::Gap { wire_bytes } = port.next(now_ns) {
        port.gap_sent(wire_bytes);
    }
    assert_eq!(port.next(now_ns), Decision::Send(class));
    port.sent(class, 1514, false, now_ns).unwrap();
}

/// What a class owes when it runs empty is gone after as long as the core would
/// have made its next packet wait, and not before.
#[test]
fn a_debt_is_paid_when_the_clock_is_reached() {
    for mode in [Mode::Gap, Mode::Timer, Mode::Hybrid] {
        for rate in [GBIT, GBIT / 10, 2400] {
            let (mut port, ids) = port(mode, &[rate]);
            assert_eq!(port.debt_ns(ids[0], 0), Ok(0), "new");
            one_packet(&mut port, ids[0], 0);
            let clock = (1514 * 8 * GBIT).div_ceil(rate);
            // Bytes handed out are the clock where gaps fill the wire.
            let behind = if mode == Mode::Timer {
                0
            } else {
                1538 * BYTE_NS
            };
            let at = |ns: u64| port.debt_ns(ids[0], ns).unwrap();
            assert_eq!(at(0), clock.saturating_sub(behind), "{mode:?} {rate}");
            assert_eq!(at(clock), 0, "{mode:?} {rate}");
            if rate < GBIT {
                let half = clock / 2;
                assert_eq!(at(half), clock - half, "{mode:?} {rate}");
                assert_eq!(at(clock - 1), 1, "{mode:?} {rate}");
            }
        }
    }
}

#[test]
fn no_packet_no_gap() {
    let (mut port, ids) = port(Mode::Gap, &[GBIT / 10]);
    assert_eq!(port.next(0), Decision::Idle);
    one_packet(&mut port, ids[0], 0);
    assert_eq!(
        port.next(0),
        Decision::Idle,
        "the gap it owes waits for a packet"
    );
}

/// An idle wire pays the gap that a class owes: exactly what is left of it is
/// filled by gap frames. The frame itself took 1538 of 15140 byte times.
#[test]
fn an_idle_spell_counts_as_time() {
    for (back_at, filled) in [
        (0, 15_140 - 1538), // the frame is still in the ring
        (1538, 15_140 - 1538),
        (2538, 15_140 - 2538),
        (10_000, 5_140),
        (15_140, 0),
        (99_999, 0),
    ] {
        let (mut port, ids) = port(Mode::Gap, &[GBIT / 10]);
        one_packet(&mut port, ids[0], 0);
        let now = back_at * BYTE_NS;
        port.activate(ids[0], now).unwrap();
        let mut gaps = 0;
        while let Decision::Gap { wire_bytes } = port.next(now) {
            gaps += u64::from(wire_bytes);
            port.gap_sent(wire_bytes);
        }
        assert_eq!(gaps, filled, "back at {back_at}");
        assert_eq!(port.global_bytes(), back_at.max(15_140));
    }
}

/// Frames handed out ahead of the wire (the transmit ring) are not time that
/// has passed: a class that comes and goes faster than the wire drains gets no
/// more than its rate over any time.
#[test]
fn frames_in_the_ring_are_not_counted_twice() {
    let (mut port, ids) = port(Mode::Gap, &[GBIT / 2]);
    let mut now = 0;
    for packet in 0..10_000u64 {
        port.activate(ids[0], now).unwrap();
        while let Decision::Gap { wire_bytes } = port.next(now) {
            port.gap_sent(wire_bytes);
        }
        let ideal = packet * 3028;
        assert!(port.global_bytes() >= ideal, "packet {packet} is early");
        port.sent(ids[0], 1514, false, now).unwrap();
        now += 1514 * BYTE_NS; // offered at twice the rate
    }
}

/// The anchor is moved along its line without rounding: after a million idle
/// spells of odd length at an odd rate, the clock is where one long one leaves it.
#[test]
fn idle_spells_do_not_drift() {
    let cfg = Config::ethernet(999_999_937, 1514);
    let mut port = Scheduler::new(&cfg, 5).unwrap();
    let class = port
        .add_class(&ClassConfig::Paced {
            rate_bps: 999_999_937,
        })
        .unwrap();
    let mut now = 5;
    for spell in 0..1_000_000u64 {
        now += 12_345 + spell % 7;
        port.activate(class, now).unwrap();
        port.deactivate(class, now).unwrap();
    }
    assert_eq!(port.global_ps(), (now - 5) * 1000);
}

/// A NIC faster than its nominal rate gets ahead of the clock; what counts as
/// in the ring is bounded, so afterwards idle time counts again.
#[test]
fn a_long_busy_spell_does_not_stop_the_clock() {
    let (mut port, ids) = port(Mode::Gap, &[GBIT]);
    port.activate(ids[0], 0).unwrap();
    for _ in 0..100_000 {
        port.sent(ids[0], 1514, true, 0).unwrap(); // 1.2 s of line at once
    }
    port.deactivate(ids[0], 0).unwrap();
    let busy = port.global_bytes();
    port.activate(ids[0], 1).unwrap();
    port.deactivate(ids[0], 1).unwrap();
    assert_eq!(port.global_bytes(), busy, "all of it may be in the ring");
    let ring_bytes = 500_000; // 4 ms, more than 256 frames of 1538
    port.activate(ids[0], 1 + (ring_bytes + 1000) * BYTE_NS)
        .unwrap();
    assert_eq!(port.global_bytes(), busy + 1000);
}

/// The bound itself: what is ahead of the wire by up to 500000 bytes is in the
/// ring and delays the clock by as much, anything more delays it no longer.
#[test]
fn the_ring_holds_four_milliseconds_of_line() {
    for (frames, delay) in [(325u64, 325 * 1538), (326, 500_000), (500, 500_000)] {
        let (mut port, ids) = port(Mode::Gap, &[GBIT]);
        port.activate(ids[0], 0).unwrap();
        for _ in 0..frames {
            port.sent(ids[0], 1514, true, 0).unwrap();
        }
        let busy = port.global_bytes();
        for now in [0, (delay + 7) * BYTE_NS] {
            port.deactivate(ids[0], now).unwrap();
            port.activate(ids[0], now).unwrap();
        }
        assert_eq!(port.global_bytes(), busy + 7, "{frames} frames");
    }
}

/// While any class has a packet, real time does not touch the clock.
#[test]
fn a_slow_device_is_never_caught_up() {
    let (mut port, ids) = port(Mode::Gap, &[GBIT / 10, GBIT / 10]);
    port.activate(ids[0], 0).unwrap();
    port.sent(ids[0], 1514, true, 0).unwrap();
    let before = port.global_bytes();
    port.activate(ids[1], 60 * GBIT).unwrap();
    port.next(120 * GBIT);
    assert_eq!(port.global_bytes(), before);
}

#[test]
fn any_elapsed_time_is_safe() {
    for mode in [Mode::Gap, Mode::Timer] {
        for line in [8000, GBIT, 1_000_000_000_000] {
            for elapsed in [1 << 40, 1 << 62, u64::MAX - 1, u64::MAX] {
                let cfg = Config {
                    mode,
                    ..Config::ethernet(line, 1514)
                };
                let mut port = Scheduler::new(&cfg, 0).unwrap();
                let class = port
                    .add_class(&ClassConfig::Paced { rate_bps: line })
                    .unwrap();
                port.activate(class, 0).unwrap();
                port.sent(class, 1514, false, 0).unwrap();
                port.activate(class, elapsed).unwrap();
                assert_eq!(
                    port.next(elapsed),
                    Decision::Send(class),
                    "{mode:?} {elapsed}"
                );
                // Exact, or cut at 73 minutes.
                let exact = elapsed.min(1 << 42) * 1000;
                assert_eq!(port.global_ps(), exact, "{mode:?} {line} {elapsed}");
                port.sent(class, 1514, true, elapsed).unwrap();
                port.next(0);
            }
        }
    }
}

/// Timer mode never asks for a gap, and what it waits for is the first
/// nanosecond at which the frame may leave.
#[test]
fn the_timer_is_set_to_the_first_nanosecond() {
    for (line, rate_bps) in [(GBIT, GBIT / 3), (999_999_937, 7_777_777), (8_191, 8_190)] {
        let cfg = Config {
            mode: Mode::Timer,
            ..Config::ethernet(line, 1514)
        };
        let mut port = Scheduler::new(&cfg, 17).unwrap();
        let class = port.add_class(&ClassConfig::Paced { rate_bps }).unwrap();
        let mut now = 17;
        port.activate(class, now).unwrap();
        for _ in 0..1000 {
            assert_eq!(port.next(now), Decision::Send(class));
            port.sent(class, 1514, true, now).unwrap();
            let Decision::Wait { until_ns } = port.next(now) else {
                panic!("has to wait");
            };
            assert!(until_ns > now);
            assert_eq!(
                port.next(until_ns - 1),
                Decision::Wait { until_ns },
                "no earlier"
            );
            now = until_ns;
        }
    }
}

/// Time that runs backwards stands still.
#[test]
fn time_never_runs_backwards() {
    let (mut port, ids) = port(Mode::Timer, &[GBIT / 2]);
    port.activate(ids[0], 1_000_000).unwrap();
    let before = port.global_bytes();
    assert_eq!(before, 125_000);
    assert_eq!(port.next(10), Decision::Send(ids[0]));
    port.sent(ids[0], 1514, true, 20).unwrap();
    assert_eq!(port.global_bytes(), before);
    let Decision::Wait { until_ns } = port.next(0) else {
        panic!("has to wait");
    };
    assert_eq!(until_ns, 1_000_000 + 3028 * BYTE_NS);
}

/// Several classes share a virtual line: no two frames closer than the first
/// one's wire length.
#[test]
fn the_virtual_line_carries_one_frame_at_a_time() {
    let (mut port, ids) = port(Mode::Timer, &[GBIT / 4, GBIT / 4, GBIT / 4]);
    let mut now = 1_000_000;
    for id in &ids {
        port.activate(*id, now).unwrap();
    }
    // Nothing was sent in the last 100 us of line: that much may leave at once.
    let mut at_once = 0u64;
    while let Decision::Send(id) = port.next(now) {
        port.sent(id, 1514, true, now).unwrap();
        at_once += 1538;
    }
    assert!(at_once <= 12_500 + 1538, "{at_once}");
    let mut starts = Vec::new();
    while starts.len() < 3000 {
        match port.next(now) {
            Decision::Send(id) => {
                starts.push(now);
                port.sent(id, 1514, true, now).unwrap();
            }
            Decision::Wait { until_ns } => now = until_ns,
            other => panic!("{other:?}"),
        }
    }
    let span = (starts[2999] - starts[0]) / BYTE_NS;
    assert!(span.abs_diff(2999 * 1514 * 4 / 3) <= 3 * 6056, "{span}");
}

/// Timers that fire late, up to 50 us: the rate holds, and what is made up
/// never exceeds 100 us of line at once.
#[test]
fn late_timers_are_made_up_for() {
    let (mut port, ids) = port(Mode::Timer, &[GBIT * 9 / 10]);
    let (mut now, mut late) = (0, 0u64);
    port.activate(ids[0], 0).unwrap();
    let (mut sent, mut at_once, mut last) = (0u64, 0u64, 0);
    while now < GBIT {
        match port.next(now) {
            Decision::Send(id) => {
                at_once = if now == last { at_once + 1538 } else { 1538 };
                last = now;
                assert!(at_once <= 12_500 + 1538, "{at_once} bytes at once");
                port.sent(id, 1514, true, now).unwrap();
                sent += 1514;
            }
            Decision::Wait { until_ns } => {
                late = (late * 31 + 7919) % 50_000;
                now = until_ns + late;
            }
            other => panic!("{other:?}"),
        }
    }
    let due = now / BYTE_NS * 9 / 10;
    assert!(sent.abs_diff(due) <= 6250 + 2 * 1514, "{sent} of {due}");
    assert_eq!(port.stats().rebases, 0);
}

/// A host that stood still for a second does not make up for it, and does not
/// make newcomers wait for it.
#[test]
fn a_stall_is_forgotten() {
    let (mut port, ids) = port(Mode::Timer, &[GBIT / 2, GBIT / 10]);
    port.activate(ids[0], 0).unwrap();
    port.sent(ids[0], 1514, true, 0).unwrap();
    let mut now = GBIT;
    port.activate(ids[1], now).unwrap();
    let mut sent = [0u64; 2];
    while now < 2 * GBIT {
        match port.next(now) {
            Decision::Send(id) => {
                sent[id.index() as usize] += 1514;
                port.sent(id, 1514, true, now).unwrap();
            }
            Decision::Wait { until_ns } => now = until_ns,
            other => panic!("{other:?}"),
        }
    }
    let stall = 500_000 + 4 * 1538; // 4 ms, and the lag of two classes
    assert!(
        sent[0] >= GBIT / 16 - 1514 && sent[0] <= GBIT / 16 + stall,
        "{sent:?}"
    );
    assert!(
        sent[1] >= GBIT / 80 - 1514 && sent[1] <= GBIT / 80 + stall,
        "{sent:?}"
    );
}

/// A class that is silent while the line idles has earned nothing: when it is
/// back it sends at once, and its next frame is a whole interval later.
#[test]
fn silence_earns_nothing() {
    for mode in [Mode::Gap, Mode::Timer] {
        for order in [Order::Clock, Order::Rate, Order::Next] {
            for late in [0, 100, 7000, 15_139, 1_000_000] {
                let mut port = Scheduler::new(&config(mode, order), 0).unwrap();
                let rate_bps = GBIT / 10;
                let class = port.add_class(&ClassConfig::Paced { rate_bps }).unwrap();
                one_packet(&mut port, class, 0);
                let back = 15_140 + late;
                one_packet(&mut port, class, back * BYTE_NS);
                let next = port.clock_bytes(class);
                assert_eq!(next, back + 15_140, "{mode:?} {order:?} {late}");
            }
        }
    }
}

/// Timer mode, more demand than line: a class that comes starts where the
/// other is, and that is not before the line last idled, however long the host
/// has slept since.
#[test]
fn an_idle_line_is_seen_at_any_distance() {
    for slept in [1000, 1 << 20, 1 << 43, (1 << 43) + 250, 1 << 50] {
        let (mut port, ids) = port(Mode::Timer, &[GBIT / 2, GBIT * 6 / 10]);
        port.activate(ids[0], 0).unwrap();
        // Occupies 124 bytes of line and is due again at 200.
        port.sent(ids[0], 100, true, 0).unwrap();
        port.activate(ids[1], slept * BYTE_NS).unwrap();
        let [here, comes] = [0, 1].map(|i| port.clock_bytes(ids[i]));
        assert_eq!(here, comes, "slept {slept}");
    }
}

/// Timer mode, a line of 10 Mbit/s: a frame that the driver took half a millisecond after the
/// decision occupies the line from then on, less what a device may take early.
#[test]
fn a_frame_that_is_taken_late_occupies_the_line_from_then_on() {
    const SLACK_NS: u64 = 100_000;
    let config = Config {
        mode: Mode::Timer,
        ..Config::ethernet(10_000_000, 1514)
    };
    let mut port = Scheduler::new(&config, 0).unwrap();
    let ids = [0, 1].map(|_| {
        let class = ClassConfig::Paced {
            rate_bps: 4_000_000,
        };
        let id = port.add_class(&class).unwrap();
        port.activate(id, 0).unwrap();
        id
    });
    assert_eq!(port.next(0), Decision::Send(ids[0]));
    let taken_ns = 500_000;
    port.sent(ids[0], 1514, true, taken_ns).unwrap();
    let until_ns = taken_ns - SLACK_NS + 1538 * 800;
    assert_eq!(port.next(taken_ns), Decision::Wait { until_ns });
    assert_eq!(port.next(until_ns), Decision::Send(ids[1]));
}

/// The rates of classes whose frames never fall due together.
const APART: [u64; 3] = [GBIT / 7, GBIT / 11, GBIT / 13];

/// Sends every frame that is due at `now_ns`. Returns until when to wait then, and the frames.
fn send_due(port: &mut Scheduler, now_ns: u64, len_bytes: u32) -> (u64, u32) {
    for frames in 0.. {
        match port.next(now_ns) {
            Decision::Send(class) => port.sent(class, len_bytes, true, now_ns).unwrap(),
            Decision::Wait { until_ns } => return (until_ns, frames),
            other => panic!("{other:?} at {now_ns}"),
        }
    }
    unreachable!()
}

/// While frames have one length, what the core expects after the next frame is what it answers
/// then, to the nanosecond; also after the line's rate has changed.
#[test]
fn the_wait_after_the_next_frame_is_known_beforehand() {
    for order in [Order::Clock, Order::Rate, Order::Next] {
        for classes in 1..=APART.len() {
            let mut port = Scheduler::new(&config(Mode::Timer, order), 0).unwrap();
            for &rate_bps in &APART[..classes] {
                let id = port.add_class(&ClassConfig::Paced { rate_bps }).unwrap();
                port.activate(id, 0).unwrap();
            }
            let (mut until, _) = send_due(&mut port, 0, 142);
            let (mut known, mut unknown) = (0, 0);
            for step in 0..1000 {
                if step == 500 {
                    let mut slower = config(Mode::Timer, order);
                    slower.line_rate_bps = GBIT / 2;
                    port.after_ns();
                    port.reconfigure(&slower, until - 1).unwrap();
                    until = send_due(&mut port, until - 1, 142).0;
                }
                let expected = port.after_ns();
                let (next, frames) = send_due(&mut port, until, 142);
                match expected {
                    Some(ns) if frames == 1 => {
                        assert_eq!(ns, next, "{order:?}, {classes} classes, frame {step}");
                        known += 1;
                    }
                    _ => unknown += 1,
                }
                until = next;
            }
            assert!(known > 800, "{order:?}, {classes}: {known}, {unknown}");
        }
    }
}

/// A class that has left from behind the first is not waited for.
#[test]
fn a_class_that_has_left_from_behind_the_first_is_forgotten() {
    for order in [Order::Clock, Order::Next] {
        let [(mut alone, _), (mut left, ids)] = [1, 2].map(|classes| {
            let mut port = Scheduler::new(&config(Mode::Timer, order), 0).unwrap();
            let ids = APART[..classes].iter().map(|&rate_bps| {
                let id = port.add_class(&ClassConfig::Paced { rate_bps }).unwrap();
                port.activate(id, 0).unwrap();
                id
            });
            let ids: Vec<ClassId> = ids.collect();
            (port, ids)
        });
        let (mut until, _) = send_due(&mut alone, 0, 142);
        // The line carries one frame after the other; the second waits behind the first.
        let (behind, _) = send_due(&mut left, 0, 142);
        send_due(&mut left, behind, 142);
        left.remove_class(ids[1]).unwrap();
        for step in 0..100 {
            let expected = send_due(&mut alone, until, 142);
            let found = send_due(&mut left, until, 142);
            assert_eq!(found, expected, "{order:?}, {step}");
            until = expected.0;
        }
    }
}

/// To ask for it changes no answer, whatever comes after: other lengths, other classes, a late
/// host, another line.
#[test]
fn to_ask_what_comes_after_changes_no_answer() {
    for order in [Order::Clock, Order::Rate, Order::Next] {
        let mut ports: [_; 2] = std::array::from_fn(|_| {
            let mut port = Scheduler::new(&config(Mode::Timer, order), 0).unwrap();
            let ids =
                APART.map(|rate_bps| port.add_class(&ClassConfig::Paced { rate_bps }).unwrap());
            (port, ids)
        });
        let (mut now, mut random, mut asked) = (0, 1_u64, 0);
        for step in 0..20_000 {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let draw = |bits: u32, shift: u32| (random >> shift) & ((1 << bits) - 1);
            let mut answers = Vec::new();
            for (port, ids) in &mut ports {
                if draw(2, 20) == 0 {
                    port.activate(ids[draw(8, 24) as usize % 3], now).unwrap();
                }
                if draw(8, 32) == 0 {
                    let mut line = config(Mode::Timer, order);
                    line.line_rate_bps = GBIT + draw(10, 40);
                    port.reconfigure(&line, now).unwrap();
                }
                let answer = port.next(now);
                if let Decision::Send(class) = answer {
                    let len = 60 + draw(10, 44) as u32;
                    port.sent(class, len, draw(3, 54) != 0, now).unwrap();
                }
                answers.push(answer);
            }
            assert_eq!(answers[0], answers[1], "{order:?}, step {step}");
            if let Decision::Wait { until_ns } = answers[0] {
                asked += u32::from(ports[0].0.after_ns().is_some());
                now = if draw(1, 57) == 0 {
                    until_ns
                } else {
                    now + draw(14, 40)
                };
            }
        }
        assert!(asked > 1000, "{asked}");
    }
}

/// Where sent bytes are the clock no instant follows from the next frame.
#[test]
fn only_a_timer_knows_what_comes_after() {
    let (mut port, ids) = port(Mode::Hybrid, &[GBIT / 100]);
    one_packet(&mut port, ids[0], 0);
    port.activate(ids[0], 0).unwrap();
    assert!(matches!(port.next(0), Decision::Wait { .. }));
    assert_eq!(port.after_ns(), None);
}

/// A line that becomes slower or faster changes no rate: the next frame leaves when the class's
/// rate says, to the nanosecond.
#[test]
fn a_line_that_changes_changes_no_rate() {
    let lines = [GBIT / 10, GBIT, 10 * GBIT, 1000 * GBIT];
    for mode in [Mode::Timer, Mode::Hybrid] {
        for order in [Order::Clock, Order::Rate, Order::Next] {
            for (from, to) in lines.iter().flat_map(|from| lines.map(|to| (*from, to))) {
                let on = |line| Config {
                    mode,
                    order,
                    ..Config::ethernet(line, 1514)
                };
                let mut port = Scheduler::new(&on(from), 0).unwrap();
                let rate_bps = 100_000;
                let class = port.add_class(&ClassConfig::Paced { rate_bps }).unwrap();
                port.activate(class, 0).unwrap();
                port.sent(class, 1514, true, 0).unwrap();
                port.reconfigure(&on(to), 1000).unwrap();
                let mut now_ps = 1_000_000;
                let at_ps = loop {
                    match port.next(now_ps / 1000) {
                        Decision::Wait { until_ns } => now_ps = until_ns * 1000,
                        Decision::Gap { wire_bytes } => {
                            port.gap_sent(wire_bytes);
                            now_ps += u64::from(wire_bytes) * 8_000 * GBIT / to;
                        }
                        Decision::Send(_) => break now_ps,
                        Decision::Idle => panic!("a class has a packet"),
                    }
                };
                let due_ps = 1514 * 8_000 * GBIT / rate_bps;
                // Half a smallest gap of the new line, and the nanosecond of a timer.
                let gap_ps = match mode {
                    Mode::Timer => 0,
                    _ => 42 * 8_000 * GBIT / to,
                };
                let case = format!("{mode:?} {order:?} {from} {to}: {at_ps}");
                assert!(at_ps.abs_diff(due_ps) <= gap_ps + 1000, "{case}");
            }
        }
    }
}
