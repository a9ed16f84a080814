// SPDX-License-Identifier: MIT OR Apache-2.0
//! Formats numbers for people: thousands separated, one unit per column, a real minus sign.
//! The text is the same on every machine.

/// Text for a value that is absent.
pub const NONE: &str = "–";

/// Formats `1234567.891` with two decimals as `1,234,567.89`.
pub fn number(value: f64, decimals: usize) -> String {
    if !value.is_finite() {
        return NONE.to_owned();
    }
    let plain = format!("{:.decimals$}", value.abs());
    let (whole, fraction) = plain.split_once('.').unwrap_or((&plain, ""));
    let zero = plain.bytes().all(|b| b == b'0' || b == b'.');
    let mut out = String::new();
    if value < 0.0 && !zero {
        out.push('−');
    }
    for (i, digit) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    if !fraction.is_empty() {
        out.push('.');
        out.push_str(fraction);
    }
    out
}

/// Formats a count: `24,000`.
pub fn count(value: u64) -> String {
    number(value as f64, 0)
}

/// Formats a number with at most `decimals`, without zeros at their end: `1.5`, `20`.
pub fn short(value: f64, decimals: usize) -> String {
    let text = number(value, decimals);
    match text.split_once('.') {
        Some((whole, fraction)) => {
            let fraction = fraction.trim_end_matches('0');
            if fraction.is_empty() {
                whole.to_owned()
            } else {
                format!("{whole}.{fraction}")
            }
        }
        None => text,
    }
}

/// Formats as [`number`]; an absent value as [`NONE`].
pub fn maybe(value: Option<f64>, decimals: usize) -> String {
    value.map_or_else(|| NONE.to_owned(), |v| number(v, decimals))
}

/// Formats a percentage with its sign: `+0.012`; `0.000` has none.
pub fn signed(value: Option<f64>, decimals: usize) -> String {
    let text = maybe(value, decimals);
    let positive = text.bytes().any(|b| b.is_ascii_digit() && b != b'0');
    if positive && value.is_some_and(|v| v > 0.0) {
        format!("+{text}")
    } else {
        text
    }
}

/// A unit, and its size in base units.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Unit {
    /// Name as printed.
    pub name: &'static str,
    /// Size in base units.
    pub size: f64,
}

const RATES: [Unit; 4] = [
    Unit {
        name: "bit/s",
        size: 1.0,
    },
    Unit {
        name: "kbit/s",
        size: 1e3,
    },
    Unit {
        name: "Mbit/s",
        size: 1e6,
    },
    Unit {
        name: "Gbit/s",
        size: 1e9,
    },
];
const TIMES: [Unit; 4] = [
    Unit {
        name: "ns",
        size: 1e-9,
    },
    Unit {
        name: "µs",
        size: 1e-6,
    },
    Unit {
        name: "ms",
        size: 1e-3,
    },
    Unit {
        name: "s",
        size: 1.0,
    },
];

/// Returns the unit in which rates up to `largest_bps` read well: 1 Gbit/s is still given as
/// 1,000 Mbit/s.
pub fn rate_unit(largest_bps: f64) -> Unit {
    best(&RATES, largest_bps, 2.0)
}

/// Returns the unit in which times up to `largest_s` read well.
pub fn time_unit(largest_s: f64) -> Unit {
    best(&TIMES, largest_s, 1.0)
}

fn best(units: &[Unit; 4], largest: f64, least: f64) -> Unit {
    let fits = units
        .iter()
        .rev()
        .find(|u| largest.abs() >= u.size * least * (1.0 - 1e-9));
    *fits.unwrap_or(&units[0])
}

/// Formats a time with its unit: `5 ms`.
pub fn time(seconds: f64) -> String {
    let unit = time_unit(seconds);
    format!("{} {}", short(seconds / unit.size, 3), unit.name)
}

/// Formats a rate with its unit: `500 Mbit/s`.
pub fn rate(bps: f64) -> String {
    let unit = rate_unit(bps);
    format!("{} {}", short(bps / unit.size, 3), unit.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        assert_eq!(number(1_234_567.891, 2), "1,234,567.89");
        assert_eq!(number(-999.5, 1), "−999.5");
        assert_eq!(number(-0.0004, 3), "0.000");
        assert_eq!(number(1000.0, 0), "1,000");
        assert_eq!(number(f64::NAN, 0), NONE);
        assert_eq!(short(1.5, 3), "1.5");
        assert_eq!(short(100.0, 2), "100");
        assert_eq!(short(0.0001, 2), "0");
        assert_eq!(signed(Some(0.0123), 3), "+0.012");
        assert_eq!(signed(Some(-0.0123), 3), "−0.012");
        assert_eq!(signed(Some(0.0001), 3), "0.000");
        assert_eq!(signed(None, 3), NONE);
    }

    #[test]
    fn units() {
        assert_eq!(rate(500e6), "500 Mbit/s");
        assert_eq!(rate(1e9), "1,000 Mbit/s");
        assert_eq!(rate(1e10), "10 Gbit/s");
        assert_eq!(rate(8000.0), "8 kbit/s");
        assert_eq!(rate(0.0), "0 bit/s");
        assert_eq!(time(0.005), "5 ms");
        assert_eq!(time(60e-6), "60 µs");
        assert_eq!(time(20.0), "20 s");
    }
}
