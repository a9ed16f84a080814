// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reservations that are negotiated anew when a node sends their frames another way: two managers,
//! and messages that arrive or do not.

use std::sync::Arc;

use admission::{Medium, NodeSpec, Refusal, SegmentSpec, Topology};
use manager_proto::answer::{Action, Answer, Caller, Command, Failure, View};
use manager_proto::machine::{Limits, Manager, Start};
use manager_proto::message::{Envelope, Reply};

use crate::requests::{self, stream};

const MS: u64 = 1_000_000;
const S: u64 = 1000 * MS;
const LEASE_NS: u64 = 60 * S;
/// A frame of 1000 bytes with all that is around it.
const WIRE_BYTES: u64 = 1038;

/// From `a` over `s` and `r1` to `b`: by `t`, or by `u`, `r2` and `v`, which are of another
/// manager. Over `r3` nothing goes, as `t` is before it.
fn topology() -> Arc<Topology> {
    let node = |name: &str| NodeSpec {
        name: name.to_owned(),
        is_router: name.starts_with('r'),
    };
    let segment = |name: &str, members: &[&str], manager: &str| {
        let mut of = SegmentSpec::new(name, Medium::Shared, 100_000_000, members);
        of.manager = Some(manager.to_owned());
        of
    };
    let nodes = ["a", "c", "r1", "r2", "r3", "b"].map(node);
    let segments = [
        segment("s", &["a", "c", "r1", "r3"], "m1"),
        segment("t", &["r1", "b"], "m1"),
        segment("u", &["r1", "r2"], "m2"),
        segment("v", &["r2", "b"], "m2"),
        segment("w", &["r3", "b"], "m2"),
    ];
    Arc::new(Topology::new(&nodes, &segments).unwrap())
}

struct Net {
    m1: Manager,
    m2: Manager,
    now_ns: u64,
    /// Whether messages to m2 arrive.
    is_whole: bool,
    ticket: u64,
    answers: Vec<(u64, Answer)>,
}

fn caller() -> Caller {
    Caller::operator("me")
}

impl Net {
    fn new() -> Self {
        let manager = |name: &str| {
            let start = Start {
                name,
                peers: &["m1".to_owned(), "m2".to_owned()],
                epoch: 1,
                boot: "boot",
                now_ns: S,
                is_store_whole: false,
            };
            Manager::restore(&start, topology(), Limits::default(), []).unwrap()
        };
        let mut net = Self {
            m1: manager("m1"),
            m2: manager("m2"),
            now_ns: S,
            is_whole: true,
            ticket: 0,
            answers: Vec::new(),
        };
        net.settle();
        net
    }

    /// Hands messages over until there are none.
    fn settle(&mut self) {
        loop {
            let mut messages: Vec<(String, String, Envelope)> = Vec::new();
            let mut replies: Vec<(String, Reply)> = Vec::new();
            for (from, manager) in [("m1", &mut self.m1), ("m2", &mut self.m2)] {
                let effects = manager.take_effects();
                let epoch = manager.epoch();
                messages.extend(effects.messages.into_iter().map(|(to, of)| {
                    let envelope = Envelope {
                        from: from.to_owned(),
                        epoch,
                        within_ns: S,
                        messages: vec![of],
                    };
                    (from.to_owned(), to, envelope)
                }));
                let of_replies = effects.replies.into_iter();
                replies.extend(of_replies.map(|(_, of)| (from.to_owned(), of)));
                self.answers.extend(effects.answers);
            }
            if messages.is_empty() && replies.is_empty() {
                return;
            }
            for (from, to, envelope) in messages {
                assert_ne!(from, to);
                match to.as_str() {
                    "m1" => self.m1.receive(self.now_ns, 0, envelope),
                    _ if self.is_whole => self.m2.receive(self.now_ns, 0, envelope),
                    _ => {}
                }
            }
            for (from, reply) in replies {
                // There are two: what one says the other hears.
                match from.as_str() {
                    "m2" => self.m1.replied(self.now_ns, "m2", reply),
                    _ if self.is_whole => self.m2.replied(self.now_ns, "m1", reply),
                    _ => {}
                }
            }
        }
    }

    fn after(&mut self, ns: u64) {
        self.now_ns += ns;
        self.m1.advance(self.now_ns);
        self.m2.advance(self.now_ns);
        self.settle();
    }

    /// Returns the answer to a command, if there is one by now.
    fn ask(&mut self, command: Command) -> Option<Answer> {
        self.ticket += 1;
        self.m1.command(self.now_ns, self.ticket, command);
        self.settle();
        self.answer()
    }

    fn answer(&mut self) -> Option<Answer> {
        let at = self.answers.iter().position(|(of, _)| *of == self.ticket)?;
        Some(self.answers.remove(at).1)
    }

    fn reserve(&mut self, id: &str, from: &str, to: &str, latency_ns: u32, frames: u16) -> Answer {
        let mut request = stream(id, from, to, requests::frames(frames));
        request.talker.user_to_network_requirements.max_latency = latency_ns.into();
        let command = Command::new(
            id,
            caller(),
            Action::Reserve {
                request,
                lease_ns: LEASE_NS,
                is_replacing: false,
            },
        );
        self.ask(command).unwrap()
    }

    fn reroute(&mut self, node: &str, segment: &str) -> Option<Answer> {
        self.ask(Command::new(
            "x",
            caller(),
            Action::Reroute {
                node: node.to_owned(),
                segment: segment.to_owned(),
            },
        ))
    }

    /// Bytes that are reserved of s, t, u and v.
    fn reserved(&self) -> [u64; 4] {
        let of = |manager: &Manager, link: &str| {
            let id = manager.topology().link_id(link).unwrap();
            manager.parts().ledger().reserved_bytes(id)
        };
        let (m1, m2) = (&self.m1, &self.m2);
        [of(m1, "s"), of(m1, "t"), of(m2, "u"), of(m2, "v")]
    }
}

fn granted(answer: Option<Answer>) -> View {
    match answer {
        Some(Answer::Granted(view)) => *view,
        other => panic!("{other:?}"),
    }
}

#[test]
fn bytes_move_to_the_new_route_and_the_lease_ends_as_before() {
    let mut net = Net::new();
    let view = granted(Some(net.reserve("x", "a", "b", 0, 1)));
    assert_eq!(view.listeners[0].route.join(" "), "a s r1 t b");
    assert_eq!(net.reserved(), [WIRE_BYTES, WIRE_BYTES, 0, 0]);
    net.ask(Command::new(
        "x",
        caller(),
        Action::Report {
            node: "r1".to_owned(),
            is_in_force: true,
        },
    ));
    net.after(10 * S);
    let moved = granted(net.reroute("r1", "u"));
    assert_eq!(moved.listeners[0].route.join(" "), "a s r1 u r2 v b");
    // Three hops of a period, a slot and the share of streams instead of two.
    assert_eq!((view.bound_ns, moved.bound_ns), (36 * MS, 54 * MS));
    assert_eq!(net.reserved(), [WIRE_BYTES, 0, WIRE_BYTES, WIRE_BYTES]);
    // The talker's lease ends when it would have, and later ones are as long as it asked for.
    assert_eq!(
        (moved.expires_in_ns, moved.lease_ns),
        (LEASE_NS - 10 * S, LEASE_NS)
    );
    // Nobody has put the new one into force yet.
    assert_eq!(moved.not_in_force, ["a", "r1", "r2"]);
    // The talker, who knows nothing of it, asks again, and a report that comes twice changes nothing.
    assert_eq!(granted(Some(net.reserve("x", "a", "b", 0, 1))), moved);
    assert_eq!(granted(net.reroute("r1", "u")), moved);
    // And back.
    let back = granted(net.reroute("r1", "t"));
    assert_eq!(back.listeners[0].route, view.listeners[0].route);
    assert_eq!(net.reserved(), [WIRE_BYTES, WIRE_BYTES, 0, 0]);
    granted(net.reroute("r1", "u"));
    net.after(LEASE_NS - 10 * S - 1);
    assert_eq!(net.reserved(), [WIRE_BYTES, 0, WIRE_BYTES, WIRE_BYTES]);
    net.after(1);
    assert_eq!(net.reserved(), [0; 4]);
}

#[test]
fn a_lease_that_is_refreshed_after_it_has_moved_goes_on_at_all_managers() {
    let mut net = Net::new();
    net.reserve("x", "a", "b", 0, 1);
    net.after(50 * S);
    granted(net.reroute("r1", "u"));
    let refresh = Command::new("x", caller(), Action::Refresh { lease_ns: None });
    assert_eq!(granted(net.ask(refresh)).expires_in_ns, LEASE_NS);
    net.after(LEASE_NS - 1);
    assert_eq!(net.reserved(), [WIRE_BYTES, 0, WIRE_BYTES, WIRE_BYTES]);
    net.after(1);
    assert_eq!(net.reserved(), [0; 4]);
}

/// What this manager can refuse leaves the reservation as it is.
#[test]
fn a_way_that_is_too_long_changes_nothing() {
    let mut net = Net::new();
    let limit_ns = 40 * MS as u32;
    let view = granted(Some(net.reserve("x", "a", "b", limit_ns, 1)));
    let refused = net.reroute("r1", "u").unwrap();
    let expected = Refusal::Latency {
        listener: "b".to_owned(),
        bound_ns: 54 * MS,
        wanted_ns: 40 * MS,
    };
    assert_eq!(refused, Answer::Refused(expected));
    assert_eq!(granted(Some(net.reserve("x", "a", "b", limit_ns, 1))), view);
    assert_eq!(net.reserved(), [WIRE_BYTES, WIRE_BYTES, 0, 0]);
    for (node, segment, failure) in [
        ("b", "t", Failure::Node("b".to_owned())),
        ("c", "s", Failure::Node("c".to_owned())),
        ("r1", "v", Failure::Segment("v".to_owned())),
        ("r1", "nothing", Failure::Segment("nothing".to_owned())),
    ] {
        let answer = net.reroute(node, segment).unwrap();
        assert_eq!(answer, Answer::Failed(failure), "{node} {segment}");
    }
    // Nowhere but back, where another way would begin.
    let refused = net.reroute("r1", "s").unwrap();
    assert!(
        matches!(&refused, Answer::Refused(Refusal::NoRoute { talker, .. }) if talker == "r1"),
        "{refused:?}"
    );
    assert_eq!(net.reserved(), [WIRE_BYTES, WIRE_BYTES, 0, 0]);
    assert_eq!(granted(Some(net.reserve("x", "a", "b", limit_ns, 1))), view);
}

/// What another manager refuses ends it: its frames go where nothing is left for them.
#[test]
fn what_does_not_fit_elsewhere_ends_with_the_numbers() {
    let mut net = Net::new();
    net.reserve("x", "a", "b", 0, 1);
    // 78 frames of r2's own leave of v's budget less than one.
    net.ticket += 1;
    let m2 = std::mem::replace(&mut net.m2, Net::new().m2);
    let mut other = Net {
        m1: m2,
        m2: Net::new().m1,
        ..Net::new()
    };
    other.reserve("y", "r2", "b", 0, 78);
    net.m2 = other.m1;
    let left = 87_500 - 2 * 2 * 1_538 - 78 * WIRE_BYTES;
    assert_eq!(net.reserved(), [WIRE_BYTES, WIRE_BYTES, 0, 78 * WIRE_BYTES]);
    let refused = net.reroute("r1", "u").unwrap();
    let expected = Refusal::Bandwidth {
        link: "v".to_owned(),
        needed_bytes: WIRE_BYTES,
        free_bytes: left,
    };
    assert_eq!(refused, Answer::Refused(expected));
    assert_eq!(net.reserved(), [0, 0, 0, 78 * WIRE_BYTES]);
    let ended = Answer::Failed(Failure::Ended("x".to_owned()));
    assert_eq!(net.reserve("x", "a", "b", 0, 1), ended);
}

/// A manager that does not answer: meanwhile others wait, then it has ended.
#[test]
fn without_an_answer_nothing_stays_reserved() {
    let mut net = Net::new();
    net.reserve("x", "a", "b", 0, 1);
    net.is_whole = false;
    assert_eq!(net.reroute("r1", "u"), None);
    let ticket = net.ticket;
    // Nobody hears that it has ended while it may be granted again.
    let refresh = Command::new("x", caller(), Action::Refresh { lease_ns: None });
    assert_eq!(net.ask(refresh), Some(Answer::Failed(Failure::Busy)));
    net.after(Limits::default().deadline_ns);
    net.ticket = ticket;
    let silent = Answer::Failed(Failure::NoAnswer("m2".to_owned()));
    assert_eq!(net.answer(), Some(silent));
    net.is_whole = true;
    net.after(Limits::default().hold_ns);
    assert_eq!(net.reserved(), [0; 4]);
}
