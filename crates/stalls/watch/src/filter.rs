// SPDX-License-Identifier: MIT OR Apache-2.0
//! Says which connections are wanted. The BPF program applies the filter.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// Conditions on a connection; all that are set must hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// The process that owns the socket.
    pub pid: Option<u32>,
    /// The port of either end.
    pub port: Option<u16>,
    /// The address of the other end.
    pub destination: Option<Network>,
}

/// An address, or all addresses that begin with the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    bits: u8,
}

/// Prefix bits to add for IPv4: its addresses are compared as `::ffff:a.b.c.d`.
const MAPPED_BITS: u8 = 96;

impl Network {
    /// Returns the address with the other bits cleared, and the mask, both in network byte
    /// order as they lie in memory.
    pub(crate) fn words(&self) -> ([u64; 2], [u64; 2]) {
        let (address, bits) = match self.address {
            IpAddr::V4(address) => (address.to_ipv6_mapped(), self.bits + MAPPED_BITS),
            IpAddr::V6(address) => (address, self.bits),
        };
        let mask = match bits {
            0 => 0,
            bits => u128::MAX << (128 - u32::from(bits)),
        };
        let halves = |value: u128| [(value >> 64) as u64, value as u64].map(u64::to_be);
        (halves(address.to_bits() & mask), halves(mask))
    }
}

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected =
            || format!("expected an address such as 10.1.0.5 or 2001:db8::/32, not {text:?}");
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| expected())?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = match bits {
            Some(bits) => bits.parse().map_err(|_| expected())?,
            None => most,
        };
        if bits <= most {
            Ok(Self { address, bits })
        } else {
            Err(format!("{address} has {most} bits, not {bits}"))
        }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv6Addr;

    use super::*;

    #[test]
    fn addresses_and_networks() {
        let bytes = |words: [u64; 2]| words.map(u64::to_ne_bytes).concat();
        for (text, address, mask) in [
            ("10.1.2.3", "::ffff:10.1.2.3", 128),
            ("10.1.2.3/16", "::ffff:10.1.0.0", 112),
            ("0.0.0.0/0", "::ffff:0:0", 96),
            ("2001:db8::7/32", "2001:db8::", 32),
            ("::1", "::1", 128),
        ] {
            let (net, ones) = text.parse::<Network>().unwrap().words();
            let address: Ipv6Addr = address.parse().unwrap();
            assert_eq!(bytes(net), address.octets(), "{text}");
            let set: u32 = ones.iter().map(|word| word.count_ones()).sum();
            assert_eq!(set, mask, "{text}");
        }
        // A prefix of length 0 matches any IPv6 address.
        assert_eq!("::/0".parse::<Network>().unwrap().words(), ([0; 2], [0; 2]));
    }

    #[test]
    fn other_texts_are_not_addresses() {
        for text in ["", "10.1.2", "10.1.2.3/33", "10.1.2.3/x", "::/129", "host"] {
            assert!(text.parse::<Network>().is_err(), "{text}");
        }
    }
}
