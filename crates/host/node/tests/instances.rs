// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sockets of several instances: a second one is refused or has its own, each removes its own alone,
//! and what somebody removes is made again. A call that a signal comes between is answered.

use std::fs;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::agent::{Agent, program, until};
use crate::api_server::{Fault, Server};
use crate::claim::{DRIVER, asked, object, result};
use crate::kubelet::{V1, prepare, register};

fn server() -> Server {
    let server = Server::start(0, None);
    server.put_claim(&object("c1", "p1", &[result(DRIVER, "60M", "10M")]));
    server
}

fn is_prepared(agent: &Agent) -> bool {
    let prepared = prepare(&agent.sockets.service, V1, &asked("c1"));
    prepared.is_ok_and(|prepared| prepared.error.is_empty())
}

/// Starts a second one with the same folders, which ends, and returns what it says.
fn second(folder: &Path, args: &[&str]) -> String {
    let (run, kubelet) = (folder.join("run"), folder.join("kubelet"));
    let out = Command::new(program())
        .args(["run", "--egress", "1gbit", "--node", "n1"])
        .args(["--api", "http://127.0.0.1:1"])
        .args(args)
        .arg("--kubelet")
        .arg(kubelet)
        .env("PSPACER_RUN", run)
        .output()
        .unwrap();
    assert_eq!(out.status.code(), Some(1));
    String::from_utf8(out.stderr).unwrap()
}

#[test]
fn a_second_one_does_not_take_the_sockets_of_the_first() {
    let folder = tempfile::tempdir().unwrap();
    let server = server();
    for uid in [None, Some("a-1")] {
        let mut agent = Agent::start_as(folder.path(), &server.url, uid);
        let file = agent.run.join("node.json");
        until("what it was started with", || file.exists());
        let known = fs::read(&file).unwrap();
        let args = uid.map_or(Vec::new(), |uid| vec!["--instance", uid]);
        let text = second(folder.path(), &args);
        let path = agent.sockets.service.display();
        let expected = format!("{path}: a process answers at this socket, expected none");
        assert!(text.contains(&expected), "{text}");
        assert!(is_prepared(&agent));
        assert_eq!(register(&agent.sockets.registration).name, DRIVER);
        assert_eq!(fs::read(&file).unwrap(), known);
        agent.signal(Signal::SIGTERM);
        assert!(agent.child.wait().unwrap().success());
        assert!(!agent.sockets.registration.exists() && !agent.sockets.service.exists());
    }
    let text = second(folder.path(), &["--driver", &"d".repeat(60)]);
    assert!(
        text.contains("bytes, a socket's path has at most 107: expected a shorter --driver"),
        "{text}"
    );
}

#[test]
fn two_instances_serve_side_by_side() {
    let folder = tempfile::tempdir().unwrap();
    let server = server();
    let start = |uid| Agent::start_as(folder.path(), &server.url, Some(uid));
    let (mut old, new) = (start("a-1"), start("b-2"));
    for agent in [&old, &new] {
        let info = register(&agent.sockets.registration);
        assert_eq!(Path::new(&info.endpoint), agent.sockets.service);
        assert!(is_prepared(agent));
    }
    assert!(
        old.sockets
            .registration
            .ends_with(format!("{DRIVER}-a-1-reg.sock"))
    );
    assert!(
        old.sockets
            .service
            .ends_with(format!("{DRIVER}/dra-a-1.sock"))
    );
    old.signal(Signal::SIGTERM);
    assert!(old.child.wait().unwrap().success());
    assert!(!old.sockets.registration.exists() && !old.sockets.service.exists());
    assert!(is_prepared(&new));
    // One that is killed leaves its sockets, and comes back with the same name.
    let sockets = new.sockets.clone();
    drop(new);
    assert!(sockets.registration.exists() && sockets.service.exists());
    assert!(UnixStream::connect(&sockets.service).is_err());
    assert!(is_prepared(&start("b-2")));
}

#[test]
fn sockets_that_somebody_removes_are_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let server = server();
    let mut agent = Agent::start(folder.path(), &server.url);
    let sockets = agent.sockets.clone();
    fs::remove_dir_all(sockets.service.parent().unwrap()).unwrap();
    fs::remove_file(&sockets.registration).unwrap();
    until("both again", || {
        is_prepared(&agent) && UnixStream::connect(&sockets.registration).is_ok()
    });
    // Another's stays another's: who has lost its place ends, without taking it along.
    fs::remove_file(&sockets.service).unwrap();
    let _other = UnixListener::bind(&sockets.service).unwrap();
    assert_eq!(agent.child.wait().unwrap().code(), Some(1));
    assert!(UnixStream::connect(&sockets.service).is_ok());
    assert!(!sockets.registration.exists());
}

#[test]
fn a_call_at_the_end_is_answered() {
    let folder = tempfile::tempdir().unwrap();
    let server = server();
    for (fault, is_answered) in [(Fault::None, true), (Fault::Slow, false)] {
        let mut agent = Agent::start(folder.path(), &server.url);
        server.with(|state| {
            (state.fault, state.wait) = (fault, Duration::from_secs(1));
            state.asked.clear();
        });
        let socket = agent.sockets.service.clone();
        let call = thread::spawn(move || prepare(&socket, V1, &asked("c1")));
        let is_claim = |line: &String| line.contains("resourceclaims");
        until("the question", || {
            server.with(|state| state.asked.iter().any(is_claim))
        });
        agent.signal(Signal::SIGTERM);
        assert!(agent.child.wait().unwrap().success());
        assert!(!agent.sockets.service.exists());
        let answer = call.join().unwrap();
        assert_eq!(answer.is_ok(), is_answered, "{answer:?}");
        server.with(|state| (state.fault, state.wait) = (Fault::None, Duration::ZERO));
    }
}
