// SPDX-License-Identifier: MIT OR Apache-2.0
//! A cell's parameters as text.

use std::collections::BTreeMap;

/// Writes parameters as in `rate = 10mbit, shaper = psp`.
pub fn words(params: &BTreeMap<String, String>) -> String {
    params
        .iter()
        .map(|(k, v)| format!("{k} = {v}"))
        .collect::<Vec<_>>()
        .join(", ")
}
