// SPDX-License-Identifier: MIT OR Apache-2.0
//! Classes that go by the period (paper 004): what goes out in which.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use pace::{ClassConfig, ClassId, Config, Decision, Error, Layer, Mode, Order, Period, Scheduler};
use std::collections::BTreeMap;

const MBIT: u64 = 1_000_000;
const LINE: u64 = 100 * MBIT;
/// Of the line at 100 Mbit/s: 125,000 bytes; the budget, 70 %, is 87,500.
const PERIOD_NS: u64 = 10_000_000;
const PERIOD_BYTES: u64 = 125_000;
const BUDGET: u64 = 87_500;
/// All frames here, on a wire that adds nothing.
const FRAME: u32 = 1000;

fn config() -> Config {
    Config {
        overhead_bytes: 0,
        min_frame_bytes: 60,
        max_frame_bytes: FRAME,
        order: Order::Next,
        period: Some(Period::percent(LINE, PERIOD_NS, 70)),
        ..Config::ethernet(LINE, FRAME)
    }
}

/// A host that counts frames, and remembers when each class sent.
struct Host {
    port: Scheduler,
    queued: BTreeMap<ClassId, u64>,
    sent: Vec<(u64, ClassId)>,
    now_ns: u64,
}

impl Host {
    fn new(config: &Config) -> Self {
        Host {
            port: Scheduler::new(config, 0).unwrap(),
            queued: BTreeMap::new(),
            sent: Vec::new(),
            now_ns: 0,
        }
    }

    fn add(&mut self, config: ClassConfig) -> ClassId {
        self.port.add_class(&config).unwrap()
    }

    fn rt(&mut self, reserve_bytes: u64) -> ClassId {
        self.add(ClassConfig::Rt { reserve_bytes })
    }

    fn nrt(&mut self, reserve_bytes: u64) -> ClassId {
        self.add(ClassConfig::Nrt { reserve_bytes })
    }

    fn normal(&mut self) -> ClassId {
        self.add(ClassConfig::Normal {
            quantum_bytes: None,
        })
    }

    fn come(&mut self, class: ClassId, frames: u64) {
        // Nobody counts those of a class that is backlogged without end.
        for _ in 0..frames.min(1000) {
            self.port.arrived(class, FRAME, self.now_ns).unwrap();
            self.port.activate(class, self.now_ns).unwrap();
        }
        *self.queued.entry(class).or_default() += frames;
    }

    /// One decision; false if there is nothing to send.
    fn step(&mut self) -> bool {
        match self.port.next(self.now_ns) {
            Decision::Idle => return false,
            Decision::Send(class) => {
                let queued = self.queued.get_mut(&class).unwrap();
                *queued -= 1;
                let more = *queued > 0;
                self.sent.push((self.port.global_bytes(), class));
                self.port.sent(class, FRAME, more, self.now_ns).unwrap();
            }
            Decision::Gap { wire_bytes } => self.port.gap_sent(wire_bytes),
            Decision::Wait { until_ns } => self.now_ns = until_ns,
        }
        true
    }

    /// Until the byte clock is there; a class that is always backlogged keeps
    /// it from standing still.
    fn run_until(&mut self, bytes: u64) {
        while self.port.global_bytes() < bytes && self.step() {}
    }

    fn run_periods(&mut self, periods: u64) {
        self.run_until(periods * PERIOD_BYTES);
    }

    /// Frames of a class, by the period that they began in.
    fn by_period(&self, class: ClassId) -> Vec<u64> {
        let mut periods = Vec::new();
        for (start, sender) in &self.sent {
            let period = (start / PERIOD_BYTES) as usize;
            periods.resize(periods.len().max(period + 1), 0);
            periods[period] += u64::from(*sender == class);
        }
        periods
    }
}

/// Without end, and never in a period's way.
const ENDLESS: u64 = 1 << 40;

#[test]
fn what_comes_in_a_period_goes_out_in_the_next() {
    let mut host = Host::new(&config());
    let rt = host.rt(20_000);
    let paced = host.add(ClassConfig::Paced { rate_bps: MBIT });
    host.come(paced, ENDLESS);
    host.run_until(40_000);
    host.come(rt, 3);
    host.run_until(100_000);
    host.come(rt, 2);
    host.run_until(240_000);
    host.come(rt, 4);
    host.run_periods(2);
    // Right at its start: that is in it.
    host.come(rt, 1);
    host.run_periods(4);
    assert_eq!(host.by_period(rt), [0, 5, 4, 1]);
    assert_eq!(host.port.stats().rt_over, 0);
    assert_eq!(host.port.stats().rt_catchup_bytes, 0);
}

/// Nobody else is there: the wire is filled up to the period, and no further.
#[test]
fn a_gap_ends_where_the_period_begins() {
    let mut host = Host::new(&config());
    let rt = host.rt(20_000);
    host.come(rt, 1);
    host.run_periods(1);
    assert_eq!(host.port.global_bytes(), PERIOD_BYTES);
    assert!(host.step());
    assert_eq!(host.sent, [(PERIOD_BYTES, rt)]);
    assert!(!host.step(), "no packet, no gap");
}

/// Paper 004, figures 8 and 9: a group of frames is late by a period and goes with
/// those that come in time, paid from what nrt would have sent.
#[test]
fn late_frames_go_first_and_nrt_pays() {
    let mut host = Host::new(&config());
    let rt = host.rt(20_000);
    let nrt = host.nrt(60_000);
    host.come(nrt, ENDLESS);
    for (period, frames) in [(0, 20), (1, 0), (2, 40), (3, 20)] {
        host.come(rt, frames);
        host.run_periods(period + 1);
    }
    host.run_periods(6);
    assert_eq!(host.by_period(rt), [0, 20, 0, 40, 20, 0]);
    // 87 or 88 frames fit the budget; 60 is its share.
    assert_eq!(host.by_period(nrt), [60, 60, 60, 48, 60, 60]);
    let stats = host.port.stats();
    assert_eq!((stats.rt_over, stats.rt_catchup_bytes), (1, 20_000));
    assert_eq!((stats.rt_deferred, stats.rt_overrun), (0, 0));
    assert_eq!(
        host.port.reservation_stats(rt).unwrap().catchup_bytes,
        20_000
    );
}

/// What the budget does not pay waits for the next period, and is counted.
#[test]
fn late_frames_beyond_the_budget_wait() {
    let mut host = Host::new(&config());
    let rt = host.rt(20_000);
    let nrt = host.nrt(60_000);
    host.come(nrt, ENDLESS);
    host.come(rt, 150);
    host.run_periods(4);
    // What is reserved, and as much that is late.
    assert_eq!(host.by_period(rt), [0, 40, 40, 40]);
    assert_eq!(host.by_period(nrt)[1..], [48, 47, 48]);
    let stats = host.port.stats();
    assert_eq!((stats.rt_over, stats.rt_deferred), (3, 2));
    assert_eq!(stats.periods_spent, 2);
    assert_eq!(stats.rt_catchup_bytes, 60_000);
    assert_eq!(stats.rt_excess, 0);
}

/// Likewise where the budget pays for less than one period's backlog.
#[test]
fn late_frames_wait_for_a_budget() {
    let mut host = Host::new(&config());
    let rt = host.rt(50_000);
    let nrt = host.nrt(30_000);
    host.come(nrt, ENDLESS);
    host.come(rt, 150);
    host.run_periods(4);
    // The frame that began within the budget took 500 bytes of the next.
    assert_eq!(host.by_period(rt), [0, 88, 62, 0]);
    assert_eq!(host.by_period(nrt)[1..3], [0, 25]);
    let stats = host.port.stats();
    assert_eq!((stats.rt_over, stats.rt_deferred), (2, 1));
    assert_eq!(stats.periods_spent, 2);
    assert_eq!(stats.rt_catchup_bytes, 50_000);
}

/// What an rt class offers beyond its reservations waits behind normal frames, once
/// it has sent what it had saved: eight periods' reservations, one of them late in
/// each period.
#[test]
fn excess_waits_behind_normal_frames() {
    let mut host = Host::new(&config());
    let rt = host.rt(20_000);
    let normal = host.normal();
    host.come(normal, ENDLESS);
    for period in 0..100 {
        host.come(rt, 100);
        host.run_periods(period + 1);
    }
    let sent = host.by_period(rt);
    assert_eq!(sent[..12], [0, 40, 40, 40, 40, 40, 40, 40, 40, 20, 20, 20]);
    assert_eq!(sent[12..], [20; 88]);
    let normal = host.by_period(normal);
    assert!(normal[1..9].iter().all(|n| (47..=48).contains(n)));
    assert!(normal[9..].iter().all(|n| (67..=68).contains(n)));
    let stats = host.port.stats();
    assert_eq!((stats.rt_over, stats.rt_excess), (99, 92));
    // In the eighth period nothing late is left, only excess.
    assert_eq!((stats.rt_deferred, stats.rt_overrun), (7, 0));
    assert_eq!(stats.rt_catchup_bytes, 160_000);
    let counted = host.port.reservation_stats(rt).unwrap();
    assert_eq!((counted.excess, counted.deferred), (92, 7));
}

/// Excess takes what nobody else wants of the budget, as best effort does.
#[test]
fn excess_has_what_is_left_of_the_budget() {
    let mut host = Host::new(&config());
    let rt = host.rt(10_000);
    host.come(rt, 400);
    host.run_periods(6);
    assert_eq!(host.by_period(rt), [0, 88, 87, 88, 87, 50]);
    assert_eq!(host.port.stats().rt_overrun, 0);
}

/// Excess of one class costs another rt class nothing.
#[test]
fn excess_of_one_class_leaves_late_frames_of_another() {
    let mut host = Host::new(&config());
    let greedy = host.rt(10_000);
    let late = host.rt(20_000);
    let normal = host.normal();
    host.come(normal, ENDLESS);
    for period in 0..20 {
        host.come(greedy, 90);
        host.come(late, if period == 15 { 40 } else { 20 });
        host.run_periods(period + 1);
    }
    assert_eq!(
        host.by_period(late)[1..],
        [vec![20; 15], vec![40], vec![20; 3]].concat()
    );
    assert_eq!(host.by_period(greedy)[10..], [10; 10]);
    assert_eq!(host.port.reservation_stats(late).unwrap().excess, 0);
}

/// Reservations are saved in periods that nobody saw, too.
#[test]
fn an_idle_port_saves_reservations() {
    for (silent_periods, late) in [(2, 80_000), (8, 160_000), (800, 160_000)] {
        let mut host = Host::new(&Config {
            mode: Mode::Timer,
            ..config()
        });
        let rt = host.rt(20_000);
        let normal = host.normal();
        host.come(rt, 180);
        while host.step() {}
        // All is sent, of which nothing is excess.
        let before = host.port.stats();
        let begun = host.now_ns / PERIOD_NS + silent_periods;
        host.now_ns = begun * PERIOD_NS;
        host.come(normal, ENDLESS);
        host.come(rt, 1000);
        host.run_until((begun + 12) * PERIOD_BYTES);
        let stats = host.port.stats();
        assert_eq!(
            stats.rt_catchup_bytes - before.rt_catchup_bytes,
            late,
            "{silent_periods}"
        );
    }
}

/// A reservation below a frame: one in as many periods as it takes, after what was
/// saved.
#[test]
fn a_reservation_may_be_less_than_a_frame() {
    let mut host = Host::new(&config());
    let rt = host.rt(300);
    let normal = host.normal();
    host.come(normal, ENDLESS);
    host.come(rt, 1000);
    host.run_periods(41);
    let sent: u64 = host.by_period(rt).iter().sum();
    // 40 periods of 300 bytes, eight that were saved, and a part of a frame.
    assert_eq!(sent, 15);
}

/// What is late of one stream costs no other one what it has reserved.
#[test]
fn what_is_reserved_goes_before_what_is_late() {
    let mut host = Host::new(&config());
    let greedy = host.rt(10_000);
    let modest = host.rt(40_000);
    host.come(greedy, 200);
    host.come(modest, 40);
    host.run_periods(2);
    assert_eq!(host.by_period(modest), [0, 40]);
    assert_eq!(host.by_period(greedy), [0, 48]);
    let last = host.sent.iter().rposition(|(_, class)| *class == modest);
    assert!(last.unwrap() < 50, "{last:?}");
}

/// An nrt class may end its share within a frame, and owes that.
#[test]
fn shares_are_exact_over_periods() {
    let mut host = Host::new(&config());
    let nrt = host.nrt(10_300);
    host.come(nrt, ENDLESS);
    host.run_periods(10);
    assert_eq!(
        host.by_period(nrt),
        [11, 10, 10, 11, 10, 10, 11, 10, 10, 10]
    );
    assert_eq!(host.port.stats().nrt_deferred, 10);
}

/// A share below a frame: one in as many periods as it takes.
#[test]
fn a_share_may_be_less_than_a_frame() {
    let mut host = Host::new(&config());
    let nrt = host.nrt(300);
    host.come(nrt, ENDLESS);
    host.run_periods(10);
    assert_eq!(host.by_period(nrt), [1, 0, 0, 1, 0, 0, 1]);
}

/// Normal frames have what nobody has reserved, up to the budget.
#[test]
fn the_budget_is_for_all() {
    let mut host = Host::new(&config());
    let rt = host.rt(20_000);
    let nrt = host.nrt(30_000);
    let normal = host.normal();
    host.come(nrt, ENDLESS);
    host.come(normal, ENDLESS);
    for period in 0..8 {
        host.come(rt, 20);
        host.run_periods(period + 1);
    }
    assert_eq!(host.by_period(rt), [0, 20, 20, 20, 20, 20, 20, 20]);
    assert_eq!(host.by_period(nrt), [30; 8]);
    assert_eq!(host.by_period(normal), [58, 37, 38, 37, 38, 37, 38, 37]);
    assert_eq!(host.sent.len() as u64 * u64::from(FRAME), 8 * BUDGET);
    assert_eq!(host.port.stats().periods_spent, 7);
}

/// What paced frames took beyond the budget the next period owes, but not one that
/// comes after a silence.
#[test]
fn nothing_is_owed_after_a_silence() {
    for (silent_until_ns, expected) in [
        (9_700_000, vec![0, 0, 10]),
        (4 * PERIOD_NS, vec![0, 0, 0, 0, 10]),
    ] {
        let mut host = Host::new(&Config {
            mode: Mode::Timer,
            period: Some(Period::percent(LINE, PERIOD_NS, 8)),
            ..config()
        });
        host.rt(1000);
        let normal = host.normal();
        let paced = host.add(ClassConfig::Paced {
            rate_bps: 50 * MBIT,
        });
        host.come(paced, 60);
        while host.step() {}
        assert_eq!(host.by_period(paced), [60]);
        host.now_ns = silent_until_ns;
        host.come(normal, 10);
        while host.step() {}
        assert_eq!(host.by_period(normal), expected);
    }
}

/// Without a class that goes by it there is no period.
#[test]
fn a_budget_alone_holds_nobody_back() {
    let mut host = Host::new(&config());
    let normal = host.normal();
    host.come(normal, ENDLESS);
    host.run_periods(2);
    assert_eq!(host.by_period(normal), [125, 125]);
    assert_eq!(host.port.stats().periods, 0);
    let nrt = host.nrt(1000);
    host.run_periods(4);
    host.port.remove_class(nrt).unwrap();
    host.run_periods(6);
    let sent = host.by_period(normal);
    assert_eq!((sent[3], sent[5]), (87, 125));
}

/// Frames by the period come at any time, those of paced classes at their
/// clocks: the wait is for a frame that is on the wire.
#[test]
fn paced_frames_are_as_precise_as_beside_normal_ones() {
    let mut host = Host::new(&config());
    let rt = host.rt(40_000);
    let paced = host.add(ClassConfig::Paced {
        rate_bps: 20 * MBIT,
    });
    host.come(paced, ENDLESS);
    for period in 0..20 {
        host.come(rt, 60);
        host.run_periods(period + 1);
    }
    assert_eq!(host.by_period(rt)[1..], [60; 19]);
    assert!(host.port.stats().late_bytes_max < u64::from(FRAME));
    let starts: Vec<u64> = host
        .sent
        .iter()
        .filter(|(_, class)| *class == paced)
        .map(|(start, _)| *start)
        .collect();
    for (number, start) in starts.iter().enumerate() {
        let clock = number as u64 * 5000;
        assert!((clock..clock + 1000).contains(start), "{number}: {start}");
    }
}

/// Paced classes that ask for more than the line: what is gated goes first when
/// time gets short, in the last third of the period, and all of it goes.
#[test]
fn rt_frames_end_in_their_period_whatever_is_paced() {
    for order in [Order::Clock, Order::Rate, Order::Next] {
        let mut host = Host::new(&Config { order, ..config() });
        let rt = host.rt(40_000);
        for _ in 0..3 {
            let paced = host.add(ClassConfig::Paced { rate_bps: LINE });
            host.come(paced, ENDLESS);
        }
        for period in 0..10 {
            host.come(rt, 40);
            host.run_periods(period + 1);
        }
        assert_eq!(host.by_period(rt)[1..], [40; 9], "{order:?}");
        let first = host.sent.iter().find(|(_, class)| *class == rt).unwrap();
        assert!(first.0 > PERIOD_BYTES + 80_000, "{order:?}: {first:?}");
        assert_eq!(host.port.stats().rt_overrun, 0);
    }
}

/// A line that does not carry what is gated: counted, and nothing is lost.
#[test]
fn a_period_too_short_is_counted() {
    let mut host = Host::new(&Config {
        period: Some(Period::percent(LINE, PERIOD_NS, 200)),
        ..config()
    });
    let rt = host.rt(200_000);
    host.come(rt, 200);
    host.run_until(4 * PERIOD_BYTES);
    assert_eq!(host.by_period(rt), [0, 125, 75]);
    assert_eq!(host.port.stats().rt_overrun, 1);
}

/// The paper's bound: a frame that came within the reservation leaves its host
/// within two periods, with everybody else backlogged.
#[test]
fn within_two_periods() {
    for mode in [Mode::Gap, Mode::Timer, Mode::Hybrid] {
        let mut host = Host::new(&Config { mode, ..config() });
        let rt = host.rt(20_000);
        let nrt = host.nrt(40_000);
        let normal = host.normal();
        let paced = host.add(ClassConfig::Paced {
            rate_bps: 10 * MBIT,
        });
        for class in [nrt, normal, paced] {
            host.come(class, ENDLESS);
        }
        // 19 frames in a period, spread differently in each.
        let mut due = Vec::new();
        for number in 0..19 * 40u64 {
            let (period, place) = (number / 19, number % 19);
            let at = period * PERIOD_BYTES + place * (6000 - period * 131);
            host.run_until(at);
            host.come(rt, 1);
            due.push(host.port.global_bytes() + 2 * PERIOD_BYTES);
        }
        host.run_periods(43);
        let left = host.sent.iter().filter(|(_, class)| *class == rt);
        let mut frames = 0;
        for ((start, _), due) in left.zip(&due) {
            assert!(start + u64::from(FRAME) <= *due, "{mode:?}");
            frames += 1;
        }
        assert_eq!(frames, due.len());
        let stats = host.port.stats();
        assert_eq!(
            (stats.rt_over, stats.rt_deferred, stats.rt_overrun),
            (0, 0, 0)
        );
    }
}

/// In timer mode the wait is until the period; aligned, until an instant of the
/// host's clock that is told.
#[test]
fn periods_are_aligned_to_the_hosts_clock() {
    for (align_ns, came_ns, expected_ns) in [
        (None, 3_000_000, 13_000_000),
        (Some(0), 3_000_000, 10_000_000),
        (Some(2_500_000), 3_000_000, 12_500_000),
        (Some(1_000_002_500_000), 3_000_000, 12_500_000),
        (Some(3_500_000), 3_000_000, 3_500_000),
    ] {
        let mut config = config();
        config.mode = Mode::Timer;
        config.period = config.period.map(|period| Period { align_ns, ..period });
        let mut host = Host::new(&config);
        let rt = host.rt(20_000);
        host.now_ns = came_ns;
        host.come(rt, 1);
        let wait = host.port.next(host.now_ns);
        let until_ns = expected_ns;
        assert_eq!(wait, Decision::Wait { until_ns }, "{align_ns:?}");
        host.step();
        assert_eq!(host.port.next(until_ns), Decision::Send(rt));
    }
}

/// Every instant of the host's clock ends one period: after silence the next one
/// does, however near; a byte clock that is ahead does not use one twice.
#[test]
fn an_instant_ends_one_period() {
    let period = Period::percent(LINE, PERIOD_NS, 100);
    let aligned = Config {
        period: Some(Period {
            align_ns: Some(0),
            ..period
        }),
        ..config()
    };
    for mode in [Mode::Gap, Mode::Timer, Mode::Hybrid] {
        let mut host = Host::new(&Config { mode, ..aligned });
        let rt = host.rt(20_000);
        for (came_ms, goes_ms) in [(3, 10), (96, 100), (107, 110), (119, 120)] {
            host.now_ns = came_ms * 1_000_000;
            host.come(rt, 1);
            while host.step() {
                let sent_ns = host.port.global_bytes() * PERIOD_NS / PERIOD_BYTES;
                host.now_ns = host.now_ns.max(sent_ns);
            }
            let (at, _) = *host.sent.last().unwrap();
            assert_eq!(at, goes_ms * PERIOD_BYTES / 10, "{mode:?}, {came_ms} ms");
        }
    }

    let mut host = Host::new(&aligned);
    host.rt(1000);
    let normal = host.normal();
    host.come(normal, ENDLESS);
    // The second begins 1 ms before its instant, so it ends 11 ms later.
    for (now_ns, until, periods) in [(0, 125_000, 1), (9_000_000, 262_000, 2), (0, 264_000, 3)] {
        host.now_ns = now_ns;
        host.run_until(until);
        assert_eq!(host.port.stats().periods, periods, "until {until}");
    }
}

/// 333,333 ns at 1 Gbit/s are 41,666.625 bytes: periods have no drift.
#[test]
fn periods_are_exact() {
    let line_rate_bps = 1000 * MBIT;
    let mut host = Host::new(&Config {
        line_rate_bps,
        period: Some(Period::percent(line_rate_bps, 333_333, 100)),
        ..config()
    });
    host.rt(1000);
    let normal = host.normal();
    host.come(normal, ENDLESS);
    for periods in [1u64, 8, 1000, 9000] {
        // The period's number n begins at (n - 1) x 41666.625, rounded up.
        host.run_until((periods * 333_333).div_ceil(8) - 1000);
        host.port.next(0);
        assert_eq!(host.port.stats().periods, periods);
        host.run_until((periods * 333_333).div_ceil(8));
        host.port.next(0);
        assert_eq!(host.port.stats().periods, periods + 1);
    }
}

/// Of a class whose host does not say what came, one frame a period is known.
#[test]
fn frames_nobody_told_of_go_one_by_one() {
    let mut host = Host::new(&config());
    let rt = host.rt(20_000);
    host.port.activate(rt, 0).unwrap();
    host.queued.insert(rt, 3);
    host.run_periods(5);
    assert_eq!(host.by_period(rt), [0, 1, 1, 1]);
}

/// What is dropped at its turn is not paid for, and what came later still waits.
#[test]
fn dropped_frames_are_taken_back() {
    let mut host = Host::new(&config());
    let rt = host.rt(20_000);
    host.come(rt, 2);
    host.run_periods(1);
    host.come(rt, 1);
    assert_eq!(host.port.next(0), Decision::Send(rt));
    for _ in 0..2 {
        host.port.dropped(rt, FRAME, 0).unwrap();
        *host.queued.get_mut(&rt).unwrap() -= 1;
    }
    host.run_periods(3);
    assert_eq!(host.by_period(rt), [0, 0, 1]);
}

/// A budget and reservations count what the port's layer does.
#[test]
fn bytes_are_those_of_the_layer() {
    let base = Config::ethernet(LINE, 1514);
    for (layer, frames) in [(Layer::Link, 17), (Layer::Wire, 16), (Layer::Ip, 17)] {
        let mut host = Host::new(&Config {
            layer,
            period: config().period,
            ..base
        });
        let nrt = host.nrt(16_384);
        host.come(nrt, ENDLESS);
        host.run_periods(1);
        // 1000, 1024 and 986 bytes a frame.
        assert_eq!(host.by_period(nrt)[0], frames, "{layer:?}");
    }
}

#[test]
fn refusals() {
    let rt = |reserve_bytes| ClassConfig::Rt { reserve_bytes };
    let mut port = Scheduler::new(&config(), 0).unwrap();
    assert_eq!(port.add_class(&rt(0)), Err(Error::Reserve));
    assert_eq!(port.add_class(&rt(BUDGET + 1)), Err(Error::Reserve));
    let first = port.add_class(&rt(BUDGET - 1000)).unwrap();
    assert_eq!(port.reserved_bytes(), BUDGET - 1000);
    let nrt = |reserve_bytes| ClassConfig::Nrt { reserve_bytes };
    assert_eq!(port.add_class(&nrt(1001)), Err(Error::Reserved));
    let second = port.add_class(&nrt(1000)).unwrap();
    // Its own reservation does not count against a class that changes.
    assert_eq!(port.change_class(second, &nrt(1001)), Err(Error::Reserved));
    assert_eq!(port.change_class(second, &rt(900)), Ok(()));
    assert_eq!(port.change_class(first, &rt(BUDGET - 900)), Ok(()));
    assert_eq!(port.reserved_bytes(), BUDGET);
    let paced = ClassConfig::Paced { rate_bps: LINE };
    assert_eq!(port.change_class(first, &paced), Ok(()));
    assert_eq!(port.reserved_bytes(), 900);
    port.remove_class(second).unwrap();
    assert_eq!(port.reserved_bytes(), 0);
}

#[test]
fn refusals_of_ports() {
    let period = config().period.unwrap();
    let with = |period| Config {
        period: Some(period),
        ..config()
    };
    for (length_ns, refused) in [
        (124_999, Some(Error::Period)),
        (125_000, None),
        (1_000_000_000, None),
        (1_000_000_001, Some(Error::Period)),
    ] {
        let config = with(Period {
            length_ns,
            ..period
        });
        assert_eq!(Scheduler::new(&config, 0).err(), refused);
    }
    for (budget_bytes, refused) in [
        (125_000_000_000, None),
        (125_000_000_001, Some(Error::Budget)),
    ] {
        let config = with(Period {
            budget_bytes,
            ..period
        });
        assert_eq!(Scheduler::new(&config, 0).err(), refused);
    }
    let rt = ClassConfig::Rt { reserve_bytes: 100 };
    let refused = |config: Config| {
        let mut port = Scheduler::new(&config, 0).unwrap();
        port.add_class(&rt).unwrap_err()
    };
    let no_budget = Period {
        budget_bytes: 0,
        ..period
    };
    let none = Config {
        period: None,
        ..config()
    };
    // 125 us of 8 kbit/s: not one byte.
    let slow = Config {
        line_rate_bps: 8000,
        period: Some(Period::percent(8000, 125_000, 70)),
        ..config()
    };
    assert_eq!(refused(none), Error::Period);
    assert_eq!(refused(slow), Error::Period);
    assert_eq!(refused(with(no_budget)), Error::Budget);

    let mut port = Scheduler::new(&config(), 0).unwrap();
    let class = port.add_class(&rt).unwrap();
    let error = port.reconfigure(&none, 0).unwrap_err();
    assert_eq!((error.error, error.class), (Error::Period, Some(class)));
    port.add_class(&rt).unwrap();
    let little = with(Period {
        budget_bytes: 150,
        ..period
    });
    let error = port.reconfigure(&little, 0).unwrap_err();
    assert_eq!((error.error, error.class), (Error::Reserved, None));
}
