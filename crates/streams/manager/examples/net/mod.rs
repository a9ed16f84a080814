// SPDX-License-Identifier: MIT OR Apache-2.0
//! A network of 10,000 links, and requests by chance for it.

use admission::{
    Interval, Listener, Medium, NodeSpec, Requirements, SegmentSpec, StreamRequest, Talker,
    Topology, TrafficSpecification,
};
use manager::answer::{Caller, Command};
use rand_pcg::Pcg32;
use rand_pcg::rand_core::Rng as _;

/// Routers of the backbone.
pub const ROUTERS: u64 = 50;
/// Segments of each router, besides the backbone.
pub const EDGES: u64 = 25;
/// Hosts of each such segment.
pub const HOSTS: u64 = 3;
pub const S: u64 = 1_000_000_000;

pub fn topology() -> Topology {
    let mut nodes = vec![];
    let mut segments = vec![];
    let routers: Vec<_> = (0..ROUTERS).map(|r| format!("r{r}")).collect();
    nodes.extend(routers.iter().map(|name| NodeSpec {
        name: name.clone(),
        is_router: true,
    }));
    let names: Vec<&str> = routers.iter().map(String::as_str).collect();
    segments.push(SegmentSpec::new(
        "backbone",
        Medium::Switched,
        10_000_000_000,
        &names,
    ));
    for edge in 0..ROUTERS * EDGES {
        let mut members = vec![routers[(edge % ROUTERS) as usize].clone()];
        for host in 0..HOSTS {
            let name = host_name(edge * HOSTS + host);
            nodes.push(NodeSpec {
                name: name.clone(),
                is_router: false,
            });
            members.push(name);
        }
        let members: Vec<&str> = members.iter().map(String::as_str).collect();
        let name = format!("e{edge}");
        segments.push(SegmentSpec::new(
            &name,
            Medium::Switched,
            100_000_000,
            &members,
        ));
    }
    Topology::new(&nodes, &segments).unwrap()
}

pub fn host_name(n: u64) -> String {
    format!("h{n}")
}

pub fn caller() -> Caller {
    Caller::talker("talker")
}

pub fn reserve(rng: &mut Pcg32, n: u64) -> Command {
    let hosts = ROUTERS * EDGES * HOSTS;
    let from = rng.next_u64() % hosts;
    let to = (from + 1 + rng.next_u64() % (hosts - 1)) % hosts;
    let id = format!("x{n}");
    Command::Reserve {
        id: id.clone(),
        caller: caller(),
        request: StreamRequest {
            stream_id: id,
            talker: Talker {
                name: host_name(from),
                data_frame_specification: Vec::new(),
                traffic_specification: TrafficSpecification {
                    interval: Interval::from_ns(10_000_000).unwrap(),
                    max_frames_per_interval: None,
                    max_frame_size: None,
                    // 128 kbit/s of voice or control.
                    bytes_per_interval: Some(160),
                },
                user_to_network_requirements: Requirements::default(),
            },
            listeners: vec![Listener {
                name: host_name(to),
                user_to_network_requirements: Requirements::default(),
                route: vec![],
            }],
        },
        lease_ns: 3600 * S,
        is_replacing: false,
    }
}
