// SPDX-License-Identifier: MIT OR Apache-2.0
//! A manager of reservations as a program: the machine of `reservations` with a store, a service over
//! HTTP, and others that stand by.
//!
//! | module | what |
//! |---|---|
//! | [`store`] | where records survive a crash: SQLite, or memory |
//! | [`engine`] | runs a manager with its store |
//! | [`stored_view`] | what is stored, for those who look |
//! | [`etcd`] | the seat of a manager that others stand by for, and its store |
//! | [`service`], [`server`], [`access`] | the manager over HTTP |
//! | [`open_connections`] | how many connections may be open, and which one gives way |
//! | [`reload`], [`replaceable`] | what is read again while the manager runs |
//! | [`peers`] | messages to other managers |
//! | [`commands`] | the subcommands |

#![forbid(unsafe_code)]

pub mod access;
pub mod commands;
mod connections;
pub mod engine;
pub mod etcd;
pub mod open_connections;
pub mod peers;
pub mod reload;
pub mod replaceable;
mod request;
pub mod server;
pub mod service;
pub mod store;
pub mod stored_view;
