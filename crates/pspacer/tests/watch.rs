// SPDX-License-Identifier: MIT OR Apache-2.0
//! `pspacer watch` on this host, where it is allowed: transfers over the loopback that stall on
//! purpose. Where it is not, the tests say that they were skipped; `watch_lab.rs` always runs.

use crate::common;

use std::env;
use std::io::{BufRead, BufReader, ErrorKind, Lines, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use testkit::{has, has_none};

/// Messages of hosts on which nobody can watch.
const CANNOT: [&str; 4] = [
    "run it as root",
    "CONFIG_DEBUG_INFO_BTF",
    "CONFIG_BPF_SYSCALL",
    "built without its BPF program",
];

struct Watch {
    child: Child,
    said: BufReader<ChildStderr>,
}

impl Watch {
    /// Starts `watch` and waits until it is attached. Returns `None` if this host does not
    /// allow it.
    fn attach(args: &[&str]) -> Option<Self> {
        let mut child = Command::new(env!("CARGO_BIN_EXE_pspacer"))
            .args(["watch", "--json"])
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        said.read_line(&mut line).unwrap();
        if CANNOT.iter().any(|why| line.contains(why)) {
            assert_eq!(child.wait().unwrap().code(), Some(1));
            eprintln!("SKIPPED: {line}");
            return None;
        }
        assert_eq!(line, "pspacer: watching; Ctrl-C ends it\n");
        Some(Self { child, said })
    }

    /// Ends it by SIGTERM, as a service manager would.
    fn finish(mut self) -> Value {
        let pid = Pid::from_raw(self.child.id().try_into().unwrap());
        kill(pid, Signal::SIGTERM).unwrap();
        let mut json = String::new();
        self.child
            .stdout
            .take()
            .unwrap()
            .read_to_string(&mut json)
            .unwrap();
        let mut rest = String::new();
        self.said.read_to_string(&mut rest).unwrap();
        assert!(self.child.wait().unwrap().success(), "{rest}");
        common::watched(&json)
    }
}

/// Returns both ends of a connection, and the port that listened. It is the lower one: of a
/// connection that is older than itself, `watch` takes the end with the lower port for the
/// server, and Linux chooses both ports at random.
fn pair() -> (TcpStream, TcpStream, String) {
    let connect = || {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (receiver, _) = listener.accept().unwrap();
        (sender, receiver)
    };
    let port = |end: &TcpStream| end.local_addr().unwrap().port();
    let (sender, receiver) = std::iter::repeat_with(connect)
        .take(1000)
        .find(|(sender, receiver)| port(receiver) < port(sender))
        .expect("a pair whose listening port is the lower one");
    let listened = port(&receiver).to_string();
    (sender, receiver, listened)
}

/// Sends a message and reads it, so that nothing waits.
fn exchange(sender: &mut TcpStream, receiver: &mut TcpStream) {
    let message = [7; 10_000];
    for _ in 0..50 {
        sender.write_all(&message).unwrap();
        receiver.read_exact(&mut [0; 10_000]).unwrap();
    }
}

/// A listening process of its own. It is this program again, at [`a_process_that_listens`].
struct Listening {
    child: Child,
    commands: Option<ChildStdin>,
    /// Kept open, so that the process can print.
    _said: Lines<BufReader<ChildStdout>>,
    port: u16,
}

impl Listening {
    fn start() -> Self {
        let mut child = Command::new(env::current_exe().unwrap())
            .args(["--exact", "watch::a_process_that_listens", "--nocapture"])
            .env(LISTEN, "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(child.stdout.take().unwrap()).lines();
        let port = said
            .find_map(|line| {
                let line = line.unwrap();
                line.strip_prefix("port ")
                    .and_then(|port| port.parse().ok())
            })
            .unwrap();
        let commands = child.stdin.take();
        Self {
            child,
            commands,
            _said: said,
            port,
        }
    }

    fn connect(&self) -> String {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.local_addr().unwrap().to_string()
    }
}

/// Variable that is set in the environment of [`Listening`].
const LISTEN: &str = "PSPACER_TEST_LISTEN";

/// Does something only in a process of [`Listening::start`]: it listens, closes its listening
/// socket at the command "close", gives it to a child at "share", and ends with its input.
#[test]
#[allow(clippy::zombie_processes, reason = "its child outlives it")]
fn a_process_that_listens() {
    if env::var_os(LISTEN).is_none() {
        return;
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    println!("\nport {port}");
    let mut commands = std::io::stdin().lines();
    let mut listener = Some(listener);
    while let Some(Ok(command)) = commands.next() {
        match (command.as_str(), &listener) {
            ("close", _) => drop(listener.take()),
            ("share", Some(shared)) => {
                let shared = shared.as_fd().try_clone_to_owned().unwrap();
                Command::new("sleep")
                    .arg("60")
                    .stdin(shared)
                    .spawn()
                    .unwrap();
            }
            other => panic!("{other:?}"),
        }
    }
}

/// Returns the connection of the end that sent.
fn sent(watched: &Value) -> &Value {
    assert_eq!(watched["lost_records"], 0);
    let connections = watched["connections"].as_array().unwrap();
    let most = connections.iter().max_by_key(|c| c["acked_bytes"].as_u64());
    most.unwrap_or_else(|| panic!("no connection: {watched:#}"))
}

fn causes(connection: &Value) -> Vec<&str> {
    let stalls = connection["stalls"].as_array().unwrap();
    stalls
        .iter()
        .filter_map(|stall| stall["cause"].as_str())
        .collect()
}

#[test]
fn a_sender_that_pauses_and_a_receiver_that_does_not_read() {
    let (mut sender, mut receiver, port) = pair();
    let Some(watch) = Watch::attach(&["--port", &port]) else {
        return;
    };
    exchange(&mut sender, &mut receiver);
    thread::sleep(Duration::from_millis(700));
    exchange(&mut sender, &mut receiver);
    // The sender writes until both buffers are full.
    sender.set_nonblocking(true).unwrap();
    let mut unread = 0;
    for _ in 0..10 {
        loop {
            match sender.write(&[7; 100_000]) {
                Ok(bytes) => unread += bytes,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => panic!("{error}"),
            }
        }
        thread::sleep(Duration::from_millis(100));
    }
    sender.set_nonblocking(false).unwrap();
    receiver.read_exact(&mut vec![0; unread]).unwrap();
    exchange(&mut sender, &mut receiver);
    let watched = watch.finish();
    let connection = sent(&watched);
    let causes = causes(connection);
    assert!(causes.contains(&"application"), "{connection:#}");
    assert!(causes.contains(&"receiver-window-closed"), "{connection:#}");
    let verdict = connection["verdict"].as_str().unwrap();
    has(verdict, ["stopped"]);
    // The other end is this process's, too: the kernel says that it does not read.
    let connections = watched["connections"].as_array().unwrap();
    let listened = Value::from(receiver.local_addr().unwrap().to_string());
    assert_eq!(connection["server"], listened, "{connection:#}");
    let receiving = connections.iter().find(|c| c["local"] == listened);
    let stalls = receiving.unwrap()["stalls"].as_array().unwrap();
    let not_read = |stall: &&Value| {
        let explanation = stall["explanation"].as_str().unwrap_or_default();
        explanation.contains("on this host did not read")
    };
    let stall = stalls.iter().find(not_read);
    let stall = stall.unwrap_or_else(|| panic!("{receiving:#?}"));
    assert_eq!(stall["side"], "receiver");
    assert_eq!(stall["direction"], "to-server");
    assert!(stall["duration_s"].as_f64() > Some(0.3), "{stall:#}");
    assert_eq!(receiving.unwrap()["process"]["pid"], std::process::id());
}

/// The listening end sends and pauses. Nobody saw its process open the socket.
#[test]
fn an_accepted_socket_is_its_processs_and_its_packets_are_saved() {
    let (mut reader, mut sender, port) = pair();
    let folder = tempfile::tempdir().unwrap();
    let into = folder.path().join("packets");
    let Some(watch) = Watch::attach(&["--port", &port, "--packets", into.to_str().unwrap()]) else {
        return;
    };
    exchange(&mut sender, &mut reader);
    // `stalls` does not find the handshake in the file: it measures the sender's round trip by the
    // timestamps that the sender echoes. They count ms. If they changed in the last message alone,
    // the first echo would come after the pause, which would be taken for the round trip.
    thread::sleep(Duration::from_millis(2));
    exchange(&mut sender, &mut reader);
    thread::sleep(Duration::from_millis(700));
    exchange(&mut sender, &mut reader);
    thread::sleep(Duration::from_millis(300));
    let watched = watch.finish();
    let connection = sent(&watched);
    assert!(
        causes(connection).contains(&"application"),
        "{connection:#}"
    );
    assert_eq!(
        connection["process"]["pid"],
        std::process::id(),
        "{connection:#}"
    );
    let saved = watched["saved"].as_array().unwrap();
    assert_eq!(watched["packets"]["files"], saved.len());
    // A busy host adds short stalls, with files of their own.
    let judged = saved.iter().map(|saved| {
        let file = saved["file"].as_str().unwrap();
        let judged = common::pspacer(&["stalls", file, "--json"]);
        let mut judged: Value = serde_json::from_slice(&judged.stdout).unwrap();
        judged["connections"][0].take()
    });
    let judged: Vec<Value> = judged.collect();
    let has_pause = |connection: &Value| {
        let stalls = connection["stalls"].as_array().unwrap();
        let is_pause = |stall: &Value| {
            stall["cause"] == "application" && stall["duration_s"].as_f64() > Some(0.6)
        };
        stalls.iter().any(is_pause)
    };
    assert!(judged.iter().any(has_pause), "{judged:#?}");
}

#[test]
fn a_process_has_what_it_had_connected_and_accepted() {
    let (mut sender, mut receiver, _) = pair();
    let own = std::process::id().to_string();
    let mut other = Command::new("sleep").arg("600").spawn().unwrap();
    let ours = Watch::attach(&["--pid", &own, "--dst", "127.0.0.0/8"]);
    let others = Watch::attach(&["--pid", &other.id().to_string()]);
    let (Some(ours), Some(others)) = (ours, others) else {
        other.kill().unwrap();
        other.wait().unwrap();
        return;
    };
    exchange(&mut sender, &mut receiver);
    let (mut later, mut accepted, _) = pair();
    exchange(&mut later, &mut accepted);
    let watched = ours.finish();
    let locals: Vec<_> = watched["connections"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| &c["local"])
        .collect();
    for socket in [&sender, &later] {
        let local = Value::from(socket.local_addr().unwrap().to_string());
        assert!(locals.contains(&&local), "{local} is not in {watched:#}");
    }
    let foreign = others.finish();
    other.kill().unwrap();
    other.wait().unwrap();
    let foreign = foreign["connections"].to_string();
    let local = sender.local_addr().unwrap().to_string();
    has_none(&foreign, [&local]);
}

/// Returns the far ends of the connections that were watched.
fn remotes(watched: &Value) -> Vec<String> {
    let connections = watched["connections"].as_array().unwrap();
    let far = |c: &Value| {
        if c["local"] == c["client"] {
            c["server"].as_str().unwrap().to_owned()
        } else {
            c["client"].as_str().unwrap().to_owned()
        }
    };
    connections.iter().map(far).collect()
}

#[test]
fn a_port_that_the_process_closed_is_nobody_s() {
    let mut process = Listening::start();
    let Some(watch) = Watch::attach(&["--pid", &process.child.id().to_string()]) else {
        return;
    };
    let own = process.connect();
    let mut commands = process.commands.take().unwrap();
    writeln!(commands, "close").unwrap();
    // The port is free once the process has closed it.
    let stranger = std::iter::repeat_with(|| TcpListener::bind(("127.0.0.1", process.port)))
        .take(1000)
        .find_map(|bound| {
            thread::sleep(Duration::from_millis(10));
            bound.ok()
        });
    let stranger = stranger.expect("the port is given back");
    let foreign = process.connect();
    drop(stranger);
    drop(commands);
    process.child.wait().unwrap();
    let found = remotes(&watch.finish());
    assert!(found.contains(&own), "{own} is not in {found:?}");
    assert!(!found.contains(&foreign), "{foreign} is in {found:?}");
}

#[test]
fn what_is_accepted_after_the_process_ended_is_not_its_own() {
    let mut process = Listening::start();
    let Some(mut watch) = Watch::attach(&["--pid", &process.child.id().to_string()]) else {
        return;
    };
    let own = process.connect();
    let mut commands = process.commands.take().unwrap();
    // The child keeps the port open.
    writeln!(commands, "share").unwrap();
    drop(commands);
    process.child.wait().unwrap();
    let mut line = String::new();
    watch.said.read_line(&mut line).unwrap();
    has(&line, ["has ended"]);
    let foreign = process.connect();
    let found = remotes(&watch.finish());
    assert!(found.contains(&own), "{own} is not in {found:?}");
    assert!(!found.contains(&foreign), "{foreign} is in {found:?}");
}

#[test]
fn a_record_is_a_table_of_the_simulators_form() {
    let (mut sender, mut receiver, port) = pair();
    let folder = tempfile::tempdir().unwrap();
    let into = folder.path().join("records");
    let Some(watch) = Watch::attach(&["--port", &port, "--record", into.to_str().unwrap()]) else {
        return;
    };
    exchange(&mut sender, &mut receiver);
    let watched = watch.finish();
    let file = sent(&watched)["record"].as_str().unwrap();
    let table = std::fs::read_to_string(into.join(file)).unwrap();
    let mut lines = table.lines();
    assert!(
        lines
            .next()
            .unwrap()
            .starts_with("time_ns,moment,omitted,state,una,nxt,")
    );
    let una: Vec<u64> = lines
        .map(|line| line.split(',').nth(4).unwrap().parse().unwrap())
        .collect();
    assert!(una.len() >= 10 && una.is_sorted(), "{una:?}");
    assert!(una.last() > Some(&300_000), "{una:?}");
    assert!(into.join("sender.svg").exists());
}

#[test]
fn what_cannot_be_watched_is_refused_at_once() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("file"), "").unwrap();
    let folder = folder.path().to_str().unwrap();
    let cases: [(&[&str], &str); 7] = [
        (&["--cgroup", "/no/such"], "--cgroup"),
        (&["--unit", "no-such"], "--unit"),
        (&["--unit", "a", "--cgroup", "/"], "cannot be used with"),
        (&["--packets-memory", "1mb"], "--packets"),
        (&["--record", folder], "expected a new or an empty folder"),
        (&["--dst", "10.0.0.0/33"], "has 32 bits"),
        (&["--port", "0"], "--port"),
    ];
    for (args, says) in cases {
        let all = [&["watch", "--duration", "1ms"], args].concat();
        let out = common::pspacer(&all);
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        assert!(!out.status.success() && said.contains(says), "{said}");
    }
}
