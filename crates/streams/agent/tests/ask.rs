// SPDX-License-Identifier: MIT OR Apache-2.0
//! An agent hears of each change at once, counts leases from the answer, and follows a manager that
//! stands by to the one that decides.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::spawn;
use std::time::{Duration, Instant};

use agent::ask::{Heard, ask, report};
use agent::known::Report;
use linux_io::clock::boottime_ns;
use manager::access::Access;
use manager_proto::api::ReserveBody;
use manager_proto::client::{Client, ClientError, Reserved, Tls};

use crate::requests::{self, S, frames, stream};
use crate::service::{agents, manager};

/// Longest wait for what happens at once.
const AT_ONCE: Duration = Duration::from_secs(5);

fn client(url: &str, token: Option<&str>) -> Client {
    Client::new(url, token.map(str::to_owned), &Tls::default()).unwrap()
}

fn body(id: &str) -> ReserveBody {
    requests::body(id, 60 * S, stream(id, "a", "b", frames(1)))
}

/// Asks for the duty of `a` in a thread; returns what it hears, and what takes each answer.
fn asking(client: Client, poll: Duration) -> (Receiver<Heard>, Sender<()>) {
    let (heard, hears) = channel();
    let (take, taken) = channel();
    spawn(move || {
        ask(&client, "a", poll, &taken, |of| {
            heard.send(of.unwrap()).is_ok()
        });
    });
    (hears, take)
}

#[test]
fn changes_are_heard_at_once_and_leases_counted_from_the_answer() {
    let url = manager(Access::Open);
    let talker = client(&url, None);
    let (hears, take) = asking(client(&url, None), Duration::from_secs(14));
    let hear = || hears.recv_timeout(AT_ONCE).unwrap();
    assert_eq!(hear().answer.unwrap().ports["s"].streams.len(), 0);
    take.send(()).unwrap();
    // The question waits meanwhile.
    std::thread::sleep(Duration::from_millis(700));
    let before_ns = boottime_ns().unwrap();
    assert!(matches!(
        talker.reserve(&body("x")),
        Ok(Reserved::Granted(_))
    ));
    let Heard { asked_ns, answer } = hear();
    let duty = answer.unwrap();
    assert_eq!(duty.ports["s"].streams[0].id, "x");
    assert!(duty.waited_ns >= S / 2, "{}", duty.waited_ns);
    // The time of the answer, not that of the question; and never one after it.
    assert!(asked_ns + S / 4 > before_ns, "{asked_ns} {before_ns}");
    assert!(asked_ns <= boottime_ns().unwrap());
    let end_ns = asked_ns + duty.ports["s"].streams[0].expires_in_ns;
    assert!(end_ns < boottime_ns().unwrap() + 60 * S);
    // What happens between two questions is heard at once, too.
    assert!(talker.release("x").unwrap().released);
    take.send(()).unwrap();
    assert_eq!(hear().answer.unwrap().ports["s"].streams.len(), 0);
}

#[test]
fn without_a_change_there_is_an_answer_in_time() {
    let (hears, take) = asking(
        client(&manager(Access::Open), None),
        Duration::from_millis(300),
    );
    let first = hears.recv_timeout(AT_ONCE).unwrap().answer.unwrap();
    let start = Instant::now();
    take.send(()).unwrap();
    let second = hears.recv_timeout(AT_ONCE).unwrap().answer.unwrap();
    assert!(start.elapsed() >= Duration::from_millis(290));
    assert_eq!(first.changes, second.changes);
}

#[test]
fn an_agent_of_the_node_asks_and_reports() {
    let url = manager(agents());
    let talker = client(&url, Some("talks"));
    assert!(matches!(
        talker.reserve(&body("x")),
        Ok(Reserved::Granted(_))
    ));
    let (hears, take) = asking(client(&url, Some("of-a")), AT_ONCE);
    let duty = hears.recv_timeout(AT_ONCE).unwrap().answer.unwrap();
    assert!(!duty.ports["s"].streams[0].in_force);
    take.send(()).unwrap();
    let (due, of_due) = channel();
    let (took, taken) = channel();
    let of = client(&url, Some("of-a"));
    spawn(move || report(&of, "a", &of_due, |report| took.send(report).is_ok()));
    let told = Report {
        id: "x".to_owned(),
        in_force: true,
    };
    due.send(vec![told.clone()]).unwrap();
    assert_eq!(taken.recv_timeout(AT_ONCE).unwrap(), told);
    let duty = hears.recv_timeout(AT_ONCE).unwrap().answer.unwrap();
    assert!(duty.ports["s"].streams[0].in_force);
    assert!(talker.reservations().unwrap()[0].in_force);
}

/// Answers every request with the URL of the manager that decides; returns its own, and how often it was
/// asked.
fn stands_by(other: &str) -> (String, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let body = format!("{{\"error\": \"another manager decides\", \"manager\": \"{other}\"}}");
    let length = body.len();
    let answer = format!(
        "HTTP/1.1 421 Misdirected Request\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    );
    spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            count.fetch_add(1, Ordering::Relaxed);
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                stream.read_exact(&mut byte).unwrap();
                request.push(byte[0]);
            }
            stream.write_all(answer.as_bytes()).unwrap();
        }
    });
    (url, asked)
}

#[test]
fn a_manager_that_stands_by_is_followed() {
    let decides = manager(agents());
    let (url, asked) = stands_by(&decides);
    let (hears, take) = asking(client(&url, Some("of-a")), AT_ONCE);
    let duty = hears.recv_timeout(AT_ONCE).unwrap().answer.unwrap();
    assert_eq!(duty.node, "a");
    take.send(()).unwrap();
    let talker = client(&decides, Some("talks"));
    assert!(matches!(
        talker.reserve(&body("x")),
        Ok(Reserved::Granted(_))
    ));
    let duty = hears.recv_timeout(AT_ONCE).unwrap().answer.unwrap();
    assert_eq!(duty.ports["s"].streams[0].id, "x");
    assert_eq!(asked.load(Ordering::Relaxed), 1);
}

/// One that decided is gone: whoever told of it knows who decides now.
#[test]
fn a_manager_that_is_gone_is_not_asked_for_ever() {
    let (url, asked) = stands_by("http://127.0.0.1:9");
    let client = client(&url, None);
    for expected in 1..4 {
        let error = client.duty("a").unwrap_err();
        assert!(matches!(error, ClientError::Transport { .. }), "{error}");
        assert_eq!(asked.load(Ordering::Relaxed), expected);
    }
}
