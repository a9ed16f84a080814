// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names that the list of refused ones does not mean, and names that are still to be replaced.

/// Names of the papers, the field or users: folder, names, reason.
pub const EXEMPT: &[(&str, &[&str], &str)] = &[
    (
        "crates/netsim/",
        &["Station", "station", "to_station"],
        "IEEE 802.3: a station is a host at a shared medium, not its address",
    ),
    (
        "crates/ping/",
        &["kernel_stamped"],
        "a key of ping's JSON, which users read",
    ),
    (
        "crates/vmlab/src/packages.rs",
        &["stamp", "stamped"],
        "a stamp file marks a step of a build as done; it has no time",
    ),
];

/// Refused names by file, to be emptied. Nothing may be added.
pub const TO_BE_MENDED: &[(&str, &[&str])] = &[
    ("crates/stall/src/flow/data.rs", &["first_turn"]),
    ("crates/stall/src/flow/mod.rs", &["first_turn", "ways"]),
    ("crates/stall/src/rules/idle.rs", &["turn"]),
    ("crates/stall/src/rules/setup.rs", &["first_turn"]),
    ("crates/stall/src/rules/timeouts.rs", &["told_of_loss"]),
    ("crates/stall/tests/by_chance/stalls.rs", &["way"]),
    ("crates/stall/tests/by_chance/wire.rs", &["stamp", "way"]),
    (
        "crates/stall/tests/causes.rs",
        &["a_probe_told_of_the_open_window"],
    ),
    (
        "crates/stall/tests/connections.rs",
        &[
            "a_syn_sent_again_is_the_same_connection",
            "marks_of_congestion_are_told",
            "where_it_was_captured_is_told_by_delays",
        ],
    ),
    ("crates/stall/tests/limits.rs", &["spare"]),
    (
        "crates/stall/tests/proof.rs",
        &["intervals_are_told_as_they_were", "stamped"],
    ),
    ("crates/stall/tests/properties.rs", &["stamps"]),
];
