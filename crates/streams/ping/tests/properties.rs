// SPDX-License-Identifier: MIT OR Apache-2.0
//! The packets of ping survive any bytes from the network.

#![allow(clippy::unwrap_used)]

use ping::packet::{Header, Kind, LEAST_BYTES};
use ping::reflector::{Reflector, timestamp};
use ping::statistics::{Sent, Statistics};
use proptest::collection::vec;
use proptest::prelude::*;

fn header() -> impl Strategy<Value = Header> {
    (any::<bool>(), any::<[u64; 5]>()).prop_map(|(answer, [a, b, c, d, e])| Header {
        kind: if answer { Kind::Answer } else { Kind::Probe },
        session: a,
        sequence: b,
        sent_ns: c,
        received_ns: d,
        reflected_ns: e,
    })
}

proptest! {
    #![proptest_config(testkit::properties())]

    #[test]
    fn headers_survive(header in header(), more in 0usize..100) {
        let mut bytes = vec![0; LEAST_BYTES + more];
        header.write(&mut bytes).unwrap();
        prop_assert_eq!(Header::read(&bytes), Ok(header));
    }

    #[test]
    fn any_bytes_are_read_or_refused(mut bytes in vec(any::<u8>(), 0..120)) {
        let before = bytes.len();
        let _ = Header::read(&bytes);
        let answered = Reflector::new(1000).answer(&mut bytes, 1, 1);
        timestamp(&mut bytes, 2);
        prop_assert!(!answered || Header::read(&bytes).unwrap().kind == Kind::Answer);
        prop_assert_eq!(bytes.len(), before);
    }

    #[test]
    fn every_answer_is_counted_once(
        probes in 0u64..50,
        answers in vec((0u64..60, any::<u64>(), any::<bool>()), 0..100),
    ) {
        let mut run = Statistics::new(1, true);
        for sequence in 0..probes {
            run.sent(Sent {
                sequence,
                late_ns: 0,
                sent_ns: sequence,
            });
            if sequence % 5 == 0 {
                run.unsent(sequence);
            }
        }
        for &(sequence, at, ours) in &answers {
            let header = Header {
                kind: Kind::Answer,
                session: u64::from(ours),
                sequence,
                sent_ns: 0,
                received_ns: at / 2,
                reflected_ns: at / 2,
            };
            run.sent_timestamp(sequence, sequence);
            run.answer(&header, at, ours);
        }
        let results = run.results();
        let c = results.counts;
        prop_assert_eq!(c.received + c.duplicates + c.strangers, answers.len() as u64);
        prop_assert_eq!(c.received + c.lost, c.sent);
        prop_assert_eq!(c.sent + c.unsent, probes);
        prop_assert_eq!(results.round_trip.map_or(0, |s| s.count), c.received);
        prop_assert!(c.reordered <= c.received);
    }
}
