// SPDX-License-Identifier: MIT OR Apache-2.0
//! `pspacer router`: two routers in a row carry a stream and best effort between network
//! namespaces. The tests assert only counts.

use std::fs;
use std::path::Path;

use crate::common::{pspacer, refused, text};
use crate::hosts::{Host, Net, Running, pspacer_in, reflector};
use serde_json::Value;
use testkit::has;

/// Starts a router, with its configuration in a folder.
fn router(host: &Host, folder: &Path, config: &str) -> Running {
    let path = folder.join("router.toml");
    fs::write(&path, config).unwrap();
    let args = ["router", path.to_str().unwrap(), "--json"];
    Running::start(&host.enter(), &args)
}

/// Returns a configuration between `near` (towards 10.1.0.1) and `far` (towards 10.3.0.2). Its
/// stream is what goes to the reflector's port, and back.
fn config(near: (&str, &str), far: (&str, &str), port: &str, io: (&str, &str)) -> String {
    let ((near, via_near), (far, via_far)) = (near, far);
    let (io_near, io_far) = io;
    format!(
        r#"
period = "5ms"
[[device]]
name = "{near}"
budget = "70mbit"
io = "{io_near}"
[[device]]
name = "{far}"
budget = "70mbit"
io = "{io_far}"
[[route]]
to = "10.1.0.0/24"
device = "{near}"
via = "{via_near}"
[[route]]
to = "10.3.0.0/24"
device = "{far}"
via = "{via_far}"
[[stream]]
name = "there"
to = "10.3.0.2"
port = {port}
rate = "2mbit"
[[stream]]
name = "back"
from = "10.3.0.2"
to = "10.1.0.1"
dscp = 46
rate = "2mbit"
"#
    )
}

/// ```text
/// near 10.1.0.1 --- 10.1.0.2 first 10.2.0.1 --- 10.2.0.2 second 10.3.0.1 --- 10.3.0.2 far
/// ```
struct Row {
    stream: (Running, String),
    other: (Running, String),
    hosts: [Host; 4],
}

/// Makes two routers whose devices use `io` towards the ends, and `between` towards each other.
fn row(net: &Net, io: &str, between: &str) -> (Row, [Running; 2]) {
    let hosts = [net.host(), net.host(), net.host(), net.host()];
    let [near, first, second, far] = &hosts;
    let [_, a] = net.cable(near, "10.1.0.1/24", first, "10.1.0.2/24");
    let [b, c] = net.cable(first, "10.2.0.1/24", second, "10.2.0.2/24");
    let [d, _] = net.cable(second, "10.3.0.1/24", far, "10.3.0.2/24");
    near.ip("route add 10.3.0.0/24 via 10.1.0.2");
    far.ip("route add 10.1.0.0/24 via 10.3.0.1");
    let stream = reflector(&far.enter(), &["--class", "/46"]);
    let other = reflector(&far.enter(), &[]);
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let configs = [
        config((&a, "10.1.0.1"), (&b, "10.2.0.2"), &stream.1, (io, between)),
        config((&c, "10.2.0.1"), (&d, "10.3.0.2"), &stream.1, (between, io)),
    ];
    let routers = [
        router(first, folders[0].path(), &configs[0]),
        router(second, folders[1].path(), &configs[1]),
    ];
    let row = Row {
        stream,
        other,
        hosts,
    };
    (row, routers)
}

/// Returns the summary of a ping.
fn ping(row: &Row, port: &str, size: &str) -> Value {
    let args = ["ping", "10.3.0.2", "--port", port, "--json"];
    let more = [
        "--period", "5ms", "--wait", "5s", "-c", "100", "--size", size,
    ];
    let out = pspacer_in(&row.hosts[0].enter(), &[&args[..], &more].concat());
    serde_json::from_slice(&out.stdout).unwrap()
}

/// Checks that the stream and best effort arrive whole, and returns the routers' reports.
fn nothing_is_lost(row: &Row, routers: [Running; 2]) -> [Value; 2] {
    let (of_stream, of_other) = std::thread::scope(|threads| {
        let beside = threads.spawn(|| ping(row, &row.other.1, "1400"));
        (ping(row, &row.stream.1, "500"), beside.join().unwrap())
    });
    for run in [&of_stream, &of_other] {
        assert_eq!(
            (&run["received"], &run["lost"]),
            (&100.into(), &0.into()),
            "{run}"
        );
        assert_eq!(
            (&run["duplicates"], &run["reordered"]),
            (&0.into(), &0.into()),
            "{run}"
        );
    }
    let reports = routers.map(Running::stop);
    for report in &reports {
        for stream in report["streams"].as_array().unwrap() {
            assert_eq!(stream["sent"], 100, "{report}");
            assert_eq!(stream["dropped"], 0, "{report}");
        }
        let best_effort = report["devices"].as_array().unwrap();
        assert!(best_effort.iter().all(|d| d["sent"] == 100), "{report}");
        for cause in [
            "invalid",
            "no_buffer",
            "no_neighbour",
            "box_full",
            "send_failed",
            "undelivered",
        ] {
            assert_eq!(report[cause], 0, "{cause}: {report}");
        }
        assert_eq!(report["threads"].as_array().unwrap().len(), 5, "{report}");
    }
    reports
}

#[test]
fn two_in_a_row_lose_nothing() {
    let Some(net) = Net::new() else { return };
    let (row, routers) = row(&net, "packet", "auto");
    for router in &routers {
        has(&router.said, ["routing"]);
    }
    for report in nothing_is_lost(&row, routers) {
        // BPF asks for the machine's root, which this test is not.
        assert_eq!(used_by(&report, "AF_PACKET"), 2, "{report}");
    }
}

/// Returns how many devices a router used in this way.
fn used_by(report: &Value, how: &str) -> usize {
    let devices = report["devices"].as_array().unwrap().iter();
    let io = devices.map(|device| device["io"].as_str().unwrap());
    io.filter(|io| io.starts_with(how)).count()
}

/// Returns how many devices of a host have an XDP program.
fn programs(host: &Host) -> usize {
    host.says("ip", &["link"])
        .unwrap()
        .matches("prog/xdp")
        .count()
}

/// Two routers use AF_XDP alone, or one AF_XDP and the other AF_PACKET, where this host allows
/// it.
#[test]
fn two_in_a_row_by_af_xdp_lose_nothing() {
    let Some(net) = Net::of_root() else { return };
    for (between, expected) in [("xdp", 2), ("packet", 1)] {
        let (row, routers) = row(&net, "xdp", between);
        let said: String = routers.iter().map(|r| r.said.as_str()).collect();
        let lacking = ["not permitted", "not supported", "clang was missing"];
        if said.contains("no AF_XDP") && lacking.iter().any(|l| said.contains(l)) {
            eprintln!("SKIPPED: {}", said.trim());
            return;
        }
        assert_eq!(said.matches("routing").count(), 2, "{said}");
        let [_, first, ..] = &row.hosts;
        assert_eq!(programs(first), expected);
        let words = "-d --sched-runtime 1000000 --sched-period 5000000 0 true";
        let words: Vec<_> = words.split(' ').collect();
        let has_deadline = first.says("chrt", &words).is_some();
        for report in nothing_is_lost(&row, routers) {
            assert_eq!(used_by(&report, "AF_XDP,"), expected, "{report}");
            let wish = "ITM: SCHED_DEADLINE, 1ms of every 5ms";
            let granted = report["threads"].to_string().contains(wish);
            assert!(granted || !has_deadline, "{report}");
        }
        assert_eq!(programs(first), 0, "nothing stays");
    }
}

#[test]
fn check_says_the_budgets_and_refuses_with_the_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("router.toml");
    let path = path.to_str().unwrap();
    let good = config(
        ("a", "10.1.0.1"),
        ("b", "10.2.0.2"),
        "8637",
        ("auto", "xdp"),
    );
    fs::write(path, &good).unwrap();
    let out = pspacer(&["router", path, "--check"]);
    let text = text(&out.stdout);
    assert!(out.status.success());
    let line =
        "a: 43,750 bytes a period; 1,250 reserved for 1 streams, 42,500 for best effort; io auto";
    has(&text, [line, "io xdp"]);
    for (from, to, words) in [
        (
            "\"2mbit\"",
            "\"80mbit\"",
            &["50000", "51538 together", "43750"][..],
        ),
        (
            "name = \"b\"",
            "name = \"a\"",
            &["line 8", "`name`", "\"a\""],
        ),
        (
            "10.3.0.2\"",
            "10.9.0.2\"",
            &["line 21", "10.9.0.2", "a route"],
        ),
        ("period", "perod", &["line 2", "perod", "period"]),
        (
            "\"auto\"",
            "\"dpdk\"",
            &["line 6", "`io`", "dpdk", "packet"],
        ),
    ] {
        fs::write(path, good.replacen(from, to, 1)).unwrap();
        let said = refused(&["router", path, "--check"], 1, words);
        has(&said, ["router.toml"]);
    }
    // The devices of this configuration do not exist.
    fs::write(path, &good).unwrap();
    refused(&["router", path], 1, &["device a"]);
}
