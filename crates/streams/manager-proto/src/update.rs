// SPDX-License-Identifier: MIT OR Apache-2.0
//! Changes of a granted reservation that need no bytes: reports and measurements. Pure.

use crate::answer::Failure;
use crate::record::{Measured, Reservation};

fn short(name: String) -> String {
    name.chars().take(64).collect()
}

/// Records whether a node has it in force; returns whether that is new.
///
/// # Errors
/// If the node does not send the stream.
pub fn report(of: &mut Reservation, node: String, is_in_force: bool) -> Result<bool, Failure> {
    if !of.grant.senders().contains(&node.as_str()) {
        return Err(Failure::Node(short(node)));
    }
    let is_changed = if is_in_force {
        of.in_force.insert(node)
    } else {
        of.in_force.remove(&node)
    };
    if of.not_in_force().is_empty() {
        of.in_force_by_ns = None;
    }
    Ok(is_changed)
}

/// Records what was measured at a listener; returns whether that is new.
///
/// # Errors
/// If the node is no listener, or no packet came.
pub fn measure(
    of: &mut Reservation,
    listener: String,
    measured: Measured,
) -> Result<bool, Failure> {
    if !of.grant.listeners.iter().any(|l| l.name == listener) {
        return Err(Failure::Listener(short(listener)));
    }
    if measured.packets == 0 {
        return Err(Failure::Nothing);
    }
    Ok(of.measured.insert(listener, measured) != Some(measured))
}
