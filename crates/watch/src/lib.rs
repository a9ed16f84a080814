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
pub mod counted;
mod error;
mod facts;
mod filter;
pub mod json;
mod judge;
mod owner;
mod pause;
mod phases;
mod rate;
pub mod recorder;
mod records;
pub mod select;
mod sequence;
pub mod session;
mod tracer;
mod watcher;

pub use connection::{Connection, Status};
pub use error::Error;
pub use filter::{Filter, Network};
pub use records::{CaState, Ends, Limits, Malformed, Moment, Reading, Record, TcpState};
pub use tracer::{Cost, Tracer};
pub use watcher::{Happening, Watcher};
