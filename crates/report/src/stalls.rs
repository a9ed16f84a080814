// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `pspacer stalls` shows: its text and its page.

pub mod page;
pub mod phrases;
pub mod text;
