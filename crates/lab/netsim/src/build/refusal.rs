// SPDX-License-Identifier: MIT OR Apache-2.0
//! The reason why a scenario cannot be simulated.

use std::fmt;

use scenario::Place;

/// Something in a scenario that the simulator does not model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Its place in the file.
    pub place: Place,
    /// What is not modelled, and what is modelled instead.
    pub reason: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.reason)
    }
}

impl std::error::Error for Refusal {}
