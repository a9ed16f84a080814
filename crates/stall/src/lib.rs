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
pub mod captures;
mod cause;
mod conclude;
mod connection;
mod flow;
mod history;
mod options;
mod recorder;
mod rules;
pub mod select;
mod units;
mod vantage;
mod verdict;

pub use analyser::Analyser;
pub use analysis::{
    Analysis, Connection, CwndEstimate, Direction, Flow, Idle, Place, Retransmissions, Rtt, Stall,
    StallKind, Vantage,
};
pub use by_cause::{CauseTotal, by_cause};
pub use cause::{Cause, Confidence, Side};
pub use history::{Event, History, RetransmissionKind, What};
pub use options::Options;
pub use verdict::sum_up;
