// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests that need the inside of a sender.

mod any_acks;
mod figures;
mod older;
mod rack;
mod sort;

use units::clock::{Span, Time};

use super::Sender;
use crate::tcp::{SackBlock, Segment, SenderConfig, Variant};

/// Sequence numbers in these tests are packets of this many bytes.
const MSS: u64 = 1000;

fn ms(ms: u64) -> Time {
    Time::START + Span::from_ns(ms * 1_000_000)
}

fn config(variant: Variant) -> SenderConfig {
    SenderConfig {
        mss_bytes: MSS as u32,
        timestamps: false,
        initial_window_bytes: 1 << 40,
        handshake_rtt: Some(Span::from_ns(10_000_000)),
        ..SenderConfig::new(variant)
    }
}

/// Makes an acknowledgement whose numbers are packets.
fn ack(ack: u64, blocks: &[(u64, u64)]) -> Segment {
    let mut segment = Segment {
        ack: ack * MSS,
        window_bytes: 1 << 40,
        ..Segment::default()
    };
    for (slot, &(start, end)) in segment.sack.iter_mut().zip(blocks) {
        *slot = SackBlock {
            start: start * MSS,
            end: end * MSS,
        };
        segment.sack_count += 1;
    }
    segment
}

/// Returns the numbers of all packets that the sender may send now.
fn poll(sender: &mut Sender, now: Time) -> Vec<u64> {
    std::iter::from_fn(|| sender.poll_transmit(now))
        .map(|segment| segment.seq / MSS)
        .collect()
}
