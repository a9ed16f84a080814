// SPDX-License-Identifier: MIT OR Apache-2.0
//! SIGHUP: a manager reads its callers and certificates again, or keeps them and says why.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};

use clap::Parser;
use draw::terminal::Style;
use linux_io::signals::Signals;
use manager::access::sha256;
use manager::commands;
use manager_proto::client::{Client, ClientError, Tls};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::service::{Authority, Signed, hex};

/// The words of a manager's command line, one to a line: set in the process that is one.
const WORDS: &str = "PSPACER_TEST_RELOADS";
const NET: &str = "[[host]]\nname = \"a\"\n[[host]]\nname = \"b\"\n[[segment]]\nname = \"s\"\n\
                   medium = \"shared\"\nrate = \"100mbit\"\nmembers = [\"a\", \"b\"]\n";

#[derive(Debug, Parser)]
struct Words {
    #[command(subcommand)]
    command: commands::Command,
}

/// Is a manager, if this process shall be one.
#[test]
fn is_a_manager() {
    let Ok(words) = std::env::var(WORDS) else {
        return;
    };
    let words = Words::parse_from(words.lines());
    commands::run(&words.command, Style::PLAIN, |line| eprintln!("{line}")).unwrap();
}

struct Running {
    child: Child,
    said: std::io::Lines<BufReader<ChildStderr>>,
    url: String,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Running {
    fn start(folder: &Path) -> Self {
        let file = |name: &str| folder.join(name).display().to_string();
        let words = [
            "manager".to_owned(),
            "manager".to_owned(),
            "--topology".to_owned(),
            file("net.toml"),
            "--store=memory:".to_owned(),
            "--listen=127.0.0.1:0".to_owned(),
            "--access".to_owned(),
            file("access.toml"),
            "--tls-cert".to_owned(),
            file("m.pem"),
            "--tls-key".to_owned(),
            file("m.key"),
            "--client-ca".to_owned(),
            file("clients.pem"),
            "--address-file".to_owned(),
            file("address"),
        ];
        // The process inherits this for all of its threads: the signals go to the manager's.
        let _blocked = Signals::block_with_reload().unwrap();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "reload::is_a_manager", "--nocapture"])
            .env(WORDS, words.join("\n"))
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap()).lines();
        let line = said.next().unwrap().unwrap();
        assert!(line.contains("SIGHUP"), "{line}");
        let url = fs::read_to_string(file("address")).unwrap();
        Self {
            child,
            said,
            url: url.trim().to_owned(),
        }
    }

    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id() as i32), signal).unwrap();
    }

    /// Sends SIGHUP; returns what the manager says.
    fn reload(&mut self) -> String {
        self.signal(Signal::SIGHUP);
        self.said.next().unwrap().unwrap()
    }

    fn client(&self, ca: &Authority, of: Option<&Signed>, token: Option<&str>) -> Client {
        let tls = Tls {
            ca: Some(ca.pem()),
            identity: of.map(|of| (of.pem.clone(), of.key.clone())),
        };
        Client::new(&self.url, token.map(str::to_owned), &tls).unwrap()
    }
}

fn status(client: &Client) -> u16 {
    match client.links() {
        Ok(_) => 200,
        Err(ClientError::Refused { status, .. }) => status,
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn callers_and_certificates_are_read_again_or_stay() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &[u8]| fs::write(folder.path().join(name), text).unwrap();
    let access = |key: &str, hash: [u8; 32]| {
        let hash = hex(hash);
        let text = format!("[[access]]\nname = \"op\"\nrole = \"operator\"\n{key} = \"{hash}\"\n");
        write("access.toml", text.as_bytes());
    };
    let identity = |of: &Signed| {
        write("m.pem", &of.pem);
        write("m.key", &of.key);
    };
    let (first, second) = (Authority::new(), Authority::new());
    write("net.toml", NET.as_bytes());
    write("clients.pem", &first.pem());
    access("token_sha256", sha256(b"old"));
    identity(&first.sign());
    let mut running = Running::start(folder.path());
    let old = running.client(&first, None, Some("old"));
    let new = running.client(&first, None, Some("new"));
    assert_eq!((status(&old), status(&new)), (200, 401));

    // A fault in any of the files: all of them stay, though the other ones are good.
    access("token_sha256", sha256(b"new"));
    write("m.key", b"nothing");
    let said = running.reload();
    assert!(said.contains("m.key: the key: "), "{said}");
    assert!(said.contains("stay as they were"), "{said}");
    assert_eq!((status(&old), status(&new)), (200, 401));
    identity(&second.sign());
    access("roll", sha256(b"new"));
    let said = running.reload();
    assert!(
        said.contains("access.toml: line 4: unknown key `roll`"),
        "{said}"
    );
    assert_eq!(status(&running.client(&first, None, Some("old"))), 200);
    // One that is being written is empty for a moment; a fifo has nobody who writes.
    for (text, expected) in [
        ("", "lacks `access`"),
        ("access = []\n", "expected one table or more"),
    ] {
        write("access.toml", text.as_bytes());
        let said = running.reload();
        assert!(
            said.contains("access.toml: ") && said.contains(expected),
            "{said}"
        );
        assert_eq!(status(&running.client(&first, None, Some("old"))), 200);
    }
    let path = folder.path().join("access.toml");
    fs::remove_file(&path).unwrap();
    let made = std::process::Command::new("mkfifo").arg(&path).status();
    assert!(made.unwrap().success());
    let said = running.reload();
    assert!(
        said.contains("access.toml: it is a fifo, expected a regular file"),
        "{said}"
    );
    fs::remove_file(&path).unwrap();
    access("token_sha256", sha256(b"new"));
    write("m.key", &first.sign().key);
    let said = running.reload();
    assert!(said.contains("m.pem: the certificate: "), "{said}");
    write("clients.pem", b"nothing");
    identity(&second.sign());
    let said = running.reload();
    assert!(
        said.contains("clients.pem: the clients' authority: "),
        "{said}"
    );
    assert_eq!((status(&old), status(&new)), (200, 401));

    // All are good. These two connections have been open since before.
    write("clients.pem", &second.pem());
    let said = running.reload();
    assert!(said.ends_with("are read again"), "{said}");
    assert_eq!((status(&old), status(&new)), (401, 200));
    // New connections have the new certificate and the new authority of clients.
    let error = running
        .client(&first, None, Some("new"))
        .links()
        .unwrap_err();
    assert!(matches!(error, ClientError::Transport { .. }), "{error}");
    assert_eq!(status(&running.client(&second, None, Some("new"))), 200);
    let own = second.sign();
    access("certificate_sha256", own.hash);
    running.reload();
    assert_eq!(status(&running.client(&second, Some(&own), None)), 200);
    let foreign = running.client(&second, Some(&first.sign()), None);
    assert!(matches!(
        foreign.links(),
        Err(ClientError::Transport { .. })
    ));

    // SIGTERM still ends it.
    running.signal(Signal::SIGTERM);
    assert!(running.child.wait().unwrap().success());
}
