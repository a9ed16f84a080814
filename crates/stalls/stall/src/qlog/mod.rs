// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds why QUIC transfers stalled, from the qlog that one of their ends wrote.
//!
//! [`parse`] reads events one by one (draft-ietf-quic-qlog-main-schema and -quic-events, their
//! current names and those of qlog 0.3), `judge` follows a connection through them.

pub mod connection;
pub mod event;
pub mod json;
mod judge;
pub mod parse;

use std::io::Read;

use crate::by_cause::{CauseTotal, of_stalls};
pub use connection::{QuicConnection, Vantage};
use event::Event;
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

/// Judges the traces of one file.
struct Judges {
    min_stall_ns: Option<u64>,
    current: Option<Judge>,
    done: Vec<QuicConnection>,
    left_out: u64,
}

impl Sink for Judges {
    fn begin(&mut self) {
        self.current = (self.done.len() < TRACES_MOST).then(|| Judge::new(self.min_stall_ns));
        self.left_out += u64::from(self.current.is_none());
    }

    fn event(&mut self, event: Event) {
        if let Some(judge) = &mut self.current {
            judge.event(event);
        }
    }

    fn end(&mut self, head: &Head) {
        self.done
            .extend(self.current.take().map(|j| j.finish(head)));
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
            current: None,
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
            self.notes
                .push(format!("{name}: {left_out} more traces were left out"));
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
