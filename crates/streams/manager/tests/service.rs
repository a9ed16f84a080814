// SPDX-License-Identifier: MIT OR Apache-2.0
//! The manager over HTTP and TLS: who may ask, and requests that are refused and change nothing.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::thread::{JoinHandle, spawn};
use std::time::Duration;

use admission::{Medium, NodeSpec, Refusal, SegmentSpec, Topology};
use manager::access::{self, Access, sha256};
use manager::engine::{self, Engine};
use manager::replaceable::Replaceable;
use manager::server::{ServerTls, serve_here};
use manager::service::{App, router};
use manager::store::MemoryStore;
use manager_proto::api::{MOST_BODY_BYTES, ReserveBody};
use manager_proto::client::{Client, ClientError, Reserved, Tls};
use manager_proto::machine::{Limits, Manager, Start};
use manager_proto::message::{Envelope, Message};
use manager_proto::overview::Overview;
use manager_proto::poll::{Poll, ask};
use manager_proto::record::{Attempt, Measured};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, SanType};
use serde_json::Value;
use tokio::sync::oneshot;

use crate::requests::{self, frames, stream};

const S: u64 = 1_000_000_000;

/// A service that runs until it is dropped.
pub struct Running {
    pub address: SocketAddr,
    engine: Engine,
    end: Option<oneshot::Sender<()>>,
    threads: Vec<JoinHandle<()>>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.engine.stop();
        drop(self.end.take());
        for thread in self.threads.drain(..) {
            thread.join().unwrap();
        }
    }
}

pub fn start(access: Access, tls: Option<ServerTls>) -> Running {
    let node = |name: &str| NodeSpec {
        name: name.to_owned(),
        is_router: false,
    };
    let segment = SegmentSpec::new("s", Medium::Shared, 100_000_000, &["a", "b"]);
    let topology = Topology::new(&[node("a"), node("b")], &[segment]).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (engine, jobs) = engine::queue();
    let app = App {
        engine: engine.clone(),
        access: Arc::new(Replaceable::new(access)),
        peers: Arc::new([("m2".to_owned(), String::new())].into()),
    };
    // Nobody is there to claim anything.
    let start = Start {
        peers: &["m2".to_owned()],
        ..Start::alone("m1", "boot", linux_io::clock::boottime_ns().unwrap())
    };
    let limits = Limits::default();
    let mut manager = Manager::restore(&start, Arc::new(topology), limits, []).unwrap();
    engine.begin(&manager, Arc::new(AtomicU64::new(u64::MAX)));
    let on_run = engine.clone();
    let runs = spawn(move || {
        let mut store = MemoryStore::default();
        let clock = linux_io::clock::boottime_ns;
        engine::run(&mut manager, &mut store, (&on_run, &jobs), clock, |_, _| {}).unwrap();
    });
    let (end, ended) = oneshot::channel();
    let serves = spawn(move || {
        let tls = tls.map(|tls| Arc::new(Replaceable::new(tls.config().unwrap())));
        serve_here(listener, tls, router(app), ended).unwrap();
    });
    Running {
        address,
        engine,
        end: Some(end),
        threads: vec![runs, serves],
    }
}

pub fn body(id: &str) -> ReserveBody {
    requests::body(id, 60 * S, stream(id, "a", "b", frames(1)))
}

pub fn hex(hash: [u8; 32]) -> String {
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub fn known(entries: &[(&str, &str, &str, [u8; 32])]) -> Access {
    let entry = |(name, role, key, hash): &(&str, &str, &str, [u8; 32])| {
        let hash = hex(*hash);
        format!("[[access]]\nname = \"{name}\"\nrole = \"{role}\"\n{key} = \"{hash}\"\n")
    };
    access::read(&entries.iter().map(entry).collect::<String>()).unwrap()
}

pub fn client(running: &Running, token: Option<&str>) -> Client {
    let url = format!("http://{}", running.address);
    Client::new(&url, token.map(str::to_owned), &Tls::default()).unwrap()
}

fn reserved_bytes(client: &Client) -> u64 {
    client.links().unwrap()[0].reserved_bytes
}

/// Sends bytes as they are; returns status and body of the answer.
pub fn raw(running: &Running, request: &[u8]) -> (u16, String) {
    let mut stream = TcpStream::connect(running.address).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(30)))
        .unwrap();
    // The service may answer and close before it has read everything.
    let _ = stream.write_all(request);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let status = answer
        .split(' ')
        .nth(1)
        .and_then(|s| s.parse().ok())
        .unwrap_or(0);
    let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    (status, body.to_owned())
}

fn post(path: &str, kind: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!(
        "POST {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: {kind}\r\n\
         content-length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn bad_requests_are_refused_in_a_sentence_and_change_nothing() {
    let running = start(Access::Open, None);
    let good = serde_json::to_string(&body("x")).unwrap();
    let json = "application/json";
    let path = "/v1/reservations";
    let long = format!("{good}{}", " ".repeat(MOST_BODY_BYTES));
    let deep = "[".repeat(10_000);
    let get = |path: &str, method: &str| {
        format!("{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").into_bytes()
    };
    for (request, status, words) in [
        (post(path, json, ""), 400, "the body is not valid"),
        (
            post(path, json, &good[..good.len() - 1]),
            400,
            "EOF while parsing",
        ),
        (
            post(path, json, &good.replace("lease_ns", "lease")),
            400,
            "unknown field `lease`",
        ),
        (
            post(path, json, &good.replace("60000000000", "-1")),
            400,
            "invalid value",
        ),
        (
            post(path, json, &good.replace("60000000000", "1")),
            400,
            "`lease_ns` is 1, expected",
        ),
        (
            post(path, json, &good.replace("60000000000", "1e300")),
            400,
            "line 1 column",
        ),
        (
            post(path, json, &good.replace("1000000000", "0")),
            400,
            "`interval` is 10000000/0 s",
        ),
        (
            post(path, json, &good.replacen("\"x\"", "\"a b\"", 1)),
            400,
            "`id` is \\\"a b\\\"",
        ),
        (post(path, json, &deep), 400, "the body is not valid"),
        (
            post(path, "text/plain", &good),
            415,
            "expected application/json",
        ),
        (post(path, json, &long), 413, "expected at most 65536 bytes"),
        (post("/v1/nothing", json, &good), 404, "no such path"),
        (get(path, "PATCH"), 405, "no such method"),
        (
            get("/v1/reservations/%ff", "GET"),
            400,
            "the path is not valid",
        ),
        (
            get("/v1/reservations/%ff", "DELETE"),
            400,
            "the path is not valid",
        ),
        (get("/v1/nodes/%c3%28", "GET"), 400, "the path is not valid"),
        (
            get("/v1/reservations/nothing", "DELETE"),
            404,
            "no reservation has the id nothing",
        ),
        (get("/v1/nodes/nobody", "GET"), 404, "no such node"),
        (
            post(
                "/v1/peer",
                json,
                "{\"from\":\"m2\",\"epoch\":1,\"within_ns\":1,\"messages\":[{\"type\":\"hold\"}]}",
            ),
            400,
            "missing field",
        ),
        (
            post(
                "/v1/peer",
                json,
                "{\"from\":\"m3\",\"epoch\":1,\"within_ns\":1,\"messages\":[]}",
            ),
            403,
            "`from` is not valid",
        ),
    ] {
        let shown = String::from_utf8_lossy(&request[..request.len().min(300)]).into_owned();
        let (found, answer) = raw(&running, &request);
        assert_eq!(found, status, "{shown}: {answer}");
        assert!(answer.contains(words), "{shown}: {answer}");
        assert!(answer.starts_with("{\"error\":\""), "{answer}");
    }
    // What is no HTTP at all.
    for bytes in [
        &b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"[..],
        b"GET\r\n\r\n",
        &[0xff; 300],
    ] {
        assert!(raw(&running, bytes).0 >= 400 || raw(&running, bytes).0 == 0);
    }
    let head = format!("GET / HTTP/1.1\r\nx: {}\r\n\r\n", "x".repeat(100_000));
    assert_eq!(raw(&running, head.as_bytes()).0, 431);
    let client = client(&running, None);
    assert_eq!(reserved_bytes(&client), 0);
    assert!(client.reservations().unwrap().is_empty());
    // The good one is good.
    assert_eq!(raw(&running, &post(path, json, &good)).0, 200);
    assert_eq!(reserved_bytes(&client), 1038);
    let (status, description) = raw(&running, &get("/openapi.json", "GET"));
    assert_eq!(status, 200);
    assert!(description.contains("\"openapi\": \"3.1.0\""));
}

#[test]
fn the_description_has_every_reason_for_a_refusal() {
    let name = || "x".to_owned();
    let all = [
        Refusal::Bandwidth {
            link: name(),
            needed_bytes: 2,
            free_bytes: 1,
        },
        Refusal::Latency {
            listener: name(),
            bound_ns: 2,
            wanted_ns: 1,
        },
        Refusal::FramesInUse {
            address: [10, 0, 0, 1].into(),
            protocol: 17,
            port: 1,
        },
        Refusal::NoRoute {
            talker: name(),
            listener: name(),
        },
        Refusal::StreamIdInUse { stream_id: name() },
    ];
    let described: Value = serde_json::from_str(manager::service::OPENAPI).unwrap();
    let reasons = &described["components"]["schemas"]["Refusal"]["properties"]["reason"]["enum"];
    let mut expected = vec![];
    for refusal in all {
        match refusal {
            Refusal::Bandwidth { .. }
            | Refusal::FramesInUse { .. }
            | Refusal::Latency { .. }
            | Refusal::NoRoute { .. }
            | Refusal::StreamIdInUse { .. } => {
                expected.push(serde_json::to_value(&refusal).unwrap()["reason"].clone());
            }
            // A request that is not valid has an answer of its own.
            Refusal::Invalid { .. } => {}
        }
    }
    expected.sort_by_key(ToString::to_string);
    assert_eq!(reasons, &Value::Array(expected));
}

#[test]
fn a_measurement_is_shown_beside_its_bound_until_the_next() {
    let running = start(Access::Open, None);
    let client = client(&running, None);
    client.reserve(&body("x")).unwrap();
    let shown = |client: &Client| client.reservations().unwrap()[0].measured.clone();
    assert!(shown(&client).is_empty());
    let measured = |worst_delay_ns, packets| Measured {
        worst_delay_ns,
        packets,
        lost_packets: 3,
    };
    let refused = |listener: &str, of: &Measured| match client.measured("x", listener, of) {
        Err(ClientError::Refused { status, message }) => (status, message),
        other => panic!("{other:?}"),
    };
    let (status, said) = refused("a", &measured(1, 1));
    assert_eq!(status, 400);
    assert!(
        said.contains("`listener` is \"a\", expected a listener"),
        "{said}"
    );
    let (status, said) = refused("b", &measured(1, 0));
    assert_eq!(status, 400);
    assert!(
        said.contains("`packets` is 0, expected at least 1"),
        "{said}"
    );
    assert!(shown(&client).is_empty());
    let view = client.measured("x", "b", &measured(12_000_000, 9)).unwrap();
    assert_eq!(view.measured["b"], measured(12_000_000, 9));
    // The lease begins anew and the measurement stays; the next one takes its place.
    client.refresh("x", None).unwrap();
    client.measured("x", "b", &measured(7, 8)).unwrap();
    assert_eq!(shown(&client)["b"], measured(7, 8));
    let put = "PUT /v1/reservations/x/measured/b HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\
               content-type: application/json\r\ncontent-length: 29\r\n\r\n\
               {\"worst\":1,\"lost_packets\":1} ";
    let (status, answer) = raw(&running, put.as_bytes());
    assert_eq!(status, 400, "{answer}");
    assert_eq!(shown(&client)["b"], measured(7, 8));
}

#[test]
fn an_overview_is_of_all_managers_and_names_those_who_do_not_answer() {
    let running = start(Access::Open, None);
    let asker = client(&running, None);
    asker.reserve(&body("x")).unwrap();
    // A port that nobody listens on.
    let free = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let away = Client::new(&format!("http://{free}"), None, &Tls::default()).unwrap();
    let managers = vec![("m1".to_owned(), asker), ("m2".to_owned(), away)];
    let overview = ask(&managers);
    let row = &overview.reservations[0];
    assert_eq!((row.talker.as_str(), row.links[0].bytes), ("a", 1038));
    let free_bytes = client(&running, None).links().unwrap()[0].free_bytes;
    assert_eq!(row.links[0].free_bytes, Some(free_bytes));
    assert_eq!(row.listeners[0].bound_ns, 18_000_000);
    assert_eq!(row.tightest.as_deref(), Some("s"));
    assert!(overview.managers[0].problem.is_none());
    assert!(overview.managers[1].problem.is_some());
    // The same from a thread, which goes on after that.
    let poll = Poll::start(managers, Duration::from_millis(10)).unwrap();
    assert_eq!(poll.latest().reservations[0].id, "x");
    client(&running, None).release("x").unwrap();
    let is_empty = |of: Overview| of.reservations.is_empty();
    assert!((0..500).any(|_| {
        std::thread::sleep(Duration::from_millis(20));
        is_empty(poll.latest())
    }));
}

#[test]
fn roles_bound_what_a_token_may_do() {
    let running = start(
        known(&[
            ("t1", "talker", "token_sha256", sha256(b"one")),
            ("t2", "talker", "token_sha256", sha256(b"two")),
            ("op", "operator", "token_sha256", sha256(b"all")),
            ("m2", "manager", "token_sha256", sha256(b"peer")),
        ]),
        None,
    );
    let of = |token| client(&running, token);
    let refused = |error: ClientError| match error {
        ClientError::Refused { status, message } => (status, message),
        error => panic!("{error}"),
    };
    for token in [None, Some(""), Some("On"), Some("one1"), Some("three")] {
        let (status, message) = refused(of(token).reserve(&body("x")).unwrap_err());
        assert_eq!(status, 401, "{token:?}: {message}");
    }
    let (one, two, all) = (of(Some("one")), of(Some("two")), of(Some("all")));
    assert_eq!(reserved_bytes(&one), 0);
    let Reserved::Granted(view) = one.reserve(&body("x")).unwrap() else {
        panic!("refused");
    };
    assert_eq!((view.owner.as_str(), view.bound_ns), ("t1", 18_000_000));
    // Another's reservation is neither seen nor touched, and its id is not taken over.
    assert!(two.reservations().unwrap().is_empty());
    assert_eq!(refused(two.release("x").unwrap_err()).0, 403);
    assert_eq!(refused(two.refresh("x", None).unwrap_err()).0, 403);
    assert_eq!(refused(two.report("x", "a", true).unwrap_err()).0, 403);
    let measured = Measured {
        worst_delay_ns: 1,
        packets: 1,
        lost_packets: 0,
    };
    let foreign = two.measured("x", "b", &measured).unwrap_err();
    assert_eq!(refused(foreign).0, 403);
    assert_eq!(refused(two.reserve(&body("x")).unwrap_err()).0, 409);
    assert_eq!(refused(two.duty("a").unwrap_err()).0, 403);
    // An operator sees what a node has to do, and reports that it does.
    let duty = all.duty("a").unwrap();
    let port = &duty.ports["s"];
    assert_eq!(
        (port.streams[0].id.as_str(), port.streams[0].bytes),
        ("x", 1038)
    );
    assert_eq!(port.nrt_bytes, (87_500 - 1_038) / 2);
    assert!(all.duty("b").unwrap().ports["s"].streams.is_empty());
    assert!(!view.in_force);
    assert_eq!(refused(all.report("x", "b", true).unwrap_err()).0, 400);
    assert!(all.report("x", "a", true).unwrap().in_force);
    assert!(one.reservations().unwrap()[0].in_force);
    assert!(!all.report("x", "a", false).unwrap().in_force);
    // A manager commands nothing, and speaks for itself alone.
    let peer = of(Some("peer"));
    assert_eq!(refused(peer.reserve(&body("y")).unwrap_err()).0, 403);
    assert_eq!(refused(peer.reservations().unwrap_err()).0, 403);
    let envelope = |from: &str| Envelope {
        from: from.to_owned(),
        epoch: 9,
        within_ns: S,
        messages: vec![Message::Release {
            id: "x".to_owned(),
            attempt: Attempt {
                epoch: 9,
                count: u64::MAX,
            },
        }],
    };
    assert_eq!(refused(peer.post(&envelope("m1")).unwrap_err()).0, 403);
    assert_eq!(refused(one.post(&envelope("m2")).unwrap_err()).0, 403);
    peer.post(&envelope("m2")).unwrap();
    // Its requests are its own: m1's reservation of the same id is not touched.
    assert_eq!(reserved_bytes(&one), 1038);
    let longer = one.refresh("x", Some(3600 * S)).unwrap();
    assert_eq!(longer.lease_ns, 3600 * S);
    assert!(longer.expires_in_ns > 60 * S);
    assert!(all.release("x").unwrap().released);
    assert_eq!(reserved_bytes(&one), 0);
    // Of one that has ended nothing is left.
    let ended = ureq::get(format!("http://{}/v1/reservations/x", running.address))
        .header("authorization", "Bearer one")
        .call();
    let ended: serde_json::Value = ended.unwrap().body_mut().read_json().unwrap();
    assert_eq!(
        (&ended["granted"], &ended["expires_in_ns"]),
        (&false.into(), &0.into())
    );
}

/// A certificate that an authority has signed, with its key, as PEM and DER.
pub struct Signed {
    pub pem: Vec<u8>,
    pub key: Vec<u8>,
    pub hash: [u8; 32],
}

pub struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    pub fn new() -> Self {
        let mut params = CertificateParams::new(vec![]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        Self(CertifiedIssuer::self_signed(params, key).unwrap())
    }

    pub fn pem(&self) -> Vec<u8> {
        self.0.pem().into_bytes()
    }

    pub fn sign(&self) -> Signed {
        let mut params = CertificateParams::new(vec![]).unwrap();
        let loopback = SanType::IpAddress("127.0.0.1".parse().unwrap());
        params.subject_alt_names.push(loopback);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap();
        Signed {
            pem: certificate.pem().into_bytes(),
            key: key.serialize_pem().into_bytes(),
            hash: sha256(certificate.der()),
        }
    }
}

#[test]
fn certificates_stand_for_tokens_and_foreign_ones_are_refused() {
    let (ours, theirs) = (Authority::new(), Authority::new());
    let (server, talker, unknown) = (ours.sign(), ours.sign(), ours.sign());
    let foreign = theirs.sign();
    let access = known(&[
        ("t1", "talker", "certificate_sha256", talker.hash),
        // Even a hash that is known does not help a certificate of another authority.
        ("t2", "talker", "certificate_sha256", foreign.hash),
        ("op", "operator", "token_sha256", sha256(b"all")),
    ]);
    let running = start(
        access,
        Some(ServerTls {
            certificate: server.pem.clone(),
            key: server.key.clone(),
            client_ca: Some(ours.pem()),
        }),
    );
    let url = format!("https://{}", running.address);
    let with = |ca: &Authority, of: Option<&Signed>, token: Option<&str>| {
        let tls = Tls {
            ca: Some(ca.pem()),
            identity: of.map(|of| (of.pem.clone(), of.key.clone())),
        };
        Client::new(&url, token.map(str::to_owned), &tls).unwrap()
    };
    let own = with(&ours, Some(&talker), None);
    let Reserved::Granted(view) = own.reserve(&body("x")).unwrap() else {
        panic!("refused");
    };
    assert_eq!(view.owner, "t1");
    let error = with(&ours, Some(&foreign), None)
        .reserve(&body("y"))
        .unwrap_err();
    assert!(matches!(error, ClientError::Transport { .. }), "{error}");
    for (of, token) in [
        (Some(&unknown), None),
        (None, None),
        (Some(&talker), Some("x")),
    ] {
        let error = with(&ours, of, token).reserve(&body("y")).unwrap_err();
        assert!(
            matches!(error, ClientError::Refused { status: 401, .. }),
            "{error}"
        );
    }
    // A client that trusts others does not talk to this manager, nor does one without TLS.
    let error = with(&theirs, Some(&talker), None)
        .reservations()
        .unwrap_err();
    assert!(matches!(error, ClientError::Transport { .. }), "{error}");
    let plain = Client::new(&url.replace("https", "http"), None, &Tls::default()).unwrap();
    assert!(plain.reservations().is_err());
    let all = with(&ours, None, Some("all"));
    assert_eq!(all.reservations().unwrap().len(), 1);
    assert_eq!(reserved_bytes(&all), 1038);
    // Certificates that cannot be used are refused before anything is served.
    for (certificate, key) in [
        (server.pem.clone(), talker.key.clone()),
        (b"nothing".to_vec(), server.key.clone()),
        (server.pem.clone(), b"nothing".to_vec()),
    ] {
        let tls = ServerTls {
            certificate,
            key,
            client_ca: None,
        };
        assert!(tls.config().is_err());
    }
}
