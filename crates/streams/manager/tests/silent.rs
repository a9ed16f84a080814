// SPDX-License-Identifier: MIT OR Apache-2.0
//! Thousands of connections that say nothing, from the address of a talker: its requests are answered,
//! and its lease does not end.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use linux_io::descriptors::raise_limit;
use manager::access::{Access, sha256};
use manager::server::ServerTls;
use manager_proto::api::ReserveBody;
use manager_proto::client::{Client, Reserved, Tls};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};

use crate::service::{Authority, Running, body, client, known, start};

const S: u64 = 1_000_000_000;
/// Address, number of connections and what each of them sends: set in the process that holds them.
const HOLD: &str = "PSPACER_TEST_HOLD";
/// A line of that process: it has opened all of them once.
const HELD: &str = "held";
/// The beginning of a ClientHello: the handshake stays half open.
const HELLO: &[u8] = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03";
/// How long a talker keeps its lease.
const KEPT: Duration = Duration::from_secs(6);
/// Between two connections that take the place of the oldest one.
const NEXT: Duration = Duration::from_millis(1);

/// Opens connections and keeps the latest of them, in a process of its own: it has descriptors of its
/// own. Without its variable it does nothing.
#[test]
fn holds() {
    let Ok(text) = std::env::var(HOLD) else {
        return;
    };
    let mut words = text.split(' ');
    let mut word = || words.next().unwrap();
    let address: SocketAddr = word().parse().unwrap();
    let count: usize = word().parse().unwrap();
    let says: &[u8] = match word() {
        "hello" => HELLO,
        _ => b"",
    };
    let limit = raise_limit();
    assert!(limit > count as u64);
    let mut held = VecDeque::new();
    loop {
        if held.len() == count {
            held.pop_front();
            sleep(NEXT);
        }
        // A manager that has ended ends this process, too: the test says why.
        let mut one = TcpStream::connect(address).unwrap();
        let _ = one.write_all(says);
        held.push_back(one);
        if held.len() == count {
            println!("\n{HELD}");
        }
    }
}

/// The process that holds connections; it ends with this.
struct Holder(Child);

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Holder {
    fn start(address: SocketAddr, count: usize, says: &str) -> Self {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "silent::holds", "--nocapture"])
            .env(HOLD, format!("{address} {count} {says}"))
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        Self(child.unwrap())
    }

    /// Waits until it has opened all connections once.
    fn wait(&mut self) {
        let mut lines = BufReader::new(self.0.stdout.as_mut().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap() == HELD));
    }
}

fn connections() -> usize {
    if testkit::everything() { 15_000 } else { 3_000 }
}

/// Keeps a lease of 2 s while connections come; each request is also made by a client that is new.
fn keeps_its_lease(running: &Running, new: &dyn Fn() -> Client, says: &str) {
    let mut holder = Holder::start(running.address, connections(), says);
    let talker = new();
    let asked = ReserveBody {
        replace: false,
        lease_ns: 2 * S,
        ..body("x")
    };
    let granted = talker.reserve(&asked).unwrap();
    assert!(matches!(granted, Reserved::Granted(_)));
    let begun = Instant::now();
    while begun.elapsed() < KEPT {
        talker.refresh("x", None).unwrap();
        assert_eq!(new().reservations().unwrap().len(), 1);
        sleep(Duration::from_millis(250));
    }
    holder.wait();
    for _ in 0..10 {
        assert_eq!(new().refresh("x", None).unwrap().lease_ns, 2 * S);
    }
}

#[test]
fn silent_connections_change_nothing() {
    let running = start(Access::Open, None);
    keeps_its_lease(&running, &|| client(&running, None), "nothing");
}

/// A manager with TLS.
fn start_with_tls(authority: &Authority) -> Running {
    let server = authority.sign();
    let access = known(&[("t1", "talker", "token_sha256", sha256(b"one"))]);
    let tls = ServerTls {
        certificate: server.pem,
        key: server.key,
        client_ca: None,
    };
    start(access, Some(tls))
}

#[test]
fn half_open_handshakes_change_nothing() {
    let authority = Authority::new();
    let running = start_with_tls(&authority);
    let url = format!("https://{}", running.address);
    let new = || {
        let tls = Tls {
            ca: Some(authority.pem()),
            identity: None,
        };
        Client::new(&url, Some("one".to_owned()), &tls).unwrap()
    };
    keeps_its_lease(&running, &new, "hello");
}

/// Half a handshake has a second, and takes no place of who has ended its own: such a connection has its
/// 3 s whatever comes beside it.
#[test]
fn half_open_handshakes_have_their_own_places() {
    let authority = Authority::new();
    let running = start_with_tls(&authority);
    let mut half = TcpStream::connect(running.address).unwrap();
    half.write_all(HELLO).unwrap();
    half.set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    let begun = Instant::now();
    let _ = half.read_to_end(&mut Vec::new());
    assert!(begun.elapsed() < Duration::from_millis(2_500));

    let mut roots = rustls::RootCertStore::empty();
    let pem = authority.pem();
    roots
        .add(CertificateDer::from_pem_slice(&pem).unwrap())
        .unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let config = Arc::new(config);
    let name = ServerName::from(running.address.ip());
    let mut tls = rustls::ClientConnection::new(config, name).unwrap();
    let mut ended = TcpStream::connect(running.address).unwrap();
    while tls.is_handshaking() {
        tls.complete_io(&mut ended).unwrap();
    }
    let mut holder = Holder::start(running.address, 600, "hello");
    holder.wait();
    sleep(Duration::from_millis(500));
    let ask = b"GET /v1/links HTTP/1.1\r\nhost: x\r\nauthorization: Bearer one\r\n\r\n";
    let mut stream = rustls::Stream::new(&mut tls, &mut ended);
    stream.write_all(ask).unwrap();
    let mut status = [0; 12];
    stream.read_exact(&mut status).unwrap();
    assert_eq!(&status, b"HTTP/1.1 200");
}

/// A connection of nobody is closed after 3 s, even one that goes on asking.
#[test]
fn connections_of_nobody_are_closed() {
    let access = known(&[("t1", "talker", "token_sha256", sha256(b"one"))]);
    let running = start(access, None);
    let mut stream = TcpStream::connect(running.address).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    stream
        .write_all(b"GET /v1/links HTTP/1.1\r\nhost: x\r\n\r\n")
        .unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    assert!(answer.starts_with(b"HTTP/1.1 401 "));
    // A known one waits for longer.
    let mut stream = TcpStream::connect(running.address).unwrap();
    let ask = b"GET /v1/links HTTP/1.1\r\nhost: x\r\nauthorization: Bearer one\r\n\r\n";
    for _ in 0..2 {
        stream.write_all(ask).unwrap();
        let mut status = [0; 12];
        stream.read_exact(&mut status).unwrap();
        assert_eq!(&status, b"HTTP/1.1 200");
        stream.set_nonblocking(true).unwrap();
        sleep(Duration::from_secs(4));
        let mut rest = [0; 4096];
        assert!(stream.read(&mut rest).unwrap() > 0);
        stream.set_nonblocking(false).unwrap();
    }
}
