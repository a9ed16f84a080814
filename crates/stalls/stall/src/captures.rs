// SPDX-License-Identifier: MIT OR Apache-2.0
//! Analyses captures, and says how well they could be read.

use capture::encapsulation::Encapsulations;
use capture::error::Damage;
use capture::process::Processes;
use capture::segments::{Counts, Segments};
use capture::selector::Selector;

use crate::shards::analyse;
use crate::two_ends::{TooMany, Trace, TwoEnds};
use crate::{
    Analysis, CauseTotal, Confidence, Connection, HostPairTotal, Options, SideTotal, by_cause,
    by_host_pair, by_side,
};

/// The results of some captures.
pub struct CaptureResults {
    /// Connections and their stalls.
    pub analysis: Analysis,
    /// Numbers of packets by their type.
    pub counts: Counts,
    /// Damage of the files, each with the name of the file.
    pub damages: Vec<(String, Damage)>,
    /// What the packets had in place of TCP, if no segment was found.
    pub insides: String,
    /// The VLANs and tunnels of the connections.
    pub encapsulations: Encapsulations,
    /// The processes that comments of packets name.
    pub processes: Processes,
    /// Names of the files.
    pub files: Vec<String>,
    /// Indices of the wanted connections, the worst first. Sums are over all of them.
    pub shown: Vec<usize>,
    /// What a capture from the other end adds, if there is one.
    pub two_ends: Option<TwoEnds>,
    /// Most of them that are listed; `None`: each output has a limit of its own.
    pub most: Option<usize>,
}

/// Reads segments to their end and analyses them. `min_stall_ns` is the shortest stall that
/// counts, in place of what is long for the round trip, where one was chosen; `history_of` the connection whose events are kept.
pub fn read(
    mut segments: Segments<'_>,
    files: Vec<String>,
    min_stall_ns: Option<u64>,
    history_of: Option<usize>,
) -> CaptureResults {
    let options = Options {
        history_of,
        ..Options::of_stalls_from(min_stall_ns)
    };
    let mut analyser = analyse(&mut segments, options);
    if let Some(most) = confidence_most(segments.counts()) {
        analyser.believe_at_most(most);
    }
    CaptureResults {
        analysis: analyser.finish(),
        counts: segments.counts().clone(),
        damages: segments.damages().to_vec(),
        processes: segments.processes().clone(),
        insides: segments.insides(),
        encapsulations: segments.into_encapsulations(),
        files,
        shown: Vec::new(),
        two_ends: None,
        most: None,
    }
}

/// Returns what is believed at most of captures that lost packets or contradict themselves.
pub(crate) fn confidence_most(counts: &Counts) -> Option<Confidence> {
    if counts.beyond_second > 0 {
        Some(Confidence::Low)
    } else {
        (counts.dropped > 0).then_some(Confidence::Medium)
    }
}

/// Reads segments to their end and keeps what pairing them with another capture needs.
///
/// # Errors
/// If there are too many to hold in memory.
pub fn trace(mut segments: Segments<'_>) -> Result<Trace, TooMany> {
    let mut trace = Trace::default();
    while let Some(segment) = segments.next() {
        trace.push(&segment)?;
    }
    Ok(trace)
}

/// Returns the indices of the wanted connections, sorted by how long they stalled and what that
/// cost, then in order of their first packets.
pub fn worst_first(analysis: &Analysis, wanted: &[Selector]) -> Vec<usize> {
    let mut shown: Vec<_> = (0..analysis.connections.len())
        .filter(|i| {
            let connection = &analysis.connections[*i];
            wanted.is_empty()
                || wanted
                    .iter()
                    .any(|w| w.matches_connection(i + 1, connection.client, connection.server))
        })
        .collect();
    shown.sort_by_cached_key(|i| {
        let stalls = &analysis.connections[*i].stalls;
        let stalled_ns: u64 = stalls.iter().map(|s| s.duration_ns).sum();
        let cost: u64 = stalls.iter().filter_map(|s| s.bytes_cost).sum();
        std::cmp::Reverse((stalled_ns, cost))
    });
    shown
}

impl CaptureResults {
    fn wanted(&self) -> impl Iterator<Item = &Connection> + Clone {
        let connections = &self.analysis.connections;
        self.shown.iter().filter_map(|i| connections.get(*i))
    }

    /// Returns the indices of the connections to list: of the wanted ones the worst.
    pub fn listed(&self) -> &[usize] {
        let most = self.most.unwrap_or(usize::MAX).min(self.shown.len());
        &self.shown[..most]
    }

    /// Returns the stalls of the wanted connections by cause, the most time lost first.
    pub fn by_cause(&self) -> Vec<CauseTotal> {
        by_cause(self.wanted())
    }

    /// Returns the stalls of the wanted connections by side, the most time lost first.
    pub fn by_side(&self) -> Vec<SideTotal> {
        by_side(self.wanted())
    }

    /// Returns the stalls of the wanted connections by the hosts they are between, the most time
    /// lost first.
    pub fn by_host_pair(&self) -> Vec<HostPairTotal> {
        by_host_pair(self.wanted())
    }

    /// Returns what was not read, or not well, by file.
    pub fn notes(&self) -> impl Iterator<Item = String> {
        let damages = self.damages.iter().map(|(name, d)| format!("{name}: {d}"));
        let counts = self.counts.notes().into_iter();
        let analysis = self.analysis.notes.iter().cloned();
        damages.chain(counts).chain(analysis)
    }
}
