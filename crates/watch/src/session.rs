// SPDX-License-Identifier: MIT OR Apache-2.0
//! What one call of `pspacer watch` has seen.

use stall::Stop;

use crate::{Connection, Happening, Reading, Record, Status, Watcher};

/// A stop to report.
#[derive(Clone, Debug)]
pub struct Report {
    /// Its number, from 1.
    pub number: u64,
    /// Its socket.
    pub cookie: u64,
    /// What.
    pub stop: Stop,
}

/// Where readings go as they come, and connections when they end.
pub trait Sink {
    /// Why something could not be written.
    type Error;

    /// Takes a reading of a connection; `start_ns` is when watching began.
    fn reading(&mut self, connection: &Connection, reading: &Reading, start_ns: u64);

    /// Takes a connection that is over, or stays open at the end.
    ///
    /// # Errors
    /// When it cannot be written.
    fn ended(
        &mut self,
        start_ns: u64,
        cookie: u64,
        connection: &Connection,
    ) -> Result<(), Self::Error>;

    /// Watching is over.
    ///
    /// # Errors
    /// When something cannot be written.
    fn finish(&mut self) -> Result<(), Self::Error>;
}

/// Connections, what is not reported yet, and where each connection goes when it ends.
pub struct Session<S> {
    watcher: Watcher,
    unreported: Vec<Report>,
    /// Where they go.
    pub sink: S,
    /// Stops of all connections, those no longer kept among them.
    pub stops: u64,
    /// The process that was asked for, when it has ended.
    pub ended_process: Option<u32>,
    /// When it began; times are shown from here on.
    pub start_ns: u64,
    /// When it ended.
    pub end_ns: u64,
}

impl<S: Sink> Session<S> {
    /// Nothing seen.
    #[must_use]
    pub fn new(start_ns: u64, sink: S) -> Self {
        Self {
            watcher: Watcher::new(start_ns),
            unreported: Vec::new(),
            sink,
            stops: 0,
            ended_process: None,
            start_ns,
            end_ns: start_ns,
        }
    }

    /// Takes a record. A connection that ends is written out at once.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn take(&mut self, record: &Record) -> Result<(), S::Error> {
        let (cookie, happenings) = self.watcher.take(record);
        if let Record::Reading(reading) = record {
            if let Some(connection) = self.watcher.connection(cookie) {
                self.sink.reading(connection, reading, self.start_ns);
            }
        }
        for happening in happenings {
            match happening {
                Happening::Opened => {}
                Happening::Stopped(stop) => self.note(cookie, *stop),
                Happening::Ended => self.write_out(cookie)?,
            }
        }
        Ok(())
    }

    /// Writes what is known of a connection to where it was asked for.
    fn write_out(&mut self, cookie: u64) -> Result<(), S::Error> {
        let Some(connection) = self.watcher.connection(cookie) else {
            return Ok(());
        };
        self.sink.ended(self.start_ns, cookie, connection)
    }

    /// What time alone makes known.
    pub fn tick(&mut self, now_ns: u64) {
        for (cookie, stop) in self.watcher.tick(now_ns) {
            self.note(cookie, stop);
        }
    }

    /// Watching is over. Writes out the connections that have not ended, and the
    /// pictures; gives what was not reported yet.
    ///
    /// # Errors
    /// When an output cannot be written.
    pub fn finish(&mut self, now_ns: u64) -> Result<Vec<Report>, S::Error> {
        self.end_ns = now_ns;
        for (cookie, stop) in self.watcher.finish(now_ns) {
            self.note(cookie, stop);
        }
        let open: Vec<u64> = self
            .watcher
            .connections()
            .filter(|(_, connection)| connection.status(now_ns) != Status::Ended)
            .map(|(cookie, _)| cookie)
            .collect();
        for cookie in open {
            self.write_out(cookie)?;
        }
        self.sink.finish()?;
        Ok(self.reports())
    }

    /// What happened since this was asked last.
    pub fn reports(&mut self) -> Vec<Report> {
        std::mem::take(&mut self.unreported)
    }

    fn note(&mut self, cookie: u64, stop: Stop) {
        let connection = self.watcher.connection(cookie);
        self.stops += 1;
        self.unreported.push(Report {
            number: connection.map_or(0, |connection| connection.number),
            cookie,
            stop,
        });
    }

    /// Those that are kept, with their sockets.
    #[must_use]
    pub fn connections(&self) -> Vec<(u64, &Connection)> {
        let mut all: Vec<_> = self.watcher.connections().collect();
        all.sort_by_key(|(_, connection)| connection.number);
        all
    }

    /// Connections that were seen.
    #[must_use]
    pub fn opened(&self) -> u64 {
        self.watcher.opened
    }

    /// One of them.
    #[must_use]
    pub fn connection(&self, cookie: u64) -> Option<&Connection> {
        self.watcher.connection(cookie)
    }

    /// Records that were read.
    #[must_use]
    pub fn readings(&self) -> u64 {
        self.watcher.readings
    }
}

/// Local and remote end; the cookie alone where the kernel never reported them.
#[must_use]
pub fn ends(cookie: u64, connection: Option<&Connection>) -> String {
    match connection.and_then(|connection| connection.ends) {
        Some(ends) => format!("{} → {}", ends.local, ends.remote),
        None => format!("socket {cookie}"),
    }
}

/// A connection in one sentence.
#[must_use]
pub fn verdict(connection: &Connection) -> String {
    let bytes = connection.acked_bytes();
    if bytes <= 1 && connection.stops.is_empty() {
        return "No data was sent.".to_owned();
    }
    let took_ns = connection.last.time_ns.saturating_sub(connection.first_ns);
    let bits = u128::from(bytes) * 8_000_000_000;
    let rate = match bits.checked_div(u128::from(took_ns)) {
        Some(bps) => {
            let bps = u64::try_from(bps).unwrap_or(u64::MAX);
            format!(
                " in {} ({})",
                units::terse::ms(took_ns),
                units::terse::rate(bps)
            )
        }
        None => String::new(),
    };
    let stops = stall::sum_up(connection.stops.iter());
    format!("{} sent{rate}{stops}.", units::terse::size(bytes))
}
