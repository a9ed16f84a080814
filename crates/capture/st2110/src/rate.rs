// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rates of frames and fields as exact fractions.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};
use units::time::PS_PER_S;

/// Largest numerator: 240 pictures a second over 1001. With the largest denominator, and
/// [`crate::limits::MOST_PACKETS`], times of all dates until 2262 fit 128 bits when scaled.
const MOST_NUM: u32 = 240_000;
const MOST_DEN: u32 = 1001;

/// Pictures a second, as a fraction in lowest terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rate {
    num: u32,
    den: u32,
}

/// Makes one of [`KNOWN`], in lowest terms.
const fn known(num: u32, den: u32) -> Rate {
    Rate { num, den }
}

/// The rates that are recognised, in order.
pub const KNOWN: [Rate; 21] = [
    known(5, 1),
    known(6, 1),
    known(10, 1),
    known(12, 1),
    known(25, 2),
    known(15000, 1001),
    known(15, 1),
    known(20, 1),
    known(24000, 1001),
    known(24, 1),
    known(25, 1),
    known(30000, 1001),
    known(30, 1),
    known(48000, 1001),
    known(48, 1),
    known(50, 1),
    known(60000, 1001),
    known(60, 1),
    known(100, 1),
    known(120000, 1001),
    known(120, 1),
];

impl Rate {
    /// Makes a rate; `None` if it is 0, above 240 000 / 1, or its denominator is above 1001.
    pub fn new(num: u32, den: u32) -> Option<Self> {
        if num == 0 || den == 0 {
            return None;
        }
        let common = gcd(num, den);
        let (num, den) = (num / common, den / common);
        (num <= MOST_NUM && den <= MOST_DEN).then_some(Self { num, den })
    }

    pub fn num(self) -> u32 {
        self.num
    }

    pub fn den(self) -> u32 {
        self.den
    }

    /// Returns twice the rate: that of the fields of an interlaced format.
    pub fn twice(self) -> Option<Self> {
        Self::new(self.num.checked_mul(2)?, self.den)
    }

    /// Returns half the rate: that of the frames whose fields have this rate.
    pub fn half(self) -> Option<Self> {
        Self::new(self.num, self.den.checked_mul(2)?)
    }

    /// Returns pictures a second.
    pub fn as_f64(self) -> f64 {
        f64::from(self.num) / f64::from(self.den)
    }

    /// Returns the time from one picture to the next, rounded down.
    pub fn period_ps(self) -> i128 {
        i128::from(PS_PER_S) * i128::from(self.den) / i128::from(self.num)
    }
}

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}

impl fmt::Display for Rate {
    /// Writes `60`, `59.94`, `23.976`, or a fraction.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.num, self.den) {
            (num, 1) => write!(f, "{num}"),
            (24_000, 1001) => f.write_str("23.976"),
            (25, 2) => f.write_str("12.5"),
            (num, 1001) if num % 1000 == 0 => {
                // Two decimals, as the trade writes them: 59.94 is 60/1.001.
                let hundredths = (u64::from(num) * 100 + 500) / 1001;
                write!(f, "{}.{:02}", hundredths / 100, hundredths % 100)
            }
            (num, den) => write!(f, "{num}/{den}"),
        }
    }
}

impl FromStr for Rate {
    type Err = String;

    /// Parses `60`, `60000/1001`, or the trade's `59.94`, which is 60000/1001.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "expected pictures a second, such as 50, 59.94 or 60000/1001".to_owned();
        if let Some(known) = KNOWN.iter().find(|rate| rate.to_string() == text) {
            return Ok(*known);
        }
        let (num, den) = match text.split_once('/') {
            Some((num, den)) => (num, den),
            None if text == "23.98" => ("24000", "1001"),
            None => (text, "1"),
        };
        let number = |text: &str| text.parse().map_err(|_| wrong());
        Self::new(number(num)?, number(den)?).ok_or_else(wrong)
    }
}

impl Serialize for Rate {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&format!("{}/{}", self.num, self.den))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_as_the_trade_writes_them() {
        for (text, num, den, shown) in [
            ("60", 60, 1, "60"),
            ("59.94", 60_000, 1001, "59.94"),
            ("29.97", 30_000, 1001, "29.97"),
            ("23.98", 24_000, 1001, "23.976"),
            ("23.976", 24_000, 1001, "23.976"),
            ("119.88", 120_000, 1001, "119.88"),
            ("47.95", 48_000, 1001, "47.95"),
            ("60000/1001", 60_000, 1001, "59.94"),
            ("100/2", 50, 1, "50"),
            ("25/2", 25, 2, "12.5"),
            ("12.5", 25, 2, "12.5"),
        ] {
            let rate: Rate = text.parse().unwrap();
            assert_eq!((rate.num(), rate.den()), (num, den), "{text}");
            assert_eq!(rate.to_string(), shown);
            assert_eq!(shown.parse::<Rate>(), Ok(rate));
        }
        for text in [
            "",
            "0",
            "1/0",
            "59.95",
            "-1",
            "60000/1003",
            "240001",
            "1e3",
            "/",
        ] {
            assert!(text.parse::<Rate>().is_err(), "{text}");
        }
    }

    #[test]
    fn fields_and_frames() {
        let frames: Rate = "29.97".parse().unwrap();
        let fields = frames.twice().unwrap();
        assert_eq!(fields.to_string(), "59.94");
        assert_eq!(fields.half(), Some(frames));
        assert_eq!(fields.period_ps(), 16_683_333_333);
    }
}
