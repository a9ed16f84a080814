// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the path of a stream over segments.

use std::collections::VecDeque;

use super::model::{Hop, Segment};

/// Returns the shortest path over segments, of equally short ones the first in the order of
/// the file; `None` if there is none.
pub(super) fn shortest_path(
    segments: &[Segment],
    hosts: usize,
    from: usize,
    to: usize,
) -> Option<Vec<Hop>> {
    let mut reached: Vec<Option<Hop>> = vec![None; hosts];
    let mut queue = VecDeque::from([from]);
    while let Some(host) = queue.pop_front() {
        let mine = segments.iter().enumerate();
        for (segment, of) in mine.filter(|(_, s)| s.hosts.contains(&host)) {
            for next in of.hosts.iter().copied() {
                if next != from && reached[next].is_none() {
                    reached[next] = Some(Hop {
                        segment,
                        from: host,
                        to: next,
                    });
                    queue.push_back(next);
                }
            }
        }
    }
    let mut path = Vec::new();
    let mut host = to;
    while host != from {
        let hop = reached[host]?;
        path.push(hop);
        host = hop.from;
    }
    path.reverse();
    Some(path)
}
