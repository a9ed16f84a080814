// SPDX-License-Identifier: MIT OR Apache-2.0
//! Numbers the devices of a network by the directions of a cell's cables.

use scenario::Direction;

/// Returns the number of the device that sends in a direction.
pub fn device(direction: Direction) -> usize {
    2 * direction.cable + direction.end.index()
}
