// SPDX-License-Identifier: MIT OR Apache-2.0
//! Replays the corpus of the fuzzer (fuzz/targets/rtp.rs), and random streams.

use crate::any_stream;

use proptest::prelude::*;

#[test]
fn the_corpus_of_streams_is_in_order() {
    for (name, bytes) in testkit::corpus("rtp", 3) {
        println!("{name}");
        any_stream::replay(&bytes);
    }
}

proptest! {
    #![proptest_config(testkit::properties())]

    /// Numbers and timestamps that mostly go on, as those of a stream do.
    #[test]
    fn any_stream_is_measured_without_panic(
        head in any::<[u8; 4]>(),
        packets in prop::collection::vec((any::<[u8; 16]>(), 0u8..20, 0u8..40), 8..60),
    ) {
        let mut bytes = head.to_vec();
        let (mut number, mut ticks) = (0u8, 0u8);
        for (mut packet, step, marker) in packets {
            number = number.wrapping_add(if step < 17 { 1 } else { step });
            ticks = ticks.wrapping_add(u8::from(step % 4 == 0));
            packet[4] = 96 | (u8::from(marker == 0) << 7);
            (packet[5], packet[7]) = (number, ticks);
            bytes.extend(packet);
        }
        any_stream::replay(&bytes);
    }
}
