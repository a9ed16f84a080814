// SPDX-License-Identifier: MIT OR Apache-2.0
//! Values of options that ping and reflect share.

use live::udp::Class;
use ping::packet::{LEAST_BYTES, MOST_BYTES};

/// Largest differentiated services code point.
const MOST_DSCP: u8 = 63;

/// Bytes of a probe.
pub fn probe_bytes(text: &str) -> Result<usize, String> {
    let bytes = text.parse().ok();
    bytes
        .filter(|bytes| (LEAST_BYTES..=MOST_BYTES).contains(bytes))
        .ok_or_else(|| format!("expected {LEAST_BYTES} to {MOST_BYTES}"))
}

/// `PRIO`, `PRIO/DSCP`, `/DSCP`, where PRIO is a number or a class `MAJOR:MINOR`,
/// in hexadecimal as `tc` writes it.
pub fn class(text: &str) -> Result<Class, String> {
    let wrong = || "expected a priority, a class such as 1:10, and /DSCP of 0 to 63".to_owned();
    let (priority, dscp) = match text.split_once('/') {
        Some((priority, dscp)) => (priority, Some(dscp)),
        None => (text, None),
    };
    let priority = match (priority, priority.split_once(':')) {
        ("", _) => None,
        (_, Some((major, minor))) => {
            let hex = |text| u16::from_str_radix(text, 16).map_err(|_| wrong());
            Some((u32::from(hex(major)?) << 16) | u32::from(hex(minor)?))
        }
        (number, None) => Some(number.parse().map_err(|_| wrong())?),
    };
    let dscp = match dscp {
        None => None,
        Some(dscp) => Some(dscp.parse().map_err(|_| wrong())?),
    };
    if dscp.is_some_and(|d: u8| d > MOST_DSCP) || (priority, dscp) == (None, None) {
        return Err(wrong());
    }
    Ok(Class { priority, dscp })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes() {
        let of = |priority, dscp| Ok(Class { priority, dscp });
        assert_eq!(class("6"), of(Some(6), None));
        assert_eq!(class("6/46"), of(Some(6), Some(46)));
        assert_eq!(class("/0"), of(None, Some(0)));
        assert_eq!(class("1:10/46"), of(Some(0x1_0010), Some(46)));
        for text in ["", "/", "x", "1/64", "1:", ":1", "1:10000", "-1", "1/2/3"] {
            assert!(class(text).is_err(), "{text}");
        }
        assert_eq!(probe_bytes("52"), Ok(52));
        assert!(probe_bytes("51").is_err() && probe_bytes("65508").is_err());
    }
}
