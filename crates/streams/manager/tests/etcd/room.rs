// SPDX-License-Identifier: MIT OR Apache-2.0
//! An etcd whose database is small, and one with a member that says nothing.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use admission::FrameSpecification;
use manager_proto::api::ReserveBody;
use manager_proto::client::{Client, ClientError, Reserved};
use testkit::until;

use super::network::Host;
use super::processes::{Etcd, ManagerProcess};
use super::requests::{S, body};

/// Bytes that the database may have.
const QUOTA: &str = "4194304";

/// Returns a request for the shortest frames, with a record as long as any talker's.
fn long(n: usize) -> ReserveBody {
    let mut body = body(&format!("{n:064}"), 1, 600 * S);
    body.stream.stream_id.clone_from(&body.id);
    body.stream.talker.traffic_specification.max_frame_size = Some(21);
    let frames = (0..16).map(|of| {
        let n = u16::try_from(n).unwrap().to_be_bytes();
        FrameSpecification::udp_to(([10, of, n[0], n[1]], 5004).into())
    });
    body.stream.talker.data_frame_specification = frames.collect();
    body
}

/// Asks until the manager knows.
fn released(client: &Client, id: &str) {
    until("it is released", || match client.release(id) {
        Ok(_) => Some(()),
        Err(ClientError::Refused { status: 404, .. }) => Some(()),
        Err(_) => None,
    });
}

/// More pairs of a grant and its release than there is room for at a time: none is refused.
#[test]
fn what_has_ended_fills_no_database() {
    let folder = tempfile::tempdir().unwrap();
    let words = ["--quota-backend-bytes", QUOTA];
    let etcd = Etcd::start_on(folder.path(), vec![Host::here()], &words);
    let one = ManagerProcess::start(folder.path(), "one", &etcd);
    thread::scope(|threads| {
        for talker in 0..16 {
            let one = &one;
            threads.spawn(move || {
                let client = one.client();
                for n in 0..280 {
                    let body = ReserveBody {
                        id: format!("x{talker}-{n}"),
                        ..long(talker * 1000 + n)
                    };
                    until("it is granted", || client.reserve(&body).ok());
                    released(&client, &body.id);
                }
            });
        }
    });
    let log = fs::read_to_string(folder.path().join("one.log")).unwrap();
    assert!(!log.contains("full"), "{log}");
}

/// Live reservations fill it: nothing more is granted, all say why, and each is released.
#[test]
fn a_full_database_has_room_for_releases() {
    let folder = tempfile::tempdir().unwrap();
    let words = ["--quota-backend-bytes", QUOTA];
    let etcd = Etcd::start_on(folder.path(), vec![Host::here()], &words);
    let one = ManagerProcess::start(folder.path(), "one", &etcd);
    let client = one.client();
    let mut granted = Vec::new();
    let refused = (0..2000).find_map(|n| {
        let body = long(n);
        match client.reserve(&body) {
            Ok(Reserved::Granted(_)) => granted.push(body.id),
            Ok(other) => panic!("{other:?}"),
            Err(ClientError::Refused {
                status: 503,
                message,
            }) => return Some(message),
            Err(error) => panic!("{error}"),
        }
        None
    });
    let refused = refused.unwrap();
    assert!(refused.contains("etcd's database is full"), "{refused}");
    let said = || fs::read_to_string(folder.path().join("one.log")).unwrap();
    assert!(said().contains("etcd's database is full"), "{}", said());
    // They go on, another manager takes over, and all are released.
    until("it is refreshed", || client.refresh(&granted[0], None).ok());
    let two = ManagerProcess::start(folder.path(), "two", &etcd);
    one.kill();
    let client = two.client();
    until("another one decides", || client.reservations().ok());
    assert_eq!(client.reservations().unwrap().len(), granted.len());
    for id in &granted {
        released(&client, id);
    }
    let body = long(5000);
    until("there is room again", || client.reserve(&body).ok());
}

/// Each of three members in its turn, the leader among them.
#[test]
fn a_silent_member_costs_no_seat() {
    let folder = tempfile::tempdir().unwrap();
    let etcd = Etcd::start_alone(folder.path(), 3);
    let one = ManagerProcess::start(folder.path(), "one", &etcd);
    let two = ManagerProcess::start(folder.path(), "two", &etcd);
    let gateway = etcd.gateway();
    let client = one.client();
    until("it grants", || client.reserve(&body("x", 1, 60 * S)).ok());
    released(&client, "x");
    // Each transaction says by which seat it is.
    let seat = || {
        let last = until("etcd answers", || {
            gateway.read("pspacer/manager/last", None, (1, 0)).ok()
        });
        let value = String::from_utf8(last.pairs[0].1.clone()).unwrap();
        value.rsplit_once(' ').unwrap().0.to_owned()
    };
    for member in 0..3 {
        let before = seat();
        etcd.signal(member, "STOP");
        let begun = Instant::now();
        let mut worst = Duration::ZERO;
        let mut n = 0;
        while begun.elapsed() < Duration::from_secs(6) {
            let since = Instant::now();
            let id = format!("x{member}-{n}");
            let is_granted = || client.reserve(&body(&id, 1, 60 * S)).ok();
            until("it is granted", is_granted);
            worst = worst.max(since.elapsed());
            released(&client, &id);
            n += 1;
        }
        eprintln!("member {member} of 3 is silent: the longest pause is {worst:?}");
        etcd.signal(member, "CONT");
        assert_eq!(seat(), before, "member {member}");
        let all = until("it lists", || client.reservations().ok());
        assert!(all.is_empty());
        // One that goes on may have another leader voted for: that is over first.
        thread::sleep(Duration::from_secs(4));
    }
    drop(two);
}
