// SPDX-License-Identifier: MIT OR Apache-2.0
//! TCP senders of this host as they run: a BPF program's record of each
//! acknowledgement, and why a connection stopped, as it happens.
//!
//! ```text
//! let mut tracer = watch::Tracer::attach(&watch::Filter::default())?;
//! let mut watcher = watch::Watcher::default();
//! tracer.drain(&mut |record| { watcher.take(&record); })?;
//! ```
//!
//! [`Tracer`] is all that touches the kernel. [`Watcher`] and what is below it
//! are pure: the same records give the same stops.

#![forbid(unsafe_code)]

mod connection;
mod error;
mod facts;
mod filter;
mod judge;
mod owner;
mod pause;
mod phases;
mod rate;
mod records;
mod sequence;
mod tracer;
mod watcher;

pub use connection::{Connection, Status};
pub use error::Error;
pub use filter::{Filter, Network};
pub use records::{CaState, Ends, Limits, Malformed, Moment, Reading, Record, TcpState};
pub use tracer::{Cost, Tracer};
pub use watcher::{Happening, Watcher};
