// SPDX-License-Identifier: MIT OR Apache-2.0
//! Two cables into one bottleneck.
//!
//! ```text
//! tx  --- wire, 100 Mbit/s ---+
//!                             +-- FIFO, 50 Mbit/s ---- rx, rx2
//! tx2 --- other, 100 Mbit/s --+
//! ```

use std::fs;
use std::path::Path;

use crate::common::{LONG, run, scenario};

const SHARED: &str = r#"
bql_min = "64kb"
[[host]]
name = "tx2"
[[host]]
name = "rx2"
[[cable]]
name = "other"
ends = ["tx2:eth0", "rx2:eth0"]
rate = "100mbit"
bql_min = "64kb"
[[bottleneck]]
cable = "wire"
from = "tx"
rate = "50mbit"
fifo = "16kb"
also = "other"
[[flow]]
name = "second"
type = "udp"
from = "tx2"
to = "rx2"
payload = "700b"
start = "3ms"
stop = "17ms"
"#;

/// Picoseconds of a byte on a cable, and in the bottleneck.
const CABLE_PS: u64 = 80_000;
const PORT_PS: u64 = 160_000;
const FIFO_BYTES: u64 = 16_384;

struct Frame {
    enters_ps: u64,
    bytes: u64,
    arrive_ps: u64,
    fate: u8,
}

fn frames(path: &Path) -> Vec<Frame> {
    let bytes = fs::read(path).unwrap();
    let u64_at = |r: &[u8], at: usize| u64::from_le_bytes(r[at..at + 8].try_into().unwrap());
    let u32_at =
        |r: &[u8], at: usize| u64::from(u32::from_le_bytes(r[at..at + 4].try_into().unwrap()));
    let data = bytes.chunks_exact(32).filter(|r| r[28] == 0);
    data.map(|r| Frame {
        enters_ps: u64_at(r, 0) + (u32_at(r, 20) - 12) * CABLE_PS,
        bytes: u32_at(r, 16),
        arrive_ps: u64_at(r, 8),
        fate: r[29],
    })
    .collect()
}

/// The test computes the fate of every frame anew from when each reached the port.
#[test]
fn frames_of_two_cables_enter_one_fifo_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let output = run(&scenario(SHARED), folder.path(), LONG).unwrap();
    let dir = &output.cells[0].dir;
    let both = ["wire", "other"].map(|cable| frames(&dir.join(format!("timeline.{cable}.a"))));
    let mut all: Vec<(u64, usize, &Frame)> = Vec::new();
    for (cable, frames) in both.iter().enumerate() {
        assert!(
            frames.len() > 100,
            "{} frames of cable {cable}",
            frames.len()
        );
        all.extend(frames.iter().map(|f| (f.enters_ps, cable, f)));
    }
    all.sort_by_key(|(enters_ps, cable, _)| (*enters_ps, *cable));
    // The last frames had not reached the port when the record was read.
    let decided = all.partition_point(|(_, _, frame)| (frame.fate, frame.arrive_ps) != (0, 0));
    assert!(decided > 200, "{decided} of {}", all.len());
    let last_ps = all
        .get(decided)
        .map_or(u64::MAX, |(enters_ps, ..)| *enters_ps);
    all.truncate(decided);
    let mut free_ps = 0;
    let mut dropped = [0, 0];
    for (enters_ps, cable, frame) in all {
        let from_ps = enters_ps.max(free_ps);
        let out_ps = from_ps + frame.bytes.max(60) * PORT_PS;
        if out_ps - enters_ps > FIFO_BYTES * PORT_PS {
            dropped[cable] += 1;
            assert_eq!((frame.fate, frame.arrive_ps), (1, 0), "at {enters_ps} ps");
            continue;
        }
        free_ps = out_ps;
        assert_eq!(
            (frame.fate, frame.arrive_ps),
            (0, out_ps),
            "at {enters_ps} ps"
        );
    }
    let both = both.iter().flatten();
    let late = |f: &&Frame| f.enters_ps < last_ps && (f.fate, f.arrive_ps) == (0, 0);
    assert_eq!(both.filter(late).count(), 0, "decided out of order");
    assert!(dropped[0] > 10 && dropped[1] > 10, "{dropped:?}");
}
