// SPDX-License-Identifier: MIT OR Apache-2.0
//! Qdiscs, classes and filters over netlink, without `tc`: [`Tc`] reads the kernel's tables, psp's
//! options and statistics typed, and makes [`Change`]s. Attributes and the table of statistics are
//! compiled from `uapi/`, as the kernel's side is.
//!
//! Crates and their reasons: docs/decisions/dependencies.md, "Qdiscs over netlink".

#![forbid(unsafe_code)]

pub mod account;
pub mod attribute;
mod change;
mod choices;
mod filter;
mod handle;
mod mark;
mod message;
mod options;
mod plain;
pub mod ports;
mod sender;
pub mod stats;
mod table;
mod uapi;

pub use change::{Change, FilterId, QdiscKind};
pub use choices::{ClassType, Gap, LaunchClock, Layer, Mode, Order, SplitGso, Why};
pub use filter::{Family, Filter, Flower, Interface, Match, Ports, Prefix, Protocol};
pub use handle::Handle;
pub use linux_io::rtnetlink::Error;
pub use mark::Mark;
pub use options::{Budget, ClassOptions, Dynamic, Launch, QdiscOptions, TypeOptions};
pub use plain::{PlainFilter, PlainQdisc};
pub use sender::Sender;
pub use stats::{ClassStats, Counters, QdiscStats};
pub use table::{Class, PSP, PspClass, PspQdisc, Qdisc, Tc};
