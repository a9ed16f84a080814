// SPDX-License-Identifier: MIT OR Apache-2.0
//! The qdisc of BPF on a stock kernel, in the laboratory's guest: packets of two classes leave when
//! the core says, also after their rates have changed under traffic, and nothing stays behind.
//!
//! This program runs in the guest, too, as the command that sets the qdisc up: see [`in_guest`].

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail that way")]
#![allow(clippy::print_stdout, reason = "the guest's script reads it")]

use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use backend::qdisc::{Error, Place, PortClass, PortConfig, Qdisc, Room, programs};
use backend::{RuleWords, cgroup_words, rule_words};
use linux_io::links::links;
use pace::{ClassConfig, Config as Port, Decision, Mode, Order, Period, Scheduler};
use scenario::Kernel;
use tcpsp::{Flower, Match, Prefix, Protocol};
use testkit::guest::{check_times, frames, starts, test_program};

use crate::guest::run_in_guest;

const MODULES: &[&str] = &["wire", "pktgen"];
/// The rates of the two classes, before and after a change, and the frames sent to them.
const RATES_BPS: [[u64; 2]; 2] = [[70_000_003, 9_000_000], [20_000_000, 9_000_000]];
/// The rate on the other device.
const OTHER_BPS: u64 = 31_000_000;
const FRAME_BYTES: [u32; 2] = [1500, 1000];
const LINE_BPS: u64 = 1_000_000_000;
/// The guest's timer, and the other class's frame on the wire (12 us).
const LATE_NS: u64 = 60_000;

const PERIOD_NS: u64 = 2_000_000;
/// Between two frames of the class that has a reservation.
const RT_GAP_NS: u64 = 3_000_000;
const FIRST_MINOR: u16 = 0x8001;
const ROOM: Room = Room {
    slots: 8,
    rules: 4,
    addresses: 4,
    text_bytes: 32,
};

fn port() -> Port {
    Port {
        mode: Mode::Timer,
        order: Order::Next,
        period: Some(Period::percent(LINE_BPS, PERIOD_NS, 70)),
        max_burst_bytes: 65_536,
        ..Port::ethernet(LINE_BPS, 1514)
    }
}

/// What a command of the script asks for.
struct Wanted {
    rates_bps: Vec<u64>,
    first: u16,
    longest: u32,
    limit: u32,
    deadline_ns: Option<u64>,
    /// The first class has so many bytes of each period, the second the rest.
    reserve_bytes: Option<u64>,
    rules: Vec<RuleWords>,
    text: String,
}

fn number<T: std::str::FromStr<Err: std::fmt::Debug>>(text: &str) -> T {
    text.parse().unwrap()
}

impl Wanted {
    /// Reads words like `rates=70000003,9000000`.
    fn read(words: &[&str]) -> Self {
        let mut wanted = Self {
            rates_bps: Vec::new(),
            first: FIRST_MINOR,
            longest: 1514,
            limit: 1000,
            deadline_ns: None,
            reserve_bytes: None,
            rules: Vec::new(),
            text: String::new(),
        };
        for word in words {
            let (key, value) = word.split_once('=').unwrap();
            match key {
                "rates" => wanted.rates_bps = value.split(',').map(number).collect(),
                "first" => wanted.first = number(value),
                "longest" => wanted.longest = number(value),
                "limit" => wanted.limit = number(value),
                "deadline_ns" => wanted.deadline_ns = Some(number(value)),
                "reserve" => wanted.reserve_bytes = Some(number(value)),
                "cgroup" => wanted.rules = rules(value),
                "vlan" => wanted.rules = vlan_rules(number(value)),
                "text" => wanted.text = value.to_owned(),
                _ => panic!("{word}"),
            }
        }
        wanted
    }

    fn config(&self) -> PortConfig<'_> {
        let rates = self.rates_bps.iter();
        let paced = rates.map(|rate_bps| ClassConfig::Paced {
            rate_bps: *rate_bps,
        });
        let classes = match self.reserve_bytes {
            None => paced.collect(),
            Some(reserve_bytes) => vec![
                ClassConfig::Rt { reserve_bytes },
                ClassConfig::Normal {
                    quantum_bytes: None,
                },
            ],
        };
        let classes = (self.first..).zip(classes);
        let classes = classes.map(|(minor, config)| PortClass {
            minor,
            limit: self.limit,
            deadline_ns: self.deadline_ns,
            config,
        });
        PortConfig {
            config: Port {
                max_frame_bytes: self.longest,
                ..port()
            },
            classes: classes.collect(),
            default: None,
            rules: self.rules.clone(),
            net_cls: true,
            link_bytes: 14,
            text: self.text.as_bytes(),
        }
    }
}

/// Senders in a cgroup, `ID:LEVEL`, belong to the first class; of the others those to port 5001 to
/// the second, and all else to this address to the third.
fn rules(cgroup: &str) -> Vec<RuleWords> {
    let (id, level) = cgroup.split_once(':').unwrap();
    let udp = Flower {
        protocol: Some(Protocol::Udp),
        destination_ports: tcpsp::Ports::parse("5001"),
        ..Flower::default()
    };
    let address = Flower {
        destination: Prefix::parse("10.0.0.2"),
        ..Flower::default()
    };
    let words = |order, minor, flower| {
        let words = rule_words(order, minor, &Match::Flower(flower));
        words.unwrap()
    };
    vec![
        cgroup_words(0, FIRST_MINOR, number(id), number(level)),
        words(1, FIRST_MINOR + 1, udp),
        words(2, FIRST_MINOR + 2, address),
    ]
}

fn now_ns() -> u64 {
    let now = nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC).unwrap();
    u64::try_from(now.tv_sec() * 1_000_000_000 + now.tv_nsec()).unwrap()
}

/// Waits until the script makes a file.
fn wait_for(file: &str) {
    for _ in 0..60_000 {
        if Path::new(file).exists() {
            return;
        }
        sleep(Duration::from_millis(1));
    }
    panic!("nobody makes {file}");
}

/// IPv6 packets of a VLAN to an address belong to the first class, others of that VLAN to the second,
/// and all others to that address to the third.
fn vlan_rules(vlan: u16) -> Vec<RuleWords> {
    let tagged = Flower {
        vlan: Some(vlan),
        ..Flower::default()
    };
    let address = Flower {
        destination: Prefix::parse("fd00::2"),
        ..Flower::default()
    };
    let both = Flower {
        destination: Prefix::parse("fd00::2"),
        destination_ports: tcpsp::Ports::parse("5001"),
        ..tagged.clone()
    };
    let rules = (0..).zip([both, tagged, address]);
    let words = rules.map(|(order, flower)| {
        let minor = FIRST_MINOR + order as u16;
        let words = rule_words(order, minor, &Match::Flower(flower));
        words.unwrap()
    });
    words.collect()
}

/// Returns where a device's qdiscs are: at the root, or at transmit queues below mq.
fn places(device: &str, queues: u32) -> Vec<Place> {
    let link = links().unwrap();
    let link = link.into_iter().find(|link| link.name == device).unwrap();
    let netns = fs::read_link("/proc/self/ns/net").unwrap();
    let netns = netns.to_string_lossy();
    let netns = netns.trim_matches(|c: char| !c.is_ascii_digit());
    let place = |parent| Place {
        netns: netns.parse().unwrap(),
        ifindex: link.index,
        parent,
    };
    if queues == 0 {
        return vec![place(u32::MAX)];
    }
    (1..=queues)
        .map(|queue| place((0x7073 << 16) | queue))
        .collect()
}

fn load(device: &str, queues: u32, words: &[&str]) {
    let places = places(device, queues);
    let began_ns = now_ns();
    let mut qdisc = Qdisc::load(&places, ROOM).unwrap_or_else(|error| panic!("{error}"));
    let took_us = (now_ns() - began_ns) / 1000;
    for (port, place) in (0..).zip(&places) {
        assert_eq!(qdisc.port_of(*place), Some(port));
        let configured = qdisc.configure(port, &Wanted::read(words).config(), now_ns());
        configured.unwrap_or_else(|error| panic!("{error}"));
    }
    let second = Qdisc::load(&places, ROOM).err().unwrap();
    assert!(matches!(second, Error::Mapped), "{second}");
    let mut registered = qdisc.register();
    if let Err(error @ Error::Registered(_)) = &registered {
        fs::write(format!("/tmp/taken.{device}"), error.to_string()).unwrap();
        registered = qdisc.register();
    }
    let registered = registered.unwrap_or_else(|error| panic!("{error}"));
    fs::write(
        format!("/tmp/loaded.{device}"),
        format!("loaded in {took_us} us\n"),
    )
    .unwrap();
    wait_for(&format!("/tmp/put.{device}"));
    drop(registered);
}

fn open(device: &str, queues: u32) -> (Qdisc, u32) {
    let place = *places(device, queues).last().unwrap();
    let found = Qdisc::find(place).unwrap_or_else(|error| panic!("{error}"));
    let qdisc = found.unwrap_or_else(|| panic!("nothing runs at {device}"));
    assert_eq!(qdisc.room(), ROOM);
    let port = qdisc.port_of(place).unwrap();
    (qdisc, port)
}

fn show(device: &str, queues: u32) {
    let (qdisc, port) = open(device, queues);
    for (minor, count) in qdisc.counters(port) {
        println!(
            "BPFQ class {minor:x}: sent {} packets {} bytes, {} wait, {} full {} removed {} late \
             {} long",
            count.sent_packets,
            count.sent_bytes,
            count.packets,
            count.dropped_full,
            count.dropped_removed,
            count.dropped_late,
            count.dropped_long
        );
    }
    let count = qdisc.port_counters(port);
    println!(
        "BPFQ periods: {} begun, {} overrun, {} deferred, {} over",
        count.core.periods, count.core.rt_overrun, count.core.rt_deferred, count.core.rt_over
    );
    println!(
        "BPFQ port: {} images, {} of no class, {} lost, text {}",
        count.images_taken,
        count.dropped_unclassified,
        count.dropped_lost,
        String::from_utf8_lossy(&qdisc.text(port))
    );
}

/// Does what the guest's script asks for in `BPFQ`.
#[test]
#[ignore = "runs in the guest"]
fn in_guest() {
    let words = std::env::var("BPFQ").unwrap();
    let words: Vec<&str> = words.split_whitespace().collect();
    match words[..] {
        ["load", device, queues, ref words @ ..] => load(device, number(queues), words),
        ["configure", times, device, queues, ref words @ ..] => {
            let (qdisc, port) = open(device, number(queues));
            for time in 0..number(times) {
                // Some are withdrawn before a packet comes, some are not.
                sleep(Duration::from_millis(time % 3));
                let mut wanted = Wanted::read(words);
                if time % 2 == 1 {
                    wanted.rates_bps.iter_mut().for_each(|rate| *rate += 1);
                }
                let configured = qdisc.configure(port, &wanted.config(), now_ns());
                configured.unwrap_or_else(|error| panic!("{error}"));
                assert_eq!(qdisc.text(port), wanted.text.as_bytes());
            }
        }
        ["find", device] => {
            let found = Qdisc::find(places(device, 0)[0]);
            println!("BPFQ {}", found.unwrap().is_some());
        }
        ["show", device, queues] => show(device, number(queues)),
        ["programs"] => println!("BPFQ {}", programs()),
        _ => panic!("{words:?}"),
    }
}

/// Returns when the core sends a class's frames that all wait since 0.
fn by_core(rate_bps: u64, bytes: u32, count: usize) -> Vec<u64> {
    let mut core = Scheduler::new(&port(), 0).unwrap();
    let class = core.add_class(&ClassConfig::Paced { rate_bps }).unwrap();
    core.activate(class, 0).unwrap();
    let mut now = 0;
    let mut left = Vec::new();
    while left.len() < count {
        match core.next(now) {
            Decision::Send(_) => {
                core.sent(class, bytes, left.len() + 1 < count, now)
                    .unwrap();
                left.push(now);
            }
            Decision::Wait { until_ns } => now = until_ns,
            other => panic!("{other:?}"),
        }
    }
    left
}

#[test]
fn packets_leave_when_the_core_says() {
    let folder = tempfile::tempdir().unwrap();
    let here = testkit::crate_folder();
    let (mut files, command) = test_program(folder.path(), "qdisc_bpf_lab::in_guest");
    let script = here.join("tests/guest/qdisc.sh");
    files.push((script, "/bpfq/qdisc.sh".to_owned()));
    let lib = here.join("../../../kernel/tests/lib.sh");
    files.push((lib, "/bpfq/lib.sh".to_owned()));
    run_in_guest(
        (Kernel::V7, MODULES),
        &files,
        &format!("BPFQ_PROGRAM='{command}' sh /bpfq/qdisc.sh"),
        Duration::from_secs(600),
        folder.path(),
    );

    let first = frames(folder.path(), "first");
    for (class, port) in (0..).zip([5001, 5002]) {
        let starts = starts(&first, port);
        let due = by_core(RATES_BPS[0][class], FRAME_BYTES[class], starts.len());
        check_times(&format!("port {port}"), &starts, &due, LATE_NS);
    }
    // The second device's clock is its own.
    let other = starts(&frames(folder.path(), "other"), 5001);
    let due = by_core(OTHER_BPS, FRAME_BYTES[0], other.len());
    check_times("the other device", &other, &due, LATE_NS);
    // At the change no frame is too early for the faster rate, and both rates are kept.
    let changed = starts(&frames(folder.path(), "changed"), 5001);
    let gap_ns = |rate_bps: u64| u64::from(FRAME_BYTES[0]) * 8_000_000_000 / rate_bps;
    let gaps: Vec<u64> = changed.windows(2).map(|two| two[1] - two[0]).collect();
    for rates in RATES_BPS {
        let is_near = |gap: &&u64| gap.abs_diff(gap_ns(rates[0])) < LATE_NS;
        let near = gaps.iter().filter(is_near).count();
        assert!(near > 100, "{}: {near} of {gaps:?}", rates[0]);
    }
    let least = gaps.iter().min().unwrap();
    assert!(least + LATE_NS >= gap_ns(RATES_BPS[0][0]), "{least}");
    // Each frame that has a reservation leaves at the start of the period after the one in which it
    // came, beside packets that take all the rest.
    let reserved = starts(&frames(folder.path(), "reserved"), 5001);
    assert!(reserved.len() > 150, "{}", reserved.len());
    let after = (0..).zip(&reserved);
    let after: Vec<i64> = after
        .map(|(number, start)| *start as i64 - number * RT_GAP_NS as i64)
        .collect();
    let spread = after.iter().max().unwrap() - after.iter().min().unwrap();
    println!(
        "reserved: {} frames, delays within {spread} ns",
        reserved.len()
    );
    assert!(spread <= (PERIOD_NS + LATE_NS) as i64, "{spread}");
}
