// SPDX-License-Identifier: MIT OR Apache-2.0
//! Scenarios with segments, streams and nodes: values that are read, and errors.

use scenario::isochronous::{Backoff, Isochronous, StreamKind};
use scenario::{Options, parse};

const GOOD: &str = r#"name = "s"
title = "t"
duration = "1s"
[[host]]
name = "a"
[[host]]
name = "r"
[[host]]
name = "b"
[[segment]]
name = "in"
hosts = ["a", "r"]
[[segment]]
name = "out"
hosts = ["r", "b"]
[[stream]]
name = "video"
type = "ping"
from = "a"
to = "b"
payload = "1208b"
packets = 10
[[stream]]
name = "bulk"
type = "nrt"
from = "b"
to = "a"
rate = "10mbit"
[[node]]
host = "r"
nrt = "20000b"
"#;

fn read(text: &str) -> Isochronous {
    let scenario = parse("s.toml", text, &Options::default()).unwrap();
    scenario.cells[0].isochronous.clone().unwrap()
}

#[test]
fn paths_budgets_and_shares() {
    let of = read(GOOD);
    assert_eq!(
        (of.period_ns, of.slot_ns, of.budget_pct),
        (10_000_000, 1_000_000, 70)
    );
    assert_eq!(of.segments[0].backoff, Some(Backoff::Standard));
    let hops: Vec<_> = of.streams[0]
        .path
        .iter()
        .map(|h| (h.segment, h.from, h.to))
        .collect();
    assert_eq!(hops, [(0, 0, 1), (1, 1, 2)]);
    let back: Vec<_> = of.streams[0]
        .back()
        .iter()
        .map(|h| (h.segment, h.from, h.to))
        .collect();
    assert_eq!(back, [(1, 2, 1), (0, 1, 0)]);
    assert!(of.streams[1].back().is_empty());
    assert!(matches!(
        of.streams[0].kind,
        StreamKind::Rt {
            packets: 10,
            reserve: 10,
            ping: Some(true)
        }
    ));
    // The budget is 70 % of 100 Mbit/s in 10 ms. The reservation is 10 packets of 1274 bytes in
    // both directions.
    assert_eq!(of.budget_bytes(0), 87_500);
    assert_eq!(of.reserved_bytes(0, 0), 2 * 12_740);
    assert_eq!(of.nrt_bytes(0, 1), 20_000);
    assert_eq!(of.nrt_bytes(0, 0), 87_500 - 25_480 - 20_000);
    // On a switch each line has a budget of its own.
    let text = GOOD.replacen("name = \"in\"", "name = \"in\"\ntype = \"switched\"", 1);
    let of = read(&text);
    assert_eq!(of.reserved_bytes(0, 0), 12_740);
    assert_eq!(of.nrt_bytes(0, 0), 87_500 - 12_740);
}

#[test]
fn errors_are_rejected_with_their_line() {
    let cases = [
        (
            "hosts = [\"a\", \"r\"]",
            "hosts = [\"a\"]",
            "s.toml:12: `hosts` is",
        ),
        (
            "hosts = [\"a\", \"r\"]",
            "hosts = [\"a\", \"a\"]",
            "a list of hosts, each once, 2 to 64",
        ),
        (
            "hosts = [\"a\", \"r\"]",
            "hosts = [\"a\", \"r\"]\nrate = \"1gbit\"",
            "expected \"10mbit\" or \"100mbit\"",
        ),
        (
            "hosts = [\"a\", \"r\"]",
            "hosts = [\"a\", \"r\"]\npropagation = \"3us\"",
            "`propagation` is \"3us\", expected 0 to 2400 of its smallest unit",
        ),
        (
            "hosts = [\"a\", \"r\"]",
            "hosts = [\"a\", \"r\"]\ntype = \"switched\"\nbackoff = \"standard\"",
            "nobody collides on a switched segment",
        ),
        (
            "hosts = [\"r\", \"b\"]",
            "hosts = [\"r\", \"a\"]",
            "expected another host, which segments connect with `a`",
        ),
        (
            "packets = 10",
            "packets = 40",
            "reservations of segment `in` at `a` come to 101920 bytes a period with this stream's \
             50960, and 70 % of 100000000 bit/s are 87500",
        ),
        (
            "packets = 10",
            "packets = 10\nreserve = 9",
            "`reserve` is \"9\", expected a whole number, 10 to 10000",
        ),
        (
            "packets = 10",
            "packets = 10\nrate = \"1mbit\"",
            "only nrt streams have it",
        ),
        ("rate = \"10mbit\"", "batch = 2", "lacks `rate`"),
        (
            "nrt = \"20000b\"",
            "nrt = \"70000b\"",
            "expected at most 62020 bytes a period: of the 87500 that segment `in` may carry 25480",
        ),
        (
            "nrt = \"20000b\"",
            "phase = \"11ms\"",
            "`phase` is \"11ms\"",
        ),
        (
            "[[node]]",
            "[[node]]\nhost = \"r\"\n[[node]]",
            "a host without a node",
        ),
        (
            "duration = \"1s\"",
            "duration = \"1s\"\n[itm]\nslot = \"6ms\"",
            "`slot` is \"6ms\"",
        ),
        (
            "[[segment]]\nname = \"in\"",
            "[[window]]\nname = \"w\"\n[[segment]]\nname = \"in\"",
            "`[[window]]` beside `[[segment]]`, expected one or the other",
        ),
        (
            "[[node]]",
            "[[bound]]\nflow = \"x\"\nmetric = \"over\"\nmax = 0\n[[node]]",
            "\"x\"",
        ),
    ];
    for (from, to, expected) in cases {
        let text = GOOD.replacen(from, to, 1);
        assert_ne!(text, GOOD, "{from}");
        let error = parse("s.toml", &text, &Options::default());
        let error = error.map(|_| ()).unwrap_err().to_string();
        assert!(error.contains(expected), "{to}: {error}");
    }
}
