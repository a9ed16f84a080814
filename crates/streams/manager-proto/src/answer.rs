// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a manager is asked by talkers and operators, and what it answers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use admission::{Grant, LinkBytes, ListenerGrant, Refusal, StreamRequest, Topology};
use serde::{Deserialize, Serialize};

use crate::record::{Measured, Reservation, ReservationState};

/// Limits of a caller's reservations; `None`: none but those of the links and the manager.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quota {
    /// Most reservations at a time.
    pub streams: Option<u64>,
    /// Most wire bytes of a period of any one link that all of them may have together.
    pub bytes: Option<u64>,
    /// Longest lease, ns.
    pub lease_ns: Option<u64>,
}

/// Who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// Name of the token or certificate.
    pub name: String,
    /// Whether it may do with others' reservations what their owners may.
    pub is_operator: bool,
    /// Whether it is the agent of nodes: it may say what is in force there, and nothing else.
    pub is_agent: bool,
    /// Of a talker the hosts that it may reserve for, of an agent its nodes; `None`: all.
    pub hosts: Option<BTreeSet<String>>,
    /// How much it may reserve.
    pub quota: Quota,
}

impl Caller {
    /// Returns a caller that may reserve from all hosts, without a quota.
    pub fn talker(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            is_operator: false,
            is_agent: false,
            hosts: None,
            quota: Quota::default(),
        }
    }

    /// Returns a caller that may do everything.
    pub fn operator(name: &str) -> Self {
        Self {
            is_operator: true,
            ..Self::talker(name)
        }
    }

    /// Returns the agent of these nodes.
    pub fn agent(name: &str, nodes: BTreeSet<String>) -> Self {
        Self {
            is_agent: true,
            hosts: Some(nodes),
            ..Self::talker(name)
        }
    }

    /// Checks that the caller may have reservations: a talker or an operator.
    pub fn may_reserve(&self) -> Result<(), Failure> {
        if self.is_agent && !self.is_operator {
            return Err(Failure::Role {
                role: "an agent",
                expected: "\"talker\" or \"operator\"",
            });
        }
        Ok(())
    }

    /// Checks that the caller may reserve streams that this host sends.
    ///
    /// # Errors
    /// If it is an agent, or the host is not among a talker's.
    pub fn may_send_from(&self, host: &str) -> Result<(), Failure> {
        self.may_reserve()?;
        self.has_host(host)
    }

    /// Checks that the caller may speak for a node: read its duty, report what is in force there,
    /// and have a stream negotiated anew that it sends another way. A talker may not, not even of
    /// its own reservations: only the node knows.
    ///
    /// # Errors
    /// If it is a talker, or the node is not among an agent's.
    pub fn may_report(&self, node: &str) -> Result<(), Failure> {
        if !self.is_agent && !self.is_operator {
            return Err(Failure::Role {
                role: "a talker",
                expected: "\"agent\" or \"operator\"",
            });
        }
        self.has_host(node)
    }

    /// Checks that the caller is an operator.
    pub fn may_operate(&self) -> Result<(), Failure> {
        if self.is_operator {
            return Ok(());
        }
        Err(Failure::Role {
            role: if self.is_agent {
                "an agent"
            } else {
                "a talker"
            },
            expected: "\"operator\"",
        })
    }

    fn has_host(&self, host: &str) -> Result<(), Failure> {
        match &self.hosts {
            Some(hosts) if !self.is_operator && !hosts.contains(host) => {
                let quoted: Vec<_> = hosts.iter().map(|host| format!("\"{host}\"")).collect();
                Err(Failure::Host {
                    host: host.to_owned(),
                    expected: quoted.join(" or "),
                })
            }
            _ => Ok(()),
        }
    }
}

/// What a manager is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// Id of the reservation, or of the request for one; of [`Action::Fit`] nothing.
    pub id: String,
    pub caller: Caller,
    pub action: Action,
}

impl Command {
    pub fn new(id: &str, caller: Caller, action: Action) -> Self {
        let id = id.to_owned();
        Self { id, caller, action }
    }
}

/// What a manager is asked to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Reserve. The same id again has the same answer.
    Reserve {
        request: StreamRequest,
        /// Length of the lease, ns.
        lease_ns: u64,
        /// Whether it takes the place of the caller's reservation of this id.
        is_replacing: bool,
    },
    /// Begin the lease anew.
    Refresh {
        /// Length of the lease from now on, ns; `None`: as before.
        lease_ns: Option<u64>,
    },
    /// Free the bytes.
    Release,
    /// Record that a node has put a reservation into force, or no longer has.
    Report {
        /// Name of the node.
        node: String,
        /// Whether it is in force there.
        is_in_force: bool,
    },
    /// Negotiate anew, because a node sends the stream another way.
    Reroute {
        /// Name of the node.
        node: String,
        /// Name of the segment that it sends the stream into.
        segment: String,
    },
    /// Free bytes of own links that a coordinator has. It hears of it when it refreshes them.
    /// The caller is an operator.
    FreePart {
        /// Name of the coordinator.
        coordinator: String,
    },
    /// Say what does not fit another topology. The caller is an operator.
    Fit {
        topology: Arc<Topology>,
        /// Whether it is ended, and nothing granted from now on that does not fit.
        is_draining: bool,
    },
    /// Record what was measured of a stream, in the place of what was before.
    Measure {
        /// Name of the listener.
        listener: String,
        measured: Measured,
    },
}

/// Why a command failed though it may be valid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The lease is too short or too long.
    #[error("`lease_ns` is {lease_ns}, expected {least_ns} to {most_ns}")]
    Lease {
        lease_ns: u64,
        least_ns: u64,
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
    /// The caller's role is another.
    #[error("{role} may not do this, expected the role {expected}")]
    Role {
        role: &'static str,
        /// The roles that may.
        expected: &'static str,
    },
    /// The host is not among the caller's.
    #[error("this caller has nothing to say of the host \"{host}\", expected {expected}")]
    Host {
        host: String,
        /// The caller's hosts.
        expected: String,
    },
    /// The caller would have more than it may.
    #[error("{what} would be {wanted}, expected at most {most} of this caller")]
    Quota {
        /// The key of the limit; of bytes, with the link.
        what: String,
        /// What it would have.
        wanted: u64,
        most: u64,
    },
    /// Another manager counts what the caller has.
    #[error("manager {0} counts what this caller reserves, expected a request to it")]
    Elsewhere(String),
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
    /// A manager cannot say yet whether it fits.
    #[error("{0}; try again")]
    Later(String),
    /// Too many requests wait for other managers.
    #[error("too many requests are under way; try again")]
    Busy,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The reservation, new or as it is.
    Granted(Box<View>),
    /// The stream does not fit.
    Refused(Refusal),
    Failed(Failure),
    /// The reservation of this id is free.
    Released(String),
    /// What does not fit another topology.
    Misfits(Vec<Misfit>),
}

impl From<Failure> for Answer {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl From<Refusal> for Answer {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// Bytes that do not fit another topology.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Misfit {
    /// Name of the manager that granted them.
    pub coordinator: String,
    /// Id of the reservation.
    pub id: String,
    /// Why, in a sentence.
    pub why: String,
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
    pub fn new(id: &str, reservation: &Reservation, now_ns: u64) -> Self {
        let grant: &Grant = &reservation.grant;
        let is_granted = reservation.state == ReservationState::Granted;
        let not_in_force = reservation.not_in_force();
        Self {
            id: id.to_owned(),
            granted: is_granted,
            stream_id: grant.stream_id.to_string(),
            owner: reservation.owner.to_string(),
            bound_ns: grant.bound_ns(),
            lease_ns: reservation.lease_ns,
            expires_in_ns: reservation.left_ns(now_ns),
            // What has ended names no senders, and is in force nowhere.
            in_force: is_granted && not_in_force.is_empty(),
            not_in_force,
            spread_periods: grant.spread_periods,
            listeners: grant.listeners.clone(),
            links: grant.links.clone(),
            measured: reservation.measured.clone(),
        }
    }
}
