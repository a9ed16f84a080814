// SPDX-License-Identifier: MIT OR Apache-2.0
//! The results of an analysis: connections, flows and stalls.

use std::borrow::Cow;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use capture::segment::Endpoint;
use serde::{Serialize, Serializer};

use crate::cause::{Cause, Confidence, Side};
use crate::direction::Direction;
use crate::history::History;
use crate::predictions::Answers;
use crate::units::{seconds, some_seconds, text};

/// Everything found in one capture.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Analysis {
    /// Time of the first segment, in ns since the capture's epoch. All other times count from
    /// it.
    pub start_ns: u64,
    /// The connections, in the order of their first segments.
    pub connections: Vec<Connection>,
    /// Notes on the capture as a whole.
    pub notes: Vec<String>,
}

/// The results of one connection.
#[derive(Clone, Debug, Serialize)]
pub struct Connection {
    /// The end that sent the SYN. If the SYN was not captured: the end whose port is not well
    /// known; else the end that sent more data.
    #[serde(serialize_with = "text")]
    pub client: Endpoint,
    /// The other end.
    #[serde(serialize_with = "text")]
    pub server: Endpoint,
    /// Index into the reader's table of VLANs and tunnels, whose first entry is none of them.
    pub encapsulation: u32,
    /// Time of the first segment.
    #[serde(rename = "start_s", serialize_with = "seconds")]
    pub start_ns: u64,
    /// Time from the first segment to the last.
    #[serde(rename = "duration_s", serialize_with = "seconds")]
    pub duration_ns: u64,
    /// Segments captured in both directions.
    pub packets: u64,
    /// Whether the SYN was captured.
    pub begin_seen: bool,
    /// Whether the end was captured: a FIN of each side or a reset.
    pub end_seen: bool,
    /// Where the connection was captured.
    pub vantage: Vantage,
    /// Summary of the connection in one sentence.
    pub verdict: String,
    /// The data from client to server, and the data from server to client.
    pub flows: Flows,
    /// Stalls of both directions, in the order of their beginnings.
    pub stalls: Vec<Stall>,
    /// Notes on what made the analysis less sure than it could be.
    pub notes: Vec<String>,
    /// Shortest stall that `stalls` has, if one was chosen.
    #[serde(skip)]
    pub least_ns: Option<u64>,
    /// Rate that passes in each direction where losses show one (a policer), bit/s.
    #[serde(skip)]
    pub passing_bps: [Option<u64>; 2],
    /// The events that a plot needs, if `Options::history_of` asked for them.
    #[serde(skip)]
    pub history: Option<History>,
}

/// The results of both directions' data, the one to the server first. Connections with equal
/// results share them: the many of a flood, of which nothing but a SYN was captured, take little.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Flows(Arc<[Flow; 2]>);

impl Flows {
    /// Shares the results of another connection, if they are equal.
    pub(crate) fn share(&mut self, other: &Self) {
        if self == other {
            *self = other.clone();
        }
    }
}

impl From<[Flow; 2]> for Flows {
    fn from(flows: [Flow; 2]) -> Self {
        Self(Arc::new(flows))
    }
}

impl Deref for Flows {
    type Target = [Flow; 2];

    fn deref(&self) -> &[Flow; 2] {
        &self.0
    }
}

impl DerefMut for Flows {
    fn deref_mut(&mut self) -> &mut [Flow; 2] {
        Arc::make_mut(&mut self.0)
    }
}

impl Serialize for Flows {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

/// The end of the connection near which a capture was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// At the client, or next to it.
    Client,
    /// At the server, or next to it.
    Server,
    /// Between them.
    Middle,
    /// The capture does not show where it was made.
    Unknown,
}

/// Where a connection was captured, and the evidence for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Vantage {
    /// The end near which the capture was made.
    pub place: Place,
    /// How far the place can be relied on.
    pub confidence: Confidence,
    /// The evidence for the place.
    pub reason: Cow<'static, str>,
    /// Shortest round trip seen from the capture to the server and back.
    #[serde(rename = "server_rtt_s", serialize_with = "some_seconds")]
    pub server_rtt_ns: Option<u64>,
    /// Shortest round trip seen from the capture to the client and back.
    #[serde(rename = "client_rtt_s", serialize_with = "some_seconds")]
    pub client_rtt_ns: Option<u64>,
}

/// The results of one direction's data.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Flow {
    /// Segments with data, retransmissions included.
    pub data_packets: u64,
    /// Bytes of data, each counted once.
    pub bytes: u64,
    /// Bytes that were acknowledged and never captured: the capture dropped them.
    pub unseen_bytes: u64,
    /// Time from the first data to the last acknowledgement of any data.
    #[serde(rename = "active_s", serialize_with = "seconds")]
    pub active_ns: u64,
    /// Payload of a full segment, in bytes, as far as it is known.
    pub mss_bytes: u32,
    /// Numbers of retransmitted segments.
    pub retransmissions: Retransmissions,
    /// Round trips of this direction's data.
    pub rtt: Rtt,
    /// Congestion window at the end, as far as the packets show it.
    pub cwnd: Option<CwndEstimate>,
    /// Pauses that are no stalls, because neither side had anything to do.
    pub idle: Idle,
    /// Segments marked "congestion experienced" (RFC 3168).
    pub ce_marked: u64,
    /// Acknowledgements, duplicate ones included.
    pub acks: u64,
    /// Duplicate acknowledgements (RFC 5681).
    pub duplicate_acks: u64,
    /// Times the receiver reported a closed window.
    pub zero_windows: u64,
    /// Smallest and largest window that the receiver reported, in bytes.
    pub window_bytes: Option<(u64, u64)>,
}

/// Retransmitted segments, by what made the sender retransmit them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Retransmissions {
    /// Retransmitted on acknowledgements: duplicates, SACK, RACK.
    pub fast: u64,
    /// Retransmitted because the retransmission timer expired.
    pub timeout: u64,
    /// Retransmitted after a timeout, when the window let the sender repair the rest of the
    /// loss.
    pub after_timeout: u64,
    /// Tail loss probes (TLP).
    pub probe: u64,
    /// Segments captured only once, so that the reason of the retransmission cannot be told.
    pub unclear: u64,
    /// Retransmissions, of all these, of data whose earlier retransmission was lost as well.
    pub of_lost_retransmission: u64,
    /// Retransmissions, of all these, of data that had arrived already (DSACK, timestamps).
    pub spurious: u64,
}

impl Retransmissions {
    /// Returns the number of all retransmitted segments.
    pub const fn total(&self) -> u64 {
        self.fast + self.timeout + self.after_timeout + self.probe + self.unclear
    }
}

/// Whole round trips of one direction's data: from its sender to the receiver and back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Rtt {
    pub samples: u64,
    /// Shortest round trip.
    #[serde(rename = "min_s", serialize_with = "some_seconds")]
    pub min_ns: Option<u64>,
    /// Smoothed round trip (RFC 6298), at the end.
    #[serde(rename = "smoothed_s", serialize_with = "some_seconds")]
    pub smoothed_ns: Option<u64>,
    /// Longest round trip.
    #[serde(rename = "max_s", serialize_with = "some_seconds")]
    pub max_ns: Option<u64>,
    /// Retransmission timeout that Linux would compute from the samples, at the end.
    #[serde(rename = "rto_s", serialize_with = "some_seconds")]
    pub rto_ns: Option<u64>,
}

/// Bounds on a congestion window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct CwndEstimate {
    /// Lower bound: so many bytes were in flight.
    pub low_bytes: u64,
    /// Upper bound; `None` if nothing shows that the congestion window was the limit.
    pub high_bytes: Option<u64>,
}

/// A stall: a time without progress, or with little.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Stall {
    /// Number among all stalls of the captures, from 1, once all are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub number: Option<u64>,
    /// Direction of the data that stalled.
    pub direction: Direction,
    /// Beginning, since the capture's first segment.
    #[serde(rename = "start_s", serialize_with = "seconds")]
    pub start_ns: u64,
    /// Length of the stall.
    #[serde(rename = "duration_s", serialize_with = "seconds")]
    pub duration_ns: u64,
    /// Whether nothing moved, or little.
    pub kind: StallKind,
    /// Bytes that the rate before the stall would have brought in this time, less what came.
    /// `None` if there was no rate before to compare with.
    pub bytes_cost: Option<u64>,
    pub cause: Cause,
    /// The cause of the cause, where that is known: a policer behind a lost retransmission.
    pub root: Option<Cause>,
    /// The side that the cause is on.
    pub side: Side,
    /// How far the evidence supports the cause and the side.
    pub confidence: Confidence,
    /// Numbers of the packets that show the stall, ascending, at most sixteen.
    pub evidence: Vec<u64>,
    /// Number of consecutive stalls of the same cause that this one stands for.
    pub count: u64,
    /// What happened, with figures.
    pub explanation: String,
    /// What to do about the cause.
    pub advice: String,
    /// The answers that the verdict follows from; none: it follows from other than a pause.
    #[serde(skip_serializing_if = "Answers::are_none")]
    pub asked: Answers,
}

impl Stall {
    /// Merges the next stall of the same cause into this one: it now lasts until the end of
    /// `next`, the costs are added, and the count grows by one. Confidence and evidence stay.
    pub fn take_in(&mut self, next: &Self) {
        self.duration_ns = next.start_ns + next.duration_ns - self.start_ns;
        self.bytes_cost = match (self.bytes_cost, next.bytes_cost) {
            (Some(a), Some(b)) => Some(a.saturating_add(b)),
            (a, b) => a.or(b),
        };
        self.count += 1;
    }
}

/// How much a stall held the data up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum StallKind {
    /// Nothing moved: no new data was sent and nothing was delivered.
    Silence,
    /// Data moved, at a fraction of the rate that was possible.
    Slow,
    /// Nothing was in flight, and one side had to act: to answer a connection's beginning or a
    /// request, or to send a request.
    Wait,
}

/// Pauses in which neither side had anything to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Idle {
    /// Number of pauses.
    pub count: u64,
    /// Length of all pauses together.
    #[serde(rename = "duration_s", serialize_with = "seconds")]
    pub duration_ns: u64,
}

impl Idle {
    pub(crate) fn note(&mut self, duration_ns: u64) {
        self.count += 1;
        self.duration_ns = self.duration_ns.saturating_add(duration_ns);
    }
}
