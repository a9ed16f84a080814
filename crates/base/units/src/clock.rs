// SPDX-License-Identifier: MIT OR Apache-2.0
//! Simulated time in integer picoseconds: a byte on a 100 Gbit/s line (80 ps) is a whole
//! number, and 2^64 of them are 213 days.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};

use crate::time::{PS_PER_NS, PS_PER_S};

/// An instant: picoseconds since the simulation began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

/// A length of time: picoseconds, never negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(u64);

impl Time {
    /// The instant at which the simulation begins.
    pub const START: Time = Time(0);

    /// Returns the instant `ps` picoseconds after the start.
    pub const fn from_ps(ps: u64) -> Time {
        Time(ps)
    }

    /// Returns the picoseconds since the start.
    pub const fn as_ps(self) -> u64 {
        self.0
    }

    /// Returns the whole nanoseconds since the start, rounded down.
    pub const fn as_ns(self) -> u64 {
        self.0 / PS_PER_NS
    }

    /// Returns the seconds since the start, for people and plots.
    pub fn as_s(self) -> f64 {
        self.0 as f64 / PS_PER_S as f64
    }

    /// Returns the time from `earlier` to this instant; zero if `earlier` is later.
    pub const fn since(self, earlier: Time) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl Span {
    /// A length of zero.
    pub const ZERO: Span = Span(0);

    /// Returns a length of `ps` picoseconds.
    pub const fn from_ps(ps: u64) -> Span {
        Span(ps)
    }

    /// Returns a length of `ns` nanoseconds; saturates.
    pub const fn from_ns(ns: u64) -> Span {
        Span(ns.saturating_mul(PS_PER_NS))
    }

    /// Returns the length in picoseconds.
    pub const fn as_ps(self) -> u64 {
        self.0
    }

    /// Returns the length in whole nanoseconds, rounded down.
    pub const fn as_ns(self) -> u64 {
        self.0 / PS_PER_NS
    }

    /// Returns the length in seconds, for people and plots.
    pub fn as_s(self) -> f64 {
        self.0 as f64 / PS_PER_S as f64
    }
}

impl Add<Span> for Time {
    type Output = Time;

    /// Saturates at the largest instant.
    fn add(self, span: Span) -> Time {
        Time(self.0.saturating_add(span.0))
    }
}

impl AddAssign<Span> for Time {
    fn add_assign(&mut self, span: Span) {
        *self = *self + span;
    }
}

impl Add for Span {
    type Output = Span;

    fn add(self, other: Span) -> Span {
        Span(self.0.saturating_add(other.0))
    }
}

impl Sub for Span {
    type Output = Span;

    fn sub(self, other: Span) -> Span {
        Span(self.0.saturating_sub(other.0))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.9} s", self.as_s())
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.9} s", self.as_s())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_and_differences_stay_within_the_range() {
        assert_eq!(
            Time::from_ps(u64::MAX) + Span::from_ps(1),
            Time::from_ps(u64::MAX)
        );
        assert_eq!(Time::START.since(Time::from_ps(1)), Span::ZERO);
    }

    #[test]
    fn nanoseconds_round_down() {
        assert_eq!(Time::from_ps(1_999).as_ns(), 1);
        assert_eq!(Span::from_ns(3).as_ps(), 3_000);
    }
}
