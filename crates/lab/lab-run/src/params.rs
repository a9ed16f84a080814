// SPDX-License-Identifier: MIT OR Apache-2.0
//! Formats a cell's parameters as text.

use std::collections::BTreeMap;

/// Returns parameters as text, by name, for example `rate = 10mbit, shaper = psp`.
pub fn words<'a>(params: impl IntoIterator<Item = (&'a String, &'a String)>) -> String {
    let sorted: BTreeMap<_, _> = params.into_iter().collect();
    sorted
        .iter()
        .map(|(k, v)| format!("{k} = {v}"))
        .collect::<Vec<_>>()
        .join(", ")
}
