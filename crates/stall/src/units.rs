// SPDX-License-Identifier: MIT OR Apache-2.0
//! Times are integers in nanoseconds inside, and seconds in JSON.

use serde::Serializer;
use units::time::NS_PER_S;

/// As seconds. 53 bits hold nanoseconds for a hundred days.
pub(crate) fn seconds<S: Serializer>(ns: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(*ns as f64 / NS_PER_S as f64)
}

/// The same of what may be missing.
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

/// As text.
pub(crate) fn text<T: std::fmt::Display, S: Serializer>(
    value: &T,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}
