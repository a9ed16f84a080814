// SPDX-License-Identifier: MIT OR Apache-2.0
//! Any bytes as segments of one connection, in runs, and what their analysis may
//! cost: steps and bytes of memory, which are counted, not measured.
//! `fuzz/targets/cost.rs` calls this, and a test replays its corpus. The program has
//! nothing else that allocates.

use std::alloc::System;

use capture::segment::{Endpoint, Flags, HostDirection, Segment};
use stall::{Analyser, Options};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Small, so that few segments come beyond them.
const OPTIONS: Options = Options {
    min_stall_ns: 20_000_000,
    min_stall_blind_ns: 200_000_000,
    least_ns: None,
    stalls_most: 4,
    outstanding_most: 16_384,
    reported_most: 64,
    repeated_most: 32,
    history_of: None,
    history_most: 16,
};
/// Segments of one input.
const SEGMENTS_MOST: u64 = 20_000;
/// Of each segment in the mean: four blocks that split two segments each, where a
/// split moves half a chunk, and a repeat with all that is remembered for it.
const STEPS_MOST: u64 = 500;
/// Of a connection, as docs/use/stalls.md has it, of what a direction remembers: parts
/// of segments in chunks that are half full, ranges in nodes that are half full,
/// twice the stops, windows on their way, and the last retransmissions.
const BYTES_MOST: usize = 5_500
    + 2 * (2 * 64 * OPTIONS.outstanding_most
        + 64 * OPTIONS.reported_most
        + 4 * 950 * OPTIONS.stalls_most
        + 10_000);

fn live_bytes() -> usize {
    let stats = ALLOCATOR.stats();
    stats.bytes_allocated - stats.bytes_deallocated
}

/// A run of segments: eight bytes of input.
struct Run {
    what: u8,
    /// Bytes of the stream that numbers count in.
    unit: u32,
    start: u32,
    length: u32,
    /// From one segment to the next.
    stride: u32,
    count: u32,
    step_us: u64,
}

impl Run {
    fn new(bytes: [u8; 8]) -> Self {
        let [
            what,
            start_low,
            start_high,
            length,
            stride_low,
            stride_high,
            count,
            step,
        ] = bytes;
        Self {
            what: what % 6,
            unit: [1, 100, 1000, 1448][usize::from(what / 6) % 4],
            start: u32::from(u16::from_le_bytes([start_low, start_high])),
            length: u32::from(length),
            stride: u32::from(u16::from_le_bytes([stride_low, stride_high])),
            count: u32::from(count) + 1,
            step_us: u64::from(step).pow(2),
        }
    }

    /// Segment `number` of it. `acked` is what the receiver said last.
    fn segment(&self, number: u32, acked: &mut u32) -> Segment {
        let place = self.start.wrapping_add(self.stride.wrapping_mul(number)) % (1 << 16);
        let start = place * self.unit;
        let end = start + self.length * self.unit;
        let [sender, receiver] = [1, 2].map(|last| Endpoint {
            address: [192, 0, 2, last].into(),
            port: 5001,
        });
        let is_data = self.what < 2;
        let mut out = Segment {
            number: 0,
            time_ns: 0,
            from: if is_data { sender } else { receiver },
            to: if is_data { receiver } else { sender },
            encapsulation: 0,
            seq: if is_data { start } else { 0 },
            ack: if is_data { 0 } else { *acked },
            flags: Flags(Flags::ACK),
            window: 60_000,
            payload_bytes: if is_data { end - start } else { 0 },
            mss: None,
            window_scale: None,
            sack_permitted: false,
            mptcp: None,
            timestamps: None,
            sack: Default::default(),
            options_cut: false,
            ecn: 0,
            ip_id: 0,
            hop_limit: 64,
            host_direction: HostDirection::Unknown,
        };
        match self.what {
            0 => {}
            1 if number + 1 == self.count => out.flags = Flags(Flags::ACK | Flags::FIN),
            1 => {}
            2 => {
                *acked = end;
                out.ack = end;
            }
            // One block, or four of them side by side.
            what => {
                for block in 0..if what == 3 { 1 } else { 4 } {
                    let at = start + block * 2 * (end - start) + 1;
                    out.sack.push(at, at + (end - start));
                }
            }
        }
        out
    }
}

/// Analyses `bytes` as runs of segments, and asserts what it costs.
pub fn replay(bytes: &[u8]) {
    let begin = live_bytes();
    let mut analyser = Analyser::new(OPTIONS);
    let (mut segments, mut now_us, mut acked) = (0, 0, 0);
    let runs = bytes.chunks_exact(8).filter_map(|run| run.try_into().ok());
    'all: for run in runs.map(Run::new) {
        for number in 0..run.count {
            let mut segment = run.segment(number, &mut acked);
            segments += 1;
            now_us += run.step_us;
            segment.number = segments;
            segment.time_ns = now_us * 1000;
            analyser.segment(&segment);
            if segments == SEGMENTS_MOST {
                break 'all;
            }
        }
        let bytes = live_bytes() - begin;
        assert!(bytes <= BYTES_MOST, "{bytes} bytes");
        let steps = analyser.steps();
        assert!(
            steps <= STEPS_MOST * segments,
            "{steps} steps for {segments} segments"
        );
    }
    let connections = analyser.finish().connections.len();
    assert_eq!(connections, usize::from(segments > 0));
}
