// SPDX-License-Identifier: MIT OR Apache-2.0
//! Congestion control algorithms that a connection can use.

/// The algorithm that determines how the congestion window grows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Congestion {
    /// Reno (RFC 5681).
    Reno,
    /// BIC, binary increase: Linux's default from 2.6.8 to 2.6.18.
    #[default]
    Bic,
    /// CUBIC (RFC 9438): Linux's default since 2.6.19.
    Cubic,
    /// Vegas: by delay.
    Vegas,
}
