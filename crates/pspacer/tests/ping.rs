// SPDX-License-Identifier: MIT OR Apache-2.0
//! `pspacer ping` and `pspacer reflect`, on the loopback and between network namespaces. The
//! tests assert only counts, and what holds on any clock.

use crate::hosts;

use std::net::UdpSocket;

use crate::common::{pspacer, refused, well};
use crate::hosts::{pspacer_in, reflector};
use serde_json::Value;
use testkit::{has, has_none};

fn value(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap()
}

#[test]
fn all_probes_are_answered_on_the_loopback() {
    let (reflector, port) = reflector(&[], &["--bind", "127.0.0.1"]);
    let folder = tempfile::tempdir().unwrap();
    let plot = folder.path().join("round-trips.svg");
    let out = pspacer(&[
        "ping",
        "127.0.0.1",
        "--port",
        &port,
        "--period",
        "2ms",
        "--count",
        "50",
        "--size",
        "200",
        "--class",
        "6/46",
        "--json",
        "--plot",
        plot.to_str().unwrap(),
    ]);
    assert_eq!(out.status.code(), Some(0));
    let run = value(&out.stdout);
    assert_eq!(run["format"], "pspacer-ping-1");
    for (key, expected) in [
        ("sent", 50),
        ("received", 50),
        ("lost", 0),
        ("strangers", 0),
    ] {
        assert_eq!(run[key], expected, "{key}: {run}");
    }
    for key in [
        "round_trip",
        "one_way",
        "one_way_with_wait",
        "way_back",
        "send_late",
    ] {
        let delays = &run[key];
        let bins = delays["histogram"].as_array().unwrap();
        let counted: u64 = bins.iter().map(|b| b["count"].as_u64().unwrap()).sum();
        assert_eq!((delays["count"].as_u64(), counted), (Some(50), 50), "{run}");
        let of = |key: &str| delays[key].as_u64().unwrap();
        assert!(
            of("min_ns") <= of("p50_ns") && of("p50_ns") <= of("max_ns"),
            "{run}"
        );
    }
    let svg = std::fs::read_to_string(&plot).unwrap();
    has(&svg, ["Round trips to 127.0.0.1"]);
    // predict reads the JSON of ping.
    let measured = folder.path().join("ping.json");
    std::fs::write(&measured, &out.stdout).unwrap();
    let out = pspacer(&[
        "predict",
        measured.to_str().unwrap(),
        "--round-trip",
        "--hops",
        "0",
        "--json",
    ]);
    let predicted = value(&out.stdout);
    let found = &predicted["measured"];
    let classes = found["counts"].as_array().unwrap();
    let classed: u64 = classes.iter().map(|c| c.as_u64().unwrap()).sum();
    assert_eq!(
        classed + found["beyond"].as_u64().unwrap(),
        50,
        "{predicted}"
    );
    let stopped = reflector.stop();
    assert_eq!(stopped["answered"], 50, "{stopped}");
}

#[test]
fn lines_are_those_of_ping() {
    let (_reflector, port) = reflector(&[], &["--bind", "127.0.0.1"]);
    let shown = well(&["ping", "127.0.0.1", "--port", &port, "-c", "3"]);
    assert!(shown.starts_with("PING 127.0.0.1:"), "{shown}");
    has(
        &shown,
        [
            "52 bytes from 127.0.0.1: seq=2 time=",
            "3 probes sent, 3 received, 0 % lost",
            "SO_TIMESTAMPING",
            "sender: SCHED_",
        ],
    );
    let shown = well(&["ping", "127.0.0.1", "--port", &port, "-c", "3", "-q"]);
    has_none(&shown, ["seq=2 time"]);
}

#[test]
fn nobody_there_is_1_and_the_threshold_is_3() {
    // This port is open and never answers.
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port().to_string();
    let at = ["ping", "127.0.0.1", "--port", &port, "--json", "-c", "3"];
    let out = pspacer(&[&at[..], &["--period", "1ms", "--wait", "10ms"]].concat());
    assert_eq!(out.status.code(), Some(1));
    assert_eq!(value(&out.stdout)["lost"], 3);
    let (_reflector, port) = reflector(&[], &["--bind", "127.0.0.1"]);
    let at = ["ping", "127.0.0.1", "--port", &port, "--json"];
    // ping ends at the first round trip above a nanosecond.
    let out = pspacer(&[&at[..], &["--stop-above", "1ns"]].concat());
    assert_eq!(out.status.code(), Some(3));
    assert_eq!(value(&out.stdout)["above"]["sequence"], 0);
}

#[test]
fn the_reflector_answers_probes_alone_and_within_its_rate() {
    let (reflector, port) = reflector(&[], &["--bind", "127.0.0.1", "--max-rate", "5"]);
    let other = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = format!("127.0.0.1:{port}");
    other.send_to(b"no probe", &address).unwrap();
    let at = ["ping", "127.0.0.1", "--port", &port, "--json"];
    let out = pspacer(&[&at[..], &["-c", "20", "--period", "1ms", "--wait", "50ms"]].concat());
    let received = value(&out.stdout)["received"].as_u64().unwrap();
    let stopped = reflector.stop();
    assert_eq!(stopped["invalid"], 1);
    assert_eq!(stopped["answered"], received);
    let over = stopped["over_rate"].as_u64().unwrap();
    assert_eq!(received + over, 20, "{stopped}");
    assert!(over > 0, "{stopped}");
}

#[test]
fn what_is_refused() {
    for (args, status, words) in [
        (
            &["ping", "127.0.0.1", "--period", "0s"][..],
            2,
            "'0s' for '--period",
        ),
        (&["ping", "127.0.0.1", "--size", "51"], 2, "52 to 65507"),
        (&["ping", "127.0.0.1", "--class", "x"], 2, "1:10"),
        (&["ping", "no.such.host.invalid"], 2, "no.such.host.invalid"),
        (&["ping"], 2, "<HOST>"),
        (
            &["reflect", "--bind", "203.0.113.1", "--port", "0"],
            1,
            "203.0.113.1",
        ),
    ] {
        refused(args, status, &[words]);
    }
}

#[test]
fn between_namespaces() {
    let Some(net) = hosts::Net::new() else { return };
    let [near, far] = [net.host(), net.host()];
    net.cable(&near, "10.1.0.1/24", &far, "10.1.0.2/24");
    let (reflector, port) = reflector(&far.enter(), &[]);
    let args = ["ping", "10.1.0.2", "--port", &port, "--synced", "--json"];
    let more = ["-c", "100", "--period", "1ms", "--size", "1400"];
    let out = pspacer_in(&near.enter(), &[&args[..], &more].concat());
    let run = value(&out.stdout);
    assert_eq!(
        (&run["received"], &run["implausible"]),
        (&100.into(), &0.into()),
        "{run}"
    );
    assert_eq!(run["one_way"]["count"], 100);
    // The kernel begins to add timestamps a moment after the request.
    assert!(run["kernel_stamped"].as_u64().unwrap() > 50, "{run}");
    assert_eq!(reflector.stop()["answered"], 100);
}
