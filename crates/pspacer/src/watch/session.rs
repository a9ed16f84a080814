// SPDX-License-Identifier: MIT OR Apache-2.0
//! What one call of `pspacer watch` has seen.

use std::collections::BTreeMap;

use anyhow::Result;
use stall::Stop;
use watch::{Connection, Happening, Record, Watcher};

use super::recording::Recording;
use crate::stalls::text;

/// Something to tell of a connection.
#[derive(Clone, Debug)]
pub struct Told {
    /// Its number, from 1.
    pub number: usize,
    /// Its socket.
    pub cookie: u64,
    /// What.
    pub stop: Stop,
}

/// Connections, their numbers, and what is not told yet.
pub struct Session {
    watcher: Watcher,
    /// Numbers, in the order in which connections were seen first.
    numbers: BTreeMap<u64, usize>,
    untold: Vec<Told>,
    recording: Option<Recording>,
    /// When it began; times are shown from here on.
    pub start_ns: u64,
    /// When it ended.
    pub end_ns: u64,
}

impl Session {
    /// Nothing seen.
    pub fn new(start_ns: u64, recording: Option<Recording>) -> Self {
        Self {
            watcher: Watcher::new(start_ns),
            numbers: BTreeMap::new(),
            untold: Vec::new(),
            recording,
            start_ns,
            end_ns: start_ns,
        }
    }

    /// Takes a record.
    pub fn take(&mut self, record: &Record) {
        let (cookie, happenings) = self.watcher.take(record);
        for happening in happenings {
            match happening {
                Happening::Opened => {
                    let number = self.numbers.len() + 1;
                    self.numbers.insert(cookie, number);
                }
                Happening::Stopped(stop) => self.note(cookie, *stop),
                Happening::Ended => {}
            }
        }
        if let (Record::Reading(reading), Some(recording)) = (record, &mut self.recording) {
            if let Some(connection) = self.watcher.connection(cookie) {
                let number = self.numbers.get(&cookie).copied().unwrap_or_default();
                recording.reading(number, connection, reading, self.start_ns);
            }
        }
    }

    /// What time alone makes known.
    pub fn tick(&mut self, now_ns: u64) {
        for (cookie, stop) in self.watcher.tick(now_ns) {
            self.note(cookie, stop);
        }
    }

    /// It is over; gives what was not told yet.
    pub fn finish(&mut self, now_ns: u64) -> Vec<Told> {
        self.end_ns = now_ns;
        for (cookie, stop) in self.watcher.finish(now_ns) {
            self.note(cookie, stop);
        }
        self.told()
    }

    /// What happened since this was asked last.
    pub fn told(&mut self) -> Vec<Told> {
        std::mem::take(&mut self.untold)
    }

    fn note(&mut self, cookie: u64, stop: Stop) {
        let number = self.numbers.get(&cookie).copied().unwrap_or_default();
        self.untold.push(Told {
            number,
            cookie,
            stop,
        });
    }

    /// Writes what `--record` asked for.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn write_records(&self) -> Result<()> {
        match &self.recording {
            Some(recording) => recording.write(self),
            None => Ok(()),
        }
    }

    /// The file that a connection's record goes to.
    pub fn record_of(&self, number: usize) -> Option<String> {
        self.recording.as_ref()?.file_of(number)
    }

    /// With their numbers, in that order.
    pub fn connections(&self) -> Vec<(usize, u64, &Connection)> {
        let number = |cookie| self.numbers.get(&cookie).copied().unwrap_or_default();
        let all = self.watcher.connections();
        let mut all: Vec<_> = all.map(|(cookie, c)| (number(cookie), cookie, c)).collect();
        all.sort_by_key(|(number, ..)| *number);
        all
    }

    /// One of them.
    pub fn connection(&self, cookie: u64) -> Option<&Connection> {
        self.watcher.connection(cookie)
    }

    /// Records that were read.
    pub fn readings(&self) -> u64 {
        self.watcher.readings
    }

    /// Connections that were over and are no longer kept.
    pub fn forgotten(&self) -> u64 {
        self.watcher.forgotten
    }

    /// Stops of all connections that are kept.
    pub fn stops(&self) -> usize {
        self.watcher.connections().map(|(_, c)| c.stops.len()).sum()
    }
}

/// Local and remote end; the cookie alone where they were never told.
pub fn ends(cookie: u64, connection: Option<&Connection>) -> String {
    match connection.and_then(|connection| connection.ends) {
        Some(ends) => format!("{} → {}", ends.local, ends.remote),
        None => format!("socket {cookie}"),
    }
}

/// A connection in one sentence.
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
            format!(" in {} ({})", stall::ms(took_ns), stall::rate(bps))
        }
        None => String::new(),
    };
    let stops = stall::sum_up(connection.stops.iter());
    format!("{} sent{rate}{stops}.", text::bytes(bytes))
}
