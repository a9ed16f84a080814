// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every byte arrives once and in order, whatever the path loses.

use netsim::tcp::{Congestion, ReceiverConfig, SenderConfig, variant};
use proptest::prelude::*;
use units::clock::Span;

use crate::tcp_pipe::{Path, run};

fn congestion() -> impl Strategy<Value = Congestion> {
    prop_oneof![
        Just(Congestion::Reno),
        Just(Congestion::Bic),
        Just(Congestion::Cubic)
    ]
}

proptest! {
    #![proptest_config(testkit::cases(200))]

    #[test]
    fn every_byte_arrives(
        which in 0..variant::ALL.len(),
        congestion in congestion(),
        sack: bool,
        timestamps: bool,
        dsack: bool,
        bytes in 0u64..600_000,
        loss_ppm in 0u64..150_000,
        ack_loss_ppm in 0u64..150_000,
        reorder_ppm in 0u64..50_000,
        queue_segments in prop_oneof![Just(10_000usize), 1..40usize],
        buffer_bytes in 1_000u64..200_000,
        seed: u64,
    ) {
        let path = Path { loss_ppm, ack_loss_ppm, reorder_ppm, queue_segments, seed, ..Path::default() };
        let sender = SenderConfig { congestion, sack, timestamps, ..SenderConfig::new(variant::ALL[which]) };
        let receiver = ReceiverConfig { sack, timestamps, dsack, buffer_bytes, ..ReceiverConfig::default() };
        let outcome = run(&path, &sender, &receiver, bytes, &mut ());
        prop_assert!(outcome.finished, "not after {}: {:?}", outcome.time, outcome.sender.vars());
        prop_assert_eq!(outcome.receiver.delivered_bytes(), bytes);
        prop_assert_eq!(outcome.sender.acked_bytes(), bytes);
        prop_assert!(outcome.receiver.is_finished());
        prop_assert_eq!(outcome.sender.counters().local_drops, outcome.local_drops);
    }
}

/// Without loss the sender sends nothing twice and stays in Open.
#[test]
fn a_clean_path_needs_no_repair() {
    for variant in variant::ALL {
        for sack in [true, false] {
            let sender = SenderConfig {
                sack,
                ..SenderConfig::new(variant)
            };
            let outcome = run(
                &Path::default(),
                &sender,
                &ReceiverConfig::default(),
                50_000_000,
                &mut (),
            );
            let counters = outcome.sender.counters();
            assert!(outcome.finished);
            assert_eq!(counters.retransmits, 0, "{}", variant.name);
            assert_eq!(counters.timeouts, 0, "{}", variant.name);
            assert_eq!(outcome.receiver.duplicate_bytes(), 0);
            // 50 MB at 1 Gbit/s take 0.43 s with headers; slow start and BIC's avoidance with
            // delayed acknowledgements take the rest.
            assert!(
                outcome.time < Span::from_ns(900_000_000),
                "{}: {}",
                variant.name,
                outcome.time
            );
        }
    }
}
