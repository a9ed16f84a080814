// SPDX-License-Identifier: MIT OR Apache-2.0
//! Watches the TCP senders of this host while they run: a BPF program records each
//! acknowledgement, and rules find why a connection stalled, as it happens.
//!
//! ```text
//! let mut tracer = watch::Tracer::attach(&watch::Filter::default())?;
//! let mut watcher = watch::Watcher::default();
//! tracer.drain(&mut |record| { watcher.take(&record); })?;
//! ```
//!
//! Only [`Tracer`] touches the kernel. [`Watcher`] and what it uses are pure: the same records
//! give the same stalls.

#![forbid(unsafe_code)]

mod connection;
pub mod counted;
mod drops;
mod error;
mod facts;
mod filter;
pub mod json;
mod judge;
pub mod lines;
pub mod names;
mod owner;
pub mod packets;
mod pause;
mod phases;
mod rate;
mod reasons;
mod receiving;
pub mod recorder;
mod records;
pub mod screen;
mod sequence;
pub mod session;
mod tracer;
mod watcher;

pub use connection::{Connection, Status};
pub use error::Error;
pub use filter::Filter;
pub use reasons::Reasons;
pub use records::{
    CaState, Dropped, Ends, Limits, Malformed, Moment, Reading, Record, SocketIds, TcpState,
};
pub use tracer::{Cost, Tracer};
pub use watcher::{Happening, Watcher};
