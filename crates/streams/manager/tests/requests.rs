// SPDX-License-Identifier: MIT OR Apache-2.0
//! Requests of talkers.

#![allow(dead_code, reason = "each test takes what it needs")]

use admission::{Interval, Listener, Requirements, StreamRequest, Talker, TrafficSpecification};
use manager_proto::api::ReserveBody;

const MS: u64 = 1_000_000;
pub const S: u64 = 1000 * MS;

/// So many frames of 1000 bytes in 10 ms.
pub fn frames(most: u16) -> TrafficSpecification {
    TrafficSpecification {
        interval: Interval::from_ns(10 * MS).unwrap(),
        max_frames_per_interval: Some(most),
        max_frame_size: Some(1000),
        bytes_per_interval: None,
    }
}

/// So many bytes of UDP payload in 10 ms.
pub fn payload(bytes: u32) -> TrafficSpecification {
    TrafficSpecification {
        interval: Interval::from_ns(10 * MS).unwrap(),
        max_frames_per_interval: None,
        max_frame_size: None,
        bytes_per_interval: Some(bytes),
    }
}

/// A stream from a host to another, as late as may be.
pub fn stream(id: &str, from: &str, to: &str, traffic: TrafficSpecification) -> StreamRequest {
    StreamRequest {
        stream_id: id.to_owned(),
        talker: Talker {
            name: from.to_owned(),
            data_frame_specification: Vec::new(),
            traffic_specification: traffic,
            user_to_network_requirements: Requirements::default(),
        },
        listeners: vec![Listener {
            name: to.to_owned(),
            user_to_network_requirements: Requirements::default(),
            route: vec![],
        }],
    }
}

/// A new reservation of that name.
pub fn body(id: &str, lease_ns: u64, stream: StreamRequest) -> ReserveBody {
    ReserveBody {
        id: id.to_owned(),
        lease_ns,
        stream,
        replace: false,
    }
}
