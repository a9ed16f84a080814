// SPDX-License-Identifier: MIT OR Apache-2.0
//! The bytes of each link that are reserved, and by whom.

use std::collections::BTreeMap;

use crate::name::Name;
use crate::refusal::Refusal;
use crate::topology::{LinkId, Topology};

/// Bytes of one link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkUse {
    pub link: LinkId,
    /// Wire bytes in each of its periods.
    pub bytes: u64,
}

/// What is reserved. Two ledgers with the same reservations are equal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    /// Sums by link; links without reservations are absent.
    reserved_bytes: BTreeMap<LinkId, u64>,
    holders: BTreeMap<Name, Vec<LinkUse>>,
}

impl Ledger {
    /// Returns the wire bytes of each period that are reserved of a link.
    pub fn reserved_bytes(&self, link: LinkId) -> u64 {
        self.reserved_bytes.get(&link).copied().unwrap_or(0)
    }

    /// Returns the wire bytes of each period that streams may still reserve of a link.
    pub fn free_bytes(&self, topology: &Topology, link: LinkId) -> u64 {
        let budget_bytes = topology.link(link).budget_bytes;
        budget_bytes.saturating_sub(self.reserved_bytes(link))
    }

    /// Returns what a holder has reserved.
    pub fn held(&self, holder: &str) -> Option<&[LinkUse]> {
        self.holders.get(holder).map(Vec::as_slice)
    }

    /// Returns all holders, in order.
    pub fn holders(&self) -> impl Iterator<Item = (&str, &[LinkUse])> {
        let holders = self.holders.iter();
        holders.map(|(holder, uses)| (holder.as_str(), uses.as_slice()))
    }

    /// Compares the bytes with what is left, apart from what `holder` itself has: a new
    /// reservation of its takes the place of the old one. O(n log m) for n links of m.
    ///
    /// # Errors
    /// The first link that lacks bytes, with the numbers.
    pub fn fits(&self, topology: &Topology, holder: &str, uses: &[LinkUse]) -> Result<(), Refusal> {
        let old = self.held(holder).unwrap_or_default();
        let of_link = |all: &[LinkUse], link: LinkId| {
            let bytes = all.iter().filter(|u| u.link == link).map(|u| u.bytes);
            bytes.fold(0, u64::saturating_add)
        };
        for LinkUse { link, .. } in uses {
            let needed_bytes = of_link(uses, *link);
            let own_bytes = of_link(old, *link);
            let free_bytes = self.free_bytes(topology, *link).saturating_add(own_bytes);
            if needed_bytes > free_bytes {
                return Err(Refusal::Bandwidth {
                    link: topology.link(*link).name.to_string(),
                    needed_bytes,
                    free_bytes,
                });
            }
        }
        Ok(())
    }

    /// Records a reservation in the place of the holder's old one.
    ///
    /// # Errors
    /// The first link that lacks bytes; then nothing changes.
    pub fn insert(
        &mut self,
        topology: &Topology,
        holder: impl Into<Name>,
        uses: Vec<LinkUse>,
    ) -> Result<(), Refusal> {
        let holder = holder.into();
        self.fits(topology, &holder, &uses)?;
        self.remove(&holder);
        for LinkUse { link, bytes } in &uses {
            *self.reserved_bytes.entry(*link).or_default() += bytes;
        }
        self.holders.insert(holder, uses);
        Ok(())
    }

    /// Frees what a holder has; returns whether it had anything.
    pub fn remove(&mut self, holder: &str) -> bool {
        let Some(uses) = self.holders.remove(holder) else {
            return false;
        };
        for LinkUse { link, bytes } in uses {
            let reserved_bytes = self.reserved_bytes(link).saturating_sub(bytes);
            match reserved_bytes {
                0 => self.reserved_bytes.remove(&link),
                left => self.reserved_bytes.insert(link, left),
            };
        }
        true
    }
}
