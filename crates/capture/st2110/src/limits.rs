// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a sender of each type may reach (SMPTE ST 2110-21, 7.1; EBU LIST `d21/settings.cpp`).

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

use crate::format::{Raster, Schedule};
use crate::rate::Rate;

/// Most packets of a picture that are measured: an 8K frame has some 60,000.
pub const MOST_PACKETS: u32 = 1 << 18;
/// Largest IP packet that the standard counts with where no larger one is used.
pub const IP_BYTES: u32 = 1500;

/// A type of sender, the strictest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum SenderType {
    /// Narrow: gapped, nearly without bursts.
    #[serde(rename = "N")]
    Narrow,
    /// Narrow linear: linear, nearly without bursts.
    #[serde(rename = "NL")]
    NarrowLinear,
    /// Wide: bursts of a few hundred packets.
    #[serde(rename = "W")]
    Wide,
}

impl SenderType {
    /// Returns the type's name in words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Narrow => "narrow",
            Self::NarrowLinear => "narrow linear",
            Self::Wide => "wide",
        }
    }

    /// Returns whether a sender of this type is one of type `wanted`, too: both narrow types are
    /// wide as well.
    pub fn meets(self, wanted: Self) -> bool {
        self == wanted || wanted == Self::Wide
    }
}

impl fmt::Display for SenderType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Narrow => "N",
            Self::NarrowLinear => "NL",
            Self::Wide => "W",
        })
    }
}

impl FromStr for SenderType {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        [Self::Narrow, Self::NarrowLinear, Self::Wide]
            .into_iter()
            .find(|one| one.to_string() == text)
            .ok_or_else(|| "expected N, NL or W".to_owned())
    }
}

/// What a sender may reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Limits {
    /// Most packets in the bucket of the network compatibility model.
    pub cmax: u64,
    /// Most packets in the virtual receiver buffer.
    pub vrx_full: u64,
}

/// Returns the limits of a type of sender that sends `packets` in each picture.
///
/// With T the time of a picture, N its packets, R the active share, M the largest IP packet, and
/// INT rounding down:
///
/// | type | CMAX | VRX_FULL |
/// |---|---|---|
/// | N | max(4, INT(N / (43200 R T))) | max(INT(12000 / M), INT(N / (27000 T))) |
/// | NL | the same, R = 1 | the same |
/// | W | max(16, INT(N / (21600 T))) | max(INT(1080000 / M), INT(N / (300 T))) |
pub fn limits(
    of: SenderType,
    rate: Rate,
    packets: u32,
    raster: Raster,
    largest_ip_bytes: u32,
) -> Limits {
    let active = match of {
        SenderType::Narrow => raster.active(Schedule::Gapped),
        SenderType::NarrowLinear | SenderType::Wide => (1, 1),
    };
    // N / T is packets a second: packets * num / den.
    let per_second = |over: u64, (num, den): (u32, u32)| {
        let top = u128::from(packets) * u128::from(rate.num()) * u128::from(den);
        let bottom = u128::from(over) * u128::from(rate.den()) * u128::from(num);
        u64::try_from(top / bottom.max(1)).unwrap_or(u64::MAX)
    };
    let by_size = |bytes: u64| bytes / u64::from(largest_ip_bytes.max(1));
    match of {
        SenderType::Narrow | SenderType::NarrowLinear => Limits {
            cmax: per_second(43_200, active).max(4),
            vrx_full: per_second(27_000, (1, 1)).max(by_size(1500 * 8)),
        },
        SenderType::Wide => Limits {
            cmax: per_second(21_600, active).max(16),
            vrx_full: per_second(300, (1, 1)).max(by_size(1500 * 720)),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Scan;

    /// By hand, for 1080p60 in 4320 packets: N / T = 259,200. N: 259200 / (43200 × 0.96) = 6.25,
    /// 259200 / 27000 = 9.6; NL: 6; W: 259200 / 21600 = 12 < 16, 259200 / 300 = 864 > 720.
    #[test]
    fn of_1080p60() {
        let raster = Raster {
            height: 1080,
            scan: Scan::Progressive,
        };
        let rate = Rate::new(60, 1).unwrap();
        let of = |kind| limits(kind, rate, 4320, raster, IP_BYTES);
        let found = [
            SenderType::Narrow,
            SenderType::NarrowLinear,
            SenderType::Wide,
        ]
        .map(of);
        let expected = [(6, 9), (6, 9), (16, 864)];
        for (limits, (cmax, vrx_full)) in found.iter().zip(expected) {
            assert_eq!((limits.cmax, limits.vrx_full), (cmax, vrx_full));
        }
    }

    /// By hand, for 1080i29.97: 59.94 fields in 2160 packets, N / T = 129,470.5. N: 3.12 < 4,
    /// 4.79 < 8; W: 5.99 < 16, 431.6 < 720.
    #[test]
    fn of_1080i() {
        let raster = Raster {
            height: 1080,
            scan: Scan::Interlaced,
        };
        let rate = Rate::new(60_000, 1001).unwrap();
        let of = |kind| limits(kind, rate, 2160, raster, IP_BYTES);
        assert_eq!(
            (of(SenderType::Narrow).cmax, of(SenderType::Narrow).vrx_full),
            (4, 8)
        );
        assert_eq!(
            (of(SenderType::Wide).cmax, of(SenderType::Wide).vrx_full),
            (16, 720)
        );
        // Jumbo frames: fewer of them fit the same bytes.
        let jumbo = limits(SenderType::Wide, rate, 300, raster, 9000);
        assert_eq!((jumbo.cmax, jumbo.vrx_full), (16, 120));
    }

    #[test]
    fn types_by_name() {
        for name in ["N", "NL", "W"] {
            assert_eq!(name.parse::<SenderType>().unwrap().to_string(), name);
        }
        assert!("narrow".parse::<SenderType>().is_err());
        assert!(SenderType::Narrow.meets(SenderType::Wide));
        assert!(!SenderType::Narrow.meets(SenderType::NarrowLinear));
        assert!(!SenderType::Wide.meets(SenderType::Narrow));
    }
}
