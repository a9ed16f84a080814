// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tests of this crate, in one program: a module for each file.

mod errors;
mod expansion;
mod experiments;
mod hostile;
mod isochronous;
