// SPDX-License-Identifier: MIT OR Apache-2.0
//! `pspacer renew`, `reserve --replace`, `reservations --parts`, `release --part`,
//! `topology` and `manager --check` on loopback.

use std::fs;

use serde_json::{Value, json};

use crate::common::{pspacer, text};
use crate::reservations::{ACCESS, Pair, RESERVE, TOPOLOGY, WIRE_BYTES, folder, manager};
use testkit::{has, has_none, until};

const S: u64 = 1_000_000_000;

/// A reservation of this id, for ten minutes.
fn words(id: &str) -> [&str; 6] {
    ["--bytes", "10000", "--for", "10m", "--id", id]
}

#[test]
fn a_reservation_is_renewed() {
    let folder = folder();
    let manager = manager(folder.path(), &[]);
    assert_eq!(manager.json(RESERVE, &words("mine")).0, Some(0));
    // The same request again does not make it longer; this does.
    let (status, renewed) = manager.json("renew mine", &["--for", "20m"]);
    assert_eq!(status, Some(0), "{renewed}");
    assert_eq!(renewed["lease_ns"], 1200 * S);
    assert!(
        renewed["expires_in_ns"].as_u64() > Some(1100 * S),
        "{renewed}"
    );
    let (_, renewed) = manager.json("renew mine", &[]);
    assert_eq!(renewed["lease_ns"], 1200 * S);
    let (_, renewed) = manager.json("renew mine", &["--for", "30s"]);
    assert_eq!(renewed["lease_ns"], 30 * S);
    let said = text(&manager.ask("", "renew mine --for 20m", &[]).stdout);
    assert!(said.starts_with("renewed mine: for "), "{said}");
    let out = manager.ask("", "renew mine --for 1ms", &[]);
    assert_eq!(out.status.code(), Some(2));
    has(text(&out.stderr), ["`lease_ns` is 1000000"]);
    manager.json("release", &["mine"]);
    for (words, status, expected) in [
        ("renew mine", 1, "mine has ended"),
        ("renew never", 1, "no reservation has the id never"),
        ("renew ..", 2, "`id` is \"..\", expected 1 to 64 letters"),
        ("renew mine --for soon", 2, "such as 30s, 10m or 2h"),
    ] {
        let out = manager.ask("", words, &[]);
        let said = text(&out.stderr);
        assert_eq!(out.status.code(), Some(status), "{words}: {said}");
        has(&said, [expected]);
    }
}

#[test]
fn a_reservation_is_replaced_or_stays() {
    let folder = folder();
    let manager = manager(folder.path(), &[]);
    let replace = |bytes: &str| {
        let more = [
            "--bytes",
            bytes,
            "--for",
            "10m",
            "--id",
            "mine",
            "--replace",
        ];
        manager.json(RESERVE, &more)
    };
    assert_eq!(manager.json(RESERVE, &words("mine")).0, Some(0));
    let (status, granted) = replace("20000");
    assert_eq!(status, Some(0), "{granted}");
    let bytes = granted["links"][0]["bytes"].as_u64().unwrap();
    assert!(bytes > 20_000, "{granted}");
    assert_eq!(manager.reserved_bytes("studio"), bytes);
    // What does not fit leaves it as it is.
    let (status, refused) = replace("200000");
    assert_eq!(
        (status, &refused["granted"]),
        (Some(3), &Value::from(false))
    );
    assert_eq!(manager.reserved_bytes("studio"), bytes);
    let (_, listed) = manager.json("reservations", &[]);
    assert_eq!(listed[0]["links"][0]["bytes"], bytes);
    let out = manager.ask("", RESERVE, &["--bytes", "1", "--for", "1m", "--replace"]);
    assert_eq!(out.status.code(), Some(2));
}

#[test]
fn an_operator_frees_the_part_of_a_coordinator_that_is_gone() {
    let pair = Pair::new();
    let (first, second) = (pair.start(0), pair.start(1));
    assert_eq!(first.json(RESERVE, &words("mine")).0, Some(0));
    let (status, parts) = second.json("reservations --parts", &[]);
    assert_eq!(status, Some(0), "{parts}");
    assert_eq!(
        (&parts[0]["coordinator"], &parts[0]["id"]),
        (&json!("m0"), &json!("mine"))
    );
    assert_eq!(
        (&parts[0]["committed"], &parts[1]),
        (&json!(true), &Value::Null)
    );
    assert_eq!(
        parts[0]["links"][0],
        json!({"link": "hall/r1/up", "bytes": WIRE_BYTES})
    );
    let table = text(&second.ask("", "reservations --parts", &[]).stdout);
    for words in ["m0", "mine", "granted", "hall/r1/up", "10,462"] {
        has(&table, [words]);
    }
    drop(first);
    for (words, status, expected) in [
        (
            "release mine --part m2",
            1,
            "no reservation has the id mine",
        ),
        ("release mine --part ..", 2, "`coordinator` is \"..\""),
        ("release .. --part m0", 2, "`id` is \"..\""),
    ] {
        let out = second.ask("", words, &[]);
        let said = text(&out.stderr);
        assert_eq!(out.status.code(), Some(status), "{words}: {said}");
        has(&said, [expected]);
    }
    let out = second.ask("", "release mine --part m0", &[]);
    assert_eq!(out.status.code(), Some(0));
    assert_eq!(text(&out.stdout), "released mine of m0 here\n");
    assert_eq!(second.reserved_bytes("hall/r1/up"), 0);
    assert_eq!(second.json("reservations --parts", &[]).1, json!([]));
    // The coordinator comes back, and hears of it when it refreshes the lease.
    let first = pair.start(0);
    until("the coordinator can decide", || {
        let out = first.ask("", "renew mine", &[]);
        let said = text(&out.stderr);
        said.contains("has ended").then_some(())
    });
    assert_eq!(first.reserved_bytes("studio"), 0);
}

#[test]
fn a_topology_is_checked_against_what_is_reserved() {
    let folder = folder();
    let access = folder.path().join("access.toml");
    fs::write(&access, ACCESS).unwrap();
    let running = manager(folder.path(), &["--access", access.to_str().unwrap()]);
    let reserve = |id: &str| running.ask("one", RESERVE, &words(id)).status.code();
    for id in ["s1", "s2", "s3", "s4", "s5", "s6"] {
        assert_eq!(reserve(id), Some(0));
    }
    let net = folder.path().join("net.toml");
    let net = net.to_str().unwrap();
    // Alone: as the manager checks it.
    let alone = pspacer(&["topology", net]);
    let by_manager = pspacer(&["manager", "--check", "--topology", net]);
    assert_eq!(
        (alone.status.code(), &alone.stdout),
        (Some(0), &by_manager.stdout)
    );
    has(text(&alone.stdout), ["studio: 81348 bytes for streams"]);
    let out = running.ask("all", "topology", &[net]);
    assert_eq!(out.status.code(), Some(0));
    assert!(text(&out.stdout).starts_with("all reservations of http"));
    // Half the rate carries three of them.
    let next = folder.path().join("next.toml");
    let next = next.to_str().unwrap();
    fs::write(next, TOPOLOGY.replace("100mbit", "50mbit")).unwrap();
    let ask = |more: &[&str]| running.ask("all", "topology", &[more, &[next][..]].concat());
    let out = ask(&["--json"]);
    let misfits: Value = serde_json::from_slice(&out.stdout).unwrap();
    let count = misfits.as_array().unwrap().len();
    assert!((1..6).contains(&count), "{misfits}");
    assert_eq!(out.status.code(), Some(3));
    assert!(misfits[0]["id"].as_str().unwrap().starts_with('s'));
    let out = ask(&[]);
    let said = text(&out.stdout);
    assert_eq!((out.status.code(), said.lines().count()), (Some(3), count));
    assert!(
        said.lines().all(|line| line.starts_with("does not fit: s")),
        "{said}"
    );
    assert_eq!(reserve("s7"), Some(0));
    // Only an operator; only with a manager; only a topology.
    let out = running.ask("one", "topology", &[next, "--drain"]);
    assert_eq!(out.status.code(), Some(1));
    has(text(&out.stderr), ["expected the role \"operator\""]);
    let out = running.ask("one", "reservations --parts", &[]);
    assert_eq!(out.status.code(), Some(1));
    has(text(&out.stderr), ["expected the role \"operator\""]);
    assert_eq!(
        pspacer(&["topology", net, "--drain"]).status.code(),
        Some(2)
    );
    let out = running.ask("all", "topology", &[access.to_str().unwrap()]);
    let said = text(&out.stderr);
    assert!(
        out.status.code() == Some(1) && said.contains("access.toml: line "),
        "{said}"
    );
    // What does not fit is ended, and no more of it is granted.
    let out = ask(&["--drain"]);
    let said = text(&out.stdout);
    assert_eq!(
        (out.status.code(), said.lines().count()),
        (Some(0), count + 1)
    );
    assert!(
        said.lines().all(|line| line.starts_with("ended s")),
        "{said}"
    );
    assert_eq!(ask(&[]).status.code(), Some(0));
    assert_eq!(reserve("s8"), Some(3));
    // The next topology holds what is left.
    drop(running);
    fs::rename(next, net).unwrap();
    let running = manager(folder.path(), &["--access", access.to_str().unwrap()]);
    let listed = text(&running.ask("all", "reservations", &["--json"]).stdout);
    let listed: Value = serde_json::from_str(&listed).unwrap();
    assert_eq!(listed.as_array().unwrap().len(), 7 - count - 1);
}

/// A file that leaves the bytes alone may take away a route, or make it longer.
#[test]
fn a_topology_that_changes_a_route_or_its_bound_does_not_fit() {
    let folder = folder();
    let manager = manager(folder.path(), &[]);
    assert_eq!(manager.json(RESERVE, &words("x")).0, Some(0));
    let next = folder.path().join("next.toml");
    let ask = |from: &str, to: &str, more: &[&str]| {
        fs::write(&next, TOPOLOGY.replacen(from, to, 1)).unwrap();
        let out = manager.ask("", "topology", &[more, &[next.to_str().unwrap()]].concat());
        (out.status.code(), text(&out.stdout))
    };
    let member = ("[\"camera\", \"r1\"]", "[\"screen\", \"r1\"]");
    for ((from, to), expected) in [
        (member, "no route leads from camera to screen"),
        (
            ("name = \"studio\"", "period = \"15ms\"\nname = \"studio\""),
            "the delay to screen is at most 45000000 ns, and 36000000 ns are wanted",
        ),
        (
            ("name = \"studio\"", "tagged = true\nname = \"studio\""),
            "the stream needs 10490",
        ),
    ] {
        let (status, said) = ask(from, to, &[]);
        assert_eq!(status, Some(3), "{said}");
        assert!(said.starts_with("does not fit: x of manager: "), "{said}");
        has(&said, [expected]);
    }
    // What is ended leaves its bytes, and by that route nothing is granted any more.
    assert_eq!(ask(member.0, member.1, &["--drain"]).0, Some(0));
    assert_eq!(manager.reserved_bytes("studio"), 0);
    let (status, refused) = manager.json(RESERVE, &words("y"));
    assert_eq!((status, &refused["reason"]), (Some(3), &json!("no-route")));
    assert_eq!(manager.reserved_bytes("studio"), 0);
}

/// `--check` says what best effort costs streams and what a bound counts, and refuses a segment too slow
/// for best effort.
#[test]
fn every_node_keeps_its_least_best_effort() {
    let folder = folder();
    let net = folder.path().join("net.toml");
    let check = || pspacer(&["manager", "--check", "--topology", net.to_str().unwrap()]);
    let said = text(&check().stdout);
    for line in [
        "studio: 81348 bytes for streams in each period of 10 ms; nrt costs them 4614 bytes\n",
        "hall/r1/up: 85962 bytes for streams in each period of 10 ms; nrt costs them 0 bytes\n",
        "studio: 43750 bytes of best effort for each of 2 nodes without streams; a node that sends \
         into it adds 18 ms to a bound\n",
    ] {
        has(&said, [line]);
    }
    // Of a switch that several send through, the bound is not all.
    let warning = "adds 18 ms to a bound, and what waits in the switch is not counted\n";
    has_none(&said, [warning]);
    let many = TOPOLOGY.replacen("\"r1\", \"screen\"", "\"r1\", \"screen\", \"camera\"", 1);
    fs::write(&net, many).unwrap();
    let said = text(&check().stdout);
    has(&said, [warning]);
    let slow = TOPOLOGY.replacen("100mbit", "10mbit", 1);
    let slow = slow.replacen("\"r1\"]", "\"r1\", \"screen\"]", 1);
    fs::write(&net, &slow).unwrap();
    let out = check();
    let said = text(&out.stderr);
    assert_eq!((out.status.code(), said.lines().count()), (Some(1), 1));
    let words = "net.toml: line 10: segment \"studio\": `nrt` is 3076, expected at most 2916 bytes for \
                 each of 3 members, or a `rate` of at least 10547429bit";
    has(&said, [words]);
    fs::write(&net, format!("nrt = 0\n{slow}")).unwrap();
    let said = text(&check().stdout);
    has(&said, ["studio: 7212 bytes for streams"]);
}
