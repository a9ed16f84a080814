// SPDX-License-Identifier: MIT OR Apache-2.0
//! Managers that stand by for each other at a real etcd: what they grant together, leases, bad input,
//! who takes over, and histories full of trouble.

mod broken;
mod history;
mod network;
mod processes;
mod records;
mod requests;
mod room;
mod takeover;

use std::collections::BTreeSet;
use std::fs;
use std::thread::{self, sleep};
use std::time::Duration;

use admission::Refusal;
use manager::etcd::seat::holder;
use manager_proto::client::{Client, ClientError, Reserved};
use network::Host;
pub use processes::NET;
use processes::{Etcd, ManagerProcess, command};
use requests::{ONLY, S, body};
use testkit::until;

/// A frame of 1000 bytes with all that is around it.
const WIRE_BYTES: u64 = 1038;

/// Not a test: what other tests start as a manager.
#[test]
fn a_manager() {
    processes::be_a_manager();
}

fn reserved_bytes(client: &Client, link: &str) -> u64 {
    let links = client.links().unwrap();
    links
        .iter()
        .find(|of| of.link == link)
        .unwrap()
        .reserved_bytes
}

fn grant(client: &Client, id: &str, frames: u16, lease_ns: u64) {
    let reserved = client.reserve(&body(id, frames, lease_ns)).unwrap();
    assert!(matches!(reserved, Reserved::Granted(_)), "{reserved:?}");
}

fn status(error: &ClientError) -> u16 {
    match error {
        ClientError::Refused { status, .. } => *status,
        other => panic!("{other}"),
    }
}

/// Talkers ask two managers at once for more than there is: every byte is granted, and none twice.
#[test]
fn two_managers_grant_what_there_is_and_no_more() {
    let folder = tempfile::tempdir().unwrap();
    let etcd = Etcd::start(folder.path(), 1);
    let one = ManagerProcess::start(folder.path(), "one", &etcd);
    let two = ManagerProcess::start(folder.path(), "two", &etcd);
    let granted: BTreeSet<String> = thread::scope(|threads| {
        let talkers: Vec<_> = (0..4)
            .map(|n| {
                let client = [&one, &two][n % 2].client();
                threads.spawn(move || {
                    let mut granted = Vec::new();
                    for m in 0..8 {
                        let id = format!("x{n}-{m}");
                        match client.reserve(&body(&id, 3, 600 * S)) {
                            Ok(Reserved::Granted(view)) => granted.push(view.id),
                            Ok(Reserved::Refused(refused)) => {
                                let Refusal::Bandwidth {
                                    link, needed_bytes, ..
                                } = refused.refusal
                                else {
                                    panic!("{refused:?}")
                                };
                                assert_eq!(link, "s");
                                assert_eq!(needed_bytes, 3 * WIRE_BYTES);
                            }
                            Err(error) => panic!("{error}"),
                        }
                    }
                    granted
                })
            })
            .collect();
        let all = talkers.into_iter().flat_map(|of| of.join().unwrap());
        all.collect()
    });
    let client = two.client();
    let link = client
        .links()
        .unwrap()
        .into_iter()
        .find(|of| of.link == "s");
    let link = link.unwrap();
    let fit = link.budget_bytes / (3 * WIRE_BYTES);
    // 32 were asked for.
    assert!(fit < 32, "{fit}");
    assert_eq!(granted.len() as u64, fit);
    assert_eq!(link.reserved_bytes, fit * 3 * WIRE_BYTES);
    assert_eq!(
        reserved_bytes(&one.client(), "t/b/down"),
        link.reserved_bytes
    );
    // Both know all of them, and what one granted the other frees.
    let listed = client.reservations().unwrap();
    let listed: BTreeSet<_> = listed.into_iter().map(|view| view.id).collect();
    assert_eq!(listed, granted);
    for id in &granted {
        client.release(id).unwrap();
        one.client().release(id).unwrap();
    }
    assert_eq!(reserved_bytes(&one.client(), "s"), 0);
    let again = one
        .client()
        .reserve(&body(granted.first().unwrap(), 3, 600 * S));
    assert_eq!(status(&again.unwrap_err()), 410);
}

#[test]
fn an_id_means_the_same_at_both_managers() {
    let folder = tempfile::tempdir().unwrap();
    let etcd = Etcd::start(folder.path(), 1);
    let one = ManagerProcess::start(folder.path(), "one", &etcd);
    let two = ManagerProcess::start(folder.path(), "two", &etcd);
    let (first, second) = (one.client(), two.client());
    let wanted = body("x", 2, 600 * S);
    let Reserved::Granted(view) = first.reserve(&wanted).unwrap() else {
        panic!()
    };
    assert_eq!(view.listeners[0].route.join(" "), "a s r t b");
    assert!(view.expires_in_ns > 590 * S && view.expires_in_ns <= 600 * S);
    let Reserved::Granted(again) = second.reserve(&wanted).unwrap() else {
        panic!()
    };
    assert_eq!((&again.links, again.bound_ns), (&view.links, view.bound_ns));
    assert_eq!(reserved_bytes(&second, "s"), 2 * WIRE_BYTES);
    // Another request, and another talker's stream of this name.
    let other = second.reserve(&body("x", 1, 600 * S)).unwrap_err();
    assert_eq!(status(&other), 409);
    let mut same_stream = body("y", 1, 600 * S);
    same_stream.stream.stream_id = "stream-x".to_owned();
    let Reserved::Refused(refused) = second.reserve(&same_stream).unwrap() else {
        panic!()
    };
    let is_it = matches!(refused.refusal, Refusal::StreamIdInUse { .. });
    assert!(is_it, "{refused:?}");
    // What agents and listeners report at one, the other shows.
    assert_eq!(view.not_in_force, ["a", "r"]);
    first.report("x", "a", true).unwrap();
    second.report("x", "r", true).unwrap();
    assert!(second.reservations().unwrap()[0].in_force);
    assert_eq!(status(&first.report("x", "b", true).unwrap_err()), 400);
    let duty = second.duty("r").unwrap();
    assert_eq!(duty.ports["t"].streams[0].bytes, 2 * WIRE_BYTES);
    // The route changes, all at once: the last of its bytes go another way, and nobody has put that into
    // force yet.
    let Reserved::Granted(moved) = first.reroute("x", "a", "s").unwrap() else {
        panic!()
    };
    assert_eq!(moved.links, view.links);
    let Reserved::Granted(moved) = second.reroute("x", "r", "u").unwrap() else {
        panic!()
    };
    assert_eq!(moved.listeners[0].route.join(" "), "a s r u b");
    assert_eq!(moved.not_in_force, ["a", "r"]);
    let bytes = ["s", "t/r/up", "t/b/down", "u/r/up", "u/b/down"];
    let bytes = bytes.map(|link| reserved_bytes(&first, link) / WIRE_BYTES);
    assert_eq!(bytes, [2, 0, 0, 2, 2]);
    let Reserved::Granted(again) = first.reroute("x", "r", "u").unwrap() else {
        panic!()
    };
    assert_eq!(again.links, moved.links);
    let wrong = first.reroute("x", "a", "t").unwrap_err();
    assert_eq!(status(&wrong), 400);
    let Reserved::Refused(refused) = first.reroute("x", "r", "s").unwrap() else {
        panic!()
    };
    let is_it = matches!(refused.refusal, Refusal::NoRoute { .. });
    assert!(is_it, "{refused:?}");
    // A longer lease, and the same again.
    let longer = second.refresh("x", Some(3600 * S)).unwrap();
    assert!(longer.expires_in_ns > 3590 * S && longer.expires_in_ns <= 3600 * S);
    assert_eq!(longer.lease_ns, 3600 * S);
    let same = first.refresh("x", None).unwrap();
    assert!(same.expires_in_ns > 3590 * S);
    // A shorter one ends no earlier than the longer would have.
    let shorter = first.refresh("x", Some(60 * S)).unwrap();
    assert!(shorter.expires_in_ns > 3500 * S);
    assert_eq!(shorter.lease_ns, 60 * S);
    assert_eq!(reserved_bytes(&first, "s"), 2 * WIRE_BYTES);
    assert_eq!(status(&first.refresh("none", None).unwrap_err()), 404);
}

/// It ends at its time by the clock, although nobody is there to free it.
#[test]
fn a_lease_that_ends_without_a_manager_is_gone_after_the_next_election() {
    let folder = tempfile::tempdir().unwrap();
    let etcd = Etcd::start(folder.path(), 1);
    let one = ManagerProcess::start(folder.path(), "one", &etcd);
    let client = one.client();
    grant(&client, "short", 2, 4 * S);
    grant(&client, "x", 2, 20 * S);
    grant(&client, "y", 2, 600 * S);
    one.kill();
    let gateway = etcd.gateway();
    let granted = || {
        let all = records::read(&gateway).unwrap();
        let of = |id: &str| {
            all[ONLY]
                .parts
                .contains_key(&(ONLY.to_owned(), id.to_owned()))
        };
        ["short", "x", "y"].map(of)
    };
    sleep(Duration::from_secs(5));
    assert_eq!(granted(), [true; 3]);
    one.start_again();
    let found = until("the manager is back", || client.reservations().ok());
    let found: Vec<_> = found.into_iter().map(|of| of.id).collect();
    assert_eq!(reserved_bytes(&client, "s"), 4 * WIRE_BYTES, "{found:?}");
    // The id is remembered for a while.
    let ended = client.reserve(&body("short", 2, 4 * S)).unwrap_err();
    assert_eq!(status(&ended), 410);
    assert_eq!(status(&client.refresh("short", None).unwrap_err()), 410);
    client.refresh("x", None).unwrap();
}

#[test]
fn what_does_not_fit_is_refused_before_anything_begins() {
    let folder = tempfile::tempdir().unwrap();
    let etcd = Etcd::start(folder.path(), 1);
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (good, other) = (path("good.toml"), path("other.toml"));
    fs::write(&good, NET).unwrap();
    fs::write(
        &other,
        NET.replace("name = \"b\"", "name = \"e\"")
            .replace("\"b\"]", "\"e\"]"),
    )
    .unwrap();
    let refused = |topology: &str, store: &str| {
        let words = ["--topology", topology, "--store", store];
        let all = [&words[..], &["--listen", "127.0.0.1:0"]].concat();
        let out = command(&Host::here(), &all).output().unwrap();
        assert_eq!(out.status.code(), Some(1), "{words:?}");
        let said = String::from_utf8(out.stderr).unwrap();
        said.lines().last().unwrap().to_owned()
    };
    for (store, expected) in [
        ("etcd:", "expected etcd:http://"),
        ("etcd:ftp://x:1", "expected etcd:http://"),
        ("etcd:http://u@x:1", "expected etcd:http://"),
        ("etcd:http://127.0.0.1:1", "etcd does not answer"),
    ] {
        let said = refused(&good, store);
        assert!(said.contains(expected), "{store}: {said}");
    }
    // Another topology than that of what is reserved: it is elected, and ends.
    let one = ManagerProcess::start(folder.path(), "one", &etcd);
    grant(&one.client(), "x", 2, 600 * S);
    let before = records::read(&etcd.gateway()).unwrap();
    one.kill();
    let said = refused(&other, &etcd.store());
    assert!(said.contains("does not fit the topology"), "{said}");
    let after = records::read(&etcd.gateway()).unwrap();
    assert_eq!(after[ONLY].reservations, before[ONLY].reservations);
    // Another manager of the topology gets the seat at once.
    one.start_again();
    let found = until("it is back", || one.client().reservations().ok());
    assert_eq!(found.len(), 1);
}

/// Until etcd is back nothing is promised; then all is as it was.
#[test]
fn while_etcd_is_away_nothing_is_promised() {
    let folder = tempfile::tempdir().unwrap();
    let etcd = Etcd::start(folder.path(), 1);
    let one = ManagerProcess::start(folder.path(), "one", &etcd);
    let client = one.client();
    grant(&client, "x", 2, 600 * S);
    etcd.kill_member(0);
    let error = client.reserve(&body("y", 2, 600 * S)).unwrap_err();
    assert_eq!(status(&error), 503, "{error}");
    assert_eq!(status(&client.reservations().unwrap_err()), 503);
    etcd.start_member(0);
    let found = until("etcd is back", || client.reservations().ok());
    assert!(found.iter().any(|of| of.id == "x"));
    // What had no answer may have been reserved: the same request again has the same answer.
    grant(&client, "y", 2, 600 * S);
    assert_eq!(reserved_bytes(&client, "s"), 4 * WIRE_BYTES);
}

#[test]
fn agents_put_a_stream_into_force_before_it_is_granted() {
    let folder = tempfile::tempdir().unwrap();
    let etcd = Etcd::start(folder.path(), 1);
    let words = ["--in-force-within", "5s"];
    let [one, two] = ["one", "two"].map(|name| {
        let of = (name, &Host::here());
        let process = ManagerProcess::new(folder.path(), of, &etcd, (NET, &words));
        process.start_again();
        until("a manager answers", || process.client().links().ok());
        process
    });
    thread::scope(|threads| {
        let asked = threads.spawn(|| grant(&two.client(), "x", 2, 600 * S));
        let client = one.client();
        until("it is known", || client.report("x", "a", true).ok());
        sleep(Duration::from_millis(100));
        assert!(!asked.is_finished());
        two.client().report("x", "r", true).unwrap();
        asked.join().unwrap();
    });
    assert!(one.client().reservations().unwrap()[0].in_force);
}

/// Three members and three managers in namespaces, talkers, and somebody who makes trouble.
#[test]
fn histories_full_of_trouble_keep_what_must_hold() {
    // Each third has two seats. A history takes 12 s, most of them waiting, and a test 40 minutes at most.
    let seeds = if testkit::everything() { 1..=90 } else { 2..=3 };
    let mut of_all = String::new();
    for seed in seeds.clone() {
        let variable = (history::SEED, &*seed.to_string());
        match network::run_apart("etcd::a_history", variable) {
            Some(said) => of_all += &history::summary(&said),
            None => return,
        }
    }
    eprint!("{of_all}");
    // One alone may have an etcd without a leader for most of its time.
    for what in ["granted", "refused", "refreshed", "released"] {
        let counts = of_all.split(", ").filter_map(|of| of.strip_suffix(what));
        let counts = counts.filter_map(|of| of.split_whitespace().last()?.parse::<u64>().ok());
        let count: u64 = counts.sum();
        let histories = seeds.clone().count() as u64;
        assert!(
            count >= histories,
            "{what}: {count} in {histories} histories"
        );
    }
}

/// Not a test: a history in namespaces of its own.
#[test]
fn a_history() {
    if let Some(seed) = history::asked() {
        history::run(seed);
    }
}
