// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether those who look hold up those who reserve: a manager with 100,000 reservations, 1,000 agents
//! that wait for changes of their nodes over HTTP, and a talker that reserves and releases. Then the
//! memory, before and after the whole list was read.
//!
//! ```sh
//! cargo run --release -p manager --example agents -- FILE.db [RESERVATIONS [AGENTS]]
//! ```

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a program to measure"
)]

mod net;

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{sleep, spawn};
use std::time::{Duration, Instant};

use linux_io::clock::boottime_ns;
use manager::access::Access;
use manager::answer::Command;
use manager::api::ReserveBody;
use manager::client::{Client, Reserved, Tls};
use manager::current::Current;
use manager::engine;
use manager::machine::{Limits, Manager, Start};
use manager::record::Update;
use manager::server::serve_here;
use manager::service::{App, router};
use manager::store::{SqliteStore, Store};
use net::{EDGES, HOSTS, ROUTERS, S, host_name, reserve, topology};
use rand_pcg::Pcg32;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::oneshot;

const SEED: u64 = 20_070_200;
/// Requests that are measured, each a reservation and its release.
const MEASURED: u64 = 2_000;
/// Requests of the first filling that share a transaction.
const TOGETHER: u64 = 500;

/// Memory of this process, MiB.
fn memory_mib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let kib: u64 = line
        .unwrap()
        .split_whitespace()
        .nth(1)
        .unwrap()
        .parse()
        .unwrap();
    kib >> 10
}

fn fill(manager: &mut Manager, store: &mut dyn Store, rng: &mut Pcg32, wanted: u64) -> u64 {
    let mut next = 0;
    while (manager.reservations().len() as u64) < wanted {
        let now_ns = boottime_ns().unwrap();
        for _ in 0..TOGETHER {
            let Command::Reserve {
                id,
                caller,
                request,
                ..
            } = reserve(rng, next)
            else {
                panic!()
            };
            let command = Command::Reserve {
                id,
                caller,
                request,
                lease_ns: 24 * 3600 * S,
                is_replacing: false,
            };
            manager.command(now_ns, next, command);
            next += 1;
        }
        let effects = manager.take_effects();
        let changes: Vec<_> = effects.updates.iter().filter_map(Update::change).collect();
        store.apply(&changes).unwrap();
    }
    next
}

/// Agents that wait for changes, each on a connection of its own; counts their answers.
fn agents(port: u16, count: u64, answers: &Arc<AtomicU64>) {
    let answers = Arc::clone(answers);
    spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async move {
            let mut all = Vec::new();
            for n in 0..count {
                let answers = Arc::clone(&answers);
                all.push(tokio::spawn(async move {
                    let node = host_name(n * 3 % (ROUTERS * EDGES * HOSTS));
                    // Those that nobody has identified yet give way to others, and come again.
                    while !agent(port, &node, &answers).await {
                        tokio::time::sleep(Duration::from_millis(20)).await;
                    }
                }));
            }
            for one in all {
                one.await.unwrap();
            }
        });
    });
}

/// Asks over and over; returns once the connection has ended before it was heard.
async fn agent(port: u16, node: &str, answers: &AtomicU64) -> bool {
    let Ok(mut stream) = tokio::net::TcpStream::connect(("127.0.0.1", port)).await else {
        return false;
    };
    let mut known = String::new();
    let mut buffer = Vec::new();
    loop {
        let path = format!("/v1/nodes/{node}?wait_ns=10000000000{known}");
        let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n");
        if stream.write_all(request.as_bytes()).await.is_err() {
            return false;
        }
        buffer.clear();
        let text = loop {
            let mut bytes = [0; 16384];
            let read = stream.read(&mut bytes).await.unwrap_or(0);
            if read == 0 {
                assert!(known.is_empty(), "an agent that was known was sent away");
                return false;
            }
            buffer.extend_from_slice(&bytes[..read]);
            let text = String::from_utf8_lossy(&buffer).into_owned();
            let Some((head, body)) = text.split_once("\r\n\r\n") else {
                continue;
            };
            assert!(head.starts_with("HTTP/1.1 200"), "{text}");
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length: "));
            if body.len() >= length.unwrap().parse().unwrap() {
                break body.to_owned();
            }
        };
        let of = text.split("\"changes\":").nth(1).unwrap();
        let end = of.find(|digit: char| !digit.is_ascii_digit()).unwrap();
        known = format!("&known={}", &of[..end]);
        answers.fetch_add(1, Ordering::Relaxed);
    }
}

fn main() {
    let mut words = std::env::args().skip(1);
    let path = words.next().expect("a file for the store");
    let wanted: u64 = words.next().map_or(100_000, |n| n.parse().unwrap());
    let count: u64 = words.next().map_or(1_000, |n| n.parse().unwrap());
    let mut store = SqliteStore::open(Path::new(&path)).unwrap();
    let start = Start::alone("m", "boot", boottime_ns().unwrap());
    let records = store.load().unwrap();
    let mut manager =
        Manager::restore(&start, Arc::new(topology()), Limits::default(), records).unwrap();
    let mut rng = Pcg32::new(SEED, 1);
    let next = fill(&mut manager, &mut store, &mut rng, wanted);
    println!(
        "{} reservations, {} MiB",
        manager.reservations().len(),
        memory_mib()
    );
    let (engine, jobs) = engine::queue();
    engine.begin(&manager, Arc::new(AtomicU64::new(u64::MAX)));
    println!("{} MiB with the copy for those who look", memory_mib());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let app = App {
        engine: engine.clone(),
        access: Arc::new(Current::new(Access::Open)),
        peers: Arc::default(),
    };
    let on_run = engine.clone();
    spawn(move || {
        let jobs = (&on_run, &jobs);
        engine::run(&mut manager, &mut store, jobs, boottime_ns, |_, _| {}).unwrap();
    });
    spawn(move || {
        let (_end, ended) = oneshot::channel();
        serve_here(listener, None, router(app), ended).unwrap();
    });
    let client = Client::new(&format!("http://127.0.0.1:{port}"), None, &Tls::default()).unwrap();
    let answers = Arc::new(AtomicU64::new(0));
    measure("without agents", &client, &mut rng, next);
    agents(port, count, &answers);
    while answers.load(Ordering::Relaxed) < count {
        sleep(Duration::from_millis(10));
    }
    let before = answers.load(Ordering::Relaxed);
    measure(
        &format!("with {count} agents"),
        &client,
        &mut rng,
        next + MEASURED,
    );
    println!(
        "  {} answers to agents meanwhile",
        answers.load(Ordering::Relaxed) - before
    );
    // Somebody reads the list over and over.
    let is_over = Arc::new(AtomicBool::new(false));
    let (over, port) = (Arc::clone(&is_over), port);
    let lists = spawn(move || {
        let client =
            Client::new(&format!("http://127.0.0.1:{port}"), None, &Tls::default()).unwrap();
        let mut count = 0;
        while !over.load(Ordering::Relaxed) {
            count = client.reservations().unwrap().len();
        }
        count
    });
    measure(
        "with agents and lists",
        &client,
        &mut rng,
        next + 2 * MEASURED,
    );
    is_over.store(true, Ordering::Relaxed);
    let listed = lists.join().unwrap();
    println!(
        "{listed} listed, {} MiB with what the reader had",
        memory_mib()
    );
}

/// Reserves and releases; prints the times.
fn measure(what: &str, client: &Client, rng: &mut Pcg32, first: u64) {
    let (mut reserves, mut releases) = (Vec::new(), Vec::new());
    for n in first..first + MEASURED {
        let Command::Reserve { id, request, .. } = reserve(rng, n) else {
            panic!()
        };
        let body = ReserveBody {
            id: format!("m{id}"),
            lease_ns: 3600 * S,
            stream: request,
            replace: false,
        };
        let begin = Instant::now();
        let answer = client.reserve(&body).unwrap();
        reserves.push(begin.elapsed());
        if matches!(answer, Reserved::Granted(_)) {
            let begin = Instant::now();
            client.release(&body.id).unwrap();
            releases.push(begin.elapsed());
        }
    }
    for (kind, mut all) in [("reserve", reserves), ("release", releases)] {
        all.sort();
        let at = |percent: usize| all[(all.len() - 1) * percent / 100];
        println!(
            "{what}, {kind}: median {:?}, 99 % {:?}, most {:?}",
            at(50),
            at(99),
            at(100)
        );
    }
}
