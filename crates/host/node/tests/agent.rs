// SPDX-License-Identifier: MIT OR Apache-2.0
//! The program itself, between a kubelet and an API server that stand in: it registers, publishes,
//! prepares, waits for a server that is down, and loses nothing when it is killed.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use cni::claims::Claims;
use cni::record::Records;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use node::sockets::Sockets;
use serde_json::{Value, json};

use crate::api_server::{Fault, Server};
use crate::claim::{DRIVER, asked, object, result};
use crate::kubelet::{V1, V1BETA1, prepare, register, unprepare};

const SLICE: &str = "/apis/resource.k8s.io/v1/resourceslices/n1-bandwidth.pspacer.internal";
pub const PATIENCE: Duration = Duration::from_secs(20);

/// Returns the program, which cargo has built beside this one.
pub fn program() -> PathBuf {
    let this = std::env::current_exe().unwrap();
    let built = this.ancestors().nth(2).unwrap().join("pspacer-node");
    assert!(built.exists(), "{}: no such file", built.display());
    built
}

pub struct Agent {
    pub child: Child,
    lines: Receiver<String>,
    pub sockets: Sockets,
    pub run: PathBuf,
}

impl Agent {
    pub fn start(folder: &Path, url: &str) -> Self {
        Self::start_as(folder, url, None)
    }

    /// Starts one as the pod of a uid.
    pub fn start_as(folder: &Path, url: &str, uid: Option<&str>) -> Self {
        let (run, kubelet) = (folder.join("run"), folder.join("kubelet"));
        let mut child = Command::new(program())
            .env("POD_UID", uid.unwrap_or_default())
            .args([
                "run",
                "--egress",
                "9gbit",
                "--ingress",
                "1gbit",
                "--node",
                "n1",
            ])
            .args(["--every", "1s", "--api", url, "--kubelet"])
            .arg(&kubelet)
            .env("PSPACER_RUN", &run)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        let sockets = Sockets::new(&kubelet, DRIVER, uid);
        until("the sockets", || {
            UnixStream::connect(&sockets.registration).is_ok()
        });
        Self {
            child,
            lines,
            sockets,
            run,
        }
    }

    /// Waits for a line that contains a text.
    fn says(&self, text: &str) -> String {
        loop {
            let line = self.lines.recv_timeout(PATIENCE);
            let line = line.unwrap_or_else(|_| panic!("it never says: {text}"));
            if line.contains(text) {
                return line;
            }
        }
    }
}

impl Agent {
    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id() as i32), signal).unwrap();
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "not in time: {what}");
        thread::sleep(Duration::from_millis(20));
    }
}

fn slice(server: &Server) -> Option<Value> {
    server.with(|state| state.objects.get(SLICE).cloned())
}

fn generation(server: &Server) -> u64 {
    slice(server).map_or(0, |slice| {
        slice["spec"]["pool"]["generation"].as_u64().unwrap()
    })
}

fn egress(server: &Server) -> Value {
    let slice = slice(server).unwrap();
    slice
        .pointer("/spec/devices/0/capacity/egress/value")
        .unwrap()
        .clone()
}

#[test]
fn a_claim_from_registration_to_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(0, None);
    server.put_claim(&object("c1", "p1", &[result(DRIVER, "60M", "10M")]));
    let agent = Agent::start(folder.path(), &server.url);
    let info = register(&agent.sockets.registration);
    assert_eq!(
        (info.kind.as_str(), info.name.as_str()),
        ("DRAPlugin", DRIVER)
    );
    assert_eq!(
        info.supported_versions,
        ["v1.DRAPlugin", "v1beta1.DRAPlugin"]
    );
    let socket = PathBuf::from(&info.endpoint);
    assert_eq!(socket, agent.sockets.service);
    agent.says("registered: the kubelet knows the driver");
    until("a slice", || slice(&server).is_some());
    assert_eq!(egress(&server), "9G");
    let found = slice(&server).unwrap();
    assert_eq!(
        found.pointer("/metadata/ownerReferences/0/uid"),
        Some(&json!("node-uid"))
    );
    for version in [V1, V1BETA1] {
        let prepared = prepare(&socket, version, &asked("c1")).unwrap();
        assert_eq!((prepared.error.as_str(), prepared.devices.len()), ("", 1));
    }
    let error = prepare(&socket, V1, &asked("c9")).unwrap().error;
    assert!(error.contains("no such claim"), "{error}");
    let unknown = crate::kubelet::call::<_, node::proto::PrepareResponse>(
        &socket,
        &format!("{V1}/NodeWatchResources"),
        node::proto::ClaimsRequest::default(),
    );
    assert_eq!(unknown.unwrap_err().code(), tonic::Code::Unimplemented);

    // Claims change nothing of what is published; what a pod has beside them does.
    assert_eq!(generation(&server), 1);
    let text = json!({
        "container": "s9", "netns": "/nowhere/ns", "netns_number": 1,
        "pod": { "name": "eth0", "index": 2, "address": [] }, "host": null, "backend": "edt",
        "egress": { "rate_bps": 2_000_000_000u64, "ceil_bps": null, "deadline_ns": null,
                    "txtime": null },
        "ingress": null, "is_set": false,
    });
    let of = cni::environment::Attachment {
        container: "s9".to_owned(),
        device: "eth0".to_owned(),
    };
    let records = Records::new(&agent.run, "pods");
    records
        .store(&of, &serde_json::from_value(text).unwrap())
        .unwrap();
    until("a smaller slice", || egress(&server) == "7G");
    assert_eq!(generation(&server), 2);
    agent.says("failed: pods s9 eth0 -: /nowhere/ns: no network namespace");
    records.delete(&of).unwrap();
    until("the slice as before", || egress(&server) == "9G");
    // Somebody deletes it, as the kubelet does when it starts.
    server.with(|state| state.objects.remove(SLICE));
    until("the slice again", || slice(&server).is_some());

    // The agent is killed between Prepare and ADD, and another one comes.
    drop(agent);
    let agent = Agent::start(folder.path(), &server.url);
    assert_eq!(Claims::new(&agent.run).load(Some("p1")).unwrap().len(), 1);
    assert_eq!(prepare(&socket, V1, &asked("c1")).unwrap().error, "");
    let status = Command::new(program())
        .args(["status", "--json"])
        .env("PSPACER_RUN", &agent.run)
        .output()
        .unwrap();
    let status: Value = serde_json::from_slice(&status.stdout).unwrap();
    assert_eq!(status["granted"]["egress_bps"], 60_000_000);
    assert_eq!(status["node"]["budget"]["egress_bps"], 9_000_000_000u64);
    assert_eq!(status["claims"][0]["uid"], "c1");
    let text = Command::new(program())
        .arg("status")
        .env("PSPACER_RUN", &agent.run)
        .output()
        .unwrap();
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(
        text.contains("egress: 60 Mbit/s granted, budget 9 Gbit/s: 8.94 Gbit/s left"),
        "{text}"
    );
    assert!(
        text.contains("claim default/claim-c1 c1 egress 60 Mbit/s"),
        "{text}"
    );
    assert_eq!(unprepare(&socket, V1, &asked("c1")).unwrap(), "");
    assert_eq!(Claims::new(&agent.run).load(None).unwrap(), []);
}

#[test]
fn a_server_that_is_down_is_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let port = {
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        free.local_addr().unwrap().port()
    };
    let agent = Agent::start(folder.path(), &format!("http://127.0.0.1:{port}"));
    agent.says("not published: GET http://127.0.0.1:");
    // The kubelet is served meanwhile, and told why.
    let error = prepare(&agent.sockets.service, V1, &asked("c1"))
        .unwrap()
        .error;
    assert!(error.contains("GET http://127.0.0.1:"), "{error}");
    thread::sleep(Duration::from_millis(1500));
    let server = Server::start(port, None);
    agent.says("published: egress 9 Gbit/s, ingress 1,000 Mbit/s");
    // A fault is said once.
    server.with(|state| state.fault = Fault::Refusal);
    agent.says("not published: GET");
    thread::sleep(Duration::from_millis(2500));
    server.with(|state| state.fault = Fault::None);
    let next = agent.lines.recv_timeout(PATIENCE).unwrap();
    assert!(next.starts_with("published: "), "{next}");
}

#[test]
fn a_killed_agent_leaves_whole_claims() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(0, None);
    let uids: Vec<String> = (0..40).map(|number| format!("c{number}")).collect();
    for uid in &uids {
        server.put_claim(&object(
            uid,
            &format!("p{uid}"),
            &[result(DRIVER, "1M", "0")],
        ));
    }
    let mut prepared = std::collections::BTreeSet::new();
    for round in 0..8u64 {
        let mut agent = Agent::start(folder.path(), &server.url);
        let agent_pid = Pid::from_raw(agent.child.id() as i32);
        server.with(|state| state.asked.clear());
        let of_killer = server.clone();
        let killer = thread::spawn(move || {
            // In the course of a later claim each time, and a little later in it.
            let is_claim = |line: &&String| line.contains("resourceclaims");
            until("claims that it asks for", || {
                let asked = of_killer.with(|state| state.asked.iter().filter(is_claim).count());
                asked as u64 > round * 4
            });
            thread::sleep(Duration::from_micros(round * 500));
            kill(agent_pid, Signal::SIGKILL).unwrap();
        });
        for uid in &uids {
            match prepare(&agent.sockets.service, V1, &asked(uid)) {
                Ok(done) if done.error.is_empty() => prepared.insert(uid.clone()),
                Ok(done) => panic!("{}", done.error),
                Err(_) => break,
            };
        }
        killer.join().unwrap();
        let _ = agent.child.wait();
        // What was answered is kept, and nothing is half written.
        let known = Claims::new(&agent.run).load(None).unwrap();
        let known: Vec<&str> = known.iter().map(|claim| claim.uid.as_str()).collect();
        for uid in &prepared {
            assert!(known.contains(&uid.as_str()), "round {round}: {uid}");
        }
    }
    assert!(!prepared.is_empty());
}

#[test]
fn arguments_are_checked() {
    let folder = tempfile::tempdir().unwrap();
    let run = |args: &[&str]| {
        let out = Command::new(program())
            .args(args)
            .env("PSPACER_RUN", folder.path().join("run"))
            .env_remove("NODE_NAME")
            .output()
            .unwrap();
        (out.status.code(), String::from_utf8(out.stderr).unwrap())
    };
    for (args, code, expected) in [
        (&["run"][..], 2, "--egress"),
        (&["run", "--egress", "fast"], 2, "expected"),
        (
            &["run", "--egress", "1gbit", "--every", "1ms"],
            2,
            "from 1s to 1h",
        ),
        (
            &["run", "--egress", "1gbit", "--api", "http://x"],
            1,
            "--node is \"\", expected a name",
        ),
        (
            &[
                "run",
                "--egress",
                "1gbit",
                "--api",
                "http://x",
                "--instance",
                "../x",
            ],
            1,
            "--instance is \"../x\", expected a uid of letters",
        ),
        (
            &["run", "--egress", "1gbit"],
            1,
            "KUBERNETES_SERVICE_HOST is not set",
        ),
        (
            &[
                "run", "--egress", "1gbit", "--api", "http://x", "--node", "n", "--driver", "X",
            ],
            1,
            "--driver is \"X\", expected a name",
        ),
    ] {
        let (found, text) = run(args);
        assert_eq!(found, Some(code), "{args:?}: {text}");
        assert!(text.contains(expected), "{args:?}: {text}");
    }
    assert!(!folder.path().join("run/node.json").exists());
    assert_eq!(run(&["once"]), (Some(0), String::new()));
    // A socket's place that is taken stays taken.
    let kubelet = folder.path().join("kubelet");
    let place = Sockets::new(&kubelet, DRIVER, None).registration;
    fs::create_dir_all(place.parent().unwrap()).unwrap();
    fs::write(&place, "mine").unwrap();
    let path = kubelet.display().to_string();
    let args = [
        "run",
        "--egress",
        "1gbit",
        "--api",
        "http://x",
        "--node",
        "n",
        "--kubelet",
        &path,
    ];
    let (code, text) = run(&args);
    assert_eq!(code, Some(1));
    assert!(
        text.contains("-reg.sock: it is no socket, expected one or nothing"),
        "{text}"
    );
}

/// Returns the bytes of a recorded client.
fn recorded(name: &str) -> Vec<u8> {
    let path = testkit::crate_folder().join("tests/dials").join(name);
    let text = fs::read_to_string(path).unwrap();
    let digits: String = text.lines().filter(|line| !line.starts_with('#')).collect();
    let pairs = digits.as_bytes().chunks(2);
    pairs
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

/// The kubelet's library names the server by the path of the socket, which no server of HTTP/2 takes;
/// so do gRPC's for Python and C.
#[test]
fn clients_that_name_the_server_by_its_path_are_answered() {
    let server = Server::start(0, None);
    let folder = tempfile::tempdir().unwrap();
    let agent = Agent::start(folder.path(), &server.url);
    for client in ["grpc-go-1.72.1.hex", "grpc-python-1.85.3.hex"] {
        let mut stream = UnixStream::connect(&agent.sockets.registration).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(&recorded(client)).unwrap();
        let mut answer = Vec::new();
        let has = |answer: &[u8], text: &str| {
            let mut parts = answer.windows(text.len());
            parts.any(|part| part == text.as_bytes())
        };
        while !has(&answer, "v1beta1.DRAPlugin") {
            let mut bytes = [0; 4096];
            let came = stream.read(&mut bytes).unwrap();
            assert!(came > 0, "{client}: closed after {answer:?}");
            answer.extend_from_slice(&bytes[..came]);
        }
        assert!(has(&answer, DRIVER), "{client}");
    }
}
