// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is said of frames that no class counted, of bursts, and of a sample.

use std::collections::BTreeMap;

use host_config::Host;
use verify::report::{ClassCounted, Report, State, Window, report};
use verify::tally::Tally;
use verify::tap::Shown;
use verify::{Beside, Matcher};

const FILE: &str = r#"
[[device]]
name = "d0"
line = "1gbit"
default = "rest"
[[device.class]]
name = "a"
rate = "10mbit"
match = [{ to_port = 5001, protocol = "udp" }, { to_port = 5002, protocol = "udp" }]
[[device.class]]
name = "rest"
type = "normal"
"#;

/// An Ethernet frame of UDP to a port, with its tags, and options of IPv4.
fn frame(port: u16, tags: &[u16], has_options: bool) -> Vec<u8> {
    let mut bytes = vec![2; 12];
    for tag in tags {
        bytes.extend([0x81, 0, (tag >> 8) as u8, *tag as u8]);
    }
    let options = if has_options { 4 } else { 0 };
    bytes.extend([8, 0, 0x45 + options / 4, 0, 0, 28 + options]);
    bytes.extend([0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    bytes.extend(vec![1; usize::from(options)]);
    bytes.extend([0, 9, (port >> 8) as u8, port as u8, 0, 8, 0, 0]);
    bytes
}

/// Tallies frames that come 1.2 ms apart, each for `weight`, and reports what is said of class `a` if it
/// counted so many.
fn said(frames: &[Vec<u8>], weight: u32, counted: u64) -> Report {
    let host = Host::read("d0.toml", FILE).unwrap();
    let device = &host.devices[0];
    let minors: Vec<u16> = device.classes.iter().map(|class| class.minor).collect();
    let matcher = Matcher::new(&device.rules, &minors, &|_| None);
    let rates = BTreeMap::from([(minors[0], 10_000_000)]);
    let mut tally = Tally::new(matcher, true, rates);
    for (n, bytes) in (1..).zip(frames) {
        let shown = Shown {
            time_ns: n * 1_200_000,
            len_bytes: 1500,
            weight,
            beside: Beside {
                mark: 0,
                priority: 0,
                interface: 0,
            },
            tag: None,
            ethertype: 0x0800,
            segments: 1,
            segment_bytes: 0,
            bytes,
        };
        tally.take(&shown, device.options.default_minor);
    }
    let class = ClassCounted {
        name: "a".to_owned(),
        frames: counted,
        bytes: 1500 * counted,
        rate_bps: 10_000_000,
    };
    let window = Window {
        time_ns: 1_000_000_000,
        classes: BTreeMap::from([(minors[0], class)]),
        rules: device
            .rules
            .iter()
            .map(|rule| format!("{:?}", rule.matching))
            .collect(),
        ..Window::default()
    };
    let packets = frames.len() as u64 * u64::from(weight);
    report(
        "d0",
        &tally.classes,
        &window,
        (0, packets),
        1.0 / f64::from(weight),
        0,
    )
}

fn repeated(of: &[(usize, Vec<u8>)]) -> Vec<Vec<u8>> {
    let all = of.iter().flat_map(|(count, one)| vec![one.clone(); *count]);
    all.collect()
}

#[test]
fn two_causes_are_named_with_their_shares() {
    let frames = repeated(&[
        (500, frame(5001, &[], false)),
        (300, frame(5001, &[7], false)),
        (100, frame(5001, &[], true)),
    ]);
    let report = said(&frames, 1, 500);
    let class = &report.classes[0];
    assert_eq!(class.state, State::Missing);
    assert_eq!(
        class.why,
        [
            "of 75 %: they have a VLAN tag",
            "of 25 %: they have options or extension headers"
        ]
    );
    // 200 are explained by neither, nor by both.
    assert_eq!(said(&frames, 1, 700).classes[0].why, ["unknown"]);
    assert_eq!(said(&frames, 1, 900).classes[0].state, State::Well);
}

#[test]
fn only_the_rules_whose_frames_have_the_cause_are_listed() {
    let frames = repeated(&[
        (400, frame(5001, &[], false)),
        (200, frame(5002, &[7], false)),
    ]);
    let class = &said(&frames, 1, 400).classes[0];
    assert_eq!(class.why, ["they have a VLAN tag"]);
    assert_eq!((class.rules.len(), class.rules[0].frames), (1, 200));
    assert!(class.rules[0].rule.contains("5002"), "{:?}", class.rules);
    assert_eq!(class.rules[0].example.vlans, [7]);
}

/// Frames of 1,500 bytes each 1.2 ms are 10 Mbit/s: one is ahead. Ten at once are ten.
#[test]
fn bursts_are_the_queue_before_the_classs_rate() {
    let even = repeated(&[(100, frame(5001, &[], false))]);
    assert_eq!(said(&even, 1, 100).classes[0].burst_bytes, Some(1500));
    // Each stands for four: the rate is four times the class's, and bursts are not known.
    let report = said(&even, 4, 400);
    let class = &report.classes[0];
    assert_eq!((class.state, class.burst_bytes), (State::Well, None));
    assert_eq!((class.matched.frames, class.matched.bytes), (400, 600_000));
    // The sampling is allowed for: four deviations of 100 frames that stand for four each.
    assert!(
        (138..160).contains(&class.tolerance_frames),
        "{}",
        class.tolerance_frames
    );
}
