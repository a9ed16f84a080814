// SPDX-License-Identifier: MIT OR Apache-2.0
//! Members of a real etcd and managers, as processes that can be killed: Debian's etcd on loopback, and
//! this test's own program as a manager.

use std::fs::{self, File};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::thread;
use std::time::Duration;

use clap::Parser;
use draw::terminal::Style;
use manager::commands;
use manager::etcd::gateway::Gateway;
use manager_proto::client::{Client, Tls};
use testkit::{Running, until};
use vmlab::{Cache, Quiet};

use super::network::{Host, signal};

/// The words of a manager's command line, one to a line: set in the process that is one.
const WORDS: &str = "PSPACER_TEST_MANAGER";

/// From `a` over `s`, `r` and `t` to `b`; or by `u` instead of `t`.
pub const NET: &str = r#"
[[host]]
name = "a"
[[host]]
name = "b"
[[host]]
name = "c"
[[router]]
name = "r"
[[router]]
name = "q"
[[segment]]
name = "s"
medium = "shared"
rate = "100mbit"
members = ["a", "c", "r", "q"]
[[segment]]
name = "t"
medium = "switched"
rate = "100mbit"
members = ["r", "b"]
[[segment]]
name = "u"
medium = "switched"
rate = "100mbit"
members = ["q", "r", "b"]
"#;

#[derive(Debug, Parser)]
struct Words {
    #[command(subcommand)]
    command: commands::Command,
}

/// Is a manager, if this process shall be one.
pub fn be_a_manager() {
    let Ok(words) = std::env::var(WORDS) else {
        return;
    };
    let words = Words::parse_from(words.lines());
    let ran = commands::run(&words.command, Style::PLAIN, |line| eprintln!("{line}"));
    if let Err(error) = ran {
        eprintln!("error: {error:#}");
        std::process::exit(1);
    }
    std::process::exit(0);
}

/// Returns a port of a host: this one if it is a namespace, else one that is free.
fn port(host: &Host, apart: u16) -> u16 {
    if host.is_apart() {
        return apart;
    }
    let listener = TcpListener::bind((host.address.as_str(), 0)).unwrap();
    listener.local_addr().unwrap().port()
}

fn log(folder: &Path, name: &str) -> File {
    let mut options = File::options();
    let log = options.create(true).append(true);
    log.open(folder.join(format!("{name}.log"))).unwrap()
}

fn must(program: &str, args: &[&str]) {
    let status = Command::new(program).args(args).status().unwrap();
    assert!(status.success(), "{program} {args:?}");
}

/// A member of an etcd.
struct Member {
    host: Host,
    /// Ports for clients and for members.
    ports: (u16, u16),
    running: Mutex<Option<Running>>,
}

/// The members of an etcd.
pub struct Etcd {
    program: PathBuf,
    folder: PathBuf,
    members: Vec<Member>,
    /// More words for each.
    words: Vec<String>,
    _turn: Turn,
}

/// Members run beside those of other tests, or alone: then nothing else slows them down.
static TURNS: RwLock<()> = RwLock::new(());

/// Kept while the members run.
enum Turn {
    Shared {
        _guard: RwLockReadGuard<'static, ()>,
    },
    Alone {
        _guard: RwLockWriteGuard<'static, ()>,
    },
}

impl Turn {
    fn shared() -> Self {
        let _guard = TURNS.read().unwrap_or_else(PoisonError::into_inner);
        Self::Shared { _guard }
    }

    fn alone() -> Self {
        let _guard = TURNS.write().unwrap_or_else(PoisonError::into_inner);
        Self::Alone { _guard }
    }
}

impl Etcd {
    pub fn start(folder: &Path, members: usize) -> Self {
        Self::start_on(folder, vec![Host::here(); members], &[])
    }

    /// Starts members while no other test's run.
    pub fn start_alone(folder: &Path, members: usize) -> Self {
        Self::start_in(Turn::alone(), folder, vec![Host::here(); members], &[])
    }

    pub fn start_on(folder: &Path, hosts: Vec<Host>, words: &[&str]) -> Self {
        Self::start_in(Turn::shared(), folder, hosts, words)
    }

    fn start_in(turn: Turn, folder: &Path, hosts: Vec<Host>, words: &[&str]) -> Self {
        let root = vmlab::etcd(&Cache::default_folder().unwrap(), &Quiet).unwrap();
        let member = |host: Host| Member {
            ports: (port(&host, 2379), port(&host, 2380)),
            host,
            running: Mutex::new(None),
        };
        let etcd = Self {
            program: root.join("usr/bin/etcd"),
            folder: folder.to_owned(),
            members: hosts.into_iter().map(member).collect(),
            words: words.iter().map(|word| (*word).to_owned()).collect(),
            _turn: turn,
        };
        etcd.start_all();
        etcd
    }

    /// Returns how many members there are.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Starts all members, and waits until they answer.
    pub fn start_all(&self) {
        for n in 0..self.len() {
            self.start_member(n);
        }
        let gateway = self.gateway();
        until("etcd answers", || {
            gateway.read("pspacer/", None, (1, 0)).ok()
        });
    }

    pub fn start_member(&self, n: usize) {
        let url = |host: &Host, port: u16| format!("http://{}:{port}", host.address);
        let all = self.members.iter().enumerate();
        let all: Vec<_> = all
            .map(|(n, of)| format!("m{n}={}", url(&of.host, of.ports.1)))
            .collect();
        let member = &self.members[n];
        let (clients, members) = member.ports;
        let (clients, members) = (url(&member.host, clients), url(&member.host, members));
        let log = log(&self.folder, &format!("etcd{n}"));
        let mut command = member.host.command(self.program.to_str().unwrap());
        command
            .args(["--name", &format!("m{n}")])
            .args(["--listen-client-urls", &clients])
            .args(["--advertise-client-urls", &clients])
            .args(["--listen-peer-urls", &members])
            .args(["--initial-advertise-peer-urls", &members])
            .args(["--initial-cluster", &all.join(",")])
            .args(&self.words)
            .arg("--data-dir")
            .arg(self.data(n));
        command.stdout(log.try_clone().unwrap()).stderr(log);
        *member.running.lock().unwrap() = Some(Running::start(&mut command));
    }

    fn data(&self, n: usize) -> PathBuf {
        self.folder.join(format!("m{n}"))
    }

    /// Kills a member, as it stands.
    pub fn kill_member(&self, n: usize) {
        *self.members[n].running.lock().unwrap() = None;
    }

    /// Stops a member, or lets it go on.
    pub fn signal(&self, n: usize, name: &str) {
        let running = self.members[n].running.lock().unwrap();
        signal(running.as_ref().unwrap().0.id(), name);
    }

    pub fn kill_all(&self) {
        (0..self.len()).for_each(|n| self.kill_member(n));
    }

    /// Copies what the members have, which do not run; or brings it back.
    pub fn copy(&self, is_back: bool) {
        for n in 0..self.len() {
            let (data, backup) = (self.data(n), self.folder.join(format!("backup{n}")));
            let (from, to) = if is_back {
                (backup, data)
            } else {
                (data, backup)
            };
            let (from, to) = (from.to_str().unwrap(), to.to_str().unwrap());
            must("rm", &["-rf", to]);
            must("cp", &["-a", from, to]);
        }
    }

    pub fn urls(&self) -> Vec<String> {
        let members = self.members.iter();
        members
            .map(|of| format!("http://{}:{}", of.host.address, of.ports.0))
            .collect()
    }

    pub fn gateway(&self) -> Gateway {
        Gateway::new(self.urls(), &Tls::default()).unwrap()
    }

    pub fn store(&self) -> String {
        format!("etcd:{}", self.urls().join(","))
    }
}

/// A manager that shares an etcd.
pub struct ManagerProcess {
    folder: PathBuf,
    name: String,
    store: String,
    address: String,
    words: Vec<String>,
    running: Mutex<Option<Running>>,
}

impl ManagerProcess {
    /// Starts a manager; the name is that of its log.
    pub fn start(folder: &Path, name: &str, etcd: &Etcd) -> Self {
        let process = Self::new(folder, (name, &Host::here()), etcd, (NET, &[]));
        process.start_on(&Host::here());
        let client = process.client();
        until("a manager answers", || client.links().ok());
        process
    }

    /// Returns a manager that is not started yet, of a topology and with more words.
    pub fn new(
        folder: &Path,
        (name, host): (&str, &Host),
        etcd: &Etcd,
        (net, words): (&str, &[&str]),
    ) -> Self {
        fs::write(folder.join(format!("{name}.toml")), net).unwrap();
        let port = port(host, 8646);
        Self {
            folder: folder.to_owned(),
            name: name.to_owned(),
            store: etcd.store(),
            address: format!("{}:{port}", host.address),
            words: words.iter().map(|word| (*word).to_owned()).collect(),
            running: Mutex::new(None),
        }
    }

    pub fn start_again(&self) {
        self.start_on(&Host::here());
    }

    pub fn start_on(&self, host: &Host) {
        let net = self.folder.join(format!("{}.toml", self.name));
        let words = ["--topology", net.to_str().unwrap()];
        let more = self.words.iter().map(String::as_str);
        let words = words.into_iter().chain(more);
        let words = words.chain(["--listen", &self.address, "--store", &self.store]);
        let mut command = command(host, &words.collect::<Vec<_>>());
        let log = log(&self.folder, &self.name);
        command.stdout(Stdio::null()).stderr(log);
        *self.running.lock().unwrap() = Some(Running::start(&mut command));
    }

    /// Kills it, as it stands.
    pub fn kill(&self) {
        *self.running.lock().unwrap() = None;
    }

    /// Stops it, or lets it go on.
    pub fn signal(&self, name: &str) {
        let running = self.running.lock().unwrap();
        signal(running.as_ref().unwrap().0.id(), name);
    }

    /// Whether it has ended by itself.
    pub fn has_ended(&self) -> bool {
        let mut running = self.running.lock().unwrap();
        let child = running.as_mut();
        child.is_some_and(|of| of.0.try_wait().unwrap().is_some())
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn client(&self) -> Client {
        Client::new(&self.url(), None, &Tls::default()).unwrap()
    }

    /// Returns a client that waits no longer than this.
    pub fn client_within(&self, within: Duration) -> Client {
        Client::within(&self.url(), None, &Tls::default(), within).unwrap()
    }
}

/// Returns the command that is `pspacer manager` with these words.
pub fn command(host: &Host, words: &[&str]) -> Command {
    let this = std::env::current_exe().unwrap();
    let mut command = host.command(this.to_str().unwrap());
    let all: Vec<_> = ["pspacer", "manager"]
        .iter()
        .chain(words)
        .copied()
        .collect();
    command
        .args(["--exact", "etcd::a_manager", "--nocapture"])
        .env(WORDS, all.join("\n"));
    command
}

/// Shows the end of each log of a folder if the test fails.
pub struct Logs(pub PathBuf);

impl Drop for Logs {
    fn drop(&mut self) {
        if !thread::panicking() {
            return;
        }
        for file in fs::read_dir(&self.0).unwrap() {
            let path = file.unwrap().path();
            if path.extension().is_some_and(|of| of == "log") {
                let text = fs::read(&path).unwrap();
                let end = text.len().saturating_sub(2_000);
                let end = String::from_utf8_lossy(&text[end..]).into_owned();
                eprintln!("{}: {end}", path.display());
            }
        }
    }
}
