// SPDX-License-Identifier: MIT OR Apache-2.0
//! One packet of a capture file, and where and when it was captured.

use units::time::{NS_PER_S, PS_PER_S};

use crate::link::Link;
use crate::segment::HostDirection;

/// Longest block that is read; no packet is longer. Memory is allocated only after this check.
/// Wireshark's limit is 256 KB per packet.
pub(crate) const LARGEST_BLOCK_BYTES: u32 = 16 << 20;

/// What is said of packets whose time has a fraction of a second or more, after their number.
pub const BEYOND_SECOND: &str = "packets have fractions of a second or more in their times, which are not to be \
    relied on";
/// What is said of a file whose header states microseconds and whose packets have nanoseconds.
pub const READ_AS_NS: &str = "the file's header says microseconds, and the fractions of its packets are nanoseconds: \
    they were read as those";

/// Time at which a packet was captured, since 1970. It is exact for every resolution down to a
/// picosecond, without 128-bit arithmetic for each packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CaptureTime {
    /// Whole seconds, rounded down.
    pub(crate) seconds: i128,
    /// Picoseconds within the second; they exceed a second if the file is broken.
    pub(crate) ps: u64,
}

impl CaptureTime {
    /// Returns whether the fraction of a second is one or more.
    pub(crate) fn is_beyond_second(self) -> bool {
        self.ps >= PS_PER_S
    }

    pub(crate) fn ps(self) -> i128 {
        self.seconds * i128::from(PS_PER_S) + i128::from(self.ps)
    }

    /// Returns the nanoseconds since 1970, limited to the range of `u64` (1970 to 2554).
    #[inline]
    pub(crate) fn ns(self) -> u64 {
        if let Ok(seconds) = u32::try_from(self.seconds) {
            return u64::from(seconds) * NS_PER_S + self.ps / 1000; // no sum of these is too large
        }
        let Ok(seconds) = u64::try_from(self.seconds) else {
            return if self.seconds < 0 { 0 } else { u64::MAX };
        };
        seconds
            .saturating_mul(NS_PER_S)
            .saturating_add(self.ps / 1000)
    }
}

/// One packet as the file stores it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame<'a> {
    pub(crate) time: CaptureTime,
    pub(crate) interface: u32,
    pub(crate) link: Option<Link>,
    pub(crate) host_direction: HostDirection,
    /// Length on the wire, as the file states it.
    pub(crate) packet_bytes: u32,
    /// The captured bytes.
    pub(crate) bytes: &'a [u8],
    /// The options that pcapng stores behind the packet.
    pub(crate) options: Options<'a>,
}

/// Options of a pcapng block.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Options<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) big_endian: bool,
}

impl<'a> Iterator for Options<'a> {
    /// The code and the value of an option.
    type Item = (u16, &'a [u8]);

    /// Returns the next option; `None` at the end, or if an option is longer than its block.
    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        const END_OF_OPTIONS: u16 = 0;
        let ([a, b, c, d], _) = self.bytes.split_first_chunk()?;
        let half = |half: [u8; 2]| {
            if self.big_endian {
                u16::from_be_bytes(half)
            } else {
                u16::from_le_bytes(half)
            }
        };
        let (code, length) = (half([*a, *b]), usize::from(half([*c, *d])));
        let value = self.bytes.get(4..4 + length)?;
        let rest = self.bytes.get(4 + length.next_multiple_of(4)..);
        self.bytes = rest.unwrap_or_default();
        (code != END_OF_OPTIONS).then_some((code, value))
    }
}

/// What a file says of itself, or contradicts itself in, beside its packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Oddities {
    /// Whether the header states microseconds, and the packets have nanoseconds.
    pub(crate) is_read_as_ns: bool,
    /// Blocks whose length is no multiple of 4.
    pub(crate) odd_lengths: u64,
    /// Packets that the capture lost, as it counts them.
    pub(crate) dropped: u64,
}

/// An interface at which packets were captured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Name in the file; empty if the file names none.
    pub name: String,
    /// Number of the link type (LINKTYPE_...).
    pub link_number: i32,
    /// Resolution of the interface's clock, ps; at least 1.
    pub resolution_ps: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_outside_of_the_range_stay_at_its_ends() {
        let time = |seconds, ps| CaptureTime { seconds, ps };
        assert_eq!(time(2, 1_999).ns(), 2_000_000_001);
        assert_eq!(time(-1, 0).ns(), 0);
        assert_eq!(time(i128::MAX, 0).ns(), u64::MAX);
        assert_eq!(time(18_446_744_073, u64::MAX).ns(), u64::MAX);
        assert_eq!(time(-1, 5).ps(), 5 - 1_000_000_000_000);
    }
}
