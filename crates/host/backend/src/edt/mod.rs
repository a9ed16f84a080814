// SPDX-License-Identifier: MIT OR Apache-2.0
//! Paced classes without the module, on any kernel from 6.1: a BPF classifier at a device's egress
//! (`bpf/edt.bpf.c`) gives each packet its departure time by the clock of its class, which is the
//! core's, and the kernel's `fq` keeps the packet until then.
//!
//! Program and maps belong to the filter: they go on when the process ends, and go when the filter
//! goes. Nothing is pinned to a file system.

mod config;
mod device;
mod fqs;
mod layout;
mod look;
mod maps;
mod program;
mod running;
mod waiting;

pub use config::drops_what_waits;
pub(crate) use device::put;
pub use device::remove;
pub(crate) use fqs::amiss;
pub(crate) use look::look;
pub use look::{asked_before, is_there};
pub use program::programs;
pub(crate) use running::is_ours;
