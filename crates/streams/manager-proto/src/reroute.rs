// SPDX-License-Identifier: MIT OR Apache-2.0
//! The route of a stream after a node has begun to send it into another segment. Pure.

use admission::{Grant, ListenerGrant, Refusal, Requirements, StreamRequest, Topology, plan};

use crate::answer::{Answer, Failure};
use crate::record::Reservation;

/// Returns the request that a reservation becomes if a node sends its frames into a segment, or the
/// answer to that. `None`: it sends them there already.
///
/// # Errors
/// If the node does not send the stream or is not in the segment, or no route leads on from there.
pub fn wanted_route(
    topology: &Topology,
    reservation: &Reservation,
    (node, segment): (&str, &str),
) -> Result<Option<StreamRequest>, Answer> {
    let short = |name: &str| name.chars().take(64).collect::<String>();
    if !reservation.grant.senders().contains(&node) {
        return Err(Failure::Node(short(node)).into());
    }
    let own = topology.node_id(node);
    let own = own.map(|id| &topology.node(id).segments);
    let entered = topology.segment_id(segment);
    if !own.is_some_and(|own| entered.is_some_and(|of| own.contains(&of))) {
        return Err(Failure::Segment(short(segment)).into());
    }
    let (request, grant) = (&reservation.request, &reservation.grant);
    Ok(rerouted(topology, request, grant, (node, segment))?)
}

/// Returns the request with the routes that its frames take if a node sends them into a segment:
/// as they were up to the node, and from there the shortest. `None`: it sends them there already.
///
/// # Errors
/// If no such route leads to a listener. The node sends the stream, and is in the segment.
fn rerouted(
    topology: &Topology,
    request: &StreamRequest,
    grant: &Grant,
    (node, segment): (&str, &str),
) -> Result<Option<StreamRequest>, Refusal> {
    let mut wanted = request.clone();
    let mut is_other = false;
    for (listener, granted) in wanted.listeners.iter_mut().zip(&grant.listeners) {
        // Nodes and segments take turns, and the listener sends nothing.
        let nodes = granted.route.iter().step_by(2);
        let senders = nodes.take(granted.route.len() / 2);
        let at = senders.enumerate().find(|(_, name)| *name == node);
        let at = at.map(|(n, _)| 2 * n);
        listener.route = match at {
            Some(at) if granted.route.get(at + 1).is_none_or(|of| of != segment) => {
                is_other = true;
                path_by(topology, request, granted, at, segment)?
            }
            _ => granted.route.iter().map(ToString::to_string).collect(),
        };
    }
    Ok(is_other.then_some(wanted))
}

/// Returns the names of a listener's route that leaves the old one at a node for a segment.
fn path_by(
    topology: &Topology,
    request: &StreamRequest,
    granted: &ListenerGrant,
    at: usize,
    segment: &str,
) -> Result<Vec<String>, Refusal> {
    let before = granted.route.iter().take(at + 1);
    let mut before: Vec<_> = before.map(ToString::to_string).collect();
    let node = before.last().cloned().unwrap_or_default();
    // A route enters each node and each segment once.
    let is_back = before.iter().skip(1).step_by(2).any(|of| of == segment);
    before.push(segment.to_owned());
    let members = topology.segment_id(segment).map(|id| topology.segment(id));
    let members = members.map(|of| of.members.clone()).unwrap_or_default();
    let ends = members.into_iter().filter_map(|member| {
        let member = topology.node(member);
        let (bound_ns, rest) = if member.name == granted.name {
            (0, vec![member.name.to_string()])
        } else if member.is_router {
            rest(topology, request, &member.name, &granted.name)?
        } else {
            return None;
        };
        let is_new = !is_back && rest.iter().all(|name| !before.contains(name));
        is_new.then_some((bound_ns, rest))
    });
    // Of routes that are as fast the first in the topology's order.
    let shortest = ends.min_by_key(|(bound_ns, rest)| (*bound_ns, rest.len()));
    let (_, rest) = shortest.ok_or_else(|| Refusal::NoRoute {
        talker: node,
        listener: granted.name.to_string(),
    })?;
    before.extend(rest);
    Ok(before)
}

/// Returns the shortest way from a router to a listener, with its bound.
fn rest(
    topology: &Topology,
    request: &StreamRequest,
    from: &str,
    to: &str,
) -> Option<(u64, Vec<String>)> {
    let mut of = request.clone();
    of.talker.name = from.to_owned();
    of.talker.user_to_network_requirements = Requirements::default();
    of.listeners.retain(|listener| listener.name == to);
    for listener in &mut of.listeners {
        listener.user_to_network_requirements = Requirements::default();
        listener.route.clear();
    }
    let found = plan(topology, &of).ok()?.grant.listeners.pop()?;
    let route = found.route.iter().map(ToString::to_string);
    Some((found.bound_ns, route.collect()))
}
