// SPDX-License-Identifier: MIT OR Apache-2.0
//! The clock that departure times come from, as the host's compiler compiles it, beside the core:
//! the same arrivals leave at the same nanosecond.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::LazyLock;
use std::thread;

use pace::{ClassConfig, Config, Decision, Mode, Scheduler};
use proptest::prelude::*;

/// The line on which a byte time is a nanosecond.
const LINE_BPS: u64 = 8_000_000_000;
const HORIZON_NS: u64 = 9_000_000_000;

/// The program, compiled once.
static PROGRAM: LazyLock<PathBuf> = LazyLock::new(|| {
    let root = testkit::root();
    let program = testkit::output_folder().join("edt_clock");
    let mut compile = Command::new("cc");
    compile.args(["-std=gnu11", "-O2", "-Wall", "-Werror"]);
    compile.args(["-Wno-unknown-pragmas", "-Wno-unused-function"]);
    for headers in ["core/include", "core/deps/host"] {
        compile.arg("-I").arg(root.join(headers));
    }
    compile.arg(root.join("bpf/tests/edt_clock.c"));
    let status = compile.arg("-o").arg(&program).status().unwrap();
    assert!(status.success());
    program
});

/// A packet: its class's rate and horizon, when it comes, its bytes.
type Packet = (u64, u64, u64, u64);

/// Returns when packets leave by the program; `None`: too late.
fn departures(packets: &[Packet]) -> Vec<Option<u64>> {
    let packets: Vec<_> = packets.iter().map(|packet| (*packet, 0)).collect();
    departures_anew(&packets)
}

/// The same, with the number of times that what waited was thrown away before each packet.
fn departures_anew(packets: &[(Packet, u64)]) -> Vec<Option<u64>> {
    let mut lines = String::new();
    for ((rate_bps, horizon_ns, now_ns, bytes), fresh) in packets {
        writeln!(lines, "{rate_bps} {horizon_ns} {now_ns} {bytes} {fresh}").unwrap();
    }
    let mut run = Command::new(&*PROGRAM)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut to_program = run.stdin.take().unwrap();
    // Its output would fill the pipe while its input is still written.
    let writer = thread::spawn(move || to_program.write_all(lines.as_bytes()));
    let output = run.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    let output = String::from_utf8(output.stdout).unwrap();
    output.lines().map(|line| line.parse().ok()).collect()
}

/// Returns when packets leave by the core, alone on its line with timers: the queue of the class
/// is served as soon as the core says so.
fn by_core(rate_bps: u64, arrivals: &[(u64, u32)]) -> Vec<u64> {
    let config = Config {
        mode: Mode::Timer,
        ..Config::ethernet(LINE_BPS, 9_000)
    };
    let mut core = Scheduler::new(&config, 0).unwrap();
    let class = ClassConfig::Paced { rate_bps };
    let class = core.add_class(&class).unwrap();
    let mut left = Vec::new();
    let mut now = 0;
    let mut next = arrivals.iter().peekable();
    let mut queue = std::collections::VecDeque::new();
    while next.peek().is_some() || !queue.is_empty() {
        while let Some((_, bytes)) = next.next_if(|(at, _)| *at <= now) {
            queue.push_back(*bytes);
            if queue.len() == 1 {
                core.activate(class, now).unwrap();
            }
        }
        let until = match core.next(now) {
            Decision::Send(_) => {
                let bytes = queue.pop_front().unwrap();
                core.sent(class, bytes, !queue.is_empty(), now).unwrap();
                left.push(now);
                continue;
            }
            Decision::Wait { until_ns } => Some(until_ns),
            Decision::Idle => None,
            Decision::Gap { .. } => panic!("a gap in timer mode"),
        };
        let arrival = next.peek().map(|(at, _)| *at);
        now = [until, arrival].into_iter().flatten().min().unwrap();
    }
    left
}

proptest! {
    #![proptest_config(testkit::properties())]

    #[test]
    fn packets_leave_when_the_core_says(
        rate_bps in prop_oneof![1_000_000u64..2_000_000_000, Just(7_000_003), Just(3_000_000)],
        first_ns in 0u64..1_000_000_000,
        more in proptest::collection::vec((0u64..200_000, 60u32..9_000), 1..60),
    ) {
        let mut now = first_ns;
        let arrivals: Vec<(u64, u32)> = more
            .iter()
            .map(|(after, bytes)| {
                now += after;
                (now, *bytes)
            })
            .collect();
        let packets: Vec<Packet> = arrivals
            .iter()
            .map(|(at, bytes)| (rate_bps, HORIZON_NS, *at, u64::from(*bytes)))
            .collect();
        let ours: Vec<u64> = departures(&packets).into_iter().flatten().collect();
        prop_assert_eq!(ours, by_core(rate_bps, &arrivals));
    }
}

#[test]
fn a_rate_is_exact_over_many_packets() {
    // 1500 bytes at 7,000,003 bit/s take 12,000e9 / 7,000,003 ns, which is no whole number.
    let rate_bps = 7_000_003u64;
    let count = 100_000u64;
    let packets: Vec<Packet> = (0..count)
        .map(|number| {
            let due = u128::from(number) * 12_000_000_000_000 / u128::from(rate_bps);
            (rate_bps, HORIZON_NS, u64::try_from(due).unwrap(), 1500)
        })
        .collect();
    let ours = departures(&packets);
    for (number, departure) in (0..count).zip(ours) {
        let exact = (u128::from(number) * 12_000_000_000_000).div_ceil(u128::from(rate_bps));
        assert_eq!(departure.map(u128::from), Some(exact), "packet {number}");
    }
}

#[test]
fn what_would_wait_too_long_does_not_move_the_clock() {
    let at_once = |horizon_ns| (8_000_000, horizon_ns, 1_000, 1_000);
    // Each packet takes a millisecond.
    let packets = [
        at_once(1_000_000),
        at_once(1_000_000),
        at_once(1_000_000),
        at_once(2_000_000),
        (8_000_000, 1_000_000, 2_001_000, 1_000),
    ];
    let expected = [
        Some(1_000),
        Some(1_001_000),
        None,
        Some(2_001_000),
        Some(3_001_000),
    ];
    assert_eq!(departures(&packets), expected);
}

/// A clock that holds no remainder: an instant, and the bytes since at its rate.
#[derive(Default)]
struct Exact {
    from_ns: u128,
    bytes: u128,
    rate_bps: u128,
    fresh: u64,
}

const BYTE_NS: u128 = 8_000_000_000;

impl Exact {
    fn next_ns(&self) -> u128 {
        self.from_ns + (self.bytes * BYTE_NS).div_ceil(self.rate_bps.max(1))
    }

    fn depart(&mut self, (packet, fresh): (Packet, u64)) -> Option<u64> {
        let (rate_bps, horizon_ns, now_ns, bytes) = packet;
        let [rate, horizon, now] = [rate_bps, horizon_ns, now_ns].map(u128::from);
        if rate != self.rate_bps {
            let lead = self.next_ns().saturating_sub(now);
            let at_new = (lead * self.rate_bps).div_ceil(rate);
            let lead = match (rate > self.rate_bps, fresh != self.fresh) {
                (true, true) => at_new,
                (true, false) => lead,
                (false, _) => at_new.min(horizon).max(lead),
            };
            *self = Self {
                from_ns: now + lead,
                bytes: 0,
                rate_bps: rate,
                fresh,
            };
        }
        if self.next_ns() < now {
            (self.from_ns, self.bytes) = (now, 0);
        }
        let departure = self.next_ns();
        if departure - now > horizon {
            return None;
        }
        self.bytes += u128::from(bytes);
        Some(departure.try_into().unwrap())
    }
}

/// Rates of both ends of what classes have, and of the middle.
fn any_rate() -> impl Strategy<Value = u64> {
    prop_oneof![
        9_600u64..200_000,
        1_000_000u64..100_000_000,
        100_000_000u64..400_000_000_000,
        Just(8_000),
        Just(7_000_003),
    ]
}

proptest! {
    #![proptest_config(testkit::properties())]

    #[test]
    fn any_rates_under_load_are_exact(
        spells in proptest::collection::vec(
            (
                any_rate(),
                any::<bool>(),
                prop_oneof![Just(50_000_000u64), Just(HORIZON_NS), 0u64..HORIZON_NS],
                proptest::collection::vec((0u64..2_000_000, 60u32..70_000), 1..30),
            ),
            1..8,
        ),
    ) {
        let (mut now, mut fresh, mut packets) = (0, 0, Vec::new());
        let mut had_bps = 0;
        for (rate_bps, is_anew, horizon_ns, arrivals) in spells {
            // It is thrown away for another rate alone.
            fresh += u64::from(is_anew && rate_bps != had_bps);
            had_bps = rate_bps;
            for (after, bytes) in arrivals {
                now += after;
                packets.push(((rate_bps, horizon_ns, now, u64::from(bytes)), fresh));
            }
        }
        let mut exact = Exact::default();
        let expected: Vec<_> = packets.iter().map(|packet| exact.depart(*packet)).collect();
        let ours = departures_anew(&packets);
        prop_assert_eq!(&ours, &expected);
        // What leaves keeps its order, and its distance, where nothing is thrown away.
        let left = packets.iter().zip(&ours);
        let left: Vec<_> = left.filter_map(|(packet, at)| Some((packet, (*at)?))).collect();
        for two in left.windows(2) {
            let [(((rate_bps, _, _, bytes), fresh), at), ((next, next_fresh), next_at)] = two else {
                unreachable!()
            };
            if fresh != next_fresh {
                continue;
            }
            prop_assert!(at <= next_at);
            if *rate_bps == next.0 {
                let takes = u128::from(*bytes) * BYTE_NS / u128::from(*rate_bps);
                prop_assert!(u128::from(next_at - at) >= takes.min(1 << 41));
            }
        }
    }
}

#[test]
fn a_higher_rate_goes_on_where_the_old_one_was() {
    // At 3 Mbit/s 1000 bytes take 2,666,666.67 ns; from there 8 Mbit/s.
    let packets = [
        (3_000_000, HORIZON_NS, 0, 1_000),
        (8_000_000, HORIZON_NS, 0, 1_000),
        (8_000_000, HORIZON_NS, 0, 1_000),
    ];
    let expected = [Some(0), Some(2_666_667), Some(3_666_667)];
    assert_eq!(departures(&packets), expected);
}

#[test]
fn a_higher_rate_counts_at_once_where_nothing_waits_any_more() {
    // Seven frames at 9600 bit/s are 8.75 s; at 50 Mbit/s each takes 240 us.
    let slow = (9_600, HORIZON_NS, 0, 1_500);
    let mut packets = vec![(slow, 0); 8];
    packets.push(((50_000_000, HORIZON_NS, 0, 1_500), 1));
    let ours = departures_anew(&packets);
    assert_eq!(ours[7], Some(8_750_000_000));
    assert_eq!(ours[8], Some(8 * 240_000));
}

#[test]
fn a_lower_rate_makes_up_for_what_waits_within_its_horizon() {
    // Four frames wait for 4 ms; at a quarter of the rate they take 16 ms.
    let quick = (12_000_000, HORIZON_NS, 0, 1_500);
    for (horizon_ns, expected) in [(50_000_000, 16_000_000), (10_000_000, 10_000_000)] {
        let mut packets = vec![quick; 4];
        packets.push((3_000_000, horizon_ns, 0, 1_500));
        packets.push((3_000_000, HORIZON_NS, 0, 1_500));
        let ours = departures(&packets);
        assert_eq!(ours[4], Some(expected));
        assert_eq!(ours[5], Some(expected + 4_000_000));
    }
}
