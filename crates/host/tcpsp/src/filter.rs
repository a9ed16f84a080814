// SPDX-License-Identifier: MIT OR Apache-2.0
//! Filters: which frames go to which class. Those that are written here are typed; others are
//! named and kept as they are.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde::{Serialize, Serializer};

use crate::attribute::{self, Attribute, Attributes};
use crate::handle::Handle;
use crate::sender::Sender;

const ANY: u16 = 3;
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const VLAN: u16 = 0x8100;

/// Addresses that have the first bits in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Prefix {
    /// The address, its other bits 0.
    pub address: IpAddr,
    pub bits: u8,
}

impl Prefix {
    /// Parses `10.0.0.0/8`, `fd00::/16`, or an address; `None` if other bits are set.
    pub fn parse(text: &str) -> Option<Self> {
        let (address, network) = Self::parse_host(text)?;
        (address == network.address).then_some(network)
    }

    /// Parses an address of a host with the bits of its network, such as `10.0.0.1/24`. Returns
    /// the address, and the network, 10.0.0.0/24.
    pub fn parse_host(text: &str) -> Option<(IpAddr, Self)> {
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address.parse().ok()?, Some(bits.parse().ok()?)),
            None => (text.parse().ok()?, None),
        };
        let most = 8 * octets(address).len();
        let bits = bits.unwrap_or(u8::try_from(most).ok()?);
        let shift = u32::try_from(most).ok()?.checked_sub(bits.into())?;
        let network = match address {
            IpAddr::V4(v4) => {
                let mask = u32::MAX.checked_shl(shift).unwrap_or(0);
                Ipv4Addr::from(u32::from(v4) & mask).into()
            }
            IpAddr::V6(v6) => {
                let mask = u128::MAX.checked_shl(shift).unwrap_or(0);
                Ipv6Addr::from(u128::from(v6) & mask).into()
            }
        };
        let network = Self {
            address: network,
            bits,
        };
        Some((address, network))
    }

    /// Returns whether the address is one of them.
    pub fn contains(&self, address: IpAddr) -> bool {
        let (ours, other) = (octets(self.address), octets(address));
        let Some(mask) = mask(self.bits, ours.len()) else {
            return false;
        };
        ours.len() == other.len()
            && ours
                .iter()
                .zip(other)
                .zip(mask)
                .all(|((a, b), m)| *a == b & m)
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if usize::from(self.bits) == 8 * octets(self.address).len() {
            self.address.fmt(f)
        } else {
            write!(f, "{}/{}", self.address, self.bits)
        }
    }
}

impl Serialize for Prefix {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

/// Returns a mask of so many bits; `None` if there are more than fit.
fn mask(bits: u8, bytes: usize) -> Option<Vec<u8>> {
    let mut left = usize::from(bits);
    let mask = (0..bytes).map(|_| {
        let here = left.min(8);
        left -= here;
        u8::try_from((0xff00u32 >> here) & 0xff).unwrap_or(0)
    });
    let mask = mask.collect();
    (left == 0).then_some(mask)
}

/// Ports from the first to the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ports {
    pub first: u16,
    /// The last, which may be the first.
    pub last: u16,
}

impl Ports {
    /// Parses `443` or `5000-5009`; port 0 is none.
    pub fn parse(text: &str) -> Option<Self> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let number = |text: &str| {
            if text.bytes().all(|b| b.is_ascii_digit()) {
                text.parse().ok()
            } else {
                None
            }
        };
        let (first, last) = (number(first)?, number(last)?);
        (first > 0 && first <= last).then_some(Self { first, last })
    }
}

impl fmt::Display for Ports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.first == self.last {
            self.first.fmt(f)
        } else {
            write!(f, "{}-{}", self.first, self.last)
        }
    }
}

impl Serialize for Ports {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Family {
    Ipv4,
    Ipv6,
}

/// A protocol above IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Protocol {
    Tcp,
    Udp,
    Sctp,
    /// ICMP, of IPv4.
    Icmp,
    /// ICMP, of IPv6.
    Icmpv6,
}

impl Protocol {
    pub const ALL: [Self; 5] = [Self::Tcp, Self::Udp, Self::Sctp, Self::Icmp, Self::Icmpv6];

    /// Returns IP's number.
    pub const fn number(self) -> u8 {
        match self {
            Self::Icmp => 1,
            Self::Tcp => 6,
            Self::Udp => 17,
            Self::Icmpv6 => 58,
            Self::Sctp => 132,
        }
    }

    pub const fn word(self) -> &'static str {
        match self {
            Self::Icmp => "icmp",
            Self::Tcp => "tcp",
            Self::Udp => "udp",
            Self::Icmpv6 => "icmpv6",
            Self::Sctp => "sctp",
        }
    }

    /// Returns the numbers of flower's attributes: ports of source and destination, and their
    /// masks. `None`: it has no ports.
    const fn ports(self) -> Option<[u16; 4]> {
        match self {
            Self::Tcp => Some([18, 19, 35, 36]),
            Self::Udp => Some([20, 21, 37, 38]),
            Self::Sctp => Some([41, 42, 39, 40]),
            Self::Icmp | Self::Icmpv6 => None,
        }
    }

    /// Returns whether it has ports.
    pub const fn has_ports(self) -> bool {
        self.ports().is_some()
    }
}

/// A device that frames came in through.
#[derive(Clone, Debug, Serialize)]
pub struct Interface {
    pub name: String,
    /// Its index: one that comes later by the same name has another. 0: not known.
    pub index: u32,
}

impl Interface {
    /// Returns what tells it from others: its index, or the name where that is not known. A device may
    /// get another name while it is matched.
    fn key(&self) -> (u32, &str) {
        match self.index {
            0 => (0, &self.name),
            index => (index, ""),
        }
    }
}

impl PartialEq for Interface {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Interface {}

impl Hash for Interface {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

/// What a frame must have. All that is said must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize)]
pub struct Flower {
    /// VLAN of the frame.
    pub vlan: Option<u16>,
    /// IPv4 or IPv6; with anything of what follows it must be said.
    pub family: Option<Family>,
    /// Protocol above IP.
    pub protocol: Option<Protocol>,
    /// From these addresses, of the family.
    pub source: Option<Prefix>,
    /// To these addresses, of the family.
    pub destination: Option<Prefix>,
    /// From these ports, of a protocol that has some.
    pub source_ports: Option<Ports>,
    /// To these ports, of a protocol that has some.
    pub destination_ports: Option<Ports>,
    /// Differentiated services code point, 0 to 63.
    pub dscp: Option<u8>,
    /// Came in through this device: frames that this host forwards.
    pub interface: Option<Interface>,
}

/// What the filters that are written here look at.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Match {
    /// The frame itself.
    Flower(Flower),
    /// The mark of the packet (SO_MARK, nftables' `meta mark`).
    Mark(u32),
    /// The class that the sender's cgroup names, `net_cls.classid`.
    Cgroup,
    /// The cgroup of version 2 that the sender is in. The filter is a BPF program; whoever puts it
    /// adds its descriptor.
    Sender(Sender),
}

/// flower's attributes (linux/pkt_cls.h).
mod flower {
    pub const CLASS: u16 = 1;
    pub const INTERFACE: u16 = 2;
    pub const ETH_TYPE: u16 = 8;
    pub const IP_PROTO: u16 = 9;
    /// Address and mask of source, then of destination.
    pub const IPV4: [u16; 4] = [10, 11, 12, 13];
    pub const IPV6: [u16; 4] = [14, 15, 16, 17];
    pub const FLAGS: u16 = 22;
    pub const VLAN_ID: u16 = 23;
    pub const VLAN_ETH_TYPE: u16 = 25;
    pub const TOS: u16 = 73;
    pub const TOS_MASK: u16 = 74;
    pub const IN_HW_COUNT: u16 = 86;
    /// First and last of source, then of destination.
    pub const PORTS: [u16; 4] = [87, 88, 89, 90];
}
/// The index of an interface, in what is [kept](Match::keep). The kernel has no attribute of it.
const INTERFACE_INDEX: u16 = 0x3f01;
/// The bits of DSCP in the field that it shares with ECN.
const DSCP_MASK: u8 = 0xfc;

/// fw's attributes.
const FW_CLASS: u16 = 1;
const FW_MASK: u16 = 5;

impl Match {
    /// Returns the kernel's name of the filter.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Flower(_) => "flower",
            Self::Mark(_) => "fw",
            Self::Cgroup => "cgroup",
            Self::Sender(_) => "bpf",
        }
    }

    /// Returns the EtherType that the filter is tried on.
    pub const fn protocol(&self) -> u16 {
        match self {
            Self::Flower(flower) => match (flower.vlan, flower.family) {
                (Some(_), _) => VLAN,
                (None, Some(Family::Ipv4)) => IPV4,
                (None, Some(Family::Ipv6)) => IPV6,
                (None, None) => ANY,
            },
            Self::Mark(_) | Self::Cgroup | Self::Sender(_) => ANY,
        }
    }

    /// Returns the filter's options, with the class that frames go to.
    pub fn write(&self, class: Handle) -> Vec<Attribute> {
        match self {
            Self::Flower(flower) => flower.write(class),
            Self::Mark(_) => vec![Attribute::u32(FW_CLASS, class.0)],
            Self::Cgroup => Vec::new(),
            Self::Sender(sender) => sender.write(class),
        }
    }

    /// Returns the filter's options with all that is kept of it outside the kernel's tables.
    pub fn keep(&self, class: Handle) -> Vec<Attribute> {
        let mut options = self.write(class);
        if let Self::Flower(Flower {
            interface: Some(interface),
            ..
        }) = self
        {
            options.push(Attribute::u32(INTERFACE_INDEX, interface.index));
        }
        options
    }

    /// Reads what the kernel dumps of a filter; `None` if it looks at anything else.
    fn read(filter: &Filter) -> Option<Self> {
        let attributes = attribute::read(&filter.options);
        match filter.kind.as_str() {
            "flower" => Flower::read(filter.protocol, &attributes).map(Self::Flower),
            "fw" => {
                let plain = |a: &Attribute| a.kind == FW_CLASS || a.kind == FW_MASK;
                let mask = Attributes(&attributes).u32(FW_MASK).unwrap_or(u32::MAX);
                let is_plain = attributes.iter().all(plain) && mask == u32::MAX;
                (is_plain && filter.protocol == ANY).then_some(Self::Mark(filter.handle))
            }
            "cgroup" => (attributes.is_empty() && filter.protocol == ANY).then_some(Self::Cgroup),
            "bpf" => (filter.protocol == ANY)
                .then(|| Sender::read(&attributes))
                .flatten()
                .map(Self::Sender),
            _ => None,
        }
    }
}

impl Flower {
    fn write(&self, class: Handle) -> Vec<Attribute> {
        let mut all = vec![Attribute::u32(flower::CLASS, class.0)];
        all.extend(
            self.interface
                .iter()
                .map(|interface| Attribute::string(flower::INTERFACE, &interface.name)),
        );
        let ethertype = |kind, number: u16| Attribute::new(kind, number.to_be_bytes());
        let family = self.family.map(|family| match family {
            Family::Ipv4 => IPV4,
            Family::Ipv6 => IPV6,
        });
        if let Some(vlan) = self.vlan {
            all.push(ethertype(flower::ETH_TYPE, VLAN));
            all.push(Attribute::new(flower::VLAN_ID, vlan.to_ne_bytes()));
            all.extend(family.map(|family| ethertype(flower::VLAN_ETH_TYPE, family)));
        } else {
            all.extend(family.map(|family| ethertype(flower::ETH_TYPE, family)));
        }
        let protocol = self.protocol;
        all.extend(protocol.map(|p| Attribute::u8(flower::IP_PROTO, p.number())));
        if let Some(dscp) = self.dscp {
            all.push(Attribute::u8(flower::TOS, dscp << 2));
            all.push(Attribute::u8(flower::TOS_MASK, DSCP_MASK));
        }
        for (side, prefix) in [self.source, self.destination].iter().enumerate() {
            let Some(prefix) = prefix else { continue };
            let address = octets(prefix.address);
            let kinds = if address.len() == 4 {
                flower::IPV4
            } else {
                flower::IPV6
            };
            let mask = mask(prefix.bits, address.len()).unwrap_or_default();
            all.push(Attribute::new(kinds[2 * side], address));
            all.push(Attribute::new(kinds[2 * side + 1], mask));
        }
        let exact = protocol.and_then(Protocol::ports);
        for (side, ports) in [self.source_ports, self.destination_ports]
            .iter()
            .enumerate()
        {
            let (Some(ports), Some(exact)) = (ports, exact) else {
                continue;
            };
            let port = |kind, port: u16| Attribute::new(kind, port.to_be_bytes());
            if ports.first == ports.last {
                all.push(port(exact[side], ports.first));
                all.push(port(exact[2 + side], u16::MAX));
            } else {
                all.push(port(flower::PORTS[2 * side], ports.first));
                all.push(port(flower::PORTS[2 * side + 1], ports.last));
            }
        }
        all
    }

    /// Reads flower's attributes; `None` if any is not known here, or has a mask that is not.
    fn read(ethertype: u16, all: &[Attribute]) -> Option<Self> {
        let found = Attributes(all);
        let big = |kind| Some(u16::from_be_bytes(found.bytes(kind)?.try_into().ok()?));
        let byte = |kind| found.number(kind).and_then(|n| u8::try_from(n).ok());
        let mut read = Self {
            interface: found.string(flower::INTERFACE).map(|name| Interface {
                name,
                index: found.u32(INTERFACE_INDEX).unwrap_or(0),
            }),
            ..Self::default()
        };
        let mut known = vec![
            flower::CLASS,
            flower::INTERFACE,
            INTERFACE_INDEX,
            flower::ETH_TYPE,
            flower::FLAGS,
            flower::IN_HW_COUNT,
        ];
        if ethertype == VLAN {
            let vlan = found.number(flower::VLAN_ID)?;
            read.vlan = Some(u16::try_from(vlan).ok()?);
            known.extend([flower::VLAN_ID, flower::VLAN_ETH_TYPE]);
        }
        // Of a frame in a VLAN the kernel names the type inside in either.
        let types = [
            big(flower::VLAN_ETH_TYPE),
            big(flower::ETH_TYPE),
            Some(ethertype),
        ];
        read.family = types.into_iter().flatten().find_map(|number| match number {
            IPV4 => Some(Family::Ipv4),
            IPV6 => Some(Family::Ipv6),
            _ => None,
        });
        if let Some(number) = byte(flower::IP_PROTO) {
            let protocol = Protocol::ALL.into_iter().find(|p| p.number() == number);
            read.protocol = Some(protocol?);
            known.push(flower::IP_PROTO);
        }
        if let Some(tos) = byte(flower::TOS) {
            if byte(flower::TOS_MASK) != Some(DSCP_MASK) {
                return None;
            }
            read.dscp = Some(tos >> 2);
            known.extend([flower::TOS, flower::TOS_MASK]);
        }
        for kinds in [flower::IPV4, flower::IPV6] {
            for (side, of) in [(0, &mut read.source), (2, &mut read.destination)] {
                if let Some(address) = found.bytes(kinds[side]) {
                    *of = Some(prefix(address, found.bytes(kinds[side + 1])?)?);
                    known.extend([kinds[side], kinds[side + 1]]);
                }
            }
        }
        let exact = read.protocol.and_then(Protocol::ports);
        for (side, of) in [&mut read.source_ports, &mut read.destination_ports]
            .into_iter()
            .enumerate()
        {
            let [first, last] = [flower::PORTS[2 * side], flower::PORTS[2 * side + 1]];
            if let (Some(first), Some(last)) = (big(first), big(last)) {
                *of = Some(Ports { first, last });
            }
            known.extend([first, last]);
            let Some(exact) = exact else { continue };
            if let Some(port) = big(exact[side]) {
                if big(exact[2 + side]) != Some(u16::MAX) {
                    return None;
                }
                let (first, last) = (port, port);
                *of = Some(Ports { first, last });
            }
            known.extend([exact[side], exact[2 + side]]);
        }
        let is_known = all.iter().all(|attribute| known.contains(&attribute.kind));
        is_known.then_some(read)
    }
}

/// Reads an address and its mask, if that is a prefix's.
fn prefix(address: &[u8], wanted: &[u8]) -> Option<Prefix> {
    let bits: u32 = wanted.iter().map(|byte| byte.count_ones()).sum();
    let bits = u8::try_from(bits).ok()?;
    let address = match address.len() {
        4 => IpAddr::from(<[u8; 4]>::try_from(address).ok()?),
        _ => IpAddr::from(<[u8; 16]>::try_from(address).ok()?),
    };
    let is_prefix = mask(bits, octets(address).len())? == wanted;
    is_prefix.then_some(Prefix { address, bits })
}

/// A filter of a qdisc.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    /// Interface index of the device.
    pub device: u32,
    /// The qdisc that asks it.
    pub parent: Handle,
    /// Filters of lower priority numbers are asked first.
    pub priority: u16,
    /// EtherType of the frames that it is asked about; 3: any.
    pub protocol: u16,
    /// Its number among those of the priority.
    pub handle: u32,
    /// The kernel's name of its kind, such as `flower`.
    pub kind: String,
    /// The class that it names.
    pub class: Option<Handle>,
    /// Its options as the kernel dumps them.
    pub options: Vec<u8>,
}

impl Filter {
    /// Returns what the filter looks at, if it is of a kind that is written here.
    pub fn matching(&self) -> Option<Match> {
        Match::read(self)
    }
}

/// Returns the class that options of this kind of filter name.
pub(crate) fn class_of(kind: &str, options: &[u8]) -> Option<Handle> {
    let attribute = match kind {
        "flower" | "fw" | "u32" | "basic" | "matchall" | "route" => 1,
        "bpf" => 3,
        _ => return None,
    };
    Attributes(&attribute::read(options))
        .u32(attribute)
        .map(Handle)
}

#[cfg(test)]
#[path = "filter_tests.rs"]
mod tests;
