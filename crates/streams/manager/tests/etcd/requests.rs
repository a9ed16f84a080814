// SPDX-License-Identifier: MIT OR Apache-2.0
//! Requests of talkers.

use admission::{Interval, Listener, Requirements, StreamRequest, Talker, TrafficSpecification};
use manager_proto::api::ReserveBody;

const MS: u64 = 1_000_000;
pub const S: u64 = 1000 * MS;

/// The name of a manager without one.
pub const ONLY: &str = "manager";

/// Returns a request for a stream of so many frames of 1000 bytes in 10 ms.
pub fn body(id: &str, frames: u16, lease_ns: u64) -> ReserveBody {
    ReserveBody {
        replace: false,
        id: id.to_owned(),
        lease_ns,
        stream: StreamRequest {
            stream_id: format!("stream-{id}"),
            talker: Talker {
                name: "a".to_owned(),
                data_frame_specification: Vec::new(),
                traffic_specification: TrafficSpecification {
                    interval: Interval::from_ns(10 * MS).unwrap(),
                    max_frames_per_interval: Some(frames),
                    max_frame_size: Some(1000),
                    bytes_per_interval: None,
                },
                user_to_network_requirements: Requirements::default(),
            },
            listeners: vec![Listener {
                name: "b".to_owned(),
                user_to_network_requirements: Requirements::default(),
                route: vec![],
            }],
        },
    }
}
