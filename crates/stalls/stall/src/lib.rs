// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds why a TCP transfer stalled, by rules over the connection's captured segments.
//!
//! ```text
//! let mut analyser = stall::Analyser::new(stall::Options::default());
//! for segment in capture { analyser.segment(&segment); }
//! let analysis = analyser.finish();
//! ```

#![forbid(unsafe_code)]

mod analyser;
mod analysis;
mod by_cause;
mod by_host_pair;
pub mod captures;
mod cause;
mod clock;
mod conclude;
mod connection;
mod direction;
pub mod files;
mod flow;
pub mod follow;
mod history;
mod multipath;
mod opening;
mod options;
mod parallel;
pub mod predictions;
pub mod qlog;
mod recorder;
pub mod report;
mod roles;
mod rules;
pub mod shards;
mod totals;
pub mod two_ends;
mod units;
mod vantage;
mod verdict;

pub use analyser::Analyser;
pub use analysis::{
    Analysis, Connection, CwndEstimate, Flow, Idle, Place, Retransmissions, Rtt, Stall, StallKind,
    Vantage,
};
pub use by_cause::{CauseTotal, SideTotal, by_cause, by_side};
pub use by_host_pair::{HostPairTotal, by_host_pair};
pub use cause::{Cause, Confidence, Side};
pub use direction::Direction;
pub use history::{Event, History, RetransmissionKind, What};
pub use options::Options;
pub use verdict::sum_up;
