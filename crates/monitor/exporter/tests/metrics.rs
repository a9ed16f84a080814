// SPDX-License-Identifier: MIT OR Apache-2.0
//! Metrics of ports whose statistics are known, and what the dashboard and the alerts ask for.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use exporter::{Stalls, families, reservation_families, text};
use host_config::{ClassNames, Host};
use manager_proto::api::LinkView;
use manager_proto::overview::{
    LinkRow, ListenerRow, ManagerRow, Overview, OverviewLink, ReservationRow,
};
use manager_proto::record::Measured;
use stall::{Cause, Confidence, Direction, Side, Stall, StallKind};
use tcpsp::ports::{Port, PortClass};
use tcpsp::stats::{Metric, Stats, Unit};
use tcpsp::{ClassStats, Dynamic, Handle, TypeOptions};
use watch::names::Owner;

use crate::common::{all_types, class, port, rendered};

pub fn value<'a>(text: &'a str, sample: &str) -> &'a str {
    let line = text.lines().find(|line| line.starts_with(sample));
    let line = line.unwrap_or_else(|| panic!("no {sample} in\n{text}"));
    line.rsplit(' ').next().unwrap()
}

#[test]
fn every_statistic_has_its_metric() {
    let text = rendered(&all_types(), 10);
    let class = &all_types()[0].classes[2].psp.stats;
    for row in ClassStats::TABLE
        .iter()
        .filter(|row| row.unit != Unit::Hidden)
    {
        if matches!(
            row.key,
            "over" | "deferred" | "overrun" | "rt_catchup_bytes" | "excess"
        ) {
            // Of a class with periods, checked below.
            continue;
        }
        let (name, cause) = match row.key.strip_prefix("drop_") {
            Some(cause) => ("dropped_frames", format!(",cause=\"{cause}\"")),
            None => (row.key.trim_end_matches("_bytes"), String::new()),
        };
        let unit = match row.unit {
            Unit::Bytes => "_bytes",
            Unit::Rate => "_bps",
            _ => "",
        };
        let total = match row.metric {
            Metric::Counter => "_total",
            Metric::Gauge => "",
        };
        let labels = "device=\"eth0\",qdisc=\"1:\",class=\"1:3\",type=\"dynamic\"";
        let sample = format!("psp_class_{name}{unit}{total}{{{labels}{cause}");
        match (row.value)(class) {
            tcpsp::stats::Value::Number(number) => {
                assert_eq!(value(&text, &sample), number.to_string(), "{sample}");
            }
            tcpsp::stats::Value::Histogram(buckets) => {
                let of = |le: &str| {
                    let sample = format!("psp_class_{name}_bucket{{le=\"{le}\",{labels}}}");
                    value(&text, &sample).parse::<u64>().unwrap()
                };
                assert_eq!(of("0.0"), buckets[0]);
                assert_eq!(of("7.0"), buckets[..4].iter().sum::<u64>());
                assert_eq!(of("+Inf"), buckets.iter().sum::<u64>());
                let count = value(&text, &format!("psp_class_{name}_count{{{labels}}}"));
                assert_eq!(count, of("+Inf").to_string());
                // A sum of latenesses is not known.
                assert!(!text.contains(&format!("psp_class_{name}_sum")));
            }
        }
        assert!(text.contains(&format!("# HELP psp_class_{name}")), "{name}");
    }
    let rt = "psp_class_excess_total{device=\"eth0\",qdisc=\"1:\",class=\"1:4\",type=\"rt\"}";
    let of_rt = all_types()[0].classes[3].psp.stats.excess;
    assert_eq!(value(&text, rt), of_rt.to_string());
    assert!(!text.contains("class=\"1:1\",type=\"normal\",cause=\"limit\""));
    // Whole numbers stay whole.
    let wire = "psp_class_sent_wire_bytes_total{device=\"eth0\",qdisc=\"1:\",class=\"1:1\"";
    assert_eq!(value(&text, wire), ((1u64 << 60) + 1).to_string());
}

#[test]
fn words_and_times() {
    let text = rendered(&all_types(), 10);
    let port = "device=\"eth0\",qdisc=\"1:\"";
    for (word, expected) in [("gap", "0"), ("timer", "1"), ("hybrid", "0")] {
        let sample = format!("psp_qdisc_mode_in_force{{{port},mode=\"{word}\"}}");
        assert_eq!(value(&text, &sample), expected);
    }
    let why = format!("psp_qdisc_why_not_hybrid{{{port},why=\"no_wire_clock\"}}");
    assert_eq!(value(&text, &why), "1");
    let lead_ns = all_types()[0].psp.stats.lead_ns;
    let lead: f64 = value(&text, "psp_qdisc_lead_seconds{").parse().unwrap();
    assert!((lead - lead_ns as f64 / 1e9).abs() < 1e-9);
    // What is not known has no sample, and a reason that is none has no 1.
    let mut known = all_types();
    known[0].psp.stats.line_measured_bps = 0;
    known[0].psp.stats.why_not_hybrid = 0;
    let text = rendered(&known, 10);
    assert!(!text.contains("psp_qdisc_line_measured"));
    assert_eq!(value(&text, &why), "0");
}

#[test]
fn what_has_no_sum_is_not_summed() {
    let dynamic = |minor| class(minor, TypeOptions::Dynamic(Dynamic::default()));
    let ports = [port("eth0", (1..=2).map(dynamic).collect())];
    let text = rendered(&ports, 0);
    assert!(!text.contains("flow_rate_min") && !text.contains("flow_rate_max"));
    let sum = ports[0]
        .classes
        .iter()
        .map(|of| of.psp.stats.flow_rate_sum_bps);
    let expected = sum.sum::<u64>().to_string();
    assert_eq!(value(&text, "psp_class_flow_rate_sum_bps{"), expected);
}

#[test]
fn a_group_and_its_classes_are_counted_once() {
    let normal = |minor, group| {
        let mut class = class(
            minor,
            TypeOptions::Normal {
                quantum_bytes: None,
            },
        );
        class.psp.options.group = group;
        class
    };
    // 1:5 is the group of 1:6 and 1:7, and counts what they do.
    let mut classes = vec![
        normal(1, None),
        normal(5, None),
        normal(6, Some(5)),
        normal(7, Some(5)),
    ];
    let bytes = [100, 30, 10, 20];
    for (class, bytes) in classes.iter_mut().zip(bytes) {
        class.counters.sent_bytes = bytes;
    }
    let ports = [port("eth0", classes)];
    let of = |text: &str, class: &str| {
        let labels = format!("device=\"eth0\",qdisc=\"1:\",class=\"{class}\"");
        let sample = format!("psp_class_sent_bytes_total{{{labels}");
        value(text, &sample).parse::<u64>().unwrap()
    };
    // What the qdisc has sent is 130, whichever have samples of their own.
    assert_eq!(of(&rendered(&ports, 0), "other"), 130);
    assert_eq!(of(&rendered(&ports, 1), "other"), 30);
    assert_eq!(of(&rendered(&ports, 2), "other"), 0);
    assert_eq!(of(&rendered(&ports, 3), "other"), 0);
    let all = rendered(&ports, 4);
    let label = "class=\"1:6\",type=\"normal\",group=\"1:5\"";
    assert!(all.contains(label), "{all}");
    assert!(!all.contains("class=\"1:1\",type=\"normal\",group"));
}

#[test]
fn classes_beyond_the_most_are_summed() {
    let paced = |minor| {
        let of = TypeOptions::Paced {
            rate_bps: 1,
            ceil_bps: None,
            launch: None,
        };
        class(minor, of)
    };
    let ports = [
        port("eth0", (1..=3).map(paced).collect()),
        port("eth1", (4..=6).map(paced).collect()),
    ];
    let text = rendered(&ports, 4);
    let summed = |device: &str| format!("psp_exporter_classes_summed{{device=\"{device}\"");
    assert_eq!(value(&text, &summed("eth0")), "0");
    assert_eq!(value(&text, &summed("eth1")), "2");
    let other = "device=\"eth1\",qdisc=\"1:\",class=\"other\",type=\"other\"";
    let bytes = format!("psp_class_sent_bytes_total{{{other}");
    assert_eq!(value(&text, &bytes), "11000");
    let [_, a, b] = &ports[1].classes[..] else {
        panic!("three classes");
    };
    let drops = format!("psp_class_dropped_frames_total{{{other},cause=\"late\"}}");
    let expected = a.psp.stats.drop_late + b.psp.stats.drop_late;
    assert_eq!(value(&text, &drops), expected.to_string());
    let late = format!("psp_class_late_frames_bucket{{le=\"0.0\",{other}}}");
    let expected = a.psp.stats.late_frames[0] + b.psp.stats.late_frames[0];
    assert_eq!(value(&text, &late), expected.to_string());
    // The sum over a host is the same, however few have samples of their own.
    let sum = |text: &str| -> u64 {
        let lines = text
            .lines()
            .filter(|line| line.starts_with("psp_class_sent_bytes_total{"));
        lines
            .map(|line| value(line, "psp").parse::<u64>().unwrap())
            .sum()
    };
    assert_eq!(sum(&text), sum(&rendered(&ports, 100)));
    // Their number alone decides how many series there are.
    let many = [port("eth0", (1..=500).map(paced).collect())];
    let few = [port("eth0", (1..=5).map(paced).collect())];
    let series = |ports: &[Port]| rendered(ports, 4).lines().count();
    assert_eq!(series(&many), series(&few));
}

#[test]
fn classes_of_the_hosts_file_have_their_names() {
    let file = "[[device]]\nname = \"eth0\"\n[[device.class]]\nname = \"video\"\n\
                rate = \"1mbit\"\nminor = \"8001\"\n";
    let mut names = ClassNames::default();
    let host = Host::read("host.toml", file).unwrap();
    host.devices.iter().for_each(|device| names.add(device));
    let paced = |major, minor| {
        let of = TypeOptions::Paced {
            rate_bps: 1,
            ceil_bps: None,
            launch: None,
        };
        PortClass {
            id: Handle::new(major, minor),
            ..class(1, of)
        }
    };
    let mut ours = port("eth0", vec![paced(0x7073, 0x8001), paced(0x7073, 0x8002)]);
    ours.handle = Handle::new(0x7073, 0);
    let theirs = port("eth1", vec![paced(1, 0x8001)]);
    let text = text::open_metrics(families(&[ours, theirs], 10, &names)).unwrap();
    let sample = "psp_class_sent_bytes_total{device=\"eth0\",qdisc=\"7073:\",class=\"7073:8001\",\
                  type=\"paced\",name=\"video\"} ";
    assert!(text.contains(sample), "{text}");
    let named = text.lines().filter(|line| line.contains("name=\""));
    assert!(named.clone().count() > 10);
    assert!(named.clone().all(|line| line.contains("\"7073:8001\"")));
}

fn stall(cause: Cause, side: Side, ns: u64) -> Stall {
    Stall {
        direction: Direction::ToServer,
        start_ns: 0,
        duration_ns: ns,
        kind: StallKind::Silence,
        bytes_cost: None,
        cause,
        root: None,
        side,
        confidence: Confidence::High,
        evidence: Vec::new(),
        count: 1,
        explanation: String::new(),
        advice: String::new(),
        asked: Default::default(),
        number: None,
    }
}

/// The owner of a connection: a unit, and a container whose id its name may have.
fn owner(unit: Option<&str>, container: Option<&str>) -> Owner {
    Owner {
        unit: unit.map(str::to_owned),
        container: container.map(str::to_owned),
        ..Owner::default()
    }
}

#[test]
fn stalls_are_counted_by_unit_and_units_are_bounded() {
    let mut stalls = Stalls::default();
    let mut add =
        |owner: &Owner, cause| stalls.add(&stall(cause, Side::Sender, 500_000_000), owner);
    // These take no unit's place.
    add(&owner(None, None), Cause::Application);
    add(&owner(None, Some("abc")), Cause::Application);
    add(
        &owner(Some("docker-abc.scope"), Some("abc")),
        Cause::Application,
    );
    add(
        &owner(Some("docker-abd.scope"), Some("abd")),
        Cause::Application,
    );
    for n in 0..1000 {
        let unit = format!("unit-{n:03}.service");
        add(&owner(Some(&unit), None), Cause::Application);
        add(&owner(Some(&unit), Some("web")), Cause::RtoTail);
    }
    let text = text::open_metrics(stalls.families()).unwrap();
    let of = |unit: &str, cause: &str| {
        let labels = format!("{{unit=\"{unit}\",cause=\"{cause}\"}}");
        let count = value(&text, &format!("psp_unit_stalls_total{labels}"));
        let seconds = value(&text, &format!("psp_unit_stalled_seconds_total{labels}"));
        (count.to_owned(), seconds.to_owned())
    };
    let expected = |count: &str, seconds: &str| (count.to_owned(), seconds.to_owned());
    assert_eq!(of("unknown", "application"), expected("1", "0.5"));
    assert_eq!(of("container", "application"), expected("3", "1.5"));
    assert_eq!(of("unit-063.service", "rto-tail"), expected("1", "0.5"));
    assert_eq!(of("other", "rto-tail"), expected("936", "468.0"));
    assert!(!text.contains("unit-064"), "{text}");
    let samples = text
        .lines()
        .filter(|line| line.starts_with("psp_unit_stalls_total"));
    assert_eq!(samples.count(), 65 * 2 + Cause::ALL.len() + 1);
    check_families(&text);
}

#[test]
fn stalls_are_counted_by_cause_and_by_nothing_else() {
    let mut stalls = Stalls::default();
    let series = |stalls: &Stalls| {
        let text = text::open_metrics(stalls.families()).unwrap();
        let samples = text
            .lines()
            .filter(|line| !line.starts_with('#') && !line.contains("unit="));
        (text.clone(), samples.count())
    };
    let (text, at_first) = series(&stalls);
    let setup = "psp_stalls_total{cause=\"connection-setup\",side=\"unknown\"}";
    assert_eq!(value(&text, setup), "0");
    for _ in 0..1000 {
        stalls.add(
            &stall(Cause::SilentPath, Side::Network, 1_500_000_000),
            &Owner::default(),
        );
        stalls.add(
            &stall(Cause::Application, Side::Sender, 1),
            &Owner::default(),
        );
    }
    stalls.connections = 2000;
    let (text, later) = series(&stalls);
    assert_eq!(later, at_first, "{text}");
    let silent = "{cause=\"silent-path\",side=\"network\"}";
    assert_eq!(value(&text, &format!("psp_stalls_total{silent}")), "1000");
    let seconds = format!("psp_stalled_seconds_total{silent}");
    assert_eq!(value(&text, &seconds), "1500.0");
    assert_eq!(value(&text, "psp_stalls_connections_total"), "2000");
    // The evidence may say that another side is to blame: of that there are four.
    stalls.add(
        &stall(Cause::Application, Side::Unknown, 1),
        &Owner::default(),
    );
    assert_eq!(series(&stalls).1, at_first + 2);
    assert_eq!(value(&text, "psp_stalls_watching"), "1");
    stalls.is_watching = false;
    assert_eq!(value(&series(&stalls).0, "psp_stalls_watching"), "0");
}

#[test]
fn a_metric_stands_together_and_once() {
    let ports = [
        all_types(),
        vec![port("eth1", all_types()[0].classes.clone())],
    ]
    .concat();
    let text = rendered(&ports, 10);
    let names = check_families(&text);
    assert!(names > 80, "{names} names");
}

/// Checks that a metric's samples stand together below its type, each once. Returns the number of
/// metrics.
fn check_families(text: &str) -> usize {
    let mut names = BTreeSet::new();
    let mut family = String::new();
    let mut samples = BTreeSet::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            rest.split(' ').next().unwrap().clone_into(&mut family);
            assert!(names.insert(family.clone()), "{family} twice");
        } else if !line.starts_with('#') {
            assert!(line.starts_with(&family), "{line} is not of {family}");
            let sample = line.rsplit_once(' ').unwrap().0;
            assert!(samples.insert(sample.to_owned()), "{sample} twice");
        }
    }
    assert!(text.ends_with("# EOF\n"));
    names.len()
}

#[test]
fn the_older_text_names_counters_as_their_samples() {
    let old = text::prometheus(&rendered(&all_types(), 10));
    for line in old.lines() {
        let Some(rest) = line.strip_prefix("# TYPE ") else {
            continue;
        };
        let (name, kind) = rest.split_once(' ').unwrap();
        assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
        assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
        let sample = match kind {
            "histogram" => format!("{name}_bucket"),
            _ => name.to_owned(),
        };
        assert!(
            old.contains(&format!("\n{sample}{{")) || old.contains(&format!("\n{sample} ")),
            "{name}"
        );
    }
    assert!(!old.contains("# UNIT") && !old.contains("# EOF"));
    let samples = |text: &str| text.lines().filter(|line| !line.starts_with('#')).count();
    assert_eq!(samples(&old), samples(&rendered(&all_types(), 10)));
}

/// All names of samples that a host may have.
fn sample_names() -> BTreeSet<String> {
    let text = rendered(&all_types(), 10);
    let samples = text.lines().filter(|line| !line.starts_with('#'));
    let name = |line: &str| line.split(['{', ' ']).next().unwrap().to_owned();
    samples.map(name).collect()
}

/// The metrics of ours that an expression names.
fn named(expression: &str) -> Vec<&str> {
    let words = expression.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with("psp_")).collect()
}

fn packaged(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../packaging");
    fs::read_to_string(path.join(name)).unwrap()
}

/// Collects the values of all keys `expr`.
fn expressions(json: &serde_json::Value, found: &mut Vec<String>) {
    match json {
        serde_json::Value::Object(map) => {
            for (key, value) in map {
                match value.as_str() {
                    Some(text) if key == "expr" || text.starts_with("label_values(") => {
                        found.push(text.to_owned());
                    }
                    _ => expressions(value, found),
                }
            }
        }
        serde_json::Value::Array(all) => all.iter().for_each(|value| expressions(value, found)),
        _ => {}
    }
}

#[test]
fn the_dashboard_names_metrics_that_exist() {
    let json = serde_json::from_str(&packaged("grafana/psp.json")).unwrap();
    let mut found = Vec::new();
    expressions(&json, &mut found);
    assert!(found.len() >= 10, "{found:?}");
    let known = sample_names();
    for expression in &found {
        assert!(!named(expression).is_empty(), "{expression}");
        for name in named(expression) {
            assert!(known.contains(name), "{name} in {expression}");
        }
    }
}

#[test]
fn the_alerts_name_metrics_that_exist() {
    let rules = packaged("prometheus/psp.rules.yml");
    let known = sample_names();
    let expressions = rules
        .lines()
        .filter_map(|line| line.trim().strip_prefix("expr: "));
    let mut count = 0;
    for expression in expressions {
        assert!(!named(expression).is_empty(), "{expression}");
        for name in named(expression) {
            assert!(known.contains(name), "{name} in {expression}");
        }
        count += 1;
    }
    assert_eq!(count, rules.matches("- alert: ").count());
    for alert in [
        "PspDrops",
        "PspBypassed",
        "PspLate",
        "PspFallback",
        "PspScrapeErrors",
    ] {
        assert!(rules.contains(&format!("- alert: {alert}\n")), "{alert}");
    }
}

/// A reservation with two listeners, of which one was measured at, in a network of two managers.
fn overview() -> Overview {
    let listener = |name: &str, measured| ListenerRow {
        name: name.to_owned(),
        bound_ns: 22_000_000,
        measured,
    };
    let measured = Measured {
        worst_delay_ns: 21_500_000,
        packets: 6000,
        lost_packets: 3,
    };
    let link = LinkView {
        link: "studio".to_owned(),
        period_ns: 10_000_000,
        budget_bytes: 85_962,
        reserved_bytes: 83_696,
        free_bytes: 2266,
    };
    let row = LinkRow {
        link: "studio".to_owned(),
        bytes: 10_462,
        period_ns: Some(10_000_000),
        budget_bytes: Some(85_962),
        free_bytes: Some(2266),
    };
    let manager = |url: &str, problem: Option<&str>| ManagerRow {
        manager: url.to_owned(),
        problem: problem.map(str::to_owned),
    };
    Overview {
        reservations: vec![ReservationRow {
            manager: "http://m1".to_owned(),
            id: "cam1".to_owned(),
            stream_id: "cam1".to_owned(),
            owner: "studio".to_owned(),
            talker: "camera".to_owned(),
            in_force: true,
            not_in_force: Vec::new(),
            expires_in_ns: 1_500_000_000,
            listeners: vec![listener("screen", Some(measured)), listener("wall", None)],
            links: vec![row],
            tightest: Some("studio".to_owned()),
        }],
        links: vec![OverviewLink {
            manager: "http://m1".to_owned(),
            link,
        }],
        managers: vec![
            manager("http://m1", None),
            manager("http://m2", Some("gone")),
        ],
    }
}

#[test]
fn reservations_and_links_have_metrics() {
    let text = text::open_metrics(reservation_families(&overview(), 10)).unwrap();
    let of = "manager=\"http://m1\",reservation=\"cam1\",talker=\"camera\"";
    for (sample, expected) in [
        ("psp_manager_up{manager=\"http://m1\"}".to_owned(), "1"),
        ("psp_manager_up{manager=\"http://m2\"}".to_owned(), "0"),
        (
            format!("psp_reservation_bound_seconds{{{of},listener=\"screen\"}}"),
            "0.022",
        ),
        (
            format!("psp_reservation_bound_seconds{{{of},listener=\"wall\"}}"),
            "0.022",
        ),
        (
            format!("psp_reservation_measured_delay_seconds{{{of},listener=\"screen\"}}"),
            "0.0215",
        ),
        (
            format!("psp_reservation_measured_packets{{{of},listener=\"screen\"}}"),
            "6000",
        ),
        (
            format!("psp_reservation_measured_lost_packets{{{of},listener=\"screen\"}}"),
            "3",
        ),
        (format!("psp_reservation_in_force{{{of}}}"), "1"),
        (format!("psp_reservation_lease_left_seconds{{{of}}}"), "1.5"),
        (
            format!("psp_reservation_link_bytes{{{of},link=\"studio\"}}"),
            "10462",
        ),
        (
            "psp_link_free_bytes{manager=\"http://m1\",link=\"studio\"}".to_owned(),
            "2266",
        ),
        (
            "psp_link_budget_bytes{manager=\"http://m1\",link=\"studio\"}".to_owned(),
            "85962",
        ),
        (
            "psp_link_reserved_bytes{manager=\"http://m1\",link=\"studio\"}".to_owned(),
            "83696",
        ),
        (
            "psp_link_period_seconds{manager=\"http://m1\",link=\"studio\"}".to_owned(),
            "0.01",
        ),
        ("psp_exporter_reservations_left_out".to_owned(), "0"),
    ] {
        assert_eq!(value(&text, &sample), expected, "{sample}");
    }
    // Nobody measured at the wall, and so nothing is said of it.
    let is_measured = |line: &&str| line.contains("_measured_") && line.contains("\"wall\"");
    assert_eq!(text.lines().find(is_measured), None);
}

#[test]
fn reservations_beyond_the_bound_are_counted() {
    let mut overview = overview();
    let of = |n| ReservationRow {
        id: format!("cam{n}"),
        ..overview.reservations[0].clone()
    };
    overview.reservations = (0..7).map(of).collect();
    let text = text::open_metrics(reservation_families(&overview, 3)).unwrap();
    assert_eq!(value(&text, "psp_exporter_reservations_left_out"), "4");
    let bounds = text
        .lines()
        .filter(|line| line.starts_with("psp_reservation_in_force{"));
    assert_eq!(bounds.count(), 3);
}
