// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a hostile talker may not do over HTTP: reserve for another's host or its frames, take more than
//! its share, or say that its own stream is in force.

use admission::FrameSpecification;
use manager::access;
use manager_proto::api::ReserveBody;
use manager_proto::client::{Client, ClientError, Reserved};

use crate::service::{Running, body, client, hex, start};

/// Returns a manager that knows two talkers, each with a host, and the agent of the first host.
fn running() -> Running {
    let entry = |name: &str, role: &str, more: &str| {
        let hash = hex(access::sha256(name.as_bytes()));
        format!(
            "[[access]]\nname = \"{name}\"\nrole = \"{role}\"\ntoken_sha256 = \"{hash}\"\n{more}\n"
        )
    };
    let text = entry(
        "mine",
        "talker",
        "hosts = [\"a\"]\nstreams = 3\nbytes = 4000\nlease = \"2m\"",
    ) + &entry("theirs", "talker", "hosts = [\"b\"]")
        + &entry("of-a", "agent", "hosts = [\"a\"]")
        + &entry("ops", "operator", "");
    start(access::read(&text).unwrap(), None)
}

fn refused<T: std::fmt::Debug>(answer: Result<T, ClientError>) -> (u16, String) {
    match answer {
        Err(ClientError::Refused { status, message }) => (status, message),
        other => panic!("{other:?}"),
    }
}

fn reserve(client: &Client, body: &ReserveBody) -> bool {
    matches!(client.reserve(body).unwrap(), Reserved::Granted(_))
}

/// A request from a host for frames to a port.
fn request(id: &str, from: &str, port: u16) -> ReserveBody {
    let mut body = body(id);
    let other = if from == "a" { "b" } else { "a" };
    from.clone_into(&mut body.stream.talker.name);
    other.clone_into(&mut body.stream.listeners[0].name);
    let frames = FrameSpecification::udp_to(([10, 0, 0, 2], port).into());
    body.stream.talker.data_frame_specification = vec![frames];
    body
}

#[test]
fn a_talker_has_its_hosts_and_its_share() {
    let running = running();
    let mine = client(&running, Some("mine"));
    assert!(reserve(&mine, &request("x", "a", 1)));
    // The id `0` would come first in the duty, and the frames are x's.
    let theirs = client(&running, Some("theirs"));
    let (status, message) = refused(theirs.reserve(&request("0", "a", 1)));
    assert_eq!(status, 403, "{message}");
    let Reserved::Refused(view) = theirs.reserve(&request("0", "b", 1)).unwrap() else {
        panic!()
    };
    assert!(view.message.contains("another reservation's"), "{view:?}");
    assert!(reserve(&theirs, &request("0", "b", 2)));
    // 1,038 bytes each.
    let (status, message) = refused(mine.reserve(&ReserveBody {
        lease_ns: 121_000_000_000,
        ..request("y", "a", 3)
    }));
    assert!(status == 403 && message.contains("lease_ns"), "{message}");
    let mut long = request("y", "a", 3);
    long.stream
        .talker
        .traffic_specification
        .max_frames_per_interval = Some(3);
    let (status, message) = refused(mine.reserve(&long));
    assert!(
        status == 403 && message.contains("`bytes` of link s"),
        "{message}"
    );
    for (id, port) in [("y", 3), ("z", 4)] {
        assert!(reserve(&mine, &request(id, "a", port)));
    }
    let (status, message) = refused(mine.reserve(&request("w", "a", 5)));
    assert!(status == 403 && message.contains("`streams`"), "{message}");
    let (status, message) = refused(mine.refresh("x", Some(600_000_000_000)));
    assert!(status == 403 && message.contains("lease_ns"), "{message}");
    // What is in the place of another counts once, and what is free counts no more.
    let mut other = request("z", "a", 6);
    other.replace = true;
    assert!(reserve(&mine, &other));
    assert_eq!(mine.reservations().unwrap().len(), 3);
    let duty = client(&running, Some("ops")).duty("a").unwrap();
    let streams = &duty.ports["s"].streams;
    let frames = streams
        .iter()
        .find(|of| of.id == "z")
        .unwrap()
        .frames
        .clone();
    assert_eq!(frames, other.stream.talker.data_frame_specification);
    mine.release("y").unwrap();
    assert!(reserve(&mine, &request("w", "a", 3)));
    // A replacement that does not fit leaves what is there.
    let mut too_much = request("w", "a", 3);
    too_much.replace = true;
    too_much
        .stream
        .talker
        .traffic_specification
        .max_frames_per_interval = Some(60_000);
    let answer = client(&running, Some("ops")).reserve(&too_much);
    assert_eq!(refused(answer).0, 409);
    assert_eq!(refused(mine.reserve(&too_much)).0, 403);
    assert_eq!(mine.reservations().unwrap().len(), 3);
}

#[test]
fn only_the_node_says_what_is_in_force() {
    let running = running();
    let mine = client(&running, Some("mine"));
    assert!(reserve(&mine, &request("x", "a", 1)));
    let (status, message) = refused(mine.report("x", "a", true));
    assert_eq!(status, 403, "{message}");
    assert_eq!(refused(mine.duty("a")).0, 403);
    assert_eq!(refused(mine.parts()).0, 403);
    assert_eq!(refused(mine.free_part("m1", "x")).0, 403);
    assert_eq!(refused(mine.fit(String::new(), true)).0, 400);
    let agent = client(&running, Some("of-a"));
    assert_eq!(agent.duty("a").unwrap().ports["s"].streams.len(), 1);
    assert_eq!(refused(agent.duty("b")).0, 403);
    assert_eq!(refused(agent.report("x", "b", true)).0, 403);
    assert!(agent.report("x", "a", true).unwrap().in_force);
    // It commands nothing, and sees no reservations of others.
    assert_eq!(refused(agent.reserve(&request("y", "a", 2))).0, 403);
    assert_eq!(refused(agent.release("x")).0, 403);
    assert!(agent.reservations().unwrap().is_empty());
    assert!(mine.reservations().unwrap()[0].in_force);
}
