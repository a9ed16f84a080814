// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tests of this crate, in one program: a module for each file.

mod clock;
mod core_for_bpf;
mod edt_bpf_lab;
