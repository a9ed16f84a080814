// SPDX-License-Identifier: MIT OR Apache-2.0
//! A number by which managers compare their topologies.

use std::fmt::{self, Write};

use admission::Topology;

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

/// Returns a number that differs where topologies differ.
pub fn digest(topology: &Topology) -> u64 {
    let mut digest = Digest(0xcbf2_9ce4_8422_2325);
    // Writing to it cannot fail.
    let _ = write!(digest, "{:?}{:?}", topology.nodes(), topology.segments());
    digest.0
}
