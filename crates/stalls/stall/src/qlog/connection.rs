// SPDX-License-Identifier: MIT OR Apache-2.0
//! The results of a QUIC connection.

use serde::Serialize;

use crate::analysis::{Idle, Stall};
use crate::units::{seconds, some_seconds};

/// The end of the connection that wrote the qlog.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Vantage {
    Client,
    Server,
    /// Something between the two.
    Network,
    /// The qlog does not say it.
    #[default]
    Unknown,
}

/// The results of one trace: one connection as one of its ends logged it.
#[derive(Clone, Debug, Default, Serialize)]
pub struct QuicConnection {
    /// Its name in the qlog: the title, or the original destination connection ID.
    pub name: String,
    /// Who logged it.
    pub vantage: Vantage,
    /// Time from the first event to the last.
    #[serde(rename = "duration_s", serialize_with = "seconds")]
    pub duration_ns: u64,
    /// Events of all kinds.
    pub events: u64,
    /// Packets that the logging end sent.
    pub packets_sent: u64,
    pub packets_received: u64,
    /// Packets that it took for lost.
    pub packets_lost: u64,
    /// Stream bytes that it sent, retransmissions included.
    pub bytes_sent: u64,
    /// Stream bytes that it received.
    pub bytes_received: u64,
    /// Its smoothed round trip, at the end.
    #[serde(rename = "smoothed_rtt_s", serialize_with = "some_seconds")]
    pub smoothed_rtt_ns: Option<u64>,
    /// Summary in one sentence.
    pub verdict: String,
    /// Pauses in which neither end had anything to do.
    pub idle: Idle,
    /// The stalls, in order. Their evidence are numbers of events of this trace, from 1.
    pub stalls: Vec<Stall>,
    /// What made the judgement less sure than it could be.
    pub notes: Vec<String>,
}
