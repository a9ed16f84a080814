// SPDX-License-Identifier: MIT OR Apache-2.0
//! The connections that are open, for the tasks that serve them: [`OpenConnections`] with the time.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::oneshot;

use crate::open_connections::{ConnectionLimits, NotAdmitted, OpenConnections, Ticket};

/// Closes a connection when it is dropped.
type Handle = oneshot::Sender<()>;

/// The connections that are open.
#[derive(Clone, Debug)]
pub(crate) struct Connections {
    places: Arc<Mutex<OpenConnections<Handle>>>,
    start: Instant,
}

/// The place of a connection, free when this is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    connections: Connections,
    ticket: Ticket,
}

impl Connections {
    pub(crate) fn new(limits: ConnectionLimits) -> Self {
        Self {
            places: Arc::new(Mutex::new(OpenConnections::new(limits))),
            start: Instant::now(),
        }
    }

    fn places(&self) -> MutexGuard<'_, OpenConnections<Handle>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now_ns(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Gives a new connection a place, and what resolves when it has to give way.
    pub(crate) fn admit(&self, from: IpAddr) -> (Place, oneshot::Receiver<()>) {
        let (handle, closed) = oneshot::channel();
        let (ticket, _gives_way) = self.places().admit(self.now_ns(), from, handle);
        let place = Place {
            connections: self.clone(),
            ticket,
        };
        (place, closed)
    }

    /// Closes those that have been pending for too long.
    pub(crate) fn expire(&self) {
        drop(self.places().expire(self.now_ns()));
    }

    /// Closes a pending connection, because descriptors lack.
    pub(crate) fn give_way(&self) {
        drop(self.places().give_way());
    }
}

impl Place {
    /// Makes the connection somebody's.
    pub(crate) fn identify(&self, identity: &str) -> Result<(), NotAdmitted> {
        self.connections.places().identify(self.ticket, identity)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.connections.places().leave(self.ticket);
    }
}
