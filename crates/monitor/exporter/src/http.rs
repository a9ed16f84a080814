// SPDX-License-Identifier: MIT OR Apache-2.0
//! Answers a Prometheus: GET /metrics, and nothing else. Each connection has a thread, one answer
//! and a deadline; their number is bounded, so that slow clients hinder neither the others for
//! long nor the host.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use linux_io::signals::Signals;
use linux_io::wait::readable;

use crate::scraper::Scraper;
use crate::text::{CONTENT_TYPE, OLDER_CONTENT_TYPE, prometheus};

/// Longest wait for a connection before the stop is looked at.
const LOOK_EVERY_NS: u64 = 500_000_000;

/// What a client may take.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Bytes of a request.
    pub request_bytes: usize,
    /// From the connection to the last byte of the answer.
    pub time: Duration,
    /// Connections at once.
    pub connections: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            request_bytes: 8 << 10,
            time: Duration::from_secs(5),
            connections: 8,
        }
    }
}

/// An answer without metrics.
struct Refusal {
    status: &'static str,
    why: &'static str,
}

impl Refusal {
    const fn new(status: &'static str, why: &'static str) -> Self {
        Self { status, why }
    }
}

const BUSY: Refusal = Refusal::new("503 Service Unavailable", "too many connections");
const TOO_LONG: Refusal = Refusal::new(
    "431 Request Header Fields Too Large",
    "the request is too long",
);
const TOO_SLOW: Refusal = Refusal::new("408 Request Timeout", "the request did not end in time");
const NO_REQUEST: Refusal = Refusal::new("400 Bad Request", "expected GET /metrics HTTP/1.1");
const NOT_GET: Refusal = Refusal::new("405 Method Not Allowed", "only GET is allowed");
const NOT_FOUND: Refusal = Refusal::new("404 Not Found", "metrics are at /metrics");
const FAILED: Refusal = Refusal::new(
    "500 Internal Server Error",
    "the metrics could not be written",
);

/// Serves until a signal comes. Threads of open connections end by themselves within
/// [`Bounds::time`].
///
/// # Errors
/// If the socket or the signals cannot be waited for.
pub fn serve(
    listener: &TcpListener,
    scraper: &Arc<Mutex<Scraper>>,
    bounds: Bounds,
    signals: &Signals,
) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let open = Arc::new(AtomicUsize::new(0));
    while !signals.came()? {
        readable(&[listener.as_fd(), signals.as_fd()], LOOK_EVERY_NS)?;
        match listener.accept() {
            Ok((client, _)) => accept(client, scraper, bounds, &open),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            // A client that went, or no descriptor left: the listener stays.
            Err(_) => thread::sleep(Duration::from_millis(10)),
        }
    }
    Ok(())
}

fn accept(
    client: TcpStream,
    scraper: &Arc<Mutex<Scraper>>,
    bounds: Bounds,
    open: &Arc<AtomicUsize>,
) {
    let deadline = Instant::now() + bounds.time;
    if open.fetch_add(1, Ordering::AcqRel) >= bounds.connections {
        open.fetch_sub(1, Ordering::AcqRel);
        lock(scraper).refused();
        // The short answer fits the socket's buffer; this thread must not wait.
        if client.set_nonblocking(true).is_ok() {
            let _ = (&client).write(refusal(&BUSY).as_bytes());
        }
        return;
    }
    let (scraper, open) = (Arc::clone(scraper), Arc::clone(open));
    let answer = move || {
        // A client that goes is no error of the exporter.
        let _ = converse(&client, &scraper, bounds, deadline);
        open.fetch_sub(1, Ordering::AcqRel);
    };
    // Without a thread the client is dropped, and its place with it.
    if thread::Builder::new().spawn(answer).is_err() {
        thread::sleep(Duration::from_millis(10));
    }
}

fn lock(scraper: &Mutex<Scraper>) -> std::sync::MutexGuard<'_, Scraper> {
    scraper.lock().unwrap_or_else(PoisonError::into_inner)
}

fn converse(
    client: &TcpStream,
    scraper: &Mutex<Scraper>,
    bounds: Bounds,
    deadline: Instant,
) -> io::Result<()> {
    client.set_nonblocking(false)?;
    let head = request(client, bounds, deadline)?;
    let answer = match head.and_then(|head| check(&head).map(|()| is_open_metrics(&head))) {
        Ok(is_open) => match lock(scraper).scrape() {
            Ok(text) if is_open => answer("200 OK", CONTENT_TYPE, &text),
            Ok(text) => answer("200 OK", OLDER_CONTENT_TYPE, &prometheus(&text)),
            Err(_) => refusal(&FAILED),
        },
        Err(why) => {
            lock(scraper).refused();
            refusal(&why)
        }
    };
    send(client, answer.as_bytes(), deadline)
}

/// Reads the head of a request, up to its empty line.
fn request(
    mut client: &TcpStream,
    bounds: Bounds,
    deadline: Instant,
) -> io::Result<Result<String, Refusal>> {
    let mut head = Vec::new();
    let mut part = [0; 1024];
    loop {
        if head.windows(4).any(|end| end == b"\r\n\r\n") {
            return Ok(String::from_utf8(head).map_err(|_| NO_REQUEST));
        }
        if head.len() >= bounds.request_bytes {
            return Ok(Err(TOO_LONG));
        }
        let Some(left) = left(deadline) else {
            return Ok(Err(TOO_SLOW));
        };
        client.set_read_timeout(Some(left))?;
        match client.read(&mut part) {
            Ok(0) => return Ok(Err(NO_REQUEST)),
            Ok(bytes) => head.extend(part.iter().take(bytes)),
            Err(error) if is_retried(&error) => {}
            Err(error) => return Err(error),
        }
    }
}

/// Returns whether the request is for metrics.
fn check(head: &str) -> Result<(), Refusal> {
    let line = head.lines().next().unwrap_or_default();
    let words: Vec<_> = line.split(' ').collect();
    let [method, target, version] = words[..] else {
        return Err(NO_REQUEST);
    };
    if !version.starts_with("HTTP/1.") {
        return Err(NO_REQUEST);
    }
    if method != "GET" {
        return Err(NOT_GET);
    }
    match target.split('?').next() {
        Some("/metrics") => Ok(()),
        _ => Err(NOT_FOUND),
    }
}

/// Returns whether the client names OpenMetrics among what it accepts, as Prometheus does. Others,
/// such as curl before `promtool check metrics`, get the older text, which all of them read.
fn is_open_metrics(head: &str) -> bool {
    let fields = head.lines().filter_map(|line| line.split_once(':'));
    let mut accepted = fields.filter(|(name, _)| name.eq_ignore_ascii_case("accept"));
    accepted.any(|(_, value)| value.contains("application/openmetrics-text"))
}

fn refusal(refusal: &Refusal) -> String {
    answer(
        refusal.status,
        "text/plain; charset=utf-8",
        &format!("{}\n", refusal.why),
    )
}

fn answer(status: &str, content: &str, body: &str) -> String {
    let bytes = body.len();
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {content}\r\nContent-Length: {bytes}\r\n\
         Connection: close\r\n\r\n{body}"
    )
}

fn send(mut client: &TcpStream, mut bytes: &[u8], deadline: Instant) -> io::Result<()> {
    while !bytes.is_empty() {
        let left = left(deadline).ok_or(io::ErrorKind::TimedOut)?;
        client.set_write_timeout(Some(left))?;
        match client.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(sent) => bytes = bytes.get(sent..).unwrap_or_default(),
            Err(error) if is_retried(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Returns the time until the deadline, if it has not passed.
fn left(deadline: Instant) -> Option<Duration> {
    let left = deadline.checked_duration_since(Instant::now())?;
    (left > Duration::ZERO).then_some(left)
}

/// Whether the deadline decides, and not the error.
fn is_retried(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), Interrupted | TimedOut | WouldBlock)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A client and what converses with it.
    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (client, listener.accept().unwrap().0)
    }

    fn scraper() -> Arc<Mutex<Scraper>> {
        Arc::new(Mutex::new(Scraper::new("0", 10)))
    }

    fn asked(request: &str, bounds: Bounds) -> String {
        let (mut client, server) = pair();
        client.write_all(request.as_bytes()).unwrap();
        let deadline = Instant::now() + bounds.time;
        converse(&server, &scraper(), bounds, deadline).unwrap();
        drop(server);
        let mut answer = Vec::new();
        // What was not read of a long request resets the connection, after the answer.
        let _ = client.read_to_end(&mut answer);
        String::from_utf8(answer).unwrap()
    }

    #[test]
    fn only_metrics_are_answered() {
        let bounds = Bounds::default();
        let accept = "accept: application/openmetrics-text;version=1.0.0,text/plain;q=0.5";
        let request = format!("GET /metrics HTTP/1.1\r\nHost: x\r\n{accept}\r\n\r\n");
        let good = asked(&request, bounds);
        assert!(good.starts_with("HTTP/1.1 200 OK\r\n"), "{good}");
        assert!(good.ends_with("# EOF\n"), "{good}");
        let (head, body) = good.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("Content-Length: {}\r\n", body.len())));
        assert!(head.contains(CONTENT_TYPE));
        let older = asked("GET /metrics HTTP/1.1\r\nAccept: */*\r\n\r\n", bounds);
        assert!(older.contains(OLDER_CONTENT_TYPE), "{older}");
        assert!(older.contains("# TYPE psp_exporter_scrapes_total counter\n"));
        for (request, status) in [
            ("GET / HTTP/1.1\r\n\r\n", 404),
            ("GET /metricsx HTTP/1.1\r\n\r\n", 404),
            ("GET /metrics?name=x HTTP/1.0\r\n\r\n", 200),
            ("POST /metrics HTTP/1.1\r\n\r\n", 405),
            ("HEAD /metrics HTTP/1.1\r\n\r\n", 405),
            ("GET /metrics\r\n\r\n", 400),
            ("GET /metrics HTTP/2\r\n\r\n", 400),
            ("\r\n\r\n", 400),
        ] {
            let answer = asked(request, bounds);
            let expected = format!("HTTP/1.1 {status} ");
            assert!(answer.starts_with(&expected), "{request}: {answer}");
        }
    }

    #[test]
    fn a_long_and_a_slow_request_are_refused() {
        let bounds = Bounds {
            request_bytes: 1000,
            time: Duration::from_millis(50),
            ..Bounds::default()
        };
        let long = format!("GET /metrics HTTP/1.1\r\nX: {}", "x".repeat(2000));
        assert!(asked(&long, bounds).starts_with("HTTP/1.1 431 "));
        // Nothing follows, and nobody waits for longer than the deadline; the time is over before
        // the refusal can be sent, so that nothing comes.
        let (mut client, server) = pair();
        client.write_all(b"GET /met").unwrap();
        let scraper = scraper();
        let deadline = Instant::now() + bounds.time;
        assert!(converse(&server, &scraper, bounds, deadline).is_err());
        let text = lock(&scraper).scrape().unwrap();
        assert!(text.contains("psp_exporter_refused_requests_total 1\n"));
    }

    #[test]
    fn a_client_that_reads_nothing_ends_with_the_deadline() {
        let (_client, server) = pair();
        let deadline = Instant::now() + Duration::from_millis(50);
        let answer = vec![0; 64 << 20];
        assert!(send(&server, &answer, deadline).is_err());
    }

    #[test]
    fn the_number_of_connections_is_bounded() {
        let bounds = Bounds {
            connections: 1,
            time: Duration::from_secs(60),
            ..Bounds::default()
        };
        let (scraper, open) = (scraper(), Arc::new(AtomicUsize::new(0)));
        let (first, server) = pair();
        accept(server, &scraper, bounds, &open);
        assert_eq!(open.load(Ordering::Acquire), 1);
        let (mut second, server) = pair();
        accept(server, &scraper, bounds, &open);
        let mut answer = String::new();
        let _ = second.read_to_string(&mut answer);
        assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
        // The first is still served, once it asks.
        let mut first = first;
        first.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
        let mut answer = String::new();
        first.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    }
}
