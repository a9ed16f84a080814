// SPDX-License-Identifier: MIT OR Apache-2.0
//! The agent of a node: serves the kubelet, and in rounds puts classes in force again and publishes
//! what is left.

use std::pin::pin;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::timeout;
use units::display;

use crate::driver::Driver;
use crate::grpc::{Registered, serve};
use crate::publish::{Publisher, left};
use crate::round::{Say, round};
use crate::sockets::Sockets;
use crate::status::Node;

/// How long the first wait after a failure is, and the longest.
const WAITS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));
/// Longest time for calls that a signal comes between: the manifest leaves 5 s until SIGKILL.
const LAST_CALLS: Duration = Duration::from_secs(3);

/// Runs until a signal. The kubelet sees by its sockets that it is gone; what pods have stays in force.
///
/// # Errors
/// A name that is none, or a socket that cannot be made.
pub fn run(driver: Driver, sockets: &Sockets, every: Duration, is_json: bool) -> Result<()> {
    let publisher = Publisher::new(driver.api.clone(), driver.owner.clone());
    let publisher = publisher.map_err(anyhow::Error::msg)?;
    let (sender, registered) = channel();
    let driver = Arc::new(driver);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("a runtime")?;
    let ended = runtime.block_on(async {
        let mut end = signal(SignalKind::terminate()).context("SIGTERM")?;
        let mut interrupt = signal(SignalKind::interrupt()).context("SIGINT")?;
        let made = sockets.make(&driver.run)?;
        let known = Node {
            driver: driver.owner.driver.clone(),
            node: driver.owner.node.clone(),
            budget: driver.budget,
        };
        known.store(&driver.run)?;
        let of_rounds = Arc::clone(&driver);
        let (alive, rounds_ended) = tokio::sync::oneshot::channel::<()>();
        thread::spawn(move || {
            // Dropped with the thread, however that ends.
            let _alive = alive;
            rounds(&of_rounds, publisher, &registered, every, Say { is_json });
        });
        let signal = async {
            tokio::select! {
                _ = end.recv() => {}
                _ = interrupt.recv() => {}
            }
        };
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let stopped = async {
            let _ = stopped.await;
        };
        let mut served = pin!(serve(driver, made, every, sender, stopped));
        tokio::select! {
            served = &mut served => served,
            _ = rounds_ended => Err(anyhow!("the thread of the rounds ended early")),
            () = signal => {
                let _ = stop.send(());
                // The kubelet asks what did not end in time again.
                timeout(LAST_CALLS, served).await.unwrap_or(Ok(()))
            }
        }
    });
    // A request to the API server may still wait for its answer.
    runtime.shutdown_background();
    ended
}

fn rounds(
    driver: &Driver,
    mut publisher: Publisher,
    registered: &Receiver<Registered>,
    every: Duration,
    say: Say,
) {
    let (mut next_round, mut next_publish) = (Instant::now(), Instant::now());
    let mut wait = WAITS.0;
    let mut failed: Vec<String> = Vec::new();
    let mut last_error = String::new();
    loop {
        if Instant::now() >= next_round {
            failed = round(&driver.run, say, &failed);
            next_round = Instant::now() + every;
        }
        if Instant::now() >= next_publish {
            let left = left(&driver.run, driver.budget);
            let done = left.and_then(|left| Ok((left, publisher.publish(left)?)));
            match done {
                Ok((left, is_changed)) => {
                    if is_changed || !last_error.is_empty() {
                        let rate = |rate_bps: u64| display::rate(rate_bps as f64);
                        let (egress, ingress) = (rate(left.egress_bps), rate(left.ingress_bps));
                        say.line("published", &format!("egress {egress}, ingress {ingress}"));
                    }
                    (wait, next_publish) = (WAITS.0, Instant::now() + every);
                    last_error.clear();
                }
                Err(error) => {
                    let error = format!("{error:#}");
                    if error != last_error {
                        let again = "asked again, at most each 60 s, until it is well";
                        say.line("not published", &format!("{error}; {again}"));
                    }
                    last_error = error;
                    next_publish = Instant::now() + wait;
                    wait = (wait * 2).min(WAITS.1);
                }
            }
        }
        let until = next_round.min(next_publish);
        match registered.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(Ok(())) => {
                say.line("registered", "the kubelet knows the driver");
                // A kubelet that starts has taken away what was published.
                next_publish = Instant::now();
            }
            Ok(Err(error)) => say.line("not registered", &format!("the kubelet says: {error}")),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}
