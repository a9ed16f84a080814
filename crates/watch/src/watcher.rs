// SPDX-License-Identifier: MIT OR Apache-2.0
//! All connections that are watched.

use std::collections::BTreeMap;

use stall::Stop;

use crate::connection::Connection;
use crate::records::{Ends, Moment, Record};

/// Connections that are over are kept until there are so many.
const ENDED_MOST: usize = 4096;

/// What a record made known.
#[derive(Clone, Debug, PartialEq)]
pub enum Happening {
    /// A connection was seen first.
    Opened,
    /// It stopped for a time.
    Stopped(Box<Stop>),
    /// Its socket is gone.
    Ended,
}

/// Connections by their sockets' cookies, which count up.
#[derive(Clone, Debug, Default)]
pub struct Watcher {
    connections: BTreeMap<u64, Connection>,
    /// Told, and nothing read yet.
    introduced: BTreeMap<u64, Ends>,
    ended: Vec<u64>,
    /// Connections that are over and no longer kept.
    pub forgotten: u64,
    /// Readings of all connections.
    pub readings: u64,
    origin_ns: u64,
}

impl Watcher {
    /// Times of stops count from `origin_ns`.
    #[must_use]
    pub fn new(origin_ns: u64) -> Self {
        Self {
            origin_ns,
            ..Self::default()
        }
    }

    /// Takes a record; gives the connection's cookie and what is known by it.
    /// Logarithmic in the number of connections.
    pub fn take(&mut self, record: &Record) -> (u64, Vec<Happening>) {
        let reading = match record {
            Record::Connection(ends) => {
                if let Some(connection) = self.connections.get_mut(&ends.cookie) {
                    connection.ends = Some(*ends);
                } else {
                    self.introduced.insert(ends.cookie, *ends);
                }
                return (ends.cookie, Vec::new());
            }
            Record::Reading(reading) => reading,
        };
        self.readings += 1;
        let cookie = reading.cookie;
        let mut happenings = Vec::new();
        if let Some(connection) = self.connections.get_mut(&cookie) {
            let stops = connection.reading(reading);
            happenings.extend(
                stops
                    .into_iter()
                    .map(|stop| Happening::Stopped(Box::new(stop))),
            );
        } else {
            let ends = self.introduced.remove(&cookie);
            let connection = Connection::new(reading, ends, self.origin_ns);
            self.connections.insert(cookie, connection);
            happenings.push(Happening::Opened);
        }
        if reading.moment == Moment::End {
            happenings.push(Happening::Ended);
            self.forget(cookie);
        }
        (cookie, happenings)
    }

    /// Keeps memory bounded: of those that are over the first go.
    fn forget(&mut self, ended: u64) {
        self.ended.push(ended);
        if self.ended.len() > ENDED_MOST {
            for cookie in self.ended.drain(..ENDED_MOST / 2) {
                self.connections.remove(&cookie);
                self.forgotten += 1;
            }
        }
    }

    /// What time alone makes known.
    pub fn tick(&mut self, now_ns: u64) -> Vec<(u64, Stop)> {
        self.all_of(|connection| connection.tick(now_ns))
    }

    /// Watching is over.
    pub fn finish(&mut self, now_ns: u64) -> Vec<(u64, Stop)> {
        self.all_of(|connection| connection.finish(now_ns))
    }

    fn all_of(&mut self, mut stops: impl FnMut(&mut Connection) -> Vec<Stop>) -> Vec<(u64, Stop)> {
        let mut found = Vec::new();
        for (cookie, connection) in &mut self.connections {
            found.extend(stops(connection).into_iter().map(|stop| (*cookie, stop)));
        }
        found
    }

    /// In the order of their sockets.
    pub fn connections(&self) -> impl Iterator<Item = (u64, &Connection)> {
        self.connections
            .iter()
            .map(|(cookie, connection)| (*cookie, connection))
    }

    /// One of them.
    #[must_use]
    pub fn connection(&self, cookie: u64) -> Option<&Connection> {
        self.connections.get(&cookie)
    }
}
