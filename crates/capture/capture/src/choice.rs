// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which packets of a capture are read: those of a time, and those that a filter chooses.

use std::str::FromStr;

use units::time::NS_PER_S;

use crate::expression::Expression;
use crate::frame::Frame;

/// The packets that are wanted; all of them by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// Packets before this moment are left out.
    pub from: Option<Moment>,
    /// This moment's packets are left out, and all after it.
    pub to: Option<Moment>,
    /// Packets that it does not match are left out.
    pub filter: Option<Expression>,
}

impl Choice {
    /// Returns whether every packet is wanted.
    pub fn is_all(&self) -> bool {
        self.from.is_none() && self.to.is_none() && self.filter.is_none()
    }

    /// Returns whether a packet is wanted. `start_ns` is the time of the capture's first packet.
    pub(crate) fn takes(&self, frame: &Frame<'_>, time_ns: u64, start_ns: u64) -> bool {
        let is_after = |moment: &Moment| time_ns >= moment.ns(start_ns);
        self.from.as_ref().is_none_or(is_after)
            && !self.to.as_ref().is_some_and(is_after)
            && self.filter.as_ref().is_none_or(|f| f.matches(frame))
    }
}

/// A moment of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// So long after the capture's first packet, ns.
    SinceStart(u64),
    /// So long after 1970 began, ns.
    SinceEpoch(u64),
}

impl Moment {
    fn ns(self, start_ns: u64) -> u64 {
        match self {
            Self::SinceStart(ns) => start_ns.saturating_add(ns),
            Self::SinceEpoch(ns) => ns,
        }
    }

    /// Returns whether this moment is not before the other. `None` if only the capture can tell.
    pub fn is_at_or_after(self, other: Self) -> Option<bool> {
        match (self, other) {
            (Self::SinceStart(a), Self::SinceStart(b))
            | (Self::SinceEpoch(a), Self::SinceEpoch(b)) => Some(a >= b),
            _ => None,
        }
    }
}

impl FromStr for Moment {
    type Err = String;

    /// Reads `12.5`, `12.5s`, `300ms`, or a date and time of RFC 3339.
    fn from_str(text: &str) -> Result<Self, String> {
        let is_plain = text.ends_with(|c: char| c.is_ascii_digit());
        let plain = is_plain.then(|| format!("{text}s"));
        if let Some(ns) = units::parse::time_ns(plain.as_deref().unwrap_or(text)) {
            return Ok(Self::SinceStart(ns));
        }
        rfc3339_ns(text).map(Self::SinceEpoch).ok_or_else(|| {
            "expected seconds since the capture's start such as 12.5, or a time such as \
             2026-11-23T02:19:57.5Z (RFC 3339)"
                .to_owned()
        })
    }
}

/// Reads a date and time of RFC 3339, from 1970 to 2554, in ns since 1970. Digits behind the
/// ninth of a fraction are cut off.
fn rfc3339_ns(text: &str) -> Option<u64> {
    let (date, rest) = (text.get(..10)?, text.get(11..)?);
    if !matches!(text.get(10..11)?, "T" | "t" | " ") || !text.is_ascii() {
        return None;
    }
    let zone_at = rest.find(['Z', 'z', '+', '-'])?;
    let (time, zone) = rest.split_at(zone_at);
    let digits = |text: &str, count: usize| {
        let is_number = text.len() == count && text.bytes().all(|b| b.is_ascii_digit());
        is_number.then(|| text.parse::<i64>().ok()).flatten()
    };
    let three = |text: &str, sign: char, counts: [usize; 3]| {
        let mut parts = text.split(sign);
        let mut next = |count| digits(parts.next()?, count);
        let all = [next(counts[0])?, next(counts[1])?, next(counts[2])?];
        parts.next().is_none().then_some(all)
    };
    let [year, month, day] = three(date, '-', [4, 2, 2])?;
    let (time, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let [hour, minute, second] = three(time, ':', [2, 2, 2])?;
    let is_time = hour < 24 && minute < 60 && second < 61;
    let days = days(year, month, day).filter(|_| is_time)?;
    if fraction.is_empty() || !fraction.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let padded = format!("{fraction:0<9}");
    let fraction_ns: u64 = padded.get(..9)?.parse().ok()?;
    let offset_s = match zone.split_at(1) {
        ("Z" | "z", "") => 0,
        (sign, offset) => {
            let (hours, minutes) = offset.split_once(':')?;
            let (hours, minutes) = (digits(hours, 2)?, digits(minutes, 2)?);
            let ahead_s = (hours < 24 && minutes < 60).then_some(hours * 3600 + minutes * 60)?;
            match sign {
                "+" => ahead_s,
                "-" => -ahead_s,
                _ => return None,
            }
        }
    };
    let seconds = days * 86_400 + hour * 3600 + minute * 60 + second - offset_s;
    let seconds = u64::try_from(seconds).ok()?;
    seconds.checked_mul(NS_PER_S)?.checked_add(fraction_ns)
}

/// Returns the days since 1970 of a date of the Gregorian calendar; `None` if there is no such
/// date.
fn days(year: i64, month: i64, day: i64) -> Option<i64> {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let lengths = [
        31,
        28 + i64::from(is_leap),
        31,
        30,
        31,
        30,
        31,
        31,
        30,
        31,
        30,
        31,
    ];
    let month = usize::try_from(month - 1).ok()?;
    let length = *lengths.get(month)?;
    if !(1..=length).contains(&day) {
        return None;
    }
    let before = year - 1;
    let leaps = |year: i64| year / 4 - year / 100 + year / 400;
    let years = (year - 1970) * 365 + leaps(before) - leaps(1969);
    Some(years + lengths[..month].iter().sum::<i64>() + day - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments() {
        let read = |text: &str| text.parse::<Moment>();
        for (text, ns) in [
            ("0", 0),
            ("12.5", 12_500_000_000),
            ("3s", 3_000_000_000),
            ("300ms", 300_000_000),
        ] {
            assert_eq!(read(text), Ok(Moment::SinceStart(ns)), "{text}");
        }
        // Seconds as `date -u +%s -d ...` gives them.
        for (text, s, ns) in [
            ("1970-01-01T00:00:00Z", 0, 0),
            ("2000-02-29T12:00:00Z", 951_825_600, 0),
            ("2026-11-23T02:19:57.5Z", 1_795_400_397, 500_000_000),
            (
                "2026-11-23t04:49:57.123456789123+02:30",
                1_795_400_397,
                123_456_789,
            ),
            ("2026-11-22 21:19:57-05:00", 1_795_400_397, 0),
            ("2100-03-01T00:00:00Z", 4_107_542_400, 0),
        ] {
            let expected = s * NS_PER_S + ns;
            assert_eq!(read(text), Ok(Moment::SinceEpoch(expected)), "{text}");
        }
        for text in [
            "",
            "x",
            "-1",
            "1e3",
            "2026-11-23",
            "2026-11-23T02:19:57",
            "2026-02-29T00:00:00Z",
            "2026-11-23T24:00:00Z",
            "2026-13-01T00:00:00Z",
            "2026-11-23T02:19:57.Z",
            "2026-11-23T02:19:57+2:00",
            "1969-12-31T23:59:59Z",
            "2026-11-23T02:19:57Zx",
            "2026-11-23X02:19:57Z",
            "ÄÖ26-11-23T02:19:57Z",
            "9999-01-01T00:00:00Z",
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
