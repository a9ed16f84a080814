// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hosts, routers and segments, and the links that they are made of.

use std::collections::BTreeMap;
use std::fmt;

use crate::name::Name;
use serde::{Deserialize, Serialize};
use units::ethernet::{HEADER_BYTES, WIRE_OVERHEAD_BYTES, wire_bytes};
use units::itm::{BUDGET_PCT, PERIOD_NS};
use units::time::NS_PER_S;

/// Shortest period, ns: threads of Linux do not keep shorter ones.
const LEAST_PERIOD_NS: u64 = 100_000;
/// Longest period, ns: longer ones are of no use.
const MOST_PERIOD_NS: u64 = NS_PER_S;
/// Highest rate of a segment, bit/s. A period then carries less than 2^44 bytes.
const MOST_RATE_BPS: u64 = 100_000_000_000_000;
/// Smallest and largest MTU, those of IPv4.
const MTU_BYTES: std::ops::RangeInclusive<u32> = 68..=65_535;
/// Nanoseconds in a second times bits in a byte.
const BIT_NS: u128 = 8 * NS_PER_S as u128;
/// Length of an IEEE 802.1Q tag.
const TAG_BYTES: u32 = 4;
/// The whole of a period, per cent.
pub const MOST_PERCENT: u32 = 100;

/// Index of a node in its topology.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub usize);

/// Index of a segment in its topology.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SegmentId(pub usize);

/// Index of a link in its topology.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub usize);

/// A host or a router, as its owner describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeSpec {
    pub name: String,
    /// Whether it forwards packets of others.
    pub is_router: bool,
}

/// How the members of a segment share it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Medium {
    /// One medium for all, as a hub or a radio channel: each frame takes time of every member.
    Shared,
    /// A full-duplex switch: each member has a link towards the switch and one from it.
    Switched,
}

impl fmt::Display for Medium {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Shared => "shared",
            Self::Switched => "switched",
        })
    }
}

/// A segment, as its owner describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentSpec {
    pub name: String,
    /// How its members share it.
    pub medium: Medium,
    /// Rate of each link, bit/s.
    pub rate_bps: u64,
    /// Period of its members' ITM threads, ns.
    pub period_ns: u64,
    /// Time between a member's RT-IP and ITM threads, ns.
    pub slot_ns: u64,
    /// Longest IP packet, bytes.
    pub mtu_bytes: u32,
    /// Share of a period that streams may take, per cent.
    pub rt_percent: u32,
    /// Share of a period that streams and best effort may take together, per cent.
    pub total_percent: u32,
    /// Wire bytes of best effort in each period that every member keeps, whatever is reserved.
    pub nrt_bytes: u64,
    /// Whether frames have an IEEE 802.1Q tag.
    pub is_tagged: bool,
    /// Names of its hosts and routers.
    pub members: Vec<String>,
    /// Name of the manager that decides over it.
    pub manager: Option<String>,
}

impl SegmentSpec {
    /// Returns a segment with paper 004's values: period 10 ms, slot a tenth of it, 70 % for
    /// streams; on a shared medium 70 % for all. Best effort keeps two of the longest frames.
    pub fn new(name: &str, medium: Medium, rate_bps: u64, members: &[&str]) -> Self {
        Self {
            name: name.to_owned(),
            medium,
            rate_bps,
            period_ns: PERIOD_NS,
            slot_ns: PERIOD_NS / 10,
            mtu_bytes: 1500,
            rt_percent: BUDGET_PCT,
            total_percent: Self::default_total(medium, BUDGET_PCT),
            nrt_bytes: Self::default_nrt(1500, false),
            is_tagged: false,
            members: members.iter().map(|name| (*name).to_owned()).collect(),
            manager: None,
        }
    }

    /// Returns the share of a period for streams and best effort together, per cent. On a shared
    /// medium what is above 70 % makes collisions (paper 004, 2.1); a switch has none.
    pub fn default_total(medium: Medium, rt_percent: u32) -> u32 {
        match medium {
            Medium::Shared => BUDGET_PCT.max(rt_percent),
            Medium::Switched => MOST_PERCENT,
        }
    }

    /// Returns the wire bytes of best effort that each member keeps: two of the longest frames.
    /// Late frames of streams go first and best effort pays for them, so it needs room at every
    /// node (paper 004, late-first).
    pub fn default_nrt(mtu_bytes: u32, is_tagged: bool) -> u64 {
        let mtu_bytes = mtu_bytes.min(*MTU_BYTES.end());
        2 * u64::from(wire_bytes_of_packet(mtu_bytes, is_tagged))
    }

    /// Returns the longest that a frame waits at a node that sends into the segment, ns: a period and a
    /// slot (paper 004, 4.3), and then all that may go before it. Of a link those are the streams and one
    /// longest frame, together `rt`; on a shared medium best effort of others too, `total`. What waits
    /// in a switch is not counted.
    pub fn hop_ns(&self) -> u64 {
        let percent = match self.medium {
            Medium::Shared => self.total_percent,
            Medium::Switched => self.rt_percent,
        };
        let before_ns = u128::from(self.period_ns) * u128::from(percent);
        let before_ns = before_ns.div_ceil(u128::from(MOST_PERCENT));
        let before_ns = u64::try_from(before_ns).unwrap_or(u64::MAX);
        let turn_ns = self.period_ns.saturating_add(self.slot_ns);
        turn_ns.saturating_add(before_ns)
    }

    /// Returns the wire bytes of a period that best effort keeps on each link.
    pub fn nrt_link_bytes(&self) -> u64 {
        self.nrt_bytes.saturating_mul(self.nodes_per_link())
    }

    /// Returns the wire bytes of each link's period that streams could take if best effort kept
    /// none.
    pub fn nrt_cost_bytes(&self) -> u64 {
        let rt_bytes = period_bytes(self, self.rt_percent).saturating_sub(guard_bytes(self));
        let total_bytes = period_bytes(self, self.total_percent);
        rt_bytes.saturating_sub(total_bytes.saturating_sub(self.nrt_link_bytes()))
    }

    /// Returns the number of members whose best effort takes bytes of the same link.
    fn nodes_per_link(&self) -> u64 {
        match self.medium {
            Medium::Shared => self.members.len() as u64,
            Medium::Switched => 1,
        }
    }
}

/// A host or a router.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    pub name: Name,
    /// Whether it forwards packets of others.
    pub is_router: bool,
    /// Its segments, in the topology's order.
    pub segments: Vec<SegmentId>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    pub name: Name,
    pub spec: SegmentSpec,
    /// Its members, in the order of the description.
    pub members: Vec<NodeId>,
    /// Its links, one, or two for each member.
    first_link: usize,
    /// Whether it joins routers: a route of others may lead over it.
    pub(crate) joins_routers: bool,
}

/// Which frames a link carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// All frames of a shared segment.
    Any,
    /// Frames of this member, towards the switch.
    Up(NodeId),
    /// Frames for this member, from the switch.
    Down(NodeId),
}

/// What a reservation takes bytes of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Its name: that of the segment, or `segment/member/up` and `segment/member/down`.
    pub name: Name,
    pub segment: SegmentId,
    /// Which frames it carries.
    pub direction: Direction,
    /// Wire bytes that streams may take in a period.
    pub budget_bytes: u64,
    /// Wire bytes that streams and best effort may take together in a period.
    pub total_bytes: u64,
}

/// A checked network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    nodes: Vec<Node>,
    segments: Vec<Segment>,
    links: Vec<Link>,
    node_names: BTreeMap<Name, NodeId>,
    segment_names: BTreeMap<Name, SegmentId>,
    link_names: BTreeMap<Name, LinkId>,
}

/// Why a network is refused: the key of a segment or node, its value, and what was expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{owner}: `{key}` is {value}, expected {expected}")]
pub struct Fault {
    /// The segment or node.
    pub owner: String,
    /// Its index among the segments or among the nodes.
    pub index: usize,
    /// Whether the owner is a segment.
    pub is_segment: bool,
    pub key: &'static str,
    pub value: String,
    /// The values that are valid.
    pub expected: String,
}

/// What [`is_name`] expects, in words.
pub const NAME: &str = "1 to 64 letters, digits, \".\", \"_\" and \"-\", of which the first is a \
                        letter, digit or \"_\"";

/// Returns whether a text is a name: 1 to 64 letters, digits, `.`, `_` and `-`, of which the
/// first is a letter, digit or `_`. So no name is an option of a command or a folder above.
pub fn is_name(text: &str) -> bool {
    let begins = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let fits = |c: char| begins(c) || ".-".contains(c);
    (1..=64).contains(&text.len()) && text.starts_with(begins) && text.chars().all(fits)
}

impl Topology {
    /// Checks a network and computes the budget of each link. O(n log n) for n members.
    pub fn new(nodes: &[NodeSpec], segments: &[SegmentSpec]) -> Result<Self, Fault> {
        let mut topology = Self {
            nodes: Vec::new(),
            segments: Vec::new(),
            links: Vec::new(),
            node_names: BTreeMap::new(),
            segment_names: BTreeMap::new(),
            link_names: BTreeMap::new(),
        };
        for (index, node) in nodes.iter().enumerate() {
            let fault = |expected: &str| Fault {
                owner: format!("node {index}"),
                index,
                is_segment: false,
                key: "name",
                value: format!("\"{}\"", node.name),
                expected: expected.to_owned(),
            };
            if !is_name(&node.name) {
                return Err(fault(NAME));
            }
            if topology.node_names.contains_key(node.name.as_str()) {
                return Err(fault("a name not in use"));
            }
            let name = Name::from(&node.name);
            topology.node_names.insert(name.clone(), NodeId(index));
            topology.nodes.push(Node {
                name,
                is_router: node.is_router,
                segments: Vec::new(),
            });
        }
        for (index, spec) in segments.iter().enumerate() {
            topology.add_segment(index, spec)?;
        }
        Ok(topology)
    }

    fn add_segment(&mut self, index: usize, spec: &SegmentSpec) -> Result<(), Fault> {
        let fault = |key: &'static str, value: String, expected: &str| {
            segment_fault(index, spec, key, value, expected)
        };
        let quoted = |text: &str| format!("\"{text}\"");
        if !is_name(&spec.name) {
            return Err(fault("name", quoted(&spec.name), NAME));
        }
        let taken = self.segment_names.contains_key(spec.name.as_str())
            || self.node_names.contains_key(spec.name.as_str());
        if taken {
            return Err(fault("name", quoted(&spec.name), "a name not in use"));
        }
        for (key, value, least, most, expected) in numbers(spec) {
            if !(least..=most).contains(&value) {
                return Err(fault(key, value.to_string(), expected));
            }
        }
        let id = SegmentId(index);
        let members = self.add_members(id, spec)?;
        let budget_bytes = budget_bytes(index, spec)?;
        let first_link = self.add_links(id, spec, &members, budget_bytes);
        let name = Name::from(&spec.name);
        self.segment_names.insert(name.clone(), id);
        let is_router = |node: &&NodeId| self.node(**node).is_router;
        let joins_routers = members.iter().filter(is_router).count() > 1;
        self.segments.push(Segment {
            name,
            joins_routers,
            spec: spec.clone(),
            members,
            first_link,
        });
        Ok(())
    }

    /// Returns the members of a segment, which know of it from now on.
    fn add_members(&mut self, id: SegmentId, spec: &SegmentSpec) -> Result<Vec<NodeId>, Fault> {
        let fault =
            |value: String, expected: &str| segment_fault(id.0, spec, "members", value, expected);
        let quoted = |text: &str| format!("\"{text}\"");
        let mut members = Vec::with_capacity(spec.members.len());
        for name in &spec.members {
            let known = self.node_names.get(name.as_str()).copied();
            let node =
                known.ok_or_else(|| fault(quoted(name), "the name of a host or a router"))?;
            let of_node = self.nodes.get_mut(node.0);
            let fresh = of_node.filter(|node| node.segments.last() != Some(&id));
            let Some(fresh) = fresh else {
                return Err(fault(quoted(name), "each name once"));
            };
            fresh.segments.push(id);
            members.push(node);
        }
        if members.len() < 2 {
            return Err(fault(members.len().to_string(), "at least two names"));
        }
        Ok(members)
    }

    /// Adds the links of a segment, and returns the index of the first.
    fn add_links(
        &mut self,
        id: SegmentId,
        spec: &SegmentSpec,
        members: &[NodeId],
        budget_bytes: u64,
    ) -> usize {
        let link = |name: String, direction: Direction| Link {
            name: name.into(),
            segment: id,
            direction,
            budget_bytes,
            total_bytes: period_bytes(spec, spec.total_percent),
        };
        let first_link = self.links.len();
        match spec.medium {
            Medium::Shared => self.links.push(link(spec.name.clone(), Direction::Any)),
            Medium::Switched => {
                for (name, node) in spec.members.iter().zip(members) {
                    let named = |end: &str| format!("{}/{name}/{end}", spec.name);
                    self.links.push(link(named("up"), Direction::Up(*node)));
                    self.links.push(link(named("down"), Direction::Down(*node)));
                }
            }
        }
        for (at, link) in self.links.iter().enumerate().skip(first_link) {
            self.link_names.insert(link.name.clone(), LinkId(at));
        }
        first_link
    }

    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// Returns the node of this name.
    pub fn node_id(&self, name: &str) -> Option<NodeId> {
        self.node_names.get(name).copied()
    }

    /// Returns the segment of this name.
    pub fn segment_id(&self, name: &str) -> Option<SegmentId> {
        self.segment_names.get(name).copied()
    }

    /// Returns the link of this name.
    pub fn link_id(&self, name: &str) -> Option<LinkId> {
        self.link_names.get(name).copied()
    }

    /// Returns a name of the topology, or a new one if it has none such.
    pub fn shared_name(&self, text: &str) -> Name {
        let known = self.link_names.get_key_value(text).map(|(name, _)| name);
        let known = known.or_else(|| self.node_names.get_key_value(text).map(|(name, _)| name));
        let known = known.or_else(|| self.segment_names.get_key_value(text).map(|(name, _)| name));
        known.cloned().unwrap_or_else(|| Name::from(text))
    }

    /// Returns a node.
    ///
    /// # Panics
    /// If the index is of another topology.
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.0]
    }

    /// Returns a segment.
    ///
    /// # Panics
    /// If the index is of another topology.
    pub fn segment(&self, id: SegmentId) -> &Segment {
        &self.segments[id.0]
    }

    /// Returns a link.
    ///
    /// # Panics
    /// If the index is of another topology.
    pub fn link(&self, id: LinkId) -> &Link {
        &self.links[id.0]
    }

    /// Returns the links that a frame takes from `sender` to `receivers`, in its order. O(members).
    pub fn links_of_hop(
        &self,
        segment: SegmentId,
        sender: NodeId,
        receivers: &[NodeId],
    ) -> Vec<LinkId> {
        let of = self.segment(segment);
        let place = |node: NodeId| of.members.iter().position(|member| *member == node);
        match of.spec.medium {
            Medium::Shared => vec![LinkId(of.first_link)],
            Medium::Switched => {
                let up = place(sender).map(|at| LinkId(of.first_link + 2 * at));
                let down = receivers.iter().filter_map(|node| place(*node));
                let down = down.map(|at| LinkId(of.first_link + 2 * at + 1));
                up.into_iter().chain(down).collect()
            }
        }
    }
}

fn segment_fault(
    index: usize,
    spec: &SegmentSpec,
    key: &'static str,
    value: String,
    expected: &str,
) -> Fault {
    Fault {
        owner: format!("segment \"{}\"", spec.name),
        index,
        is_segment: true,
        key,
        value,
        expected: expected.to_owned(),
    }
}

/// The numbers of a segment: key, value, least, most, and what is expected.
fn numbers(spec: &SegmentSpec) -> [(&'static str, u64, u64, u64, &'static str); 6] {
    [
        ("rate", spec.rate_bps, 1, MOST_RATE_BPS, "1bit to 100tbit"),
        (
            "period",
            spec.period_ns,
            LEAST_PERIOD_NS,
            MOST_PERIOD_NS,
            "100us to 1s",
        ),
        (
            "slot",
            spec.slot_ns,
            0,
            spec.period_ns.saturating_sub(1),
            "a time below the period",
        ),
        (
            "mtu",
            spec.mtu_bytes.into(),
            (*MTU_BYTES.start()).into(),
            (*MTU_BYTES.end()).into(),
            "68 to 65535 bytes",
        ),
        (
            "rt",
            spec.rt_percent.into(),
            1,
            MOST_PERCENT.into(),
            "1 to 100 per cent",
        ),
        (
            "total",
            spec.total_percent.into(),
            spec.rt_percent.into(),
            MOST_PERCENT.into(),
            "rt to 100 per cent",
        ),
    ]
}

/// Returns the wire bytes of each link that streams may take in a period: their share less the
/// longest best-effort frame, and at most what best effort does not keep of the whole.
fn budget_bytes(index: usize, spec: &SegmentSpec) -> Result<u64, Fault> {
    let left = |all_bytes: u64, less_bytes: u64| {
        all_bytes.checked_sub(less_bytes).filter(|left| *left > 0)
    };
    let rt_bytes = period_bytes(spec, spec.rt_percent);
    let guard_bytes = guard_bytes(spec);
    let Some(of_rt_bytes) = left(rt_bytes, guard_bytes) else {
        let expected = format!(
            "a rate at which {} % of a period, {rt_bytes} bytes now, are more than the longest \
             best-effort frame of {guard_bytes} bytes",
            spec.rt_percent
        );
        let value = spec.rate_bps.to_string();
        return Err(segment_fault(index, spec, "rate", value, &expected));
    };
    let total_bytes = period_bytes(spec, spec.total_percent);
    let Some(of_total_bytes) = left(total_bytes, spec.nrt_link_bytes()) else {
        let value = spec.nrt_bytes.to_string();
        let expected = least_nrt_expected(spec, total_bytes);
        return Err(segment_fault(index, spec, "nrt", value, &expected));
    };
    Ok(of_rt_bytes.min(of_total_bytes))
}

/// Returns the values of `nrt` and `rate` that leave something for streams.
fn least_nrt_expected(spec: &SegmentSpec, total_bytes: u64) -> String {
    let count = spec.nodes_per_link().max(1);
    let most_bytes = total_bytes.saturating_sub(1) / count;
    let mut expected = format!(
        "at most {most_bytes} bytes for each of {} members",
        spec.members.len()
    );
    let period_percent_ns = u128::from(spec.period_ns) * u128::from(spec.total_percent);
    let least_bytes = u128::from(spec.nrt_link_bytes()) + 1;
    let bit_percent_ns = least_bytes * BIT_NS * u128::from(MOST_PERCENT);
    let rate_bps = bit_percent_ns.div_ceil(period_percent_ns.max(1));
    if rate_bps <= u128::from(MOST_RATE_BPS) {
        expected.push_str(&format!(", or a `rate` of at least {rate_bps}bit"));
    }
    expected
}

/// Returns the wire bytes of a share of a period, rounded down.
fn period_bytes(spec: &SegmentSpec, percent: u32) -> u64 {
    let bits = u128::from(spec.rate_bps) * u128::from(spec.period_ns) * u128::from(percent);
    u64::try_from(bits / (BIT_NS * u128::from(MOST_PERCENT))).unwrap_or(u64::MAX)
}

/// Returns the wire bytes of the longest best-effort frame, which may be on the wire when a
/// stream's frame is due.
fn guard_bytes(spec: &SegmentSpec) -> u64 {
    wire_bytes_of_packet(spec.mtu_bytes, spec.is_tagged).into()
}

/// Returns the wire bytes of an IP packet: with headers, tag, padding, FCS, preamble and gap.
pub(crate) fn wire_bytes_of_packet(ip_bytes: u32, is_tagged: bool) -> u32 {
    let tag_bytes = if is_tagged { TAG_BYTES } else { 0 };
    // A packet of at most 65,535 bytes: no overflow.
    debug_assert!(ip_bytes <= u32::MAX - HEADER_BYTES - TAG_BYTES - WIRE_OVERHEAD_BYTES);
    wire_bytes(
        ip_bytes
            .saturating_add(HEADER_BYTES)
            .saturating_add(tag_bytes),
    )
}
