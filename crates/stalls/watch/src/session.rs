// SPDX-License-Identifier: MIT OR Apache-2.0
//! Collects what one call of `pspacer watch` has seen.

use stall::Stall;

use crate::names::{Names, Owner};
use crate::reasons::Reasons;
use crate::{Connection, Happening, Reading, Record, Status, Watcher};

/// A stall to report.
#[derive(Clone, Debug)]
pub struct Report {
    /// Number of the connection, from 1.
    pub number: u64,
    /// Cookie of the connection's socket.
    pub cookie: u64,
    /// Whose socket it is.
    pub owner: Owner,
    pub stall: Stall,
    /// The file with the packets around it, once they are saved.
    pub packets: Option<String>,
}

/// Receives readings as they arrive, and connections when they end.
pub trait Sink {
    /// The error of an output that could not be written.
    type Error;

    /// Receives a reading of a connection; `start_ns` is when watching began.
    fn reading(&mut self, connection: &Connection, reading: &Reading, start_ns: u64);

    /// Receives a connection that has ended, or is still open when watching ends.
    fn ended(
        &mut self,
        start_ns: u64,
        cookie: u64,
        connection: &Connection,
    ) -> Result<(), Self::Error>;

    /// Completes the output when watching ends.
    fn finish(&mut self) -> Result<(), Self::Error>;
}

/// The connections, the stalls that are not reported yet, and the sink for ended connections.
pub struct Session<S> {
    watcher: Watcher,
    unreported: Vec<Report>,
    names: Names,
    /// Receives the readings and the ended connections.
    pub sink: S,
    /// Number of stalls of all connections, also of those no longer kept.
    pub stalls: u64,
    /// The process of the filter, once it has ended.
    pub ended_process: Option<u32>,
    /// When watching began; times are shown relative to it.
    pub start_ns: u64,
    pub end_ns: u64,
}

impl<S: Sink> Session<S> {
    /// Creates a session that has seen nothing.
    pub fn new(start_ns: u64, sink: S) -> Self {
        Self {
            watcher: Watcher::new(start_ns),
            unreported: Vec::new(),
            names: Names::default(),
            sink,
            stalls: 0,
            ended_process: None,
            start_ns,
            end_ns: start_ns,
        }
    }

    /// Makes the session find out whose sockets stall, and name the reasons of drops.
    pub fn with_names(mut self, names: Names, reasons: Reasons) -> Self {
        self.names = names;
        self.watcher.reasons = reasons;
        self
    }

    /// Processes a record. A connection that ends is written to the sink at once.
    pub fn take(&mut self, record: &Record) -> Result<(), S::Error> {
        let (cookie, happenings) = self.watcher.take(record);
        let is_known = matches!(record, Record::Reading(_)) && happenings.is_empty();
        if !is_known {
            self.learn(cookie);
        }
        if let Record::Reading(reading) = record {
            if let Some(connection) = self.watcher.connection(cookie) {
                self.sink.reading(connection, reading, self.start_ns);
            }
        }
        for happening in happenings {
            match happening {
                Happening::Opened => {}
                Happening::Stalled(stall) => self.note(cookie, *stall),
                Happening::Ended => self.write_out(cookie)?,
            }
        }
        Ok(())
    }

    /// Writes what is known of a connection to the sink.
    fn write_out(&mut self, cookie: u64) -> Result<(), S::Error> {
        let Some(connection) = self.watcher.connection(cookie) else {
            return Ok(());
        };
        self.sink.ended(self.start_ns, cookie, connection)
    }

    /// Notes the stalls that are known by `now_ns` without another record.
    pub fn tick(&mut self, now_ns: u64) {
        for (cookie, stall) in self.watcher.tick(now_ns) {
            self.note(cookie, stall);
        }
    }

    /// Ends watching: writes the connections that are still open to the sink and completes its
    /// output. Returns the stalls that were not reported yet.
    pub fn finish(&mut self, now_ns: u64) -> Result<Vec<Report>, S::Error> {
        self.end_ns = now_ns;
        for (cookie, stall) in self.watcher.finish(now_ns) {
            self.note(cookie, stall);
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

    /// Returns the stalls found since the last call.
    pub fn reports(&mut self) -> Vec<Report> {
        std::mem::take(&mut self.unreported)
    }

    /// Finds what is known of whose socket a connection has, when it was introduced or opened.
    fn learn(&mut self, cookie: u64) {
        let Some(connection) = self.watcher.connection_mut(cookie) else {
            return;
        };
        if connection.owner == Owner::default() {
            if let Some(ends) = &connection.ends {
                connection.owner = self.names.learn(&ends.socket);
            }
        }
    }

    fn note(&mut self, cookie: u64, stall: Stall) {
        self.learn(cookie);
        if let Some(connection) = self.watcher.connection_mut(cookie) {
            if let Some(ends) = &connection.ends {
                self.names.search(&mut connection.owner, &ends.socket);
            }
        }
        let connection = self.watcher.connection(cookie);
        self.stalls += 1;
        self.unreported.push(Report {
            number: connection.map_or(0, |connection| connection.number),
            cookie,
            owner: connection.map(|c| c.owner.clone()).unwrap_or_default(),
            stall,
            packets: None,
        });
    }

    /// Returns the connections that are kept, with their cookies, in the order in which they
    /// were seen.
    pub fn connections(&self) -> Vec<(u64, &Connection)> {
        let mut all: Vec<_> = self.watcher.connections().collect();
        all.sort_by_key(|(_, connection)| connection.number);
        all
    }

    /// Returns the number of connections that were seen.
    pub fn opened(&self) -> u64 {
        self.watcher.opened
    }

    /// Returns the connection with this cookie.
    pub fn connection(&self, cookie: u64) -> Option<&Connection> {
        self.watcher.connection(cookie)
    }

    /// Returns the number of readings of all connections.
    pub fn readings(&self) -> u64 {
        self.watcher.readings
    }
}

/// Returns the local and the remote end as text, or the cookie alone where the kernel never
/// reported the ends.
pub fn ends(cookie: u64, connection: Option<&Connection>) -> String {
    match connection.and_then(|connection| connection.ends) {
        Some(ends) => format!("{} → {}", ends.local, ends.remote),
        None => format!("socket {cookie}"),
    }
}

/// Summarises a connection in one sentence.
pub fn verdict(connection: &Connection) -> String {
    let bytes = connection.acked_bytes();
    if bytes <= 1 && connection.stalls.is_empty() {
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
    let stalls = stall::sum_up(connection.stalls.iter());
    format!("{} sent{rate}{stalls}.", units::terse::size(bytes))
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;
    use crate::connection::tests::{ack, later};
    use crate::{Ends, Moment, SocketIds};

    /// Keeps the names of connections that end.
    struct Processes(Vec<Owner>);

    impl Sink for Processes {
        type Error = Infallible;

        fn reading(&mut self, _: &Connection, _: &Reading, _: u64) {}

        fn ended(&mut self, _: u64, _: u64, connection: &Connection) -> Result<(), Self::Error> {
            self.0.push(connection.owner.clone());
            Ok(())
        }

        fn finish(&mut self) -> Result<(), Self::Error> {
            Ok(())
        }
    }

    #[test]
    fn a_report_names_the_process() {
        let end = "10.1.0.1:1".parse().unwrap();
        let ends = Ends {
            time_ns: 0,
            cookie: 1,
            local: end,
            remote: end,
            socket: SocketIds {
                pid: 7,
                comm: *b"sender\0\0\0\0\0\0\0\0\0\0",
                ..SocketIds::default()
            },
        };
        // The ends may come before the first reading, or behind it if they were lost at first.
        for ends_first in [true, false] {
            let mut session = Session::new(0, Processes(Vec::new()));
            let first = ack(0);
            let end = later(&first, 3000, Moment::End);
            let mut records = vec![Record::Connection(ends), Record::Reading(first)];
            if !ends_first {
                records.reverse();
            }
            records.push(Record::Reading(end));
            for record in &records {
                let Ok(()) = session.take(record);
            }
            let reports = session.reports();
            let [report] = &reports[..] else {
                panic!("{reports:?}");
            };
            assert_eq!(report.owner.words(), "sender[7]");
            assert_eq!(session.sink.0, [report.owner.clone()]);
        }
    }
}
