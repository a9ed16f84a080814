// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the packets that crossed a wire.
//!
//! Two sources give the same series of [`record::Record`]s: the timeline that the laboratory's
//! cable writes ([`timeline`], exact to the picosecond) and packet captures ([`reader`]: pcap
//! and pcapng). For captures too large to hold in memory, [`segments`] returns the TCP
//! segments one after the other. [`export`] writes a series as pcapng, [`annotate`] a copy of a capture
//! with comments.
//!
//! This crate opens no file and reads no clock. Times are integers in picoseconds.

#![forbid(unsafe_code)]

pub mod annotate;
mod blocks;
pub mod choice;
mod classify;
pub mod datagrams;
mod decapsulate;
mod dissect;
pub mod encapsulation;
pub mod error;
pub mod export;
pub mod expression;
pub mod flows;
pub mod frame;
mod headers;
mod input;
mod inside;
mod link;
mod link_headers;
mod packets;
mod pcap;
mod pcapng;
pub mod process;
pub mod reader;
pub mod record;
pub mod saved;
pub mod segment;
pub mod segments;
pub mod selector;
pub mod timeline;
mod tunnels;
mod wireless;

pub use input::unpacked;
