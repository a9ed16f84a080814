// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a manager keeps over a crash, as keys and values of a store.

use std::collections::{BTreeMap, BTreeSet};

use admission::{Grant, LinkBytes, StreamRequest};
use serde::{Deserialize, Serialize};

/// Key of [`Meta`].
pub const META: &str = "meta";
const PART: &str = "part/";
const RESERVATION: &str = "reservation/";

/// A change of a store: a new value of a key, or none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The key.
    pub key: String,
    /// The new value; `None` removes the key.
    pub value: Option<Vec<u8>>,
}

/// What a manager needs to know about its last start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Meta {
    /// Name of the manager.
    pub name: String,
    /// Number of its starts.
    pub epoch: u64,
    /// Id of the boot whose clock the records' times are of.
    pub boot: String,
}

/// What becomes of bytes of a manager's own links.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PartState {
    /// Held until the coordinator commits.
    Held,
    /// Reserved until the lease ends.
    Committed,
    /// Freed: late messages of the same try change nothing.
    Dead,
}

/// What a manager's own links give to a request of a coordinator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// Number of the coordinator's try.
    pub attempt: u64,
    /// What became of it.
    pub state: PartState,
    /// Name of the stream.
    pub stream_id: String,
    /// The links and their bytes; empty if dead.
    pub links: Vec<LinkBytes>,
    /// Length of the lease, or of the time to hold, ns.
    pub lease_ns: u64,
    /// When it ends, by this manager's clock.
    pub expires_ns: u64,
}

/// Whether a reservation is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReservationState {
    /// Its lease is live.
    Granted,
    /// Released, expired or lost: its id is not used again for a while.
    Ended,
}

/// What a listener or somebody in its place has measured of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measured {
    /// Longest delay of a packet that came, ns: from the talker's handing it to its kernel.
    pub worst_delay_ns: u64,
    /// Packets that came.
    pub packets: u64,
    /// Packets that did not.
    pub lost_packets: u64,
}

/// What a coordinator has granted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reservation {
    /// Whether it is in use.
    pub state: ReservationState,
    /// Who asked for it.
    pub owner: String,
    /// The request.
    pub request: StreamRequest,
    /// What was granted.
    pub grant: Grant,
    /// Number of the try that succeeded.
    pub attempt: u64,
    /// Length of the lease, ns.
    pub lease_ns: u64,
    /// When the lease ends, by this manager's clock.
    pub expires_ns: u64,
    /// Until when all its senders have to put it into force, by this manager's clock; until they
    /// have nobody is told that it is granted. `None`: they have, or nobody waits for that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_force_by_ns: Option<u64>,
    /// Names of the nodes that have put it into force.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub in_force: BTreeSet<String>,
    /// The last measurements, by listener.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub measured: BTreeMap<String, Measured>,
}

/// A record as it is read back.
#[allow(clippy::large_enum_variant, reason = "records are read one at a time")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// The last start.
    Meta(Meta),
    /// Bytes of own links, by coordinator and id: `coordinator/id`.
    Part(String, Part),
    /// A grant, by id.
    Reservation(String, Reservation),
}

/// Returns the key of a part in the manager's own tables.
#[must_use]
pub fn part_name(coordinator: &str, id: &str) -> String {
    format!("{coordinator}/{id}")
}

fn put(key: String, value: &impl Serialize) -> Change {
    // Names and numbers: JSON has a form for all of them.
    let value = serde_json::to_vec(value).ok();
    debug_assert!(value.is_some());
    Change { key, value }
}

impl Meta {
    /// Returns the change that stores it.
    #[must_use]
    pub fn put(&self) -> Change {
        put(META.to_owned(), self)
    }
}

impl Part {
    /// Returns the change that stores it.
    #[must_use]
    pub fn put(&self, name: &str) -> Change {
        put(format!("{PART}{name}"), self)
    }

    /// Returns the change that removes it.
    #[must_use]
    pub fn remove(name: &str) -> Change {
        let key = format!("{PART}{name}");
        Change { key, value: None }
    }
}

impl Reservation {
    /// Returns when something happens to it unless somebody does something.
    #[must_use]
    pub fn due_ns(&self) -> u64 {
        self.expires_ns.min(self.in_force_by_ns.unwrap_or(u64::MAX))
    }

    /// Returns the names of the nodes that send the stream and have not put it into force.
    #[must_use]
    pub fn not_in_force(&self) -> Vec<String> {
        let senders = self.grant.senders().into_iter();
        senders
            .filter(|node| !self.in_force.contains(*node))
            .map(str::to_owned)
            .collect()
    }

    /// Returns the change that stores it.
    #[must_use]
    pub fn put(&self, id: &str) -> Change {
        put(format!("{RESERVATION}{id}"), self)
    }

    /// Returns the change that removes it.
    #[must_use]
    pub fn remove(id: &str) -> Change {
        let key = format!("{RESERVATION}{id}");
        Change { key, value: None }
    }
}

impl Record {
    /// Reads a key and its value.
    ///
    /// # Errors
    /// If the key is not known or its value is not what belongs to it.
    pub fn read(key: &str, value: &[u8]) -> Result<Self, String> {
        let wrong = |error: serde_json::Error| format!("record \"{key}\": {error}");
        if key == META {
            serde_json::from_slice(value).map(Self::Meta).map_err(wrong)
        } else if let Some(name) = key.strip_prefix(PART) {
            let part = serde_json::from_slice(value).map_err(wrong)?;
            Ok(Self::Part(name.to_owned(), part))
        } else if let Some(id) = key.strip_prefix(RESERVATION) {
            let reservation = serde_json::from_slice(value).map_err(wrong)?;
            Ok(Self::Reservation(id.to_owned(), reservation))
        } else {
            Err(format!(
                "record \"{key}\": expected {META}, {PART}... or {RESERVATION}..."
            ))
        }
    }
}
