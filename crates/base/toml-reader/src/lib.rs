// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads TOML files that people write, and says what is wrong in them and in which line.
//!
//! [`Document::parse`] reads a text, [`Document::top`] returns its top level. A [`Section`] is a
//! table with the [`Key`]s that it may have, and an [`Item`] a value with its line. What is wrong
//! is an [`Error`]: a [`Place`] and a [`Problem`].

#![forbid(unsafe_code)]

mod error;
mod item;
mod problem;
mod section;
mod source;

pub use error::{Error, Place};
pub use item::{Item, Taken};
pub use problem::{Problem, quote};
pub use section::{Document, Key, Section, key};
