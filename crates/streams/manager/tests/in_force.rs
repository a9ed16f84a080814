// SPDX-License-Identifier: MIT OR Apache-2.0
//! A manager that tells a talker of its grant only when all senders have put it into force.

use std::sync::Arc;

use admission::{FrameSpecification, IpTuple, Medium, NodeSpec, SegmentSpec, Topology};
use manager::store::{MemoryStore, Store};
use manager::stored_view::StoredView;
use manager_proto::answer::{Action, Answer, Caller, Command, Failure, View};
use manager_proto::machine::{Limits, Manager, Start};
use manager_proto::record::Update;

use crate::requests::{self, stream};

const MS: u64 = 1_000_000;
const S: u64 = 1000 * MS;
/// Time in which the senders have to put a stream into force.
const WITHIN_NS: u64 = 2 * S;

/// A manager with its store: a talker `a`, a router `r`, a listener `b`.
struct Net {
    manager: Manager,
    store: MemoryStore,
    now_ns: u64,
}

fn topology() -> Arc<Topology> {
    let node = |name: &str, is_router| NodeSpec {
        name: name.to_owned(),
        is_router,
    };
    let nodes = [node("a", false), node("r", true), node("b", false)];
    let segments = [
        SegmentSpec::new("s", Medium::Shared, 100_000_000, &["a", "r"]),
        SegmentSpec::new("t", Medium::Switched, 100_000_000, &["r", "b"]),
    ];
    Arc::new(Topology::new(&nodes, &segments).unwrap())
}

fn limits() -> Limits {
    Limits {
        in_force_ns: Some(WITHIN_NS),
        ..Limits::default()
    }
}

fn caller() -> Caller {
    Caller::operator("me")
}

fn frames() -> Vec<FrameSpecification> {
    vec![FrameSpecification::Ipv4Tuple(IpTuple {
        source_ip_address: None,
        destination_ip_address: [10, 0, 0, 2].into(),
        protocol: 17,
        source_port: None,
        destination_port: 5004,
    })]
}

impl Net {
    fn new(store: MemoryStore, boot: &str, now_ns: u64) -> Self {
        let mut store = store;
        let records = store.load().unwrap();
        let start = Start::alone("m", boot, now_ns);
        let manager = Manager::restore(&start, topology(), limits(), records).unwrap();
        let mut net = Self {
            manager,
            store,
            now_ns,
        };
        net.answers();
        net
    }

    /// Stores what has changed; returns the answers.
    fn answers(&mut self) -> Vec<(u64, Answer)> {
        let effects = self.manager.take_effects();
        let changes: Vec<_> = effects.updates.iter().filter_map(Update::change).collect();
        self.store.apply(&changes).unwrap();
        effects.answers
    }

    fn reserve(&mut self, ticket: u64) -> Vec<(u64, Answer)> {
        let mut request = stream("x", "a", "b", requests::frames(1));
        request.talker.data_frame_specification = frames();
        let command = Command::new(
            "x",
            caller(),
            Action::Reserve {
                request,
                lease_ns: 60 * S,
                is_replacing: false,
            },
        );
        self.manager.command(self.now_ns, ticket, command);
        self.answers()
    }

    fn report(&mut self, node: &str, is_in_force: bool) -> Vec<(u64, Answer)> {
        let command = Command::new(
            "x",
            caller(),
            Action::Report {
                node: node.to_owned(),
                is_in_force,
            },
        );
        self.manager.command(self.now_ns, 99, command);
        let mut answers = self.answers();
        // The reporter's own.
        answers.retain(|(ticket, _)| *ticket != 99);
        answers
    }

    fn after(&mut self, ns: u64) -> Vec<(u64, Answer)> {
        self.now_ns += ns;
        self.manager.advance(self.now_ns);
        self.answers()
    }

    fn free_bytes(&self) -> u64 {
        let topology = self.manager.topology();
        let link = topology.link_id("s").unwrap();
        self.manager.parts().ledger().free_bytes(topology, link)
    }
}

fn is_in_force(answer: &Answer) -> bool {
    matches!(answer, Answer::Granted(view) if view.in_force)
}

#[test]
fn a_talker_has_its_grant_when_all_senders_keep_to_it() {
    let mut net = Net::new(MemoryStore::default(), "boot", S);
    let free_bytes = net.free_bytes();
    assert_eq!(net.reserve(1), []);
    // Its bytes are taken, and the senders see what they have to do.
    assert_eq!(net.free_bytes(), free_bytes - 1038);
    let duty = StoredView::of(&net.manager)
        .duty("a", net.manager.now_ns())
        .unwrap();
    let port = &duty.ports["s"];
    assert_eq!((port.rate_bps, port.period_ns), (100_000_000, 10 * MS));
    let stream = &port.streams[0];
    assert_eq!((stream.bytes, stream.in_force), (1038, false));
    assert_eq!(stream.frames, frames());
    // The same request again waits as well; one sender is not all.
    assert_eq!(net.reserve(2), []);
    assert_eq!(net.report("a", true), []);
    assert!(
        StoredView::of(&net.manager)
            .duty("a", net.manager.now_ns())
            .unwrap()
            .ports["s"]
            .streams[0]
            .in_force
    );
    let answers = net.report("r", true);
    let tickets: Vec<_> = answers.iter().map(|(ticket, _)| *ticket).collect();
    assert_eq!(tickets, [1, 2]);
    assert!(
        answers.iter().all(|(_, answer)| is_in_force(answer)),
        "{answers:?}"
    );
    // It stays, beyond the deadline, also where a sender loses it later.
    assert_eq!(net.report("r", false), []);
    assert_eq!(net.after(2 * WITHIN_NS), []);
    assert_eq!(net.free_bytes(), free_bytes - 1038);
    assert!(!is_in_force(&net.reserve(3)[0].1));
}

#[test]
fn without_a_sender_nothing_stays_reserved() {
    let mut net = Net::new(MemoryStore::default(), "boot", S);
    let free_bytes = net.free_bytes();
    net.reserve(1);
    net.report("a", true);
    assert_eq!(net.after(WITHIN_NS - 1), []);
    let answers = net.after(1);
    let failure = Failure::NotInForce(vec!["r".to_owned()]);
    assert_eq!(answers, [(1, Answer::Failed(failure.clone()))]);
    assert!(
        failure
            .to_string()
            .starts_with("not in force in time at r;")
    );
    assert_eq!(net.free_bytes(), free_bytes);
    assert!(
        StoredView::of(&net.manager)
            .duty("a", net.manager.now_ns())
            .unwrap()
            .ports["s"]
            .streams
            .is_empty()
    );
    // The answer may have been lost: the same request has ended.
    let ended = Answer::Failed(Failure::Ended("x".to_owned()));
    assert_eq!(net.reserve(2), [(2, ended)]);
}

#[test]
fn a_release_answers_those_who_wait() {
    let mut net = Net::new(MemoryStore::default(), "boot", S);
    net.reserve(1);
    let release = Command::new("x", caller(), Action::Release);
    net.manager.command(net.now_ns, 2, release);
    let answers = net.answers();
    let ended = Answer::Failed(Failure::Ended("x".to_owned()));
    assert!(answers.contains(&(1, ended)), "{answers:?}");
    let view = View::new("x", &net.manager.reservations()["x"], net.now_ns);
    assert_eq!((view.granted, view.in_force), (false, false));
    assert_eq!(net.after(2 * WITHIN_NS), []);
}

/// A manager that is killed while agents work goes on from there, in the same boot or another.
#[test]
fn a_manager_killed_meanwhile_still_waits() {
    for (boot, now_ns) in [("boot", 2 * S), ("another", 5 * MS)] {
        let mut net = Net::new(MemoryStore::default(), "boot", S);
        net.reserve(1);
        net.report("a", true);
        let mut net = Net::new(net.store, boot, now_ns);
        assert_eq!(net.reserve(7), [], "{boot}");
        let answers = net.report("r", true);
        assert!(
            answers.len() == 1 && answers[0].0 == 7 && is_in_force(&answers[0].1),
            "{boot}"
        );
        // And one that is killed once more gives up in time.
        let mut net = Net::new(MemoryStore::default(), "boot", S);
        let free_bytes = net.free_bytes();
        net.reserve(1);
        let mut net = Net::new(net.store, boot, now_ns);
        net.after(WITHIN_NS);
        assert_eq!(net.free_bytes(), free_bytes, "{boot}");
    }
}
