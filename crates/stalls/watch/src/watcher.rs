// SPDX-License-Identifier: MIT OR Apache-2.0
//! Follows all connections that are watched.

use std::collections::BTreeMap;

use stall::Stall;

use crate::connection::Connection;
use crate::reasons::Reasons;
use crate::records::{Ends, Moment, Record};

/// Ended connections that are kept. When there are more, half of them are forgotten, those that
/// were stalled for the longest time last.
const ENDED_MOST: usize = 4096;
/// Connections that were reported but have no reading yet. Of more, the one with the lowest
/// cookie is forgotten: its readings were probably lost.
const INTRODUCED_MOST: usize = 4096;

/// What a record made known.
#[derive(Clone, Debug, PartialEq)]
pub enum Happening {
    /// A connection was seen for the first time.
    Opened,
    /// The connection stalled for a time.
    Stalled(Box<Stall>),
    /// The connection's socket is gone.
    Ended,
}

/// The connections, by their sockets' cookies, which the kernel counts up.
#[derive(Clone, Debug, Default)]
pub struct Watcher {
    connections: BTreeMap<u64, Connection>,
    /// Ends of connections that were reported and have no reading yet.
    introduced: BTreeMap<u64, Ends>,
    ended: Vec<u64>,
    /// Number of connections that were seen.
    pub opened: u64,
    /// Number of readings of all connections.
    pub readings: u64,
    /// Names the reasons of drops on this host.
    pub reasons: Reasons,
    origin_ns: u64,
}

impl Watcher {
    /// Creates a watcher. Times of stalls count from `origin_ns`.
    pub fn new(origin_ns: u64) -> Self {
        Self {
            origin_ns,
            ..Self::default()
        }
    }

    /// Processes a record. Returns the connection's cookie and what the record made known.
    /// Logarithmic in the number of connections.
    pub fn take(&mut self, record: &Record) -> (u64, Vec<Happening>) {
        let reading = match record {
            Record::Connection(ends) => {
                if let Some(connection) = self.connections.get_mut(&ends.cookie) {
                    connection.ends = Some(*ends);
                } else {
                    self.introduced.insert(ends.cookie, *ends);
                    if self.introduced.len() > INTRODUCED_MOST {
                        self.introduced.pop_first();
                    }
                }
                return (ends.cookie, Vec::new());
            }
            Record::Dropped(dropped) => {
                // A connection whose first reading was lost is not known.
                if let Some(connection) = self.connections.get_mut(&dropped.cookie) {
                    connection.dropped(dropped);
                }
                return (dropped.cookie, Vec::new());
            }
            Record::Reading(reading) => reading,
        };
        self.readings += 1;
        let cookie = reading.cookie;
        let mut happenings = Vec::new();
        if let Some(connection) = self.connections.get_mut(&cookie) {
            let stalls = connection.reading(reading);
            happenings.extend(
                stalls
                    .into_iter()
                    .map(|stall| Happening::Stalled(Box::new(stall))),
            );
        } else {
            let ends = self.introduced.remove(&cookie);
            let mut connection = Connection::new(reading, ends, self.origin_ns);
            self.opened += 1;
            connection.number = self.opened;
            connection.drops.reasons = self.reasons.clone();
            self.connections.insert(cookie, connection);
            happenings.push(Happening::Opened);
        }
        if reading.moment == Moment::End {
            happenings.push(Happening::Ended);
            self.ended.push(cookie);
            self.forget();
        }
        (cookie, happenings)
    }

    /// Keeps memory bounded: forgets, of the ended connections, those that were stalled for the
    /// least time, the older ones first. The connection that ended last stays: the user has not
    /// seen it yet.
    fn forget(&mut self) {
        if self.ended.len() <= ENDED_MOST {
            return;
        }
        let last = self.ended.pop();
        let connections = &self.connections;
        let stalled_ns = |cookie: &u64| connections.get(cookie).map(Connection::stalled_ns);
        self.ended
            .sort_by_cached_key(|cookie| (stalled_ns(cookie), *cookie));
        for cookie in self.ended.drain(..ENDED_MOST / 2) {
            self.connections.remove(&cookie);
        }
        self.ended.extend(last);
    }

    /// Returns the stalls that are known by `now_ns` without another record.
    pub fn tick(&mut self, now_ns: u64) -> Vec<(u64, Stall)> {
        self.all_of(|connection| connection.tick(now_ns))
    }

    /// Ends watching. Returns the stalls that were not known before.
    pub fn finish(&mut self, now_ns: u64) -> Vec<(u64, Stall)> {
        self.all_of(|connection| connection.finish(now_ns))
    }

    fn all_of(
        &mut self,
        mut stalls: impl FnMut(&mut Connection) -> Vec<Stall>,
    ) -> Vec<(u64, Stall)> {
        let mut found = Vec::new();
        for (cookie, connection) in &mut self.connections {
            found.extend(stalls(connection).into_iter().map(|stall| (*cookie, stall)));
        }
        found
    }

    /// Returns the connections in the order of their sockets' cookies.
    pub fn connections(&self) -> impl Iterator<Item = (u64, &Connection)> {
        self.connections
            .iter()
            .map(|(cookie, connection)| (*cookie, connection))
    }

    /// Returns the connection with this cookie, to say whose it is.
    pub(crate) fn connection_mut(&mut self, cookie: u64) -> Option<&mut Connection> {
        self.connections.get_mut(&cookie)
    }

    /// Returns the connection with this cookie.
    pub fn connection(&self, cookie: u64) -> Option<&Connection> {
        self.connections.get(&cookie)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Reading;
    use crate::connection::tests::{ack, later};

    /// Reports a connection that sends and ends, at once or after a stall.
    fn passes(watcher: &mut Watcher, cookie: u64, stalled: bool) {
        let first = Reading { cookie, ..ack(0) };
        let end = later(&first, if stalled { 3000 } else { 10 }, Moment::End);
        watcher.take(&Record::Reading(first));
        let (_, happenings) = watcher.take(&Record::Reading(end));
        assert_eq!(happenings.last(), Some(&Happening::Ended));
        let kept = watcher.connection(cookie).expect("it is still to be seen");
        assert_eq!(kept.stalls.is_empty(), !stalled, "{:?}", kept.stalls);
    }

    #[test]
    fn of_a_hundred_thousand_ended_connections_the_stalled_are_kept() {
        let mut watcher = Watcher::new(0);
        for cookie in 1..=100_000 {
            passes(&mut watcher, cookie, cookie % 1000 == 7);
            assert!(watcher.connections.len() <= ENDED_MOST + 1);
        }
        assert_eq!(watcher.opened, 100_000);
        let stalled: Vec<u64> = watcher
            .connections()
            .filter(|(_, c)| !c.stalls.is_empty())
            .map(|(_, c)| c.number)
            .collect();
        let all: Vec<u64> = (1..=100_000).filter(|n| n % 1000 == 7).collect();
        assert_eq!(stalled, all);
    }

    #[test]
    fn ends_without_a_reading_are_bounded() {
        let mut watcher = Watcher::new(0);
        for cookie in 0..10_000 {
            let end = "10.1.0.1:1".parse().expect("an address");
            let ends = Ends {
                time_ns: 0,
                cookie,
                local: end,
                remote: end,
                socket: crate::SocketIds::default(),
            };
            watcher.take(&Record::Connection(ends));
        }
        assert_eq!(watcher.introduced.len(), INTRODUCED_MOST);
    }
}
