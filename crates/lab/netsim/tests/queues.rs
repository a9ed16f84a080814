// SPDX-License-Identifier: MIT OR Apache-2.0
//! The queues of a host, seen by the frames that leave it.

use capture::record::{Fate, Kind};
use netsim::filter::Filter;
use netsim::network::NetworkConfig;
use netsim::qdisc::{
    Fq, FqConfig, Htb, HtbClass, HtbConfig, Limit, Netem, NetemConfig, Psp, PspClass, PspConfig,
    PspType, Qdisc, RateTable, Tbf, TbfConfig,
};
use netsim::rng::{Chance, Rng};
use netsim::source::SourceConfig;
use pace::ClassConfig;
use units::clock::{Span, Time};

use crate::common::{GBIT, Log, Seen, datagrams, greedy, line, ms, run, us};

const FRAME_PS: u64 = 1538 * 8_000;

fn filters(count: u16) -> Vec<Filter> {
    let filter = |i: u16| Filter {
        dport: Some((5001 + i, 0xffff)),
        minor: u32::from(i) + 1,
        ..Filter::default()
    };
    (0..count).map(filter).collect()
}

/// Runs `flows` greedy flows through a queue on a line of 1 Gbit/s.
fn through(qdisc: Qdisc, flows: u16, stop: Time) -> Log {
    let config = NetworkConfig {
        devices: vec![line(GBIT, qdisc)],
        ports: vec![],
        flows: (0..flows)
            .map(|i| datagrams(i, &[0], greedy(stop)))
            .collect(),
    };
    run(config, stop).1
}

fn starts(log: &Log, flow: u32) -> Vec<u64> {
    let of = |f: &&Seen| f.flow == Some(flow);
    log.frames.iter().filter(of).map(|f| f.start_ps).collect()
}

fn psp(port: pace::Config, classes: &[ClassConfig]) -> Qdisc {
    let class = |(i, kind): (u32, &ClassConfig)| PspClass {
        minor: i,
        kind: PspType::Static(*kind),
        limit: Limit::Packets(1000),
        deadline: None,
    };
    let config = PspConfig {
        port,
        gap: Kind::Pause,
        major: 1,
        default: 0,
        classes: (1..).zip(classes).map(class).collect(),
        filters: filters(8),
        unclassified_packets: 1000,
    };
    Qdisc::Psp(Box::new(Psp::new(config, Time::START).unwrap()))
}

fn paced(rate_bps: u64) -> ClassConfig {
    ClassConfig::Paced { rate_bps }
}

#[test]
fn psp_paces_to_the_byte_and_fills_the_wire_with_gaps() {
    let port = pace::Config::ethernet(GBIT, 1514);
    let log = through(psp(port, &[paced(GBIT / 2)]), 1, ms(10));
    let data = starts(&log, 0);
    // A frame leaves every 3028 byte times, and gap frames leave no idle time.
    assert!(data.windows(2).all(|w| w[1] - w[0] == 3028 * 8_000));
    let next = |f: &Seen| f.start_ps + u64::from(f.wire_bytes) * 8_000;
    assert!(log.frames.windows(2).all(|w| w[1].start_ps == next(&w[0])));
    let gaps = log.frames.iter().filter(|f| f.kind == Kind::Pause);
    assert!(gaps.clone().count() >= data.len() - 1);
    assert!(
        gaps.clone()
            .all(|f| f.fate == Fate::Ended && f.wire_bytes == 3028 - 1538)
    );
}

#[test]
fn psp_by_timer_and_hybrid_are_as_even_and_leave_the_wire_idle() {
    for mode in [pace::Mode::Timer, pace::Mode::Hybrid] {
        let port = pace::Config {
            mode,
            ..pace::Config::ethernet(GBIT, 1514)
        };
        let log = through(psp(port, &[paced(GBIT / 100)]), 1, ms(50));
        let data = starts(&log, 0);
        assert!(data.len() > 30, "{mode:?}");
        // The distance is 151,400 byte times; timers have whole nanoseconds.
        let even = 151_400 * 8_000;
        let far = data.windows(2).map(|w| (w[1] - w[0]).abs_diff(even)).max();
        assert!(far <= Some(8_000), "{mode:?}: {far:?} ps off");
        let gap_bytes: u64 = log
            .frames
            .iter()
            .filter(|f| f.kind == Kind::Pause)
            .map(|f| u64::from(f.wire_bytes))
            .sum();
        // The wire carries 6 MB. Timer mode sends no gap frames, hybrid its lead before each
        // frame.
        let most = if mode == pace::Mode::Timer {
            0
        } else {
            40 * 40_000
        };
        assert!(gap_bytes <= most, "{mode:?}: {gap_bytes}");
    }
}

#[test]
fn psp_shares_an_oversubscribed_line_in_proportion() {
    let port = pace::Config::ethernet(GBIT, 1514);
    let rates = [4, 4, 4, 2, 2].map(|n| paced(n * GBIT / 10));
    let log = through(psp(port, &rates), 5, ms(100));
    let counts: Vec<usize> = (0..5).map(|flow| starts(&log, flow).len()).collect();
    let all: usize = counts.iter().sum();
    assert!(
        all as u64 >= 100_000_000_000 / FRAME_PS - 1,
        "the line was full"
    );
    for (count, share) in counts.iter().zip([4, 4, 4, 2, 2]) {
        assert!(count.abs_diff(all * share / 16) <= 2, "{counts:?}");
    }
}

/// Frames that came before a period leave in it. Of greedy flows an nrt class gets its share,
/// and the rt class, which is always late, the rest of the budget.
#[test]
fn psp_keeps_its_periods() {
    let length_ns = 1_000_000;
    let port = pace::Config {
        period: Some(pace::Period::percent(GBIT, length_ns, 80)),
        ..pace::Config::ethernet(GBIT, 1514)
    };
    let classes = [
        ClassConfig::Rt {
            reserve_bytes: 30_280,
        },
        ClassConfig::Nrt {
            reserve_bytes: 15_140,
        },
    ];
    let log = through(psp(port, &classes), 2, ms(10));
    let in_period = |flow: u32, period: u64| {
        let ps = length_ns * 1000;
        let within = |at: &&u64| **at / ps == period;
        starts(&log, flow).iter().filter(within).count()
    };
    // No frame has come before the first period.
    assert_eq!((in_period(0, 0), in_period(1, 0)), (0, 10));
    for period in 1..9 {
        let (rt, nrt) = (in_period(0, period), in_period(1, period));
        assert!((20..=67).contains(&rt) && nrt <= 10, "{period}: {rt} {nrt}");
        // The budget of 100,000 bytes is 66.05 frames.
        assert!(rt + nrt <= 67, "{period}: {rt} {nrt}");
    }
}

#[test]
fn tbf_sends_its_burst_and_then_at_its_rate() {
    let config = TbfConfig {
        rate_bps: GBIT / 10,
        burst_bytes: 10 * 1514,
        limit_bytes: 1 << 20,
        overhead_bytes: 0,
        mpu_bytes: 0,
        tick: Span::ZERO,
    };
    let starts_of = |config| {
        starts(
            &through(Qdisc::Tbf(Box::new(Tbf::new(config))), 1, ms(40)),
            0,
        )
    };
    let data = starts_of(config);
    // While the bucket empties, new tokens let one more frame pass.
    assert!(data[..11].windows(2).all(|w| w[1] - w[0] == FRAME_PS));
    // From the instant at which the bucket was empty, exactly one frame leaves every 121.12 us.
    let first = (1514 * 8_000) * 10;
    for (i, start) in (1u64..).zip(&data[10..]) {
        assert_eq!(*start, (i * first).max(10 * FRAME_PS), "frame {i}");
    }
    // With a tick of 1 ms the tokens of a millisecond leave as a burst.
    let tick = Span::from_ns(1_000_000);
    let data = starts_of(TbfConfig { tick, ..config });
    let bursts: Vec<_> = data.chunk_by(|a, b| b - a == FRAME_PS).collect();
    assert!(bursts.len() >= 38, "{}", bursts.len());
    assert!(bursts[1..].iter().all(|b| b[0] % 1_000_000_000 == 0));
    // The first burst is the whole bucket. The next one pays for its last frame; then 8.26
    // frames leave in a millisecond.
    let lengths: Vec<_> = bursts.iter().take(9).map(|b| b.len()).collect();
    assert_eq!(lengths, [11, 7, 9, 8, 8, 9, 8, 8, 8]);
}

fn htb_class(minor: u32, parent: Option<u32>, rate_bps: u64, ceil_bps: u64) -> HtbClass {
    HtbClass {
        minor,
        parent,
        rate_bps,
        ceil_bps,
        burst_bytes: 1600,
        cburst_bytes: 1600,
        quantum_bytes: 1514 * u32::try_from(rate_bps / (GBIT / 100)).unwrap().max(1),
        prio: 0,
        overhead_bytes: 0,
        mpu_bytes: 0,
        limit: Limit::Packets(1000),
        table: None,
    }
}

/// A class of 100 Mbit/s has frames of 1,514 bytes every 121.12 us. By a table of whole microseconds and
/// ticks of 1,024 ns the time of 1,520 bytes, 121.6 us, is 118 ticks, 120.832 us; by today's rule it is exact.
#[test]
fn a_rate_table_lets_htb_exceed_its_rate() {
    let with = |table| HtbClass {
        table,
        ..htb_class(1, None, GBIT / 10, GBIT / 10)
    };
    let table = RateTable {
        mtu_bytes: 1600,
        tick: Span::from_ns(1024),
    };
    for (table, gap_ns) in [(None, 121_120), (Some(table), 120_832)] {
        let config = HtbConfig {
            major: 1,
            default: 1,
            classes: vec![with(table)],
            filters: vec![],
            direct_packets: 1000,
        };
        let log = through(Qdisc::Htb(Box::new(Htb::new(config))), 1, ms(40));
        let data = starts(&log, 0);
        assert!(data.len() > 300, "{}", data.len());
        // The burst is over.
        let mut later = data[20..].windows(2);
        assert!(later.all(|w| w[1] - w[0] == gap_ns * 1000), "{table:?}");
    }
}

#[test]
fn htb_lends_in_proportion_to_quanta_up_to_the_ceil() {
    // 400 Mbit/s are shared by three classes with rates of 40, 20 and 10; the last may not have
    // more than 30.
    let classes = vec![
        htb_class(10, None, 400_000_000, 400_000_000),
        htb_class(1, Some(10), 40_000_000, 400_000_000),
        htb_class(2, Some(10), 20_000_000, 400_000_000),
        htb_class(3, Some(10), 10_000_000, 30_000_000),
    ];
    let htb = Htb::new(HtbConfig {
        major: 1,
        default: 3,
        classes,
        filters: filters(3),
        direct_packets: 1000,
    });
    let log = through(Qdisc::Htb(Box::new(htb)), 3, ms(200));
    let mbit = |flow| starts(&log, flow).len() as f64 * 1514.0 * 8.0 / 0.2 / 1e6;
    let found = [mbit(0), mbit(1), mbit(2)];
    assert!((found.iter().sum::<f64>() - 400.0).abs() < 2.0, "{found:?}");
    assert!((found[2] - 30.0).abs() < 0.5, "{found:?}");
    // The other two classes share the 310 that can be lent by 2 : 1.
    assert!(
        (found[0] - (40.0 + 310.0 * 2.0 / 3.0)).abs() < 8.0,
        "{found:?}"
    );
}

#[test]
fn fq_holds_each_flow_to_its_maximum() {
    let config = FqConfig {
        limit: 10_000,
        flow_limit: 1000,
        quantum_bytes: 3028,
        initial_quantum_bytes: 15_140,
        maxrate_bps: GBIT / 10,
    };
    let log = through(Qdisc::Fq(Box::new(Fq::new(config))), 2, ms(50));
    for flow in 0..2 {
        let count = starts(&log, flow).len();
        // 412.8 frames fit 50 ms, and the first ten leave at once.
        assert!((411..=425).contains(&count), "{count}");
    }
}

#[test]
fn netem_delays_loses_and_reorders_by_seed() {
    let even = SourceConfig {
        rate_bps: Some(GBIT / 10),
        ..greedy(ms(1000))
    };
    let seen = |config: NetemConfig, seed| {
        let netem = Netem::new(config, Rng::new(seed, 0));
        let config = NetworkConfig {
            devices: vec![line(GBIT, Qdisc::Netem(Box::new(netem)))],
            ports: vec![],
            flows: vec![datagrams(0, &[0], even)],
        };
        run(config, ms(1000)).1
    };
    let plain = NetemConfig {
        delay: Span::from_ns(3_000_000),
        jitter: Span::ZERO,
        loss: Chance::NEVER,
        reorder: Chance::NEVER,
        gap: 1,
        limit: 1000,
    };
    let log = seen(plain, 1);
    let late = |f: &Seen| f.start_ps - f.number.unwrap() * 1514 * 8_000 * 10;
    assert!(log.frames.iter().all(|f| late(f) == 3_000_000_000));
    let loss = NetemConfig {
        loss: Chance::per_million(10_000),
        ..plain
    };
    let log = seen(loss, 1);
    // Of 8256 frames 1 % are lost: 82.6 +- 9.
    assert!(
        (50..120).contains(&log.dropped.len()),
        "{}",
        log.dropped.len()
    );
    assert_eq!(log, seen(loss, 1));
    assert_ne!(log, seen(loss, 2));
    let numbers = |log: &Log| log.frames.iter().map(|f| f.number).collect::<Vec<_>>();
    assert!(numbers(&log).is_sorted());
    let reorder = NetemConfig {
        reorder: Chance::per_million(10_000),
        ..plain
    };
    assert!(!numbers(&seen(reorder, 1)).is_sorted());
}

#[test]
fn a_deadline_drops_what_would_be_late() {
    let port = pace::Config::ethernet(GBIT, 1514);
    let class = PspClass {
        minor: 1,
        kind: PspType::Static(paced(GBIT / 10)),
        limit: Limit::Packets(1000),
        deadline: Some(Span::from_ns(1_000_000)),
    };
    let config = PspConfig {
        port,
        gap: Kind::Pause,
        major: 1,
        default: 1,
        classes: vec![class],
        filters: vec![],
        unclassified_packets: 10,
    };
    let qdisc = Qdisc::Psp(Box::new(Psp::new(config, Time::START).unwrap()));
    let network = NetworkConfig {
        devices: vec![line(GBIT, qdisc)],
        ports: vec![],
        flows: vec![datagrams(
            0,
            &[0],
            SourceConfig {
                rate_bps: Some(GBIT / 5),
                ..greedy(ms(20))
            },
        )],
    };
    let (network, log) = run(network, ms(100));
    assert!(network.counts().lost > 0);
    let late = |f: &Seen| f.start_ps - f.number.unwrap() * 1514 * 8_000 * 5;
    let data = log.frames.iter().filter(|f| f.kind == Kind::Data);
    assert!(data.clone().all(|f| late(f) <= 1_000_000_000 + FRAME_PS));
    // The class keeps its rate the whole time.
    let starts = starts(&log, 0);
    let upto = starts.iter().filter(|s| **s < us(20_000).as_ps()).count();
    assert!((164..=166).contains(&upto), "{upto}");
}
