// SPDX-License-Identifier: MIT OR Apache-2.0
//! Keeps the last packets of this host in bounded memory, the beginning of each.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};

/// Bytes kept of each packet, from the network header on: the headers, with all options of TCP.
pub(crate) const SNAP_BYTES: usize = 128;

/// A packet that is kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kept {
    pub(crate) time_ns: u64,
    pub(crate) interface: u32,
    pub(crate) packet_bytes: u32,
    pub(crate) is_outgoing: bool,
    bytes: [u8; SNAP_BYTES],
}

impl Kept {
    /// Returns the bytes that are kept.
    pub(crate) fn bytes(&self) -> &[u8] {
        let kept = usize::try_from(self.packet_bytes).map_or(SNAP_BYTES, |all| all.min(SNAP_BYTES));
        &self.bytes[..kept]
    }
}

/// The last packets. When it is full, the oldest is dropped.
#[derive(Debug)]
pub(crate) struct Ring {
    kept: VecDeque<Kept>,
    most: usize,
}

impl Ring {
    /// Makes a ring that takes at most so much memory, but holds a packet at least.
    pub(crate) fn new(memory_bytes: usize) -> Self {
        let most = (memory_bytes / size_of::<Kept>()).max(1);
        Self {
            kept: VecDeque::new(),
            most,
        }
    }

    /// Adds a packet of which `bytes` is the beginning.
    pub(crate) fn push(&mut self, packet: KeptHead, bytes: &[u8]) {
        let mut kept = [0; SNAP_BYTES];
        let length = bytes.len().min(SNAP_BYTES);
        kept[..length].copy_from_slice(&bytes[..length]);
        if self.kept.len() == self.most {
            self.kept.pop_front();
        }
        if self.kept.len() == self.kept.capacity() {
            // Doubling would take up to twice the memory that was allowed.
            let more = (self.most - self.kept.len()).min(self.kept.len().max(1024));
            self.kept.reserve_exact(more);
        }
        self.kept.push_back(Kept {
            time_ns: packet.time_ns,
            interface: packet.interface,
            packet_bytes: packet.packet_bytes,
            is_outgoing: packet.is_outgoing,
            bytes: kept,
        });
    }

    /// Returns the packets between two ends from one time to another, in order. A packet that
    /// crosses several interfaces of this host (a bridge, a pair of veth) is there once: of each
    /// direction those of the interface that had most.
    pub(crate) fn between(
        &self,
        (local, remote): (SocketAddr, SocketAddr),
        (from_ns, to_ns): (u64, u64),
    ) -> Vec<Kept> {
        let wanted = |kept: &&Kept| {
            (from_ns..=to_ns).contains(&kept.time_ns)
                && ends(kept.bytes())
                    .is_some_and(|ends| ends == (local, remote) || ends == (remote, local))
        };
        let found: Vec<(Kept, bool)> = self
            .kept
            .iter()
            .filter(wanted)
            .map(|kept| (*kept, ends(kept.bytes()) == Some((local, remote))))
            .collect();
        let most = |sent: bool| {
            let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
            for (kept, _) in found.iter().filter(|(_, is_sent)| *is_sent == sent) {
                *counts.entry(kept.interface).or_default() += 1;
            }
            let most = counts.into_iter().max_by_key(|(index, count)| {
                // Among equals the lowest index.
                (*count, std::cmp::Reverse(*index))
            });
            most.map(|(index, _)| index)
        };
        let (sent, received) = (most(true), most(false));
        let of = |is_sent| if is_sent { sent } else { received };
        let is_chosen = |(kept, is_sent): &(Kept, bool)| of(*is_sent) == Some(kept.interface);
        let chosen = found.into_iter().filter(is_chosen);
        chosen.map(|(kept, _)| kept).collect()
    }
}

/// What is known of a packet beside its bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeptHead {
    pub(crate) time_ns: u64,
    pub(crate) interface: u32,
    pub(crate) packet_bytes: u32,
    pub(crate) is_outgoing: bool,
}

/// Reads source and destination of a TCP packet; `None` of any other, and of fragments.
fn ends(bytes: &[u8]) -> Option<(SocketAddr, SocketAddr)> {
    let address4 = |at: usize| Some(IpAddr::from(*bytes.get(at..)?.first_chunk::<4>()?));
    let address6 = |at: usize| {
        let address = IpAddr::from(*bytes.get(at..)?.first_chunk::<16>()?);
        Some(address.to_canonical())
    };
    let (from, to, header) = match bytes.first()? >> 4 {
        4 if *bytes.get(9)? == 6 && fragment(bytes)? == 0 => {
            let header = usize::from(bytes[0] & 0xf) * 4;
            (address4(12)?, address4(16)?, header)
        }
        6 if *bytes.get(6)? == 6 => (address6(8)?, address6(24)?, 40),
        _ => return None,
    };
    let port = |at: usize| Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?));
    Some((
        SocketAddr::new(from, port(header)?),
        SocketAddr::new(to, port(header + 2)?),
    ))
}

/// Returns the place of an IPv4 packet in the packet that it is a fragment of.
fn fragment(bytes: &[u8]) -> Option<u16> {
    let word = u16::from_be_bytes(*bytes.get(6..)?.first_chunk()?);
    Some(word & 0x1fff)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) const LOCAL: &str = "10.1.0.1:40000";
    pub(crate) const REMOTE: &str = "10.1.0.2:443";

    /// Makes a segment of so many bytes of payload, without the payload.
    pub(crate) fn segment(from: &str, to: &str) -> Vec<u8> {
        let (from, to): (SocketAddr, SocketAddr) = (from.parse().unwrap(), to.parse().unwrap());
        let mut bytes = match (from.ip(), to.ip()) {
            (IpAddr::V4(from), IpAddr::V4(to)) => {
                let mut bytes = vec![0x45, 0, 0x05, 0xdc, 0, 0, 0x40, 0, 64, 6, 0, 0];
                bytes.extend(from.octets());
                bytes.extend(to.octets());
                bytes
            }
            (IpAddr::V6(from), IpAddr::V6(to)) => {
                let mut bytes = vec![0x60, 0, 0, 0, 0x05, 0xb4, 6, 64];
                bytes.extend(from.octets());
                bytes.extend(to.octets());
                bytes
            }
            mixed => panic!("{mixed:?}"),
        };
        bytes.extend(from.port().to_be_bytes());
        bytes.extend(to.port().to_be_bytes());
        bytes.extend([0, 0, 0, 1, 0, 0, 0, 1, 0x50, 0x10, 1, 0, 0, 0, 0, 0]);
        bytes
    }

    pub(crate) fn head(time_ns: u64, interface: u32, is_outgoing: bool) -> KeptHead {
        KeptHead {
            time_ns,
            interface,
            packet_bytes: 1500,
            is_outgoing,
        }
    }

    fn pair() -> (SocketAddr, SocketAddr) {
        (LOCAL.parse().unwrap(), REMOTE.parse().unwrap())
    }

    #[test]
    fn ends_of_packets() {
        let both = |bytes: &[u8]| ends(bytes).map(|(a, b)| (a.to_string(), b.to_string()));
        let expected = |a: &str, b: &str| Some((a.to_owned(), b.to_owned()));
        let four = segment(LOCAL, REMOTE);
        assert_eq!(both(&four), expected(LOCAL, REMOTE));
        let six = segment("[2001:db8::1]:1", "[2001:db8::2]:2");
        assert_eq!(both(&six), expected("[2001:db8::1]:1", "[2001:db8::2]:2"));
        let mut options = four.clone();
        options[0] = 0x46;
        options.splice(20..20, [1, 1, 1, 0]);
        assert_eq!(both(&options), expected(LOCAL, REMOTE));
        for cut in 0..24 {
            assert_eq!(ends(&four[..cut]), None, "{cut}");
        }
        let with = |at: usize, byte: u8| {
            let mut bytes = four.clone();
            bytes[at] = byte;
            bytes
        };
        assert_eq!(ends(&with(9, 17)), None, "UDP");
        assert_eq!(ends(&with(7, 1)), None, "a fragment");
        assert_eq!(ends(&with(0, 0x55)), None, "another version");
    }

    #[test]
    fn memory_is_bounded_and_the_oldest_goes() {
        let memory = 100 * size_of::<Kept>();
        let mut ring = Ring::new(memory);
        for time_ns in 0..1000 {
            ring.push(head(time_ns, 1, true), &segment(LOCAL, REMOTE));
            assert!(ring.kept.capacity() * size_of::<Kept>() <= memory);
        }
        let found = ring.between(pair(), (0, u64::MAX));
        let times: Vec<u64> = found.iter().map(|kept| kept.time_ns).collect();
        assert_eq!(times, (900..1000).collect::<Vec<_>>());
    }

    #[test]
    fn packets_of_a_connection_and_a_time() {
        let mut ring = Ring::new(1 << 20);
        for (time_ns, from, to) in [
            (1, LOCAL, REMOTE),
            (2, REMOTE, LOCAL),
            (3, LOCAL, "10.1.0.2:444"),
            (4, "10.1.0.3:40000", REMOTE),
            (5, LOCAL, REMOTE),
            (6, REMOTE, LOCAL),
        ] {
            ring.push(head(time_ns, 1, from == LOCAL), &segment(from, to));
        }
        let times = |from, to| -> Vec<u64> {
            let found = ring.between(pair(), (from, to));
            found.iter().map(|kept| kept.time_ns).collect()
        };
        assert_eq!(times(0, 9), [1, 2, 5, 6]);
        assert_eq!(times(2, 5), [2, 5]);
        let kept = ring.between(pair(), (1, 1));
        assert_eq!(
            kept[0].bytes(),
            [segment(LOCAL, REMOTE), vec![0; 88]].concat()
        );
        assert_eq!(kept[0].packet_bytes, 1500);
    }

    /// A container's packet is seen on the veth and on the NIC.
    #[test]
    fn copies_on_other_interfaces_are_left_out() {
        let mut ring = Ring::new(1 << 20);
        for time_ns in [10, 20, 30] {
            ring.push(head(time_ns, 7, false), &segment(LOCAL, REMOTE));
            ring.push(head(time_ns + 1, 2, true), &segment(LOCAL, REMOTE));
        }
        ring.push(head(40, 7, false), &segment(LOCAL, REMOTE));
        ring.push(head(50, 2, false), &segment(REMOTE, LOCAL));
        ring.push(head(51, 7, true), &segment(REMOTE, LOCAL));
        let found = ring.between(pair(), (0, 99));
        let seen: Vec<(u64, u32)> = found
            .iter()
            .map(|kept| (kept.time_ns, kept.interface))
            .collect();
        assert_eq!(seen, [(10, 7), (20, 7), (30, 7), (40, 7), (50, 2)]);
    }
}
