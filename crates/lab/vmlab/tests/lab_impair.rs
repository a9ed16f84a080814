// SPDX-License-Identifier: MIT OR Apache-2.0
//! The cable loses or delays exactly the chosen frames.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::common::{LONG, run};

const SNAP: usize = 96;
const MSS: u32 = 1448;
const LOST: u8 = 5;

/// A data segment when it left, and its fate.
struct Sent {
    start_ns: u64,
    arrive_ns: u64,
    fate: u8,
    /// The first byte of its payload in the stream.
    offset: u32,
}

/// Returns the segments with payload that `wire.a` carried, in order of departure.
fn segments(dir: &Path) -> Vec<Sent> {
    let timeline = fs::read(dir.join("timeline.wire.a")).unwrap();
    let snap = fs::read(dir.join("snap.wire.a")).unwrap();
    let (mut first, mut all) = (0, Vec::new());
    for (record, frame) in timeline.chunks_exact(32).zip(snap.chunks_exact(SNAP)) {
        let word = |at: usize| u64::from_le_bytes(record[at..at + 8].try_into().unwrap());
        let sequence = u32::from_be_bytes(frame[38..42].try_into().unwrap());
        let is_syn = frame[47] & 2 != 0;
        let headers = 20 + usize::from(frame[46] >> 4) * 4;
        let length = usize::from(u16::from_be_bytes([frame[16], frame[17]]));
        if is_syn {
            first = sequence.wrapping_add(1);
        } else if length > headers {
            all.push(Sent {
                start_ns: word(0) / 1000,
                arrive_ns: word(8) / 1000,
                fate: record[29],
                offset: sequence.wrapping_sub(first),
            });
        }
    }
    all
}

#[test]
fn exactly_the_chosen_frames_are_lost_or_late() {
    let folder = tempfile::tempdir().unwrap();
    let text = format!(
        r#"
name = "impaired"
title = "Chosen frames"
duration = "900ms"
[[host]]
name = "tx"
[[host]]
name = "rx"
[[cable]]
name = "wire"
ends = ["tx:eth0", "rx:eth0"]
rate = "100mbit"
delay = "5ms"
snap = {SNAP}
[[flow]]
name = "bulk"
type = "tcp"
from = "tx"
to = "rx"
message = "14480b"
every = "400ms"
[[impairment]]
cable = "wire"
from = "tx"
flow = "bulk"
bytes_from = "5792b"
bytes_to = "7240b"
copies = 2
[[impairment]]
cable = "wire"
from = "tx"
flow = "bulk"
bytes_from = "18824b"
bytes_to = "21720b"
late = "2ms"
"#
    );
    let scenario = scenario::parse("impaired.toml", &text, &Default::default()).unwrap();
    let output = run(&scenario, folder.path(), LONG).unwrap();
    let sent = segments(&output.cells[0].dir);
    let mut lost: BTreeMap<u32, u32> = BTreeMap::new();
    for segment in sent.iter().filter(|segment| segment.fate == LOST) {
        *lost.entry(segment.offset / MSS).or_default() += 1;
        assert_eq!(segment.arrive_ns, 0);
    }
    assert_eq!(lost, BTreeMap::from([(4, 2)]));
    let third = sent.iter().filter(|segment| segment.offset / MSS == 4);
    assert!(third.count() >= 3, "it was not retransmitted");
    let late: Vec<u32> = sent
        .iter()
        .filter(|segment| segment.arrive_ns > segment.start_ns + 6_500_000)
        .map(|segment| segment.offset / MSS)
        .collect();
    assert_eq!(late, [13, 14]);
    // The program sends nothing between its messages.
    let second = sent
        .iter()
        .find(|segment| segment.offset == 14_480)
        .unwrap();
    let since_ns = second.start_ns - output.cells[0].zero_ns;
    assert!((400_000_000..402_000_000).contains(&since_ns), "{since_ns}");
}
