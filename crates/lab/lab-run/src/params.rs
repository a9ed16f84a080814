// SPDX-License-Identifier: MIT OR Apache-2.0
//! Formats a cell's parameters as text.

use std::collections::BTreeMap;

/// Returns parameters as text, for example `rate = 10mbit, shaper = psp`.
pub fn words(params: &BTreeMap<String, String>) -> String {
    params
        .iter()
        .map(|(k, v)| format!("{k} = {v}"))
        .collect::<Vec<_>>()
        .join(", ")
}
