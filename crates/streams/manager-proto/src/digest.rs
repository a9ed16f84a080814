// SPDX-License-Identifier: MIT OR Apache-2.0
//! A number by which managers compare what they know of the segments of a stream.

use std::fmt::{self, Write};

use admission::{SegmentId, Topology};

/// Hashes what is written: FNV-1a.
struct Digest(u64);

impl Write for Digest {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        Ok(())
    }
}

/// Returns a number for each segment, which differs where their descriptions differ.
pub fn segment_digests(topology: &Topology) -> Vec<u64> {
    let of = |segment: &admission::Segment| {
        let mut digest = Digest(0xcbf2_9ce4_8422_2325);
        // Writing to it cannot fail.
        let _ = write!(digest, "{:?}", segment.spec);
        digest.0
    };
    topology.segments().iter().map(of).collect()
}

/// Returns a number that differs where one of these segments' descriptions differs.
pub fn combined(digests: &[u64], segments: impl IntoIterator<Item = SegmentId>) -> u64 {
    let own = segments.into_iter().filter_map(|id| digests.get(id.0));
    own.fold(0xcbf2_9ce4_8422_2325, |sum, of| {
        (sum ^ of).wrapping_mul(0x0100_0000_01b3)
    })
}
