// SPDX-License-Identifier: MIT OR Apache-2.0
//! The streams of one direction: how far each was sent, and how far the receiver lets it.

use std::collections::{HashMap, HashSet};

/// Streams that are remembered of each direction.
const STREAMS_MOST: usize = 1 << 16;

/// What was sent in one direction, and the limits that the receiver set (RFC 9000, 4).
#[derive(Debug, Default)]
pub(super) struct Streams {
    /// The end of the data of each stream.
    ends: HashMap<u64, u64>,
    total: u64,
    limit: Option<u64>,
    limits: HashMap<u64, u64>,
    limit_at_first: Option<u64>,
    /// Streams that are at their limits.
    full: HashSet<u64>,
}

impl Streams {
    /// Sets the limits of the receiver's transport parameters.
    pub(super) fn begin(&mut self, all: Option<u64>, each: Option<u64>) {
        self.limit = all.or(self.limit);
        self.limit_at_first = each.or(self.limit_at_first);
    }

    pub(super) fn is_known(&self, id: u64) -> bool {
        self.ends.contains_key(&id)
    }

    /// Notes data; returns whether some of it is new.
    pub(super) fn data(&mut self, id: u64, offset: Option<u64>, bytes: u64) -> bool {
        let known = self.ends.get(&id).copied();
        if known.is_none() && self.ends.len() >= STREAMS_MOST {
            return true;
        }
        let end = match offset {
            Some(offset) => offset.saturating_add(bytes),
            // Without an offset nothing tells what is repeated.
            None => known.unwrap_or(0).saturating_add(bytes),
        };
        let before = known.unwrap_or(0);
        let is_new = known.is_none() || end > before;
        if is_new {
            self.ends.insert(id, end);
            self.total = self.total.saturating_add(end - before);
            self.note_full(id);
        }
        is_new
    }

    /// Notes credit for a stream, or for all of them together.
    pub(super) fn credit(&mut self, id: Option<u64>, limit: Option<u64>) {
        let Some(limit) = limit else {
            return;
        };
        match id {
            None => self.limit = Some(limit.max(self.limit.unwrap_or(0))),
            Some(id) if self.limits.len() < STREAMS_MOST || self.limits.contains_key(&id) => {
                let of = self.limits.entry(id).or_default();
                *of = limit.max(*of);
                self.note_full(id);
            }
            Some(_) => {}
        }
    }

    fn note_full(&mut self, id: u64) {
        let limit = self.limits.get(&id).copied().or(self.limit_at_first);
        let end = self.ends.get(&id).copied();
        if end.is_some() && end == limit {
            self.full.insert(id);
        } else {
            self.full.remove(&id);
        }
    }

    /// Returns whether not a byte more may be sent: of one of the streams, or of all.
    pub(super) fn is_full(&self) -> bool {
        self.total > 0 && (self.limit == Some(self.total) || !self.full.is_empty())
    }
}
