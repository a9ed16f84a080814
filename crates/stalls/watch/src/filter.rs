// SPDX-License-Identifier: MIT OR Apache-2.0
//! Says which connections are wanted. The BPF program applies the filter.

use std::net::IpAddr;
use std::str::FromStr;

use capture::flows::Proto;
use capture::selector::{Condition, End, Network, Selector};

/// Conditions on a connection; all that are set must hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// The process that owns the socket.
    pub pid: Option<u32>,
    /// Id of the cgroup in which, or below which, the socket was made
    /// ([`crate::names::cgroup_id`]).
    pub cgroup: Option<u64>,
    /// The port of either end.
    pub port: Option<u16>,
    /// The address of the other end.
    pub destination: Option<Network>,
}

impl FromStr for Filter {
    type Err = String;

    /// Parses `--flow`: those selectors that the BPF program can tell connections by.
    fn from_str(text: &str) -> Result<Self, String> {
        let conditions = match text.parse()? {
            Selector::Conditions(all) => all,
            Selector::Ends(
                End {
                    address: None,
                    port: Some(port),
                },
                None,
            ) => vec![Condition::Port(port)],
            _ => return Err(unknown(text)),
        };
        let mut filter = Self::default();
        for condition in conditions {
            match condition {
                // All connections are TCP.
                Condition::Proto(Proto::Tcp) => {}
                Condition::Port(0) => return Err("expected a port from 1 to 65535".into()),
                Condition::Port(port) if filter.port.is_none() => filter.port = Some(port),
                Condition::Dst(network) if filter.destination.is_none() => {
                    filter.destination = Some(network);
                }
                _ => return Err(unknown(text)),
            }
        }
        Ok(filter)
    }
}

fn unknown(text: &str) -> String {
    format!(
        "{text:?}: expected \"port N\", \"dst ADDRESS\" or both, once each: the kernel chooses by \
         these"
    )
}

/// Prefix bits to add for IPv4: its addresses are compared as `::ffff:a.b.c.d`.
const MAPPED_BITS: u8 = 96;

/// Returns the address of a network with the other bits cleared, and the mask, both in network
/// byte order as they lie in memory.
pub(crate) fn words(network: Network) -> ([u64; 2], [u64; 2]) {
    let (address, bits) = match network.address() {
        IpAddr::V4(address) => (address.to_ipv6_mapped(), network.bits() + MAPPED_BITS),
        IpAddr::V6(address) => (address, network.bits()),
    };
    let mask = match bits {
        0 => 0,
        bits => u128::MAX << (128 - u32::from(bits)),
    };
    let halves = |value: u128| [(value >> 64) as u64, value as u64].map(u64::to_be);
    (halves(address.to_bits() & mask), halves(mask))
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
            let (net, ones) = words(text.parse().unwrap());
            let address: Ipv6Addr = address.parse().unwrap();
            assert_eq!(bytes(net), address.octets(), "{text}");
            let set: u32 = ones.iter().map(|word| word.count_ones()).sum();
            assert_eq!(set, mask, "{text}");
        }
        // A prefix of length 0 matches any IPv6 address.
        assert_eq!(words("::/0".parse().unwrap()), ([0; 2], [0; 2]));
    }

    #[test]
    fn ports_and_destinations() {
        let both: Filter = "dst 10.1.0.0/16 port 80".parse().unwrap();
        assert_eq!(both.port, Some(80));
        assert_eq!(both.destination, Some("10.1.0.0/16".parse().unwrap()));
        let port: Filter = "port 80".parse().unwrap();
        assert_eq!((port.port, port.destination), (Some(80), None));
        assert_eq!(":80".parse(), Ok(port));
        assert_eq!("tcp port 80".parse(), Ok(port));
        for bad in [
            "",
            "port",
            "port 0",
            ":0",
            "port x",
            "src 10.1.1.1",
            "dst 10",
            "port 1 port 2",
            "80",
            "udp port 80",
            "10.1.1.1",
            "10.1.1.1:80",
            ":80 :81",
            "tcp 10.1.1.1 5 10.1.1.2 6",
        ] {
            assert!(bad.parse::<Filter>().is_err(), "{bad}");
        }
    }
}
