// SPDX-License-Identifier: MIT OR Apache-2.0
//! One packet of a capture file, and where and when it was captured.

use units::time::{NS_PER_S, PS_PER_S};

use crate::link::Link;
use crate::segment::HostDirection;

/// The longest block that is read. No packet is longer, and memory is allocated
/// only after this check. Wireshark draws the line at 256 KB of a packet.
pub(crate) const LARGEST_BLOCK_BYTES: u32 = 16 << 20;

/// When a packet was captured, since 1970: exact for every resolution down to
/// a picosecond, without arithmetic in 128 bits for each packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CaptureTime {
    /// Rounded down.
    pub(crate) seconds: i128,
    /// Within the second; more than a second if a broken file says so.
    pub(crate) ps: u64,
}

impl CaptureTime {
    pub(crate) fn ps(self) -> i128 {
        self.seconds * i128::from(PS_PER_S) + i128::from(self.ps)
    }

    /// Kept within 1970 to 2554.
    pub(crate) fn ns(self) -> u64 {
        let Ok(seconds) = u64::try_from(self.seconds) else {
            return if self.seconds < 0 { 0 } else { u64::MAX };
        };
        seconds
            .saturating_mul(NS_PER_S)
            .saturating_add(self.ps / 1000)
    }
}

/// One packet, as a file has it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame<'a> {
    pub(crate) time: CaptureTime,
    pub(crate) interface: u32,
    pub(crate) link: Option<Link>,
    pub(crate) host_direction: HostDirection,
    /// On the wire, as far as the file says.
    pub(crate) packet_bytes: u32,
    /// What was captured of it.
    pub(crate) bytes: &'a [u8],
}

/// Where packets were captured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// As the file calls it; empty if it does not.
    pub name: String,
    /// Its LINKTYPE number.
    pub link_number: i32,
    /// Its clock's resolution, ps, at least 1.
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
