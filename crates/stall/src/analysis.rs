// SPDX-License-Identifier: MIT OR Apache-2.0
//! What an analysis gives.

use capture::segment::Endpoint;
use serde::Serialize;

use crate::cause::{Cause, Confidence, Side};
use crate::history::History;
use crate::units::{seconds, some_seconds, text};

/// Everything found in one capture.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Analysis {
    /// Time of the first segment, in ns since the capture's epoch. All other
    /// times count from it.
    pub start_ns: u64,
    /// In the order of their first segments.
    pub connections: Vec<Connection>,
    /// Of the capture as a whole.
    pub notes: Vec<String>,
}

/// One connection.
#[derive(Clone, Debug, Serialize)]
pub struct Connection {
    /// Who began it; if that was not captured, who has no well-known port;
    /// else who sent most.
    #[serde(serialize_with = "text")]
    pub client: Endpoint,
    /// The other one.
    #[serde(serialize_with = "text")]
    pub server: Endpoint,
    /// Index into the reader's table of VLANs and tunnels; 0: none.
    pub encapsulation: u32,
    /// First segment.
    #[serde(rename = "start_s", serialize_with = "seconds")]
    pub start_ns: u64,
    /// From the first segment to the last.
    #[serde(rename = "duration_s", serialize_with = "seconds")]
    pub duration_ns: u64,
    /// Segments captured, both directions.
    pub packets: u64,
    /// Whether the capture has its SYN.
    pub begin_seen: bool,
    /// Whether the capture has its end: a FIN of each side or a reset.
    pub end_seen: bool,
    /// Where it was captured.
    pub vantage: Vantage,
    /// One sentence.
    pub verdict: String,
    /// From client to server, and from server to client.
    pub flows: [Flow; 2],
    /// Of both directions, in the order of their beginnings.
    #[serde(rename = "stalls")]
    pub stops: Vec<Stop>,
    /// What made the analysis less sure than it could be.
    pub notes: Vec<String>,
    /// What a plot needs, if it was asked for.
    #[serde(skip)]
    pub history: Option<History>,
}

/// Which way data goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// From client to server.
    ToServer,
    /// From server to client.
    ToClient,
}

impl Direction {
    /// The other one.
    #[must_use]
    pub const fn opposite(self) -> Self {
        match self {
            Self::ToServer => Self::ToClient,
            Self::ToClient => Self::ToServer,
        }
    }

    /// Its place in [`Connection::flows`].
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }
}

/// Near whom a capture was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// At the client, or next to it.
    Client,
    /// At the server, or next to it.
    Server,
    /// Between them.
    Middle,
    /// The capture does not tell.
    Unknown,
}

/// Where a connection was captured, and how that is known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Vantage {
    /// Near whom.
    pub place: Place,
    /// How far that can be relied on.
    pub confidence: Confidence,
    /// Why.
    pub reason: String,
    /// From the capture to the server and back, least seen.
    #[serde(rename = "server_rtt_s", serialize_with = "some_seconds")]
    pub server_rtt_ns: Option<u64>,
    /// From the capture to the client and back, least seen.
    #[serde(rename = "client_rtt_s", serialize_with = "some_seconds")]
    pub client_rtt_ns: Option<u64>,
}

/// One direction's data.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Flow {
    /// Segments with data, retransmissions included.
    pub data_packets: u64,
    /// Bytes of data, each counted once.
    pub bytes: u64,
    /// Bytes acknowledged that the capture never saw: dropped by the capture.
    pub unseen_bytes: u64,
    /// From its first data to the last acknowledgement of any.
    #[serde(rename = "active_s", serialize_with = "seconds")]
    pub active_ns: u64,
    /// Full size of a segment on the wire, as far as it is known.
    pub mss_bytes: u32,
    /// Retransmissions, in segments.
    pub retransmissions: Retransmissions,
    /// Round trips.
    pub rtt: Rtt,
    /// The congestion window at the end, as far as packets give it away.
    pub cwnd: Option<CwndEstimate>,
    /// Pauses that are no stalls, because nobody had anything to do.
    pub idle: Idle,
    /// Segments marked "congestion experienced" (RFC 3168).
    pub ce_marked: u64,
    /// Acknowledgements, repeated ones included.
    pub acks: u64,
    /// Acknowledgements that repeat the last one (RFC 5681).
    pub duplicate_acks: u64,
    /// Times the window was told to be closed.
    pub zero_windows: u64,
    /// Largest and smallest window told, in bytes.
    pub window_bytes: Option<(u64, u64)>,
}

/// What was retransmitted, by what made the sender do so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Retransmissions {
    /// On acknowledgements: duplicates, SACK, RACK.
    pub fast: u64,
    /// Because the retransmission timer ran out.
    pub timeout: u64,
    /// After a timeout, when the window let the rest of the loss be repaired.
    pub after_timeout: u64,
    /// Probes of the tail (TLP).
    pub probe: u64,
    /// Seen once only, so that what led to it cannot be told.
    pub unclear: u64,
    /// Of all these, of data whose retransmission was lost as well.
    pub of_lost_retransmission: u64,
    /// Of all these, of data that had arrived already (DSACK, timestamps).
    pub spurious: u64,
}

impl Retransmissions {
    /// All of them.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.fast + self.timeout + self.after_timeout + self.probe + self.unclear
    }
}

/// Round trips of one direction's data, all the way: from its sender to the
/// receiver and back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Rtt {
    /// Samples taken.
    pub samples: u64,
    /// Least.
    #[serde(rename = "min_s", serialize_with = "some_seconds")]
    pub min_ns: Option<u64>,
    /// Smoothed (RFC 6298), at the end.
    #[serde(rename = "smoothed_s", serialize_with = "some_seconds")]
    pub smoothed_ns: Option<u64>,
    /// Largest.
    #[serde(rename = "max_s", serialize_with = "some_seconds")]
    pub max_ns: Option<u64>,
    /// The timeout that Linux would compute from the samples, at the end.
    #[serde(rename = "rto_s", serialize_with = "some_seconds")]
    pub rto_ns: Option<u64>,
}

/// Bounds on a congestion window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct CwndEstimate {
    /// It was at least this: so much was in flight.
    pub low_bytes: u64,
    /// It was at most this; `None` if nothing shows that it was the limit.
    pub high_bytes: Option<u64>,
}

/// A time without progress, or with little.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Stop {
    /// Whose data stopped.
    pub direction: Direction,
    /// Since the capture's first segment.
    #[serde(rename = "start_s", serialize_with = "seconds")]
    pub start_ns: u64,
    /// How long.
    #[serde(rename = "duration_s", serialize_with = "seconds")]
    pub duration_ns: u64,
    /// Whether nothing moved, or little.
    pub kind: StopKind,
    /// What the rate before would have brought in the time, less what came.
    /// `None` if there was no rate before to compare with.
    pub bytes_cost: Option<u64>,
    /// Why.
    pub cause: Cause,
    /// What made it happen in turn, where that is known: a policer behind a
    /// lost retransmission.
    pub root: Option<Cause>,
    /// Whose side it is on.
    pub side: Side,
    /// How far the evidence carries the cause and the side.
    pub confidence: Confidence,
    /// Numbers of the packets that show it, ascending, at most sixteen.
    pub evidence: Vec<u64>,
    /// How many stops in a row of the same cause this is.
    pub count: u64,
    /// What happened, with figures.
    pub explanation: String,
    /// What to do about it.
    pub advice: String,
}

impl Stop {
    /// Becomes one with the next of the same cause: until its end, with both costs, counted.
    /// Confidence and evidence stay.
    pub fn take_in(&mut self, next: &Self) {
        self.duration_ns = next.start_ns + next.duration_ns - self.start_ns;
        self.bytes_cost = match (self.bytes_cost, next.bytes_cost) {
            (Some(a), Some(b)) => Some(a.saturating_add(b)),
            (a, b) => a.or(b),
        };
        self.count += 1;
    }
}

/// Whether a stop is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum StopKind {
    /// Nothing moved: no new data and nothing delivered.
    Silence,
    /// Data moved, at a fraction of what it could have.
    Slow,
    /// Nothing was under way, and one side was to act: to answer a connection's
    /// beginning or a request, or to ask.
    Wait,
}

/// Pauses in which nobody had anything to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Idle {
    /// How many.
    pub count: u64,
    /// How long, all of them.
    #[serde(rename = "duration_s", serialize_with = "seconds")]
    pub duration_ns: u64,
}

impl Idle {
    pub(crate) fn note(&mut self, duration_ns: u64) {
        self.count += 1;
        self.duration_ns = self.duration_ns.saturating_add(duration_ns);
    }
}
