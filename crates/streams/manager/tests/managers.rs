// SPDX-License-Identifier: MIT OR Apache-2.0
//! Several managers over HTTP: one that loses its store, one that is away while a reservation ends, and
//! links that take their time.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::thread::{JoinHandle, scope, sleep, spawn};
use std::time::{Duration, Instant};

use admission::{Medium, NodeSpec, SegmentSpec, Topology};
use linux_io::clock::boottime_ns;
use manager::access::{self, Access};
use manager::engine::{self, Engine, Job};
use manager::peers::{Fixed, Peers, WITHIN, Way};
use manager::replaceable::Replaceable;
use manager::server::serve_here;
use manager::service::{App, router};
use manager::store::{MemoryStore, Store};
use manager_proto::api::ReserveBody;
use manager_proto::client::{Client, ClientError, Reserved, Tls};
use manager_proto::machine::{Limits, Manager, Start};
use testkit::until;
use tokio::sync::oneshot;

use crate::requests::{self, payload, stream};
use crate::service::hex;

const MS: u64 = 1_000_000;
const S: u64 = 1000 * MS;
/// Names of the managers; each has a segment. Streams of `a` go over all of them, those of `b` over the
/// last two.
const NAMES: [&str; 3] = ["m1", "m2", "m3"];

fn topology() -> Arc<Topology> {
    let node = |name: &str| NodeSpec {
        name: name.to_owned(),
        is_router: name.starts_with('r'),
    };
    let nodes = ["a", "b", "r1", "r2", "d"].map(node);
    let segment = |n: usize, members: &[&str]| {
        let mut of = SegmentSpec::new(&format!("s{n}"), Medium::Shared, 100_000_000, members);
        of.manager = NAMES.get(n - 1).map(|name| (*name).to_owned());
        of
    };
    let segments = [
        segment(1, &["a", "r1"]),
        segment(2, &["r1", "b", "r2"]),
        segment(3, &["r2", "d"]),
    ];
    Arc::new(Topology::new(&nodes, &segments).unwrap())
}

fn body(id: &str, bytes: u32, lease_ns: u64) -> ReserveBody {
    requests::body(id, lease_ns, stream(id, "a", "d", payload(bytes)))
}

/// What the managers find each other by: the ports may change their managers.
#[derive(Default)]
struct Places {
    addresses: Mutex<Vec<Option<SocketAddr>>>,
}

/// A way to a manager, with time on it.
struct Relay {
    places: Arc<Places>,
    to: usize,
    delay: Duration,
    address: SocketAddr,
}

impl Relay {
    /// Takes connections until the test ends, and hands their bytes over later.
    fn start(places: &Arc<Places>, to: usize, delay: Duration) -> Arc<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let relay = Arc::new(Self {
            places: Arc::clone(places),
            to,
            delay,
            address: listener.local_addr().unwrap(),
        });
        let own = Arc::clone(&relay);
        spawn(move || {
            for stream in listener.incoming().flatten() {
                let to = own.places.addresses.lock().unwrap()[own.to];
                let Some(other) = to.and_then(|to| TcpStream::connect(to).ok()) else {
                    continue;
                };
                for (from, to) in [(&stream, &other), (&other, &stream)] {
                    let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    let delay = own.delay;
                    spawn(move || hand_over(from, to, delay));
                }
            }
        });
        relay
    }
}

/// Hands bytes over, each after the same time.
fn hand_over(mut from: TcpStream, mut to: TcpStream, delay: Duration) {
    from.set_nodelay(true).unwrap();
    to.set_nodelay(true).unwrap();
    let (sender, receiver) = channel::<(Instant, Vec<u8>)>();
    let writes = spawn(move || {
        for (at, bytes) in receiver {
            sleep(at.saturating_duration_since(Instant::now()));
            if to.write_all(&bytes).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Both);
    });
    let mut bytes = [0; 65536];
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        if sender
            .send((Instant::now() + delay, bytes[..count].to_vec()))
            .is_err()
        {
            break;
        }
    }
    drop(sender);
    let _ = writes.join();
}

/// A manager that runs.
struct Running {
    address: SocketAddr,
    engine: Engine,
    end: Option<oneshot::Sender<()>>,
    threads: Vec<JoinHandle<()>>,
    store: Arc<Mutex<MemoryStore>>,
}

/// A store that outlives its manager, unless the test forgets it.
struct Shared(Arc<Mutex<MemoryStore>>);

impl Store for Shared {
    fn load(&mut self) -> Result<Vec<(String, Vec<u8>)>, manager::store::StoreError> {
        self.0.lock().unwrap().load()
    }

    fn apply(
        &mut self,
        changes: &[manager_proto::record::Change],
    ) -> Result<(), manager::store::StoreError> {
        self.0.lock().unwrap().apply(changes)
    }
}

/// All managers, with ways between them.
struct Net {
    places: Arc<Places>,
    relays: Vec<Vec<Arc<Relay>>>,
    running: Vec<Option<Running>>,
    next_epoch: AtomicU64,
    access: Access,
}

impl Net {
    fn start(delay: Duration) -> Self {
        Self::of(delay, Access::Open)
    }

    fn of(delay: Duration, access: Access) -> Self {
        let places = Arc::new(Places::default());
        *places.addresses.lock().unwrap() = vec![None; NAMES.len()];
        let from = |_| {
            let to = 0..NAMES.len();
            to.map(|to| Relay::start(&places, to, delay)).collect()
        };
        let mut net = Self {
            relays: (0..NAMES.len()).map(from).collect(),
            places,
            running: (0..NAMES.len()).map(|_| None).collect(),
            next_epoch: AtomicU64::new(1),
            access,
        };
        for n in 0..NAMES.len() {
            net.begin(n, Arc::default());
        }
        net
    }

    /// Starts a manager with what a store has.
    fn begin(&mut self, n: usize, store: Arc<Mutex<MemoryStore>>) {
        let (engine, jobs) = engine::queue();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let names = NAMES.map(str::to_owned).to_vec();
        let epoch = self.next_epoch.fetch_add(1, Ordering::Relaxed);
        let on_reply = engine.clone();
        let replied = move |from: &str, reply| {
            let from = from.to_owned();
            let _ = on_reply.submit(Job::Replied { from, reply });
        };
        let ways = self.relays[n].iter().zip(NAMES).enumerate();
        let ways = ways.filter(|(to, _)| *to != n).map(|(_, (relay, name))| {
            let url = format!("http://{}", relay.address);
            let token = Some(NAMES[n].to_owned());
            let client = Client::within(&url, token, &Tls::default(), WITHIN).unwrap();
            let way: Arc<dyn Way> = Arc::new(Fixed(Arc::new(client)));
            (name.to_owned(), way)
        });
        let peers = Peers::start(NAMES[n], ways.collect(), &replied);
        peers.begin(epoch);
        let urls = self.relays[n].iter().zip(NAMES);
        let urls = urls.map(|(of, name)| (name.to_owned(), format!("http://{}", of.address)));
        let app = App {
            engine: engine.clone(),
            access: Arc::new(Replaceable::new(self.access.clone())),
            peers: Arc::new(urls.collect()),
        };
        let start = Start {
            name: NAMES[n],
            peers: &names,
            epoch,
            boot: "boot",
            now_ns: boottime_ns().unwrap(),
            is_store_whole: false,
        };
        let records = store.lock().unwrap().load().unwrap();
        let manager = Manager::restore(&start, topology(), Limits::default(), records);
        let mut manager = manager.unwrap();
        engine.begin(&manager, Arc::new(AtomicU64::new(u64::MAX)));
        let (on_run, mut kept) = (engine.clone(), Shared(Arc::clone(&store)));
        let runs = spawn(move || {
            let post = |to: &str, message| peers.post(to, message);
            let jobs = (&on_run, &jobs);
            engine::run(&mut manager, &mut kept, jobs, boottime_ns, post).unwrap();
        });
        let (end, ended) = oneshot::channel();
        let serves = spawn(move || {
            serve_here(listener, None, router(app), ended).unwrap();
        });
        self.places.addresses.lock().unwrap()[n] = Some(address);
        self.running[n] = Some(Running {
            address,
            engine,
            end: Some(end),
            threads: vec![runs, serves],
            store,
        });
    }

    /// Ends a manager; returns its store.
    fn end(&mut self, n: usize) -> Arc<Mutex<MemoryStore>> {
        self.places.addresses.lock().unwrap()[n] = None;
        let mut running = self.running[n].take().unwrap();
        running.engine.stop();
        drop(running.end.take());
        for thread in running.threads.drain(..) {
            thread.join().unwrap();
        }
        running.store
    }

    fn client(&self, n: usize) -> Client {
        self.client_of(n, None)
    }

    fn client_of(&self, n: usize, token: Option<&str>) -> Client {
        let url = format!("http://{}", self.running[n].as_ref().unwrap().address);
        Client::new(&url, token.map(str::to_owned), &Tls::default()).unwrap()
    }

    fn reserved_bytes(&self, n: usize) -> u64 {
        self.client(n).links().unwrap()[0].reserved_bytes
    }

    /// Asks until the answer is none that says "try again".
    fn reserve(&self, n: usize, body: &ReserveBody) -> Reserved {
        let client = self.client(n);
        until("the managers agree", || match client.reserve(body) {
            Ok(answer) => Some(answer),
            Err(ClientError::Refused {
                status: 503 | 504, ..
            }) => None,
            Err(error) => panic!("{error}"),
        })
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        for n in 0..NAMES.len() {
            if self.running[n].is_some() {
                self.end(n);
            }
        }
    }
}

/// A manager that has lost its store counts nothing again that others hold: what it grants they hold,
/// with the same bytes, and together it fits.
#[test]
fn a_lost_store_grants_nothing_that_others_do_not_hold() {
    let mut net = Net::start(Duration::ZERO);
    let granted = net.reserve(0, &body("a", 1000, 15 * S));
    assert!(matches!(granted, Reserved::Granted(_)));
    net.end(0);
    net.begin(0, Arc::default());
    let granted = net.reserve(0, &body("a", 40_000, 600 * S));
    let Reserved::Granted(view) = granted else {
        panic!("{granted:?}")
    };
    let bytes = view.links[0].bytes;
    assert!(bytes > 40_000);
    let reserved = [0, 1, 2].map(|n| net.reserved_bytes(n));
    assert_eq!(reserved, [bytes; 3]);
    // There is no room for another one of 80,000.
    let refused = net.reserve(1, &body("b", 80_000, 600 * S));
    assert!(matches!(refused, Reserved::Refused(_)), "{refused:?}");
}

/// One that keeps bytes for others and has lost its store grants nothing of them to anybody else.
#[test]
fn what_others_have_is_taken_back_before_anything_is_granted() {
    let mut net = Net::start(Duration::ZERO);
    let granted = net.reserve(0, &body("a", 60_000, 600 * S));
    assert!(matches!(granted, Reserved::Granted(_)));
    // m1, whose reservation it is, cannot be asked when m2 comes back without its store.
    let kept = net.end(0);
    net.end(1);
    net.begin(1, Arc::default());
    let mut other = body("b", 60_000, 60 * S);
    other.stream.talker.name = "b".to_owned();
    let error = net.client(1).reserve(&other);
    let error = error.unwrap_err().to_string();
    assert!(error.contains("grants nothing until manager m1"), "{error}");
    net.begin(0, kept);
    let refused = net.reserve(1, &other);
    assert!(matches!(refused, Reserved::Refused(_)), "{refused:?}");
    let reserved: BTreeSet<_> = (0..3).map(|n| net.reserved_bytes(n)).collect();
    assert_eq!(reserved.len(), 1);
    net.client(0).refresh("a", None).unwrap();
    assert!(net.client(0).release("a").unwrap().released);
    until("the managers agree", || {
        (net.reserved_bytes(1) == 0).then_some(())
    });
}

/// What was released while a manager was away is freed there when it is back; until then an operator
/// sees it, and may free it.
#[test]
fn bytes_that_nobody_knows_of_are_seen_and_freed() {
    let mut net = Net::start(Duration::ZERO);
    for id in ["a", "b"] {
        let granted = net.reserve(0, &body(id, 10_000, 24 * 3600 * S));
        assert!(matches!(granted, Reserved::Granted(_)));
    }
    let kept = net.end(1);
    assert!(net.client(0).release("a").unwrap().released);
    until("the managers agree", || {
        (net.reserved_bytes(2) == net.reserved_bytes(0)).then_some(())
    });
    // The coordinator gives up to ask, and is away when the other one is back.
    sleep(Duration::from_millis(3500));
    let of_m1 = net.end(0);
    net.begin(1, kept);
    let parts = net.client(1).parts().unwrap();
    let names: Vec<_> = parts.iter().map(|of| (&*of.coordinator, &*of.id)).collect();
    assert_eq!(names, [("m1", "a"), ("m1", "b")]);
    assert!(net.client(1).free_part("m1", "b").unwrap().released);
    assert_eq!(net.client(1).parts().unwrap().len(), 1);
    assert!(net.client(1).free_part("m1", "c").is_err());
    net.begin(0, of_m1);
    until("the managers agree", || {
        net.client(1).parts().unwrap().is_empty().then_some(())
    });
    // What the operator freed has ended for its coordinator, too.
    until("the managers agree", || {
        let left = net.client(0).reservations().unwrap();
        left.is_empty().then_some(())
    });
    until("the managers agree", || {
        ((0..3).map(|n| net.reserved_bytes(n)).sum::<u64>() == 0).then_some(())
    });
}

/// Fifty talkers at once, 25 ms one way between the managers.
#[test]
fn distance_makes_no_request_fail() {
    let net = Net::start(Duration::from_millis(25));
    net.reserve(0, &body("first", 10, 60 * S));
    let has_failed = AtomicBool::new(false);
    let mut took: Vec<Duration> = scope(|threads| {
        let asks: Vec<_> = (0..50)
            .map(|n| {
                let (net, has_failed) = (&net, &has_failed);
                threads.spawn(move || {
                    let client = net.client(n % 3);
                    let begin = Instant::now();
                    let answer = client.reserve(&body(&format!("x{n}"), 100, 60 * S));
                    if !matches!(answer, Ok(Reserved::Granted(_))) {
                        eprintln!("{answer:?}");
                        has_failed.store(true, Ordering::Relaxed);
                    }
                    begin.elapsed()
                })
            })
            .collect();
        asks.into_iter().map(|of| of.join().unwrap()).collect()
    });
    took.sort();
    println!("median {:?}, last {:?}", took[25], took[49]);
    assert!(!has_failed.load(Ordering::Relaxed));
}

/// A talker has its quota once in a network, whichever managers it asks.
#[test]
fn a_quota_holds_over_all_managers() {
    let entry = |name: &str, more: &str| {
        let hash = hex(access::sha256(name.as_bytes()));
        format!("[[access]]\nname = \"{name}\"\ntoken_sha256 = \"{hash}\"\n{more}\n")
    };
    let managers = NAMES.map(|name| entry(name, "role = \"manager\""));
    let some = "role = \"talker\"\nstreams = 3";
    let text = managers.concat()
        + &entry("everywhere", some)
        + &entry("at-b", &format!("{some}\nhosts = [\"a\", \"b\"]"))
        + &entry("free", "role = \"talker\"")
        + &entry("bytes", "role = \"talker\"\nbytes = 4000\nhosts = [\"b\"]");
    let net = Net::of(Duration::ZERO, access::read(&text).unwrap());
    let free = net.client_of(2, Some("free"));
    until("the managers agree", || {
        free.reserve(&body("first", 10, 600 * S)).ok()
    });
    // One stream takes 1,066 bytes.
    for (talker, from) in [
        ("everywhere", "d"),
        ("at-b", "b"),
        ("bytes", "b"),
        ("free", "b"),
    ] {
        let mut granted = 0;
        for n in 0..9 {
            let client = net.client_of(n % 3, Some(talker));
            let mut body = body(&format!("{talker}{n}"), 1000, 600 * S);
            from.clone_into(&mut body.stream.talker.name);
            let to = if from == "d" { "b" } else { "d" };
            to.clone_into(&mut body.stream.listeners[0].name);
            match client.reserve(&body) {
                Ok(Reserved::Granted(_)) => granted += 1,
                Err(ClientError::Refused { status, .. }) => assert_eq!(status, 403),
                other => panic!("{other:?}"),
            }
        }
        let expected = if talker == "free" { 9 } else { 3 };
        assert_eq!(granted, expected, "{talker}");
    }
}
