// SPDX-License-Identifier: MIT OR Apache-2.0
//! Decides whether a stream fits a network (paper 004: the bandwidth management server of a
//! segment, and what RTIPSIG reserves over several).
//!
//! [`Topology`] has the hosts, routers and segments, and of each link the bytes that streams may
//! take in a period. [`StreamRequest`] describes a stream in the words of IEEE 802.1Qcc.
//! [`plan`] finds the route, the bytes on each link and the bound of the delay; [`admit`] also
//! compares the bytes with what a [`Ledger`] has left. [`nrt_shares`] says what each node may
//! send besides.
//!
//! This crate reads no clock and opens no file, and computes with integers only.

#![forbid(unsafe_code)]

mod decision;
mod frames;
mod ledger;
mod name;
mod nrt;
mod refusal;
mod route;
mod stream;
mod topology;
mod topology_file;

pub use decision::{Grant, LinkBytes, ListenerGrant, Plan, admit, plan};
pub use frames::Packets;
pub use ledger::{Ledger, LinkUse};
pub use name::Name;
pub use nrt::{NrtShare, nrt_bytes, nrt_shares};
pub use refusal::Refusal;
pub use stream::{
    FrameSpecification, Interval, IpTuple, Listener, Requirements, StreamRequest, Talker,
    TrafficSpecification, check_stream,
};
/// Why a file is refused.
pub use toml_reader::Error as TopologyError;
pub use topology::{
    Direction, Fault, Link, LinkId, MOST_PERCENT, Medium, NAME, Node, NodeId, NodeSpec, Segment,
    SegmentId, SegmentSpec, Topology, is_name,
};
pub use topology_file::{Manager, TopologyFile, read};
