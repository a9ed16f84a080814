// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a file says of launch times: which collide, what is refused, and that no frame of the
//! scheduler's core is later than the bound.

use std::collections::{BTreeMap, VecDeque};

use host_config::{Beside, Facts, Host, LaunchReport, Port, Target, launches, plan};
use pace::{ClassConfig, ClassId, Config, Decision, Mode, Order, Scheduler};
use proptest::prelude::*;

const GBIT: u64 = 1_000_000_000;
const LEN: u32 = 1514;
/// Half a smallest gap: what mode gap itself is off by.
const HALF_GAP_NS: u64 = 42 * 8;

/// A file of one device: 1 Gbit/s, these lines, and classes of these names and lines.
fn file(device: &str, classes: &[(&str, &str)]) -> String {
    let head = format!("[[device]]\nname = \"eth0\"\nline = \"1gbit\"\n{device}\n");
    let class =
        |(name, lines): &(&str, &str)| format!("[[device.class]]\nname = \"{name}\"\n{lines}\n");
    head + &classes.iter().map(class).collect::<String>()
}

fn admitted(text: &str) -> Result<Vec<LaunchReport>, String> {
    let host = Host::read("f", text).map_err(|error| error.to_string())?;
    launches(&host.devices[0], None, LEN).map_err(|error| error.to_string())
}

/// A class with launch times at 100 Mbit/s, and these entries.
fn timed(entries: &str) -> String {
    format!("rate = \"100mbit\"\ntxtime = \"tai\"\nlaunches = [{entries}]")
}

/// What collides, and how late, of two classes with these entries, where the guard band keeps
/// other traffic away.
fn two(a: &str, b: &str) -> Vec<(Vec<String>, Option<u64>)> {
    let text = file("guard = true", &[("a", &timed(a)), ("b", &timed(b))]);
    let reports = admitted(&text).unwrap().into_iter();
    reports
        .map(|report| (report.collides_with, report.late_at_most_ns))
        .collect()
}

fn with(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn instants_collide_by_their_distance_modulo_the_common_divisor() {
    // 100 bytes are 124 on the wire, 992 ns.
    let first = "{ every = \"1ms\", at = \"0us\", size = \"100b\" }";
    let at = |every: &str, at: &str| {
        format!("{{ every = \"{every}\", at = \"{at}\", size = \"100b\" }}")
    };
    let apart = vec![(with(&[]), Some(0)), (with(&[]), Some(0))];
    assert_eq!(two(first, &at("1ms", "992ns")), apart);
    assert_eq!(two(first, &at("1ms", "999008ns")), apart);
    // Each waits for one frame, and may have another due before its own has ended.
    let late = Some(2 * 992);
    let together = vec![(with(&["b"]), late), (with(&["a"]), late)];
    assert_eq!(two(first, &at("1ms", "991ns")), together);
    assert_eq!(two(first, &at("1ms", "999009ns")), together);
    // 1 ms and 1.25 ms meet each 250 us.
    assert_eq!(two(first, &at("1250us", "100us")), apart);
    assert_eq!(two(first, &at("1250us", "500us")), together);
    // No place is known.
    assert_eq!(two(first, "{ every = \"1ms\", size = \"100b\" }"), together);
}

/// What is late occupies the line later: b is in nobody's way until a makes it late.
#[test]
fn collisions_go_on() {
    let entry = |at: &str| format!("{{ every = \"1ms\", at = \"{at}\", size = \"100b\" }}");
    let text = file(
        "guard = true",
        &[
            ("a", &timed(&entry("0ns"))),
            ("b", &timed(&entry("900ns"))),
            ("c", &timed(&entry("1900ns"))),
            ("d", &timed(&entry("500us"))),
        ],
    );
    let all = admitted(&text).unwrap();
    let late: Vec<_> = all.iter().map(|report| report.late_at_most_ns).collect();
    assert_eq!(late, [Some(3 * 992), Some(3 * 992), Some(3 * 992), Some(0)]);
    assert!(all[2].collides_with.contains(&"b".to_owned()), "{all:?}");
}

/// Frames of one class wait for each other at the class's rate.
#[test]
fn entries_of_a_class_wait_by_its_rate() {
    let entries = "{ every = \"1ms\", at = \"0us\", size = \"100b\", count = 3 }, \
                   { every = \"1ms\", at = \"20us\", size = \"100b\" }";
    let text = file("guard = true", &[("a", &timed(entries))]);
    let all = admitted(&text).unwrap();
    // 100 bytes at 100 Mbit/s are 8 us: the last of three begins at 16 us, the other at 24.
    assert_eq!(all[0].late_at_most_ns, Some(3 * 8_000));
    assert_eq!(all[1].late_at_most_ns, Some(3 * 8_000));
    assert_eq!(all[1].collides_with, with(&["a (1)"]));
}

#[test]
fn other_traffic_has_a_frame_on_the_wire() {
    let entry = timed("{ every = \"1ms\", at = \"0us\", size = \"100b\" }");
    let late = |device: &str, others: &[(&str, &str)]| {
        let mut classes = vec![("a", &*entry)];
        classes.extend(others);
        let report = &admitted(&file(device, &classes)).unwrap()[0];
        report
            .late_at_most_ns
            .ok_or_else(|| report.unbounded.clone().unwrap())
    };
    let frame_ns = 1538 * 8;
    assert_eq!(late("", &[]), Ok(frame_ns));
    assert_eq!(late("guard = true", &[]), Ok(0));
    let paced = ("p", "rate = \"700mbit\"");
    assert_eq!(late("guard = true", &[paced]), Ok(frame_ns + 992));
    let no_bound = |device, others: &[(&str, &str)], why: &str| {
        let said = late(device, others).unwrap_err();
        assert!(said.contains(why), "{said}");
    };
    no_bound("", &[("p", "rate = \"900mbit\"")], "the classes may take");
    no_bound("order = \"rate\"", &[], "`order`");
    no_bound("", &[("d", "type = \"dynamic\"")], "dynamic class d");
    no_bound("queues = \"mq\"", &[], "mq");
}

#[test]
fn what_does_not_fit_is_refused() {
    let both = |most: &str| {
        let a = format!("{{ every = \"1ms\", at = \"0us\", size = \"100b\", {most} }}");
        let b = "{ every = \"1ms\", at = \"0us\", size = \"100b\" }";
        admitted(&file(
            "guard = true",
            &[("a", &timed(&a)), ("b", &timed(b))],
        ))
    };
    assert_eq!(both("late_at_most = \"2us\"").unwrap().len(), 2);
    assert_eq!(
        both("late_at_most = \"1us\"").unwrap_err(),
        "eth0: a: frames may leave 1.984 µs late, expected at most 1 µs; collides with b"
    );
    for (entry, words) in [
        (
            "{ every = \"100us\", at = \"0us\", size = \"1514b\" }",
            "eth0: class a: `launches` take 121.1 % of its rate, expected at most 100 %",
        ),
        (
            "{ every = \"1ms\", at = \"1ms\", size = \"100b\" }",
            "f:9: `at` is \"1ms\", expected a time below `every` such as \"0us\"",
        ),
        (
            "{ every = \"1ms\" }",
            "f:9: an entry of `launches` lacks `size`",
        ),
        (
            "{ evry = \"1ms\", size = \"100b\" }",
            "f:9: unknown key `evry` in an entry of `launches`; did you mean `every`?",
        ),
    ] {
        let said = admitted(&file("", &[("a", &timed(entry))])).unwrap_err();
        assert!(said.contains(words), "{said}");
    }
    let entry = "launches = [{ every = \"1ms\", size = \"100b\" }]";
    for (lines, words) in [
        ("rate = \"1mbit\"", "`launches` is "),
        ("type = \"normal\"", "expected it only with type \"paced\""),
        (
            "rate = \"1mbit\"\ntxtime = \"tai\"\ntxtime_deadline = true",
            "expected none with `txtime_deadline`",
        ),
    ] {
        let text = file("", &[("a", &format!("{lines}\n{entry}"))]);
        let said = admitted(&text).unwrap_err();
        assert!(said.contains(words), "{said}");
    }
    let unknown = file("", &[("a", &timed("{ every = \"1ms\", size = \"100b\" }"))]);
    let said = admitted(&unknown.replace("1gbit", "auto")).unwrap_err();
    assert!(said.contains("the device names no rate"), "{said}");
}

/// The example of docs/use/host-file.md, and what it says of it.
#[test]
fn the_documents_example() {
    let text = include_str!("../../../../docs/use/host-file.md");
    let (_, text) = text.split_once("### Launch times that collide").unwrap();
    let block = |text: &str, of: &str| {
        let (_, rest) = text.split_once(&format!("```{of}\n")).unwrap();
        rest.split_once("```").unwrap().0.to_owned()
    };
    let classes = block(text, "toml");
    let host = Host::read("f", &(file("", &[]) + &classes)).unwrap();
    // The longest frame has a VLAN tag.
    let launches = launches(&host.devices[0], None, LEN + 4).unwrap();
    let facts = Facts {
        index: 1,
        name: "eth0".to_owned(),
        is_ethernet: true,
        queues: 1,
        speed_bps: None,
        has_made_up_speed: false,
        max_frame_bytes: 1514,
    };
    let port = Port::new(&facts, &[], &[], &[]);
    let plan = plan(&Target::nothing(), &port, false).unwrap();
    let beside = Beside {
        launches,
        ..Beside::default()
    };
    let said = host_config::text(&plan, &beside, &port);
    let (_, said) = said.split_once('\n').unwrap();
    let (_, text) = text.split_once("```toml").unwrap();
    let (_, text) = text.split_once("```\n").unwrap();
    assert_eq!(said, block(text, ""));
}

/// An entry of a random class.
#[derive(Clone, Debug)]
struct Entry {
    every_us: u64,
    at_ns: u64,
    size_bytes: u32,
    count: u32,
}

fn entries() -> impl Strategy<Value = Vec<Entry>> {
    let every_us = prop::sample::select(vec![125u64, 250, 500, 1000, 1200]);
    let entry = (every_us, 0..125_000u64, 60..=LEN, 1..4u32).prop_map(
        |(every_us, at_ns, size_bytes, count)| Entry {
            every_us,
            at_ns,
            size_bytes,
            count,
        },
    );
    prop::collection::vec(entry, 1..4)
}

/// A frame that waits: its launch time, its entry, its length.
type Due = (u64, usize, u32);

/// Runs classes in mode gap, one frame after the other on the wire. Returns the largest lateness of
/// each entry.
fn run(classes: &[(u64, Vec<Entry>)], paced_bps: &[u64], guard_band: bool) -> Vec<u64> {
    let config = Config {
        mode: Mode::Gap,
        order: Order::Next,
        guard_band,
        ..Config::ethernet(GBIT, LEN)
    };
    let mut port = Scheduler::new(&config, 0).unwrap();
    let mut waiting: BTreeMap<ClassId, VecDeque<Due>> = BTreeMap::new();
    let mut late_ns = Vec::new();
    for (rate_bps, entries) in classes {
        let rate_bps = *rate_bps;
        let id = port
            .add_class(&ClassConfig::Launching { rate_bps })
            .unwrap();
        let mut due: Vec<Due> = Vec::new();
        for entry in entries {
            let number = late_ns.len();
            late_ns.push(0);
            for k in 1..20_000 / entry.every_us {
                let at_ns = k * entry.every_us * 1000 + entry.at_ns;
                due.extend((0..entry.count).map(|_| (at_ns, number, entry.size_bytes)));
            }
        }
        due.sort_unstable();
        port.activate_at(id, due[0].0, 0).unwrap();
        waiting.insert(id, due.into());
    }
    for rate_bps in paced_bps {
        let rate_bps = *rate_bps;
        let id = port.add_class(&ClassConfig::Paced { rate_bps }).unwrap();
        port.activate(id, 0).unwrap();
    }
    let quantum_bytes = None;
    let rest = port
        .add_class(&ClassConfig::Normal { quantum_bytes })
        .unwrap();
    port.activate(rest, 0).unwrap();
    let mut now_ns = 0;
    while waiting.values().any(|frames| !frames.is_empty()) {
        match port.next(now_ns) {
            Decision::Send(id) => {
                let Some(frames) = waiting.get_mut(&id) else {
                    port.sent(id, LEN, true, now_ns).unwrap();
                    now_ns += u64::from(LEN + 24) * 8;
                    continue;
                };
                let (at_ns, entry, bytes) = frames.pop_front().unwrap();
                late_ns[entry] = now_ns.saturating_sub(at_ns).max(late_ns[entry]);
                port.sent(id, bytes, false, now_ns).unwrap();
                if let Some((at_ns, ..)) = frames.front() {
                    port.activate_at(id, *at_ns, now_ns).unwrap();
                }
                now_ns += u64::from(bytes + 24) * 8;
            }
            Decision::Gap { wire_bytes } => {
                port.gap_sent(wire_bytes);
                now_ns += u64::from(wire_bytes) * 8;
            }
            Decision::Wait { until_ns } => now_ns = until_ns.max(now_ns + 1),
            Decision::Idle => panic!("idle"),
        }
    }
    late_ns
}

proptest! {
    #![proptest_config(testkit::cases(300))]

    /// The scheduler's core is never later than what a plan says.
    #[test]
    fn no_frame_is_later_than_the_bound(
        classes in prop::collection::vec((entries(), 1..9u64), 1..4),
        paced_mbit in prop::collection::vec(50..200u64, 0..3),
        guard in any::<bool>(),
    ) {
        // Each class has what it needs and a little more, or several times that.
        let classes: Vec<_> = classes.into_iter().map(|(entries, times)| {
            let bits = |e: &Entry| u64::from(e.size_bytes * 8 * e.count) * 1_000_000 / e.every_us;
            (times * entries.iter().map(bits).sum::<u64>() + 1_000_000, entries)
        }).collect();
        let paced_bps: Vec<u64> = paced_mbit.iter().map(|mbit| mbit * 1_000_000).collect();
        let mut lines = Vec::new();
        for (number, (rate_bps, entries)) in classes.iter().enumerate() {
            let entries: Vec<_> = entries.iter().map(|e| format!(
                "{{ every = \"{}us\", at = \"{}ns\", size = \"{}b\", count = {} }}",
                e.every_us, e.at_ns % (e.every_us * 1000), e.size_bytes, e.count
            )).collect();
            lines.push((format!("l{number}"), format!(
                "rate = \"{rate_bps}bit\"\ntxtime = \"tai\"\nlaunches = [{}]", entries.join(", ")
            )));
        }
        for (number, rate_bps) in paced_bps.iter().enumerate() {
            lines.push((format!("p{number}"), format!("rate = \"{rate_bps}bit\"")));
        }
        let lines: Vec<_> = lines.iter().map(|(name, text)| (&**name, &**text)).collect();
        let Ok(reports) = admitted(&file(&format!("guard = {guard}"), &lines)) else {
            // More than the line.
            return Ok(());
        };
        let late_ns = run(&classes, &paced_bps, guard);
        for (report, late_ns) in reports.iter().zip(late_ns) {
            if let Some(most_ns) = report.late_at_most_ns {
                prop_assert!(late_ns <= most_ns + HALF_GAP_NS, "{late_ns} ns, {report:?}");
            }
        }
    }
}
