// SPDX-License-Identifier: MIT OR Apache-2.0
//! Any bytes as what a manager reads: a body of a request, another manager's message, a record of
//! the store, a file of topology. What can be read is also carried out. Whoever includes this has the
//! manager's modules `answer`, `api`, `machine`, `message` and `record` at its root.

use std::sync::Arc;

use admission::{LinkId, Topology};

use crate::answer::{Action, Answer, Caller, Command};
use crate::api::{InForceBody, LeaseBody, ReserveBody, RouteBody, read, render};
use crate::machine::{Effects, Limits, Manager, Start};
use crate::message::{Envelope, Message, Reply};
use crate::record::{Attempt, Measured, Record};

const NET: &str = r#"
[[manager]]
name = "m1"
url = "http://127.0.0.1:1"
[[manager]]
name = "m2"
url = "http://127.0.0.1:2"
[[host]]
name = "a"
[[router]]
name = "r"
[[host]]
name = "b"
[[segment]]
name = "s"
medium = "shared"
rate = "100mbit"
members = ["a", "r"]
manager = "m1"
[[segment]]
name = "t"
medium = "switched"
rate = "1gbit"
mtu = 576
members = ["r", "b"]
manager = "m2"
"#;

/// A request over both segments, which is granted.
const GOOD: &[u8] = br#"{"id": "good", "lease_ns": 60000000000, "stream": {"stream-id": "good",
    "talker": {"name": "a", "traffic-specification": {"interval": {"numerator": 1,
    "denominator": 100}, "max-frames-per-interval": 1, "max-frame-size": 500}},
    "listeners": [{"name": "b"}]}}"#;

const NOW_NS: u64 = 1_000_000_000;
/// Most rounds of messages that a command takes.
const ROUNDS: usize = 8;

/// The manager m1, and m2 in a few words: it agrees to everything.
struct Pair {
    manager: Manager,
    ticket: u64,
    /// Digest of the segments of m2, as m1 says it.
    segments: u64,
}

fn start(boot: &str) -> Start<'_> {
    Start {
        name: "m1",
        peers: &[],
        epoch: 1,
        boot,
        now_ns: NOW_NS,
        is_store_whole: false,
    }
}

impl Pair {
    fn new(net: &Arc<Topology>) -> Option<Self> {
        let peers = ["m2".to_owned()];
        let start = Start {
            peers: &peers,
            ..start("boot")
        };
        let manager = Manager::restore(&start, Arc::clone(net), Limits::default(), []).ok()?;
        let mut pair = Self {
            manager,
            ticket: 0,
            segments: 0,
        };
        pair.receive("m2", vec![Message::Hello { round: 0 }]);
        let replies = pair.manager.take_effects().replies.into_iter();
        let mut said = replies.flat_map(|(_, reply)| reply.messages);
        let nonce = said.find_map(|message| match message {
            Message::Welcome { nonce, .. } => Some(nonce),
            _ => None,
        })?;
        // It has nothing of m1's.
        let claim = Message::Claim {
            round: 0,
            nonce,
            after: String::new(),
            until: None,
            before: Attempt { epoch: 2, count: 0 },
            claims: Vec::new(),
        };
        pair.receive("m2", vec![claim]);
        let good = read::<ReserveBody>(GOOD).ok()?;
        let granted = pair.reserve(good);
        let is_granted = matches!(granted.as_slice(), [Answer::Granted(view)] if view.granted);
        is_granted.then_some(pair)
    }

    fn receive(&mut self, from: &str, messages: Vec<Message>) {
        let envelope = Envelope {
            from: from.to_owned(),
            epoch: 2,
            within_ns: NOW_NS,
            messages,
        };
        self.manager.receive(NOW_NS, 0, envelope);
    }

    /// Carries out a command; returns its answers.
    fn command(&mut self, command: Command) -> Vec<Answer> {
        self.ticket += 1;
        self.manager.command(NOW_NS, self.ticket, command);
        let mut answers = Vec::new();
        for _ in 0..ROUNDS {
            let Effects {
                messages,
                answers: said,
                ..
            } = self.manager.take_effects();
            answers.extend(said.into_iter().map(|(_, answer)| answer));
            for (to, message) in messages {
                assert_eq!(to, "m2");
                if let Some(agreed) = self.agree(message) {
                    let reply = Reply {
                        epoch: 2,
                        messages: vec![agreed],
                    };
                    self.manager.replied(NOW_NS, "m2", reply);
                }
            }
            self.check();
        }
        answers
    }

    fn reserve(&mut self, body: ReserveBody) -> Vec<Answer> {
        self.command(Command::new(
            &body.id,
            caller(),
            Action::Reserve {
                request: body.stream,
                lease_ns: body.lease_ns,
                is_replacing: body.replace,
            },
        ))
    }

    fn agree(&mut self, message: Message) -> Option<Message> {
        Some(match message {
            Message::Hold {
                id,
                attempt,
                segments,
                ..
            } => {
                self.segments = segments;
                Message::Held { id, attempt }
            }
            Message::Hello { round } => Message::Welcome { round, nonce: 7 },
            Message::Claim { round, .. } => Message::Claimed {
                round,
                lost: Vec::new(),
                is_again: false,
            },
            Message::Commit { id, attempt, .. } => Message::Committed { id, attempt },
            Message::Refresh {
                id, attempt, round, ..
            } => Message::Refreshed { id, attempt, round },
            Message::Release { id, attempt } => Message::Released { id, attempt },
            _ => return None,
        })
    }

    /// No link is above its budget.
    fn check(&self) {
        let topology = self.manager.topology();
        let ledger = self.manager.parts().ledger();
        for (n, link) in topology.links().iter().enumerate() {
            assert!(
                ledger.reserved_bytes(LinkId(n)) <= link.budget_bytes,
                "{}",
                link.name
            );
        }
    }

    /// Nothing is reserved for longer than the longest lease.
    fn end(mut self) {
        let limits = Limits::default();
        let past_ns = limits.most_lease_ns + limits.hold_ns + limits.deadline_ns;
        self.manager.advance(NOW_NS + past_ns);
        self.manager
            .advance(NOW_NS + past_ns + 2 * limits.tombstone_ns);
        let links = 0..self.manager.topology().links().len();
        let ledger = self.manager.parts().ledger();
        let left: u64 = links.map(|n| ledger.reserved_bytes(LinkId(n))).sum();
        assert_eq!(left, 0, "bytes without a lease");
    }
}

fn caller() -> Caller {
    Caller::operator("me")
}

/// Reads bytes as everything that a manager reads, and carries out what can be read.
///
/// # Panics
/// If a link is above its budget, bytes stay without a lease, an answer has no status of HTTP, or
/// what is written is not what was read.
pub fn replay(bytes: &[u8]) {
    let file = admission::read(NET).map(|file| Arc::new(file.topology));
    let Ok(net) = file else {
        panic!("the topology of this file is not valid");
    };
    let Some(mut pair) = Pair::new(&net) else {
        panic!("the good request is not granted");
    };
    carry_out(bytes, &mut pair);
    if let Ok(envelope) = read::<Envelope>(bytes) {
        take(envelope, &mut pair);
    }
    pair.end();
    for key in ["meta", "part/m2/x", "reservation/x", "part/", "else"] {
        if Record::read(key, bytes).is_ok() {
            let records = [(key.to_owned(), bytes.to_vec())];
            for boot in ["boot", "another"] {
                let (net, limits) = (Arc::clone(&net), Limits::default());
                let manager = Manager::restore(&start(boot), net, limits, records.clone());
                if let Ok(manager) = manager {
                    let pair = Pair {
                        manager,
                        ticket: 0,
                        segments: 0,
                    };
                    pair.check();
                }
            }
        }
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _ = admission::read(text);
    }
}

/// Carries out what bytes are a body of.
fn carry_out(bytes: &[u8], pair: &mut Pair) {
    let mut answers = Vec::new();
    let good = || "good".to_owned();
    if let Ok(body) = read::<ReserveBody>(bytes) {
        let written = serde_json::to_vec(&body).map(|text| read::<ReserveBody>(&text));
        assert!(
            matches!(&written, Ok(Ok(again)) if *again == body),
            "{written:?}"
        );
        let first = pair.reserve(body.clone());
        assert_eq!(first.len(), 1, "{first:?}");
        let reserved = pair.manager.parts().ledger().clone();
        // The same request again reserves nothing more.
        let again = pair.reserve(body);
        assert_eq!(again.len(), 1, "{again:?}");
        let ledger = pair.manager.parts().ledger();
        let links = 0..pair.manager.topology().links().len();
        for link in links.map(LinkId) {
            assert_eq!(ledger.reserved_bytes(link), reserved.reserved_bytes(link));
        }
        answers.extend(first);
        answers.extend(again);
    }
    if let Ok(InForceBody { in_force }) = read(bytes) {
        answers.extend(pair.command(Command::new(
            &good(),
            caller(),
            Action::Report {
                node: "a".to_owned(),
                is_in_force: in_force,
            },
        )));
    }
    if let Ok(RouteBody { segment }) = read(bytes) {
        answers.extend(pair.command(Command::new(
            &good(),
            caller(),
            Action::Reroute {
                node: "a".to_owned(),
                segment,
            },
        )));
    }
    if let Ok(measured) = read::<Measured>(bytes) {
        answers.extend(pair.command(Command::new(
            &good(),
            caller(),
            Action::Measure {
                listener: "b".to_owned(),
                measured,
            },
        )));
    }
    if let Ok(LeaseBody { lease_ns }) = read(bytes) {
        answers.extend(pair.command(Command::new(
            &good(),
            caller(),
            Action::Refresh { lease_ns },
        )));
    }
    for answer in answers {
        let (status, json) = render("good", answer);
        assert!([200, 400, 409, 410, 503, 504].contains(&status), "{status}");
        assert!(json.is_object(), "{json}");
    }
}

/// Takes another manager's messages, and those that commit what they may hold.
fn take(envelope: Envelope, pair: &mut Pair) {
    let Envelope {
        from, mut messages, ..
    } = envelope;
    let mut commits = Vec::new();
    for message in &mut messages {
        if let Message::Hold {
            id,
            attempt,
            segments,
            ..
        } = message
        {
            // Nobody guesses a digest.
            *segments = pair.segments;
            commits.push(Message::Commit {
                id: id.clone(),
                attempt: *attempt,
                lease_ns: u64::MAX,
            });
        }
    }
    for messages in [messages.clone(), commits, messages] {
        pair.receive(&from, messages.clone());
        pair.check();
        let reply = Reply { epoch: 2, messages };
        pair.manager.replied(NOW_NS, &from, reply);
        pair.check();
    }
    drop(pair.manager.take_effects());
}
