// SPDX-License-Identifier: MIT OR Apache-2.0
//! Selects flows and connections for `--flow`, by the fields that people know.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use crate::flows::{FlowKey, Proto};
use crate::segment::Endpoint;

const WORDS: &str = "tcp, udp, src, dst, host, sport, dport, port";
const EXPECTED: &str = "expected conditions such as \"dst 10.1.1.1 port 80\", or one or two ends such as 10.1.1.1, \
     10.1.1.1:80, [fe80::1]:80 or :80";

/// A value of `--flow`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selector {
    /// The connection with this number in a list of connections, from 1.
    Number(usize),
    /// What has this end, or these two.
    Ends(End, Option<End>),
    /// What meets all of these conditions.
    Conditions(Vec<Condition>),
}

/// What is known of an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    pub address: Option<IpAddr>,
    pub port: Option<u16>,
}

/// What a direction of a flow must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// `tcp`, `udp`.
    Proto(Proto),
    /// `src ADDRESS[/BITS]`: the sender's address.
    Src(Network),
    /// `dst ADDRESS[/BITS]`: the receiver's address.
    Dst(Network),
    /// `host ADDRESS[/BITS]`: the address of either.
    Host(Network),
    /// `sport N`: the sender's port.
    SrcPort(u16),
    /// `dport N`: the receiver's port.
    DstPort(u16),
    /// `port N`: the port of either.
    Port(u16),
    /// A flow as the flow table writes it: just that flow.
    Is(FlowKey),
}

/// An address, or all addresses that begin with the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    bits: u8,
}

impl Selector {
    /// Parses a selector where there is no list with numbers.
    pub fn without_number(text: &str) -> Result<Self, String> {
        match text.parse()? {
            Self::Number(_) => Err(EXPECTED.to_owned()),
            selector => Ok(selector),
        }
    }

    /// Returns whether a direction of a flow is selected. A number selects none.
    pub fn matches(&self, key: &FlowKey) -> bool {
        match self {
            Self::Number(_) => false,
            Self::Ends(one, other) => ends(key).is_some_and(|[src, dst]| match other {
                None => one.matches(src) || one.matches(dst),
                Some(other) => {
                    one.matches(src) && other.matches(dst) || one.matches(dst) && other.matches(src)
                }
            }),
            Self::Conditions(all) => all.iter().all(|condition| condition.holds(key)),
        }
    }

    /// Returns whether a connection is selected: its number, or what either of its ends sends.
    pub fn matches_connection(&self, number: usize, client: Endpoint, server: Endpoint) -> bool {
        match self {
            Self::Number(wanted) => *wanted == number,
            _ => self.matches(&tcp(client, server)) || self.matches(&tcp(server, client)),
        }
    }
}

impl FromStr for Selector {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(number) = text.trim().parse() {
            return if number == 0 {
                Err(format!("{EXPECTED}, or a number from 1"))
            } else {
                Ok(Self::Number(number))
            };
        }
        let words = text.split(|c: char| c.is_whitespace() || c == ',');
        let ends: Option<Vec<End>> = words.filter(|w| !w.is_empty()).map(End::parse).collect();
        match ends.as_deref() {
            Some([one]) => Ok(Self::Ends(*one, None)),
            Some([one, other]) => Ok(Self::Ends(*one, Some(*other))),
            Some(_) => Err(EXPECTED.to_owned()),
            None => conditions(text).map(Self::Conditions),
        }
    }
}

fn conditions(text: &str) -> Result<Vec<Condition>, String> {
    if let Ok(key) = text.parse() {
        return Ok(vec![Condition::Is(key)]);
    }
    let mut words = text.split_ascii_whitespace();
    let mut conditions = Vec::new();
    while let Some(word) = words.next() {
        conditions.push(match word {
            "tcp" => Condition::Proto(Proto::Tcp),
            "udp" => Condition::Proto(Proto::Udp),
            "src" => Condition::Src(network(word, words.next())?),
            "dst" => Condition::Dst(network(word, words.next())?),
            "host" => Condition::Host(network(word, words.next())?),
            "sport" => Condition::SrcPort(port(word, words.next())?),
            "dport" => Condition::DstPort(port(word, words.next())?),
            "port" => Condition::Port(port(word, words.next())?),
            other if conditions.is_empty() => {
                return Err(format!("{other:?} is none of {WORDS}; {EXPECTED}"));
            }
            other => return Err(format!("{other:?} is none of {WORDS}")),
        });
    }
    Ok(conditions)
}

fn port(name: &str, word: Option<&str>) -> Result<u16, String> {
    let word = word.ok_or_else(|| format!("{name} must be followed by a port"))?;
    word.parse()
        .map_err(|_| format!("{name} must be followed by a port, not {word:?}"))
}

fn network(name: &str, word: Option<&str>) -> Result<Network, String> {
    let expected = "an IP address or network";
    let word = word.ok_or_else(|| format!("{name} must be followed by {expected}"))?;
    word.parse()
        .map_err(|_| format!("{name} must be followed by {expected}, not {word:?}"))
}

/// Returns the sender's and the receiver's end of a flow with ports.
fn ends(key: &FlowKey) -> Option<[Endpoint; 2]> {
    let FlowKey::Ports {
        src,
        sport,
        dst,
        dport,
        ..
    } = *key
    else {
        return None;
    };
    Some([(src, sport), (dst, dport)].map(|(address, port)| Endpoint { address, port }))
}

/// Returns the key of what one end sends to the other.
fn tcp(from: Endpoint, to: Endpoint) -> FlowKey {
    FlowKey::Ports {
        proto: Proto::Tcp,
        src: from.address,
        sport: from.port,
        dst: to.address,
        dport: to.port,
    }
}

impl End {
    fn parse(word: &str) -> Option<Self> {
        if let Ok(socket) = word.parse::<SocketAddr>() {
            return Some(Self {
                address: Some(socket.ip()),
                port: Some(socket.port()),
            });
        }
        let inside = word
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'));
        if let Ok(address) = inside.unwrap_or(word).parse() {
            return Some(Self {
                address: Some(address),
                port: None,
            });
        }
        let port = word.strip_prefix(':').and_then(|port| port.parse().ok());
        port.map(|port| Self {
            address: None,
            port: Some(port),
        })
    }

    fn matches(&self, end: Endpoint) -> bool {
        self.address.is_none_or(|a| a == end.address) && self.port.is_none_or(|p| p == end.port)
    }
}

impl Condition {
    fn holds(self, key: &FlowKey) -> bool {
        let (FlowKey::Ports { proto, .. }, Some([src, dst])) = (key, ends(key)) else {
            return self == Self::Is(*key);
        };
        match self {
            Self::Proto(wanted) => *proto == wanted,
            Self::Src(wanted) => wanted.contains(src.address),
            Self::Dst(wanted) => wanted.contains(dst.address),
            Self::Host(wanted) => wanted.contains(src.address) || wanted.contains(dst.address),
            Self::SrcPort(wanted) => src.port == wanted,
            Self::DstPort(wanted) => dst.port == wanted,
            Self::Port(wanted) => src.port == wanted || dst.port == wanted,
            Self::Is(wanted) => *key == wanted,
        }
    }
}

impl Network {
    /// Returns an address of the network.
    pub fn address(&self) -> IpAddr {
        self.address
    }

    /// Returns how many bits its addresses have in common.
    pub fn bits(&self) -> u8 {
        self.bits
    }

    /// Returns whether an address is in the network.
    pub fn contains(&self, address: IpAddr) -> bool {
        let bits = |address| match address {
            IpAddr::V4(address) => u128::from(address.to_bits()) << 96,
            IpAddr::V6(address) => address.to_bits(),
        };
        let differ = bits(self.address) ^ bits(address);
        self.address.is_ipv4() == address.is_ipv4() && differ.leading_zeros() >= self.bits.into()
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
    use super::*;

    fn select(text: &str) -> Selector {
        text.parse()
            .unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn conditions() {
        let key: FlowKey = "udp 10.1.1.1 40001 10.1.2.1 5001".parse().unwrap();
        for (text, expected) in [
            ("udp", true),
            ("tcp", false),
            ("udp dport 5001", true),
            ("udp dport 40001", false),
            ("port 40001 host 10.1.2.1", true),
            ("src 10.1.2.1", false),
            ("src 10.1.2.1/16", true),
            ("host 10.2.0.0/16", false),
            ("dst 0.0.0.0/0", true),
            ("dst ::/0", false),
            ("sport 40001 dst 10.1.2.1 src 10.1.1.1", true),
            ("udp 10.1.1.1 40001 10.1.2.1 5001", true),
            ("udp 10.1.1.1 40002 10.1.2.1 5001", false),
            ("ethertype 0x0806", false),
            (":5001", true),
            ("10.1.1.1:40001 10.1.2.1", true),
            ("10.1.2.1,10.1.1.1:40001", true),
            ("10.1.1.1:5001", false),
            ("1", false),
        ] {
            assert_eq!(select(text).matches(&key), expected, "{text}");
        }
        let arp = FlowKey::EtherType(0x0806);
        assert!(select("ethertype 0x0806").matches(&arp));
        assert!(!select("port 5").matches(&arp));
        assert!(!select(":5").matches(&arp));
    }

    #[test]
    fn connections_are_selected_by_either_direction() {
        let end = |address: &str, port| Endpoint {
            address: address.parse().unwrap(),
            port,
        };
        let (client, server) = (end("10.1.1.1", 40_000), end("fe80::1", 80));
        for (text, expected) in [
            ("2", true),
            ("1", false),
            ("10.1.1.1", true),
            ("10.1.1.1:80", false),
            (":80", true),
            (":81", false),
            ("10.1.1.2", false),
            ("[fe80::1]:80 10.1.1.1", true),
            ("10.1.1.1:5,[fe80::1]:80", false),
            ("tcp dst 10.1.1.1", true),
            ("src fe80::/10 dport 40000", true),
            ("src fe80::1 dport 80", false),
            ("udp", false),
        ] {
            let is_selected = select(text).matches_connection(2, client, server);
            assert_eq!(is_selected, expected, "{text}");
        }
    }

    #[test]
    fn numbers_and_ends() {
        let end = |text: &str| End::parse(text).unwrap();
        assert_eq!(select("12"), Selector::Number(12));
        assert_eq!(select(":80"), Selector::Ends(end(":80"), None));
        assert_eq!(select("10.1.1.1"), Selector::Ends(end("10.1.1.1"), None));
        let both = Selector::Ends(end("10.1.1.1:5"), Some(end("[fe80::1]:80")));
        assert_eq!(select("10.1.1.1:5 [fe80::1]:80"), both);
        assert_eq!(select("10.1.1.1:5,[fe80::1]:80"), both);
        assert!(Selector::without_number("12").is_err());
        assert_eq!(Selector::without_number(":80"), Ok(select(":80")));
    }

    #[test]
    fn mistakes_are_explained() {
        for (text, expected) in [
            ("", "expected conditions"),
            ("[10.1.1.1", "\"[10.1.1.1\" is none of tcp, udp"),
            ("10.1.1.1]", "\"10.1.1.1]\" is none of tcp, udp"),
            ("0", "expected conditions"),
            ("a", "\"a\" is none of tcp, udp"),
            ("1.2.3", "\"1.2.3\" is none of tcp, udp"),
            (":x", "\":x\" is none of tcp, udp"),
            ("10.1.1.1 10.1.1.2 10.1.1.3", "expected conditions"),
            ("udp 5001", "\"5001\" is none of tcp, udp"),
            ("dport", "dport must be followed by a port"),
            ("dport x", "dport must be followed by a port, not \"x\""),
            (
                "host 1.2.3",
                "host must be followed by an IP address or network, not \"1.2.3\"",
            ),
            (
                "dst 10.1.1.1/33",
                "dst must be followed by an IP address or network, not \"10.1.1.1/33\"",
            ),
        ] {
            let error = text.parse::<Selector>().unwrap_err();
            assert!(error.starts_with(expected), "{error}");
        }
    }

    #[test]
    fn other_texts_are_not_networks() {
        for text in ["", "10.1.2", "10.1.2.3/33", "10.1.2.3/x", "::/129", "host"] {
            assert!(text.parse::<Network>().is_err(), "{text}");
        }
    }
}
