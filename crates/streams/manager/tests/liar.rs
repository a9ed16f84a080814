// SPDX-License-Identifier: MIT OR Apache-2.0
//! Another manager that lies, one lie at a time: it refuses and delays what crosses it, and nothing
//! else. The histories tell all lies at random.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;

use admission::{LinkBytes, Medium, NodeSpec, Refusal, SegmentSpec, StreamRequest, Topology};
use clap::Parser;
use draw::terminal::Style;
use manager::commands;
use manager_proto::answer::{Action, Answer, Caller, Command, Failure};
use manager_proto::machine::{Limits, Manager, Start};
use manager_proto::message::{Claim, Claimed, Envelope, Message, Reply};
use manager_proto::record::{Attempt, ReservationState};
use serde_json::json;

use crate::requests::{payload, stream};

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
    /// Digest of the segment of m1, as its other managers say it.
    digest: u64,
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
            digest: 0,
        };
        lied.manager.take_effects();
        lied.digest = digest();
        lied
    }

    /// Asks to reserve from `a` to another host.
    fn wish(&mut self, id: &str, to: &str) {
        self.tickets += 1;
        let command = Command::new(
            id,
            Caller::talker("t"),
            Action::Reserve {
                request: request(id, to),
                lease_ns: 60 * S,
                is_replacing: false,
            },
        );
        self.manager.command(S, self.tickets, command);
    }

    /// Reserves; the liar agrees.
    fn reserve(&mut self, id: &str, to: &str) {
        self.wish(id, to);
        for _ in 0..2 {
            self.pump(7, |message| match message {
                Message::Hold { id, attempt, .. } => Message::Held { id, attempt },
                Message::Commit { id, attempt, .. } => Message::Committed { id, attempt },
                other => other,
            });
        }
    }

    /// Lets the liar answer all messages that wait; returns how many there were, and what talkers are
    /// told.
    fn pump(
        &mut self,
        epoch: u64,
        mut lie: impl FnMut(Message) -> Message,
    ) -> (usize, Vec<Answer>) {
        let effects = self.manager.take_effects();
        let messages = effects.messages.into_iter().filter(|(to, _)| to == "liar");
        let messages: Vec<_> = messages.map(|(_, message)| lie(message)).collect();
        let count = messages.len();
        for message in messages {
            self.manager.replied(
                S,
                "liar",
                Reply {
                    epoch,
                    messages: vec![message],
                },
            );
        }
        (
            count,
            effects.answers.into_iter().map(|(_, of)| of).collect(),
        )
    }

    /// The liar says this in a reply.
    fn answer(&mut self, message: Message) {
        let messages = vec![message];
        self.manager
            .replied(S, "liar", Reply { epoch: 7, messages });
    }

    /// The number that the claims of the liar need.
    fn nonce(&mut self) -> u64 {
        match self.ask(Message::Hello { round: 0 })[..] {
            [Message::Welcome { nonce, .. }] => nonce,
            ref other => panic!("{other:?}"),
        }
    }

    fn hold(&self, id: &str, stream_id: &str, links: &[(&str, u64)]) -> Message {
        let link = |(name, bytes): &(&str, u64)| LinkBytes {
            link: (*name).into(),
            bytes: *bytes,
        };
        Message::Hold {
            id: id.to_owned(),
            attempt: Attempt { epoch: 7, count: 1 },
            stream_id: stream_id.to_owned(),
            frames: Vec::new(),
            segments: self.digest,
            links: links.iter().map(link).collect(),
            hold_ns: u64::MAX,
        }
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

/// Returns the digest of s1: another manager with the same topology says it when it asks.
fn digest() -> u64 {
    let names = NAMES.map(str::to_owned);
    let start = Start {
        peers: &names,
        ..Start::alone("liar", "boot", S)
    };
    let mut liar = Manager::restore(&start, topology(), Limits::default(), []).unwrap();
    let command = Command::new(
        "x",
        Caller::talker("t"),
        Action::Reserve {
            request: request("x", "b"),
            lease_ns: 60 * S,
            is_replacing: false,
        },
    );
    liar.command(S, 1, command);
    let messages = liar.take_effects().messages.into_iter();
    let mut holds = messages.filter_map(|(_, message)| match message {
        Message::Hold { segments, .. } => Some(segments),
        _ => None,
    });
    holds.next().unwrap()
}

fn request(id: &str, to: &str) -> StreamRequest {
    stream(id, "a", to, payload(1000))
}

/// It says of everything, and of every try that there may have been, that it is lost.
#[test]
fn what_does_not_cross_a_liar_is_not_lost_there() {
    let mut lied = Lied::new();
    lied.reserve("local", "b");
    lied.reserve("over", "c");
    assert!(lied.is_granted("local") && lied.is_granted("over"));
    let epoch = lied.manager.epoch();
    let all = ["local", "over"].into_iter();
    let all =
        all.flat_map(|id| (0..32).map(move |count| (id.to_owned(), Attempt { epoch, count })));
    let lost: Vec<_> = all.collect();
    // A new start of the liar's is told what this manager has there.
    lied.answer(Message::Hello { round: 0 });
    for epoch in 8..40 {
        let lie = |message| match message {
            Message::Hello { round } => Message::Welcome { round, nonce: 1 },
            Message::Claim { round, .. } => Message::Claimed {
                round,
                lost: lost.clone(),
                is_again: true,
            },
            Message::Release { id, attempt } => Message::Released { id, attempt },
            other => panic!("{other:?}"),
        };
        lied.pump(8, lie);
        lied.pump(8, lie);
        lied.manager.advance(S * epoch);
    }
    assert!(lied.is_granted("local"));
    assert!(!lied.is_granted("over"), "it crosses the liar");
}

/// Whatever it answers, nobody is asked again and again.
#[test]
fn a_liar_is_not_asked_faster_than_others() {
    let mut epoch = 7;
    let lies: [fn(Message) -> Message; 3] = [
        // Each answer begins the claims anew.
        |message| match message {
            Message::Claim { round, .. } | Message::Hello { round } => Message::Stale { round },
            other => other,
        },
        |message| match message {
            Message::Hello { round } => Message::Welcome { round, nonce: 1 },
            Message::Claim { round, .. } => Message::Stale { round },
            other => other,
        },
        |message| match message {
            Message::Hold { id, attempt, .. } => Message::Conflict {
                id,
                attempt,
                has: Attempt { epoch: 1, count: 1 },
            },
            other => other,
        },
    ];
    for (n, lie) in lies.into_iter().enumerate() {
        // With one start, and with another one in each answer.
        for step in [0, 1] {
            let mut lied = Lied::new();
            lied.wish("over", "c");
            lied.answer(Message::Hello { round: 0 });
            let mut count = 0;
            for _ in 0..100 {
                epoch += step;
                count += lied.pump(epoch, lie).0;
            }
            assert!(count <= 8, "lie {n}: {count} messages at one time");
        }
    }
}

/// What no user may be called, or take, no other manager's request has.
#[test]
fn names_counts_and_sizes_are_checked_as_those_of_users() {
    let mut lied = Lied::new();
    let long = "x".repeat(100_000);
    let some = [("s1", 1000)];
    let held = |answers: Vec<Message>| matches!(answers[..], [Message::Held { .. }]);
    for id in ["", "a/b", "../m1/x", "\x1b[2J", "x\n", &long] {
        assert!(!held(lied.ask(lied.hold(id, "s", &some))), "{id:.20}");
        assert!(!held(lied.ask(lied.hold("y", id, &some))), "{id:.20}");
    }
    for links in [
        &[][..],
        &[("s1", 0)],
        &[("s1", 83)],
        &[("s1", u64::MAX)],
        &[("s1", 500), ("s1", 500)],
        &[("s2", 1000)],
        &[(&long, 1000)],
    ] {
        assert!(!held(lied.ask(lied.hold("y", "s", links))), "{links:.20?}");
    }
    let many = vec![lied.hold("y", "s", &some); 65];
    let from = "liar".to_owned();
    let (epoch, within_ns) = (7, S);
    let envelope = Envelope {
        from,
        epoch,
        within_ns,
        messages: many,
    };
    lied.manager.receive(S, 0, envelope);
    let claims = |ids: &[&str]| {
        let claim = |id: &&str| Claim {
            id: (*id).to_owned(),
            attempt: Attempt { epoch: 7, count: 1 },
            granted: Some(Claimed {
                stream_id: "s".to_owned(),
                frames: Vec::new(),
                links: vec![LinkBytes {
                    link: "s1".into(),
                    bytes: 1000,
                }],
                lease_ns: u64::MAX,
                left_ns: u64::MAX,
            }),
        };
        ids.iter().map(claim).collect::<Vec<_>>()
    };
    let many: Vec<_> = (0..1200).map(|n| format!("x{n}")).collect();
    let many: Vec<_> = many.iter().map(String::as_str).collect();
    for ids in [&["a/b"][..], &["\x1b[2J"], &many] {
        let nonce = lied.nonce();
        let page = Message::Claim {
            round: 0,
            nonce,
            after: String::new(),
            until: None,
            before: Attempt { epoch: 7, count: 9 },
            claims: claims(ids),
        };
        assert!(lied.ask(page).is_empty());
    }
    assert!(lied.manager.parts().all().is_empty());
    assert!(held(lied.ask(lied.hold("y", "s", &some))));
}

/// What has ended is remembered, the last of each owner's and of each coordinator's.
#[test]
fn what_has_ended_is_bounded_by_number() {
    let mut lied = Lied::new();
    let caller = Caller::talker("t");
    for n in 0..3000 {
        let id = format!("x{n}");
        lied.reserve(&id, "b");
        let (id, caller) = (id.clone(), caller.clone());
        let release = Command::new(&id, caller, Action::Release);
        lied.manager.command(S + n, 0, release);
        lied.ask(Message::Release {
            id: format!("y{n}"),
            attempt: Attempt { epoch: 7, count: 1 },
        });
    }
    let records = lied.manager.records();
    assert_eq!(records.len(), 1 + 1024 + 1024 + 1024);
    // The last ones: the same again is answered.
    for (n, expected) in [(2999, true), (1976, true), (1975, false)] {
        let known = lied.manager.reservations().contains_key(&*format!("x{n}"));
        assert_eq!(known, expected, "{n}");
    }
    let bytes = records
        .iter()
        .filter_map(manager_proto::record::Update::change);
    let bytes: usize = bytes.map(|of| of.value.map_or(0, |of| of.len())).sum();
    assert!(bytes < 1_200_000, "{bytes}");
}

/// A talker is told no control characters, and nothing long.
#[test]
fn a_talker_is_told_nothing_that_steers_a_terminal() {
    for text in [
        "\x1b]0;x\x07".to_owned(),
        "\u{9b}2J".to_owned(),
        "x".repeat(100_000),
    ] {
        for is_later in [false, true] {
            let mut lied = Lied::new();
            lied.wish("over", "c");
            let (_, told) = lied.pump(7, |message| match message {
                Message::Hold { id, attempt, .. } if is_later => Message::Later {
                    id,
                    attempt,
                    why: text.clone(),
                },
                Message::Hold { id, attempt, .. } => Message::Refused {
                    id,
                    attempt,
                    refusal: Refusal::StreamIdInUse {
                        stream_id: text.clone(),
                    },
                },
                other => panic!("{other:?}"),
            });
            assert!(told.is_empty());
            // As if there were no answer.
            lied.manager.advance(5 * S);
            let told = lied.manager.take_effects().answers;
            let is_it = |(_, answer): &(u64, Answer)| {
                *answer == Answer::Failed(Failure::NoAnswer("liar".to_owned()))
            };
            assert!(told.len() == 1 && told.iter().all(is_it), "{told:?}");
        }
    }
}

/// What a manager answers steers no terminal, whatever the command prints of it.
#[test]
fn a_command_prints_nothing_that_steers_a_terminal() {
    const EVIL: &str = "\x1b]0;x\x07\u{9b}2J\u{202e}\r\nx";
    let view = json!({
        "id": EVIL, "granted": true, "stream_id": EVIL, "owner": EVIL, "bound_ns": 1,
        "lease_ns": 1, "expires_in_ns": 1, "in_force": false, "not_in_force": [EVIL],
        "spread_periods": 2, "measured": {EVIL: {"worst_delay_ns": 1, "packets": 1, "lost_packets": 0}},
        "listeners": [{"name": EVIL, "bound_ns": 1, "route": [EVIL, EVIL]}],
        "links": [{"link": EVIL, "bytes": 100}],
    });
    let refused = json!({
        "id": EVIL, "granted": false, "message": EVIL, "reason": "stream-id-in-use", "stream_id": EVIL,
    });
    let link = json!({
        "link": EVIL, "period_ns": 1, "budget_bytes": 1, "reserved_bytes": 1, "free_bytes": 0,
    });
    let part = json!({
        "coordinator": EVIL, "id": EVIL, "committed": true, "stream_id": EVIL,
        "links": [{"link": EVIL, "bytes": 100}], "expires_in_ns": 1,
    });
    let misfit = json!({"coordinator": EVIL, "id": EVIL, "why": EVIL});
    let elsewhere = json!({"error": EVIL, "manager": format!("http://127.0.0.1:1/{EVIL}")});
    let folder = tempfile::tempdir().unwrap();
    let net = folder.path().join("net.toml");
    std::fs::write(&net, crate::etcd::NET).unwrap();
    let net = net.to_str().unwrap();
    let reserve = [
        "reserve", "--from", "a", "--to", "b", "--bytes", "1", "--for", "1m",
    ];
    for (status, answer, words) in [
        (200, view.clone(), &reserve[..]),
        (409, refused, &reserve),
        (403, json!({"error": EVIL}), &reserve),
        (421, elsewhere, &["reservations"]),
        (200, json!({EVIL: EVIL}), &["renew", "x"]),
        (200, json!([view]), &["reservations"]),
        (200, json!([view]), &["reservations", "--json"]),
        (200, view, &["renew", "x"]),
        (200, json!([link]), &["reservations", "--links"]),
        (200, json!([part]), &["reservations", "--parts"]),
        (
            200,
            json!({"id": EVIL, "released": true}),
            &["release", "x"],
        ),
        (200, json!([misfit]), &["topology", net]),
    ] {
        let url = answering(status, &answer);
        let asked = [&["pspacer"], words, &["--manager", &url]].concat();
        let words = Words::parse_from(asked);
        let said = match commands::run(&words.command, Style::PLAIN, |_| {}) {
            Ok(outcome) => outcome.text,
            Err(error) => format!("{error:#}"),
        };
        let steers = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
        assert!(!said.is_empty() && !said.contains(steers), "{said:?}");
    }
}

/// Answers requests in a thread until the test ends; returns its URL.
fn answering(status: u16, answer: &serde_json::Value) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (body, length) = (answer.to_string(), answer.to_string().len());
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut bytes = [0; 65536];
            let mut asked = Vec::new();
            // The head and the body come together, or one after the other.
            while let Ok(count @ 1..) = stream.read(&mut bytes) {
                asked.extend_from_slice(&bytes[..count]);
                if asked.ends_with(b"\r\n\r\n") && !asked.starts_with(b"P") || asked.ends_with(b"}")
                {
                    break;
                }
            }
            let head = format!("HTTP/1.1 {status} x\r\ncontent-length: {length}\r\n");
            let _ = stream.write_all(format!("{head}connection: close\r\n\r\n{body}").as_bytes());
        }
    });
    url
}

#[derive(Debug, Parser)]
struct Words {
    #[command(subcommand)]
    command: commands::Command,
}
