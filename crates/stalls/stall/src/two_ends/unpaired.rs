// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why two captures cannot be put together.

/// Why two captures cannot be put together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unpaired {
    /// They have no packet in common.
    NothingCommon,
    /// Packets of one direction alone are in both: they tell nothing of the clocks.
    OneDirection,
    /// The packets' times fit no two clocks that run evenly.
    Clocks,
}

impl std::fmt::Display for Unpaired {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::NothingCommon => {
                "the two captures have no packet in common: expected captures of the same \
                 connections, without address translation between them"
            }
            Self::OneDirection => {
                "only packets of one direction are in both captures: expected both directions, \
                 from which the clocks are fitted"
            }
            Self::Clocks => {
                "the packets' times fit no two clocks that run evenly: was a clock set during \
                 the capture, or is one capture not from an end?"
            }
        })
    }
}
