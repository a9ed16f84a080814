// SPDX-License-Identifier: MIT OR Apache-2.0
//! Quantities of Kubernetes as whole numbers. Pure.

/// Longest text.
const MOST_CHARS: usize = 64;

/// Reads a quantity such as `100M`, `1.5Gi`, `2e6` or `3000m`, exactly. `None`: it is none, below 0,
/// no whole number, or too large.
pub fn whole(text: &str) -> Option<u64> {
    if text.len() > MOST_CHARS {
        return None;
    }
    let text = text.strip_prefix('+').unwrap_or(text);
    let end = text
        .find(|c: char| !(c.is_ascii_digit() || c == '.'))
        .unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let (before, after) = number.split_once('.').unwrap_or((number, ""));
    if after.contains('.') || (before.is_empty() && after.is_empty()) {
        return None;
    }
    // Zeros at the end of a fraction say nothing.
    let after = after.trim_end_matches('0');
    let digits = format!("{before}{after}");
    let mut mantissa: u128 = match digits.trim_start_matches('0') {
        "" => return scale(suffix).map(|_| 0),
        digits => digits.parse().ok()?,
    };
    let (tens, twos) = scale(suffix)?;
    mantissa = mantissa.checked_mul(1u128.checked_shl(twos)?)?;
    let tens = tens - i32::try_from(after.len()).ok()?;
    let power = 10u128.checked_pow(tens.unsigned_abs())?;
    let whole = if tens >= 0 {
        mantissa.checked_mul(power)?
    } else if mantissa % power == 0 {
        mantissa / power
    } else {
        return None;
    };
    u64::try_from(whole).ok()
}

/// Returns a suffix as powers of 10 and of 2.
fn scale(suffix: &str) -> Option<(i32, u32)> {
    Some(match suffix {
        "n" => (-9, 0),
        "u" => (-6, 0),
        "m" => (-3, 0),
        "" => (0, 0),
        "k" => (3, 0),
        "M" => (6, 0),
        "G" => (9, 0),
        "T" => (12, 0),
        "P" => (15, 0),
        "E" => (18, 0),
        "Ki" => (0, 10),
        "Mi" => (0, 20),
        "Gi" => (0, 30),
        "Ti" => (0, 40),
        "Pi" => (0, 50),
        "Ei" => (0, 60),
        _ => {
            let exponent = suffix.strip_prefix(['e', 'E'])?;
            let known = exponent.parse().ok()?;
            ((-30..=30).contains(&known).then_some(known)?, 0)
        }
    })
}
