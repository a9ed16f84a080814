// SPDX-License-Identifier: MIT OR Apache-2.0
//! Answers a Prometheus: GET and HEAD of /metrics, and nothing else. A connection has one answer and a bounded
//! time, and the number of connections is bounded: of too many, the oldest that has not asked gives way,
//! so clients that are slow or silent hinder neither the others nor the host. What a connection holds is released when its task ends, however it ends.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{self, Arc, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::header::{ACCEPT, ALLOW, CONTENT_TYPE};
use axum::http::{HeaderMap, Method, Request, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use linux_io::signals::Signals;
use linux_io::wait::readable;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Mutex, Semaphore, oneshot};
use tokio::task::spawn_blocking;

use crate::scraper::{Refused, Scraper};
use crate::text;

/// Longest wait for a signal before the service is looked at.
const LOOK_EVERY_NS: u64 = 500_000_000;

/// Wait after a connection could not be accepted, because there were no descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

/// The answer to a connection too many, which is not read.
const BUSY: &str = "HTTP/1.1 503 Service Unavailable\r\n\
                    Content-Type: text/plain; charset=utf-8\r\nContent-Length: 21\r\n\
                    Connection: close\r\n\r\ntoo many connections\n";

/// Most bytes of a request's head: the least that hyper can be told.
pub const REQUEST_BYTES: usize = 8192;

/// What a client may take.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// From the connection to the last byte of the answer.
    pub time: Duration,
    /// Connections at once.
    pub connections: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            time: Duration::from_secs(5),
            connections: 64,
        }
    }
}

/// Serves until a signal comes. Connections that are open then are closed.
///
/// # Errors
/// If the socket or the signals cannot be waited for, or there is no thread.
pub fn serve(
    listener: std::net::TcpListener,
    scraper: Scraper,
    bounds: Bounds,
    signals: &Signals,
) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    // One scrape at a time, in a thread of its own: the service accepts and refuses meanwhile.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(1)
        .build()?;
    let entered = runtime.enter();
    let listener = TcpListener::from_std(listener)?;
    drop(entered);
    let (stop, stopped) = oneshot::channel::<()>();
    let run = move || {
        runtime.block_on(async {
            tokio::select! {
                () = accept(&listener, scraper, bounds) => {}
                _ = stopped => {}
            }
        });
        // A scrape that runs is not waited for.
        runtime.shutdown_background();
    };
    thread::scope(|threads| {
        let serving = thread::Builder::new().spawn_scoped(threads, run)?;
        let waited = wait(signals, || serving.is_finished());
        drop(stop);
        let served = serving.join();
        served.map_err(|_| io::Error::other("the service failed"))?;
        waited
    })
}

/// Waits for a signal, or until the service has ended.
fn wait(signals: &Signals, has_ended: impl Fn() -> bool) -> io::Result<()> {
    while !signals.came()? && !has_ended() {
        readable(&[signals.as_fd()], LOOK_EVERY_NS)?;
    }
    Ok(())
}

/// Accepts connections for ever.
async fn accept(listener: &TcpListener, scraper: Scraper, bounds: Bounds) {
    let refused = scraper.refused();
    let router = router(scraper);
    let slots = Arc::new(Semaphore::new(bounds.connections));
    let silent = Silent::default();
    for number in 0.. {
        // A client that went, or no descriptor left: the listener stays.
        let Ok((client, _)) = listener.accept().await else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let slot = match Arc::clone(&slots).try_acquire_owned() {
            Ok(slot) => Some(slot),
            Err(_) if silent.give_way() => Arc::clone(&slots).acquire_owned().await.ok(),
            Err(_) => None,
        };
        let Some(slot) = slot else {
            refused.count();
            // The short answer fits the socket's buffer; a client that goes is no error.
            if let Ok(mut client) = client.into_std() {
                let _ = client.write(BUSY.as_bytes());
            }
            continue;
        };
        let (router, refused, silent) = (router.clone(), refused.clone(), silent.clone());
        let gives_way = silent.add(number);
        tokio::spawn(async move {
            let _slot = slot;
            let asked = || silent.remove(number);
            let served = serve_one(client, router, bounds, asked);
            let is_served = tokio::select! {
                is_served = served => is_served,
                Ok(()) = gives_way => false,
            };
            if !is_served {
                refused.count();
            }
            silent.remove(number);
        });
        // Those that have something to say say it before the next comes.
        tokio::task::yield_now().await;
    }
}

/// The connections that have not asked yet, the oldest first.
#[derive(Clone, Default)]
struct Silent(Arc<sync::Mutex<BTreeMap<u64, oneshot::Sender<()>>>>);

impl Silent {
    fn all(&self) -> MutexGuard<'_, BTreeMap<u64, oneshot::Sender<()>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a connection; returns what resolves when it has to give way.
    fn add(&self, number: u64) -> oneshot::Receiver<()> {
        let (sender, gives_way) = oneshot::channel();
        self.all().insert(number, sender);
        gives_way
    }

    /// Removes one, which has no need to give way any more.
    fn remove(&self, number: u64) {
        self.all().remove(&number);
    }

    /// Closes the oldest, if there is one.
    fn give_way(&self) -> bool {
        let oldest = self.all().pop_first();
        oldest.is_some_and(|(_, sender)| sender.send(()).is_ok())
    }
}

/// Serves a connection, and returns whether there was a request: one that came in time and that
/// hyper could read. To others hyper answers, 400 or 431, or nobody does.
async fn serve_one(client: TcpStream, router: Router, bounds: Bounds, asked: impl Fn()) -> bool {
    let has_asked = AtomicBool::new(false);
    let service = TowerToHyperService::new(router);
    let noted = service_fn(|request: Request<Incoming>| {
        has_asked.store(true, Ordering::Relaxed);
        asked();
        service.call(request)
    });
    let served = http1::Builder::new()
        // A client that has sent all may close its half.
        .half_close(true)
        .keep_alive(false)
        .max_buf_size(REQUEST_BYTES)
        .serve_connection(TokioIo::new(client), noted);
    // A client that goes is no error of the exporter.
    let _ = tokio::time::timeout(bounds.time, served).await;
    has_asked.load(Ordering::Relaxed)
}

/// What the answers are made of.
#[derive(Clone)]
struct App {
    scraper: Arc<Mutex<Scraper>>,
    refused: Refused,
}

fn router(scraper: Scraper) -> Router {
    let app = App {
        refused: scraper.refused(),
        scraper: Arc::new(Mutex::new(scraper)),
    };
    Router::new()
        // HEAD has the same answer without its body.
        .route("/metrics", get(metrics))
        .fallback(refuse)
        .method_not_allowed_fallback(refuse)
        .with_state(app)
}

async fn metrics(State(app): State<App>, headers: HeaderMap) -> Response {
    // A client that goes before its turn leaves no scrape behind.
    let mut scraper = app.scraper.lock_owned().await;
    let Ok(Ok(text)) = spawn_blocking(move || scraper.scrape()).await else {
        let why = "the metrics could not be written\n";
        return (StatusCode::INTERNAL_SERVER_ERROR, why).into_response();
    };
    if is_open_metrics(&headers) {
        ([(CONTENT_TYPE, text::CONTENT_TYPE)], text).into_response()
    } else {
        let text = text::prometheus(&text);
        ([(CONTENT_TYPE, text::OLDER_CONTENT_TYPE)], text).into_response()
    }
}

/// Returns whether the client names OpenMetrics among what it accepts, as Prometheus does. Others,
/// such as curl before `promtool check metrics`, get the older text, which all of them read.
fn is_open_metrics(headers: &HeaderMap) -> bool {
    let mut accepted = headers.get_all(ACCEPT).iter();
    accepted.any(|value| {
        let value = String::from_utf8_lossy(value.as_bytes());
        value.contains("application/openmetrics-text")
    })
}

async fn refuse(State(app): State<App>, method: Method) -> Response {
    app.refused.count();
    match method {
        Method::GET | Method::HEAD => {
            (StatusCode::NOT_FOUND, "metrics are at /metrics\n").into_response()
        }
        _ => {
            let why = "only GET and HEAD are allowed\n";
            (StatusCode::METHOD_NOT_ALLOWED, [(ALLOW, "GET, HEAD")], why).into_response()
        }
    }
}
