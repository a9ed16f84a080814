// SPDX-License-Identifier: MIT OR Apache-2.0
//! Timestamp clocks that tick slowly: what is sent some ticks apart may be sent seconds
//! apart.

use std::fmt::Write as _;

use capture::segment::Timestamps;
use stall::{Cause, Stall};

use crate::script::{Base, analyse, segments};

/// A server that sends a message now and then, as a capture at the client has it. Its
/// clock has `hz`, and what comes after `held` ms was held up on the way for so long.
fn messages(hz: u64, held: Option<(u64, u64)>) -> Vec<Stall> {
    let mut text = String::from("0 S SYN\n20 R SYN\n20 S ack\n20 S 0..100\n40 R ack 100\n");
    let mut at = 60;
    for n in 0..60u32 {
        at += if n % 12 == 11 { 2500 } else { 15 };
        let (from, to) = (n * 1448, (n + 1) * 1448);
        let _ = writeln!(text, "{at} R {from}..{to}\n{at} S ack {to}");
    }
    let mut all = segments(&text, Base::default());
    for segment in &mut all {
        let sent_ms = (segment.time_ns - Base::default().start_ns) / 1_000_000;
        let is_server = segment.from.port == 5001;
        let value = if is_server {
            sent_ms * hz / 1000
        } else {
            sent_ms
        };
        segment.timestamps = Some(Timestamps {
            value: 77_000 + value as u32,
            echo: Some(0),
        });
        if let Some((from_ms, late_ms)) = held.filter(|(from_ms, _)| sent_ms >= *from_ms) {
            let _ = from_ms;
            segment.time_ns += late_ms * 1_000_000;
        }
    }
    let all = analyse(&all).connections;
    all.into_iter().flat_map(|c| c.stalls).collect()
}

#[test]
fn an_idle_sender_with_a_slow_clock_is_no_delay() {
    for hz in [2, 10, 100, 250, 1000] {
        let stalls = messages(hz, None);
        let pauses = stalls.iter().filter(|s| s.cause == Cause::Application);
        assert!(pauses.count() > 0, "{hz} Hz: {stalls:#?}");
        for stall in &stalls {
            assert_ne!(stall.cause, Cause::DelaySpike, "{hz} Hz: {stall:#?}");
        }
    }
}

#[test]
fn a_delay_is_seen_where_the_tick_is_known() {
    // The first two clocks tick too rarely for the tick to be known; they say nothing.
    for (hz, is_seen) in [(2, false), (10, false), (250, true), (1000, true)] {
        let stalls = messages(hz, Some((150, 1800)));
        let spike = stalls.iter().find(|s| s.cause == Cause::DelaySpike);
        assert_eq!(spike.is_some(), is_seen, "{hz} Hz: {stalls:#?}");
    }
}
