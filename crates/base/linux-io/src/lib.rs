// SPDX-License-Identifier: MIT OR Apache-2.0
//! The parts of Linux that the live tools (`pspacer ping`, `reflect`, `router`) need: clocks,
//! scheduling, signals, and sockets with the kernel's timestamps.
//!
//! Nothing here is unsafe: `nix`, `rustix` and `thread-priority` make the system calls
//! (docs/decisions/isochronous.md, "Live tools").

pub mod cgroups;
pub mod clock;
pub mod descriptors;
pub mod launch;
pub mod links;
pub mod neighbours;
pub mod packet;
pub mod priority;
pub mod rtnetlink;
pub mod signals;
pub mod sockets;
pub mod tcp_packets;
pub mod udp;
pub mod wait;
