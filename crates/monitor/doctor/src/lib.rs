// SPDX-License-Identifier: MIT OR Apache-2.0
//! What keeps this host from pacing well: [`read::facts`] reads the kernel's files and tables,
//! [`findings`] judges them by rules that are pure functions
//! (docs/use/monitoring.md).

#![forbid(unsafe_code)]

pub mod facts;
mod finding;
pub mod read;
mod rules;
pub mod trial;

pub use facts::Facts;
pub use finding::{Finding, Severity};
pub use rules::{RULES, Rule, findings};
