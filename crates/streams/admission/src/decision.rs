// SPDX-License-Identifier: MIT OR Apache-2.0
//! The decision over a stream: route, bytes on each link, bound, and whether they fit.

use serde::{Deserialize, Serialize};

use crate::frames::Packets;
use crate::ledger::{Ledger, LinkUse};
use crate::name::Name;
use crate::refusal::Refusal;
use crate::route::{Tree, tree};
use crate::stream::StreamRequest;
use crate::topology::{SegmentId, Topology};

/// What a stream needs of a network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The bytes of each link, in the order of the route; each link once.
    pub uses: Vec<LinkUse>,
    /// The same in names, with the bounds.
    pub grant: Grant,
}

/// A reservation in names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    pub stream_id: Name,
    /// Bounds and routes, in the request's order.
    pub listeners: Vec<ListenerGrant>,
    /// Wire bytes of each link, in the order of the route.
    pub links: Vec<LinkBytes>,
    /// Number of periods over which the talker spreads the frames of an interval.
    pub spread_periods: u64,
}

/// What a listener may rely on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListenerGrant {
    /// Name of the listener.
    pub name: Name,
    /// Longest delay of a packet from the talker to this listener, ns.
    pub bound_ns: u64,
    /// Names from the talker to the listener: node, segment, node, and so on.
    pub route: Vec<Name>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkBytes {
    pub link: Name,
    /// Wire bytes in each period of the link's segment.
    pub bytes: u64,
}

impl Grant {
    /// Returns the longest delay of a packet to any listener, ns.
    pub fn bound_ns(&self) -> u64 {
        let bounds = self.listeners.iter().map(|l| l.bound_ns);
        bounds.max().unwrap_or(0)
    }

    /// Has a grant that was read share the names of its topology.
    pub fn share_names(&mut self, topology: &Topology) {
        let routes = self.listeners.iter_mut().map(|of| &mut of.route);
        for name in routes.flatten() {
            *name = topology.shared_name(name);
        }
        for link in &mut self.links {
            link.link = topology.shared_name(&link.link);
        }
    }

    /// Returns the names of the nodes that send the stream: the talker and the routers.
    pub fn senders(&self) -> Vec<&str> {
        let mut senders = Vec::new();
        for listener in &self.listeners {
            let nodes = listener.route.iter().step_by(2).map(Name::as_str);
            let count = (listener.route.len() / 2).max(1);
            for node in nodes.take(count) {
                if !senders.contains(&node) {
                    senders.push(node);
                }
            }
        }
        senders
    }
}

/// Finds a stream's route, the bytes that it needs and its bounds, whatever else is reserved.
///
/// A hop's bound is [`hop_ns`](crate::SegmentSpec::hop_ns) of the segment that its sender sends into. Where all
/// periods of the route are alike and the stream's interval has several, the talker spreads the
/// frames over as many as the longest delay allows. That costs the least bytes and delays the
/// last frame by these periods once, not at each hop: a burst is paid once (Le Boudec and
/// Thiran, Network Calculus, theorem 1.4.6).
///
/// # Errors
/// If the request is not valid, no route exists, or the shortest delay is too long.
pub fn plan(topology: &Topology, request: &StreamRequest) -> Result<Plan, Refusal> {
    request.check()?;
    let tree = tree(topology, request)?;
    let base_ns = base_latencies(topology, &tree);
    let spread = Spread::of(topology, request, &tree)?;
    let mut most = spread.most_periods;
    let mut listeners = Vec::with_capacity(request.listeners.len());
    for (listener, last) in request.listeners.iter().zip(&tree.last_hops) {
        let needs = listener.user_to_network_requirements;
        let wanted_ns = needs.and(request.talker.user_to_network_requirements);
        let bound_ns = base_ns.get(*last).copied().unwrap_or(u64::MAX);
        if let Some(wanted_ns) = wanted_ns {
            let Some(rest_ns) = wanted_ns.checked_sub(bound_ns) else {
                return Err(Refusal::Latency {
                    listener: listener.name.clone(),
                    bound_ns,
                    wanted_ns,
                });
            };
            most = most.min(1 + rest_ns / spread.period_ns);
        }
        listeners.push(ListenerGrant {
            name: Name::from(&listener.name),
            bound_ns,
            route: names(topology, &tree, *last, &listener.name),
        });
    }
    let (count, periods) = spread.over(most);
    for listener in &mut listeners {
        let more_ns = (periods - 1).saturating_mul(spread.period_ns);
        listener.bound_ns = listener.bound_ns.saturating_add(more_ns);
    }
    let uses = needs(topology, &tree, &spread, count);
    let links = uses.iter().map(|LinkUse { link, bytes }| LinkBytes {
        link: topology.link(*link).name.clone(),
        bytes: *bytes,
    });
    let grant = Grant {
        stream_id: Name::from(&request.stream_id),
        listeners,
        links: links.collect(),
        spread_periods: periods,
    };
    Ok(Plan { uses, grant })
}

/// Plans a stream and compares its bytes with what the ledger has left.
///
/// # Errors
/// As [`plan`]; or the stream id is in use, or a link lacks bytes.
pub fn admit(
    topology: &Topology,
    ledger: &Ledger,
    request: &StreamRequest,
) -> Result<Plan, Refusal> {
    let plan = plan(topology, request)?;
    if ledger.held(&request.stream_id).is_some() {
        return Err(Refusal::StreamIdInUse {
            stream_id: request.stream_id.clone(),
        });
    }
    ledger.fits(topology, &request.stream_id, &plan.uses)?;
    Ok(plan)
}

/// Returns the sum of the bounds up to and with each hop, ns.
fn base_latencies(topology: &Topology, tree: &Tree) -> Vec<u64> {
    let mut sums_ns: Vec<u64> = Vec::with_capacity(tree.hops.len());
    for hop in &tree.hops {
        let hop_ns = topology.segment(hop.segment).spec.hop_ns();
        let before_ns = hop.before.and_then(|at| sums_ns.get(at)).copied();
        sums_ns.push(before_ns.unwrap_or(0).saturating_add(hop_ns));
    }
    sums_ns
}

/// Returns the names from the talker to the receiver of a hop.
fn names(topology: &Topology, tree: &Tree, last: usize, listener: &str) -> Vec<Name> {
    let own = topology.node_id(listener);
    let own = own.map(|id| topology.node(id).name.clone());
    let mut names = vec![own.unwrap_or_else(|| Name::from(listener))];
    let mut at = tree.hops.get(last);
    while let Some(hop) = at {
        names.push(topology.segment(hop.segment).name.clone());
        names.push(topology.node(hop.sender).name.clone());
        at = hop.before.and_then(|before| tree.hops.get(before));
    }
    names.reverse();
    names
}

/// The packets of an interval, and how far they may be spread.
struct Spread {
    packets: Packets,
    interval_ns: u64,
    /// Period of the talker's segment.
    period_ns: u64,
    /// Most periods that the frames of an interval may take.
    most_periods: u64,
}

impl Spread {
    fn of(topology: &Topology, request: &StreamRequest, tree: &Tree) -> Result<Self, Refusal> {
        let specification = &request.talker.traffic_specification;
        let interval_ns = specification.interval_ns()?;
        let specs = || {
            tree.hops
                .iter()
                .map(|hop| &topology.segment(hop.segment).spec)
        };
        let first = || tree.hops.iter().filter(|hop| hop.before.is_none());
        let mtus = first().map(|hop| topology.segment(hop.segment).spec.mtu_bytes);
        let mtu_bytes = mtus.min().unwrap_or(u32::from(u16::MAX));
        let period_ns = specs().map(|spec| spec.period_ns).next().unwrap_or(1);
        let alike = specs().all(|spec| spec.period_ns == period_ns);
        let packets = specification.packets(mtu_bytes)?.fragmented(mtu_bytes);
        let fit = if alike { interval_ns / period_ns } else { 1 };
        Ok(Self {
            most_periods: fit.clamp(1, packets.count().max(1)),
            packets,
            interval_ns,
            period_ns,
        })
    }

    /// Returns the packets of a period, and the periods they take, if they may take `most`.
    fn over(&self, most: u64) -> (u64, u64) {
        let all = self.packets.count();
        let count = all.div_ceil(most.clamp(1, self.most_periods)).max(1);
        (count, all.div_ceil(count).max(1))
    }

    /// Returns the wire bytes of one period on a segment, for `packets` that the talker sends in
    /// one of its own.
    fn bytes(&self, topology: &Topology, segment: SegmentId, packets: &Packets) -> u64 {
        let spec = &topology.segment(segment).spec;
        // The intervals that begin in any one period.
        let intervals = spec.period_ns.div_ceil(self.interval_ns);
        packets.wire_bytes(spec.is_tagged).saturating_mul(intervals)
    }
}

/// Returns the bytes of each link, in the order of the hops, if the talker sends the `count`
/// longest packets of an interval in one period.
fn needs(topology: &Topology, tree: &Tree, spread: &Spread, count: u64) -> Vec<LinkUse> {
    let mut sent: Vec<Packets> = Vec::with_capacity(tree.hops.len());
    let first = spread.packets.longest(count);
    let mut uses: Vec<LinkUse> = Vec::new();
    for hop in &tree.hops {
        let spec = &topology.segment(hop.segment).spec;
        // Routers split what is longer than the next link's MTU; only the listener joins it.
        let before = hop.before.and_then(|at| sent.get(at)).unwrap_or(&first);
        let packets = before.fragmented(spec.mtu_bytes);
        let bytes = spread.bytes(topology, hop.segment, &packets);
        for link in topology.links_of_hop(hop.segment, hop.sender, &hop.receivers) {
            uses.push(LinkUse { link, bytes });
        }
        sent.push(packets);
    }
    uses
}
