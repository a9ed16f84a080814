// SPDX-License-Identifier: MIT OR Apache-2.0
//! What each class sends in a period: reservations, late frames, excess, the budget.

use pace::{ClassConfig, Config, Decision, Layer, Mode, Period};

use super::host::{BUDGET, ENDLESS, FRAME, Host, LINE, MBIT, PERIOD_BYTES, PERIOD_NS, config};

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

/// The same of several classes: each is counted.
#[test]
fn late_frames_of_each_class_are_counted() {
    let mut host = Host::new(&config());
    let classes = [20_000, 20_000, 4_000].map(|reserve| host.rt(reserve));
    for class in classes {
        host.come(class, 150);
    }
    host.run_periods(4);
    for class in classes {
        let counted = host.port.reservation_stats(class).unwrap();
        assert_eq!((counted.deferred, counted.excess), (2, 0));
    }
    assert_eq!(host.port.stats().rt_deferred, 6);
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

/// A class that leaves with its excess takes no time from what others have to send by the end of the
/// period, however much a paced class offers.
#[test]
fn excess_that_leaves_takes_no_time_from_others() {
    let mut host = Host::new(&config());
    let [leaver, stayer] = [20_000, 40_000].map(|reserve| host.rt(reserve));
    // Until nothing saved is left.
    for period in 0..20 {
        host.come(leaver, 100);
        host.come(stayer, 40);
        host.run_periods(period + 1);
    }
    let paced = host.add(ClassConfig::Paced { rate_bps: LINE });
    host.come(paced, ENDLESS);
    host.come(stayer, 40);
    let excess = |host: &Host| host.port.reservation_stats(leaver).unwrap().excess;
    let before = excess(&host);
    while excess(&host) == before {
        assert!(host.step());
    }
    host.port.deactivate(leaver, host.now_ns).unwrap();
    host.queued.insert(leaver, 0);
    host.run_periods(21);
    assert_eq!(host.by_period(leaver)[20], 20);
    assert_eq!(host.by_period(stayer)[20], 40);
    assert_eq!(host.port.stats().rt_overrun, 0);
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

/// Excess that waits is not expected to end in its period: once its class has sent what may go
/// ahead, the frames of another class leave paced ones their instants.
#[test]
fn excess_that_waits_puts_no_other_class_before_paced_ones() {
    let mut host = Host::new(&config());
    let greedy = host.rt(1000);
    let modest = host.rt(40_000);
    let paced = host.add(ClassConfig::Paced {
        rate_bps: 40 * MBIT,
    });
    host.come(paced, ENDLESS);
    for period in 0..30 {
        host.come(greedy, 40);
        host.come(modest, 40);
        host.run_periods(period + 1);
    }
    // More excess waits than fits a period.
    assert!(host.queued[&greedy] * u64::from(FRAME) > 2 * PERIOD_BYTES);
    assert_eq!(host.by_period(modest)[1..], [40; 29]);
    let starts = host.sent.iter().filter(|(_, class)| *class == paced);
    // A frame every 2500 bytes. At a period's start one frame of each rt class may go first.
    let late = starts
        .enumerate()
        .map(|(i, (start, _))| start.saturating_sub(2500 * i as u64));
    assert!(late.clone().count() > 1400);
    assert!(late.max() <= Some(3 * u64::from(FRAME)));
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
fn no_debt_is_left_after_a_silence() {
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

/// Of a class whose host does not say what came, one frame a period is known.
#[test]
fn frames_that_were_not_reported_go_one_by_one() {
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
