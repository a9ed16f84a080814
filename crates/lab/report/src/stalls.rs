// SPDX-License-Identifier: MIT OR Apache-2.0
//! The output of `pspacer stalls`: its text and its page.

pub mod page;
pub mod phrases;
pub mod text;
mod two_ends;
