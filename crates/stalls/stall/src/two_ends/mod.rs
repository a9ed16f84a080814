// SPDX-License-Identifier: MIT OR Apache-2.0
//! Two captures of the same connections, one from each end: pairs their packets, fits the two
//! clocks, places losses on the path, and proves causes that one capture alone cannot know.
//!
//! ```text
//! near.push(&segment)?;  // of the capture at one end
//! far.push(&segment)?;   // of the one at the other
//! let ends = TwoEnds::of(&near, &far)?;
//! ends.prove(&mut analysis_of_near, &analysis_of_far);
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
use rustc_hash::FxHashMap;
use serde::Serialize;
use units::time::{NS_PER_MS, NS_PER_S};

use crate::analysis::{Analysis, Connection, Stall};
use crate::direction::Direction;
use crate::units::seconds;
use crate::verdict::verdict;
pub use clock::Clocks;
pub use delay::{Delays, Interval};
use pairing::{Sent, fates, unique_pairs};
pub use path::Path;
pub use trace::{TooMany, Trace};
pub use unpaired::Unpaired;

/// Ends of so long a round trip are not on one machine.
const FAR_NS: u64 = 10 * NS_PER_MS;
/// Captures between which is a smaller part of the round trip are not at both ends.
const PLACE_PART: f64 = 8.0;

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
    /// leave no other. What a sender waited for shows where it sends: the stalls of data that the
    /// far end sends are taken from its capture, so either order of the captures gives the same.
    /// `near` and `far` are the analyses of the two; `near` has the results.
    pub fn prove(&mut self, near: &mut Analysis, far: &Analysis) {
        let [near_ns, far_ns] = [
            self.clocks.near(near.start_ns),
            self.clocks.as_near(far.start_ns),
        ];
        let mut at_one_place = 0u64;
        for (index, connection) in near.connections.iter_mut().enumerate() {
            if self.is_one_place(connection) {
                at_one_place += 1;
                continue;
            }
            let other = counterpart(connection, near_ns, far, far_ns);
            let was_patchy = connection.flows.iter().any(|flow| flow.unseen_bytes > 0);
            let mut all = Vec::new();
            for direction in [Direction::ToServer, Direction::ToClient] {
                let (from, to) = match direction {
                    Direction::ToServer => (connection.client, connection.server),
                    Direction::ToClient => (connection.server, connection.client),
                };
                let own = connection
                    .stalls
                    .iter()
                    .filter(|s| s.direction == direction);
                let paths = self.path(from, to).zip(self.path(to, from));
                let Some((data, back)) = paths else {
                    all.extend(own.map(|stall| (stall.clone(), None)));
                    continue;
                };
                let judged = |stall: &Stall, start_ns, at_sender, is_patchy| {
                    let mut stall = stall.clone();
                    let found = proof::prove(&stall, start_ns, (data, back), at_sender);
                    let shows = found.map(|found| {
                        let before = (stall.cause, stall.side);
                        let shows = found.shows.clone();
                        found.apply(&mut stall, is_patchy);
                        (before != (stall.cause, stall.side), shows)
                    });
                    (stall, shows)
                };
                match other.filter(|_| !data.from_near) {
                    None => {
                        let judged = own.map(|s| judged(s, near_ns, data.from_near, was_patchy));
                        all.extend(judged);
                    }
                    Some(other) => {
                        let is_patchy = other.flows.iter().any(|flow| flow.unseen_bytes > 0);
                        let sender = other.stalls.iter().filter(|stall| {
                            let of_server = stall.direction == Direction::ToClient;
                            (from == other.server) == of_server
                        });
                        let judged = sender.map(|s| judged(s, far_ns, true, is_patchy));
                        let here = numbers_here(data, back);
                        all.extend(judged.map(|(mut stall, shows)| {
                            move_here(&mut stall, far_ns - near_ns, direction, &here);
                            (stall, shows)
                        }));
                    }
                }
            }
            all.sort_by_key(|(stall, _)| (stall.start_ns, stall.direction, stall.duration_ns));
            for (place, (_, shows)) in all.iter_mut().enumerate() {
                let Some((changed, shows)) = shows.take() else {
                    continue;
                };
                self.proofs.push(Proof {
                    connection: index + 1,
                    stall: place + 1,
                    changed,
                    shows,
                });
            }
            connection.stalls = all.into_iter().map(|(stall, _)| stall).collect();
            connection.verdict = verdict(connection);
        }
        if at_one_place > 0 {
            near.notes.push(format!(
                "--other-end: of {at_one_place} connections both captures are from one place, as \
                 packets are in both at once although the ends are far from each other; expected \
                 one capture from each end, and nothing was proved of them"
            ));
        }
    }

    /// Returns whether both captures of a connection are from one place: what passes one passes the
    /// other at once, though the handshake took long. The way there and back between two captures
    /// does not depend on their clocks.
    fn is_one_place(&self, connection: &Connection) -> bool {
        let (client, server) = (connection.client, connection.server);
        let paths = self.path(client, server).zip(self.path(server, client));
        let least = paths.and_then(|(there, back)| there.delays.min_s.zip(back.delays.min_s));
        let rtts = [
            connection.vantage.server_rtt_ns,
            connection.vantage.client_rtt_ns,
        ];
        let rtt_ns: u64 = rtts.into_iter().flatten().sum();
        least.is_some_and(|(there_s, back_s)| {
            rtt_ns >= FAR_NS && (there_s + back_s) * PLACE_PART < rtt_ns as f64 / NS_PER_S as f64
        })
    }

    fn path(&self, from: Endpoint, to: Endpoint) -> Option<&Path> {
        let ends = |path: &Path| (path.from, path.to).cmp(&(from, to));
        let place = self.paths.binary_search_by(ends).ok()?; // they are in order
        self.paths.get(place)
    }
}

/// Returns the far capture's connection of the same two ends that was there at the same time.
fn counterpart<'a>(
    near: &Connection,
    near_ns: i64,
    far: &'a Analysis,
    far_ns: i64,
) -> Option<&'a Connection> {
    let span = |connection: &Connection, start_ns: i64| {
        let begin_ns = start_ns.saturating_add_unsigned(connection.start_ns);
        (
            begin_ns,
            begin_ns.saturating_add_unsigned(connection.duration_ns),
        )
    };
    let (begin_ns, end_ns) = span(near, near_ns);
    let shared_ns = |other: &&Connection| {
        let (from_ns, to_ns) = span(other, far_ns);
        to_ns.min(end_ns) - from_ns.max(begin_ns)
    };
    let ends = (near.client.min(near.server), near.client.max(near.server));
    let same = far.connections.iter().filter(|other| {
        (
            other.client.min(other.server),
            other.client.max(other.server),
        ) == ends
    });
    same.max_by_key(shared_ns)
}

/// Returns the numbers in the near capture of the packets of the far one.
fn numbers_here(data: &Path, back: &Path) -> FxHashMap<u64, u64> {
    let both = |sent: &Sent| Some((sent.packet.number, sent.number_there?.get()));
    let here = data.fates.sent.iter().filter_map(both);
    let there = back.fates.sent.iter().filter_map(both);
    let there = there.map(|(near, far)| (far, near));
    here.chain(there)
        .filter(|&(far, near)| far > 0 && near > 0)
        .collect()
}

/// Puts a stall of the far capture into the near one: its times, and of its evidence the packets
/// that the near capture has.
fn move_here(stall: &mut Stall, behind_ns: i64, direction: Direction, here: &FxHashMap<u64, u64>) {
    stall.start_ns = stall.start_ns.saturating_add_signed(behind_ns);
    stall.direction = direction;
    stall.evidence = stall
        .evidence
        .iter()
        .filter_map(|number| here.get(number).copied())
        .collect();
    stall.evidence.sort_unstable();
    stall.explanation = format!("in the other capture, at the sender: {}", stall.explanation);
}
