// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds why QUIC transfers stalled, from the qlog that one of their ends wrote.
//!
//! [`parse`] reads events one by one (draft-ietf-quic-qlog-main-schema and -quic-events, their
//! current names and those of qlog 0.3), `judge` follows a connection through them.

mod answers;
mod causes;
pub mod connection;
pub mod event;
pub mod json;
mod judge;
pub mod parse;
mod streams;

use std::collections::HashMap;
use std::io::Read;

use crate::by_cause::{CauseTotal, of_stalls};
pub use connection::{QuicConnection, Vantage};
use event::{Event, What};
use judge::Judge;
use parse::{Head, Sink};

/// The results of some qlogs.
#[derive(Clone, Debug, Default)]
pub struct QlogResults {
    /// Names of the files.
    pub files: Vec<String>,
    /// The traces, in the order of the files.
    pub connections: Vec<QuicConnection>,
    /// What was not read, by file.
    pub notes: Vec<String>,
}

/// Most traces that are read of one file.
const TRACES_MOST: usize = 10_000;

/// The round trip that an end takes for known at first is 333 ms (RFC 9002, 6.2.2): a log that has
/// .333 states seconds where milliseconds are due.
const FIRST_RTT_NS: u64 = 333_000;

/// Judges the traces of one file.
struct Judges {
    min_stall_ns: Option<u64>,
    /// The connections of the trace, with the names that its events have, in their order; and
    /// where each is.
    current: Vec<(Option<String>, Judge)>,
    places: HashMap<Option<String>, usize>,
    /// Whether the trace has round trips, and states them in seconds.
    has_rtt: bool,
    is_in_seconds: bool,
    done: Vec<QuicConnection>,
    left_out: u64,
}

impl Sink for Judges {
    fn begin(&mut self) {
        self.current.clear();
        self.places.clear();
        (self.has_rtt, self.is_in_seconds) = (false, false);
    }

    fn event(&mut self, mut event: Event) {
        if let What::Metrics(metrics) = &mut event.what {
            if let Some(rtt_ns) = metrics.smoothed_rtt_ns {
                self.is_in_seconds |= !self.has_rtt && rtt_ns == FIRST_RTT_NS;
                self.has_rtt = true;
            }
            let unit = if self.is_in_seconds { 1000 } else { 1 };
            for rtt_ns in [&mut metrics.smoothed_rtt_ns, &mut metrics.min_rtt_ns] {
                *rtt_ns = rtt_ns.map(|ns| ns.saturating_mul(unit));
            }
        }
        let group = &event.group;
        let index = match self.places.get(group) {
            Some(index) => *index,
            None if self.done.len() + self.current.len() >= TRACES_MOST => {
                self.left_out += 1;
                return;
            }
            None => {
                let judge = Judge::new(self.min_stall_ns);
                self.current.push((group.clone(), judge));
                self.places.insert(group.clone(), self.current.len() - 1);
                self.current.len() - 1
            }
        };
        if let Some((_, judge)) = self.current.get_mut(index) {
            judge.event(event);
        }
    }

    fn end(&mut self, head: &Head) {
        let mut all = std::mem::take(&mut self.current);
        // A client names its first packets by an ID that the server replaces, and what belongs to
        // no connection has no name.
        if all.len() > 1 {
            all.retain(|(_, judge)| judge.is_connection());
        }
        let is_one = all.len() == 1;
        for (name, judge) in all {
            let mut connection = judge.finish(head);
            if let (false, Some(name)) = (is_one, name) {
                connection.name = name;
            }
            self.done.push(connection);
        }
    }
}

impl QlogResults {
    /// Reads one more qlog, plain or packed. One that is broken further on is used up to that
    /// place. `min_stall_ns` is the shortest stall that counts, in place of what is long for the
    /// round trip.
    ///
    /// # Errors
    /// If it has no event that can be read.
    pub fn read(
        &mut self,
        name: &str,
        source: impl Read,
        min_stall_ns: Option<u64>,
    ) -> anyhow::Result<()> {
        let mut judges = Judges {
            min_stall_ns,
            current: Vec::new(),
            places: HashMap::new(),
            has_rtt: false,
            is_in_seconds: false,
            done: Vec::new(),
            left_out: 0,
        };
        let outcome = parse::read(source, &mut judges);
        let events: u64 = judges.done.iter().map(|c| c.events).sum();
        match outcome {
            Err(problem) if events == 0 => anyhow::bail!("{name}: {problem}"),
            Err(problem) => self.notes.push(format!(
                "{name}: only the first {events} events are used: {problem}"
            )),
            Ok(()) if events == 0 => anyhow::bail!("{name}: no event in this qlog"),
            Ok(()) => {}
        }
        if judges.left_out > 0 {
            let left_out = judges.left_out;
            self.notes.push(format!(
                "{name}: {left_out} events of more connections were left out"
            ));
        }
        self.files.push(name.to_owned());
        self.connections.append(&mut judges.done);
        Ok(())
    }

    /// Returns the stalls by cause and side, the most time lost first.
    pub fn by_cause(&self) -> Vec<CauseTotal> {
        of_stalls(self.connections.iter().map(|c| c.stalls.as_slice()))
    }
}
