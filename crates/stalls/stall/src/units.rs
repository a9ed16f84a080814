// SPDX-License-Identifier: MIT OR Apache-2.0
//! Serialises times: integers in nanoseconds inside the program, seconds in JSON.

use serde::Serializer;
use units::time::NS_PER_S;

/// Serialises nanoseconds as seconds. A float's 53 bits hold nanoseconds for a hundred days.
pub(crate) fn seconds<S: Serializer>(ns: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(*ns as f64 / NS_PER_S as f64)
}

/// Serialises nanoseconds that may be missing as seconds.
#[allow(clippy::ref_option)] // serde's signature
pub(crate) fn some_seconds<S: Serializer>(
    ns: &Option<u64>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match ns {
        Some(ns) => seconds(ns, serializer),
        None => serializer.serialize_none(),
    }
}

/// Serialises a value as text.
pub(crate) fn text<T: std::fmt::Display, S: Serializer>(
    value: &T,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}
