// SPDX-License-Identifier: MIT OR Apache-2.0
//! Members of a real etcd and managers, as processes that can be killed: Debian's etcd on loopback, and
//! this test's own program as a manager.

use std::fs::{self, File};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::thread::sleep;
use std::time::{Duration, Instant};

use clap::Parser;
use draw::terminal::Style;
use manager::client::{Client, Tls};
use manager::commands;
use manager::etcd::gateway::Gateway;
use vmlab::{Cache, Quiet};

/// The words of a manager's command line, one to a line: set in the process that is one.
const WORDS: &str = "PSPACER_TEST_MANAGER";
/// Longest wait for what has to happen at some time.
const LONGEST_WAIT: Duration = Duration::from_secs(90);

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

/// A process that is killed when it is not needed any more.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub fn until<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + LONGEST_WAIT;
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(Instant::now() < end, "{what}");
        sleep(Duration::from_millis(50));
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

/// The members of an etcd.
pub struct Etcd {
    program: PathBuf,
    folder: PathBuf,
    /// Ports for clients and for members.
    ports: Vec<(u16, u16)>,
    running: Mutex<Vec<Option<Running>>>,
}

impl Etcd {
    pub fn start(folder: &Path, members: usize) -> Self {
        let root = vmlab::etcd(&Cache::default_folder().unwrap(), &Quiet).unwrap();
        let etcd = Self {
            program: root.join("usr/bin/etcd"),
            folder: folder.to_owned(),
            ports: (0..members).map(|_| (free_port(), free_port())).collect(),
            running: Mutex::new((0..members).map(|_| None).collect()),
        };
        for n in 0..members {
            etcd.start_member(n);
        }
        let gateway = etcd.gateway();
        until("etcd answers", || gateway.read(&[]).ok());
        etcd
    }

    pub fn start_member(&self, n: usize) {
        let url = |port: u16| format!("http://127.0.0.1:{port}");
        let all = self.ports.iter().enumerate();
        let all: Vec<_> = all
            .map(|(n, (_, port))| format!("m{n}={}", url(*port)))
            .collect();
        let (clients, members) = self.ports[n];
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.folder.join(format!("etcd{n}.log")))
            .unwrap();
        let mut command = Command::new(&self.program);
        command
            .args(["--name", &format!("m{n}")])
            .args(["--listen-client-urls", &url(clients)])
            .args(["--advertise-client-urls", &url(clients)])
            .args(["--listen-peer-urls", &url(members)])
            .args(["--initial-advertise-peer-urls", &url(members)])
            .args(["--initial-cluster", &all.join(",")])
            .arg("--data-dir")
            .arg(self.folder.join(format!("m{n}")));
        command.stdout(log.try_clone().unwrap()).stderr(log);
        let member = command.stdin(Stdio::null()).spawn().unwrap();
        self.running.lock().unwrap()[n] = Some(Running(member));
    }

    /// Kills a member, as it stands.
    pub fn kill_member(&self, n: usize) {
        self.running.lock().unwrap()[n] = None;
    }

    pub fn urls(&self) -> Vec<String> {
        let ports = self.ports.iter();
        ports
            .map(|(port, _)| format!("http://127.0.0.1:{port}"))
            .collect()
    }

    pub fn gateway(&self) -> Gateway {
        Gateway::new(self.urls(), &Tls::default()).unwrap()
    }
}

/// A manager that shares an etcd.
pub struct ManagerProcess {
    folder: PathBuf,
    name: String,
    store: String,
    port: u16,
    running: Mutex<Option<Running>>,
}

impl ManagerProcess {
    pub fn start(folder: &Path, name: &str, etcd: &Etcd) -> Self {
        let process = Self {
            folder: folder.to_owned(),
            name: name.to_owned(),
            store: format!("etcd:{}", etcd.urls().join(",")),
            port: free_port(),
            running: Mutex::new(None),
        };
        process.start_again();
        let client = process.client();
        until("a manager answers", || client.links().ok());
        process
    }

    pub fn start_again(&self) {
        let net = self.folder.join("net.toml");
        fs::write(&net, NET).unwrap();
        let listen = format!("127.0.0.1:{}", self.port);
        let words = [
            "--topology",
            net.to_str().unwrap(),
            "--name",
            &self.name,
            "--listen",
            &listen,
            "--store",
            &self.store,
        ];
        let mut command = command(&words);
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.folder.join(format!("{}.log", self.name)))
            .unwrap();
        command.stdout(Stdio::null()).stderr(log);
        *self.running.lock().unwrap() = Some(Running(command.spawn().unwrap()));
    }

    /// Kills it, as it stands.
    pub fn kill(&self) {
        *self.running.lock().unwrap() = None;
    }

    /// Whether it has ended by itself.
    pub fn has_ended(&self) -> bool {
        let mut running = self.running.lock().unwrap();
        let child = running.as_mut();
        child.is_some_and(|of| of.0.try_wait().unwrap().is_some())
    }

    pub fn client(&self) -> Client {
        let url = format!("http://127.0.0.1:{}", self.port);
        Client::new(&url, None, &Tls::default()).unwrap()
    }
}

/// Returns the command that is `pspacer manager` with these words.
pub fn command(words: &[&str]) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    let all: Vec<_> = ["pspacer", "manager"]
        .iter()
        .chain(words)
        .copied()
        .collect();
    command
        .args(["--exact", "etcd::a_manager", "--nocapture"])
        .env(WORDS, all.join("\n"))
        .stdin(Stdio::null());
    command
}
