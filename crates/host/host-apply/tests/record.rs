// SPDX-License-Identifier: MIT OR Apache-2.0
//! The cable's record of numbered frames.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use capture::timeline::TimelineReader;

/// Bytes of each frame that the record keeps.
const SNAP_BYTES: usize = 64;

/// A frame of the cable's record: when it leaves, and its number in its flow.
pub type Frame = (u64, u64);

/// Returns the UDP frames to each port, of a record with the frames' beginnings.
pub fn numbered_frames(folder: &Path, name: &str) -> BTreeMap<u16, Vec<Frame>> {
    let file = fs::File::open(folder.join(format!("{name}.timeline"))).unwrap();
    let snaps = fs::read(folder.join(format!("{name}.snap"))).unwrap();
    let mut snaps = snaps.chunks_exact(SNAP_BYTES);
    let mut frames = BTreeMap::<u16, Vec<Frame>>::new();
    for record in TimelineReader::new(file) {
        let record = record.unwrap();
        if record.kind != capture::record::Kind::Data {
            continue;
        }
        let snap = snaps.next().unwrap();
        if snap[12..14] != [8, 0] || snap[23] != 17 {
            continue;
        }
        let port = u16::from_be_bytes(snap[36..38].try_into().unwrap());
        let number = u64::from_be_bytes(snap[42..50].try_into().unwrap());
        frames
            .entry(port)
            .or_default()
            .push((record.start_ps / 1000, number));
    }
    frames
}
