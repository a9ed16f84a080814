// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reservations over segments, without clock, network or disk: each segment has a manager that
//! decides over its links (paper 004: the bandwidth management server; RTIPSIG between them).
//!
//! | module | what |
//! |---|---|
//! | [`machine`] | a manager as a state machine |
//! | [`message`], [`answer`], [`record`] | what goes in and out of it, and into its store |
//! | [`api`] | requests and answers as JSON |
//! | [`bounds`], [`quota`] | names, counts and sizes of all who speak to it, and how much a talker may reserve |
//! | [`parts`] | what a manager has of each reservation |
//! | [`mod@reroute`] | the route of a stream that a node sends another way |
//! | [`update`] | what is reported and measured of a reservation |
//! | [`enforce`] | what a node has to put into force |
//! | [`overview`] | reservations with margins and measurements, for those who show them |
//!
//! With the feature `client` there is a blocking client (`client`), and one that asks over and over
//! (`poll`).

#![forbid(unsafe_code)]

pub mod answer;
pub mod api;
pub mod bounds;
#[cfg(feature = "client")]
pub mod certificates;
#[cfg(feature = "client")]
pub mod client;
mod digest;
mod ended;
pub mod enforce;
pub mod machine;
pub mod message;
mod misfit;
pub mod overview;
pub mod parts;
mod pending;
#[cfg(feature = "client")]
pub mod poll;
pub mod quota;
pub mod record;
pub mod reroute;
pub mod update;
