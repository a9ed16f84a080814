// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a manager keeps over a crash, as keys and values of a store.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use admission::{FrameSpecification, Grant, LinkBytes, Name, StreamRequest};
use serde::{Deserialize, Serialize};

/// Key of [`Meta`].
pub const META: &str = "meta";
const PART: &str = "part/";
const RESERVATION: &str = "reservation/";

/// A change of a store: a new value of a key, or none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    pub key: String,
    /// The new value; `None` removes the key.
    pub value: Option<Vec<u8>>,
}

/// A change of a record, before it has become bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Update {
    /// A new [`Meta`].
    Meta(Meta),
    /// A part by its name; `None`: it is forgotten.
    Part(Name, Option<Arc<Part>>),
    /// A part of the manager's own reservations, which follows from them and is not stored.
    OwnPart(Name, Option<Arc<Part>>),
    /// A reservation by its id; `None`: it is forgotten.
    Reservation(Name, Option<Arc<Reservation>>),
}

/// The clock that the times of records are of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clock {
    /// Its number: each boot has a new one, and each host.
    pub number: u32,
    /// Id of the boot.
    pub boot: String,
    /// Its time when this was stored, ns.
    pub now_ns: u64,
    /// What to add to a time of an older clock, ns, for each that a record may have.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub older: BTreeMap<u32, i64>,
}

impl Clock {
    /// Returns the clock of a start: the last one if it still runs, else a new one that knows the older
    /// ones which records use.
    pub fn next(old: Option<Self>, (boot, now_ns): (&str, u64), used: &BTreeSet<u32>) -> Self {
        let boot = boot.to_owned();
        let Some(mut clock) = old else {
            return Self {
                number: 0,
                boot,
                now_ns,
                older: BTreeMap::new(),
            };
        };
        clock.older.retain(|number, _| used.contains(number));
        // One that has run back is another.
        if clock.boot == boot && clock.now_ns <= now_ns {
            clock.now_ns = now_ns;
            return clock;
        }
        let more_ns = i128::from(now_ns) - i128::from(clock.now_ns);
        let more_ns = i64::try_from(more_ns).unwrap_or(i64::MAX);
        for of in clock.older.values_mut() {
            *of = of.saturating_add(more_ns);
        }
        clock.older.insert(clock.number, more_ns);
        Self {
            number: clock.number.wrapping_add(1),
            boot,
            now_ns,
            older: clock.older,
        }
    }
}

/// What a manager needs to know about its last start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Meta {
    /// Name of the manager.
    pub name: String,
    /// Number of the start, by chance.
    pub epoch: u64,
    pub clock: Clock,
}

/// The identity of a coordinator's try. Another try has another one: an epoch is a random number
/// of 64 bits, so a manager that has lost its store does not count again what it had counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Attempt {
    /// The coordinator's start.
    pub epoch: u64,
    /// Number of the try since then.
    pub count: u64,
}

impl Attempt {
    /// Returns whether it is a later try of the same start. Tries of two starts have no order.
    pub fn is_after(self, other: Self) -> bool {
        self.epoch == other.epoch && self.count > other.count
    }
}

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}-{}", self.epoch, self.count)
    }
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
    pub attempt: Attempt,
    /// What became of it.
    pub state: PartState,
    pub stream_id: Name,
    /// Which frames are the stream's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub frames: Vec<FrameSpecification>,
    /// The links and their bytes; empty if dead.
    pub links: Vec<LinkBytes>,
    /// Length of the lease, or of the time to hold, ns.
    pub lease_ns: u64,
    /// When it ends, by the clock of this number.
    pub expires_ns: u64,
    /// Number of the clock.
    pub clock: u32,
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
    pub owner: Name,
    pub request: StreamRequest,
    pub grant: Grant,
    /// The try that succeeded.
    pub attempt: Attempt,
    /// Length of the lease, ns.
    pub lease_ns: u64,
    /// When the lease ends, by the clock of this number.
    pub expires_ns: u64,
    /// Number of the clock.
    pub clock: u32,
    /// Until when all its senders have to put it into force, by the same clock; until they
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
pub fn part_name(coordinator: &str, id: &str) -> Name {
    format!("{coordinator}/{id}").into()
}

impl Update {
    /// Returns the change of the store, if it is stored.
    pub fn change(&self) -> Option<Change> {
        // Names and numbers: JSON has a form for all of them.
        let change = match self {
            Self::OwnPart(..) => return None,
            Self::Meta(meta) => Change {
                key: META.to_owned(),
                value: serde_json::to_vec(meta).ok(),
            },
            Self::Part(name, part) => Change {
                key: format!("{PART}{name}"),
                value: part.as_ref().and_then(|of| serde_json::to_vec(&**of).ok()),
            },
            Self::Reservation(id, reservation) => Change {
                key: format!("{RESERVATION}{id}"),
                value: reservation
                    .as_ref()
                    .and_then(|of| serde_json::to_vec(&**of).ok()),
            },
        };
        Some(change)
    }
}

impl Reservation {
    /// Returns the time until its lease ends; of one that has ended, none.
    pub fn left_ns(&self, now_ns: u64) -> u64 {
        match self.state {
            ReservationState::Granted => self.expires_ns.saturating_sub(now_ns),
            _ => 0,
        }
    }

    /// Returns what is remembered of it after its end: whose it was, and its last try.
    pub fn ended(&self, until_ns: u64) -> Self {
        let mut ended = self.clone();
        ended.state = ReservationState::Ended;
        ended.expires_ns = until_ns;
        ended.in_force_by_ns = None;
        ended.in_force.clear();
        ended.measured.clear();
        ended.request.talker.data_frame_specification.clear();
        ended.request.listeners.clear();
        ended.grant.listeners.clear();
        ended.grant.links.clear();
        ended
    }

    /// Returns when something happens to it unless somebody does something.
    pub fn due_ns(&self) -> u64 {
        self.expires_ns.min(self.in_force_by_ns.unwrap_or(u64::MAX))
    }

    /// Returns the names of the nodes that send the stream and have not put it into force.
    pub fn not_in_force(&self) -> Vec<String> {
        let senders = self.grant.senders().into_iter();
        senders
            .filter(|node| !self.in_force.contains(*node))
            .map(str::to_owned)
            .collect()
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
