// SPDX-License-Identifier: MIT OR Apache-2.0
//! What one call of `pspacer watch` has seen.

use anyhow::Result;
use stall::Stop;
use watch::{Connection, Happening, Record, Watcher};

use super::json::Stream;
use super::recording::Recording;

/// Something to tell of a connection.
#[derive(Clone, Debug)]
pub struct Told {
    /// Its number, from 1.
    pub number: u64,
    /// Its socket.
    pub cookie: u64,
    /// What.
    pub stop: Stop,
}

/// Connections, what is not told yet, and where each connection goes when it ends.
pub struct Session {
    watcher: Watcher,
    untold: Vec<Told>,
    recording: Option<Recording>,
    stream: Option<Stream>,
    /// Stops of all connections, those no longer kept among them.
    pub stops: u64,
    /// The process that was asked for, when it has ended.
    pub ended_process: Option<u32>,
    /// When it began; times are shown from here on.
    pub start_ns: u64,
    /// When it ended.
    pub end_ns: u64,
}

impl Session {
    /// Nothing seen.
    pub fn new(start_ns: u64, recording: Option<Recording>, stream: Option<Stream>) -> Self {
        Self {
            watcher: Watcher::new(start_ns),
            untold: Vec::new(),
            recording,
            stream,
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
    pub fn take(&mut self, record: &Record) -> Result<()> {
        let (cookie, happenings) = self.watcher.take(record);
        if let (Record::Reading(reading), Some(recording)) = (record, &mut self.recording) {
            if let Some(connection) = self.watcher.connection(cookie) {
                recording.reading(connection, reading, self.start_ns);
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
    fn write_out(&mut self, cookie: u64) -> Result<()> {
        let Some(connection) = self.watcher.connection(cookie) else {
            return Ok(());
        };
        let file = match &mut self.recording {
            Some(recording) => recording.finish(cookie, connection)?,
            None => None,
        };
        match &mut self.stream {
            Some(stream) => stream.connection(self.start_ns, cookie, connection, file),
            None => Ok(()),
        }
    }

    /// What time alone makes known.
    pub fn tick(&mut self, now_ns: u64) {
        for (cookie, stop) in self.watcher.tick(now_ns) {
            self.note(cookie, stop);
        }
    }

    /// Watching is over. Writes out the connections that have not ended, and the
    /// pictures; gives what was not told yet.
    ///
    /// # Errors
    /// When an output cannot be written.
    pub fn finish(&mut self, now_ns: u64) -> Result<Vec<Told>> {
        self.end_ns = now_ns;
        for (cookie, stop) in self.watcher.finish(now_ns) {
            self.note(cookie, stop);
        }
        let open: Vec<u64> = self
            .watcher
            .connections()
            .filter(|(_, connection)| connection.status(now_ns) != watch::Status::Ended)
            .map(|(cookie, _)| cookie)
            .collect();
        for cookie in open {
            self.write_out(cookie)?;
        }
        if let Some(recording) = &self.recording {
            recording.draw()?;
        }
        Ok(self.told())
    }

    /// What happened since this was asked last.
    pub fn told(&mut self) -> Vec<Told> {
        std::mem::take(&mut self.untold)
    }

    fn note(&mut self, cookie: u64, stop: Stop) {
        let connection = self.watcher.connection(cookie);
        self.stops += 1;
        self.untold.push(Told {
            number: connection.map_or(0, |connection| connection.number),
            cookie,
            stop,
        });
    }

    /// Connections that `--out` had no room for.
    pub fn unrecorded(&self) -> u64 {
        self.recording.as_ref().map_or(0, |r| r.left_out)
    }

    /// Where the connections are streamed to, for the end of it.
    pub fn stream(&mut self) -> Option<Stream> {
        self.stream.take()
    }

    /// Those that are kept, with their sockets.
    pub fn connections(&self) -> Vec<(u64, &Connection)> {
        let mut all: Vec<_> = self.watcher.connections().collect();
        all.sort_by_key(|(_, connection)| connection.number);
        all
    }

    /// Connections that were seen.
    pub fn opened(&self) -> u64 {
        self.watcher.opened
    }

    /// One of them.
    pub fn connection(&self, cookie: u64) -> Option<&Connection> {
        self.watcher.connection(cookie)
    }

    /// Records that were read.
    pub fn readings(&self) -> u64 {
        self.watcher.readings
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

#[cfg(test)]
mod tests {
    use watch::{CaState, Limits, Moment, Reading, TcpState};

    use super::*;

    fn reading(cookie: u64, time_ns: u64, moment: Moment) -> Record {
        Record::Reading(Reading {
            time_ns,
            cookie,
            lost: 0,
            moment,
            peer_data_ns: 0,
            una: 1000,
            nxt: 11_000,
            high_seq: 0,
            ack: 2000,
            segment: (0, 0),
            window_bytes: 65_535,
            cwnd: 10,
            ssthresh: 20,
            packets_out: 10,
            sacked_out: 0,
            lost_out: 0,
            retrans_out: 0,
            reordering: 3,
            sack: (0, 0),
            srtt_ns: 20_000_000,
            rto_ns: 220_000_000,
            mss_bytes: 1000,
            delivered: 1,
            dsacks: 0,
            limits: Limits {
                busy_ns: time_ns,
                window_ns: 0,
                buffer_ns: 0,
            },
            ca_state: CaState::Open,
            tcp_state: TcpState::Connected,
            backoff: 0,
            window_probes: 0,
            tail_probe: false,
        })
    }

    /// More connections than are kept end one after the other; one in a thousand
    /// stops before.
    #[test]
    fn what_ended_long_ago_is_recorded_and_counted() {
        let folder = tempfile::tempdir().unwrap();
        let into = folder.path().join("records");
        let recording = Recording::new(&into).unwrap();
        let mut session = Session::new(0, Some(recording), None);
        for cookie in 1..=10_000 {
            let end_ms = if cookie % 1000 == 1 { 3000 } else { 10 };
            let take = |session: &mut Session, record| session.take(&record).unwrap();
            take(&mut session, reading(cookie, 0, Moment::Ack));
            take(
                &mut session,
                reading(cookie, end_ms * 1_000_000, Moment::End),
            );
        }
        session.finish(4_000_000_000).unwrap();
        assert_eq!((session.opened(), session.stops), (10_000, 10));
        assert_eq!(session.unrecorded(), 0);
        assert!(session.connections().len() < 5000);
        for number in [1, 9_001, 10_000] {
            let table = into.join(format!("flow-{number}.epool.csv"));
            assert_eq!(std::fs::read_to_string(table).unwrap().lines().count(), 2);
        }
    }
}
