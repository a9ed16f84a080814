// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the lines of values.

use crate::error::{Error, Place};
use crate::problem::Problem;

/// The text of a file, and its name in messages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source<'a> {
    pub file: &'a str,
    pub text: &'a str,
}

impl Source<'_> {
    /// Returns the line of a byte offset, from 1. An offset beyond the text is in its last line.
    /// O(offset).
    pub fn line(self, offset: usize) -> usize {
        let before = &self.text.as_bytes()[..offset.min(self.text.len())];
        1 + before.iter().filter(|byte| **byte == b'\n').count()
    }

    pub fn place(self, offset: usize) -> Place {
        Place::Line {
            file: self.file.to_owned(),
            line: self.line(offset),
        }
    }

    pub fn error(self, offset: usize, problem: Problem) -> Error {
        Error {
            place: self.place(offset),
            problem: Box::new(problem),
        }
    }
}
