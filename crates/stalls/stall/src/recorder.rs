// SPDX-License-Identifier: MIT OR Apache-2.0
//! Keeps a history in bounded memory by thinning its most frequent events.

use crate::history::{Event, History, What};

/// Fills a [`History`].
#[derive(Clone, Debug)]
pub(crate) struct Recorder {
    history: History,
    most: usize,
    seen: u64,
}

/// Returns whether an event is new data or an acknowledgement: these are thinned first.
fn is_ordinary(event: &Event) -> bool {
    matches!(event.what, What::New { .. } | What::Ack { .. })
}

impl Recorder {
    pub(crate) fn new(most: usize) -> Self {
        Self {
            history: History {
                events: Vec::new(),
                one_of: 1,
            },
            most: most.max(16),
            seen: 0,
        }
    }

    pub(crate) fn push(&mut self, event: Event) {
        if is_ordinary(&event) {
            self.seen += 1;
            if self.seen % self.history.one_of != 0 {
                return;
            }
        }
        if self.history.events.len() >= self.most {
            self.thin();
        }
        self.history.events.push(event);
    }

    fn thin(&mut self) {
        let mut ordinary = 0u64;
        self.history.events.retain(|event| {
            let counts = is_ordinary(event);
            ordinary += u64::from(counts);
            !counts || ordinary % 2 == 0
        });
        self.history.one_of = self.history.one_of.saturating_mul(2);
        if self.history.events.len() > self.most / 4 * 3 {
            // The other events alone are too many.
            let mut number = 0u64;
            self.history.events.retain(|_| {
                number += 1;
                number % 2 == 0
            });
        }
    }

    pub(crate) fn finish(mut self, start_ns: u64) -> History {
        for event in &mut self.history.events {
            event.time_ns = event.time_ns.saturating_sub(start_ns);
        }
        self.history
    }
}
