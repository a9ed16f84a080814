// SPDX-License-Identifier: MIT OR Apache-2.0
//! The routes, and the streams that packets belong to.

use std::net::{IpAddr, Ipv4Addr};

use crate::ethernet::{Header, Mac};

/// A network: the addresses that begin with the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    /// Its first address.
    pub address: Ipv4Addr,
    /// Number of bits that are the same.
    pub bits: u8,
}

impl Prefix {
    /// Parses `ADDRESS/BITS` with no bit set beyond BITS, or one address.
    pub fn parse(text: &str) -> Option<Self> {
        let (address, bits) = text.split_once('/').unwrap_or((text, "32"));
        let prefix = Self {
            address: address.parse().ok()?,
            bits: bits.parse().ok().filter(|bits| *bits <= 32)?,
        };
        prefix.contains(prefix.address).then_some(prefix)
    }

    /// Returns whether the network contains an address.
    pub fn contains(&self, address: Ipv4Addr) -> bool {
        let shift = 32 - u32::from(self.bits);
        let mask = u32::MAX.checked_shl(shift).unwrap_or(0);
        u32::from(address) & mask == u32::from(self.address)
    }
}

/// A route to a network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    pub to: Prefix,
    /// Index of the device.
    pub device: usize,
    /// The next hop, which may be the destination itself. Its neighbours may know it by
    /// an IPv6 address alone (RFC 8950).
    pub via: IpAddr,
    /// Its MAC address, if it is configured.
    pub mac: Option<Mac>,
}

/// Describes the packets of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stream {
    pub name: String,
    pub to: Prefix,
    /// Their source; `None`: any.
    pub from: Option<Prefix>,
    /// Their destination port; `None`: any.
    pub port: Option<u16>,
    /// Their code point; `None`: any.
    pub dscp: Option<u8>,
    /// Wire bytes that are reserved in each period.
    pub reserve_bytes: u64,
}

impl Stream {
    /// Returns whether a packet belongs to the stream.
    pub fn holds(&self, packet: &Header) -> bool {
        self.to.contains(packet.destination)
            && self.from.is_none_or(|from| from.contains(packet.source))
            && self.port.is_none_or(|port| packet.port == Some(port))
            && self.dscp.is_none_or(|dscp| packet.dscp == dscp)
    }
}

/// Returns the route to an address, that with the longest prefix. O(routes).
pub fn route(routes: &[Route], to: Ipv4Addr) -> Option<&Route> {
    let fitting = routes.iter().filter(|r| r.to.contains(to));
    fitting.max_by_key(|r| r.to.bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes() {
        let net = Prefix::parse("10.2.0.0/16").unwrap();
        assert!(net.contains(Ipv4Addr::new(10, 2, 255, 1)));
        assert!(!net.contains(Ipv4Addr::new(10, 3, 0, 0)));
        assert!(
            Prefix::parse("0.0.0.0/0")
                .unwrap()
                .contains(Ipv4Addr::BROADCAST)
        );
        assert_eq!(Prefix::parse("10.2.0.1").unwrap().bits, 32);
        for text in ["10.2.0.1/16", "10.2.0.0/33", "10.2/16", "", "/8", "x/8"] {
            assert_eq!(Prefix::parse(text), None, "{text}");
        }
    }

    #[test]
    fn the_longest_prefix_wins() {
        let of = |to, device| Route {
            to: Prefix::parse(to).unwrap(),
            device,
            via: Ipv4Addr::LOCALHOST.into(),
            mac: None,
        };
        let routes = [of("10.0.0.0/8", 0), of("10.2.0.0/16", 1), of("10.2.0.7", 2)];
        let device = |to: [u8; 4]| route(&routes, to.into()).map(|r| r.device);
        assert_eq!(device([10, 9, 0, 1]), Some(0));
        assert_eq!(device([10, 2, 0, 1]), Some(1));
        assert_eq!(device([10, 2, 0, 7]), Some(2));
        assert_eq!(device([11, 0, 0, 1]), None);
    }
}
