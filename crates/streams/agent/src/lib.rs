// SPDX-License-Identifier: MIT OR Apache-2.0
//! `pspacer agent`: puts the reservations of a host or router into force.
//!
//! | module | what |
//! |---|---|
//! | [`known`] | what the managers said, until when it holds, and the reports that they are owed; pure |
//! | [`target`] | what a port shall have; pure. `host-config` plans the changes |
//! | `enforce` | makes a port agree, and reads back whether it does |
//! | [`routes`] | by which devices the kernel sends the streams' frames, and when that changes |
//! | `memory` | what is known, in a file that outlives the process |
//! | `run` | asks the managers, and does all that over and over |

#![forbid(unsafe_code)]

mod args;
mod enforce;
mod event;
pub mod known;
mod memory;
pub mod routes;
mod run;
pub mod target;

pub use args::AgentArgs;
pub use event::Event;
pub use run::{Io, run};
