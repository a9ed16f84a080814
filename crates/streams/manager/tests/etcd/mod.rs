// SPDX-License-Identifier: MIT OR Apache-2.0
//! Managers that share a real etcd: what they grant together, leases, bad input, and histories in which
//! members and managers are killed.

mod history;
mod processes;
mod requests;

use std::collections::BTreeSet;
use std::fs;
use std::thread;

use admission::Refusal;
use manager::client::{Client, ClientError, Reserved};
use manager::etcd::gateway::{Condition, Keys, Write};
use processes::{Etcd, ManagerProcess, NET, command, until};
use requests::{S, body};

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

/// Nobody refreshes it, and nobody is there to free it.
#[test]
fn a_lease_that_ends_frees_its_bytes_without_a_manager() {
    let folder = tempfile::tempdir().unwrap();
    let etcd = Etcd::start(folder.path(), 1);
    let one = ManagerProcess::start(folder.path(), "one", &etcd);
    let client = one.client();
    let wanted = body("x", 2, 10 * S);
    assert!(matches!(client.reserve(&wanted), Ok(Reserved::Granted(_))));
    assert!(matches!(
        client.reserve(&body("y", 2, 600 * S)),
        Ok(Reserved::Granted(_))
    ));
    one.kill();
    let gateway = etcd.gateway();
    let uses = || gateway.read(&[Keys::Prefix("pspacer/use/".to_owned())]);
    // Of x and y, three links each.
    assert_eq!(uses().unwrap().found[0].len(), 6);
    until("the lease ends", || {
        let found = uses().unwrap().found.remove(0);
        (found.len() == 3 && found.iter().all(|of| of.key.ends_with(":y"))).then_some(())
    });
    one.start_again();
    until("the manager is back", || client.links().ok());
    assert_eq!(reserved_bytes(&client, "s"), 2 * WIRE_BYTES);
    // The id is remembered for a while.
    assert_eq!(status(&client.reserve(&wanted).unwrap_err()), 410);
    assert_eq!(status(&client.refresh("x", None).unwrap_err()), 410);
}

#[test]
fn what_does_not_fit_is_refused_before_anything_begins() {
    let folder = tempfile::tempdir().unwrap();
    let etcd = Etcd::start(folder.path(), 1);
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (good, other, foreign) = (path("good.toml"), path("other.toml"), path("foreign.toml"));
    fs::write(&good, NET).unwrap();
    fs::write(&other, NET.replace("1", "2")).unwrap();
    let managed = NET.replace("medium =", "manager = \"m1\"\nmedium =");
    let m1 = "[[manager]]\nname = \"m1\"\nurl = \"http://127.0.0.1:1\"\n";
    fs::write(&foreign, format!("{m1}{managed}")).unwrap();
    let store = format!("etcd:{}", etcd.urls()[0]);
    let gateway = etcd.gateway();
    let topology = || gateway.read(&[Keys::One("pspacer/topology".to_owned())]);
    let refused = |words: &[&str]| {
        let all = [words, &["--listen", "127.0.0.1:0"]].concat();
        let out = command(&all).output().unwrap();
        assert_eq!(out.status.code(), Some(1), "{words:?}");
        let said = String::from_utf8(out.stderr).unwrap();
        assert_eq!(said.lines().count(), 1, "{said}");
        said
    };
    for (words, expected) in [
        (
            ["--topology", &good, "--store", "etcd:"],
            "expected etcd:http://",
        ),
        (
            ["--topology", &good, "--store", "etcd:ftp://x:1"],
            "expected etcd:http://",
        ),
        (
            ["--topology", &good, "--store", "etcd:http://u@x:1"],
            "expected etcd:http://",
        ),
        (
            ["--topology", &good, "--store", "etcd:http://127.0.0.1:1"],
            "etcd does not answer",
        ),
    ] {
        let said = refused(&words);
        assert!(said.contains(expected), "{words:?}: {said}");
    }
    let said = refused(&["--topology", &foreign, "--store", &store, "--name", "m1"]);
    assert!(said.contains("segment s has the manager m1"), "{said}");
    let within = [
        "--topology",
        &good,
        "--store",
        &store,
        "--in-force-within",
        "2s",
    ];
    assert!(refused(&within).contains("--in-force-within"));
    // Nothing of this has changed anything.
    assert_eq!(topology().unwrap().found, [vec![]]);
    // Another topology than that of what is reserved.
    let one = ManagerProcess::start(folder.path(), "one", &etcd);
    let client = one.client();
    let before = topology().unwrap().found;
    assert!(matches!(
        client.reserve(&body("x", 2, 600 * S)),
        Ok(Reserved::Granted(_))
    ));
    let said = refused(&["--topology", &other, "--store", &store]);
    assert!(said.contains("reservations are of topology"), "{said}");
    assert_eq!(topology().unwrap().found, before);
    // One that runs with a topology that is no more: it says so, and changes nothing.
    let digest = Write::Keep("pspacer/topology".to_owned(), b"0".to_vec());
    assert!(gateway.transact(&[], &[digest]).unwrap());
    let error = client.reserve(&body("y", 2, 600 * S)).unwrap_err();
    assert!(
        status(&error) == 503 && error.to_string().contains("topology 0"),
        "{error}"
    );
    let none = Condition::NoneLike("pspacer/reservation/y".to_owned());
    assert!(gateway.transact(&[none], &[]).unwrap());
}

/// Until etcd is back nothing is promised; then all is as it was.
#[test]
fn while_etcd_is_away_nothing_is_promised() {
    let folder = tempfile::tempdir().unwrap();
    let etcd = Etcd::start(folder.path(), 1);
    let one = ManagerProcess::start(folder.path(), "one", &etcd);
    let client = one.client();
    assert!(matches!(
        client.reserve(&body("x", 2, 600 * S)),
        Ok(Reserved::Granted(_))
    ));
    etcd.kill_member(0);
    let error = client.reserve(&body("y", 2, 600 * S)).unwrap_err();
    assert_eq!(status(&error), 503, "{error}");
    assert_eq!(status(&client.reservations().unwrap_err()), 503);
    etcd.start_member(0);
    let found = until("etcd is back", || client.reservations().ok());
    assert_eq!(found.len(), 1);
    assert!(matches!(
        client.reserve(&body("y", 2, 600 * S)),
        Ok(Reserved::Granted(_))
    ));
    assert_eq!(reserved_bytes(&client, "s"), 4 * WIRE_BYTES);
}

/// Three members, three managers, talkers, and somebody who kills.
#[test]
fn histories_with_kills_keep_what_must_hold() {
    for seed in 1..=2 {
        history::run(seed);
    }
}
