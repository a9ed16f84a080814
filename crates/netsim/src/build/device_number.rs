// SPDX-License-Identifier: MIT OR Apache-2.0
//! The devices of a network are numbered by the directions of a cell's cables.

use scenario::Direction;

/// The number of the device that sends in a direction.
#[must_use]
pub fn device(direction: Direction) -> usize {
    2 * direction.cable + direction.end.index()
}
