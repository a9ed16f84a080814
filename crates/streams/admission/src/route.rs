// SPDX-License-Identifier: MIT OR Apache-2.0
//! Routes from a talker to its listeners: the shortest, or as a request gives them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::refusal::Refusal;
use crate::stream::StreamRequest;
use crate::topology::{NodeId, SegmentId, Topology};

/// Most hops of a route: the usual hop limit of IP packets.
const MOST_HOPS: usize = 64;

/// A node that sends the stream into a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hop {
    /// Index of the hop by which the sender gets the stream; `None` at the talker.
    pub before: Option<usize>,
    /// The talker or a router.
    pub sender: NodeId,
    pub segment: SegmentId,
    /// The nodes that take the stream from the segment.
    pub receivers: Vec<NodeId>,
}

/// The hops of a stream, each after the one before it, and the last hop of each listener.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tree {
    pub hops: Vec<Hop>,
    /// Index of the hop that reaches each listener, in the request's order.
    pub last_hops: Vec<usize>,
}

/// One step of a path: from whom, over what, to whom.
type Step = (NodeId, SegmentId, NodeId);

/// Finds the tree of a request. The shortest path is the one with the least bound; then with the
/// fewest hops; then the first in the topology's order.
/// O((n + m) log n) for n nodes and segments with m memberships.
pub fn tree(topology: &Topology, request: &StreamRequest) -> Result<Tree, Refusal> {
    let talker = known(topology, "talker", &request.talker.name)?;
    let mut listeners = Vec::with_capacity(request.listeners.len());
    for listener in &request.listeners {
        listeners.push(known(topology, "listeners", &listener.name)?);
    }
    let is_free = |at: usize| {
        request
            .listeners
            .get(at)
            .is_some_and(|l| l.route.is_empty())
    };
    let wanted: Vec<_> = (0..listeners.len())
        .filter(|at| is_free(*at))
        .filter_map(|at| listeners.get(at).copied())
        .collect();
    let mut shortest = shortest(topology, talker, &wanted);
    let mut builder = Builder::default();
    for (listener, node) in request.listeners.iter().zip(listeners) {
        let path = if listener.route.is_empty() {
            steps_to(&mut shortest, talker, node).ok_or_else(|| Refusal::NoRoute {
                talker: request.talker.name.clone(),
                listener: listener.name.clone(),
            })?
        } else {
            given(topology, &listener.route, talker, node)?
        };
        if path.len() > MOST_HOPS {
            let value = format!("{} hops", path.len());
            return Err(wrong("route", &value, "at most 64 hops"));
        }
        builder.insert(topology, talker, &path)?;
    }
    Ok(builder.0)
}

fn wrong(field: &str, value: &str, expected: &str) -> Refusal {
    Refusal::Invalid {
        field: field.to_owned(),
        value: value.to_owned(),
        expected: expected.to_owned(),
    }
}

fn known(topology: &Topology, field: &str, name: &str) -> Result<NodeId, Refusal> {
    let id = topology.node_id(name);
    id.ok_or_else(|| {
        // A name of any length may come from outside.
        let name: String = name.chars().take(64).collect();
        wrong(field, &name, "the name of a host or a router")
    })
}

/// A node or a segment as a vertex. Nodes come first where all else is alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Vertex {
    Node(NodeId),
    Segment(SegmentId),
}

/// Sum of the hops' bounds, ns, then their number.
type Cost = (u64, usize);

/// From where each vertex is entered on the shortest paths.
struct Entered {
    nodes: Vec<Option<Vertex>>,
    segments: Vec<Option<Vertex>>,
}

impl Entered {
    fn of(&mut self, vertex: Vertex) -> Option<&mut Option<Vertex>> {
        match vertex {
            Vertex::Node(node) => self.nodes.get_mut(node.0),
            Vertex::Segment(segment) => self.segments.get_mut(segment.0),
        }
    }
}

/// Dijkstra's algorithm over nodes and segments, until `wanted` are reached. Of paths that cost the
/// same the queue gives the one by the first vertex. Hosts that nobody asks for are left out.
fn shortest(topology: &Topology, talker: NodeId, wanted: &[NodeId]) -> Entered {
    let start = Vertex::Node(talker);
    let mut entered = Entered {
        nodes: vec![None; topology.nodes().len()],
        segments: vec![None; topology.segments().len()],
    };
    let mut left = wanted.to_vec();
    let mut queue = BinaryHeap::from([Reverse(((0, 0), start, start))]);
    while let Some(Reverse((cost, vertex, from))) = queue.pop() {
        let cost: Cost = cost;
        match entered.of(vertex) {
            Some(entry @ None) => *entry = Some(from),
            _ => continue,
        }
        match vertex {
            Vertex::Node(node) => {
                left.retain(|wanted| *wanted != node);
                if left.is_empty() {
                    break;
                }
                if vertex != start && !topology.node(node).is_router {
                    continue;
                }
                for segment in &topology.node(node).segments {
                    // A router leaves out segments that lead nowhere else.
                    let of = topology.segment(*segment);
                    let leads_on = vertex == start || of.joins_routers;
                    if !leads_on && !wanted.iter().any(|node| of.members.contains(node)) {
                        continue;
                    }
                    let cost = (cost.0.saturating_add(of.spec.hop_ns()), cost.1 + 1);
                    queue.push(Reverse((cost, Vertex::Segment(*segment), vertex)));
                }
            }
            Vertex::Segment(segment) => {
                for member in &topology.segment(segment).members {
                    let leads_on = topology.node(*member).is_router || wanted.contains(member);
                    if leads_on {
                        queue.push(Reverse((cost, Vertex::Node(*member), vertex)));
                    }
                }
            }
        }
    }
    entered
}

fn steps_to(entered: &mut Entered, talker: NodeId, listener: NodeId) -> Option<Vec<Step>> {
    let mut steps = Vec::new();
    let mut at = listener;
    while at != talker {
        let over = (*entered.of(Vertex::Node(at))?)?;
        let from = (*entered.of(over)?)?;
        let (Vertex::Segment(segment), Vertex::Node(sender)) = (over, from) else {
            return None;
        };
        steps.push((sender, segment, at));
        at = sender;
    }
    steps.reverse();
    Some(steps)
}

/// Reads a route that a request gives.
fn given(
    topology: &Topology,
    route: &[String],
    talker: NodeId,
    listener: NodeId,
) -> Result<Vec<Step>, Refusal> {
    let ends = |name: Option<&String>, node: NodeId| {
        name.and_then(|name| topology.node_id(name)) == Some(node)
    };
    // Each hop has at most two names.
    if route.len() > 2 * MOST_HOPS + 1 {
        let value = format!("{} names", route.len());
        return Err(wrong("route", &value, "at most 64 hops"));
    }
    if !ends(route.first(), talker) || !ends(route.last(), listener) {
        let value: Vec<_> = route
            .iter()
            .map(|n| n.chars().take(64).collect::<String>())
            .collect();
        let expected = "names from the talker to the listener";
        return Err(wrong("route", &value.join(" "), expected));
    }
    let mut steps = Vec::new();
    let mut at = talker;
    let mut over = None;
    for name in route.iter().skip(1) {
        if let (None, Some(segment)) = (over, topology.segment_id(name)) {
            over = Some(segment);
            continue;
        }
        let next = known(topology, "route", name)?;
        let joins = |segment: &SegmentId| topology.segment(*segment).members.contains(&next);
        let segments = topology.node(at).segments.iter();
        let mut common = segments.filter(|s| over.is_none_or(|o| o == **s) && joins(s));
        let Some(segment) = common.next() else {
            let value = format!("{} {name}", topology.node(at).name);
            return Err(wrong("route", &value, "two nodes of one segment"));
        };
        if at != talker && !topology.node(at).is_router {
            return Err(wrong("route", &topology.node(at).name, "a router"));
        }
        steps.push((at, *segment, next));
        (at, over) = (next, None);
    }
    Ok(steps)
}

/// A tree that grows by paths.
#[derive(Default)]
struct Builder(Tree);

impl Builder {
    fn insert(
        &mut self,
        topology: &Topology,
        talker: NodeId,
        path: &[Step],
    ) -> Result<(), Refusal> {
        let mut before = None;
        for (sender, segment, receiver) in path {
            let hops = &mut self.0.hops;
            let entered = hops.iter().position(|h| h.receivers.contains(receiver));
            let of_segment = hops.iter().position(|h| h.segment == *segment);
            let is_same = |at: Option<usize>| {
                at.is_none_or(|at| {
                    hops.get(at)
                        .is_some_and(|h| h.sender == *sender && h.before == before)
                })
            };
            let fits = is_same(entered) && is_same(of_segment);
            if *receiver == talker || !fits || (entered.is_some() && entered != of_segment) {
                let expected = "routes that enter each segment and node once";
                let name = &topology.node(*receiver).name;
                return Err(wrong("route", name, expected));
            }
            let at = of_segment.unwrap_or(hops.len());
            if of_segment.is_none() {
                hops.push(Hop {
                    before,
                    sender: *sender,
                    segment: *segment,
                    receivers: Vec::new(),
                });
            }
            if let Some(hop) = hops.get_mut(at) {
                if !hop.receivers.contains(receiver) {
                    hop.receivers.push(*receiver);
                }
            }
            before = Some(at);
        }
        // A path has a step at least: talker and listener differ.
        self.0.last_hops.extend(before);
        Ok(())
    }
}
