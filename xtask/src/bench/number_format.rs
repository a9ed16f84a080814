// SPDX-License-Identifier: MIT OR Apache-2.0
//! Formats numbers for the page.

use crate::bench::model::Spread;

/// Formats three digits, or all digits before the point: `2.31`, `24.0`, `1,234`.
pub(crate) fn short(value: f64) -> String {
    match value {
        v if !v.is_finite() => "–".to_owned(),
        v if v < 9.995 => format!("{v:.2}"),
        v if v < 99.95 => format!("{v:.1}"),
        v => units::display::count(v.round() as u64),
    }
}

/// Formats median and quartiles: `24.0 (23.1–25.2)`.
pub(crate) fn spread(spread: Option<Spread>) -> String {
    spread.map_or_else(
        || "–".to_owned(),
        |s| format!("{} ({}–{})", short(s.median), short(s.low), short(s.high)),
    )
}

/// Returns a Markdown table; the first row is its head, the first column is text.
pub(crate) fn table(rows: &[Vec<String>]) -> String {
    let mut out = String::new();
    for (number, row) in rows.iter().enumerate() {
        out.push_str(&format!("| {} |\n", row.join(" | ")));
        if number == 0 {
            let rules: Vec<_> = (0..row.len())
                .map(|column| if column == 0 { "---" } else { "---:" })
                .collect();
            out.push_str(&format!("| {} |\n", rules.join(" | ")));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits() {
        let cases = [
            (0.8, "0.80"),
            (9.996, "10.0"),
            (24.04, "24.0"),
            (99.96, "100"),
            (1234.5, "1,235"),
            (f64::INFINITY, "–"),
        ];
        for (value, text) in cases {
            assert_eq!(short(value), text);
        }
    }

    #[test]
    fn tables_have_a_head() {
        let rows = [vec!["a".to_owned(), "b".to_owned()]];
        assert_eq!(table(&rows), "| a | b |\n| --- | ---: |\n");
    }
}
