// SPDX-License-Identifier: MIT OR Apache-2.0
//! Requests to managers that stand by for each other.

use manager_proto::api::ReserveBody;

pub use crate::requests::S;
use crate::requests::{self, stream};

/// The name of a manager without one.
pub const ONLY: &str = "manager";

/// Returns a request for a stream of so many frames of 1000 bytes in 10 ms.
pub fn body(id: &str, frames: u16, lease_ns: u64) -> ReserveBody {
    let frames = requests::frames(frames);
    let stream = stream(&format!("stream-{id}"), "a", "b", frames);
    requests::body(id, lease_ns, stream)
}
