// SPDX-License-Identifier: MIT OR Apache-2.0
//! Errors of a prediction's input.

/// Why there is no prediction.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Error {
    /// A probability outside 0 to 1.
    #[error("beta {value}: expected a probability, 0 to 1")]
    Probability { value: f64 },
    /// More stages than the limit.
    #[error("{stages} stages: expected at most {most}")]
    Stages { stages: usize, most: usize },
    /// A chain whose values do not match its routers.
    #[error(
        "{given} values of beta for {hops} hops{}: expected 1, or {expected}{}",
        if *.round_trip { " and back" } else { "" },
        if *.round_trip { ", the last of the reflecting host" } else { "" }
    )]
    Betas {
        /// Number of values given.
        given: usize,
        /// Number of routers.
        hops: usize,
        /// Number of values that would be valid, besides one.
        expected: usize,
        /// Whether the path back counts too.
        round_trip: bool,
    },
    /// No packets, or no stages at which one can be late.
    #[error("nothing to estimate beta from: {packets} packets over {stages} stages")]
    Nothing {
        packets: u64,
        /// Number of stages that each packet passes.
        stages: usize,
    },
    /// A confidence level outside 0 to 1.
    #[error("level {value}: expected above 0 and below 1")]
    Level { value: f64 },
    /// A packet longer than the burst.
    #[error(
        "--packet: {bytes} bytes, expected at most what the stream sends at once, {burst_bytes}"
    )]
    Packet {
        bytes: u64,
        /// What the stream sends at once.
        burst_bytes: f64,
    },
    /// A period of 0.
    #[error("period 0: expected a time above 0")]
    Period,
    /// A parameter of a curve that is not finite or out of its range.
    #[error("{what} {value}: expected a finite number, {expected}")]
    Curve {
        /// Name of the parameter.
        what: &'static str,
        value: f64,
        expected: &'static str,
    },
    /// A list of values that is not as long as the chain.
    #[error("{option}: {given} values: expected 1, or {stages}, one for each stage")]
    Values {
        /// The option of `pspacer predict` that takes the list.
        option: &'static str,
        /// Number of values given.
        given: usize,
        stages: usize,
    },
    /// A hop slower than the stream: its queue grows without limit.
    #[error(
        "hop {hop} serves {service_bps} bit/s, the stream brings {arrival_bps} bit/s: no bound; \
         expected a service of at least the stream's rate"
    )]
    Overload {
        /// Number of the hop, from 1.
        hop: usize,
        /// Service rate of the hop.
        service_bps: f64,
        /// Rate of the stream.
        arrival_bps: f64,
    },
}
