// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every psp class of this host as it sends: [`Model`] takes samples and gives rows, [`View`] is
//! what the user chose, [`draw`] draws both, [`text`] writes both. Nothing here reads a clock, the kernel or a keyboard
//! (docs/use/monitoring.md).

#![forbid(unsafe_code)]

mod devices;
mod model;
mod reservations;
mod screen;
mod view;

pub use devices::DeviceRow;
pub use host_config::ClassNames;
pub use model::{Drop, Late, Model, PortRow, Row, Sample};
pub use screen::{draw, text};
pub use view::{Key, Sort, View};
