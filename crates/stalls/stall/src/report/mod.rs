// SPDX-License-Identifier: MIT OR Apache-2.0
//! The output of `pspacer stalls`: its text and its page.

mod document;
pub mod explain;
mod one_way;
pub mod page;
pub mod phrases;
pub mod qlog_text;
mod stream;
pub mod text;
mod time_lost;
mod two_ends;
