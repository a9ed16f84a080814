// SPDX-License-Identifier: MIT OR Apache-2.0
//! A stream that asks for a reservation, in the words of IEEE 802.1Qcc's YANG model
//! (ieee802-dot1q-tsn-types).

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use serde::{Deserialize, Serialize};
use units::ethernet::IPV4_HEADER_BYTES;
use units::time::NS_PER_S;

use crate::frames::Packets;
use crate::refusal::Refusal;
use crate::topology::{NAME, is_name};

const LEAST_INTERVAL_NS: u64 = 1_000;
const MOST_INTERVAL_NS: u64 = 10 * NS_PER_S;
/// Most listeners of a stream.
const MOST_LISTENERS: usize = 256;
/// Most entries of a stream's [`FrameSpecification`]s.
const MOST_FRAME_SPECIFICATIONS: usize = 16;
/// IP's number of UDP.
const UDP: u8 = 17;
/// IP's numbers of the protocols that have ports: TCP, UDP and SCTP.
const PROTOCOLS: [u8; 3] = [6, UDP, 132];
/// Longest UDP payload in an interval, bytes: a period of 1 s at 8 Gbit/s.
const MOST_PAYLOAD_BYTES: u32 = 1_000_000_000;

/// A talker, its listeners, and what they ask for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct StreamRequest {
    /// Name of the stream, unique in the network.
    pub stream_id: String,
    pub talker: Talker,
    pub listeners: Vec<Listener>,
}

/// The sender of a stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Talker {
    /// Name of its host.
    pub name: String,
    /// Which frames are the stream's. Without it only the talker knows, and no agent can give them
    /// a class.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub data_frame_specification: Vec<FrameSpecification>,
    pub traffic_specification: TrafficSpecification,
    /// What all listeners need.
    #[serde(default)]
    pub user_to_network_requirements: Requirements,
}

/// Frames of a stream, by their headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FrameSpecification {
    Ipv4Tuple(IpTuple<Ipv4Addr>),
    Ipv6Tuple(IpTuple<Ipv6Addr>),
}

/// Addresses and ports of packets. 802.1Qcc lets all of them be absent; here a stream claims no
/// more than what goes to one port of one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct IpTuple<A> {
    /// Address of the sender; absent: any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_ip_address: Option<A>,
    /// Address of the receiver, or of a group.
    pub destination_ip_address: A,
    /// IP's number of the protocol.
    pub protocol: u8,
    /// Port of the sender; absent: any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_port: Option<u16>,
    /// Port of the receiver.
    pub destination_port: u16,
}

impl FrameSpecification {
    /// Returns that frames are UDP to this address and port.
    pub fn udp_to(to: SocketAddr) -> Self {
        fn tuple<A>(destination_ip_address: A, destination_port: u16) -> IpTuple<A> {
            IpTuple {
                source_ip_address: None,
                destination_ip_address,
                protocol: UDP,
                source_port: None,
                destination_port,
            }
        }
        match to {
            SocketAddr::V4(to) => Self::Ipv4Tuple(tuple(*to.ip(), to.port())),
            SocketAddr::V6(to) => Self::Ipv6Tuple(tuple(*to.ip(), to.port())),
        }
    }
}

impl FrameSpecification {
    /// Returns whether some packet matches both: no field that both have differs.
    pub fn overlaps(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Ipv4Tuple(one), Self::Ipv4Tuple(other)) => one.overlaps(other),
            (Self::Ipv6Tuple(one), Self::Ipv6Tuple(other)) => one.overlaps(other),
            _ => false,
        }
    }
}

impl<A: PartialEq> IpTuple<A> {
    fn overlaps(&self, other: &Self) -> bool {
        fn may_agree<T: PartialEq>(one: Option<&T>, other: Option<&T>) -> bool {
            one.zip(other).is_none_or(|(one, other)| one == other)
        }
        let (address, other_address) = (&self.source_ip_address, &other.source_ip_address);
        let (port, other_port) = (&self.source_port, &other.source_port);
        self.destination_ip_address == other.destination_ip_address
            && self.protocol == other.protocol
            && self.destination_port == other.destination_port
            && may_agree(address.as_ref(), other_address.as_ref())
            && may_agree(port.as_ref(), other_port.as_ref())
    }
}

impl<A> IpTuple<A> {
    fn check(&self) -> Result<(), Refusal> {
        const PORT: &str = "1 to 65535";
        if !PROTOCOLS.contains(&self.protocol) {
            return Err(invalid(
                "protocol",
                self.protocol,
                "6 (TCP), 17 (UDP) or 132 (SCTP)",
            ));
        }
        match (self.destination_port, self.source_port) {
            (0, _) => Err(invalid("destination-port", 0, PORT)),
            (_, Some(0)) => Err(invalid("source-port", 0, PORT)),
            _ => Ok(()),
        }
    }
}

/// What a talker sends in each interval: frames of a length, or bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct TrafficSpecification {
    /// Length of an interval.
    pub interval: Interval,
    /// Most frames in an interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_frames_per_interval: Option<u16>,
    /// Longest frame without what Ethernet adds, bytes: the IP packet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_frame_size: Option<u16>,
    /// Instead of both, which 802.1Qcc has not: UDP payload in an interval, bytes, in datagrams
    /// that fill the talker's MTU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_per_interval: Option<u32>,
}

/// A length of time in seconds, as a fraction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interval {
    /// Number above the line.
    pub numerator: u32,
    /// Number below the line.
    pub denominator: u32,
}

/// A receiver of a stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Listener {
    /// Name of its host.
    pub name: String,
    /// What this listener needs.
    #[serde(default)]
    pub user_to_network_requirements: Requirements,
    /// Names of the nodes from talker to listener, with segments between them where two nodes
    /// have several in common; empty: the shortest path.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub route: Vec<String>,
}

/// What the network is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Requirements {
    /// Longest delay, ns; 0: any.
    #[serde(default)]
    pub max_latency: u64,
}

impl Requirements {
    /// Returns the smaller of two delays, where 0 is any.
    pub(crate) fn and(self, other: Self) -> Option<u64> {
        let given = [self.max_latency, other.max_latency].into_iter();
        given.filter(|ns| *ns > 0).min()
    }
}

impl Interval {
    /// Returns an interval of a whole number of nanoseconds; `None` above 4.29 s.
    pub fn from_ns(ns: u64) -> Option<Self> {
        Some(Self {
            numerator: u32::try_from(ns).ok()?,
            denominator: u32::try_from(NS_PER_S).ok()?,
        })
    }

    /// Returns its length; `None` unless it is a whole number of nanoseconds.
    pub fn as_ns(self) -> Option<u64> {
        let ns = u64::from(self.numerator) * NS_PER_S;
        (ns.checked_rem(self.denominator.into())? == 0).then(|| ns / u64::from(self.denominator))
    }
}

fn invalid(field: &str, value: impl ToString, expected: &str) -> Refusal {
    Refusal::Invalid {
        field: field.to_owned(),
        value: value.to_string(),
        expected: expected.to_owned(),
    }
}

impl TrafficSpecification {
    /// Returns the interval.
    ///
    /// # Errors
    /// If it is no whole number of nanoseconds, or out of range.
    pub fn interval_ns(&self) -> Result<u64, Refusal> {
        let range = LEAST_INTERVAL_NS..=MOST_INTERVAL_NS;
        let ns = self.interval.as_ns().filter(|ns| range.contains(ns));
        ns.ok_or_else(|| {
            let Interval {
                numerator,
                denominator,
            } = self.interval;
            let expected = "1 us to 10 s in whole nanoseconds";
            invalid("interval", format!("{numerator}/{denominator} s"), expected)
        })
    }

    /// Returns the packets of an interval, as a talker on a link of this MTU sends them.
    ///
    /// # Errors
    /// If neither or both forms are given, or a number is out of range.
    pub fn packets(&self, mtu_bytes: u32) -> Result<Packets, Refusal> {
        let given = (
            self.max_frames_per_interval,
            self.max_frame_size,
            self.bytes_per_interval,
        );
        match given {
            (Some(0), Some(_), None) => {
                Err(invalid("max-frames-per-interval", 0, "1 to 65535 frames"))
            }
            (Some(_), Some(size), None) if u32::from(size) <= IPV4_HEADER_BYTES => Err(invalid(
                "max-frame-size",
                size,
                "21 to 65535 bytes: an IP packet",
            )),
            (Some(count), Some(size), None) => Ok(Packets::alike(count.into(), size.into())),
            (None, None, Some(bytes)) if (1..=MOST_PAYLOAD_BYTES).contains(&bytes) => {
                Ok(Packets::of_payload(bytes, mtu_bytes))
            }
            (None, None, Some(bytes)) => Err(invalid(
                "bytes-per-interval",
                bytes,
                "1 to 1000000000 bytes",
            )),
            _ => Err(invalid(
                "traffic-specification",
                "incomplete or twice",
                "max-frames-per-interval and max-frame-size, or bytes-per-interval",
            )),
        }
    }
}

/// Checks what tells a stream from others: its name, and its frames.
pub fn check_stream(stream_id: &str, frames: &[FrameSpecification]) -> Result<(), Refusal> {
    // The model's own ids have colons.
    if !is_name(&stream_id.replace(':', "-")) {
        let expected = format!("{NAME}; beside \"-\" also \":\"");
        return Err(invalid("stream-id", stream_id, &expected));
    }
    if frames.len() > MOST_FRAME_SPECIFICATIONS {
        let expected = "at most 16 entries";
        return Err(invalid("data-frame-specification", frames.len(), expected));
    }
    frames.iter().try_for_each(|one| match one {
        FrameSpecification::Ipv4Tuple(tuple) => tuple.check(),
        FrameSpecification::Ipv6Tuple(tuple) => tuple.check(),
    })
}

impl StreamRequest {
    /// Checks what does not depend on a topology.
    pub fn check(&self) -> Result<(), Refusal> {
        check_stream(&self.stream_id, &self.talker.data_frame_specification)?;
        let count = self.listeners.len();
        if !(1..=MOST_LISTENERS).contains(&count) {
            return Err(invalid("listeners", count, "1 to 256 listeners"));
        }
        let mut names: Vec<_> = self.listeners.iter().map(|l| &l.name).collect();
        names.push(&self.talker.name);
        names.sort();
        if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            let expected = "talker and listeners that are all different";
            return Err(invalid("listeners", twice[0], expected));
        }
        self.talker.traffic_specification.interval_ns()?;
        self.talker.traffic_specification.packets(1500).map(|_| ())
    }
}
