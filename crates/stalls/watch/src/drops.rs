// SPDX-License-Identifier: MIT OR Apache-2.0
//! The segments of a connection that this host dropped.

use std::collections::{BTreeMap, VecDeque};

use crate::reasons::Reasons;
use crate::records::Dropped;

/// Drops that are kept for stalls to come.
const RECENT_MOST: usize = 1024;

/// Counts of drops by reason, and the last ones with their times.
#[derive(Clone, Debug, Default)]
pub(crate) struct Drops {
    recent: VecDeque<Dropped>,
    all: BTreeMap<u32, u64>,
    pub(crate) reasons: Reasons,
}

impl Drops {
    pub(crate) fn note(&mut self, dropped: &Dropped) {
        *self.all.entry(dropped.reason).or_default() += u64::from(dropped.segments);
        if self.recent.len() == RECENT_MOST {
            self.recent.pop_front();
        }
        self.recent.push_back(*dropped);
    }

    /// Returns the segments dropped so far, by the reasons' names.
    pub(crate) fn all(&self) -> Vec<(String, u64)> {
        self.named(&self.all)
    }

    fn named(&self, counts: &BTreeMap<u32, u64>) -> Vec<(String, u64)> {
        let named = |(reason, count): (&u32, &u64)| (self.reasons.name(*reason), *count);
        counts.iter().map(named).collect()
    }

    /// Says what was dropped in a time, as the end of an explanation; empty if nothing was.
    pub(crate) fn sentence(&self, from_ns: u64, to_ns: u64) -> String {
        let mut counts = BTreeMap::new();
        let within = |dropped: &&Dropped| (from_ns..=to_ns).contains(&dropped.time_ns);
        for dropped in self.recent.iter().filter(within) {
            *counts.entry(dropped.reason).or_default() += u64::from(dropped.segments);
        }
        let named: Vec<String> = match self.named(&counts).as_slice() {
            [] => return String::new(),
            [(name, _)] => vec![name.clone()],
            more => more
                .iter()
                .map(|(name, count)| format!("{count} {name}"))
                .collect(),
        };
        let sum: u64 = counts.values().sum();
        let segments = match sum {
            1 => "1 segment was".to_owned(),
            more => format!("{} segments were", units::display::count(more)),
        };
        format!("; {segments} dropped on this host: {}", named.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_within_a_time() {
        let mut drops = Drops::default();
        let mut note = |time_ns, reason, segments| {
            drops.note(&Dropped {
                time_ns,
                cookie: 1,
                reason,
                segments,
            });
        };
        note(10, 6, 2);
        note(20, 6, 1);
        note(30, 7, 4);
        for (from, to, expected) in [
            (0, 9, ""),
            (11, 20, "; 1 segment was dropped on this host: reason 0x6"),
            (10, 20, "; 3 segments were dropped on this host: reason 0x6"),
            (
                20,
                40,
                "; 5 segments were dropped on this host: 1 reason 0x6, 4 reason 0x7",
            ),
        ] {
            assert_eq!(drops.sentence(from, to), expected, "{from} to {to}");
        }
        let all = [("reason 0x6".to_owned(), 3), ("reason 0x7".to_owned(), 4)];
        assert_eq!(drops.all(), all);
    }

    #[test]
    fn the_last_are_kept_and_all_are_counted() {
        let mut drops = Drops::default();
        for time_ns in 0..2000 {
            drops.note(&Dropped {
                time_ns,
                cookie: 1,
                reason: 6,
                segments: 1,
            });
        }
        assert_eq!(drops.all(), [("reason 0x6".to_owned(), 2000)]);
        let kept = "; 1,024 segments were dropped on this host: reason 0x6";
        assert_eq!(drops.sentence(0, 2000), kept);
    }
}
