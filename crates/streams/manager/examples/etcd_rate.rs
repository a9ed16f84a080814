// SPDX-License-Identifier: MIT OR Apache-2.0
//! How many requests a second a manager answers that keeps its records in three members of etcd: one
//! client and 64, over HTTP with connections that stay. Beside it etcd's own rate: puts of one key
//! through the same gateway, by as many clients.
//!
//! ```sh
//! cargo run --release -p manager --example etcd_rate -- [SECONDS [etcd:URL,...]]
//! ```
//!
//! Without URLs it starts three members on this host.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a program to measure"
)]

use std::env;
use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use admission::{Interval, Listener, Requirements, StreamRequest, Talker, TrafficSpecification};
use clap::Parser;
use draw::terminal::Style;
use manager::api::ReserveBody;
use manager::client::{Client, Reserved, Tls};
use manager::commands;
use manager::etcd::gateway::{Condition, Gateway, Write};
use vmlab::{Cache, Quiet};

/// The words of a manager's command line, one to a line: set in the process that is one.
const WORDS: &str = "PSPACER_RATE_MANAGER";
const CLIENTS: [usize; 2] = [1, 64];
const MEMBERS: usize = 3;
/// Bytes of a put: about those of a reservation's record.
const VALUE_BYTES: usize = 600;
const S: u64 = 1_000_000_000;
const NET: &str = "[[host]]\nname = \"a\"\n[[host]]\nname = \"b\"\n[[segment]]\nname = \"s\"\n\
                   medium = \"switched\"\nrate = \"10gbit\"\nmembers = [\"a\", \"b\"]\n";

#[derive(Debug, Parser)]
struct Words {
    #[command(subcommand)]
    command: commands::Command,
}

/// A process that ends with this one's work.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn free_url() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}

fn until<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + Duration::from_secs(60);
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(Instant::now() < end, "{what}");
        thread::sleep(Duration::from_millis(50));
    }
}

/// Starts the members of an etcd; returns their URLs.
fn start_etcd(folder: &Path) -> (Vec<Running>, Vec<String>) {
    let root = vmlab::etcd(&Cache::default_folder().unwrap(), &Quiet).unwrap();
    let urls: Vec<_> = (0..MEMBERS).map(|_| (free_url(), free_url())).collect();
    let all = urls.iter().enumerate();
    let all: Vec<_> = all.map(|(n, (_, url))| format!("m{n}={url}")).collect();
    let members = urls.iter().enumerate().map(|(n, (clients, members))| {
        let mut command = Command::new(root.join("usr/bin/etcd"));
        command
            .args(["--name", &format!("m{n}")])
            .args(["--listen-client-urls", clients])
            .args(["--advertise-client-urls", clients])
            .args(["--listen-peer-urls", members])
            .args(["--initial-advertise-peer-urls", members])
            .args(["--initial-cluster", &all.join(",")])
            .arg("--data-dir")
            .arg(folder.join(format!("m{n}")))
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        Running(command.spawn().unwrap())
    });
    (
        members.collect(),
        urls.iter().map(|(url, _)| url.clone()).collect(),
    )
}

fn start_manager(folder: &Path, urls: &[String]) -> (Running, String) {
    let file = |name: &str| folder.join(name).display().to_string();
    fs::write(file("net.toml"), NET).unwrap();
    let words = [
        "manager".to_owned(),
        "manager".to_owned(),
        format!("--topology={}", file("net.toml")),
        format!("--store=etcd:{}", urls.join(",")),
        "--listen=127.0.0.1:0".to_owned(),
        format!("--address-file={}", file("address")),
    ];
    let mut command = Command::new(env::current_exe().unwrap());
    command.env(WORDS, words.join("\n")).stdout(Stdio::null());
    let running = Running(command.spawn().unwrap());
    let url = until("a manager starts", || {
        let url = fs::read_to_string(file("address")).ok()?;
        url.ends_with('\n').then(|| url.trim().to_owned())
    });
    let client = Client::new(&url, None, &Tls::default()).unwrap();
    until("it decides", || client.links().ok());
    (running, url)
}

/// Lets clients work for a time; each question counts. Returns questions in a second.
fn rate(clients: usize, time: Duration, work: impl Fn(usize, u64) -> u64 + Sync) -> f64 {
    let done = AtomicU64::new(0);
    let since = Instant::now();
    thread::scope(|threads| {
        for client in 0..clients {
            let (done, work) = (&done, &work);
            threads.spawn(move || {
                for n in 0.. {
                    if since.elapsed() >= time {
                        return;
                    }
                    done.fetch_add(work(client, n), Ordering::Relaxed);
                }
            });
        }
    });
    done.load(Ordering::Relaxed) as f64 / since.elapsed().as_secs_f64()
}

fn body(id: String) -> ReserveBody {
    ReserveBody {
        replace: false,
        lease_ns: 600 * S,
        stream: StreamRequest {
            stream_id: format!("stream-{id}"),
            talker: Talker {
                name: "a".to_owned(),
                data_frame_specification: Vec::new(),
                traffic_specification: TrafficSpecification {
                    interval: Interval::from_ns(S / 100).unwrap(),
                    max_frames_per_interval: Some(1),
                    max_frame_size: Some(1000),
                    bytes_per_interval: None,
                },
                user_to_network_requirements: Requirements::default(),
            },
            listeners: vec![Listener {
                name: "b".to_owned(),
                user_to_network_requirements: Requirements::default(),
                route: vec![],
            }],
        },
        id,
    }
}

fn main() {
    if let Ok(words) = env::var(WORDS) {
        let words = Words::parse_from(words.lines());
        commands::run(&words.command, Style::PLAIN, |_| {}).unwrap();
        return;
    }
    let mut args = env::args().skip(1);
    let seconds = args.next().map_or(10, |of| of.parse().unwrap());
    let time = Duration::from_secs(seconds);
    let folder = tempfile::tempdir().unwrap();
    let (_members, urls) = match args.next() {
        Some(store) => {
            let urls = store.strip_prefix("etcd:").expect("expected etcd:URL,...");
            (Vec::new(), urls.split(',').map(str::to_owned).collect())
        }
        None => start_etcd(folder.path()),
    };
    let gateway = || Gateway::new(urls.clone(), &Tls::default()).unwrap();
    until("etcd answers", || {
        gateway().read("rate/", None, (1, 0)).ok()
    });
    let (_manager, url) = start_manager(folder.path(), &urls);
    for clients in CLIENTS {
        let own: Vec<_> = (0..clients).map(|_| gateway()).collect();
        let always = Condition::Absent("rate/none".to_owned());
        let plain = rate(clients, time, |client, n| {
            let put = Write::Put {
                key: format!("rate/{client}-{}", n % 100),
                value: vec![b'x'; VALUE_BYTES],
                lease: 0,
            };
            own[client]
                .transact(std::slice::from_ref(&always), &[put])
                .unwrap();
            1
        });
        let own: Vec<_> = (0..clients)
            .map(|_| Client::new(&url, None, &Tls::default()).unwrap())
            .collect();
        let asked = rate(clients, time, |client, n| {
            let id = format!("c{clients}-{client}-{n}");
            let reserved = own[client].reserve(&body(id.clone())).unwrap();
            assert!(matches!(reserved, Reserved::Granted(_)), "{reserved:?}");
            own[client].release(&id).unwrap();
            2
        });
        println!(
            "{clients} clients: {asked:.0} requests a second, half of them reservations; etcd alone \
             {plain:.0} puts a second; ratio {:.2}",
            asked / plain
        );
    }
}
