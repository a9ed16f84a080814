// SPDX-License-Identifier: MIT OR Apache-2.0
//! Variables of a sender that only a comparison with a kernel reads.

/// Variables of a sender that only a comparison with a kernel reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Internals {
    /// Where the present reduction began, while it can be undone.
    pub undo_marker: Option<u64>,
    /// Retransmissions since then, less those reported as received twice. Less than zero if
    /// more were reported than sent.
    pub undo_retrans: i32,
    /// Acknowledgements counted towards the next growth or reduction of the window.
    pub growth_count: u32,
}
