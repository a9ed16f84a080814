// SPDX-License-Identifier: MIT OR Apache-2.0
//! Watches the TCP senders of this host for stalls, and counts them.

use std::convert::Infallible;
use std::io;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use linux_io::clock::monotonic_ns;
use watch::names::Names;
use watch::session::{Session, Sink};
use watch::{Connection, Error, Filter, Reading, Reasons, Tracer};

use crate::stalls::Stalls;

/// Time between two readings of the ring buffer, and between two looks for stalls.
const READ_EVERY: Duration = Duration::from_millis(10);
const LOOK_EVERY_NS: u64 = 250_000_000;

/// Keeps nothing of connections.
struct Nothing;

impl Sink for Nothing {
    type Error = Infallible;

    fn reading(&mut self, _: &Connection, _: &Reading, _: u64) {}

    fn ended(&mut self, _: u64, _: u64, _: &Connection) -> Result<(), Self::Error> {
        Ok(())
    }

    fn finish(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }
}

/// Counts the stalls of this host from now on, in a thread that ends with the process. If watching
/// fails later, `say` is called with why.
///
/// # Errors
/// When the rights, BTF or BPF are missing, or the thread cannot be started.
pub fn count_stalls(say: impl FnOnce(String) + Send + 'static) -> io::Result<Arc<Mutex<Stalls>>> {
    let stalls = Arc::new(Mutex::new(Stalls::default()));
    let counted = Arc::clone(&stalls);
    let (attached, is_attached) = mpsc::channel();
    let count = move || {
        let mut tracer = match Tracer::attach(&Filter::default()) {
            Ok(tracer) => tracer,
            Err(error) => {
                let _ = attached.send(Err(io::Error::other(error)));
                return;
            }
        };
        let _ = attached.send(Ok(()));
        let Err(error) = watch(&mut tracer, &counted);
        counted
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .is_watching = false;
        say(format!("stalls are not counted any more: {error}"));
    };
    thread::Builder::new().spawn(count)?;
    is_attached.recv().map_err(io::Error::other)??;
    Ok(stalls)
}

/// Watches until it fails.
fn watch(tracer: &mut Tracer, counted: &Mutex<Stalls>) -> Result<Infallible, Error> {
    let session = Session::new(now_ns(), Nothing);
    // Drops are no metric of their own.
    let mut session = session.with_names(Names::of_this_host(), Reasons::default());
    let mut look_ns = 0;
    loop {
        tracer.drain(&mut |record| {
            let Ok(()) = session.take(&record);
        })?;
        let now_ns = now_ns();
        if now_ns >= look_ns {
            look_ns = now_ns + LOOK_EVERY_NS;
            session.tick(now_ns);
            let lost = tracer.lost()?;
            let mut counted = counted.lock().unwrap_or_else(PoisonError::into_inner);
            for report in session.reports() {
                counted.add(&report.stall, &report.owner);
            }
            counted.connections = session.opened();
            counted.lost_records = lost.iter().sum();
        }
        thread::sleep(READ_EVERY);
    }
}

fn now_ns() -> u64 {
    // CLOCK_MONOTONIC can always be read.
    monotonic_ns().unwrap_or_default()
}
