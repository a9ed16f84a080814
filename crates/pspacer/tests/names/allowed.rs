// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names that the list of refused ones does not mean.

/// Names of the papers, the field or users: folder, names, reason.
pub const EXEMPT: &[(&str, &[&str], &str)] = &[
    (
        "crates/lab/netsim/",
        &["Station", "station", "to_station"],
        "IEEE 802.3: a station is a host at a shared medium, not its address",
    ),
    (
        "crates/streams/ping/",
        &["kernel_stamped"],
        "a key of ping's JSON, which users read",
    ),
    (
        "crates/lab/vmlab/src/packages.rs",
        &["stamp", "stamped"],
        "a stamp file marks a step of a build as done; it has no time",
    ),
];
