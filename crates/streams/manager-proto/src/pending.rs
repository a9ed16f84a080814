// SPDX-License-Identifier: MIT OR Apache-2.0
//! A coordinator's requests that wait for other managers.

use std::collections::BTreeSet;

use admission::{Grant, LinkBytes, StreamRequest};

use crate::message::Message;
use crate::record::Attempt;

/// Times that the wait for an answer doubles.
const MOST_DOUBLINGS: u32 = 4;

/// A manager on a route, with its links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hop {
    /// Name of the manager.
    pub manager: String,
    pub links: Vec<LinkBytes>,
    /// Digest of their segments.
    pub segments: u64,
}

/// What is under way.
#[allow(
    clippy::large_enum_variant,
    reason = "most that are under way reserve, and they are few at a time"
)]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Holds bytes hop by hop, then commits.
    Reserve {
        /// Who asks.
        owner: String,
        request: StreamRequest,
        /// What is granted in the end.
        grant: Grant,
        /// The managers, in the order of the route.
        hops: Vec<Hop>,
        /// Length of the lease, ns.
        lease_ns: u64,
        /// Length of the leases that begin later, if the talker does not say otherwise, ns.
        renewed_ns: u64,
        /// Number of hops that hold.
        held: usize,
        /// When all held; `None` before.
        committing_since_ns: Option<u64>,
    },
    /// Begins a lease anew.
    Refresh {
        /// Length of the lease, ns.
        lease_ns: u64,
        /// Number that tells late answers of an earlier refreshment.
        round: u64,
        /// When it was asked for.
        since_ns: u64,
    },
    /// Frees what an ended try has.
    Release,
}

/// The answer that a request waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// One manager is asked to hold.
    Holding,
    /// All are asked to commit.
    Committing,
    /// All are asked to refresh, in this round.
    Refreshing(u64),
    /// All are asked to release.
    Releasing,
}

/// A request that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pending {
    /// What is under way.
    pub operation: Operation,
    pub attempt: Attempt,
    /// Managers that have not answered.
    pub waits_for: BTreeSet<String>,
    /// Tickets of the commands that its end answers.
    pub tickets: Vec<u64>,
    /// When it is given up.
    pub deadline_ns: u64,
    /// When those who have not answered are asked once more.
    pub retry_at_ns: u64,
    /// Times that they were asked.
    pub tries: u32,
}

impl Pending {
    /// Returns what waits for nobody yet, until a deadline.
    pub fn new(
        operation: Operation,
        attempt: Attempt,
        tickets: Vec<u64>,
        deadline_ns: u64,
    ) -> Self {
        Self {
            operation,
            attempt,
            waits_for: BTreeSet::new(),
            tickets,
            deadline_ns,
            retry_at_ns: deadline_ns,
            tries: 0,
        }
    }

    /// Notes that all who have not answered are asked now, and once more after a while, which
    /// doubles each time.
    pub fn note_asked(&mut self, now_ns: u64, retry_ns: u64) {
        let wait_ns = retry_ns << self.tries.min(MOST_DOUBLINGS);
        self.retry_at_ns = now_ns.saturating_add(wait_ns);
        self.tries += 1;
    }

    /// Returns when it has something to do.
    pub fn next_wakeup_ns(&self) -> u64 {
        self.deadline_ns.min(self.retry_at_ns)
    }

    /// Returns what it waits for.
    pub fn phase(&self) -> Phase {
        match &self.operation {
            Operation::Reserve {
                committing_since_ns: None,
                ..
            } => Phase::Holding,
            Operation::Reserve { .. } => Phase::Committing,
            Operation::Refresh { round, .. } => Phase::Refreshing(*round),
            Operation::Release => Phase::Releasing,
        }
    }

    /// Returns the stream of a request to reserve.
    pub fn stream_id(&self) -> Option<&String> {
        match &self.operation {
            Operation::Reserve { request, .. } => Some(&request.stream_id),
            _ => None,
        }
    }

    /// Returns who asks to reserve.
    pub fn reserve_owner(&self) -> Option<&str> {
        match &self.operation {
            Operation::Reserve { owner, .. } => Some(owner),
            _ => None,
        }
    }

    /// Returns whether it is this request to reserve.
    pub fn is_reserve(&self, by: &str, wanted: &StreamRequest) -> bool {
        match &self.operation {
            Operation::Reserve { owner, request, .. } => owner == by && request == wanted,
            _ => false,
        }
    }

    /// Returns whether it is a refreshment to this lease.
    pub fn is_refresh(&self, wanted_ns: u64) -> bool {
        matches!(&self.operation, Operation::Refresh { lease_ns, .. } if *lease_ns == wanted_ns)
    }

    /// Returns the messages that ask all who have not answered.
    pub fn messages(&self, id: &str, hold_ns: u64) -> Vec<(String, Message)> {
        let (id, attempt) = (id.to_owned(), self.attempt);
        let message = match &self.operation {
            Operation::Reserve {
                request,
                hops,
                held,
                committing_since_ns: None,
                ..
            } => {
                let hop = hops.get(*held);
                Message::Hold {
                    id,
                    attempt,
                    stream_id: request.stream_id.clone(),
                    frames: request.talker.data_frame_specification.clone(),
                    segments: hop.map_or(0, |hop| hop.segments),
                    links: hop.map(|hop| hop.links.clone()).unwrap_or_default(),
                    hold_ns,
                }
            }
            Operation::Reserve { lease_ns, .. } => Message::Commit {
                id,
                attempt,
                lease_ns: *lease_ns,
            },
            Operation::Refresh {
                lease_ns, round, ..
            } => Message::Refresh {
                id,
                attempt,
                lease_ns: *lease_ns,
                round: *round,
            },
            Operation::Release => Message::Release { id, attempt },
        };
        let to = self.waits_for.iter();
        to.map(|manager| (manager.clone(), message.clone()))
            .collect()
    }
}
