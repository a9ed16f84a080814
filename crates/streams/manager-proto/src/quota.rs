// SPDX-License-Identifier: MIT OR Apache-2.0
//! How much a talker may reserve.

use admission::LinkBytes;

pub use crate::answer::Quota;

use crate::answer::Failure;

/// What [`lease_ns`] expects, in words.
pub const LEASE: &str = "a time above 0, such as 30s, 10m or 2h";

impl Quota {
    /// Checks a reservation that is wanted, with this lease and these bytes, beside those that the
    /// caller holds. `held` is without the reservation that this one takes the place of.
    /// O(w h) for w links that are wanted and h that are held.
    ///
    /// # Errors
    /// The first limit that it exceeds: of the lease, of the streams, of the bytes.
    pub fn check<'a>(
        &self,
        lease_ns: u64,
        wanted: &[LinkBytes],
        held: impl Iterator<Item = &'a [LinkBytes]>,
    ) -> Result<(), Failure> {
        self.check_lease(lease_ns)?;
        let held: Vec<_> = held.collect();
        let streams = held.len() as u64 + 1;
        within("`streams`", streams, self.streams)?;
        if self.bytes.is_none() {
            return Ok(());
        }
        for LinkBytes { link, .. } in wanted {
            let all = held.iter().copied().chain([wanted]).flatten();
            let of_link = all.filter(|of| of.link == *link).map(|of| of.bytes);
            let bytes = of_link.fold(0, u64::saturating_add);
            within(&format!("`bytes` of link {link}"), bytes, self.bytes)?;
        }
        Ok(())
    }

    /// Checks the length of a lease.
    ///
    /// # Errors
    /// If it is longer than the caller's longest.
    pub fn check_lease(&self, lease_ns: u64) -> Result<(), Failure> {
        within("`lease_ns`", lease_ns, self.lease_ns)
    }
}

fn within(what: &str, wanted: u64, most: Option<u64>) -> Result<(), Failure> {
    match most {
        Some(most) if wanted > most => Err(Failure::Quota {
            what: what.to_owned(),
            wanted,
            most,
        }),
        _ => Ok(()),
    }
}

/// Parses a length of time with its unit, ns: beside the units of all times also minutes and hours.
pub fn lease_ns(text: &str) -> Option<u64> {
    let long = [("m", 60_u64), ("h", 3600)]
        .into_iter()
        .find_map(|(unit, seconds)| {
            let number: u64 = text.strip_suffix(unit)?.parse().ok()?;
            number
                .checked_mul(seconds)?
                .checked_mul(units::time::NS_PER_S)
        });
    let known = long.or_else(|| units::parse::time_ns(text));
    known.filter(|ns| *ns > 0)
}
