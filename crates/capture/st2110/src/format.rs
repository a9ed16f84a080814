// SPDX-License-Identifier: MIT OR Apache-2.0
//! Formats of video, and the constants of SMPTE ST 2110-21 that depend on them.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

use crate::rate::Rate;

/// A read schedule: when the virtual receiver takes packets out of its buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Schedule {
    /// No packets in the time of the vertical blanking (ST 2110-21, 6.3).
    Gapped,
    /// Packets evenly over the whole period (ST 2110-21, 6.4).
    Linear,
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gapped => "gapped",
            Self::Linear => "linear",
        })
    }
}

/// How the lines of a frame are scanned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Scan {
    /// A frame at a time.
    Progressive,
    /// A field at a time, or a segment of a frame (PsF).
    Interlaced,
}

/// The raster as far as ST 2110-21 depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Raster {
    /// Lines of a frame.
    pub height: u32,
    /// How they are scanned.
    pub scan: Scan,
}

/// A fraction of the time of a picture or a frame: numerator and denominator.
pub type Share = (u32, u32);

/// A common multiple of the denominators of all shares: the lines of each raster, with blanking.
pub const LINES_MULTIPLE: u32 = 78_750;

impl Raster {
    /// Returns the share of a picture's time in which packets are read, R_ACTIVE (ST 2110-21, 6.3.2
    /// and 6.3.3; EBU LIST `get_ractive`).
    pub fn active(self, schedule: Schedule) -> Share {
        match (schedule, self.scan, self.height) {
            (Schedule::Linear, ..) => (1, 1),
            (Schedule::Gapped, Scan::Interlaced, ..=575) => (487, 525),
            (Schedule::Gapped, Scan::Interlaced, 576..=1079) => (576, 625),
            (Schedule::Gapped, ..) => (1080, 1125),
        }
    }

    /// Returns the default of TR_OFFSET, as a share of the time of a frame; that of a field is half
    /// as long (ST 2110-21, 6.3.2, 6.3.3 and 6.4; EBU LIST `get_tro_default_multiplier`).
    pub fn default_offset(self) -> Share {
        match (self.scan, self.height) {
            (Scan::Progressive, ..=1079) => (28, 750),
            (Scan::Progressive, _) => (43, 1125),
            (Scan::Interlaced, ..=575) => (20, 525),
            (Scan::Interlaced, 576..=1079) => (26, 625),
            (Scan::Interlaced, _) => (22, 1125),
        }
    }

    /// Returns the pictures of a frame: two fields if it is interlaced.
    pub fn pictures(self) -> u32 {
        match self.scan {
            Scan::Progressive => 1,
            Scan::Interlaced => 2,
        }
    }
}

/// A format of uncompressed video, 4:2:2, 10 bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// Pixels of a line, even.
    pub width: u32,
    /// Lines of a frame.
    pub height: u32,
    /// How they are scanned.
    pub scan: Scan,
    /// Frames a second.
    pub rate: Rate,
}

/// Most frames a second of an interlaced format; a higher rate is that of its fields.
const MOST_INTERLACED: u32 = 30;
/// Largest width and height: what the 15 bits of RFC 4175's numbers hold.
const MOST_PIXELS: u32 = 32_768;

impl Format {
    pub fn raster(self) -> Raster {
        Raster {
            height: self.height,
            scan: self.scan,
        }
    }

    /// Returns pictures (frames or fields) a second.
    pub fn picture_rate(self) -> Rate {
        match self.scan {
            Scan::Progressive => self.rate,
            // Parsing checks that twice the rate is one.
            Scan::Interlaced => self.rate.twice().unwrap_or(self.rate),
        }
    }

    fn checked(self) -> Option<Self> {
        let is_even = self.width % 2 == 0;
        let in_range = |pixels: u32| (2..=MOST_PIXELS).contains(&pixels);
        let has_fields =
            self.scan == Scan::Progressive || (self.height % 2 == 0 && !is_of_fields(self.rate));
        (is_even && in_range(self.width) && in_range(self.height) && has_fields).then_some(self)
    }
}

/// Returns whether the rate of an interlaced format is that of its fields.
fn is_of_fields(rate: Rate) -> bool {
    rate.num() > MOST_INTERLACED * rate.den()
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scan = match self.scan {
            Scan::Progressive => "p",
            Scan::Interlaced => "i",
        };
        write!(f, "{}x{}{scan}{}", self.width, self.height, self.rate)
    }
}

impl FromStr for Format {
    type Err = String;

    /// Parses `1080p60`, `1080i29.97`, `720p50`, `2160p59.94`, or `WxH@RATE` and `WxHiRATE`. The
    /// rate of an interlaced format is that of frames up to 30, as EBU writes it, and above that of
    /// fields, as the trade does: 1080i25 and 1080i50 are the same.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            "expected a format such as 1080p60, 2160p59.94, 1080i50 or 1280x720@50, with an even \
             width"
                .to_owned()
        };
        let at = text.find(['p', 'i', '@']).ok_or_else(wrong)?;
        let (size, rest) = text.split_at(at);
        let scan = if rest.starts_with('i') {
            Scan::Interlaced
        } else {
            Scan::Progressive
        };
        let number = |text: &str| text.parse::<u32>().map_err(|_| wrong());
        let (width, height) = match size.split_once('x') {
            Some((width, height)) => (number(width)?, number(height)?),
            None => {
                let width = match size {
                    "480" | "486" | "487" | "576" => 720,
                    "720" => 1280,
                    "1080" => 1920,
                    "2160" => 3840,
                    "4320" => 7680,
                    _ => return Err(wrong()),
                };
                (width, number(size)?)
            }
        };
        let rate: Rate = rest[1..].parse().map_err(|_| wrong())?;
        let is_of_fields = scan == Scan::Interlaced && is_of_fields(rate);
        let format = Self {
            width,
            height,
            scan,
            rate: if is_of_fields {
                rate.half().ok_or_else(wrong)?
            } else {
                rate
            },
        };
        format.checked().ok_or_else(wrong)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_as_text() {
        for (text, shown) in [
            ("1080p60", "1920x1080p60"),
            ("2160p59.94", "3840x2160p59.94"),
            ("1080i29.97", "1920x1080i29.97"),
            ("1280x720@50", "1280x720p50"),
            ("640x360p25", "640x360p25"),
            ("576i25", "720x576i25"),
            ("1080i50", "1920x1080i25"),
            ("1080i25", "1920x1080i25"),
            ("1080i59.94", "1920x1080i29.97"),
            ("1080i30", "1920x1080i30"),
            ("1080i60", "1920x1080i30"),
        ] {
            assert_eq!(text.parse::<Format>().unwrap().to_string(), shown);
            assert_eq!(shown.parse::<Format>().unwrap().to_string(), shown);
        }
        for text in [
            "",
            "1080",
            "1081p60",
            "1921x1080@60",
            "0x2@60",
            "640x361i25",
            "1080i100",
            "1080p0",
            "p60",
            "40000x2@1",
        ] {
            assert!(text.parse::<Format>().is_err(), "{text}");
        }
    }

    #[test]
    fn shares_have_the_common_multiple() {
        for height in [243, 480, 576, 720, 1080, 2160] {
            for scan in [Scan::Progressive, Scan::Interlaced] {
                let raster = Raster { height, scan };
                for (_, den) in [
                    raster.active(Schedule::Gapped),
                    raster.active(Schedule::Linear),
                    raster.default_offset(),
                ] {
                    assert_eq!(LINES_MULTIPLE % den, 0, "{raster:?}");
                }
            }
        }
    }
}
