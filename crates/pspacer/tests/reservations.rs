// SPDX-License-Identifier: MIT OR Apache-2.0
//! `pspacer manager`, `reserve`, `reservations` and `release` on loopback: grants, refusals with
//! the numbers, leases that end, managers that are killed, tokens, and the same request twice.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

use crate::common::{pspacer, refused, text};
use crate::hosts::reflector;
use testkit::{has, until};

pub const TOPOLOGY: &str = r#"
[[host]]
name = "camera"
[[host]]
name = "screen"
[[router]]
name = "r1"

[[segment]]
name = "studio"
medium = "shared"
rate = "100mbit"
members = ["camera", "r1"]

[[segment]]
name = "hall"
medium = "switched"
rate = "100mbit"
members = ["r1", "screen"]
"#;

/// A manager that runs, killed in the end.
pub struct Manager {
    child: Child,
    pub url: String,
}

impl Drop for Manager {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A folder with a topology.
pub fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("net.toml"), TOPOLOGY).unwrap();
    folder
}

fn store(folder: &Path) -> String {
    format!("sqlite:{}", folder.join("reservations.db").display())
}

/// Starts a manager on any free port.
pub fn manager(folder: &Path, more: &[&str]) -> Manager {
    manager_at(folder, "127.0.0.1:0", more)
}

pub fn manager_at(folder: &Path, listen: &str, more: &[&str]) -> Manager {
    let address: PathBuf = folder.join("address");
    let _ = fs::remove_file(&address);
    let mut child = Command::new(env!("CARGO_BIN_EXE_pspacer"))
        .args(["manager", "--listen", listen, "--topology"])
        .arg(folder.join("net.toml"))
        .args(["--store", &store(folder), "--address-file"])
        .arg(&address)
        .args(more)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let url = until("the manager listens", || {
        if let Some(status) = child.try_wait().unwrap() {
            let mut said = String::new();
            child
                .stderr
                .take()
                .unwrap()
                .read_to_string(&mut said)
                .unwrap();
            panic!("{status}: {said}");
        }
        let url = fs::read_to_string(&address).ok()?;
        url.ends_with('\n').then(|| url.trim().to_owned())
    });
    Manager { child, url }
}

impl Manager {
    /// Runs a subcommand that asks it, with a token.
    pub fn ask(&self, token: &str, words: &str, more: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_pspacer"))
            .args(words.split(' '))
            .args(["--manager", &self.url])
            .args(more)
            .env("PSPACER_TOKEN", token)
            .output()
            .unwrap()
    }

    /// The JSON of an answer, with the exit status.
    pub fn json(&self, words: &str, more: &[&str]) -> (Option<i32>, Value) {
        let out = self.ask("", words, &[more, &["--json"]].concat());
        let printed = text(&out.stdout);
        let said = text(&out.stderr);
        let value = serde_json::from_str(&printed);
        (
            out.status.code(),
            value.unwrap_or_else(|e| panic!("{e}: {printed}{said}")),
        )
    }

    pub fn reserved_bytes(&self, link: &str) -> u64 {
        let (_, links) = self.json("reservations --links", &[]);
        let links = links.as_array().unwrap().iter();
        let link = links.into_iter().find(|l| l["link"] == link).unwrap();
        link["reserved_bytes"].as_u64().unwrap()
    }
}

pub const RESERVE: &str = "reserve --from camera --to screen --period 10ms --latency 50ms";

/// 10,000 bytes of payload: six datagrams of 1472 and one of 1168, each with 66 bytes around it.
pub const WIRE_BYTES: u64 = 10_000 + 7 * 66;

/// What streams may take of a period of the studio: 70 % of 125,000 bytes, less two full frames of
/// best effort for each of two nodes.
const STUDIO_BYTES: u64 = 87_500 - 2 * 2 * 1_538;

#[test]
fn a_stream_is_granted_listed_and_released() {
    let folder = folder();
    let manager = manager(folder.path(), &[]);
    let (status, granted) = manager.json(RESERVE, &["--bytes", "10000", "--for", "10m"]);
    assert_eq!(status, Some(0), "{granted}");
    assert_eq!(granted["granted"], true);
    // Two hops of a period, a slot and the share of streams.
    assert_eq!(granted["bound_ns"], 36_000_000);
    let links = &granted["links"];
    assert_eq!(links[0]["link"], "studio");
    assert_eq!(links[1]["link"], "hall/r1/up");
    assert_eq!(links[2]["link"], "hall/screen/down");
    assert_eq!(links[0]["bytes"], WIRE_BYTES);
    // Nobody has put it into force.
    assert_eq!(granted["in_force"], false);
    assert_eq!(granted["not_in_force"], serde_json::json!(["camera", "r1"]));
    let id = granted["id"].as_str().unwrap();
    let (_, listed) = manager.json("reservations", &[]);
    assert_eq!(listed[0]["id"], id);
    assert_eq!(manager.reserved_bytes("studio"), WIRE_BYTES);
    let table = text(&manager.ask("", "reservations", &[]).stdout);
    has(&table, [id, "camera, screen"]);
    let (status, released) = manager.json("release", &[id]);
    assert_eq!((status, &released["released"]), (Some(0), &true.into()));
    assert_eq!(manager.reserved_bytes("studio"), 0);
    // Twice is the same, and one that never was is not known.
    assert_eq!(manager.json("release", &[id]).0, Some(0));
    let out = manager.ask("", "release", &["never"]);
    assert_eq!(out.status.code(), Some(1));
    let said = text(&out.stderr);
    has(&said, ["no reservation has the id never"]);
}

/// `ping` tells the manager what it measured; `top` and `exporter` show that beside the bound.
#[test]
fn measurements_are_shown_beside_their_bounds() {
    let folder = folder();
    let manager = manager(folder.path(), &[]);
    let more = ["--bytes", "10000", "--for", "10m", "--id", "cam1"];
    assert_eq!(manager.json(RESERVE, &more).0, Some(0));
    let top = || manager.json("top --once --every 10ms", &[]).1;
    let before = top();
    let row = &before["reservations"][0];
    assert_eq!(
        (&row["id"], &row["talker"]),
        (&"cam1".into(), &"camera".into())
    );
    assert_eq!(row["listeners"][0]["bound_ns"], 36_000_000);
    assert_eq!(row["listeners"][0]["measured"], Value::Null);
    assert_eq!(row["links"][0]["bytes"], WIRE_BYTES);
    let free_bytes = STUDIO_BYTES - WIRE_BYTES;
    assert_eq!(row["links"][0]["free_bytes"], free_bytes);
    assert_eq!(row["tightest"], "studio");
    assert_eq!(before["links"][0]["free_bytes"], free_bytes);
    let (_reflector, port) = reflector(&[], &["--bind", "127.0.0.1"]);
    let ping = format!("ping 127.0.0.1 --port {port} -c 20 --period 1ms --reservation cam1");
    let (status, run) = manager.json(&ping, &["--listener", "screen"]);
    assert_eq!(status, Some(0), "{run}");
    let worst_ns = run["one_way_with_wait"]["max_ns"].as_u64().unwrap();
    let measured = serde_json::json!({
        "worst_delay_ns": worst_ns, "packets": run["received"], "lost_packets": run["lost"],
    });
    assert_eq!(
        top()["reservations"][0]["listeners"][0]["measured"],
        measured
    );
    let shown = text(&manager.ask("", "top --once --every 10ms", &[]).stdout);
    has(
        &shown,
        [
            "reservations: 1",
            "cam1         camera, screen   10,462",
            "not at camera r1",
        ],
    );
    let exported = text(&manager.ask("", "exporter --once", &[]).stdout);
    let samples = "psp_reservation_measured_packets{";
    let line = exported.lines().find(|line| line.starts_with(samples));
    assert!(
        line.is_some_and(|line| line.ends_with("} 20")),
        "{exported}"
    );
    has(&exported, ["} 0.036\n"]);
    // What would be wrong at the end is refused before the first probe.
    for (words, more, expected) in [
        (
            &ping,
            ["--listener", "r1"],
            "expected a listener of cam1: screen",
        ),
        (
            &ping.replace("cam1", "other"),
            ["--listener", "screen"],
            "the manager has no such reservation",
        ),
        (
            &ping.replace("127.0.0.1", "192.0.2.1"),
            ["--listener", "screen"],
            "expected --synced",
        ),
    ] {
        let out = manager.ask("", words, &more);
        let said = text(&out.stderr);
        has(&said, [expected]);
        assert_eq!(
            (out.status.code(), out.stdout.len()),
            (Some(2), 0),
            "{said}"
        );
    }
    // A manager that is away is named, and its reservations are not there.
    let url = manager.url.clone();
    drop(manager);
    let out = pspacer(&["top", "--once", "--every", "10ms", "--manager", &url]);
    let shown = text(&out.stdout);
    has(&shown, [&format!("manager {url} does not answer: ")]);
    let twice = format!("{url},{url}");
    let out = pspacer(&["top", "--once", "--manager", &twice]);
    let said = text(&out.stderr);
    has(&said, ["expected each manager once"]);
}

#[test]
fn what_does_not_fit_is_refused_with_the_numbers() {
    let folder = folder();
    let manager = manager(folder.path(), &[]);
    for _ in 0..7 {
        let (status, _) = manager.json(RESERVE, &["--bytes", "10000", "--for", "10m"]);
        assert_eq!(status, Some(0));
    }
    let (status, refused) = manager.json(RESERVE, &["--bytes", "10000", "--for", "10m"]);
    assert_eq!(status, Some(3), "{refused}");
    assert_eq!(refused["granted"], false);
    assert_eq!(refused["reason"], "insufficient-bandwidth");
    assert_eq!(refused["link"], "studio");
    assert_eq!(refused["needed_bytes"], WIRE_BYTES);
    assert_eq!(refused["free_bytes"], STUDIO_BYTES - 7 * WIRE_BYTES);
    assert_eq!(manager.reserved_bytes("studio"), 7 * WIRE_BYTES);
    // In words, on one line.
    let out = manager.ask("", RESERVE, &["--bytes", "10000", "--for", "10m"]);
    let said = text(&out.stdout);
    assert_eq!(
        (out.status.code(), said.lines().count()),
        (Some(3), 1),
        "{said}"
    );
    has(&said, ["10462", "8114"]);
    // A delay that no route keeps.
    let late = "reserve --from camera --to screen --latency 35ms --bytes 1 --for 10m";
    let (status, refused) = manager.json(late, &[]);
    assert_eq!(status, Some(3));
    assert_eq!(refused["reason"], "max-latency-exceeded");
    assert_eq!(refused["bound_ns"], 36_000_000);
    assert_eq!(refused["failure_code"], 21);
}

#[test]
fn a_lease_that_ends_frees_its_bytes() {
    let folder = folder();
    let manager = manager(folder.path(), &[]);
    let (status, _) = manager.json(RESERVE, &["--bytes", "10000", "--for", "1s"]);
    assert_eq!(status, Some(0));
    until("the lease ends", || {
        (manager.reserved_bytes("studio") == 0).then_some(())
    });
    assert_eq!(manager.json("reservations", &[]).1, serde_json::json!([]));
}

#[test]
fn a_manager_killed_and_started_again_has_lost_nothing() {
    let folder = folder();
    let mut ids = vec![];
    for round in 0..3 {
        let running = manager(folder.path(), &[]);
        assert_eq!(running.reserved_bytes("studio"), round * 2 * WIRE_BYTES);
        for _ in 0..2 {
            let (status, granted) = running.json(RESERVE, &["--bytes", "10000", "--for", "10m"]);
            assert_eq!(status, Some(0));
            ids.push(granted["id"].as_str().unwrap().to_owned());
        }
        // SIGKILL, as it stands.
        drop(running);
    }
    let running = manager(folder.path(), &[]);
    let (_, listed) = running.json("reservations", &[]);
    let listed = listed.as_array().unwrap();
    let mut found: Vec<_> = listed.iter().map(|r| r["id"].as_str().unwrap()).collect();
    found.sort_unstable();
    ids.sort();
    assert_eq!(found, ids);
    // Leases run on; they do not begin anew.
    assert!(
        listed
            .iter()
            .all(|r| r["expires_in_ns"].as_u64() <= Some(600_000_000_000))
    );
    // One more fits, and then none.
    let more = || {
        running
            .json(RESERVE, &["--bytes", "10000", "--for", "10m"])
            .0
    };
    assert_eq!((more(), more()), (Some(0), Some(3)));
}

#[test]
fn the_same_request_again_has_the_same_grant() {
    let folder = folder();
    let running = manager(folder.path(), &[]);
    let words = ["--bytes", "10000", "--for", "10m", "--id", "mine"];
    let (_, first) = running.json(RESERVE, &words);
    let (status, again) = running.json(RESERVE, &words);
    assert_eq!(status, Some(0));
    for key in ["id", "bound_ns", "links", "listeners", "lease_ns"] {
        assert_eq!(first[key], again[key], "{key}");
    }
    assert_eq!(running.reserved_bytes("studio"), WIRE_BYTES);
    // Another request by this id, and the same one after its end, are refused.
    let other = running.ask(
        "",
        RESERVE,
        &["--bytes", "1", "--for", "10m", "--id", "mine"],
    );
    assert_eq!(other.status.code(), Some(1));
    has(text(&other.stderr), ["belongs to another request"]);
    running.json("release", &["mine"]);
    drop(running);
    let running = manager(folder.path(), &[]);
    let replayed = running.ask("", RESERVE, &words);
    assert_eq!(replayed.status.code(), Some(1));
    let said = text(&replayed.stderr);
    has(&said, ["mine has ended"]);
    assert_eq!(running.reserved_bytes("studio"), 0);
}

/// Two talkers and an operator: SHA-256 of the words "one", "two" and "all".
pub const ACCESS: &str = r#"
[[access]]
name = "one"
role = "talker"
token_sha256 = "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed"
[[access]]
name = "two"
role = "talker"
token_sha256 = "3fc4ccfe745870e2c0d99f71f30ff0656c8dedd41cc1d7d3d376b0dbe685e2f3"
[[access]]
name = "all"
role = "operator"
token_sha256 = "5ef5ef0364b6939c4ca61f34b393f7b368d1be8619647aaf83d5b395919ab629"
"#;

#[test]
fn a_foreign_token_is_refused_and_nothing_changes() {
    let folder = folder();
    let access = folder.path().join("access.toml");
    fs::write(&access, ACCESS).unwrap();
    let running = manager(folder.path(), &["--access", access.to_str().unwrap()]);
    let words = ["--bytes", "10000", "--for", "10m", "--id", "mine"];
    for token in ["", "three"] {
        let out = running.ask(token, RESERVE, &words);
        let said = text(&out.stderr);
        assert_eq!(
            (out.status.code(), said.lines().count()),
            (Some(1), 1),
            "{said}"
        );
        has(&said, ["not known to this manager"]);
    }
    assert_eq!(running.ask("one", RESERVE, &words).status.code(), Some(0));
    // Another talker sees nothing of it, and may not end it.
    let listed = text(&running.ask("two", "reservations", &["--json"]).stdout);
    assert_eq!(listed.trim(), "[]");
    let out = running.ask("two", "release", &["mine"]);
    assert_eq!(out.status.code(), Some(1));
    has(text(&out.stderr), ["belongs to another caller"]);
    let listed = text(&running.ask("all", "reservations", &["--json"]).stdout);
    has(&listed, ["\"mine\""]);
    assert_eq!(
        running.ask("all", "release", &["mine"]).status.code(),
        Some(0)
    );
}

#[test]
fn what_is_wrong_is_said_before_anything_begins() {
    let folder = folder();
    let net = folder.path().join("net.toml");
    let net = net.to_str().unwrap();
    // The store is another program's, or another process uses it.
    let other = folder.path().join("other.db");
    fs::write(&other, "x".repeat(5000)).unwrap();
    let other = format!("sqlite:{}", other.display());
    let running = manager(folder.path(), &[]);
    let own = store(folder.path());
    let listen = ["--listen", "127.0.0.1:0"];
    let run = |more: &[&str]| {
        let words = [&["manager", "--topology", net][..], more, &listen[..]].concat();
        let out = pspacer(&words);
        let said = text(&out.stderr);
        assert_eq!(said.lines().count(), 1, "{said}");
        (out.status.code(), said)
    };
    for (more, words) in [
        (&["--store", &other][..], "other.db: it is no database"),
        (&["--store", &own], "another process uses it"),
        (&["--store", "file"], "--store file: expected sqlite:FILE"),
        (&["--store", "memory:", "--access", "nofile"], "nofile"),
    ] {
        let (status, said) = run(more);
        assert_eq!(status, Some(1), "{said}");
        has(&said, [words]);
    }
    let out = pspacer(&[
        "manager",
        "--topology",
        net,
        "--store",
        "memory:",
        "--listen",
        "0.0.0.0:0",
    ]);
    let said = text(&out.stderr);
    has(&said, ["expected a loopback address"]);
    // A file with a fault: its name, line, key, value, and what was expected.
    fs::write(net, TOPOLOGY.replacen("100mbit", "fast", 1)).unwrap();
    let (_, said) = run(&["--store", "memory:"]);
    let words = "net.toml: line 12: `rate` is \"fast\", expected a rate";
    has(&said, [words]);
    // Requests that mean nothing.
    for (words, status, expected) in [
        (
            "reserve --from nobody --to screen --bytes 1 --for 1m",
            2,
            "`talker` is nobody",
        ),
        (
            "reserve --from camera --to camera --bytes 1 --for 1m",
            2,
            "all different",
        ),
        (
            "reserve --from camera --to screen --bytes 0 --for 1m",
            2,
            "`bytes-per-interval` is 0",
        ),
        (
            "reserve --from camera --to screen --bytes 1 --for 1ms",
            2,
            "`lease_ns` is 1000000",
        ),
        (
            "reserve --from camera --to screen --bytes 1 --for soon",
            2,
            "such as 30s, 10m or 2h",
        ),
        ("release a/b", 2, "`id` is \"a/b\""),
        ("release ..", 2, "`id` is \"..\", expected 1 to 64 letters"),
        (
            "reserve --from camera --to screen --bytes 1 --for 1m --id ..",
            2,
            "`id` is \"..\", expected 1 to 64 letters",
        ),
    ] {
        let out = running.ask("", words, &[]);
        let said = text(&out.stderr);
        assert_eq!(out.status.code(), Some(status), "{words}: {said}");
        has(&said, [expected]);
    }
    assert_eq!(running.reserved_bytes("studio"), 0);
    // Nobody listens there.
    let words = "reservations --manager http://127.0.0.1:9";
    refused(&words.split(' ').collect::<Vec<_>>(), 1, &["127.0.0.1:9"]);
}

/// Two managers, m0 of the studio and m1 of the hall, that can be started.
pub struct Pair {
    ports: [u16; 2],
    folder: tempfile::TempDir,
}

impl Pair {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let ports = [0, 1].map(|_| {
            let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            socket.local_addr().unwrap().port()
        });
        let mut net = TOPOLOGY.to_owned();
        for (n, segment) in ["studio", "hall"].iter().enumerate() {
            let name = format!("name = \"{segment}\"\n");
            net = net.replace(&name, &format!("{name}manager = \"m{n}\"\n"));
            let url = format!("http://127.0.0.1:{}", ports[n]);
            net = format!("{net}\n[[manager]]\nname = \"m{n}\"\nurl = \"{url}\"\n");
        }
        for n in 0..2 {
            let part = folder.path().join(format!("m{n}"));
            fs::create_dir(&part).unwrap();
            fs::write(part.join("net.toml"), &net).unwrap();
        }
        Self { ports, folder }
    }

    pub fn start(&self, n: usize) -> Manager {
        let name = format!("m{n}");
        let listen = format!("127.0.0.1:{}", self.ports[n]);
        manager_at(&self.folder.path().join(&name), &listen, &["--name", &name])
    }
}

/// A stream over both, and nothing of it left where one is away.
#[test]
fn two_managers_reserve_along_a_route() {
    let pair = Pair::new();
    let (first, second) = (pair.start(0), pair.start(1));
    let words = ["--bytes", "10000", "--for", "10m"];
    let (status, granted) = first.json(RESERVE, &words);
    assert_eq!(status, Some(0), "{granted}");
    assert_eq!(granted["bound_ns"], 36_000_000);
    assert_eq!(first.reserved_bytes("studio"), WIRE_BYTES);
    assert_eq!(second.reserved_bytes("hall/r1/up"), WIRE_BYTES);
    first.json("release", &[granted["id"].as_str().unwrap()]);
    until("the other manager frees it", || {
        (second.reserved_bytes("hall/r1/up") == 0).then_some(())
    });
    // The second is away: the first says so, and keeps nothing.
    drop(second);
    let out = first.ask("", RESERVE, &words);
    let said = text(&out.stderr);
    assert_eq!(out.status.code(), Some(1), "{said}");
    has(&said, ["manager m1 does not answer"]);
    assert_eq!(first.reserved_bytes("studio"), 0);
    let _second = pair.start(1);
    assert_eq!(first.json(RESERVE, &words).0, Some(0));
}
