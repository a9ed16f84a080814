// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files of other systems that shape subscribers, as the file of a host. Everything here is pure:
//! it is given the bytes of files, and returns the text of another.
//!
//! Of LibreQoS these are `ShapedDevices.csv`, whose rows are read in `shaped_devices.rs`, and
//! `network.json`, in `network.rs`. A circuit becomes a class, and the node above it a group
//! (docs/use/subscribers.md).

#![forbid(unsafe_code)]

mod circuits;
mod error;
mod libreqos;
mod names;
mod network;
mod rate;
mod shaped_devices;

pub use error::Error;
pub use libreqos::{Choice, Imported, Input, libreqos};
pub use rate::Direction;
