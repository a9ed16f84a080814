// SPDX-License-Identifier: MIT OR Apache-2.0
//! The connections that are open: how many of them may be open, and which one is closed for a new one. All of
//! it is pure: the time is an argument.
//!
//! A connection is pending until one of its requests is accepted as somebody's; before, if there is TLS, it
//! waits for the end of its handshake among others of that kind. Pending connections
//! have few places and little time, and a new one always gets a place: the oldest gives way. A known
//! connection never gives way: when there are too many, the new one stays pending and is refused.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::{IpAddr, Ipv6Addr};

/// Descriptors that no connection may take: the store, other managers, etcd, files that are read.
const RESERVED_DESCRIPTORS: u64 = 256;
/// Bits of an IPv6 address that one host can choose: it has all of them.
const HOST_BITS: u32 = 64;

/// Longest time of a handshake of TLS, ns: some round trips, and a lost packet.
const HANDSHAKE_NS: u64 = 1_000_000_000;

/// How many connections there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// Most pending connections.
    pub pending: usize,
    /// Most pending connections of an address.
    pub pending_of_address: usize,
    /// Longest time that a connection may be pending, ns.
    pub pending_ns: u64,
    /// Most known connections.
    pub known: usize,
    /// Most known connections of an identity.
    pub known_of_identity: usize,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self {
            pending: 1024,
            pending_of_address: 256,
            pending_ns: 3_000_000_000,
            known: 8192,
            known_of_identity: 2048,
        }
    }
}

impl ConnectionLimits {
    /// Returns the limits of a process that may have this many descriptors: connections leave a
    /// reserve, so that accepting never lacks a descriptor.
    pub fn of_descriptors(descriptors: u64) -> Self {
        let most = Self::default();
        let free = descriptors.saturating_sub(RESERVED_DESCRIPTORS);
        let free = usize::try_from(free).unwrap_or(usize::MAX);
        // A quarter is for pending connections, if there are not enough for all, half as many for handshakes.
        let pending = most.pending.min(free / 4).max(1);
        let known = most.known.min(free.saturating_sub(pending + pending / 2));
        let known = known.max(1);
        Self {
            pending,
            pending_of_address: most.pending_of_address.min(pending.div_ceil(4)),
            known,
            known_of_identity: most.known_of_identity.min(known.div_ceil(4)),
            ..most
        }
    }

    /// Returns the limits of connections whose handshake of TLS is not over: these have places of their
    /// own, so that they take none of who has shown that it is there.
    pub fn of_handshakes(self) -> Self {
        Self {
            pending: self.pending.div_ceil(2),
            pending_of_address: self.pending_of_address.div_ceil(2),
            pending_ns: HANDSHAKE_NS,
            ..self
        }
    }
}

/// The name of a connection among the others; a later one has a larger number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(u64);

/// Why a connection does not become a known one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAdmitted {
    /// The identity has as many as it may have.
    #[error("too many connections of this token or certificate; use one for several requests")]
    OfIdentity,
    /// There are as many as there may be.
    #[error("too many connections to this manager; try again")]
    InAll,
    /// The connection has just been closed.
    #[error("the connection has been closed; try again")]
    Closed,
}

#[derive(Debug)]
struct Pending<T> {
    address: IpAddr,
    since_ns: u64,
    handle: T,
}

#[derive(Debug)]
struct Known<T> {
    identity: String,
    _handle: T,
}

/// The connections that are open. Each has a handle; dropping the handle closes the connection. No
/// method takes time in proportion to the number of connections, except for what it returns.
#[derive(Debug)]
pub struct OpenConnections<T> {
    limits: ConnectionLimits,
    next: u64,
    /// The oldest comes first.
    pending: BTreeMap<Ticket, Pending<T>>,
    addresses: HashMap<IpAddr, BTreeSet<Ticket>>,
    /// Addresses by their number of pending connections; the one with the most comes last, and of
    /// several the one whose first connection is the oldest.
    counts: BTreeSet<(usize, Reverse<Ticket>, IpAddr)>,
    known: HashMap<Ticket, Known<T>>,
    identities: HashMap<String, usize>,
}

/// Returns what counts as one address: of IPv6 the network, in which one host can have any address.
fn counted(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() >> HOST_BITS << HOST_BITS).into(),
        v4 @ IpAddr::V4(_) => v4,
    }
}

impl<T> OpenConnections<T> {
    /// Returns places that are all free.
    pub fn new(limits: ConnectionLimits) -> Self {
        Self {
            limits,
            next: 0,
            pending: BTreeMap::new(),
            addresses: HashMap::new(),
            counts: BTreeSet::new(),
            known: HashMap::new(),
            identities: HashMap::new(),
        }
    }

    /// Gives a new connection a place; returns its ticket, and the handle of the connection that gives
    /// way. That is the oldest pending one of the same address if the address has no place left, or
    /// else, if nobody has, the oldest of the address with the most.
    pub fn admit(&mut self, now_ns: u64, address: IpAddr, handle: T) -> (Ticket, Option<T>) {
        let address = counted(address);
        let own = self.addresses.get(&address);
        let is_full = own.is_some_and(|own| own.len() >= self.limits.pending_of_address);
        let oldest = if is_full {
            own.and_then(|own| own.first().copied())
        } else if self.pending.len() >= self.limits.pending {
            self.oldest_of_most()
        } else {
            None
        };
        let gives_way = oldest.and_then(|ticket| self.remove_pending(ticket));
        let ticket = Ticket(self.next);
        self.next += 1;
        let pending = Pending {
            address,
            since_ns: now_ns,
            handle,
        };
        self.pending.insert(ticket, pending);
        self.change(address, |own| own.insert(ticket));
        (ticket, gives_way.map(|of| of.handle))
    }

    /// Makes a pending connection a known one; a known one stays as it is.
    ///
    /// # Errors
    /// If the identity has too many connections, or all have. The connection stays pending then.
    pub fn identify(&mut self, ticket: Ticket, identity: &str) -> Result<(), NotAdmitted> {
        if self.known.contains_key(&ticket) {
            return Ok(());
        }
        let of_identity = self.identities.get(identity).copied().unwrap_or(0);
        if of_identity >= self.limits.known_of_identity {
            return Err(NotAdmitted::OfIdentity);
        }
        if self.known.len() >= self.limits.known {
            return Err(NotAdmitted::InAll);
        }
        let pending = self.remove_pending(ticket).ok_or(NotAdmitted::Closed)?;
        self.identities.insert(identity.to_owned(), of_identity + 1);
        let known = Known {
            identity: identity.to_owned(),
            _handle: pending.handle,
        };
        self.known.insert(ticket, known);
        Ok(())
    }

    /// Frees the place of a connection that has ended.
    pub fn leave(&mut self, ticket: Ticket) {
        if self.remove_pending(ticket).is_some() {
            return;
        }
        let Some(Known { identity, .. }) = self.known.remove(&ticket) else {
            return;
        };
        if let Some(count) = self.identities.get_mut(&identity) {
            *count -= 1;
            if *count == 0 {
                self.identities.remove(&identity);
            }
        }
    }

    /// Returns the handles of the connections that have been pending for too long.
    pub fn expire(&mut self, now_ns: u64) -> Vec<T> {
        let mut expired = Vec::new();
        while let Some((ticket, first)) = self.pending.first_key_value() {
            if now_ns.saturating_sub(first.since_ns) < self.limits.pending_ns {
                break;
            }
            let ticket = *ticket;
            expired.extend(self.remove_pending(ticket).map(|of| of.handle));
        }
        expired
    }

    /// Returns the handle of the pending connection that gives way when descriptors lack.
    pub fn give_way(&mut self) -> Option<T> {
        let ticket = self.oldest_of_most()?;
        self.remove_pending(ticket).map(|of| of.handle)
    }

    /// Returns the numbers of pending and of known connections.
    pub fn counts(&self) -> (usize, usize) {
        (self.pending.len(), self.known.len())
    }

    fn oldest_of_most(&self) -> Option<Ticket> {
        self.counts.last().map(|(_, Reverse(oldest), _)| *oldest)
    }

    /// Changes the pending connections of an address, and its count with them.
    fn change(&mut self, address: IpAddr, change: impl FnOnce(&mut BTreeSet<Ticket>) -> bool) {
        let own = self.addresses.entry(address).or_default();
        if let Some(oldest) = own.first() {
            self.counts.remove(&(own.len(), Reverse(*oldest), address));
        }
        change(own);
        match own.first() {
            Some(oldest) => {
                self.counts.insert((own.len(), Reverse(*oldest), address));
            }
            None => {
                self.addresses.remove(&address);
            }
        }
    }

    fn remove_pending(&mut self, ticket: Ticket) -> Option<Pending<T>> {
        let pending = self.pending.remove(&ticket)?;
        self.change(pending.address, |own| own.remove(&ticket));
        Some(pending)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: ConnectionLimits = ConnectionLimits {
        pending: 4,
        pending_of_address: 2,
        pending_ns: 10,
        known: 3,
        known_of_identity: 2,
    };

    fn address(last: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, last])
    }

    /// Connections come, each from an address; the one that gives way for each is the expected one.
    #[test]
    fn the_oldest_gives_way() {
        let table: &[(&[u8], &[Option<usize>])] = &[
            (&[1, 1, 1, 1], &[None, None, Some(0), Some(1)]),
            (&[1, 2, 1, 2], &[None; 4]),
            // All places are taken: the address with the most loses its oldest.
            (&[1, 2, 2, 3, 4], &[None, None, None, None, Some(1)]),
            // Its own address comes first.
            (&[1, 2, 2, 3, 2], &[None, None, None, None, Some(1)]),
            // Of addresses with as many, the one that came first.
            (&[4, 3, 2, 1, 5], &[None, None, None, None, Some(0)]),
        ];
        for (from, expected) in table {
            let mut places = OpenConnections::new(LIMITS);
            let found: Vec<_> = from
                .iter()
                .enumerate()
                .map(|(n, last)| places.admit(0, address(*last), n).1)
                .collect();
            assert_eq!(&found, expected, "{from:?}");
            assert!(places.counts().0 <= LIMITS.pending);
        }
    }

    #[test]
    fn a_network_of_ipv6_counts_as_one_address_and_mapped_ones_as_ipv4() {
        for (one, other, is_same) in [
            ("2001:db8::1", "2001:db8::ffff:2", true),
            ("2001:db8::1", "2001:db8:0:1::1", false),
            ("::ffff:192.0.2.1", "192.0.2.1", true),
            ("192.0.2.1", "192.0.2.2", false),
        ] {
            let [one, other] = [one, other].map(|text| counted(text.parse().unwrap()));
            assert_eq!(one == other, is_same, "{one} {other}");
        }
    }

    #[test]
    fn pending_connections_have_little_time_and_known_ones_have_more() {
        let mut places = OpenConnections::new(LIMITS);
        let (known, _) = places.admit(0, address(1), "known");
        places.admit(3, address(1), "pending");
        places.identify(known, "t").unwrap();
        assert_eq!(places.expire(12), Vec::<&str>::new());
        assert_eq!(places.expire(13), ["pending"]);
        assert_eq!(places.expire(1000), Vec::<&str>::new());
        assert_eq!(places.counts(), (0, 1));
        // A known connection gives way to none.
        for n in 0..10 {
            assert_ne!(places.admit(n, address(1), "next").1, Some("known"));
        }
        places.leave(known);
        assert_eq!(places.counts().1, 0);
    }

    #[test]
    fn known_connections_are_bounded_by_identity_and_in_all() {
        let mut places = OpenConnections::new(LIMITS);
        let new = |of: &mut OpenConnections<()>| of.admit(0, address(1), ()).0;
        let first = new(&mut places);
        assert_eq!(places.identify(first, "a"), Ok(()));
        // Its second request.
        assert_eq!(places.identify(first, "a"), Ok(()));
        let second = new(&mut places);
        assert_eq!(places.identify(second, "a"), Ok(()));
        let third = new(&mut places);
        assert_eq!(places.identify(third, "a"), Err(NotAdmitted::OfIdentity));
        assert_eq!(places.identify(third, "b"), Ok(()));
        let fourth = new(&mut places);
        assert_eq!(places.identify(fourth, "b"), Err(NotAdmitted::InAll));
        places.leave(first);
        assert_eq!(places.identify(fourth, "b"), Ok(()));
        places.leave(first);
        assert_eq!(places.identify(first, "b"), Err(NotAdmitted::OfIdentity));
        places.leave(second);
        assert_eq!(places.identify(first, "c"), Err(NotAdmitted::Closed));
    }

    #[test]
    fn who_lacks_descriptors_loses_the_oldest_of_the_most() {
        let mut places = OpenConnections::new(LIMITS);
        assert_eq!(places.give_way(), None);
        for (n, last) in [1, 2, 2].into_iter().enumerate() {
            places.admit(0, address(last), n);
        }
        let gone: Vec<_> = std::iter::from_fn(|| places.give_way()).collect();
        assert_eq!(gone, [1, 0, 2]);
    }

    #[test]
    fn limits_leave_descriptors() {
        for (descriptors, pending, known) in [
            (1_048_576, 1024, 8192),
            (20_000, 1024, 8192),
            (4096, 960, 2400),
            (1024, 192, 480),
            (100, 1, 1),
        ] {
            let limits = ConnectionLimits::of_descriptors(descriptors);
            assert_eq!((limits.pending, limits.known), (pending, known));
            assert!(limits.pending_of_address <= pending && limits.pending_of_address >= 1);
            let handshakes = limits.of_handshakes();
            assert!(handshakes.pending <= pending && handshakes.pending_of_address >= 1);
        }
        assert_eq!(
            ConnectionLimits::of_descriptors(20_000),
            ConnectionLimits::default()
        );
    }
}
