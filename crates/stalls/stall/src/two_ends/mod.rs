// SPDX-License-Identifier: MIT OR Apache-2.0
//! Two captures of the same connections, one from each end: pairs their packets, fits the two
//! clocks, places losses on the path, and proves causes that one capture alone cannot know.
//!
//! ```text
//! near.push(&segment)?;  // of the capture at one end
//! far.push(&segment)?;   // of the one at the other
//! let ends = TwoEnds::of(&near, &far)?;
//! ends.prove(&mut analysis_of_near);
//! ```
//!
//! Times are those of the near capture's clock. A packet may be cut up or joined on its way by
//! segmentation in the hosts' devices: data is paired by its bytes where packets differ.

mod clock;
mod delay;
mod pairing;
mod path;
mod proof;
mod trace;
mod unpaired;

use std::collections::BTreeMap;

use capture::segment::Endpoint;
use serde::Serialize;

use crate::analysis::Analysis;
use crate::direction::Direction;
use crate::units::seconds;
use crate::verdict::verdict;
pub use clock::Clocks;
pub use delay::{Delays, Interval};
use pairing::{fates, unique_pairs};
pub use path::Path;
pub use trace::{TooMany, Trace};
pub use unpaired::Unpaired;

/// What was proved of a stall.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Proof {
    /// Number of the connection, from 1, and of its stall.
    pub connection: usize,
    /// Number of the stall within the connection, from 1.
    pub stall: usize,
    /// Whether the cause is another one than that which the near capture alone gives.
    pub changed: bool,
    /// What both captures together show.
    pub shows: String,
}

/// Two captures, put together.
#[derive(Clone, Debug, Serialize)]
pub struct TwoEnds {
    /// The far clock, beside the near one.
    pub clocks: Clocks,
    /// Each direction of each connection that is in both captures.
    pub paths: Vec<Path>,
    /// What was proved.
    pub proofs: Vec<Proof>,
    /// Time of the near capture's first segment, ns since its epoch.
    #[serde(rename = "near_start_unix_s", serialize_with = "seconds")]
    near_start_ns: u64,
}

impl TwoEnds {
    /// Puts two captures together. Takes time in the number of packets, and memory for their
    /// fates.
    ///
    /// # Errors
    /// If the captures have nothing in common, or their clocks fit no line.
    pub fn of(near: &Trace, far: &Trace) -> Result<Self, Unpaired> {
        let mut common = BTreeMap::new();
        for (ends, packets) in near.directions() {
            if let Some(others) = far.direction(ends) {
                common.insert(*ends, unique_pairs(packets, others));
            }
        }
        common.retain(|_, pairs| !pairs.is_empty());
        if common.is_empty() {
            return Err(Unpaired::NothingCommon);
        }
        let near_hosts = clock::near_hosts(&common);
        let is_near = |host: &Endpoint| near_hosts.contains(&host.address);
        let clocks = Clocks::fit(&common, is_near)?;
        let (near_span, far_span) = (near.span(), far.span().map(|ns| clocks.as_near(ns)));
        let mut paths = Vec::new();
        for ends in common.keys() {
            let (Some(at_near), Some(at_far)) = (near.direction(ends), far.direction(ends)) else {
                continue;
            };
            let from_near = is_near(&ends.0);
            let far_times = |packets: &[trace::Packet]| -> Vec<i64> {
                packets.iter().map(|p| clocks.as_near(p.time_ns)).collect()
            };
            let near_times = |packets: &[trace::Packet]| -> Vec<i64> {
                packets.iter().map(|p| clocks.near(p.time_ns)).collect()
            };
            let fates = if from_near {
                fates(
                    (at_near, near_times(at_near)),
                    (at_far, far_times(at_far)),
                    far_span,
                    clocks.slack_ns(),
                )
            } else {
                fates(
                    (at_far, far_times(at_far)),
                    (at_near, near_times(at_near)),
                    near_span.map(|ns| clocks.near(ns)),
                    clocks.slack_ns(),
                )
            };
            paths.push(Path::of(*ends, from_near, fates));
        }
        Ok(Self {
            clocks,
            paths,
            proofs: Vec::new(),
            near_start_ns: near_span[0],
        })
    }

    /// Raises the confidence of stalls, and corrects their causes, where both captures together
    /// leave no other. `analysis` is of the near capture.
    pub fn prove(&mut self, analysis: &mut Analysis) {
        let start_ns = self.clocks.near(analysis.start_ns);
        for (index, connection) in analysis.connections.iter_mut().enumerate() {
            let (client, server) = (connection.client, connection.server);
            let is_patchy = connection.flows.iter().any(|flow| flow.unseen_bytes > 0);
            for (place, stall) in connection.stalls.iter_mut().enumerate() {
                let (from, to) = match stall.direction {
                    Direction::ToServer => (client, server),
                    Direction::ToClient => (server, client),
                };
                let (Some(data), Some(back)) = (self.path(from, to), self.path(to, from)) else {
                    continue;
                };
                if let Some(found) = proof::prove(stall, start_ns, data, back) {
                    let before = (stall.cause, stall.side);
                    let shows = found.shows.clone();
                    found.apply(stall, is_patchy);
                    let proof = Proof {
                        connection: index + 1,
                        stall: place + 1,
                        changed: before != (stall.cause, stall.side),
                        shows,
                    };
                    self.proofs.push(proof);
                }
            }
            if self
                .proofs
                .last()
                .is_some_and(|proof| proof.connection == index + 1)
            {
                connection.verdict = verdict(connection);
            }
        }
    }

    fn path(&self, from: Endpoint, to: Endpoint) -> Option<&Path> {
        let ends = |path: &Path| (path.from, path.to).cmp(&(from, to));
        let place = self.paths.binary_search_by(ends).ok()?; // they are in order
        self.paths.get(place)
    }
}
