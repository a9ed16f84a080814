// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads what a wire saw.
//!
//! Two sources give the same series of [`record::Record`]s: the cable's own timeline
//! ([`timeline`], exact to the picosecond) and packet captures ([`reader`]:
//! pcap and pcapng). Of captures too large to hold, [`segments`] gives the TCP
//! segments one after the other. [`export`] writes a series as pcapng.
//!
//! Nothing here opens a file or asks the time. Times are integers in
//! picoseconds.

#![forbid(unsafe_code)]

mod classify;
mod decapsulate;
mod dissect;
pub mod encapsulation;
pub mod error;
pub mod export;
pub mod filter;
pub mod flows;
pub mod frame;
mod headers;
mod input;
mod link;
mod packets;
mod pcap;
mod pcapng;
pub mod reader;
pub mod record;
pub mod segment;
pub mod segments;
pub mod timeline;
mod tunnels;
