// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is found in captures: text, JSON and page are made of it.

use serde::Serialize;
use st2110::ancillary::AncillaryResult;
use st2110::audio::AudioResult;
use st2110::pairs::Pair;
use st2110::stream::Key;
use st2110::video::VideoResult;

/// What is found of a stream.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Measured {
    Video(Box<VideoResult>),
    Audio(AudioResult),
    /// It is ancillary data.
    Ancillary(AncillaryResult),
    /// Why nothing could be measured.
    Problem(String),
}

/// A stream and what is found of it.
#[derive(Clone, Debug, Serialize)]
pub struct StreamReport {
    #[serde(flatten)]
    pub key: Key,
    /// What it carries, as people write it; `None`: that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub carries: Option<String>,
    /// What is found of it.
    #[serde(flatten)]
    pub measured: Measured,
    /// The medium of the SDP that it is: file and line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sdp: Option<String>,
    /// What the SDP says otherwise than the packets, in sentences.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub contradictions: Vec<String>,
}

/// The JSON object.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Name and version of the format.
    pub format: &'static str,
    /// Names of the captures.
    pub files: Vec<String>,
    /// Packets of all kinds.
    pub packets: u64,
    pub datagrams: u64,
    /// Datagrams that are no RTP, or too few to tell.
    pub others: u64,
    /// The coarsest resolution of timestamps.
    pub resolution_ps: u64,
    /// What was wrong with captures.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub damage: Vec<String>,
    pub streams: Vec<StreamReport>,
    /// Streams that are one, sent twice (SMPTE ST 2022-7).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pairs: Vec<Pair>,
    /// What the SDP says of the capture as a whole and is not so, in sentences.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
}
