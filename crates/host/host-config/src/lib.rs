// SPDX-License-Identifier: MIT OR Apache-2.0
//! The file of a host, and the changes that make the kernel agree with it. Everything here is
//! pure: it is given the text and what the kernel's tables say, and returns changes.
//!
//! [`Host::read`] reads a file, [`Port::new`] puts the tables of a device together, [`plan`]
//! returns the changes from one to the other, [`Port::apply`] makes them on a model.

#![forbid(unsafe_code)]

mod backend;
mod bursts;
mod capability;
mod collisions;
mod error;
mod file;
mod filter_changes;
mod group;
mod kernel_model;
mod launch_times;
pub mod limits;
mod match_lists;
mod matching;
mod merge;
pub mod minor;
mod moves;
mod names;
mod plan;
mod port;
mod queue_limits;
mod rates;
mod saved;
#[cfg(test)]
mod schema_tests;
mod stages;
mod target;
mod text;
mod waiting;

pub use backend::{Backend, Made, Queues};
pub use capability::{backend_notes, check_backend};
pub use collisions::{LaunchReport, launches};
pub use error::Refusal;
pub use file::{Class, Device, Host, MOST_RULES, Rule};
pub use launch_times::Launches;
pub use limits::LINE_UNKNOWN_BPS;
pub use match_lists::{TABLES_MAX, Table, listed, tables};
pub use names::ClassNames;
pub use plan::{Plan, plan};
pub use port::{Amiss, ClassState, Facts, FilterState, Port, Psp, Root, Slot};
pub use queue_limits::{
    KeptLimit, KeptLimits, LimitChange, LimitPlan, QueueLimits, WantedLimits, limit_lines,
};
pub use saved::{Saved, SavedDevice};
pub use target::{Target, TargetPsp, TargetRoot, TargetRule};
pub use text::{Beside, changes, line, text};
pub use toml_reader::{Error, Place, Problem};
pub use waiting::{frames_ns, longest_wait_ns};
