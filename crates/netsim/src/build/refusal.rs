// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why a scenario cannot be simulated.

use std::fmt;

use scenario::Place;

/// Something that the simulator does not model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Where it stands.
    pub place: Place,
    /// What, and what there is instead.
    pub reason: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.reason)
    }
}

impl std::error::Error for Refusal {}
