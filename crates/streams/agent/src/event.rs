// SPDX-License-Identifier: MIT OR Apache-2.0
//! What an agent tells: a line each, for a person or as JSON.

use std::fmt;

use serde::Serialize;

/// Something that has happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    /// The agent works.
    Ready {
        /// Name of the node.
        node: String,
        /// Reservations that it knew before.
        kept: usize,
    },
    /// The kernel's tables change.
    Change {
        /// The change of a device, as `pspacer apply` says it.
        change: String,
    },
    /// A manager has been told that a reservation is in force here.
    InForce {
        /// Id of the reservation.
        id: String,
    },
    /// A manager has been told that a reservation is not in force here any more.
    NotInForce {
        /// Id of the reservation.
        id: String,
    },
    /// A manager does not answer.
    Away {
        manager: String,
        problem: String,
        /// Reservations that are kept until their leases end.
        kept: usize,
    },
    /// A manager answers again.
    Back { manager: String },
    /// A lease ended while its manager did not answer: the stream is best effort from now on.
    LeaseEnded {
        /// Id of the reservation.
        id: String,
        /// URL of the manager.
        manager: String,
    },
    /// A reservation was negotiated anew, because the kernel sends its frames another way.
    Rerouted {
        /// Id of the reservation.
        id: String,
        /// The segment that they go into now.
        segment: String,
        /// Its bound now, ns.
        bound_ns: u64,
    },
    /// Something keeps a reservation or a port from being in force.
    Fault {
        /// What, and what to do.
        problem: String,
    },
    /// It does so no longer.
    FaultEnded {
        /// What was said of it last.
        problem: String,
    },
}

impl Event {
    /// Returns whether somebody has to look.
    pub fn is_loud(&self) -> bool {
        matches!(
            self,
            Self::Away { .. }
                | Self::LeaseEnded { .. }
                | Self::NotInForce { .. }
                | Self::Fault { .. }
        )
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ready { node, kept: 0 } => write!(f, "agent of {node}"),
            Self::Ready { node, kept } => {
                write!(f, "agent of {node}; {kept} reservations known from before")
            }
            Self::Change { change } => f.write_str(change),
            Self::InForce { id } => write!(f, "reservation {id} is in force"),
            Self::NotInForce { id } => write!(f, "reservation {id} is not in force any more"),
            Self::Away {
                manager,
                problem,
                kept,
            } => write!(
                f,
                "manager {manager} does not answer: {problem}; {kept} of its reservations stay in \
                 force until their leases end"
            ),
            Self::Back { manager } => write!(f, "manager {manager} answers again"),
            Self::LeaseEnded { id, manager } => write!(
                f,
                "the lease of reservation {id} has ended and manager {manager} does not answer: \
                 its stream is best effort from now on"
            ),
            Self::Rerouted {
                id,
                segment,
                bound_ns,
            } => write!(
                f,
                "reservation {id} is granted by segment {segment} now, with a bound of {}",
                units::display::time(*bound_ns as f64 / 1e9)
            ),
            Self::Fault { problem } => f.write_str(problem),
            Self::FaultEnded { problem } => write!(f, "no longer: {problem}"),
        }
    }
}
