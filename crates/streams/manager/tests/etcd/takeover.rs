// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who takes over, and what a manager may do that no longer decides; two seats of one network; room in
//! etcd's database.

use std::time::Instant;

use manager::etcd::gateway::{Condition, EtcdError, Gateway, Write};

use super::*;

/// The quota of etcd's database, bytes, and what fills it.
const QUOTA: &str = "2097152";
const FOREIGN_BYTES: usize = 100_000;

/// Waits until another manager decides.
fn successor<'a>(
    gateway: &Gateway,
    of: &ManagerProcess,
    all: &'a [ManagerProcess],
) -> &'a ManagerProcess {
    let url = until("another one decides", || {
        let url = holder(gateway, ONLY).ok().flatten()?;
        (url != of.url()).then_some(url)
    });
    all.iter().find(|of| of.url() == url).unwrap()
}

#[test]
fn another_manager_takes_over_and_keeps_what_was_promised() {
    let folder = tempfile::tempdir().unwrap();
    let etcd = Etcd::start(folder.path(), 3);
    let all = ["one", "two", "three"].map(|name| ManagerProcess::start(folder.path(), name, &etcd));
    let gateway = etcd.gateway();
    let mut waits = Vec::new();
    for round in 0..6 {
        let url = holder(&gateway, ONLY).unwrap().unwrap();
        let decides = all.iter().find(|of| of.url() == url).unwrap();
        let other = all.iter().find(|of| of.url() != url).unwrap();
        // The same client goes on asking whoever answers.
        let client = other.client_within(Duration::from_secs(1));
        grant(&client, &format!("before{round}"), 2, 600 * S);
        decides.kill();
        let since = Instant::now();
        let id = format!("after{round}");
        until("another one grants", || {
            client.reserve(&body(&id, 2, 600 * S)).ok()
        });
        waits.push(since.elapsed());
        let found = client.reservations().unwrap();
        assert_eq!(found.len(), 2 * (round + 1));
        decides.start_again();
        until("it is back", || decides.client().links().ok());
    }
    let all = records::read(&gateway).unwrap();
    assert_eq!(all[ONLY].reservations.len(), 12);
    let ms: Vec<_> = waits.iter().map(Duration::as_millis).collect();
    eprintln!("another manager granted after {ms:?} ms");
}

/// It is stopped for so long that another one decides, and does not know that when it goes on.
#[test]
fn a_deposed_manager_promises_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let etcd = Etcd::start(folder.path(), 1);
    let all = ["one", "two", "three"].map(|name| ManagerProcess::start(folder.path(), name, &etcd));
    let gateway = etcd.gateway();
    let first = &all[0];
    assert_eq!(holder(&gateway, ONLY).unwrap(), Some(first.url()));
    let ids: Vec<_> = (0..6).map(|n| format!("x{n}")).collect();
    for id in &ids {
        grant(&first.client(), id, 1, 600 * S);
    }
    first.signal("STOP");
    let second = successor(&gateway, first, &all);
    // A client asks again: one answer may be late by what the new manager waits for the old.
    let client = second.client_within(Duration::from_secs(2));
    for id in &ids {
        until("it is released", || client.release(id).ok());
    }
    thread::scope(|threads| {
        let asked: Vec<_> = ids
            .iter()
            .map(|id| {
                threads.spawn(move || {
                    let client = first.client();
                    let same = client.reserve(&body(id, 1, 600 * S));
                    assert!(!matches!(same, Ok(Reserved::Granted(_))), "{id}: {same:?}");
                    let refreshed = client.refresh(id, None);
                    assert!(refreshed.is_err(), "{id}: {refreshed:?}");
                })
            })
            .collect();
        let others: Vec<_> = (0..6)
            .map(|n| {
                threads.spawn(move || {
                    let id = format!("y{n}");
                    let reserved = first.client().reserve(&body(&id, 1, 600 * S));
                    matches!(reserved, Ok(Reserved::Granted(_))).then_some(id)
                })
            })
            .collect();
        sleep(Duration::from_millis(2500));
        first.signal("CONT");
        for of in asked {
            of.join().unwrap();
        }
        let others: Vec<_> = others
            .into_iter()
            .filter_map(|of| of.join().unwrap())
            .collect();
        let all = records::read(&gateway).unwrap();
        for id in others {
            assert!(all[ONLY].reservations.contains_key(&id), "{id}");
        }
    });
    assert_eq!(holder(&gateway, ONLY).unwrap(), Some(second.url()));
    // It stands by and says who decides.
    let client = first.client();
    until("it stands by", || client.links().ok());
    grant(&client, "z", 1, 600 * S);
}

#[test]
fn a_stream_over_two_seats_outlives_whoever_decides_one() {
    let folder = tempfile::tempdir().unwrap();
    let etcd = Etcd::start(folder.path(), 1);
    let net = history::managed_net();
    let start = |log: &str, name: &str| {
        let words = ["--name", name];
        let of = (log, &Host::here());
        let process = ManagerProcess::new(folder.path(), of, &etcd, (&net, &words));
        process.start_again();
        until("a manager answers", || process.client().links().ok());
        process
    };
    let m1 = [start("m1a", "m1"), start("m1b", "m1")];
    let m2 = [start("m2a", "m2"), start("m2b", "m2")];
    let client = m1[1].client();
    until("both have claimed what they have", || {
        client.reserve(&body("x", 2, 30 * S)).ok()
    });
    let parts = m2[1].client().parts().unwrap();
    assert_eq!(parts.len(), 1);
    m2[0].kill();
    let since = Instant::now();
    let view = until("it can be refreshed", || {
        client.refresh("x", Some(60 * S)).ok()
    });
    eprintln!(
        "refreshed over another manager after {} ms",
        since.elapsed().as_millis()
    );
    assert!(view.expires_in_ns > 50 * S);
    m1[0].kill();
    let view = until("it can be refreshed", || {
        client.refresh("x", Some(90 * S)).ok()
    });
    assert!(view.expires_in_ns > 80 * S);
    let all = records::read(&etcd.gateway()).unwrap();
    let links = client.links().unwrap().into_iter();
    let links = links.chain(m2[1].client().links().unwrap());
    let budgets = links.map(|of| (of.link, of.budget_bytes)).collect();
    records::check(&all, &budgets, &["x".to_owned()].into()).unwrap();
    client.release("x").unwrap();
    until("nothing is left", || {
        records::check_end(&records::read(&etcd.gateway()).unwrap()).ok()
    });
}

/// etcd forgets what was, since a manager asks it to.
#[test]
fn the_history_of_changes_does_not_grow() {
    let folder = tempfile::tempdir().unwrap();
    let etcd = Etcd::start_on(folder.path(), vec![Host::here()], &[]);
    let one = ManagerProcess::start(folder.path(), "one", &etcd);
    let client = one.client();
    grant(&client, "x", 1, 600 * S);
    let gateway = etcd.gateway();
    let then = gateway.read("pspacer/", None, (1, 0)).unwrap().revision;
    // A manager that loses its seat for a while counts anew.
    let forgotten = (0..50).find_map(|_| {
        for _ in 0..110 {
            until("it is refreshed", || client.refresh("x", None).ok());
        }
        gateway.read("pspacer/", None, (1, then)).err()
    });
    let old = forgotten.unwrap().to_string();
    assert!(old.contains("compacted"), "{old}");
}

/// Puts and deletes keys of somebody else until there is no more room.
fn fill(gateway: &Gateway) {
    let seat = Condition::Absent("none".to_owned());
    let key = |n: usize| format!("foreign/{n}");
    let mut n = 0;
    loop {
        let put = Write::Put {
            key: key(n),
            value: vec![0; FOREIGN_BYTES],
            lease: 0,
        };
        match gateway.transact(std::slice::from_ref(&seat), &[put]) {
            Ok(_) => n += 1,
            Err(EtcdError::Full(_)) => break,
            Err(error) => panic!("{error}"),
        }
    }
    for n in 0..=n {
        gateway
            .transact(std::slice::from_ref(&seat), &[Write::Delete(key(n))])
            .unwrap();
    }
}

#[test]
fn a_full_database_gets_room_again() {
    let folder = tempfile::tempdir().unwrap();
    let words = ["--quota-backend-bytes", QUOTA];
    let etcd = Etcd::start_on(folder.path(), vec![Host::here()], &words);
    let one = ManagerProcess::start(folder.path(), "one", &etcd);
    let client = one.client();
    grant(&client, "x", 1, 600 * S);
    let gateway = etcd.gateway();
    fill(&gateway);
    until("it is freed", || client.release("x").ok());
    grant(&client, "y", 1, 600 * S);
    // Nobody decides when it is full.
    one.kill();
    fill(&gateway);
    one.start_again();
    until("it is elected", || {
        client.reserve(&body("z", 1, 600 * S)).ok()
    });
    assert_eq!(reserved_bytes(&client, "s"), 2 * WIRE_BYTES);
}
