// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rates of classes and groups, and how they have to be to the line's.

use tcpsp::QdiscOptions;
use toml_reader::{Error, Item, Section};
use units::parse;

use crate::limits::{LINE_BPS_MAX, line_expected};

/// A share of the line, in bit/s.
pub(crate) fn share(section: Section<'_>, of: &QdiscOptions) -> Result<Option<u64>, Error> {
    let Some(item) = section.get("share") else {
        return Ok(None);
    };
    for other in ["rate", "reserve"] {
        if section.get(other).is_some() {
            return Err(item.fault(&format!("either it or `{other}`")));
        }
    }
    // Percents are read as a rate, so that they are exact: 1% is 1000 of 100000.
    let thousandths = item.parsed(|text| {
        let number = text.strip_suffix('%')?;
        let number = parse::rate_bps(&format!("{number}kbit"))?;
        (1..=100_000).contains(&number).then_some(number)
    })?;
    let line_bps = of.line_rate_bps.ok_or_else(|| {
        item.fault("a rate: a share is of the line, and the device's `line` is \"auto\"")
    })?;
    let share_bps = u128::from(line_bps) * u128::from(thousandths) / 100_000;
    Ok(u64::try_from(share_bps).ok())
}

/// Returns a rate that some line carries.
pub(crate) fn rate(section: Section<'_>, key: &'static str) -> Result<Option<u64>, Error> {
    let rate = section.rate(key)?;
    match (rate, section.get(key)) {
        (Some(rate_bps), Some(item)) if rate_bps > LINE_BPS_MAX => {
            Err(item.fault(line_expected(rate_bps).unwrap_or_default()))
        }
        _ => Ok(rate),
    }
}

/// Rejects a value that is below what a line must have, of a node that carries classes.
pub(crate) fn carries(item: Option<Item<'_>>, rate_bps: Option<u64>) -> Result<(), Error> {
    match (item, rate_bps.and_then(line_expected)) {
        (Some(item), Some(expected)) => Err(item.fault(expected)),
        _ => Ok(()),
    }
}

/// Returns a rate if it is at most the line's.
pub(crate) fn within_line(
    section: Section<'_>,
    key: &'static str,
    of: &QdiscOptions,
) -> Result<Option<u64>, Error> {
    let rate = rate(section, key)?;
    if let (Some(rate), Some(line_bps), Some(item)) = (rate, of.line_rate_bps, section.get(key)) {
        if rate > line_bps {
            return Err(item.fault(&format!(
                "at most the line's {}",
                units::display::rate(line_bps as f64)
            )));
        }
    }
    Ok(rate)
}

/// Rejects a value that is below another.
pub(crate) fn at_least(
    item: Option<Item<'_>>,
    value: Option<u64>,
    least: Option<u64>,
    of: &str,
) -> Result<(), Error> {
    match (item, value, least) {
        (Some(item), Some(value), Some(least)) if value < least => {
            Err(item.fault(&format!("at least the {of}")))
        }
        _ => Ok(()),
    }
}
