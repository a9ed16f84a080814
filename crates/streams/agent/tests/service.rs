// SPDX-License-Identifier: MIT OR Apache-2.0
//! A manager of one segment for the tests of agents and of the library for C.

#![allow(dead_code, reason = "each test takes what it needs")]

use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::thread::spawn;

use admission::{Medium, NodeSpec, SegmentSpec, Topology};
use linux_io::clock::boottime_ns;
use manager::access::{self, Access, sha256};
use manager::engine;
use manager::replaceable::Replaceable;
use manager::server::serve_here;
use manager::service::{App, router};
use manager::store::MemoryStore;
use manager_proto::machine::{Limits, Manager, Start};
use tokio::sync::oneshot;

/// Agents of `a` and of `b`, and a talker, by the tokens "of-a", "of-b" and "talks".
pub fn agents() -> Access {
    let entry = |name: &str, more: &str| {
        let hash = sha256(name.as_bytes());
        let hash: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("[[access]]\nname = \"{name}\"\ntoken_sha256 = \"{hash}\"\n{more}\n")
    };
    let all = [
        entry("of-a", "role = \"agent\"\nhosts = [\"a\"]"),
        entry("of-b", "role = \"agent\"\nhosts = [\"b\"]"),
        entry("talks", "role = \"talker\""),
    ];
    access::read(&all.concat()).unwrap()
}

/// Starts a manager of a segment `s` of the hosts `a` and `b`; returns its URL. It ends with the test.
pub fn manager(access: Access) -> String {
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
        access: Arc::new(Replaceable::new(access)),
        peers: Arc::default(),
    };
    let start = Start::alone("m", "boot", boottime_ns().unwrap());
    let mut manager = Manager::restore(&start, topology, Limits::default(), []).unwrap();
    engine.begin(&manager, Arc::new(AtomicU64::new(u64::MAX)));
    spawn(move || {
        let mut store = MemoryStore::default();
        let jobs = (&engine, &jobs);
        engine::run(&mut manager, &mut store, jobs, boottime_ns, |_, _| {}).unwrap();
    });
    spawn(move || {
        let (_end, ended) = oneshot::channel();
        serve_here(listener, None, router(app), ended).unwrap();
    });
    url
}
