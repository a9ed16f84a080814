// SPDX-License-Identifier: MIT OR Apache-2.0
//! The two directions of a connection.

use serde::Serialize;

/// Direction in which data is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// From client to server.
    ToServer,
    /// From server to client.
    ToClient,
}

impl Direction {
    /// Returns the other direction.
    pub const fn opposite(self) -> Self {
        match self {
            Self::ToServer => Self::ToClient,
            Self::ToClient => Self::ToServer,
        }
    }

    /// Returns the index of this direction in `Connection::flows`.
    pub const fn index(self) -> usize {
        self as usize
    }
}
