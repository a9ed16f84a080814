// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parses an expression: `and` and `or` bind equally, from left to right, and `not` binds
//! tighter.

use std::net::{IpAddr, Ipv4Addr};

use super::test::{
    ARP, Family, ICMP, ICMP6, IGMP, IPV4, IPV6, Net, NetOf, Node, Placed, RARP, SCTP, Side, TCP,
    Test, UDP,
};
use super::tokens::tokens;

/// Parentheses and negations within each other, at most: each takes stack.
const DEEPEST: usize = 100;
/// VLAN tags, one inside the other, at most.
const MOST_TAGS: u8 = 8;

/// What qualifies an address or number: `tcp dst port`.
#[derive(Clone, Copy, Debug, Default)]
struct Qualifiers {
    protocol: Option<Protocol>,
    side: Option<Side>,
    of: Option<Of>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Protocol {
    Ether,
    Net(NetOf),
    Transport(u8),
}

/// What an address or number is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Of {
    Host,
    Net,
    Port,
    PortRange,
    Protocol,
}

struct Parser {
    words: std::iter::Peekable<std::vec::IntoIter<String>>,
    /// What the last address or number had: one without a keyword has the same.
    last: Qualifiers,
    tags: u8,
    depth: usize,
}

/// Returns the expression, or what is wrong with it.
pub(super) fn parse(text: &str) -> Result<Node<Placed>, String> {
    let mut parser = Parser {
        words: tokens(text)?.into_iter().peekable(),
        last: Qualifiers::default(),
        tags: 0,
        depth: 0,
    };
    if parser.words.peek().is_none() {
        return Err("expected a capture filter such as \"host 10.1.1.1 and port 80\"".to_owned());
    }
    let node = parser.expression()?;
    match parser.words.next() {
        None => Ok(node),
        Some(word) => Err(format!("expected \"and\", \"or\" or the end, not {word:?}")),
    }
}

fn protocol(word: &str) -> Option<Protocol> {
    Some(match word {
        "ether" => Protocol::Ether,
        "ip" => Protocol::Net(NetOf::Ip(Family::V4)),
        "ip6" => Protocol::Net(NetOf::Ip(Family::V6)),
        "arp" => Protocol::Net(NetOf::Arp),
        "rarp" => Protocol::Net(NetOf::Rarp),
        "tcp" => Protocol::Transport(TCP),
        "udp" => Protocol::Transport(UDP),
        "sctp" => Protocol::Transport(SCTP),
        "icmp" => Protocol::Transport(ICMP),
        "icmp6" => Protocol::Transport(ICMP6),
        "igmp" => Protocol::Transport(IGMP),
        _ => return None,
    })
}

fn of(word: &str) -> Option<Of> {
    Some(match word {
        "host" => Of::Host,
        "net" => Of::Net,
        "port" => Of::Port,
        "portrange" => Of::PortRange,
        "proto" => Of::Protocol,
        _ => return None,
    })
}

/// Keywords of the language that are not understood here.
const REFUSED: [&str; 14] = [
    "gateway",
    "broadcast",
    "multicast",
    "mpls",
    "pppoed",
    "pppoes",
    "geneve",
    "vxlan",
    "protochain",
    "ifname",
    "inbound",
    "outbound",
    "len",
    "wlan",
];

impl Parser {
    fn deeper(&mut self) -> Result<(), String> {
        self.depth += 1;
        if self.depth > DEEPEST {
            Err(format!("more than {DEEPEST} parentheses and negations"))
        } else {
            Ok(())
        }
    }

    fn expression(&mut self) -> Result<Node<Placed>, String> {
        let mut left = self.term()?;
        loop {
            if self.takes("and") {
                left = Node::And(Box::new(left), Box::new(self.term()?));
            } else if self.takes("or") {
                left = Node::Or(Box::new(left), Box::new(self.term()?));
            } else {
                return Ok(left);
            }
        }
    }

    fn takes(&mut self, word: &str) -> bool {
        self.words.next_if(|next| next == word).is_some()
    }

    fn term(&mut self) -> Result<Node<Placed>, String> {
        if self.takes("not") {
            self.deeper()?;
            let inner = self.term()?;
            self.depth -= 1;
            return Ok(Node::Not(Box::new(inner)));
        }
        if self.takes("(") {
            return self.parenthesis();
        }
        self.primitive()
    }

    fn parenthesis(&mut self) -> Result<Node<Placed>, String> {
        self.deeper()?;
        let inner = self.expression()?;
        self.depth -= 1;
        if self.takes(")") {
            Ok(inner)
        } else {
            Err(format!("expected {:?} behind {:?}", ")", "("))
        }
    }

    fn test(&self, test: Test) -> Node<Placed> {
        let tags = self.tags;
        Node::Test(Placed { tags, test })
    }

    fn primitive(&mut self) -> Result<Node<Placed>, String> {
        let Some(first) = self.words.peek().cloned() else {
            return Err("expected a condition behind the last word".to_owned());
        };
        if REFUSED.contains(&first.as_str()) {
            return Err(format!("{first:?} is not understood here"));
        }
        match first.as_str() {
            "vlan" => return self.vlan(),
            "less" | "greater" => return self.length(),
            "and" | "or" | ")" => return Err(format!("expected a condition, not {first:?}")),
            _ => {}
        }
        let found = Qualifiers {
            protocol: self
                .words
                .next_if(|w| protocol(w).is_some())
                .and_then(|w| protocol(&w)),
            side: self.side()?,
            of: self.words.next_if(|w| of(w).is_some()).and_then(|w| of(&w)),
        };
        match found {
            Qualifiers {
                protocol: None,
                side: None,
                of: None,
            } => {} // as the last ones
            Qualifiers {
                protocol: Some(protocol),
                side: None,
                of: None,
            } if self.ends_primitive() => return self.alone(protocol),
            found => self.last = found,
        }
        // "port (80 or 443)": what is inside has these qualifiers.
        if self.takes("(") {
            return self.parenthesis();
        }
        match self.words.next() {
            Some(id) if !matches!(id.as_str(), "and" | "or" | "not" | ")") => self.id(&id),
            other => {
                let behind = other.map_or("the end".to_owned(), |word| format!("{word:?}"));
                Err(format!(
                    "expected an address or number behind {first:?}, not {behind}"
                ))
            }
        }
    }

    fn ends_primitive(&mut self) -> bool {
        let next = self.words.peek().map(String::as_str);
        matches!(next, None | Some("and" | "or" | ")"))
    }

    /// Reads `src`, `dst`, `src or dst`, `src and dst`.
    fn side(&mut self) -> Result<Option<Side>, String> {
        let side = |word: &str| match word {
            "src" => Some(Side::Source),
            "dst" => Some(Side::Destination),
            _ => None,
        };
        let Some(first) = self.words.next_if(|w| side(w).is_some()) else {
            return Ok(None);
        };
        // "src or dst host ..." is one qualifier; "src host a or dst host b" is not.
        let mut ahead = self.words.clone();
        let (join, second) = (ahead.next(), ahead.next());
        let other = second.as_deref().and_then(side);
        let joined = match (join.as_deref(), other) {
            (Some("or"), Some(_)) => Some(Side::Either),
            (Some("and"), Some(_)) => Some(Side::Both),
            _ => None,
        };
        if joined.is_some() {
            if second.as_deref() == Some(first.as_str()) {
                return Err(format!("{first:?} joined with itself"));
            }
            self.words = ahead;
        }
        Ok(joined.or(side(&first)))
    }

    /// A protocol without anything behind it.
    fn alone(&self, protocol: Protocol) -> Result<Node<Placed>, String> {
        Ok(self.test(match protocol {
            Protocol::Ether => return Err("expected \"host\" behind \"ether\"".to_owned()),
            Protocol::Net(NetOf::Ip(Family::V4)) => Test::EtherType(IPV4),
            Protocol::Net(NetOf::Ip(Family::V6)) => Test::EtherType(IPV6),
            Protocol::Net(NetOf::Arp) => Test::EtherType(ARP),
            Protocol::Net(NetOf::Rarp) => Test::EtherType(RARP),
            Protocol::Transport(ICMP) => Test::Protocol(Some(Family::V4), ICMP),
            Protocol::Transport(IGMP) => Test::Protocol(Some(Family::V4), IGMP),
            Protocol::Transport(ICMP6) => Test::Protocol(Some(Family::V6), ICMP6),
            Protocol::Transport(number) => Test::Protocol(None, number),
        }))
    }

    /// `vlan` and `vlan N`. What follows, in the whole expression, is of the headers behind the
    /// tag.
    fn vlan(&mut self) -> Result<Node<Placed>, String> {
        self.words.next();
        let id = self
            .words
            .next_if(|word| word.starts_with(|c: char| c.is_ascii_digit()));
        let id = match id {
            None => None,
            Some(word) => {
                let id = word.parse().ok().filter(|id| *id < 4096);
                Some(id.ok_or_else(|| format!("vlan must be followed by 0 to 4095, not {word:?}"))?)
            }
        };
        if self.tags == MOST_TAGS {
            return Err(format!("more than {MOST_TAGS} times vlan"));
        }
        let node = self.test(Test::Vlan(id));
        self.tags += 1;
        Ok(node)
    }

    fn length(&mut self) -> Result<Node<Placed>, String> {
        let word = self.words.next().unwrap_or_default();
        let number = self.words.next();
        let number = number.as_deref().and_then(|n| n.parse().ok());
        let number =
            number.ok_or_else(|| format!("{word} must be followed by a length in bytes"))?;
        Ok(self.test(match word.as_str() {
            "less" => Test::AtMost(number),
            _ => Test::AtLeast(number),
        }))
    }

    /// An address or number, with the qualifiers that hold.
    fn id(&mut self, id: &str) -> Result<Node<Placed>, String> {
        let Qualifiers { protocol, side, of } = self.last;
        let side_or_either = side.unwrap_or(Side::Either);
        match of.unwrap_or(Of::Host) {
            Of::Port | Of::PortRange => {
                let transport = match protocol {
                    None => None,
                    Some(Protocol::Transport(number @ (TCP | UDP | SCTP))) => Some(number),
                    Some(_) => return Err(format!("port {id}: only tcp, udp and sctp have ports")),
                };
                let (first, last) = ports(id, of == Some(Of::PortRange))?;
                Ok(self.test(Test::Port(transport, side_or_either, first, last)))
            }
            Of::Protocol if side.is_some() => Err(format!("proto {id}: it has no direction")),
            Of::Protocol => self.numbered(protocol, id),
            Of::Host if protocol == Some(Protocol::Ether) => {
                let mac = mac(id).ok_or_else(|| {
                    format!(
                        "ether host must be followed by an address as 02:00:00:00:00:01, not {id:?}"
                    )
                })?;
                Ok(self.test(Test::Mac(side_or_either, mac)))
            }
            kind => {
                let of = match protocol {
                    None => None,
                    Some(Protocol::Net(of)) => Some(of),
                    Some(_) => {
                        return Err(format!(
                            "{id}: tcp, udp and the like have ports, not addresses"
                        ));
                    }
                };
                let net = match kind {
                    Of::Net => self.net(id)?,
                    _ => host(id)?,
                };
                let is_v6 = net.address.is_ipv6();
                if of.is_some_and(|of| (of == NetOf::Ip(Family::V6)) != is_v6) {
                    return Err(format!("{id} is not an address of the protocol before it"));
                }
                Ok(self.test(Test::Net(of, side_or_either, net)))
            }
        }
    }

    /// `ip proto N`, `ip6 proto N`, `proto N`, `ether proto N`.
    fn numbered(&self, of: Option<Protocol>, id: &str) -> Result<Node<Placed>, String> {
        let name = id.trim_start_matches('\\');
        let family = match of {
            None => None,
            Some(Protocol::Net(NetOf::Ip(family))) => Some(family),
            Some(Protocol::Ether) => {
                let number = match protocol(name) {
                    Some(Protocol::Net(_)) => return self.alone_named(name),
                    _ => number(name).and_then(|n| u16::try_from(n).ok()),
                };
                let expected = "ether proto must be followed by ip, ip6, arp, rarp or a number";
                return Ok(self.test(Test::EtherType(number.ok_or(expected)?)));
            }
            Some(_) => return Err(format!("proto {id}: expected ip, ip6 or ether before it")),
        };
        let number = match protocol(name) {
            Some(Protocol::Transport(number)) => Some(number),
            _ => number(name).and_then(|n| u8::try_from(n).ok()),
        };
        let number = number.ok_or_else(|| {
            format!("proto must be followed by tcp, udp, icmp or a number up to 255, not {id:?}")
        })?;
        Ok(self.test(Test::Protocol(family, number)))
    }

    fn alone_named(&self, name: &str) -> Result<Node<Placed>, String> {
        let known = protocol(name).ok_or("no protocol")?;
        self.alone(known)
    }

    /// `10.1`, `10.1.0.0/16`, `10.1.0.0 mask 255.255.0.0`, `fe80::/10`.
    fn net(&mut self, id: &str) -> Result<Net, String> {
        let expected = || format!("net must be followed by a net such as 10.1.0.0/16, not {id:?}");
        let (address, bits) = match id.split_once('/') {
            Some((address, bits)) => (address, Some(bits.parse().map_err(|_| expected())?)),
            None => (id, None),
        };
        let net = match address.parse::<IpAddr>() {
            Ok(address) => {
                let all = if address.is_ipv6() { 128 } else { 32 };
                let bits = bits.unwrap_or(all);
                Some(Net { address, bits }).filter(|_| bits <= all)
            }
            Err(_) => partial(address, bits),
        };
        let mut net = net.ok_or_else(expected)?;
        if bits.is_none() && self.takes("mask") {
            let mask = self
                .words
                .next()
                .and_then(|mask| mask.parse::<Ipv4Addr>().ok());
            let mask = mask.filter(|_| net.address.is_ipv4()).map(u32::from);
            let mask = mask.filter(|mask| mask.leading_ones() == mask.count_ones());
            net.bits = mask
                .ok_or_else(|| format!("net {id}: expected a mask such as 255.255.0.0"))?
                .leading_ones();
        }
        let whole = Net {
            bits: u32::MAX,
            ..net
        };
        let begin = first_of(net);
        if !whole.has(&begin) {
            return Err(format!("net {id}: the address has bits behind the mask"));
        }
        Ok(net)
    }
}

/// Returns the first address of a net, as on the wire.
fn first_of(net: Net) -> Vec<u8> {
    let mut bytes = match net.address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    };
    for (at, byte) in bytes.iter_mut().enumerate() {
        let kept = net.bits.saturating_sub(at as u32 * 8).min(8);
        *byte &= (0xff00u16 >> kept) as u8;
    }
    bytes
}

/// Reads the first bytes of an IPv4 address, as in `net 10.1`.
fn partial(text: &str, bits: Option<u32>) -> Option<Net> {
    let parts: Option<Vec<u8>> = text.split('.').map(|part| part.parse().ok()).collect();
    let parts = parts.filter(|parts| parts.len() < 4)?;
    let mut octets = [0; 4];
    octets[..parts.len()].copy_from_slice(&parts);
    let bits = bits.unwrap_or(parts.len() as u32 * 8);
    (bits <= 32).then_some(Net {
        address: IpAddr::from(octets),
        bits,
    })
}

fn host(id: &str) -> Result<Net, String> {
    let address: IpAddr = id.parse().map_err(|_| {
        format!("host must be followed by an IP address, not {id:?}: names are not looked up")
    })?;
    let bits = if address.is_ipv6() { 128 } else { 32 };
    Ok(Net { address, bits })
}

fn ports(id: &str, is_range: bool) -> Result<(u16, u16), String> {
    let range = id.split_once('-').filter(|_| is_range);
    let (first, last) = range.unwrap_or((id, id));
    match (first.parse(), last.parse()) {
        (Ok(first), Ok(last)) if first <= last => Ok((first, last)),
        (Ok(first), Ok(last)) => Ok((last, first)),
        _ if is_range => Err(format!(
            "portrange must be followed by ports such as 80-90, not {id:?}"
        )),
        _ => Err(format!(
            "port must be followed by 0 to 65535, not {id:?}: names are not looked up"
        )),
    }
}

fn number(text: &str) -> Option<u32> {
    match text.strip_prefix("0x") {
        Some(hex) => u32::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

fn mac(text: &str) -> Option<[u8; 6]> {
    let bytes: Option<Vec<u8>> = text
        .split([':', '-'])
        .map(|part| {
            u8::from_str_radix(part, 16)
                .ok()
                .filter(|_| part.len() <= 2)
        })
        .collect();
    bytes?.try_into().ok()
}
