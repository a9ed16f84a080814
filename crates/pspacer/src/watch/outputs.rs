// SPDX-License-Identifier: MIT OR Apache-2.0
//! The outputs of readings and connections: `--out` and `--json`.

use anyhow::Result;
use watch::json::Stream;
use watch::session::Sink;
use watch::{Connection, Reading};

use crate::output::Out;
use crate::watch::recording::Recording;

/// The connections that one call of `pspacer watch` has seen.
pub type Session = watch::session::Session<Outputs>;

/// The outputs that the user asked for.
#[derive(Default)]
pub struct Outputs {
    /// The recording of `--out`.
    pub recording: Option<Recording>,
    /// The stream of `--json`.
    pub stream: Option<Stream<Out>>,
}

impl Outputs {
    /// Returns the number of connections for which `--out` had no room.
    pub fn unrecorded(&self) -> u64 {
        self.recording.as_ref().map_or(0, |r| r.recorder.left_out)
    }
}

impl Sink for Outputs {
    type Error = anyhow::Error;

    fn reading(&mut self, connection: &Connection, reading: &Reading, start_ns: u64) {
        if let Some(recording) = &mut self.recording {
            recording.recorder.reading(connection, reading, start_ns);
        }
    }

    fn ended(&mut self, start_ns: u64, cookie: u64, connection: &Connection) -> Result<()> {
        let file = match &mut self.recording {
            Some(recording) => recording.finish(cookie, connection)?,
            None => None,
        };
        match &mut self.stream {
            Some(stream) => Ok(stream.connection(start_ns, cookie, connection, file)?),
            None => Ok(()),
        }
    }

    fn finish(&mut self) -> Result<()> {
        match &self.recording {
            Some(recording) => recording.draw(),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use watch::{CaState, Limits, Moment, Record, TcpState};

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

    /// More connections end one after the other than are kept. One in a thousand stalls before
    /// it ends.
    #[test]
    fn what_ended_long_ago_is_recorded_and_counted() {
        let folder = tempfile::tempdir().unwrap();
        let into = folder.path().join("records");
        let recording = Recording::new(&into).unwrap();
        let mut session = Session::new(
            0,
            Outputs {
                recording: Some(recording),
                stream: None,
            },
        );
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
        assert_eq!((session.opened(), session.stalls), (10_000, 10));
        assert_eq!(session.sink.unrecorded(), 0);
        assert!(session.connections().len() < 5000);
        for number in [1, 9_001, 10_000] {
            let table = into.join(format!("flow-{number}.epool.csv"));
            assert_eq!(std::fs::read_to_string(table).unwrap().lines().count(), 2);
        }
    }
}
