// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads and writes the files that people name. Who runs a command as root names files in folders of
//! others, too: what lies there in the place of a file is neither waited for nor written through.

#![forbid(unsafe_code)]

mod kind;
pub mod read;
pub mod write;
