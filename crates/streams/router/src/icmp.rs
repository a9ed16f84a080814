// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reports to the sender of a packet that the router cannot forward it: ICMP errors (RFC 792), with
//! the MTU of the next hop where that is the cause (RFC 1191), as often as RFC 1812 allows (4.3.2.7
//! and 4.3.2.8).

use std::net::Ipv4Addr;
use std::sync::{Mutex, PoisonError};

use units::time::NS_PER_S;

use crate::ethernet::{IPV4, sum};

/// Bytes of an ICMP error's header.
const ICMP: usize = 8;
/// Longest error in bytes, IPv4 header included (RFC 1812, 4.3.2.3).
const MOST_BYTES: usize = 576;
/// Type of service of an error: precedence 6, internetwork control (RFC 1812, 4.3.2.5).
const TOS: u8 = 0xc0;
/// TTL of an error, one more than Linux gives: the router decrements it as for any other packet.
const TTL: u8 = 65;
/// Protocol number of ICMP.
const PROTOCOL: u8 = 1;
/// Largest rate of errors, and largest burst.
const RATE_PER_S: u64 = 100;
const BURST: u64 = 20;

/// The reason why a packet is not forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem {
    /// Its TTL ended at this router.
    NoHopLeft,
    /// No route leads to its destination.
    NoRoute,
    /// The next hop did not report its MAC address.
    NoNeighbour,
    /// The packet exceeds the MTU towards the next hop.
    TooLong { mtu_bytes: usize },
}

impl Problem {
    /// Returns the type, the code, and the second half of the header.
    fn fields(self) -> (u8, u8, u32) {
        match self {
            Self::NoHopLeft => (11, 0, 0),
            Self::NoRoute => (3, 0, 0),
            Self::NoNeighbour => (3, 1, 0),
            // The lower 16 bits are the MTU, the others are 0.
            Self::TooLong { mtu_bytes } => {
                (3, 4, u16::try_from(mtu_bytes).unwrap_or(u16::MAX).into())
            }
        }
    }
}

/// Returns the error to send from `from` about `packet`, which begins with its valid IPv4 header;
/// both without Ethernet header. Returns `None` where RFC 1812 allows no report: for ICMP errors,
/// fragments after the first, and packets whose source is no single host. O(1).
pub fn error(problem: Problem, packet: &[u8], from: Ipv4Addr) -> Option<Vec<u8>> {
    let header: &[u8; IPV4] = packet.first_chunk()?;
    let [.., a, b, c, d, _, _, _, _] = *header;
    let to = Ipv4Addr::new(a, b, c, d);
    let header_bytes = usize::from(header[0] & 0x0f) * 4;
    let is_later_fragment = u16::from_be_bytes([header[6], header[7]]) & 0x1fff != 0;
    // Echo and timestamp, request and reply, are no errors.
    let is_error =
        header[9] == PROTOCOL && !matches!(packet.get(header_bytes), Some(0 | 8 | 13 | 14));
    let is_host =
        !(a == 0 || to.is_multicast() || to.is_broadcast() || to.is_loopback() || a >= 240);
    if is_later_fragment || is_error || !is_host {
        return None;
    }
    let total = usize::from(u16::from_be_bytes([header[2], header[3]]));
    let quoted = packet.get(..total.min(MOST_BYTES - IPV4 - ICMP))?;
    let (kind, code, rest) = problem.fields();
    let mut message = vec![kind, code, 0, 0];
    message.extend(rest.to_be_bytes());
    message.extend(quoted);
    let check = !sum(&message);
    message[2..4].copy_from_slice(&check.to_be_bytes());
    let length = u16::try_from(IPV4 + message.len()).unwrap_or(u16::MAX);
    let mut error = vec![0x45, TOS];
    error.extend(length.to_be_bytes());
    // The error must not be fragmented (DF), so it needs no identification.
    error.extend([0, 0, 0x40, 0, TTL, PROTOCOL, 0, 0]);
    error.extend(from.octets());
    error.extend(to.octets());
    let check = !sum(&error);
    error[10..12].copy_from_slice(&check.to_be_bytes());
    error.extend(message);
    Some(error)
}

/// Limits the rate of errors with a token bucket.
#[derive(Debug)]
pub struct Limit(Mutex<Allowance>);

#[derive(Debug)]
struct Allowance {
    /// Errors that may be sent at once, times [`NS_PER_S`].
    credit: u64,
    at_ns: u64,
}

impl Default for Limit {
    fn default() -> Self {
        Self(Mutex::new(Allowance {
            credit: BURST * NS_PER_S,
            at_ns: 0,
        }))
    }
}

impl Limit {
    /// Returns whether an error may be sent now, and counts it.
    pub fn allow(&self, now_ns: u64) -> bool {
        let mut of = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let since_ns = now_ns.saturating_sub(of.at_ns);
        of.at_ns = of.at_ns.max(now_ns);
        let credit = of
            .credit
            .saturating_add(since_ns.saturating_mul(RATE_PER_S))
            .min(BURST * NS_PER_S);
        let left = credit.checked_sub(NS_PER_S);
        of.credit = left.unwrap_or(credit);
        left.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUTER: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 2);

    /// Makes a UDP packet of so many bytes from 10.1.0.1.
    fn packet(bytes: u16) -> Vec<u8> {
        let mut packet = vec![0x45, 0];
        packet.extend(bytes.to_be_bytes());
        packet.extend([0, 1, 0x40, 0, 1, 17, 0, 0, 10, 1, 0, 1, 10, 3, 0, 2]);
        packet.resize(bytes.into(), 0xab);
        packet
    }

    #[test]
    fn an_error_quotes_the_packet_and_names_the_mtu() {
        for (problem, begins) in [
            (Problem::NoHopLeft, [11, 0, 0, 0, 0, 0]),
            (Problem::NoRoute, [3, 0, 0, 0, 0, 0]),
            (Problem::NoNeighbour, [3, 1, 0, 0, 0, 0]),
            (Problem::TooLong { mtu_bytes: 1000 }, [3, 4, 0, 0, 3, 0xe8]),
        ] {
            for bytes in [40, 1400] {
                let about = packet(bytes);
                // The padding of a short frame does not belong to the packet.
                let padded = [&about[..], &[0; 20]].concat();
                let error = error(problem, &padded, ROUTER).unwrap();
                let (header, message) = error.split_at(IPV4);
                assert_eq!((sum(header), sum(message)), (0xffff, 0xffff));
                assert_eq!(header[12..], [10, 1, 0, 2, 10, 1, 0, 1]);
                assert_eq!([header[2], header[3]], (error.len() as u16).to_be_bytes());
                assert!(error.len() <= MOST_BYTES);
                assert_eq!(message[..2], begins[..2]);
                assert_eq!(message[4..8], begins[2..]);
                assert_eq!(message[8..], about[..message.len() - 8]);
                assert!(message.len() == 48 || error.len() == MOST_BYTES);
            }
        }
    }

    #[test]
    fn packets_that_get_no_error() {
        let of = |at: usize, value: u8| {
            let mut packet = packet(60);
            packet[at] = value;
            error(Problem::NoHopLeft, &packet, ROUTER)
        };
        assert!(of(0, 0x45).is_some());
        // Neither a later fragment nor a source that is no host gets an error.
        assert_eq!(of(7, 1), None);
        for first in [0, 127, 224, 240, 255] {
            assert_eq!(of(12, first), None, "{first}");
        }
        // Of ICMP only questions and answers get an error.
        for (kind, answered) in [(8, true), (0, true), (3, false), (11, false), (5, false)] {
            let mut packet = packet(60);
            packet[9] = 1;
            packet[20] = kind;
            let error = error(Problem::NoHopLeft, &packet, ROUTER);
            assert_eq!(error.is_some(), answered, "{kind}");
        }
        assert_eq!(error(Problem::NoHopLeft, &[0x45; 10], ROUTER), None);
    }

    #[test]
    fn errors_have_a_rate() {
        let limit = Limit::default();
        let sent = |from_ns: u64, to_ns: u64| {
            let instants = (from_ns..to_ns).step_by(1_000_000);
            instants.filter(|ns| limit.allow(*ns)).count()
        };
        // A thousand errors a second are asked for.
        assert_eq!(sent(0, 1_000_000), 1);
        assert!((110..=121).contains(&sent(1_000_000, NS_PER_S)));
        assert!((99..=101).contains(&sent(NS_PER_S, 2 * NS_PER_S)));
        // A clock that goes back adds nothing to the allowance.
        assert!(sent(0, NS_PER_S / 10) <= 1);
    }
}
