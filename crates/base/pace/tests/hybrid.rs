// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hybrid mode on a wire that runs in real time: a timer until a measured lead
//! before the instant, gap frames from there on.

use pace::{ClassConfig, ClassId, Config, Decision, Mode, Order, Scheduler};

use crate::wire::{Gigabit, Random};

const GBIT: u64 = 1_000_000_000;
const MBIT: u64 = 1_000_000;
const MS: u64 = 1_000_000;
const US: u64 = 1_000;
/// One byte at 1 Gbit/s.
const BYTE_NS: u64 = 8;
const LEAD_MIN: u64 = 10 * US;
const LEAD_FIRST: u64 = 30 * US;
const LEAD_MAX: u64 = 250 * US;

/// A transmit ring of some frames, and a wire that drains it.
struct Host {
    port: Scheduler,
    now: u64,
    /// What one byte takes on the wire, in units of 1e-6 ns.
    byte_fs: u64,
    wire_free: u64,
    ring: Vec<u64>,
    ring_frames: usize,
    /// When frames of classes started on the wire.
    frames: Vec<(u64, ClassId)>,
    waits: u64,
}

impl Host {
    fn new(order: Order, guard_band: bool) -> Self {
        let cfg = Config {
            mode: Mode::Hybrid,
            order,
            guard_band,
            ..Config::ethernet(GBIT, 1514)
        };
        Host {
            port: Scheduler::new(&cfg, 0).unwrap(),
            now: 0,
            byte_fs: BYTE_NS * 1_000_000,
            wire_free: 0,
            ring: Vec::new(),
            ring_frames: 64,
            frames: Vec::new(),
            waits: 0,
        }
    }

    fn add(&mut self, config: ClassConfig) -> ClassId {
        let id = self.port.add_class(&config).unwrap();
        self.port.activate(id, self.now).unwrap();
        id
    }

    fn paced(&mut self, rate_bps: u64) -> ClassId {
        self.add(ClassConfig::Paced { rate_bps })
    }

    fn transmit(&mut self, bytes: u32) -> u64 {
        let start = self.wire_free.max(self.now);
        self.wire_free = start + u64::from(bytes) * self.byte_fs / 1_000_000;
        self.ring.push(self.wire_free);
        start
    }

    /// One decision; a timer is late by what `late` says. A full ring waits
    /// for its first frame to leave.
    fn step(&mut self, late: &mut impl FnMut() -> u64) -> Decision {
        let now = self.now;
        self.ring.retain(|&done| done > now);
        if self.ring.len() >= self.ring_frames {
            self.now = self.ring[0];
            return self.step(late);
        }
        let decision = self.port.next(self.now);
        match decision {
            Decision::Send(id) => {
                let start = self.transmit(1538);
                self.frames.push((start, id));
                self.port.sent(id, 1514, true, self.now).unwrap();
            }
            Decision::Gap { wire_bytes } => {
                self.transmit(wire_bytes);
                self.port.gap_sent(wire_bytes);
            }
            Decision::Wait { until_ns } => {
                assert!(until_ns > self.now, "waits for the past");
                self.waits += 1;
                self.now = until_ns + late();
            }
            Decision::Idle => {}
        }
        decision
    }

    fn run_until(&mut self, until: u64, mut late: impl FnMut() -> u64) {
        while self.now.max(self.wire_free) < until {
            self.step(&mut late);
        }
    }

    fn starts(&self, id: ClassId) -> Vec<u64> {
        let of = self.frames.iter().filter(|frame| frame.1 == id);
        of.map(|frame| frame.0).collect()
    }
}

/// 10 Mbit/s: a frame every 1211200 ns.
const PERIOD: u64 = 1514 * 800;

#[test]
fn within_the_lead_frames_are_exact() {
    for order in [Order::Clock, Order::Rate, Order::Next] {
        let mut random = Random(1);
        let mut host = Host::new(order, false);
        let class = host.paced(10 * MBIT);
        host.run_until(200 * MS, || random.below(LEAD_MIN - 2 * US));
        let starts = host.starts(class);
        assert!(starts.len() >= 165);
        for (index, start) in starts.iter().enumerate() {
            let off = start.abs_diff(index as u64 * PERIOD);
            assert!(off <= 42 * BYTE_NS, "{order:?} frame {index}: {off} ns off");
        }
        let stats = host.port.stats();
        // The last may not have run out yet.
        assert!((stats.waits..=stats.waits + 1).contains(&host.waits));
        assert!(stats.wait_late_max_ns < LEAD_MIN - 2 * US);
        // A wire that gap frames fill would have carried 25 MB by now.
        let least = stats.waits * (LEAD_MIN / BYTE_NS - 1000);
        let most = stats.waits * (LEAD_FIRST / BYTE_NS + 100);
        assert!((least..most).contains(&stats.gap_wire_bytes), "{stats:?}");
    }
}

/// Late by more than the lead: the frame is late by what exceeds it, the next
/// is in its place, and the lead covers as much from then on.
#[test]
fn a_late_timer_delays_one_frame_and_stretches_the_lead() {
    let late = 100 * US;
    let mut host = Host::new(Order::Next, false);
    let class = host.paced(10 * MBIT);
    let mut count = 0;
    host.run_until(20 * MS, || {
        count += 1;
        if count == 3 || count > 5 { late } else { 0 }
    });
    let starts = host.starts(class);
    for (index, start) in starts.iter().enumerate() {
        let ideal = index as u64 * PERIOD;
        match index {
            3 => assert_eq!(*start, ideal + late - LEAD_FIRST),
            _ => assert!(start.abs_diff(ideal) <= 42 * BYTE_NS, "frame {index}"),
        }
    }
    let stats = host.port.stats();
    assert_eq!(stats.wait_late_max_ns, late);
    assert_eq!(stats.lead_ns, late + late / 8 + US);
}

/// Later than the lead may ever be: a host that stood still.
#[test]
fn a_stall_is_forgotten() {
    for (stall, made_up) in [(200 * US, true), (50 * MS, false), (2000 * MS, false)] {
        let mut host = Host::new(Order::Next, false);
        let class = host.paced(100 * MBIT);
        let mut count = 0;
        host.run_until(40 * MS + stall, || {
            count += 1;
            if count == 20 { stall } else { 0 }
        });
        let starts = host.starts(class);
        let period = 1514 * 80;
        let short = |pair: &&[u64]| pair[1] - pair[0] < period - 84 * BYTE_NS;
        let close = starts.windows(2).filter(short).count();
        // n + 2 largest frames and the longest lead are made up, back to back.
        assert!((1..=6).contains(&close), "{close} after {stall}");
        let lost = starts.last().unwrap() - (starts.len() as u64 - 1) * period;
        if made_up {
            assert!(lost < 84 * BYTE_NS, "{lost}");
        } else {
            let most = 3 * 1538 * BYTE_NS + LEAD_MAX;
            assert!(
                lost > stall - most - period - LEAD_MAX && lost < stall,
                "{lost}"
            );
        }
        assert!(host.port.stats().lead_ns <= LEAD_MAX);
    }
}

/// The lead gets shorter again, also where it has become longer than any gap
/// and no timer runs any more.
#[test]
fn the_lead_comes_back() {
    let mut host = Host::new(Order::Next, false);
    let class = host.paced(100 * MBIT); // a frame every 121 us
    let mut first = true;
    host.run_until(2 * MS, || {
        if std::mem::take(&mut first) {
            LEAD_MAX
        } else {
            0
        }
    });
    assert!(host.port.stats().lead_ns > 200 * US);
    let waits = host.port.stats().waits;
    host.run_until(200 * MS, || 0);
    assert!(host.port.stats().waits > waits, "timers are tried again");
    host.run_until(2000 * MS, || 0);
    let lead = host.port.stats().lead_ns;
    assert!(lead < LEAD_MIN + 3 * US, "{lead}");
    let gaps = host.port.stats().gap_wire_bytes;
    let sent = host.frames.len() as u64;
    host.run_until(2100 * MS, || 0);
    let more = host.frames.len() as u64 - sent;
    let each = (host.port.stats().gap_wire_bytes - gaps) / more;
    assert!(each <= (LEAD_MIN + 3 * US) / BYTE_NS + 84, "{each}");
    let _ = class;
}

/// A call before the instant (a packet came) gets the same answer, and a class
/// that comes meanwhile starts at that time.
#[test]
fn an_early_call_changes_nothing() {
    let mut host = Host::new(Order::Next, false);
    let class = host.paced(10 * MBIT);
    assert_eq!(host.step(&mut || 0), Decision::Send(class));
    let wait = host.port.next(0);
    let Decision::Wait { until_ns } = wait else {
        panic!("{wait:?}");
    };
    assert_eq!(until_ns, PERIOD - LEAD_FIRST);
    for now in [1, 10_000, 12_304, 50_000, until_ns - 1000] {
        assert_eq!(host.port.next(now), wait, "at {now}");
    }
    let config = ClassConfig::Paced {
        rate_bps: 500 * MBIT,
    };
    let other = host.port.add_class(&config).unwrap();
    let now = 200 * US;
    let mut host = Host::new(Order::Next, false);
    let class = host.paced(10 * MBIT);
    host.step(&mut || 0);
    assert!(matches!(host.port.next(0), Decision::Wait { .. }));
    assert_eq!(host.port.add_class(&config).unwrap().index(), other.index());
    host.port.activate(other, now).unwrap();
    assert_eq!(host.port.global_bytes(), now / BYTE_NS);
    assert_eq!(host.port.next(now), Decision::Send(other));
    assert_eq!(host.port.clock_bytes(other), now / BYTE_NS);
    host.port.sent(other, 1514, false, now).unwrap();
    let again = host.port.next(now);
    assert!(
        matches!(again, Decision::Wait { until_ns: until } if until == until_ns),
        "{again:?}"
    );
    let _ = class;
}

/// Wire and system clock differ: what they drift apart in a busy spell is gone
/// with the next wait, so no error adds up over minutes.
#[test]
fn drift_does_not_add_up() {
    for ppm in [-200i64, 200] {
        let mut random = Random(9);
        let mut host = Host::new(Order::Next, false);
        host.byte_fs = (BYTE_NS as i64 * (1_000_000 + ppm)) as u64;
        let class = host.paced(10 * MBIT);
        let busy = host
            .port
            .add_class(&ClassConfig::Normal {
                quantum_bytes: None,
            })
            .unwrap();
        for spell in 0..20u64 {
            // 100 ms busy, then 100 ms in which timers run.
            host.port.activate(busy, host.now).unwrap();
            host.run_until((200 * spell + 100) * MS, || random.below(5 * US));
            host.port.deactivate(busy, host.now).unwrap();
            let from = host.frames.len() + 1;
            host.run_until((200 * spell + 200) * MS, || random.below(5 * US));
            let starts: Vec<u64> = host.frames[from..]
                .iter()
                .filter(|f| f.1 == class)
                .map(|f| f.0)
                .collect();
            // The first may be off by 200 ppm of 100 ms; the others are even.
            for pair in starts[1..].windows(2) {
                let off = (pair[1] - pair[0]).abs_diff(PERIOD);
                assert!(
                    off < 500 + 84 * BYTE_NS,
                    "{ppm} ppm, spell {spell}: {off} ns"
                );
            }
            let off = (starts[1] - starts[0]).abs_diff(PERIOD);
            assert!(
                off < 20 * US + LEAD_FIRST,
                "{ppm} ppm, spell {spell}: {off} ns"
            );
        }
        let stats = host.port.stats();
        assert!(host.port.late_bytes_max() < 1538 * 2 + 5000, "{stats:?}");
    }
}

/// The bytes that a host hands out late in a busy spell, beyond a lead, are not
/// made up for.
#[test]
fn a_slow_wire_is_not_caught_up() {
    let mut host = Host::new(Order::Next, false);
    host.byte_fs = BYTE_NS * 1_100_000; // a tenth slower than it says
    let class = host.paced(10 * MBIT);
    let busy = host.add(ClassConfig::Normal {
        quantum_bytes: None,
    });
    host.run_until(100 * MS, || 0);
    host.port.deactivate(busy, host.now).unwrap();
    let from = host.frames.len();
    host.run_until(130 * MS, || 0);
    let starts: Vec<u64> = host.frames[from..].iter().map(|frame| frame.0).collect();
    let first = starts[1] - starts[0];
    assert!(first > PERIOD - LEAD_FIRST - 2 * US - 1538 * 9, "{first}");
    let _ = class;
}

/// No timer where there is something to send: best effort, more demand than
/// line, what is spare.
#[test]
fn a_busy_line_never_waits() {
    for others in [
        vec![ClassConfig::Normal {
            quantum_bytes: None,
        }],
        vec![ClassConfig::Paced { rate_bps: GBIT }; 2],
        vec![ClassConfig::Borrowing {
            rate_bps: MBIT,
            ceil_bps: GBIT,
        }],
    ] {
        let mut host = Host::new(Order::Next, false);
        host.paced(10 * MBIT);
        for config in others {
            host.add(config);
        }
        host.run_until(20 * MS, || panic!("no timer"));
        assert_eq!(host.port.stats().waits, 0);
        assert_eq!(host.port.stats().gap_frames, 0);
    }
}

/// What guard holds back waits for the timer as well.
#[test]
fn guard_and_ceil_wait_too() {
    let mut host = Host::new(Order::Next, true);
    let paced = host.paced(10 * MBIT);
    let normal = host.add(ClassConfig::Normal {
        quantum_bytes: None,
    });
    host.run_until(20 * MS, || 0);
    let starts = host.starts(paced);
    assert!(
        starts
            .iter()
            .enumerate()
            .all(|(i, start)| start.abs_diff(i as u64 * PERIOD) <= 42 * BYTE_NS)
    );
    assert!(host.port.stats().guard_band_held > 10);
    host.port.deactivate(normal, host.now).unwrap();
    let from = host.now;
    let sharing = host.add(ClassConfig::Borrowing {
        rate_bps: 2 * MBIT,
        ceil_bps: 20 * MBIT,
    });
    host.run_until(from + 200 * MS, || 3 * US);
    let count = host.starts(sharing).len();
    // A frame every 605.6 us, and timers in between.
    assert!((329..=332).contains(&count), "{count}");
    assert!(host.port.stats().waits > 300);
}

/// Nothing to send is nothing to wait for; the gap that is owed is kept.
#[test]
fn no_packet_no_timer() {
    let mut host = Host::new(Order::Next, false);
    let class = host.paced(10 * MBIT);
    host.step(&mut || 0);
    assert!(matches!(host.port.next(0), Decision::Wait { .. }));
    host.port.deactivate(class, 100 * US).unwrap();
    assert_eq!(host.port.next(100 * US), Decision::Idle);
    host.port.activate(class, 200 * US).unwrap();
    assert_eq!(
        host.port.next(200 * US),
        Decision::Wait {
            until_ns: PERIOD - LEAD_FIRST
        }
    );
    host.port.deactivate(class, 300 * US).unwrap();
    // A timer nobody waited for says nothing about timers.
    host.port.activate(class, 900 * MS).unwrap();
    assert_eq!(host.port.next(900 * MS), Decision::Send(class));
    let stats = host.port.stats();
    assert_eq!(
        (stats.waits, stats.wait_late_max_ns, stats.gap_frames),
        (0, 0, 0)
    );
}

/// Several classes, random lateness within the lead: as precise as gap mode.
#[test]
fn several_classes_burst_two_frames_at_most() {
    let mut random = Random(21);
    for _ in 0..20 {
        let n = 2 + random.below(8) as usize;
        let load = 5 + random.below(800);
        let rates = random.rates(n, load * MBIT, 30);
        let mut host = Host::new(Order::Next, false);
        let ids: Vec<_> = rates.iter().map(|&rate| host.paced(rate)).collect();
        host.run_until(100 * MS, || random.below(LEAD_MIN));
        for (id, rate) in ids.into_iter().zip(rates) {
            let (mut queue, mut most, mut last) = (0.0f64, 0.0f64, 0);
            for start in host.starts(id) {
                queue = (queue - (start - last) as f64 * rate as f64 / 8e9).max(0.0) + 1514.0;
                most = most.max(queue);
                last = start;
            }
            assert!(most <= 2.0 * 1514.0 + 84.0, "{n} {load} {rate}: {most}");
        }
    }
}
