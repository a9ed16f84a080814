// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is said of frames that no class counted, of bursts, and of a sample.

use std::collections::BTreeMap;

use host_config::Host;
use tcpsp::account::{Reasons, Renewable, Renewed};
use testkit::Random;
use verify::report::{ClassCounted, ClassReport, Report, State, Window, report};
use verify::tally::Tally;
use verify::tap::Shown;
use verify::{Beside, Matcher};

/// Classes `a` of 10 Mbit/s, `unit` of a cgroup, and `rest`, the default; a rule of `a` names eth7.
const FILE: &str = r#"
[[device]]
name = "d0"
line = "1gbit"
default = "rest"
[[device.class]]
name = "a"
rate = "10mbit"
match = [{ to_port = 5001, protocol = "udp" }, { to_port = 5002, protocol = "udp" },
         { interface = "eth7" }]
[[device.class]]
name = "rest"
type = "normal"
"#;
const UNIT: &str = r#"
[[device.class]]
name = "unit"
rate = "10mbit"
match = [{ cgroup = "/unit" }]
"#;
const RATE_BPS: u64 = 10_000_000;
const FRAME_BYTES: u32 = 1500;
/// What a frame takes at that rate.
const FRAME_NS: u64 = 1_200_000;

/// A frame that is shown.
#[derive(Clone)]
struct One {
    time_ns: u64,
    bytes: Vec<u8>,
    weight: u32,
    interface: u32,
}

/// An Ethernet frame of UDP to a port, with its tags, and options of IPv4.
fn frame(port: u16, tags: &[u16], has_options: bool) -> One {
    let mut bytes = vec![2; 12];
    for tag in tags {
        bytes.extend([0x81, 0, (tag >> 8) as u8, *tag as u8]);
    }
    let options = if has_options { 4 } else { 0 };
    bytes.extend([8, 0, 0x45 + options / 4, 0, 0, 28 + options]);
    bytes.extend([0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    bytes.extend(vec![1; usize::from(options)]);
    bytes.extend([0, 9, (port >> 8) as u8, port as u8, 0, 8, 0, 0]);
    One {
        time_ns: 0,
        bytes,
        weight: 1,
        interface: 0,
    }
}

/// Frames one after the other, at the rate of `a`.
fn even(of: &[(usize, One)]) -> Vec<One> {
    let all = of.iter().flat_map(|(count, one)| vec![one.clone(); *count]);
    let at = |(n, one): (u64, One)| One {
        time_ns: n * FRAME_NS,
        ..one
    };
    (1..).zip(all).map(at).collect()
}

/// Reports what is said if classes have counted so many frames by their names.
fn report_of(file: &str, frames: &[One], counted: &[(&str, u64)], reasons: Reasons) -> Report {
    let host = Host::read("d0.toml", file).unwrap();
    let device = &host.devices[0];
    let minors: Vec<u16> = device.classes.iter().map(|class| class.minor).collect();
    let matcher = Matcher::new(&device.rules, &minors, &|_| Some(7));
    let most_bps = BTreeMap::from([(minors[0], RATE_BPS)]);
    let mut tally = Tally::new(matcher, true, most_bps);
    for one in frames {
        let shown = Shown {
            time_ns: one.time_ns,
            len_bytes: FRAME_BYTES,
            weight: one.weight,
            beside: Beside {
                interface: one.interface,
                ..Beside::default()
            },
            tag: None,
            ethertype: 0x0800,
            segments: 1,
            segment_bytes: 0,
            bytes: &one.bytes,
        };
        tally.take(&shown, device.options.default_minor);
    }
    let class = |(name, frames): &(&str, u64)| {
        let class = device.classes.iter().find(|class| class.name == *name);
        let counted = ClassCounted {
            name: (*name).to_owned(),
            frames: *frames,
            bytes: 0,
            rate_bps: if *name == "rest" { 0 } else { RATE_BPS },
            has_senders: *name == "unit",
        };
        (class.unwrap().minor, counted)
    };
    let window = Window {
        time_ns: 1_000_000_000,
        default: device.options.default_minor,
        classes: counted.iter().map(class).collect(),
        reasons,
        rules: (device.rules.iter())
            .map(|rule| format!("{:?}", rule.matching))
            .collect(),
        ..Window::default()
    };
    let packets = frames.iter().map(|one| u64::from(one.weight)).sum();
    report("d0", &tally.classes, &window, (0, packets), 1.0, 0)
}

/// What is said of class `a` if it counted so many.
fn said(frames: &[One], counted: u64) -> ClassReport {
    let report = report_of(FILE, frames, &[("a", counted)], Reasons::default());
    report.classes[0].clone()
}

#[test]
fn two_causes_are_named_with_their_shares() {
    let frames = even(&[
        (500, frame(5001, &[], false)),
        (300, frame(5001, &[7], false)),
        (100, frame(5002, &[], true)),
    ]);
    let class = said(&frames, 500);
    assert_eq!(class.state, State::Missing);
    let expected = "of 75 % they have a VLAN tag; of 25 % they have options or extension headers";
    assert_eq!(class.why, [expected]);
    let frames_of_rules: Vec<u64> = class.rules.iter().map(|rule| rule.frames).collect();
    assert_eq!(frames_of_rules, [300, 100]);
    // 200 are explained by neither, nor by both.
    assert_eq!(said(&frames, 700).why, ["unknown"]);
    assert_eq!(said(&frames, 900).state, State::Well);
}

#[test]
fn an_interface_made_anew_may_be_one_of_two_causes() {
    let mut routed = frame(5009, &[], false);
    routed.interface = 7;
    let frames = even(&[
        (400, frame(5001, &[], false)),
        (300, routed),
        (100, frame(5001, &[7], false)),
    ]);
    let reasons = Reasons {
        renewed: vec![Renewed {
            what: Renewable::Interface,
            name: "eth7".to_owned(),
            number_in_force: 5,
            number: 7,
        }],
        ..Reasons::default()
    };
    let why = |counted| {
        let report = report_of(FILE, &frames, &[("a", counted)], reasons.clone());
        report.classes[0].why.join(" | ")
    };
    let anew = "interface eth7 was made anew: the rule in force names index 5, it has 7 now";
    assert_eq!(why(500), anew);
    let both = format!("of 75 % {anew}; of 25 % they have a VLAN tag");
    assert_eq!(why(400), both);
}

#[test]
fn only_the_rules_whose_frames_have_the_cause_are_listed() {
    let frames = even(&[
        (400, frame(5001, &[], false)),
        (200, frame(5002, &[7], false)),
    ]);
    let class = said(&frames, 400);
    assert_eq!(class.why, ["they have a VLAN tag"]);
    assert_eq!((class.rules.len(), class.rules[0].frames), (1, 200));
    assert!(class.rules[0].rule.contains("5002"), "{:?}", class.rules);
    assert_eq!(class.rules[0].example.vlans, [7]);
}

/// Who sends is not in a frame: an idle class of a cgroup beside a busy default is not called well.
#[test]
fn rules_by_cgroup_are_said_not_to_be_judged() {
    let file = format!("{FILE}{UNIT}");
    let frames = even(&[(500, frame(5009, &[], false))]);
    let states = |unit, rest| {
        let counted = [("unit", unit), ("rest", rest)];
        let report = report_of(&file, &frames, &counted, Reasons::default());
        assert!(report.is_well());
        let mut classes = report.classes;
        classes.sort_by(|one, other| one.name.cmp(&other.name));
        [
            (classes[0].state, classes[0].why.join(" ")),
            (classes[1].state, classes[1].why.join(" ")),
        ]
    };
    let not_judged = "could not be judged: rules by cgroup";
    let of_rest = (State::NotAsked, not_judged.to_owned());
    let idle = "; it counted none by them, and 500 that they may claim went elsewhere";
    let of_unit = (State::NotAsked, format!("{not_judged}{idle}"));
    assert_eq!(states(0, 500), [of_rest.clone(), of_unit]);
    // It counts some that may be its own.
    assert_eq!(states(400, 100), [of_rest.clone(), of_rest.clone()]);
    // Without frames that may be its own nothing is open.
    let report = report_of(&file, &[], &[("unit", 0)], Reasons::default());
    assert_eq!(report.classes[0].state, State::Well);
}

/// Before a bottleneck of the class's rate a frame that finds it empty is the whole queue.
#[test]
fn bursts_are_the_largest_queue_before_the_classs_rate() {
    let at = |times: &[u64]| -> Vec<One> {
        let one = frame(5001, &[], false);
        let frames = times.iter().map(|time| One {
            time_ns: FRAME_NS * 1000 + *time,
            ..one.clone()
        });
        frames.collect()
    };
    let every = |gap_ns: u64, count: u64| at(&(0..count).map(|n| n * gap_ns).collect::<Vec<_>>());
    // Ten frames at twice the rate, then as long a silence: 10 - 9 / 2.
    let on_off: Vec<u64> = (0..200)
        .map(|n| (n / 10 * 10 * FRAME_NS) + n % 10 * FRAME_NS / 2)
        .collect();
    for (what, frames, expected_frames) in [
        ("even", every(FRAME_NS, 100), 1.0),
        ("slower", every(2 * FRAME_NS, 100), 1.0),
        ("all at once", every(0, 10), 10.0),
        ("at twice the rate", every(FRAME_NS / 2, 11), 6.0),
        ("on and off", at(&on_off), 5.5),
        (
            "one late by a frame's time",
            at(&[0, 2 * FRAME_NS, 2 * FRAME_NS, 3 * FRAME_NS]),
            2.0,
        ),
    ] {
        let found = said(&frames, frames.len() as u64).burst_bytes;
        let expected = (f64::from(FRAME_BYTES) * expected_frames) as u64;
        assert_eq!(found, Some(expected), "{what}");
    }
}

/// Shows each frame of a busy spell by chance, once in so many, as `bpf/tap.bpf.c` does.
fn sample(frames: &[One], one_in: usize, random: &mut Random) -> Vec<One> {
    let weight = u32::try_from(one_in).unwrap();
    let shown = frames.iter().filter(|_| random.one_in(one_in));
    shown
        .map(|one| One {
            weight,
            ..one.clone()
        })
        .collect()
}

/// Of a share of the frames the counts are multiplied, and the sampling is allowed for: what the class
/// has counted is well, and a tenth less is not.
#[test]
fn a_sample_stands_for_all_frames() {
    const FRAMES: u64 = 40_000;
    let all = even(&[(FRAMES as usize, frame(5001, &[], false))]);
    let mut random = Random::new(1);
    for one_in in [2, 4, 10, 40] {
        let mut mean = 0;
        for _ in 0..20 {
            let shown = sample(&all, one_in, &mut random);
            let class = said(&shown, FRAMES);
            assert_eq!(class.state, State::Well, "1 of {one_in}: {class:?}");
            assert_eq!(class.burst_bytes, None);
            let deviations = 4.0 * (FRAMES as f64 * (one_in - 1) as f64).sqrt();
            let tolerance = class.tolerance_frames as f64;
            assert!(
                (tolerance / deviations - 1.0).abs() < 0.1,
                "{tolerance} {deviations}"
            );
            assert_eq!(
                class.matched.bytes,
                class.matched.frames * u64::from(FRAME_BYTES)
            );
            mean += class.matched.frames / 20;
            // Frames that are not counted with their weight would be missing.
            let missing = FRAMES - 2 * class.tolerance_frames;
            assert_eq!(said(&shown, missing).state, State::Missing, "1 of {one_in}");
        }
        assert!(mean.abs_diff(FRAMES) < FRAMES / 50, "1 of {one_in}: {mean}");
    }
}

#[test]
fn what_keeps_packets_and_is_not_as_it_shall_be_is_a_fault() {
    let frames = even(&[(400, frame(5001, &[], false))]);
    let is_well = |amiss: &[&str]| {
        let reasons = Reasons {
            amiss: amiss.iter().map(|what| (*what).to_owned()).collect(),
            ..Reasons::default()
        };
        report_of(FILE, &frames, &[("a", 400)], reasons).is_well()
    };
    assert!(is_well(&[]));
    assert!(!is_well(&["transmit queue 1: pfifo_fast, expected fq"]));
}
