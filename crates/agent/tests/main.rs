// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tests of this crate, in one program: a module for each file.

mod routes;
mod tables;
