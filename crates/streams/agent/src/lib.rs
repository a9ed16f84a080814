// SPDX-License-Identifier: MIT OR Apache-2.0
//! `pspacer agent`: puts the reservations of a host or router into force.
//!
//! | module | what |
//! |---|---|
//! | [`known`] | what the managers said, until when it holds, and the reports that they are owed; pure |
//! | [`target`] | what a port shall have; pure. `host-config` plans the changes |
//! | [`faults`] | what is wrong at present, said once; pure |
//! | [`ask`] | asks a manager for the next change, and reports to it |
//! | `enforce` | makes a port agree, and reads back whether it does |
//! | `dry_run` | says what it would change |
//! | [`routes`] | by which devices the kernel sends the streams' frames, and when that changes |
//! | `memory` | what is known, in a file that outlives the process |
//! | `threads` | threads whose end ends the agent |
//! | `run` | does all that whenever a manager has answered or a lease has ended |

#![forbid(unsafe_code)]

mod args;
pub mod ask;
mod dry_run;
mod enforce;
mod event;
pub mod faults;
pub mod known;
mod memory;
pub mod routes;
mod run;
pub mod target;
mod threads;

pub use args::AgentArgs;
pub use event::Event;
pub use host_apply::Io;
pub use run::run;
