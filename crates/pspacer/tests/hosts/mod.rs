// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hosts for tests of the live tools: network namespaces, within a user namespace of their own
//! where the test is not root, and the command run in them.

#![allow(dead_code, reason = "each test takes what it needs")]

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Output, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

/// Runs until its standard input ends, with the test.
const IDLE: &str = "cat >/dev/null";

fn command(enter: &[String], program: &str, args: &[&str]) -> Command {
    let mut words = enter.to_vec();
    words.push(program.to_owned());
    words.extend(args.iter().map(|a| (*a).to_owned()));
    let (first, rest) = words.split_first().unwrap();
    let mut command = Command::new(first);
    command.args(rest);
    command
}

/// Runs the command in a host to its end.
pub fn pspacer_in(enter: &[String], args: &[&str]) -> Output {
    command(enter, env!("CARGO_BIN_EXE_pspacer"), args)
        .output()
        .unwrap()
}

/// A command that runs until it is stopped or the test ends.
pub struct Running {
    child: Child,
    /// The first line on its standard error, which says that it is ready.
    pub said: String,
}

impl Running {
    /// Starts the command in a host and waits until it says that it is ready.
    pub fn start(enter: &[String], args: &[&str]) -> Self {
        let mut child = command(enter, env!("CARGO_BIN_EXE_pspacer"), args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = String::new();
        let mut from = BufReader::new(child.stderr.take().unwrap());
        from.read_line(&mut said).unwrap();
        Self { child, said }
    }

    /// Ends the command by SIGTERM, as a user would, and returns its report.
    pub fn stop(mut self) -> Value {
        let pid = Pid::from_raw(self.child.id().try_into().unwrap());
        kill(pid, Signal::SIGTERM).unwrap();
        let mut said = Vec::new();
        let mut out = self.child.stdout.take().unwrap();
        out.read_to_end(&mut said).unwrap();
        assert!(self.child.wait().unwrap().success());
        serde_json::from_slice(&said).unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts a `pspacer reflect`. Returns it with the port at which it listens.
pub fn reflector(enter: &[String], args: &[&str]) -> (Running, String) {
    let args = [&["reflect", "--port", "0", "--json"], args].concat();
    let running = Running::start(enter, &args);
    let port = running.said.split(" port ").nth(1);
    let port = port.and_then(|p| p.split(';').next());
    let port = port.expect("it says where it listens").to_owned();
    (running, port)
}

/// Makes hosts.
pub struct Net {
    /// A process that holds the user namespace, if hosts need one.
    holder: Option<Child>,
    cables: std::cell::Cell<u32>,
}

/// A host: a network namespace that a process holds.
pub struct Host {
    holder: Child,
    user: Option<u32>,
}

/// Starts a process that holds namespaces, and waits until they exist.
fn hold(enter: &[String], unshare: &[&str]) -> Option<Child> {
    let script = format!("echo there; {IDLE}");
    let args = [unshare, &["sh", "-c", &script]].concat();
    let mut child = command(enter, "unshare", &args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let mut line = String::new();
    let mut out = BufReader::new(child.stdout.take()?);
    out.read_line(&mut line).ok()?;
    if line.trim() == "there" {
        return Some(child);
    }
    let _ = child.wait();
    None
}

impl Net {
    /// Returns `None`, and says so on standard error, where namespaces cannot be made.
    pub fn new() -> Option<Self> {
        let holder = hold(&[], &["--user", "--map-root-user"]);
        if holder.is_none() || Command::new("ip").arg("-V").output().is_err() {
            eprintln!("SKIPPED: needs ip, and user namespaces: unshare --user is not allowed here");
            return None;
        }
        Some(Self {
            holder: Some(holder?),
            cables: 0.into(),
        })
    }

    /// Makes hosts whose root is the machine's, which BPF and SCHED_DEADLINE ask for. Returns
    /// `None`, and says so on standard error, if the test is not root.
    pub fn of_root() -> Option<Self> {
        if hold(&[], &["--net"]).map(end).is_none() {
            eprintln!("SKIPPED: needs root: unshare --net is not allowed here");
            return None;
        }
        Some(Self {
            holder: None,
            cables: 0.into(),
        })
    }

    pub fn host(&self) -> Host {
        let user = self.holder.as_ref().map(Child::id);
        let holder = hold(&enter(user, None), &["--net"]).expect("a network namespace");
        let host = Host { holder, user };
        host.ip("link set lo up");
        // A new namespace may copy settings of the machine's first one.
        host.run("sh", &["-c", "echo 0 >/proc/sys/net/ipv4/ip_forward"]);
        host
    }

    /// Joins two hosts with a pair of devices, and returns their names.
    pub fn cable(&self, a: &Host, address_a: &str, b: &Host, address_b: &str) -> [String; 2] {
        let number = self.cables.get();
        self.cables.set(number + 1);
        let names = [format!("c{number}a"), format!("c{number}b")];
        let [near, far] = &names;
        let pid = b.holder.id();
        a.ip(&format!(
            "link add {near} type veth peer name {far} netns {pid}"
        ));
        for (host, device, address) in [(a, near, address_a), (b, far, address_b)] {
            // With one packet a frame nothing is joined or divided on the path.
            host.ip(&format!("link set {device} gso_max_segs 1 up"));
            if !address.is_empty() {
                host.ip(&format!("address add {address} dev {device}"));
            }
        }
        names
    }
}

/// Returns the words that begin a command in these processes' namespaces.
fn enter(user: Option<u32>, net: Option<u32>) -> Vec<String> {
    let mut words = Vec::new();
    if let Some(user) = user {
        words.push(format!("--user=/proc/{user}/ns/user"));
        words.push("--preserve-credentials".to_owned());
    }
    words.extend(net.map(|pid| format!("--net=/proc/{pid}/ns/net")));
    if !words.is_empty() {
        words.insert(0, "nsenter".to_owned());
    }
    words
}

/// Ends a process that holds namespaces.
fn end(mut holder: Child) {
    drop(holder.stdin.take());
    let _ = holder.wait();
}

impl Host {
    /// Returns the words that begin a command in this host.
    pub fn enter(&self) -> Vec<String> {
        enter(self.user, Some(self.holder.id()))
    }

    /// Returns what a command prints in this host, if it succeeds.
    pub fn says(&self, program: &str, args: &[&str]) -> Option<String> {
        let out = command(&self.enter(), program, args).output().ok()?;
        let said = String::from_utf8_lossy(&out.stdout).into_owned();
        out.status.success().then_some(said)
    }

    /// Runs `ip` with these words.
    pub fn ip(&self, words: &str) {
        let args: Vec<_> = words.split(' ').collect();
        self.run("ip", &args);
    }

    fn run(&self, program: &str, args: &[&str]) {
        let out = command(&self.enter(), program, args).output().unwrap();
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        assert!(out.status.success(), "{program} {args:?}: {said}");
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        drop(self.holder.stdin.take());
        let _ = self.holder.wait();
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        if let Some(holder) = self.holder.take() {
            end(holder);
        }
    }
}
