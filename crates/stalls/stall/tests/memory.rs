// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a connection takes, as docs/use/stalls.md has it. Bytes are counted by the
//! allocator: nothing runs beside the one test of this file.

#![allow(clippy::unwrap_used)]

mod script;

use std::alloc::System;

use capture::segment::Segment;
use script::{Base, HANDSHAKE, segments};
use stall::{Analyser, Options};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Bytes allocated and not freed.
fn live_bytes() -> usize {
    let stats = ALLOCATOR.stats();
    stats.bytes_allocated - stats.bytes_deallocated
}

/// Segments under way at once.
const FLIGHT: u32 = 4000;
/// Connections of a kind. docs/use/stalls.md speaks of 100,000.
const CONNECTIONS: u16 = 200;
/// "5.7 KB"
const CONNECTION_BYTES: usize = 5_750;
/// "500 bytes"
const SYN_BYTES: usize = 500;
/// Connections of the flood.
const FLOOD: u32 = 20_000;
/// "900 bytes for each stop"
const STALL_BYTES: usize = 950;
/// "200 bytes" for each beyond the last four.
const PACKED_BYTES: usize = 200;
const PAUSES: u32 = 1000;

/// `FLIGHT` segments under way, and then what `end` says.
fn transfer(end: &str) -> Vec<Segment> {
    let mut text = HANDSHAKE.to_owned();
    for number in 0..FLIGHT {
        text += &format!("50 S {}..{}\n", number * 1000, number * 1000 + 1000);
    }
    text += end;
    segments(&text, Base::default())
}

/// What each of `CONNECTIONS` such connections adds, one after the other.
fn bytes_of(all: &[Segment]) -> usize {
    let mut analyser = Analyser::new(Options::default());
    let mut begin = 0;
    for number in 0..=CONNECTIONS {
        for segment in all {
            let mut segment = *segment;
            for end in [&mut segment.from, &mut segment.to] {
                // The first one's ports stay: lists and tables are there then.
                end.port += number;
            }
            analyser.segment(&segment);
        }
        if number == 0 {
            begin = live_bytes();
        }
    }
    let bytes = (live_bytes() - begin) / usize::from(CONNECTIONS);
    assert_eq!(analyser.finish().connections.len(), 201);
    bytes
}

#[test]
fn a_connection_that_is_over_takes_what_the_documents_say() {
    let total = FLIGHT * 1000;
    let fins = format!(
        "90 S {total}..{total} FIN\n100 R ack {} FIN\n110 S ack 1\n",
        total + 1
    );
    let ended = [
        ("FIN of both sides", 0, format!("80 R ack {total}\n{fins}")),
        ("FIN with the last acknowledgement", 1, fins.clone()),
        (
            "FIN of both sides, behind a loss",
            0,
            format!("70 R ack 0 sack 1000..{total}\n75 S 0..1000\n80 R ack {total}\n{fins}"),
        ),
        ("a reset", 0, "80 R RST\n".to_owned()),
        ("nothing under way", 0, format!("80 R ack {total}\n")),
    ];
    for (how, stalls, end) in ended {
        let bytes = bytes_of(&transfer(&end));
        assert!(
            bytes <= CONNECTION_BYTES + stalls * STALL_BYTES,
            "{how}: {bytes} bytes"
        );
    }
    // "64 bytes for each segment under way"
    let bytes = bytes_of(&transfer(""));
    let most = CONNECTION_BYTES + FLIGHT as usize * 64;
    assert!(
        bytes <= most,
        "{bytes} bytes with {FLIGHT} segments under way"
    );
    // "200 bytes": a sender that pauses in each of its rounds.
    let mut rounds = HANDSHAKE.to_owned();
    for number in 0..PAUSES {
        let (begin, at) = (number * 1000, 100 + number * 300 + number % 7);
        rounds += &format!("{at} S {begin}..{}\n", begin + 1000);
        rounds += &format!("{} R ack {}\n", at + 20, begin + 1000);
    }
    let bytes = bytes_of(&segments(&rounds, Base::default()));
    let most = CONNECTION_BYTES + 4 * STALL_BYTES + PAUSES as usize * PACKED_BYTES;
    assert!(bytes <= most, "{bytes} bytes with {PAUSES} pauses");
    // "500 bytes": of a flood, each connection is a SYN.
    let begin = live_bytes();
    let mut analyser = Analyser::new(Options::default());
    for number in 0..FLOOD {
        let mut syn = segments("0 S SYN", Base::default()).remove(0);
        let [_, _, high, low] = number.to_be_bytes();
        syn.from.address = [10, 0, high, low].into();
        (syn.number, syn.seq) = (u64::from(number) + 1, number);
        analyser.segment(&syn);
    }
    let reading = (live_bytes() - begin) / FLOOD as usize;
    let analysis = analyser.finish();
    let results = (live_bytes() - begin) / FLOOD as usize;
    assert_eq!(analysis.connections.len(), FLOOD as usize);
    for bytes in [reading, results] {
        assert!(bytes <= SYN_BYTES, "{bytes} bytes for a SYN");
    }
}
