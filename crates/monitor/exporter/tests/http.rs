// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the service answers to whom, and that no client keeps it from the others.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};
use std::{panic, thread};

use exporter::{Bounds, REQUEST_BYTES, Scraper, serve, text};
use host_config::ClassNames;
use linux_io::signals::Signals;
use manager_proto::overview::{ManagerRow, Overview};

const GET: &str = "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n";

/// Longer than any answer takes, on a host that others use, too.
const TIMEOUT: Duration = Duration::from_secs(60);

fn scraper() -> Scraper {
    Scraper::new("0", 10)
}

/// Serves until the tests end.
fn start(scraper: Scraper, bounds: Bounds) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    thread::spawn(move || {
        let signals = Signals::block().unwrap();
        serve(listener, scraper, bounds, &signals).unwrap();
    });
    at
}

fn connect(at: SocketAddr) -> TcpStream {
    let client = TcpStream::connect(at).unwrap();
    client.set_read_timeout(Some(TIMEOUT)).unwrap();
    client
}

/// Returns what comes until the connection ends.
fn rest(mut client: &TcpStream) -> String {
    let mut answer = Vec::new();
    // What was not read of a long request resets the connection, after the answer.
    let _ = client.read_to_end(&mut answer);
    String::from_utf8(answer).unwrap()
}

fn ask(at: SocketAddr, request: &str) -> String {
    let mut client = connect(at);
    client.write_all(request.as_bytes()).unwrap();
    rest(&client)
}

/// Returns the status of an answer, 0 if there is none.
fn status(answer: &str) -> u16 {
    let number = answer.split(' ').nth(1);
    number.map_or(0, |number| number.parse().unwrap())
}

/// Asks until the answer has this status: connections of others end on their own.
fn ask_until(at: SocketAddr, expected: u16) -> String {
    let start = Instant::now();
    loop {
        let answer = ask(at, GET);
        if status(&answer) == expected {
            return answer;
        }
        assert!(start.elapsed() < TIMEOUT, "{answer}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// Returns the requests that were refused, by an answer.
fn refused(answer: &str) -> u64 {
    let mut lines = answer.lines();
    let sample = lines.find_map(|line| line.strip_prefix("psp_exporter_refused_requests_total "));
    sample.unwrap().parse().unwrap()
}

#[test]
fn only_metrics_are_answered() {
    let at = start(scraper(), Bounds::default());
    let accept = "accept: application/openmetrics-text;version=1.0.0,text/plain;q=0.5";
    let good = ask(at, &format!("GET /metrics HTTP/1.1\r\n{accept}\r\n\r\n"));
    assert!(good.starts_with("HTTP/1.1 200 OK\r\n"), "{good}");
    assert!(good.ends_with("# EOF\n"), "{good}");
    let (head, body) = good.split_once("\r\n\r\n").unwrap();
    let head = head.to_lowercase();
    assert!(head.contains(&format!("content-length: {}", body.len())));
    assert!(head.contains(text::CONTENT_TYPE) && head.contains("connection: close"));
    let older = ask(at, "GET /metrics HTTP/1.1\r\nAccept: */*\r\n\r\n");
    assert!(older.contains(text::OLDER_CONTENT_TYPE), "{older}");
    assert!(older.contains("# TYPE psp_exporter_scrapes_total counter\n"));
    for (request, expected, why) in [
        ("GET / HTTP/1.1\r\n\r\n", 404, "metrics are at /metrics\n"),
        ("GET /metricsx HTTP/1.1\r\n\r\n", 404, "metrics are at"),
        ("GET /metrics?name=x HTTP/1.0\r\n\r\n", 200, "# TYPE"),
        (
            "POST /metrics HTTP/1.1\r\n\r\n",
            405,
            "only GET and HEAD are allowed",
        ),
        (
            "POST / HTTP/1.1\r\n\r\n",
            405,
            "only GET and HEAD are allowed\n",
        ),
        ("HEAD /metrics HTTP/1.1\r\n\r\n", 200, "content-length: "),
        ("HEAD / HTTP/1.1\r\n\r\n", 404, ""),
        ("GET /metrics\r\n\r\n", 400, ""),
        ("GET /metrics HTTP/2\r\n\r\n", 400, ""),
    ] {
        let answer = ask(at, request);
        assert_eq!(status(&answer), expected, "{request}: {answer}");
        assert!(answer.contains(why), "{request}: {answer}");
        let allowed = answer.contains("\r\nallow: GET, HEAD\r\n");
        assert_eq!(allowed, expected == 405, "{request}: {answer}");
    }
    let head = ask(at, "HEAD /metrics HTTP/1.1\r\n\r\n");
    assert!(head.ends_with("\r\n\r\n"), "{head}: a body");
    // All but those above that are answered.
    assert_eq!(refused(&ask(at, GET)), 7);
}

#[test]
fn a_client_that_has_sent_all_may_close_its_half() {
    let at = start(scraper(), Bounds::default());
    let mut client = connect(at);
    client.write_all(GET.as_bytes()).unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    assert_eq!(status(&rest(&client)), 200);
}

#[test]
fn a_long_and_a_slow_request_are_refused() {
    let bounds = Bounds {
        time: Duration::from_millis(300),
        ..Bounds::default()
    };
    let at = start(scraper(), bounds);
    let x = "x".repeat(2 * REQUEST_BYTES);
    let long = format!("GET /metrics HTTP/1.1\r\nX: {x}");
    assert_eq!(status(&ask(at, &long)), 431);
    // Nothing follows, and the service waits no longer than its bound.
    let begun = Instant::now();
    assert_eq!(ask(at, "GET /met"), "");
    assert!(begun.elapsed() >= bounds.time);
    // Bytes that keep coming earn no time.
    let mut client = connect(at);
    let begun = Instant::now();
    while client.write_all(b"\r\n").is_ok() {
        assert!(begun.elapsed() < TIMEOUT);
        thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(refused(&ask_until(at, 200)), 3);
}

#[test]
fn the_number_of_connections_is_bounded_and_the_silent_give_way() {
    let bounds = Bounds {
        connections: 1,
        time: TIMEOUT,
    };
    let at = start(panicking(0), bounds);
    let mut first = connect(at);
    first.write_all(b"GET /metrics HTTP/1.1\r\n").unwrap();
    // Who asks goes before who does not.
    assert_eq!(status(&ask(at, GET)), 200);
    assert_eq!(rest(&first), "");
}

/// As many as a host without privileges can open stay silent, and come again when they are closed.
#[test]
fn silent_connections_deny_no_scrape() {
    let at = start(scraper(), Bounds::default());
    let silent: Vec<TcpStream> = (0..800).map(|_| connect(at)).collect();
    for _ in 0..20 {
        assert_eq!(status(&ask(at, GET)), 200);
        let _again = connect(at);
    }
    drop(silent);
}

#[test]
fn a_client_that_reads_nothing_ends_with_its_time() {
    let long = || Overview {
        managers: vec![ManagerRow {
            manager: "m".repeat(16 << 20),
            problem: None,
        }],
        ..Overview::default()
    };
    let scraper = scraper().with_reservations(Box::new(long), 10);
    let bounds = Bounds {
        connections: 1,
        time: Duration::from_secs(3),
    };
    let at = start(scraper, bounds);
    // It stays open, and its sockets hold less than the answer.
    let begun = Instant::now();
    let mut client = connect(at);
    client.write_all(GET.as_bytes()).unwrap();
    ask_until(at, 200);
    assert!(begun.elapsed() >= bounds.time);
}

/// A scraper that panics so many times first, without a message.
fn panicking(times: u32) -> Scraper {
    let mut left = times;
    let names = move |_: &mut ClassNames| {
        if left > 0 {
            left -= 1;
            panic::resume_unwind(Box::new("of this test"));
        }
        Ok(())
    };
    scraper().with_names(Box::new(names))
}

#[test]
fn a_scrape_that_panics_takes_no_place_for_ever() {
    let bounds = Bounds::default();
    let at = start(panicking(20), bounds);
    for _ in 0..20 {
        assert_eq!(status(&ask(at, GET)), 500);
    }
    assert_eq!(status(&ask(at, GET)), 200);
}

#[test]
fn after_many_bad_clients_a_good_one_is_answered() {
    let bounds = Bounds {
        time: Duration::from_millis(500),
        ..Bounds::default()
    };
    let at = start(panicking(100), bounds);
    let mut open = Vec::new();
    for _ in 0..20 {
        // They go at once, amid a request, or before their answer.
        for part in ["", "GET /metr", "\0\u{1}\u{2}", GET] {
            let _ = connect(at).write_all(part.as_bytes());
        }
        // They stay, silent or amid a request.
        for part in ["", "GET /metrics HTTP/1.1\r\nX:"] {
            let mut client = connect(at);
            let _ = client.write_all(part.as_bytes());
            open.push(client);
        }
    }
    let answer = ask_until(at, 200);
    assert!(refused(&answer) >= 40, "{answer}");
    // All of the places are free again, once the time of those that stayed is over.
    thread::sleep(bounds.time);
    let mut at_once: Vec<_> = (0..bounds.connections).map(|_| connect(at)).collect();
    for client in &mut at_once {
        client.write_all(GET.as_bytes()).unwrap();
    }
    for client in &at_once {
        assert_eq!(status(&rest(client)), 200);
    }
}
