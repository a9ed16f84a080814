// SPDX-License-Identifier: MIT OR Apache-2.0
//! One frame on a wire: the element of every series of frames.

/// [`Record::flow`] of a frame that belongs to no flow (gap frames).
pub const NO_FLOW: u32 = u32::MAX;

/// The purpose of a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// A frame that a host or program wanted to send.
    #[default]
    Data = 0,
    /// A PAUSE frame (EtherType 0x8808, opcode 1).
    Pause = 1,
    /// Any other gap frame: EtherType 0x88B5 or 0x8808, or source and destination MAC address
    /// are equal.
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

/// What happened to a frame at the far port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Fate {
    /// It reached the far host, as far as is known.
    #[default]
    Delivered = 0,
    /// The bottleneck's FIFO dropped it.
    DroppedFifo = 1,
    DroppedPolicer = 2,
    /// It ended at the port, as MAC control frames do.
    Ended = 3,
    /// A sink counted and discarded it.
    Sunk = 4,
    /// An impairment of the scenario lost it on the cable.
    Lost = 5,
}

impl Fate {
    /// Whether the frame was lost on its path, by whichever cause.
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

/// One frame as it left its sender (`docs/use/formats.md`, "Timeline").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Instant at which the first bit of the preamble leaves, ps; in a capture, the packet's
    /// timestamp minus [`crate::reader::Capture::origin_ps`].
    pub start_ps: u64,
    /// Instant at which the last bit reaches the far host, ps; 0 if it never arrives or the
    /// instant is not known.
    pub arrive_ps: u64,
    /// Frame length: with Ethernet header, without FCS and padding.
    pub frame_bytes: u32,
    /// Length on the wire: with padding, FCS, preamble and inter-frame gap.
    pub wire_bytes: u32,
    /// Index into the flow table, or [`NO_FLOW`].
    pub flow: u32,
    /// Purpose of the frame: data or gap.
    pub kind: Kind,
    /// What happened to the frame.
    pub fate: Fate,
    /// Transmit queue that the frame left by.
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
