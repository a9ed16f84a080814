// SPDX-License-Identifier: MIT OR Apache-2.0
//! Paced classes without the module, on any kernel from 6.1: a BPF classifier at a device's egress
//! (`bpf/edt.bpf.c`) gives each packet its departure time by the clock of its class, which is the
//! core's, and the kernel's `fq` keeps the packet until then.
//!
//! [`Config::new`] takes from a host's file what this can do and refuses the rest,
//! [`Running::read`] says what is there, [`steps`] what leads from one to the other, and
//! [`Step::make`] does it. Program and maps belong to the filter: they go on when the process
//! ends, and go when the filter goes. Nothing is pinned to a file system.

mod config;
mod error;
mod layout;
mod maps;
mod program;
mod running;
mod step;

pub use config::{Config, PacedClass};
pub use error::{Error, Refusal};
pub use program::programs;
pub use running::{ClassCounters, Running};
pub use step::{Step, steps};
