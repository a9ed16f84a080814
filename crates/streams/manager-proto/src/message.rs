// SPDX-License-Identifier: MIT OR Apache-2.0
//! What managers say to each other.
//!
//! A reservation is held, then committed. The manager that a talker asks, its coordinator, asks
//! the manager of each segment along the route to hold the bytes, one after the other. When all
//! do, it asks all to commit. An [`Attempt`] is the identity of one of the coordinator's tries: a
//! message is about that try alone.
//!
//! After a start, and after a message without an answer, a coordinator claims what it has at
//! another manager, page by page ([`Message::Hello`], [`Message::Claim`]). What it does not claim is freed there.

use admission::{FrameSpecification, LinkBytes, Refusal};
use serde::{Deserialize, Serialize};

use crate::record::Attempt;

/// Bytes that a coordinator has at another manager.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// Id of the request.
    pub id: String,
    pub attempt: Attempt,
    /// What is granted; `None`: the try is under way.
    pub granted: Option<Claimed>,
}

/// What a coordinator has granted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claimed {
    /// Name of the stream.
    pub stream_id: String,
    /// Which frames are the stream's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub frames: Vec<FrameSpecification>,
    /// The receiver's links, and the bytes of each of their periods.
    pub links: Vec<LinkBytes>,
    /// Length of the lease, ns.
    pub lease_ns: u64,
    pub left_ns: u64,
}

/// A message between managers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Message {
    /// Asks for bytes of links, until they are committed or `hold_ns` have passed.
    Hold {
        /// Id of the request.
        id: String,
        attempt: Attempt,
        /// Name of the stream, unique in the network.
        stream_id: String,
        /// Which frames are the stream's.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        frames: Vec<FrameSpecification>,
        /// Digest of the sender's description of the links' segments: the receiver's must be the
        /// same.
        segments: u64,
        /// The receiver's links, and the bytes of each of their periods.
        links: Vec<LinkBytes>,
        /// Longest time without a commitment, ns.
        hold_ns: u64,
    },
    /// Answers `Hold`: the bytes are held.
    Held {
        /// Id of the request.
        id: String,
        attempt: Attempt,
    },
    /// Answers `Hold`: nothing is held.
    Refused {
        /// Id of the request.
        id: String,
        attempt: Attempt,
        refusal: Refusal,
    },
    /// Answers `Hold`: another start of the coordinator has bytes for this id.
    Conflict {
        /// Id of the request.
        id: String,
        attempt: Attempt,
        /// The try that has bytes.
        has: Attempt,
    },
    /// Answers `Hold`: nothing is held now, and may be later.
    Later {
        /// Id of the request.
        id: String,
        attempt: Attempt,
        /// Why, in a sentence.
        why: String,
    },
    /// Turns held bytes into a reservation with a lease.
    Commit {
        /// Id of the request.
        id: String,
        attempt: Attempt,
        /// Length of the lease, ns, from when the message arrives.
        lease_ns: u64,
    },
    /// Answers `Commit`.
    Committed {
        /// Id of the request.
        id: String,
        attempt: Attempt,
    },
    /// Begins the lease anew.
    Refresh {
        /// Id of the request.
        id: String,
        attempt: Attempt,
        /// Length of the lease, ns, from when the message arrives.
        lease_ns: u64,
        /// Number of the refreshment, which tells late answers.
        round: u64,
    },
    /// Answers `Refresh`.
    Refreshed {
        /// Id of the request.
        id: String,
        attempt: Attempt,
        /// Number of the refreshment.
        round: u64,
    },
    /// Answers `Commit` and `Refresh`: nothing is held any more.
    Gone {
        /// Id of the request.
        id: String,
        attempt: Attempt,
    },
    /// Frees what is held or reserved.
    Release {
        /// Id of the request.
        id: String,
        attempt: Attempt,
    },
    /// Answers `Release`.
    Released {
        /// Id of the request.
        id: String,
        attempt: Attempt,
    },
    /// Asks for the number that claims need: a claim of an earlier start that comes late has another.
    Hello {
        /// Number of the question, which tells late answers.
        round: u64,
    },
    /// Answers `Hello`.
    Welcome {
        /// Number of the question.
        round: u64,
        /// The number that claims need until the next `Hello`.
        nonce: u64,
    },
    /// Claims all that the sender has at the receiver, of the ids in a range. The receiver frees
    /// what it has for the sender in that range and is not claimed, apart from tries that began
    /// later.
    Claim {
        /// Number of the page, which tells late answers.
        round: u64,
        /// The receiver's number.
        nonce: u64,
        /// The range begins behind this id; empty: with the first.
        after: String,
        /// The last id of the range; `None`: to the end.
        until: Option<String>,
        /// The first try that began later.
        before: Attempt,
        /// The claims, by id.
        claims: Vec<Claim>,
    },
    /// Answers `Claim`: its number is not the last one. Nothing has changed.
    Stale {
        /// Number of the page.
        round: u64,
    },
    /// Answers `Claim`.
    Claimed {
        /// Number of the page.
        round: u64,
        /// What the receiver does not have, and cannot take any more.
        lost: Vec<(String, Attempt)>,
        /// Whether the page has to be sent once more: something may fit later.
        is_again: bool,
    },
}

/// Messages with their sender, as they go over the network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Envelope {
    /// Name of the manager that sends them.
    pub from: String,
    pub epoch: u64,
    /// Time after which nobody waits for the answers, ns.
    pub within_ns: u64,
    pub messages: Vec<Message>,
}

/// Answers to the messages of an envelope.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reply {
    /// The start of the manager that answers.
    pub epoch: u64,
    /// The answers, fewer than there were messages if some have none.
    pub messages: Vec<Message>,
}
