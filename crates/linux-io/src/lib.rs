// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the live tools (`pspacer ping`, `reflect`, `router`) need of Linux:
//! clocks, scheduling, signals, and sockets with the kernel's timestamps.
//!
//! Nothing is unsafe here: `nix` and `thread-priority` have the system calls
//! (docs/decisions/isochronous.md, "Live tools").

pub mod clock;
pub mod links;
pub mod neighbours;
pub mod packet;
pub mod priority;
mod rtnetlink;
pub mod signals;
pub mod udp;
pub mod wait;
