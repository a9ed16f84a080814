// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a manager is asked by talkers and operators, and what it answers.

use std::collections::BTreeMap;

use admission::{Grant, LinkBytes, ListenerGrant, Refusal, StreamRequest};
use serde::{Deserialize, Serialize};

use crate::record::{Measured, Reservation, ReservationState};

/// Who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// Name of the token or certificate.
    pub name: String,
    /// Whether it may do with others' reservations what their owners may.
    pub is_operator: bool,
}

/// What a manager is asked to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Reserve. The same id again has the same answer.
    Reserve {
        /// Id of the request, and of the reservation.
        id: String,
        /// Who asks.
        caller: Caller,
        /// The stream.
        request: StreamRequest,
        /// Length of the lease, ns.
        lease_ns: u64,
    },
    /// Begin the lease anew.
    Refresh {
        /// Id of the reservation.
        id: String,
        /// Who asks.
        caller: Caller,
        /// Length of the lease from now on, ns; `None`: as before.
        lease_ns: Option<u64>,
    },
    /// Free the bytes.
    Release {
        /// Id of the reservation.
        id: String,
        /// Who asks.
        caller: Caller,
    },
    /// Record that a node has put a reservation into force, or no longer has.
    Report {
        /// Id of the reservation.
        id: String,
        /// Who asks.
        caller: Caller,
        /// Name of the node.
        node: String,
        /// Whether it is in force there.
        is_in_force: bool,
    },
    /// Negotiate anew, because a node sends the stream another way.
    Reroute {
        /// Id of the reservation.
        id: String,
        /// Who asks.
        caller: Caller,
        /// Name of the node.
        node: String,
        /// Name of the segment that it sends the stream into.
        segment: String,
    },
    /// Record what was measured of a stream, in the place of what was before.
    Measure {
        /// Id of the reservation.
        id: String,
        /// Who asks.
        caller: Caller,
        /// Name of the listener.
        listener: String,
        /// The measurement.
        measured: Measured,
    },
}

/// Why a command failed though it may be valid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The id is no name.
    #[error("`id` is \"{0}\", expected 1 to 64 letters, digits, \".\", \"_\" and \"-\"")]
    Id(String),
    /// The lease is too short or too long.
    #[error("`lease_ns` is {lease_ns}, expected {least_ns} to {most_ns}")]
    Lease {
        /// The value.
        lease_ns: u64,
        /// Shortest lease.
        least_ns: u64,
        /// Longest lease.
        most_ns: u64,
    },
    /// The id belongs to another request.
    #[error("the id {0} belongs to another request")]
    IdInUse(String),
    /// The reservation of this id has ended.
    #[error("reservation {0} has ended; a new one needs a new id")]
    Ended(String),
    /// No reservation has this id.
    #[error("no reservation has the id {0}")]
    Unknown(String),
    /// The reservation is that of another caller.
    #[error("reservation {0} belongs to another caller")]
    Forbidden(String),
    /// A manager does not answer.
    #[error("manager {0} does not answer in time; nothing is reserved for longer than its lease")]
    NoAnswer(String),
    /// A manager on the route has the reservation no more.
    #[error("manager {0} has this reservation no more; it has ended")]
    Lost(String),
    /// Nodes have not put it into force in time.
    #[error(
        "not in force in time at {}; nothing is reserved, and a new request needs a new id",
        .0.join(", ")
    )]
    NotInForce(Vec<String>),
    /// The node does not send the stream.
    #[error("`node` is \"{0}\", expected a node that sends the stream")]
    Node(String),
    /// The node is not in the segment.
    #[error("`segment` is \"{0}\", expected a segment of the node")]
    Segment(String),
    /// The node does not receive the stream.
    #[error("`listener` is \"{0}\", expected a listener of the stream")]
    Listener(String),
    /// A measurement of no packets.
    #[error("`packets` is 0, expected at least 1: a delay needs a packet that came")]
    Nothing,
    /// The store of several managers does not answer.
    #[error("{0}; nothing is promised that is not stored: try again")]
    Store(String),
    /// Too many requests wait for other managers.
    #[error("too many requests are under way; try again")]
    Busy,
}

/// A manager's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The reservation, new or as it is.
    Granted(Box<View>),
    /// The stream does not fit.
    Refused(Refusal),
    /// The command failed.
    Failed(Failure),
    /// The reservation of this id is free.
    Released(String),
}

/// A reservation as others see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct View {
    /// Id of the request.
    pub id: String,
    /// Whether it is reserved.
    pub granted: bool,
    /// Name of the stream.
    pub stream_id: String,
    /// Who asked for it.
    pub owner: String,
    /// Longest delay of a packet to any listener, ns.
    pub bound_ns: u64,
    /// Length of the lease, ns.
    pub lease_ns: u64,
    /// Time until the lease ends, ns.
    pub expires_in_ns: u64,
    /// Whether all nodes that send the stream have put it into force.
    pub in_force: bool,
    /// Names of the nodes that have not.
    pub not_in_force: Vec<String>,
    /// Number of periods over which the talker spreads the frames of an interval.
    pub spread_periods: u64,
    /// Bounds and routes.
    pub listeners: Vec<ListenerGrant>,
    /// Wire bytes in each period, by link.
    pub links: Vec<LinkBytes>,
    /// The last measurements, by listener; none of a listener that nobody has measured at.
    #[serde(default)]
    pub measured: BTreeMap<String, Measured>,
}

impl View {
    /// Returns how a reservation looks at a time of its manager's clock.
    #[must_use]
    pub fn new(id: &str, reservation: &Reservation, now_ns: u64) -> Self {
        let grant: &Grant = &reservation.grant;
        let not_in_force = reservation.not_in_force();
        Self {
            id: id.to_owned(),
            granted: reservation.state == ReservationState::Granted,
            stream_id: grant.stream_id.clone(),
            owner: reservation.owner.clone(),
            bound_ns: grant.bound_ns(),
            lease_ns: reservation.lease_ns,
            expires_in_ns: reservation.expires_ns.saturating_sub(now_ns),
            in_force: not_in_force.is_empty(),
            not_in_force,
            spread_periods: grant.spread_periods,
            listeners: grant.listeners.clone(),
            links: grant.links.clone(),
            measured: reservation.measured.clone(),
        }
    }
}
