// SPDX-License-Identifier: MIT OR Apache-2.0
//! From segments to connections.

use crate::{Analysis, Options};
use trace::segment::Segment;

/// Takes the segments of a capture one by one.
#[derive(Debug)]
pub struct Analyser {
    #[allow(dead_code)]
    options: Options,
    start_ns: Option<u64>,
}

impl Analyser {
    /// One that has seen nothing.
    #[must_use]
    pub fn new(options: Options) -> Self {
        Self {
            options,
            start_ns: None,
        }
    }

    /// Takes one segment. Constant time but for what it acknowledges.
    pub fn segment(&mut self, segment: &Segment) {
        self.start_ns.get_or_insert(segment.time_ns);
    }

    /// What was found.
    #[must_use]
    pub fn finish(self) -> Analysis {
        Analysis {
            start_ns: self.start_ns.unwrap_or_default(),
            ..Analysis::default()
        }
    }
}
