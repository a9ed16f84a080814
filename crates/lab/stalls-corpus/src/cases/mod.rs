// SPDX-License-Identifier: MIT OR Apache-2.0
//! The cases, a module for each theme.

mod acks;
mod apps;
mod clock;
mod delayed;
mod filters;
mod loss;
mod oddities;
mod offload;
mod partial;
mod pmtu;
mod reordering;
mod setup;
mod timeouts;
mod windows;

use tcp_stacks::ground_truth::End;
use tcp_stacks::world::Point;

use crate::case::Case;

/// Returns all cases, in the order of their names.
#[must_use]
pub fn all() -> Vec<Case> {
    let themes = [
        acks::cases(),
        apps::cases(),
        clock::cases(),
        delayed::cases(),
        filters::cases(),
        loss::cases(),
        oddities::cases(),
        offload::cases(),
        partial::cases(),
        pmtu::cases(),
        reordering::cases(),
        setup::cases(),
        timeouts::cases(),
        windows::cases(),
    ];
    let mut cases: Vec<Case> = themes.into_iter().flatten().collect();
    cases.sort_by(|a, b| a.name.cmp(&b.name));
    cases
}

/// Returns a number that follows from a name: addresses and first sequence numbers are drawn by it.
fn seed(name: &str) -> u64 {
    let bytes = name.bytes();
    bytes.fold(0x811c_9dc5_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(16_777_619) & 0xffff_ffff
    }) % 100_000
}

/// Returns the capture point: "sender", "receiver" or "middle", as `sender` sends the data.
fn at(sender: End, place: &str) -> Point {
    match (place, sender) {
        ("sender", End::Client) | ("receiver", End::Server) => Point::Client,
        ("sender", End::Server) | ("receiver", End::Client) => Point::Server,
        _ => Point::Middle,
    }
}

/// Client and server: they stand in each script.
const C: End = End::Client;
const S: End = End::Server;

/// Sides.
const NETWORK: &[&str] = &["network"];
const SENDER: &[&str] = &["sender"];
const RECEIVER: &[&str] = &["receiver"];
