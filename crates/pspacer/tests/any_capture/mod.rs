// SPDX-License-Identifier: MIT OR Apache-2.0
//! Any bytes as a capture, through reading and analysis. `fuzz/targets/stalls.rs`
//! calls this, and a test replays its corpus.

use std::io::Read;

use capture::segments::{Segments, Source};
use stall::{Analyser, Analysis, Options};

/// Reads and analyses `bytes` alone and merged with themselves. What must hold
/// of any file is asserted.
pub fn replay(bytes: &[u8]) {
    let Some((alone, segments)) = analyse(bytes, 1, None) else {
        return;
    };
    check(&alone, segments);
    let again = analyse(bytes, 1, Some(0)).map(|(again, _)| again.connections.len());
    assert_eq!(Some(alone.connections.len()), again);
    if let Some((twice, segments)) = analyse(bytes, 2, None) {
        check(&twice, segments);
    }
}

/// The analysis, and the number of the last packet.
fn analyse(bytes: &[u8], files: usize, history_of: Option<usize>) -> Option<(Analysis, u64)> {
    let source = |_| Source::new("any", || Ok(Box::new(bytes) as Box<dyn Read + '_>));
    let mut segments = Segments::open((0..files).map(source).collect()).ok()?;
    let mut analyser = Analyser::new(Options {
        history_of,
        ..Options::default()
    });
    let mut last = 0;
    while let Some(segment) = segments.next() {
        assert!(segment.number > last, "numbers go up");
        last = segment.number;
        let _ = segments.encapsulations().name(segment.encapsulation);
        analyser.segment(&segment);
    }
    let counts = segments.counts();
    assert!(last <= counts.packets);
    let others = counts.not_tcp + counts.unknown_link + counts.timeless + counts.cut;
    let all = counts.segments + others + counts.malformed + counts.later_fragments;
    assert_eq!(all, counts.packets, "every packet is counted once");
    Some((analyser.finish(), last))
}

fn check(analysis: &Analysis, last: u64) {
    for connection in &analysis.connections {
        assert!(!connection.verdict.is_empty());
        for stall in &connection.stalls {
            assert!(stall.evidence.is_sorted());
            assert!(
                stall
                    .evidence
                    .iter()
                    .all(|packet| (1..=last).contains(packet))
            );
        }
    }
}
