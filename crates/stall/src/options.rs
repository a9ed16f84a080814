// SPDX-License-Identifier: MIT OR Apache-2.0
//! What can be chosen of an analysis.

/// How closely to look, and how much to keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// No pause shorter than this is a stop, however short the round trip.
    pub min_stop_ns: u64,
    /// The same where the round trip is not known.
    pub min_stop_blind_ns: u64,
    /// Stops kept of one direction of a connection; of more, the longest.
    pub stops_most: usize,
    /// Segments under way that are remembered of one direction.
    pub outstanding_most: usize,
    /// Ranges reported by SACK that are remembered of one direction.
    pub reported_most: usize,
    /// Segments under way that one retransmission is noted of.
    pub repeated_most: usize,
    /// The connection, by its index in [`Analysis::connections`], whose
    /// [`History`] is wanted: a second reading of the same capture.
    ///
    /// [`Analysis::connections`]: crate::Analysis::connections
    /// [`History`]: crate::History
    pub history_of: Option<usize>,
    /// Events that the history keeps; of more, every second ordinary one goes.
    pub history_most: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            min_stop_ns: 20_000_000,
            min_stop_blind_ns: 200_000_000,
            stops_most: 1000,
            outstanding_most: 1 << 18,
            // One hole in sixty segments of the largest flight.
            reported_most: 4096,
            // A full segment that repeats others of one byte each has fewer.
            repeated_most: 2048,
            history_of: None,
            history_most: 400_000,
        }
    }
}
