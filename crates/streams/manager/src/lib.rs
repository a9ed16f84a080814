// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reservations over segments: each has a manager that decides over its links (paper 004: the
//! bandwidth management server; RTIPSIG between them).
//!
//! | module | what |
//! |---|---|
//! | [`machine`] | a manager as a state machine, without clock, network or disk |
//! | [`message`], [`answer`], [`record`] | what goes in and out of it, and into the store |
//! | [`bounds`] | names, counts and sizes of all who speak to it |
//! | [`store`] | where records survive a crash: SQLite, or memory |
//! | [`engine`] | runs a manager with its store |
//! | [`board`] | what is stored, for those who look |
//! | [`etcd`] | the seat of a manager that others stand by for, and its store |
//! | [`service`], [`server`], [`access`], [`api`] | the manager over HTTP |
//! | [`quota`] | how much a talker may reserve |
//! | [`places`] | how many connections may be open, and which one gives way |
//! | [`reload`], [`current`] | what is read again while the manager runs |
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
pub mod board;
pub mod bounds;
mod certificates;
pub mod client;
pub mod commands;
mod connections;
pub mod current;
mod digest;
mod ended;
pub mod enforce;
pub mod engine;
pub mod etcd;
pub mod machine;
pub mod message;
mod next;
pub mod overview;
pub mod parts;
pub mod peers;
mod pending;
pub mod places;
pub mod poll;
pub mod quota;
pub mod record;
pub mod reload;
mod request;
pub mod reroute;
pub mod server;
pub mod service;
pub mod store;
pub mod update;
