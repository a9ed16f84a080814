// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads what a wire saw, and measures it.
//!
//! Two sources give the same series of [`Record`]s: the cable's own timeline
//! ([`timeline`], exact to the picosecond) and packet captures ([`capture`]:
//! pcap and pcapng). Of captures too large to hold, [`segments`] gives the TCP
//! segments one after the other. From a series come a flow's metrics ([`metrics`]) as
//! paper 000 defines them, bandwidth over time ([`bandwidth`]) and everything
//! a result says about one cell ([`analyse`]).
//!
//! Nothing here opens a file, asks the time or depends on an engine. Times are
//! integers in picoseconds; rates, queues and gaps are computed in integers
//! and rounded once, to a thousandth of their unit, when they leave.

#![forbid(unsafe_code)]

pub mod analyse;
pub mod bandwidth;
pub mod burstiness;
pub mod capture;
mod curves;
mod dissect;
pub mod encapsulation;
pub mod error;
pub mod export;
pub mod filter;
pub mod flows;
pub mod gaps;
mod headers;
mod input;
mod measure;
pub mod metrics;
mod packets;
mod pcap;
mod pcapng;
pub mod rates;
pub mod record;
pub mod segment;
pub mod segments;
pub mod survey;
pub mod tcp;
pub mod timeline;
mod tunnels;
pub mod waits;
mod walk;

pub use error::{Damage, ReadError};
pub use filter::FlowFilter;
pub use flows::{FlowKey, FlowTable, Proto};
pub use record::{Fate, Kind, NO_FLOW, Record};
