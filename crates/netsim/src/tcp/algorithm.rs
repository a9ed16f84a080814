// SPDX-License-Identifier: MIT OR Apache-2.0
//! The congestion controls that a connection may have.

/// Which congestion control gives the window its growth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Congestion {
    /// RFC 5681.
    Reno,
    /// Binary increase, Linux's default from 2.6.8 to 2.6.18.
    #[default]
    Bic,
    /// RFC 9438, Linux's default since 2.6.19.
    Cubic,
}
