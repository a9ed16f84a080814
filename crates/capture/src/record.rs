// SPDX-License-Identifier: MIT OR Apache-2.0
//! One frame on a wire: the element of every series.

/// [`Record::flow`] of a frame that belongs to no flow (gap frames).
pub const NO_FLOW: u32 = u32::MAX;

/// What a frame is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// A frame somebody wanted sent.
    #[default]
    Data = 0,
    /// A PAUSE frame (EtherType 0x8808, opcode 1).
    Pause = 1,
    /// Another gap frame: EtherType 0x88B5 or 0x8808, or sent to its own sender.
    Gap = 2,
}

impl TryFrom<u8> for Kind {
    type Error = u8;
    fn try_from(value: u8) -> Result<Self, u8> {
        match value {
            0 => Ok(Self::Data),
            1 => Ok(Self::Pause),
            2 => Ok(Self::Gap),
            other => Err(other),
        }
    }
}

/// What became of a frame at the far port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Fate {
    /// Reached the far host, as far as is known.
    #[default]
    Delivered = 0,
    /// Dropped by the bottleneck's FIFO.
    DroppedFifo = 1,
    /// Dropped by the policer.
    DroppedPolicer = 2,
    /// Ended at the port, as MAC control frames do.
    Ended = 3,
    /// Counted and discarded by a sink.
    Sunk = 4,
    /// Lost on the cable, on purpose.
    Lost = 5,
}

impl Fate {
    /// Lost on the way, by whichever cause.
    #[must_use]
    pub fn is_dropped(self) -> bool {
        matches!(self, Self::DroppedFifo | Self::DroppedPolicer | Self::Lost)
    }
}

impl TryFrom<u8> for Fate {
    type Error = u8;
    fn try_from(value: u8) -> Result<Self, u8> {
        match value {
            0 => Ok(Self::Delivered),
            1 => Ok(Self::DroppedFifo),
            2 => Ok(Self::DroppedPolicer),
            3 => Ok(Self::Ended),
            4 => Ok(Self::Sunk),
            5 => Ok(Self::Lost),
            other => Err(other),
        }
    }
}

/// One frame, as it left (`docs/formats.md`, "Timeline").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// First bit of the preamble leaves, ps; of a capture, its timestamp
    /// after [`crate::reader::Capture::origin_ps`].
    pub start_ps: u64,
    /// Last bit at the far host, ps; 0 if it never arrives or is not known.
    pub arrive_ps: u64,
    /// Ethernet header included, FCS not, not padded.
    pub frame_bytes: u32,
    /// Padded, with FCS, preamble and inter-frame gap.
    pub wire_bytes: u32,
    /// Index into the flow table, or [`NO_FLOW`].
    pub flow: u32,
    /// Data or gap.
    pub kind: Kind,
    /// What became of it.
    pub fate: Fate,
    /// Transmit queue.
    pub queue: u16,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_name_kinds_and_fates() {
        for byte in 0..=255u8 {
            assert_eq!(Kind::try_from(byte).map_or_else(|b| b, |k| k as u8), byte);
            assert_eq!(Fate::try_from(byte).map_or_else(|b| b, |f| f as u8), byte);
        }
    }
}
