// SPDX-License-Identifier: MIT OR Apache-2.0
//! Short names that every case uses: the ends, the capture points, the sides.

use tcp_stacks::ground_truth::End;
use tcp_stacks::world::Point;

/// Returns a number that follows from a name: addresses and first sequence numbers are drawn by it.
pub(crate) fn seed(name: &str) -> u64 {
    let bytes = name.bytes();
    bytes.fold(0x811c_9dc5_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(16_777_619) & 0xffff_ffff
    }) % 100_000
}

/// Returns the capture point: "sender", "receiver" or "middle", as `sender` sends the data.
pub(crate) fn at(sender: End, place: &str) -> Point {
    match (place, sender) {
        ("sender", End::Client) | ("receiver", End::Server) => Point::Client,
        ("sender", End::Server) | ("receiver", End::Client) => Point::Server,
        _ => Point::Middle,
    }
}

/// Client and server: they stand in each script.
pub(crate) const C: End = End::Client;
pub(crate) const S: End = End::Server;

pub(crate) const NETWORK: &[&str] = &["network"];
pub(crate) const SENDER: &[&str] = &["sender"];
pub(crate) const RECEIVER: &[&str] = &["receiver"];
