// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names of hosts, reservations and callers, and ids of streams.

use admission::{NAME, Topology, is_name, plan};

use crate::nets::{frames, nodes, row};

/// Names stand in command lines and paths, so none is an option or a folder above.
#[test]
fn a_name_begins_with_a_letter_digit_or_underline() {
    let longest = "x".repeat(64);
    for good in ["a", "0", "_", "a-", "r1.lab", "9f-_.", &longest] {
        assert!(is_name(good), "{good}");
    }
    let longer = "x".repeat(65);
    let bad = [
        "", ".", "..", "-", "--help", "-x", ".ssh", "a b", "a/b", "a:b", "ä", &longer,
    ];
    for bad in bad {
        assert!(!is_name(bad), "{bad}");
        let fault = Topology::new(&nodes(&[bad]), &[]).unwrap_err();
        assert_eq!(fault.expected, NAME, "{bad}");
    }
}

#[test]
fn an_id_of_a_stream_has_colons_and_begins_as_a_name() {
    let topology = row(0);
    for good in ["x", "00-00-00-00-00-01:00-01", "a::"] {
        assert!(plan(&topology, &frames(good, "a", &["b"], 1, 100)).is_ok());
    }
    for bad in ["", ".", "..", "-x", ":x", "a/b", "a b"] {
        let refused = plan(&topology, &frames(bad, "a", &["b"], 1, 100)).unwrap_err();
        let said = refused.to_string();
        assert!(said.contains("`stream-id` is "), "{said}");
        assert!(said.contains(NAME) && said.contains("\":\""), "{said}");
    }
}
