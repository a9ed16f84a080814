// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether what is granted is what another topology gives. Pure.

use admission::{Grant, Listener, Refusal, StreamRequest, Topology, plan};

/// Returns why the same request by the same routes gets less of another topology than was granted: a
/// route is gone, its bound is longer, or it needs more bytes of a link. Whether links have room for it
/// is not looked at.
pub fn misfit(topology: &Topology, request: &StreamRequest, grant: &Grant) -> Option<Refusal> {
    let mut routed = request.clone();
    for (listener, granted) in routed.listeners.iter_mut().zip(&grant.listeners) {
        listener.route = granted.route.iter().map(ToString::to_string).collect();
    }
    let next = match plan(topology, &routed) {
        Ok(plan) => plan.grant,
        Err(Refusal::Invalid { .. }) => return Some(without_route(topology, &routed)),
        Err(refusal) => return Some(refusal),
    };
    let mut pairs = next.listeners.into_iter().zip(&grant.listeners);
    if let Some((next, granted)) = pairs.find(|(next, of)| next.bound_ns > of.bound_ns) {
        return Some(Refusal::Latency {
            listener: next.name.to_string(),
            bound_ns: next.bound_ns,
            wanted_ns: granted.bound_ns,
        });
    }
    next.links.into_iter().find_map(|of| {
        let mut granted = grant.links.iter();
        let granted = granted.find(|link| link.link == of.link);
        let free_bytes = granted.map_or(0, |link| link.bytes);
        (of.bytes > free_bytes).then_some(Refusal::Bandwidth {
            link: of.link.to_string(),
            needed_bytes: of.bytes,
            free_bytes,
        })
    })
}

/// Returns the refusal that names the first listener whose route is gone. O(listeners) plans.
fn without_route(topology: &Topology, routed: &StreamRequest) -> Refusal {
    let is_gone = |listener: &&Listener| {
        let alone = StreamRequest {
            listeners: vec![Listener::clone(listener)],
            ..routed.clone()
        };
        plan(topology, &alone).is_err()
    };
    let gone = routed.listeners.iter().find(is_gone);
    Refusal::NoRoute {
        talker: routed.talker.name.clone(),
        listener: gone.map(|of| of.name.clone()).unwrap_or_default(),
    }
}
