// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parses values of options.

use st2110::format::{Format, Schedule};
use st2110::infer::Kind;
use st2110::limits::SenderType;
use st2110::rate::Rate;
use st2110::video::Datum;

/// Parses a number from 1 on.
pub fn positive(text: &str) -> Result<u32, String> {
    let known = text.parse().ok().filter(|number| *number > 0);
    known.ok_or_else(|| "expected a number, 1 or more".to_owned())
}

/// Parses a time, in ns.
pub fn time(text: &str) -> Result<u64, String> {
    units::parse::time_ns(text).ok_or_else(|| format!("expected {}", units::parse::TIME))
}

/// Parses a time below a second, in ns.
pub fn offset(text: &str) -> Result<u64, String> {
    let known = time(text).ok().filter(|ns| *ns < units::time::NS_PER_S);
    known.ok_or_else(|| "expected a time below a second, such as 637us".to_owned())
}

/// Parses pictures a second.
pub fn rate(text: &str) -> Result<Rate, String> {
    text.parse()
}

/// Parses a format of video.
pub fn format(text: &str) -> Result<Format, String> {
    text.parse()
}

/// Parses a type of sender.
pub fn sender_type(text: &str) -> Result<SenderType, String> {
    text.parse()
}

/// Parses a read schedule.
pub fn schedule(text: &str) -> Result<Schedule, String> {
    match text {
        "gapped" => Ok(Schedule::Gapped),
        "linear" => Ok(Schedule::Linear),
        _ => Err("expected gapped or linear".to_owned()),
    }
}

/// Parses how the transmission datum is found.
pub fn datum(text: &str) -> Result<Datum, String> {
    match text {
        "epoch" => Ok(Datum::Epoch),
        "first" => Ok(Datum::First),
        "fit" => Ok(Datum::Fit),
        _ => Err("expected epoch, first or fit".to_owned()),
    }
}

/// Parses what streams carry.
pub fn kind(text: &str) -> Result<Kind, String> {
    match text {
        "raw" => Ok(Kind::Raw),
        "compressed" => Ok(Kind::Compressed),
        "audio" => Ok(Kind::Audio),
        "ancillary" => Ok(Kind::Ancillary),
        _ => Err("expected raw, compressed, audio or ancillary".to_owned()),
    }
}
