// SPDX-License-Identifier: MIT OR Apache-2.0
//! The options of an analysis.

/// How closely the analysis looks, and how much it keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Shortest pause that counts as a stall, however short the round trip.
    pub min_stall_ns: u64,
    /// Shortest pause that counts as a stall where the round trip is not known.
    pub min_stall_blind_ns: u64,
    /// Stalls that took less than this are left out of the results, whatever their kind;
    /// `None`: all are in them.
    pub least_ns: Option<u64>,
    /// Stalls kept of one direction of a connection; of more, the longest are kept.
    pub stalls_most: usize,
    /// Outstanding segments that are remembered of one direction.
    pub outstanding_most: usize,
    /// Ranges reported by SACK that are remembered of one direction.
    pub reported_most: usize,
    /// Outstanding segments that one retransmission can be noted for.
    pub repeated_most: usize,
    /// Index in [`Analysis::connections`] of the connection whose [`History`] is wanted. The
    /// index is known from a first reading, so this takes a second reading of the same capture.
    ///
    /// [`Analysis::connections`]: crate::Analysis::connections
    /// [`History`]: crate::History
    pub history_of: Option<usize>,
    /// Events that the history keeps; of more, it drops every second ordinary one.
    pub history_most: usize,
}

impl Options {
    /// Returns the options where `least_ns` is the shortest stall that counts, in place of what is
    /// long for the round trip; `None`: the defaults.
    pub fn of_stalls_from(least_ns: Option<u64>) -> Self {
        let usual = Self::default();
        Self {
            min_stall_ns: least_ns.unwrap_or(usual.min_stall_ns),
            min_stall_blind_ns: least_ns.unwrap_or(usual.min_stall_blind_ns),
            least_ns,
            ..usual
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            min_stall_ns: 20_000_000,
            min_stall_blind_ns: 200_000_000,
            least_ns: None,
            stalls_most: 1000,
            outstanding_most: 1 << 18,
            // The largest flight may have one hole in sixty segments.
            reported_most: 4096,
            // A full segment that repeats others of one byte each repeats fewer than these.
            repeated_most: 2048,
            history_of: None,
            history_most: 400_000,
        }
    }
}
