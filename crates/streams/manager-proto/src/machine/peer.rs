// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a manager knows of another one, and how far its claims there are.

use units::time::NS_PER_S;

/// Wait for an answer before a page is sent once more, ns; it doubles each time.
const RETRY_NS: u64 = NS_PER_S / 2;
/// Shortest time between two passes that the other one has begun anew, ns.
const GAP_NS: u64 = NS_PER_S / 10;
/// Longest such wait, ns.
const LONGEST_RETRY_NS: u64 = 10 * NS_PER_S;

/// Another manager.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Peer {
    /// Its start, as far as this one knows.
    pub epoch: Option<u64>,
    /// All that it has here was claimed since this manager's start.
    pub has_claimed: bool,
    /// What it has claimed so far: the last id; `None`: nothing.
    pub claimed_to: Option<String>,
    /// The number that its claims need.
    pub nonce: Option<(u64, u64)>,
    /// When it was last asked for the number that claims there need.
    pub greeted_ns: u64,
    /// The claims that this manager makes there; `None`: they are made.
    pub pass: Option<Pass>,
}

/// A pass over all that a manager has at another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Pass {
    /// The number that the other one wants; `None`: it has to be asked for.
    pub nonce: Option<u64>,
    /// What is behind this id is still to be claimed.
    pub after: String,
    /// The page that was sent: its number, and the last id of its range.
    pub sent: Option<(u64, Option<String>)>,
    /// When it is sent, or sent once more.
    pub at_ns: u64,
    pub tries: u32,
    /// Something may fit later: another pass follows.
    pub is_again: bool,
}

impl Pass {
    /// Returns whether it waits for the answer of this number.
    pub fn is_of(&self, of_round: u64) -> bool {
        self.sent
            .as_ref()
            .is_some_and(|(round, _)| *round == of_round)
    }

    pub fn retry_at_ns(&mut self, now_ns: u64) -> u64 {
        let wait_ns = (RETRY_NS << self.tries.min(8)).min(LONGEST_RETRY_NS);
        self.tries += 1;
        now_ns.saturating_add(wait_ns)
    }
}

impl Peer {
    pub fn new(now_ns: u64) -> Self {
        Self {
            epoch: None,
            has_claimed: false,
            claimed_to: None,
            nonce: None,
            greeted_ns: 0,
            pass: Some(Pass {
                at_ns: now_ns,
                ..Pass::default()
            }),
        }
    }

    /// Begins the claims there anew. One that asks for that all the time is not answered all the time.
    pub fn claim_anew(&mut self, now_ns: u64) {
        self.pass = Some(Pass {
            at_ns: now_ns.max(self.greeted_ns.saturating_add(GAP_NS)),
            ..Pass::default()
        });
    }

    pub fn next_wakeup_ns(&self) -> Option<u64> {
        self.pass.as_ref().map(|pass| pass.at_ns)
    }
}
