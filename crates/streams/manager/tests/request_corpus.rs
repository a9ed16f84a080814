// SPDX-License-Identifier: MIT OR Apache-2.0
//! Replays the corpus of the fuzzer (fuzz/targets/reservations.rs), as it is and with bytes changed.

use crate::any_request;

use manager_proto::{api, message, record};
use proptest::prelude::*;

fn corpus() -> Vec<Vec<u8>> {
    let inputs = testkit::corpus("reservations", 10).into_iter();
    inputs.map(|(_, bytes)| bytes).collect()
}

#[test]
fn the_corpus_of_requests_is_in_order() {
    let corpus = corpus();
    // Each kind of input is there, and can be read.
    let reads = |can: fn(&[u8]) -> bool| corpus.iter().any(|bytes| can(bytes));
    assert!(reads(|b| api::read::<api::ReserveBody>(b).is_ok()));
    assert!(reads(|b| api::read::<api::InForceBody>(b).is_ok()));
    assert!(reads(|b| api::read::<api::RouteBody>(b).is_ok()));
    assert!(reads(|b| api::read::<record::Measured>(b).is_ok()));
    assert!(reads(|b| api::read::<message::Envelope>(b).is_ok()));
    assert!(reads(|b| record::Record::read("reservation/x", b).is_ok()));
    assert!(reads(|b| record::Record::read("part/m2/x", b).is_ok()));
    assert!(reads(|b| record::Record::read("meta", b).is_ok()));
    corpus.iter().for_each(|bytes| any_request::replay(bytes));
}

proptest! {
    #![proptest_config(testkit::properties())]

    /// Bytes in the place of others: numbers that are too large, names that are no names, ends.
    #[test]
    fn requests_with_bytes_changed_are_in_order(
        which in any::<prop::sample::Index>(),
        edits in prop::collection::vec((any::<prop::sample::Index>(), prop::sample::select(
            b"0123456789-eE.\"[]{},:abrstx\\ \xff\0".to_vec())), 1..4),
        end in 0usize..40,
    ) {
        let corpus = corpus();
        let mut bytes = which.get(&corpus).clone();
        for (at, byte) in edits {
            *at.get_mut(&mut bytes) = byte;
        }
        // Most keep their end.
        if end < 3 {
            bytes.truncate(bytes.len() - end);
        }
        any_request::replay(&bytes);
    }
}
