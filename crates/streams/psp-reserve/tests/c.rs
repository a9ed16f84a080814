// SPDX-License-Identifier: MIT OR Apache-2.0
//! A program in C, compiled here, reserves at a manager: with the shared library and the static one.

#![allow(clippy::unwrap_used, reason = "tests fail that way")]

use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::thread::spawn;

use admission::{Medium, NodeSpec, SegmentSpec, Topology};
use linux_io::clock::boottime_ns;
use manager::access::Access;
use manager::engine;
use manager::machine::{Limits, Manager};
use manager::server::serve;
use manager::service::{App, router};
use manager::store::MemoryStore;
use tokio::sync::oneshot;

/// What the static library needs of the system.
const SYSTEM: [&str; 5] = ["-lpthread", "-ldl", "-lm", "-lgcc_s", "-lc"];

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
        engine,
        access: Arc::new(Access::Open),
        peers: Arc::new(Vec::new()),
    };
    spawn(move || {
        let clock = ("boot", boottime_ns().unwrap());
        let manager = Manager::restore("m", topology, Limits::default(), [], clock);
        let mut store = MemoryStore::default();
        engine::run(
            &mut manager.unwrap(),
            &mut store,
            &jobs,
            boottime_ns,
            |_, _| {},
        )
        .unwrap();
    });
    spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_all().build().unwrap();
        let (_end, ended) = oneshot::channel();
        runtime
            .block_on(serve(listener, None, router(app), ended))
            .unwrap();
    });
    url
}

#[test]
fn a_program_in_c_reserves() {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = tempfile::tempdir().unwrap();
    // Cargo puts the libraries beside the test.
    let test = std::env::current_exe().unwrap();
    let libraries = test.parent().unwrap();
    // The loader finds the shared library by the version of its interface alone.
    let loaded = folder.path().join("loaded");
    std::fs::create_dir(&loaded).unwrap();
    let shared = libraries.join("libpsp_reserve.so");
    std::os::unix::fs::symlink(shared, loaded.join("libpsp_reserve.so.0")).unwrap();
    for kind in ["so", "a"] {
        let program = folder.path().join(kind);
        let mut compiler = Command::new("cc");
        compiler.args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-o"]);
        compiler.arg(&program).arg("-I").arg(own.join("include"));
        compiler.arg(own.join("tests/use.c"));
        // By name, not by path: a path would be what the loader looks for.
        compiler.arg("-L").arg(libraries);
        compiler.arg(format!("-l:libpsp_reserve.{kind}"));
        compiler.args(SYSTEM);
        assert!(compiler.status().unwrap().success(), "{kind}");
        let mut command = Command::new(&program);
        command.arg(manager()).env("LD_LIBRARY_PATH", &loaded);
        let out = command.output().unwrap();
        let said = String::from_utf8_lossy(&out.stderr);
        assert!(out.status.success(), "{kind}: {said}");
    }
}
