// SPDX-License-Identifier: MIT OR Apache-2.0
//! Properties of the router's schedule that hold in every period, for any packets.

#![allow(clippy::unwrap_used)]

use proptest::collection::vec;
use proptest::prelude::*;
use router::config;
use router::ethernet::{forward, read};
use router::itm::{Itm, WireLength};

/// A packet: its stream, its number in that stream, its length.
#[derive(Clone, Copy, Debug)]
struct Packet {
    stream: Option<usize>,
    number: usize,
    bytes: u64,
}

impl WireLength for Packet {
    fn wire_bytes(&self) -> u64 {
        self.bytes
    }
}

const RESERVE_BYTES: [u64; 3] = [200, 3000, 84];
const BUDGET_BYTES: u64 = 8000;

proptest! {
    #![proptest_config(testkit::properties())]

    #[test]
    fn a_period_keeps_its_budget_and_every_order(
        periods in vec(vec((0usize..4, 84u64..1539), 0..20), 1..30),
    ) {
        let mut itm = Itm::new(BUDGET_BYTES, &RESERVE_BYTES, 64);
        let mut pushed = [0; 4];
        let mut sent = [0; 4];
        for packets in &periods {
            for &(queue, bytes) in packets {
                let stream = (queue < 3).then_some(queue);
                let packet = Packet { stream, number: pushed[queue], bytes };
                if itm.push(stream, packet).is_ok() {
                    pushed[queue] += 1;
                }
            }
            let mut bytes = 0;
            itm.period(|packet| {
                bytes += packet.bytes;
                let queue = packet.stream.unwrap_or(3);
                assert_eq!(packet.number, sent[queue], "in order");
                sent[queue] += 1;
            });
            prop_assert!(bytes <= BUDGET_BYTES, "{bytes}");
        }
        let all: usize = pushed.iter().sum();
        prop_assert_eq!(itm.waiting(), all - sent.iter().sum::<usize>());
    }

    /// A packet within its stream's reservation leaves in the same period, whatever the other
    /// streams send.
    #[test]
    fn a_stream_within_its_reservation_never_waits(
        others in vec(vec((1usize..4, 84u64..1539), 0..40), 1..20),
    ) {
        let mut itm = Itm::new(BUDGET_BYTES, &RESERVE_BYTES, 1024);
        for packets in &others {
            for &(queue, bytes) in packets {
                let stream = (queue < 3).then_some(queue);
                itm.push(stream, Packet { stream, number: 0, bytes }).unwrap();
            }
            itm.push(Some(0), Packet { stream: Some(0), number: 0, bytes: 200 }).unwrap();
            let mut ours = 0;
            itm.period(|packet| ours += usize::from(packet.stream == Some(0)));
            prop_assert_eq!(ours, 1);
        }
    }

    #[test]
    fn any_frame_is_read_or_refused(mut bytes in vec(any::<u8>(), 0..80), ours: bool) {
        let own = match bytes.first_chunk::<6>() {
            Some(mac) if ours => *mac,
            _ => [2; 6],
        };
        let before = bytes.len();
        let _ = read(&bytes, own);
        forward(&mut bytes, [1; 6], [2; 6]);
        prop_assert_eq!(bytes.len(), before);
    }

    #[test]
    fn any_text_is_a_configuration_or_refused(text in "\\PC{0,200}") {
        let _ = config::read(&text);
    }
}
