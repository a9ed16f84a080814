// SPDX-License-Identifier: MIT OR Apache-2.0
//! Faults that last are said once, whatever their numbers do meanwhile.

use std::collections::BTreeMap;

use agent::faults::{FaultChanges, Faults};

#[test]
fn a_fault_is_said_when_it_begins_and_when_it_ends() {
    let mut faults = Faults::default();
    // Each round: faults by what they are about, what is said, and what has ended.
    type Round<'a> = (&'a [(&'a str, &'a str)], &'a [&'a str], &'a [&'a str]);
    let rounds: &[Round<'_>] = &[
        (&[], &[], &[]),
        (&[("p", "3 packets wait")], &["3 packets wait"], &[]),
        (&[("p", "3 packets wait")], &[], &[]),
        // A number that changes is no new fault.
        (&[("p", "12 packets wait")], &[], &[]),
        (&[("p", "no device")], &["no device"], &[]),
        // A port that goes from one to the other and back has said both.
        (&[("p", "9 packets wait")], &[], &[]),
        (&[("p", "no device")], &[], &[]),
        (
            &[("p", "no device"), ("q", "no device")],
            &["no device"],
            &[],
        ),
        (&[("q", "no device")], &[], &["no device"]),
        (&[], &[], &["no device"]),
        // It begins anew.
        (&[("p", "1 packets wait")], &["1 packets wait"], &[]),
    ];
    for (n, (now, begun, ended)) in rounds.iter().enumerate() {
        let now: BTreeMap<_, _> = now
            .iter()
            .map(|(about, of)| ((*about).to_owned(), (*of).to_owned()))
            .collect();
        let owned = |of: &[&str]| of.iter().map(|of| (*of).to_owned()).collect();
        let expected = FaultChanges {
            begun: owned(begun),
            ended: owned(ended),
        };
        assert_eq!(faults.update(&now), expected, "round {n}");
    }
}
