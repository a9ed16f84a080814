// SPDX-License-Identifier: MIT OR Apache-2.0
//! `--dry-run` says what it would change, and ends.

use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::thread::spawn;

use admission::{Medium, NodeSpec, SegmentSpec, Topology};
use agent::{AgentArgs, Io, run};
use clap::Parser;
use linux_io::clock::boottime_ns;
use manager::access::Access;
use manager::current::Current;
use manager::engine;
use manager::machine::{Limits, Manager, Start};
use manager::server::serve;
use manager::service::{App, router};
use manager::store::MemoryStore;
use tokio::sync::oneshot;

#[derive(Parser)]
struct Words {
    #[command(flatten)]
    args: AgentArgs,
}

/// Starts a manager; returns its URL. It ends with the test.
fn manager() -> String {
    let node = |name: &str| NodeSpec {
        name: name.to_owned(),
        is_router: false,
    };
    let segment = SegmentSpec::new("s", Medium::Shared, 100_000_000, &["a", "b"]);
    let topology = Arc::new(Topology::new(&[node("a"), node("b")], &[segment]).unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (engine, jobs) = engine::queue();
    let app = App {
        engine: engine.clone(),
        access: Arc::new(Current::new(Access::Open)),
        peers: Arc::new(Vec::new()),
    };
    let start = Start {
        name: "m",
        peers: &[],
        epoch: 1,
        boot: "boot",
        now_ns: boottime_ns().unwrap(),
        is_store_whole: true,
    };
    let mut manager = Manager::restore(&start, topology, Limits::default(), []).unwrap();
    engine.begin(&manager, Arc::new(AtomicU64::new(u64::MAX)));
    spawn(move || {
        let mut store = MemoryStore::default();
        let jobs = (&engine, &jobs);
        engine::run(&mut manager, &mut store, jobs, boottime_ns, |_, _| {}).unwrap();
    });
    spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_all().build().unwrap();
        let (_end, ended) = oneshot::channel();
        let served = serve(listener, None, router(app), ended);
        runtime.block_on(served).unwrap();
    });
    url
}

/// Runs an agent of the node `a` with the loopback device; returns what it printed, and how it ended.
fn dry_run(managers: &str, more: &[&str]) -> (String, String, Result<(), String>) {
    let words = ["agent", "--node=a", "--port=s=lo", "--dry-run", "--manager"];
    let words = words.iter().chain([&managers]).chain(more);
    let args = Words::parse_from(words).args;
    let (mut out, mut warned) = (Vec::new(), String::new());
    let mut warn = |line: &str| warned.push_str(line);
    let mut io = Io {
        out: &mut out,
        warn: &mut warn,
    };
    let ran = run(&args, &mut io).map_err(|error| format!("{error:#}"));
    (String::from_utf8(out).unwrap(), warned, ran)
}

#[test]
fn a_dry_run_says_the_changes_and_makes_none() {
    let url = manager();
    for more in [&[][..], &["--json"]] {
        let first = dry_run(&url, more);
        assert_eq!((first.1.as_str(), &first.2), ("", &Ok(())));
        let lines = first.0.lines().count();
        assert!(lines >= 2 && first.0.contains("lo: "), "{}", first.0);
        // Nothing has changed.
        assert_eq!(dry_run(&url, more), first);
    }
    // Without one of the managers nothing is said of changes.
    let away = "http://127.0.0.1:9";
    let (out, _, ran) = dry_run(&format!("{url},{away}"), &[]);
    assert_eq!(out, "");
    let said = ran.unwrap_err();
    assert!(
        said.contains("manager http://127.0.0.1:9 does not answer"),
        "{said}"
    );
}

#[test]
fn a_port_that_cannot_be_set_is_named() {
    let url = manager();
    let words = ["--port=s=no-such-device"];
    let args = ["agent", "--node=a", "--dry-run", "--manager", &url];
    let args = Words::parse_from(args.iter().chain(&words)).args;
    let (mut out, mut warned) = (Vec::new(), String::new());
    let mut warn = |line: &str| warned.push_str(line);
    let mut io = Io {
        out: &mut out,
        warn: &mut warn,
    };
    let said = run(&args, &mut io).unwrap_err().to_string();
    assert_eq!(said, "1 of 1 ports cannot be set");
    assert!(warned.contains("no-such-device"), "{warned}");
}
