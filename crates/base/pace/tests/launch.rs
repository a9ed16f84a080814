// SPDX-License-Identifier: MIT OR Apache-2.0
//! Classes whose frames have a launch time, on a wire that runs in real time.

use std::collections::{BTreeMap, VecDeque};

use pace::{ClassConfig, ClassId, Config, Decision, Mode, Order, Scheduler};

use crate::wire::Random;

const GBIT: u64 = 1_000_000_000;
const MBIT: u64 = 1_000_000;
const MS: u64 = 1_000_000;
const US: u64 = 1_000;
/// One byte at 1 Gbit/s.
const BYTE_NS: u64 = 8;
/// Half a smallest gap.
const HALF_GAP_NS: u64 = 42 * BYTE_NS;
const LEN: u32 = 1514;
const WIRE_NS: u64 = 1538 * BYTE_NS;

/// A host with a transmit ring of 64 frames. Classes that launch have the instants of their
/// frames in `launches`; all others always have another frame.
struct Host {
    port: Scheduler,
    now: u64,
    wire_free: u64,
    ring: VecDeque<u64>,
    launches: BTreeMap<ClassId, VecDeque<u64>>,
    /// When frames started on the wire.
    frames: Vec<(u64, ClassId)>,
    /// What is handed out reaches the wire so much later, and whether the host measures that.
    handover_ns: u64,
    measures: bool,
    /// When the driver got the last frame, and whether that is to be reported.
    got_ns: u64,
    handed: bool,
}

impl Host {
    fn new(mode: Mode, order: Order, guard_band: bool) -> Self {
        let cfg = Config {
            mode,
            order,
            guard_band,
            ..Config::ethernet(GBIT, LEN)
        };
        Host {
            port: Scheduler::new(&cfg, 0).unwrap(),
            now: 0,
            wire_free: 0,
            ring: VecDeque::new(),
            launches: BTreeMap::new(),
            frames: Vec::new(),
            handover_ns: 0,
            measures: false,
            got_ns: 0,
            handed: false,
        }
    }

    fn busy(&mut self, config: ClassConfig) -> ClassId {
        let id = self.port.add_class(&config).unwrap();
        self.port.activate(id, self.now).unwrap();
        id
    }

    fn launching(&mut self, rate_bps: u64, at: impl IntoIterator<Item = u64>) -> ClassId {
        let config = ClassConfig::Launching { rate_bps };
        let id = self.port.add_class(&config).unwrap();
        let at: VecDeque<u64> = at.into_iter().collect();
        self.port.activate_at(id, at[0], self.now).unwrap();
        self.launches.insert(id, at);
        id
    }

    fn transmit(&mut self, bytes: u32) -> u64 {
        self.got_ns = self.now + self.handover_ns;
        let start = self.wire_free.max(self.got_ns);
        self.wire_free = start + u64::from(bytes) * BYTE_NS;
        self.ring.push_back(self.wire_free);
        self.handed = true;
        start
    }

    fn send(&mut self, id: ClassId) {
        let start = self.transmit(LEN + 24);
        self.frames.push((start, id));
        let Some(at) = self.launches.get_mut(&id) else {
            self.port.sent(id, LEN, true, self.now).unwrap();
            return;
        };
        at.pop_front().expect("a frame");
        self.port.sent(id, LEN, false, self.now).unwrap();
        if let Some(&next) = at.front() {
            self.port.activate_at(id, next, self.now).unwrap();
        }
    }

    /// Reports when the driver got the last frame.
    fn report(&mut self) {
        if self.measures && self.handed {
            self.port.started(self.got_ns, self.got_ns);
        }
        self.handed = false;
    }

    /// Runs until no decision comes before `until`; timers are late by what `late` says.
    fn run_until(&mut self, until: u64, mut late: impl FnMut() -> u64) {
        while self.now < until {
            let now = self.now;
            self.ring.retain(|&done| done > now);
            if self.ring.len() >= 64 {
                self.now = self.ring[0];
                continue;
            }
            self.report();
            match self.port.next(now) {
                Decision::Send(id) => self.send(id),
                Decision::Gap { wire_bytes } => {
                    self.transmit(wire_bytes);
                    self.port.gap_sent(wire_bytes);
                }
                Decision::Wait { until_ns } => {
                    assert!(until_ns > now, "waits for the past");
                    self.now = (until_ns + late()).min(until);
                }
                Decision::Idle => return,
            }
        }
    }

    fn starts(&self, id: ClassId) -> Vec<u64> {
        let of = self.frames.iter().filter(|frame| frame.1 == id);
        of.map(|frame| frame.0).collect()
    }
}

/// Instants 20 to 400 us apart, at no multiple of anything.
fn instants(random: &mut Random, count: usize) -> Vec<u64> {
    let mut at = 777 * US;
    (0..count)
        .map(|_| {
            at += 20 * US + random.below(380 * US);
            at
        })
        .collect()
}

fn assert_close(starts: &[u64], at: &[u64], early: u64, late: u64, what: &str) {
    assert_eq!(starts.len(), at.len(), "{what}");
    for (index, (start, at)) in starts.iter().zip(at).enumerate() {
        assert!(
            *start + early >= *at && *start <= *at + late,
            "{what}: frame {index} at {start}, launch time {at}"
        );
    }
}

#[test]
fn a_frame_leaves_within_half_a_smallest_gap_of_its_launch_time() {
    for mode in [Mode::Gap, Mode::Hybrid] {
        for order in [Order::Clock, Order::Rate, Order::Next] {
            let mut random = Random(5);
            let at = instants(&mut random, 300);
            let mut host = Host::new(mode, order, false);
            let class = host.launching(GBIT, at.iter().copied());
            // Timers are late by up to the least lead.
            host.run_until(200 * MS, || random.below(9 * US));
            let what = format!("{mode:?} {order:?}");
            assert_close(&host.starts(class), &at, HALF_GAP_NS, HALF_GAP_NS, &what);
        }
    }
}

#[test]
fn in_timer_mode_a_frame_is_as_late_as_the_timer() {
    let mut random = Random(7);
    let at = instants(&mut random, 300);
    let mut host = Host::new(Mode::Timer, Order::Next, false);
    let class = host.launching(GBIT, at.iter().copied());
    host.run_until(200 * MS, || random.below(9 * US));
    assert_close(&host.starts(class), &at, BYTE_NS, 9 * US, "timer");
}

/// What is handed out leaves 5 us later: a host that measures this meets launch times
/// all the same, one that does not is late by as much.
#[test]
fn the_time_that_handing_over_takes_is_corrected() {
    for mode in [Mode::Gap, Mode::Hybrid] {
        for measures in [true, false] {
            let mut random = Random(23);
            let at = instants(&mut random, 300);
            let mut host = Host::new(mode, Order::Next, false);
            host.handover_ns = 5 * US;
            host.measures = measures;
            let class = host.launching(GBIT, at.iter().copied());
            host.run_until(200 * MS, || random.below(5 * US));
            let starts = host.starts(class);
            let what = format!("{mode:?} {measures}");
            if measures {
                assert_close(&starts, &at, HALF_GAP_NS, HALF_GAP_NS, &what);
                continue;
            }
            let late = 5 * US - HALF_GAP_NS;
            let is_late = |(start, at): &(&u64, &u64)| **start >= **at + late;
            let count = starts.iter().zip(&at).filter(is_late).count();
            assert!(count > 250, "{what}: {count}");
        }
    }
}

/// The host stands still until its ring is empty and the wire waits, again and again. What
/// it hands out first then is the frame whose instant has passed: no gap frame shows that the
/// wire waited. The next instant is met all the same.
#[test]
fn a_wire_that_ran_dry_is_noticed_without_a_gap_frame() {
    for handover_ns in [0, 5 * US] {
        let mut host = Host::new(Mode::Gap, Order::Next, false);
        host.handover_ns = handover_ns;
        host.measures = true;
        let at: Vec<u64> = (2..200).map(|k| k * 500 * US).collect();
        let class = host.launching(GBIT, at.iter().copied());
        for k in 1..100 {
            while host.wire_free < k * MS - US {
                let step = host.now + US;
                host.run_until(step, || 0);
            }
            // A frame takes 12 us.
            host.now = host.wire_free + (k * 7 % 40) * US;
        }
        host.run_until(110 * MS, || 0);
        let starts = host.starts(class);
        assert_eq!(starts.len(), at.len());
        let next = |all: &[u64]| all.iter().skip(1).step_by(2).copied().collect::<Vec<_>>();
        let what = format!("handing over takes {handover_ns} ns");
        assert_close(&next(&starts), &next(&at), HALF_GAP_NS, HALF_GAP_NS, &what);
    }
}

/// Another class already sends, a frame at a time, and the port idles between them, when the
/// first instant is given. Handing over takes longer for some frames than for others.
#[test]
fn beside_a_class_that_already_sends_no_frame_leaves_early() {
    for mode in [Mode::Gap, Mode::Hybrid] {
        let mut random = Random(29);
        let mut host = Host::new(mode, Order::Next, false);
        host.measures = true;
        let config = ClassConfig::Paced {
            rate_bps: 150 * MBIT,
        };
        let other = host.port.add_class(&config).unwrap();
        for k in 1..300 {
            host.now = k * 90 * US;
            host.handover_ns = US + random.below(4 * US);
            host.port.activate(other, host.now).unwrap();
            let mut sends = false;
            while !sends {
                match host.port.next(host.now) {
                    Decision::Send(_) => {
                        host.transmit(LEN + 24);
                        host.port.sent(other, LEN, false, host.now).unwrap();
                        sends = true;
                    }
                    Decision::Gap { wire_bytes } => {
                        host.transmit(wire_bytes);
                        host.port.gap_sent(wire_bytes);
                    }
                    Decision::Wait { until_ns } => host.now = until_ns,
                    Decision::Idle => unreachable!("a class has a frame"),
                }
                host.report();
            }
        }
        host.handover_ns = 5 * US;
        let at: Vec<u64> = (0..50).map(|k| host.now + 2 * MS + k * 213 * US).collect();
        let class = host.launching(GBIT, at.iter().copied());
        host.run_until(at[49] + MS, || 0);
        let what = format!("{mode:?}");
        assert_close(&host.starts(class), &at, HALF_GAP_NS, HALF_GAP_NS, &what);
    }
}

/// What was measured in one mode, or on one line, says nothing of another.
#[test]
fn a_new_mode_or_line_forgets_what_handing_over_took() {
    for (mode, bps) in [(Mode::Timer, GBIT), (Mode::Gap, GBIT / 10)] {
        let mut host = Host::new(Mode::Gap, Order::Next, false);
        host.handover_ns = 20 * US;
        host.measures = true;
        let class = host.launching(GBIT / 100, [MS]);
        host.run_until(10 * MS, || 0);
        let cfg = Config {
            mode,
            ..Config::ethernet(bps, LEN)
        };
        host.port.reconfigure(&cfg, host.now).unwrap();
        host.now = 20 * MS;
        let at = host.now + MS;
        host.port.activate_at(class, at, host.now).unwrap();
        let leaves = loop {
            match host.port.next(host.now) {
                Decision::Send(_) => break host.port.departure_ns(host.now),
                Decision::Gap { wire_bytes } => host.port.gap_sent(wire_bytes),
                Decision::Wait { until_ns } => host.now = until_ns,
                Decision::Idle => unreachable!("a class waits"),
            }
        };
        let half_gap_ns = HALF_GAP_NS * (GBIT / bps);
        assert!(
            leaves.abs_diff(at) <= half_gap_ns,
            "{mode:?}: {leaves} {at}"
        );
    }
}

/// Instants that are due while the wire is busy: in their order, back to back.
#[test]
fn instants_closer_than_a_frame_queue_up() {
    for mode in [Mode::Gap, Mode::Hybrid] {
        let at = [MS, MS + US, MS + 2 * US];
        let mut host = Host::new(mode, Order::Next, false);
        let class = host.launching(GBIT, at);
        host.run_until(5 * MS, || 0);
        let starts = host.starts(class);
        assert!(starts[0].abs_diff(MS) <= HALF_GAP_NS, "{mode:?}");
        assert_eq!(starts[1], starts[0] + WIRE_NS, "{mode:?}");
        assert_eq!(starts[2], starts[1] + WIRE_NS, "{mode:?}");
    }
}

/// The rate is the most that a class sends, whatever its instants say.
#[test]
fn instants_above_the_rate_are_spaced_by_it() {
    for mode in [Mode::Gap, Mode::Hybrid] {
        let mut host = Host::new(mode, Order::Next, false);
        let class = host.launching(100 * MBIT, (0..50).map(|_| MS));
        host.run_until(20 * MS, || 0);
        let starts = host.starts(class);
        assert_eq!(starts.len(), 50);
        for (index, start) in starts.iter().enumerate() {
            let ideal = MS + index as u64 * u64::from(LEN) * 80;
            assert!(start.abs_diff(ideal) <= HALF_GAP_NS, "{mode:?} {index}");
        }
    }
}

/// Three streams with a rate, and normal frames: each frame that launches is late by one
/// largest frame of another class at most, and the streams keep their rates.
#[test]
fn beside_other_classes_a_frame_waits_for_one_of_them() {
    for mode in [Mode::Gap, Mode::Hybrid] {
        let mut random = Random(11);
        let at = instants(&mut random, 200);
        let last = *at.last().unwrap();
        let mut host = Host::new(mode, Order::Next, false);
        let class = host.launching(GBIT / 10, at.iter().copied());
        let paced: Vec<_> = [300, 200, 50]
            .map(|mbit| {
                host.busy(ClassConfig::Paced {
                    rate_bps: mbit * MBIT,
                })
            })
            .into();
        host.busy(ClassConfig::Normal {
            quantum_bytes: None,
        });
        host.run_until(last + MS, || random.below(9 * US));
        let what = format!("{mode:?}");
        // A normal frame that has just begun, and the paced ones that were due before.
        let late = 4 * WIRE_NS + HALF_GAP_NS;
        let starts = host.starts(class);
        // The class's own rate: 121 us a frame.
        let mut due = 0;
        for (index, (start, at)) in starts.iter().zip(&at).enumerate() {
            due = (*at).max(due);
            assert!(start + HALF_GAP_NS >= due, "{what}: frame {index} early");
            assert!(*start <= due + late, "{what}: frame {index} late");
            due += u64::from(LEN) * 80;
        }
        assert_eq!(starts.len(), at.len());
        for (class, mbit) in paced.iter().zip([300, 200, 50]) {
            let bits = host.starts(*class).len() as u64 * u64::from(LEN) * 8;
            let rate = bits * 1000 / (host.wire_free / US);
            assert!(
                rate.abs_diff(mbit * 1000) <= mbit * 10 + 200,
                "{what}: {mbit}: {rate}"
            );
        }
    }
}

/// With guard band no normal frame is in the way.
#[test]
fn a_guard_band_keeps_normal_frames_out_of_the_way() {
    for mode in [Mode::Gap, Mode::Hybrid] {
        let mut random = Random(13);
        let at = instants(&mut random, 300);
        let mut host = Host::new(mode, Order::Next, true);
        let class = host.launching(GBIT, at.iter().copied());
        let normal = host.busy(ClassConfig::Normal {
            quantum_bytes: None,
        });
        host.run_until(*at.last().unwrap() + MS, || random.below(9 * US));
        let what = format!("{mode:?}");
        assert_close(&host.starts(class), &at, HALF_GAP_NS, HALF_GAP_NS, &what);
        assert!(host.starts(normal).len() > 1000, "{what}");
    }
}

/// Many classes of one frame each, given in any order, leave in the order of their instants.
#[test]
fn classes_leave_in_the_order_of_their_instants() {
    for mode in [Mode::Gap, Mode::Hybrid, Mode::Timer] {
        let mut random = Random(17);
        let mut host = Host::new(mode, Order::Next, false);
        let mut of: Vec<(u64, ClassId)> = (0..3000)
            .map(|_| {
                let at = MS + random.below(200 * MS) / WIRE_NS * 2 * WIRE_NS;
                (at, host.launching(GBIT, [at]))
            })
            .collect();
        host.run_until(1000 * MS, || 0);
        of.sort();
        let got: Vec<_> = host.frames.iter().map(|frame| frame.1).collect();
        assert_eq!(got.len(), of.len(), "{mode:?}");
        let at: BTreeMap<_, _> = of.iter().map(|&(at, id)| (id, at)).collect();
        let order: Vec<_> = got.iter().map(|id| at[id]).collect();
        assert!(order.is_sorted(), "{mode:?}");
    }
}

/// An instant may be changed, by a frame that goes before, and given up.
#[test]
fn an_instant_is_changed_and_given_up() {
    for mode in [Mode::Gap, Mode::Hybrid, Mode::Timer] {
        let mut host = Host::new(mode, Order::Next, false);
        let class = host.launching(GBIT, [9 * MS]);
        host.run_until(MS, || 0);
        host.port.activate_at(class, 2 * MS, host.now).unwrap();
        host.run_until(4 * MS, || 0);
        let starts = host.starts(class);
        assert_eq!(starts.len(), 1, "{mode:?}");
        assert!(starts[0].abs_diff(2 * MS) <= HALF_GAP_NS, "{mode:?}");
        host.now = host.now.max(host.wire_free);
        host.port.activate_at(class, 50 * MS, host.now).unwrap();
        host.port.deactivate(class, host.now).unwrap();
        assert_eq!(host.port.next(host.now), Decision::Idle, "{mode:?}");
        host.port.activate_at(class, 60 * MS, host.now).unwrap();
        host.port.remove_class(class).unwrap();
        assert_eq!(host.port.next(host.now), Decision::Idle, "{mode:?}");
    }
}

/// A class that is changed while it waits keeps its instant; one that becomes an ordinary
/// paced class sends at once.
#[test]
fn a_class_is_changed_while_it_waits() {
    for mode in [Mode::Gap, Mode::Hybrid, Mode::Timer] {
        let mut host = Host::new(mode, Order::Next, false);
        let class = host.launching(GBIT, [9 * MS]);
        let slower = ClassConfig::Launching {
            rate_bps: 10 * MBIT,
        };
        host.port.change_class(class, &slower, host.now).unwrap();
        host.run_until(20 * MS, || 0);
        let starts = host.starts(class);
        assert!(starts[0].abs_diff(9 * MS) <= HALF_GAP_NS, "{mode:?}");

        let other = host.launching(GBIT, [90 * MS]);
        let paced = ClassConfig::Paced { rate_bps: GBIT };
        host.port.change_class(other, &paced, host.now).unwrap();
        assert_eq!(host.port.next(host.now), Decision::Send(other), "{mode:?}");
    }
}

/// The farthest instant that is taken, and one in the past.
#[test]
fn instants_far_ahead_and_long_ago() {
    for mode in [Mode::Hybrid, Mode::Timer] {
        let hour = 3_600_000 * MS;
        let mut host = Host::new(mode, Order::Next, false);
        let far = host.launching(GBIT, [hour]);
        let past = host.launching(GBIT, [1]);
        host.now = MS;
        let soon = host.launching(GBIT, [2 * MS]);
        host.run_until(2 * hour, || 0);
        assert!(host.starts(past)[0] <= MS, "{mode:?}");
        assert!(
            host.starts(soon)[0].abs_diff(2 * MS) <= HALF_GAP_NS,
            "{mode:?}"
        );
        assert!(
            host.starts(far)[0].abs_diff(hour) <= HALF_GAP_NS,
            "{mode:?}"
        );
    }
}

/// When what is handed out now leaves: behind what is in the ring already.
#[test]
fn a_departure_is_behind_what_was_handed_out() {
    let mut host = Host::new(Mode::Gap, Order::Next, false);
    let class = host.busy(ClassConfig::Paced { rate_bps: GBIT });
    assert_eq!(host.port.departure_ns(0), 0);
    host.send(class);
    host.send(class);
    assert_eq!(host.port.departure_ns(0), 2 * WIRE_NS);
    assert_eq!(host.port.departure_ns(WIRE_NS), 2 * WIRE_NS);
    assert_eq!(host.port.departure_ns(3 * WIRE_NS), 3 * WIRE_NS);
}
