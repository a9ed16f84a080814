// SPDX-License-Identifier: MIT OR Apache-2.0
//! What managers say to each other.
//!
//! A reservation is held, then committed. The manager that a talker asks, its coordinator, asks
//! the manager of each segment along the route to hold the bytes, one after the other. When all
//! do, it asks all to commit. `attempt` numbers the coordinator's tries of one request: a message
//! of an older one changes nothing.

use admission::{LinkBytes, Refusal};
use serde::{Deserialize, Serialize};

/// A message between managers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Message {
    /// Asks for bytes of links, until they are committed or `hold_ns` have passed.
    Hold {
        /// Id of the request.
        id: String,
        /// Number of the try.
        attempt: u64,
        /// Name of the stream, unique in the network.
        stream_id: String,
        /// Digest of the sender's topology: the receiver's must be the same.
        topology: u64,
        /// The receiver's links, and the bytes of each of their periods.
        links: Vec<LinkBytes>,
        /// Longest time without a commitment, ns.
        hold_ns: u64,
    },
    /// Answers `Hold`: the bytes are held.
    Held {
        /// Id of the request.
        id: String,
        /// Number of the try.
        attempt: u64,
    },
    /// Answers `Hold`: nothing is held.
    Refused {
        /// Id of the request.
        id: String,
        /// Number of the try.
        attempt: u64,
        /// The reason.
        refusal: Refusal,
    },
    /// Turns held bytes into a reservation with a lease.
    Commit {
        /// Id of the request.
        id: String,
        /// Number of the try.
        attempt: u64,
        /// Length of the lease, ns, from when the message arrives.
        lease_ns: u64,
    },
    /// Answers `Commit`.
    Committed {
        /// Id of the request.
        id: String,
        /// Number of the try.
        attempt: u64,
    },
    /// Begins the lease anew.
    Refresh {
        /// Id of the request.
        id: String,
        /// Number of the try.
        attempt: u64,
        /// Length of the lease, ns, from when the message arrives.
        lease_ns: u64,
        /// Number of the refreshment, which tells late answers.
        round: u64,
    },
    /// Answers `Refresh`.
    Refreshed {
        /// Id of the request.
        id: String,
        /// Number of the try.
        attempt: u64,
        /// Number of the refreshment.
        round: u64,
    },
    /// Answers `Commit` and `Refresh`: nothing is held any more.
    Gone {
        /// Id of the request.
        id: String,
        /// Number of the try.
        attempt: u64,
    },
    /// Frees what is held or reserved.
    Release {
        /// Id of the request.
        id: String,
        /// Number of the try.
        attempt: u64,
    },
    /// Answers `Release`.
    Released {
        /// Id of the request.
        id: String,
        /// Number of the try.
        attempt: u64,
    },
}

/// A message with its sender, as it goes over the network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Envelope {
    /// Name of the manager that sends it.
    pub from: String,
    /// The message.
    pub message: Message,
}
