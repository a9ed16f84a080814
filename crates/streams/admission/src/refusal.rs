// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why a stream gets no reservation.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

/// Why a stream gets no reservation, with the numbers.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "reason")]
pub enum Refusal {
    /// A link has too few bytes left.
    #[error(
        "link {link} has {free_bytes} bytes of each period left, and the stream needs \
         {needed_bytes}"
    )]
    #[serde(rename = "insufficient-bandwidth", rename_all = "snake_case")]
    Bandwidth {
        /// Name of the first link on the route that lacks bytes.
        link: String,
        /// Wire bytes that the stream needs in each period of the link.
        needed_bytes: u64,
        /// Wire bytes of a period that no reservation has.
        free_bytes: u64,
    },
    /// No route is fast enough.
    #[error("the delay to {listener} is at most {bound_ns} ns, and {wanted_ns} ns are wanted")]
    #[serde(rename = "max-latency-exceeded", rename_all = "snake_case")]
    Latency {
        /// Name of the listener.
        listener: String,
        /// Bound of the route, the shortest unless the request gives another.
        bound_ns: u64,
        /// The request's longest delay.
        wanted_ns: u64,
    },
    /// No routers lead from talker to listener.
    #[error("no route leads from {talker} to {listener}")]
    NoRoute {
        /// Name of the talker.
        talker: String,
        /// Name of the listener.
        listener: String,
    },
    /// Another reservation has this stream id.
    #[error("the stream id {stream_id} is in use")]
    #[serde(rename_all = "snake_case")]
    StreamIdInUse { stream_id: String },
    /// Another reservation has claimed some of the frames.
    #[error("frames to {address} port {port} of protocol {protocol} are another reservation's")]
    #[serde(rename_all = "snake_case")]
    FramesInUse {
        /// Address that they are sent to.
        address: IpAddr,
        /// IP's number of the protocol.
        protocol: u8,
        /// Port that they are sent to.
        port: u16,
    },
    /// A field of the request has a value that is not valid.
    #[error("`{field}` is {value}, expected {expected}")]
    Invalid {
        field: String,
        value: String,
        /// The values that are valid.
        expected: String,
    },
}

impl Refusal {
    /// Returns the failure code of IEEE 802.1Qcc, table 46-15; `None` if it has none for this.
    pub fn failure_code(&self) -> Option<u8> {
        match self {
            Self::Bandwidth { .. } => Some(1),
            Self::StreamIdInUse { .. } => Some(4),
            Self::Latency { .. } => Some(21),
            Self::NoRoute { .. } | Self::FramesInUse { .. } | Self::Invalid { .. } => None,
        }
    }
}
