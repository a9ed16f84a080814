// SPDX-License-Identifier: MIT OR Apache-2.0
//! Another manager that lies, one lie at a time: it refuses and delays what crosses it, and nothing
//! else. The histories tell all lies at random.

use std::sync::Arc;

use admission::{
    Interval, LinkBytes, Listener, Medium, NodeSpec, Refusal, Requirements, SegmentSpec,
    StreamRequest, Talker, Topology, TrafficSpecification,
};
use manager::answer::{Answer, Caller, Command, Failure};
use manager::machine::{Limits, Manager, Start};
use manager::message::{Claim, Claimed, Envelope, Message, Reply};
use manager::record::{Attempt, PartState, ReservationState};

const S: u64 = 1_000_000_000;
/// The manager that is lied to, one that says nothing, and the liar.
const NAMES: [&str; 3] = ["m1", "m2", "liar"];

fn topology() -> Arc<Topology> {
    let node = |name: &str| NodeSpec {
        name: name.to_owned(),
        is_router: name.starts_with('r'),
    };
    let nodes = ["a", "b", "r1", "c"].map(node);
    let segment = |name: &str, manager: &str, members: &[&str]| {
        let mut of = SegmentSpec::new(name, Medium::Shared, 100_000_000, members);
        of.manager = Some(manager.to_owned());
        of
    };
    let segments = [
        segment("s1", "m1", &["a", "b", "r1"]),
        segment("s2", "liar", &["r1", "c"]),
    ];
    Arc::new(Topology::new(&nodes, &segments).unwrap())
}

struct Lied {
    manager: Manager,
    tickets: u64,
}

impl Lied {
    fn new() -> Self {
        let names = NAMES.map(str::to_owned);
        let start = Start {
            peers: &names,
            ..Start::alone("m1", "boot", S)
        };
        let manager = Manager::restore(&start, topology(), Limits::default(), []).unwrap();
        let mut lied = Self {
            manager,
            tickets: 0,
        };
        lied.manager.take_effects();
        lied
    }

    /// Reserves from `a` to another host.
    fn reserve(&mut self, id: &str, to: &str) -> Vec<(u64, Answer)> {
        self.tickets += 1;
        let command = Command::Reserve {
            id: id.to_owned(),
            caller: Caller::talker("t"),
            request: request(id, to),
            lease_ns: 60 * S,
            is_replacing: false,
        };
        self.manager.command(S, self.tickets, command);
        let effects = self.manager.take_effects();
        // As the liar does that is asked to.
        for (to, message) in effects.messages {
            assert_eq!(to, "liar");
            let agreed = match message {
                Message::Hold { id, attempt, .. } => Message::Held { id, attempt },
                Message::Commit { id, attempt, .. } => Message::Committed { id, attempt },
                other => panic!("{other:?}"),
            };
            self.answer(agreed);
        }
        let effects = self.manager.take_effects();
        for (_, message) in effects.messages {
            if let Message::Commit { id, attempt, .. } = message {
                self.answer(Message::Committed { id, attempt });
            }
        }
        effects.answers
    }

    /// The liar says this in a reply.
    fn answer(&mut self, message: Message) {
        let reply = Reply {
            epoch: 7,
            messages: vec![message],
        };
        self.manager.replied(S, "liar", reply);
    }

    /// The liar asks for this; returns the answers.
    fn ask(&mut self, message: Message) -> Vec<Message> {
        let envelope = Envelope {
            from: "liar".to_owned(),
            epoch: 7,
            within_ns: S,
            messages: vec![message],
        };
        self.manager.receive(S, 0, envelope);
        let replies = self.manager.take_effects().replies;
        replies
            .into_iter()
            .flat_map(|(_, of)| of.messages)
            .collect()
    }

    fn is_granted(&self, id: &str) -> bool {
        self.manager.reservations()[id].state == ReservationState::Granted
    }
}

fn request(id: &str, to: &str) -> StreamRequest {
    StreamRequest {
        stream_id: id.to_owned(),
        talker: Talker {
            name: "a".to_owned(),
            data_frame_specification: Vec::new(),
            traffic_specification: TrafficSpecification {
                interval: Interval::from_ns(10_000_000).unwrap(),
                max_frames_per_interval: None,
                max_frame_size: None,
                bytes_per_interval: Some(1000),
            },
            user_to_network_requirements: Requirements::default(),
        },
        listeners: vec![Listener {
            name: to.to_owned(),
            user_to_network_requirements: Requirements::default(),
            route: vec![],
        }],
    }
}

/// It says of everything, and of every try that there may have been, that it is lost.
#[test]
fn what_does_not_cross_a_liar_is_not_lost_there() {
    let mut lied = Lied::new();
    lied.reserve("local", "b");
    lied.reserve("over", "c");
    assert!(lied.is_granted("local") && lied.is_granted("over"));
    let epoch = lied.manager.epoch();
    let lost = |ids: &[&str]| -> Vec<(String, Attempt)> {
        let all = ids
            .iter()
            .flat_map(|id| (0..64).map(move |count| (id, count)));
        all.map(|(id, count)| (id.to_string(), Attempt { epoch, count }))
            .collect()
    };
    // A new start of the liar's is told what this manager has there.
    lied.answer(Message::Released {
        id: "x".to_owned(),
        attempt: Attempt { epoch, count: 99 },
    });
    for round in 0..64 {
        lied.answer(Message::Welcome { round, nonce: 1 });
    }
    for round in 0..64 {
        for n in 0..4 {
            let all = lost(&["local", "over"]);
            lied.answer(Message::Claimed {
                round,
                lost: all[n * 32..][..32].to_vec(),
                is_again: true,
            });
        }
    }
    assert!(lied.is_granted("local"));
}
