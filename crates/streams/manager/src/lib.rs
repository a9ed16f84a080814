// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reservations over segments: each has a manager that decides over its links (paper 004: the
//! bandwidth management server; RTIPSIG between them).
//!
//! | module | what |
//! |---|---|
//! | [`machine`] | a manager as a state machine, without clock, network or disk |
//! | [`message`], [`answer`], [`record`] | what goes in and out of it, and into the store |
//! | [`store`] | where records survive a crash: SQLite, or memory |
//! | [`engine`] | runs a manager with its store |
//! | [`etcd`] | managers that share their links, and their store |
//! | [`service`], [`server`], [`access`], [`api`] | the manager over HTTP |
//! | [`peers`] | messages to other managers |
//! | [`mod@reroute`] | the route of a stream that a node sends another way |
//! | [`update`] | what is reported and measured of a reservation |
//! | [`client`] | a blocking client |
//! | [`overview`], [`poll`] | reservations with margins and measurements, for those who show them |
//! | [`enforce`] | what a node has to put into force |
//! | [`commands`] | the subcommands |

#![forbid(unsafe_code)]

pub mod access;
pub mod answer;
pub mod api;
pub mod client;
pub mod commands;
mod digest;
pub mod enforce;
pub mod engine;
pub mod etcd;
pub mod machine;
pub mod message;
pub mod overview;
pub mod parts;
pub mod peers;
mod pending;
pub mod poll;
pub mod record;
pub mod reroute;
pub mod server;
pub mod service;
pub mod store;
pub mod update;
