// SPDX-License-Identifier: MIT OR Apache-2.0
//! The least, the mean and the largest of some values.

use serde::Serialize;

/// Least, mean and largest of some values.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Range<T> {
    pub min: T,
    pub mean: f64,
    pub max: T,
}

/// Returns the range of values; `None` if there are none.
pub fn range(values: impl Iterator<Item = f64>) -> Option<Range<f64>> {
    let mut found: Option<(f64, f64, f64, u64)> = None;
    for value in values {
        let (min, sum, max, count) = found.unwrap_or((value, 0.0, value, 0));
        found = Some((min.min(value), sum + value, max.max(value), count + 1));
    }
    found.map(|(min, sum, max, count)| Range {
        min,
        mean: sum / count as f64,
        max,
    })
}
