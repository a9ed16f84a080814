// SPDX-License-Identifier: MIT OR Apache-2.0
//! Networks and requests that the tests share.

#![allow(dead_code, reason = "each test takes what it needs")]

use admission::{
    Interval, Listener, Medium, NodeSpec, Requirements, SegmentSpec, StreamRequest, Talker,
    Topology, TrafficSpecification,
};

/// 100 Mbit/s, bit/s.
pub const FAST: u64 = 100_000_000;

/// Nodes by name; those that begin with `r` are routers.
pub fn nodes(names: &[&str]) -> Vec<NodeSpec> {
    let node = |name: &&str| NodeSpec {
        name: (*name).to_owned(),
        is_router: name.starts_with('r'),
    };
    names.iter().map(node).collect()
}

/// A row of shared segments of 100 Mbit/s: a, r1, r2, ..., b.
pub fn row(routers: usize) -> Topology {
    let mut names = vec!["a".to_owned()];
    names.extend((1..=routers).map(|n| format!("r{n}")));
    names.push("b".to_owned());
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let segments: Vec<_> = names
        .windows(2)
        .enumerate()
        .map(|(n, pair)| SegmentSpec::new(&format!("s{n}"), Medium::Shared, FAST, pair))
        .collect();
    Topology::new(&nodes(&names), &segments).unwrap()
}

/// A stream of frames from one host to others.
pub fn frames(id: &str, from: &str, to: &[&str], count: u16, size: u16) -> StreamRequest {
    let specification = TrafficSpecification {
        interval: Interval::from_ns(10_000_000).unwrap(),
        max_frames_per_interval: Some(count),
        max_frame_size: Some(size),
        bytes_per_interval: None,
    };
    request(id, from, to, specification)
}

/// A stream of UDP payload in an interval.
pub fn payload(id: &str, from: &str, to: &[&str], bytes: u32, interval_ns: u64) -> StreamRequest {
    let specification = TrafficSpecification {
        interval: Interval::from_ns(interval_ns).unwrap(),
        max_frames_per_interval: None,
        max_frame_size: None,
        bytes_per_interval: Some(bytes),
    };
    request(id, from, to, specification)
}

pub fn request(
    id: &str,
    from: &str,
    to: &[&str],
    traffic_specification: TrafficSpecification,
) -> StreamRequest {
    let listener = |name: &&str| Listener {
        name: (*name).to_owned(),
        user_to_network_requirements: Requirements::default(),
        route: Vec::new(),
    };
    StreamRequest {
        stream_id: id.to_owned(),
        talker: Talker {
            name: from.to_owned(),
            data_frame_specification: Vec::new(),
            traffic_specification,
            user_to_network_requirements: Requirements::default(),
        },
        listeners: to.iter().map(listener).collect(),
    }
}

/// The same with a longest delay.
pub fn within(mut request: StreamRequest, max_latency: u64) -> StreamRequest {
    request.talker.user_to_network_requirements = Requirements { max_latency };
    request
}
