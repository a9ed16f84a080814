// SPDX-License-Identifier: MIT OR Apache-2.0
//! What can be wrong with what is asked.

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Error {
    /// A probability outside 0 to 1.
    #[error("beta {value}: expected a probability, 0 to 1")]
    Probability {
        /// What was given.
        value: f64,
    },
    /// More stages than are computed.
    #[error("{stages} stages: expected at most {most}")]
    Stages {
        /// How many.
        stages: usize,
        /// How many are computed.
        most: usize,
    },
    /// A chain whose values do not match its routers.
    #[error(
        "{given} values of beta for {hops} hops{}: expected 1, or {expected}{}",
        if *.round_trip { " and back" } else { "" },
        if *.round_trip { ", the last of the reflecting host" } else { "" }
    )]
    Betas {
        /// Values there are.
        given: usize,
        /// Routers there are.
        hops: usize,
        /// Values that would do, beside one.
        expected: usize,
        /// Whether the way back counts too.
        round_trip: bool,
    },
    /// Nothing was measured, or nothing can be late.
    #[error("nothing to estimate beta from: {packets} packets over {stages} stages")]
    Nothing {
        /// Packets there are.
        packets: u64,
        /// Stages of each.
        stages: usize,
    },
    /// A confidence level outside 0 to 1.
    #[error("level {value}: expected above 0 and below 1")]
    Level {
        /// What was given.
        value: f64,
    },
    /// A period of no length.
    #[error("period 0: expected a time above 0")]
    Period,
    /// A curve that is none.
    #[error("{what} {value}: expected a finite number, {expected}")]
    Curve {
        /// Which quantity.
        what: &'static str,
        /// What was given.
        value: f64,
        /// Its range.
        expected: &'static str,
    },
    /// A queue that grows for ever.
    #[error(
        "hop {hop} serves {service_bps} bit/s, the stream brings {arrival_bps} bit/s: no bound; \
         expected a service of at least the stream's rate"
    )]
    Overload {
        /// Which, from 1.
        hop: usize,
        /// What the hop serves.
        service_bps: f64,
        /// What arrives.
        arrival_bps: f64,
    },
}
