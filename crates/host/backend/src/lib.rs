// SPDX-License-Identifier: MIT OR Apache-2.0
//! What paces a device: the module, [`qdisc`], the core as a qdisc of BPF, or [`edt`], departure
//! times that `fq` keeps. [`port`], [`ports`] and [`standing`] return what stands on devices, whatever it is made
//! of, [`check`] says what is refused of what shall stand there, and [`Maker`] makes the changes of a plan where they are not the module's.

pub mod classify;
pub mod edt;
mod error;
mod maker;
mod match_maps;
mod match_words;
pub mod qdisc;
mod reasons;
mod seen;
mod tables;

pub use error::Error;
pub use maker::Maker;
pub use match_words::{MatchTables, RuleWords, cgroup_words, rule_words};
pub use reasons::reasons;
pub use tables::{Standing, check, port, ports, standing};
