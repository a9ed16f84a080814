// SPDX-License-Identifier: MIT OR Apache-2.0
//! A node's budget: what is guaranteed to all pods of this host, whatever their networks, stays
//! within it. What is granted is what the records of attachments and the claims say; who asks holds
//! the lock.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::Result;
use serde::Serialize;

use crate::claims::{Claim, Claims};
use crate::config::{Budget, Rates};
use crate::environment::Attachment;
use crate::error::{Error, IO_FAILURE, OVER_BUDGET};
use crate::record::Records;

/// Who asks for what, before it has it.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// The attachment and its network; `None`: a claim, whose pod has no network yet.
    pub attachment: Option<(&'a str, &'a Attachment)>,
    /// The uids of the claims that it has, or that ask.
    pub claims: &'a [String],
    /// What the pod shall send and receive.
    pub rates: Rates,
    /// The keys that say so.
    pub keys: (&'a str, &'a str),
}

/// A part of what is granted: an attachment with the claims that hold for it, or a claim whose pod
/// has no network yet. Two attachments with the same claim are sandboxes of one pod, of which one
/// is about to go, and count once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holder {
    attachments: Vec<(String, Attachment)>,
    classes: Rates,
    /// What claims give it.
    pub claimed: Rates,
}

impl Holder {
    /// Returns what it has: what is claimed stays promised, also while `set` has put less in force.
    pub fn rates(&self) -> Rates {
        self.classes.most(self.claimed)
    }
}

/// Who has what on a node, read once. Who holds the lock keeps it up to date.
#[derive(Debug, Default)]
pub struct Granted {
    holders: Vec<Holder>,
    /// Which holder a claim is of, and what it gives.
    claims: BTreeMap<String, (usize, Rates)>,
    /// Claims that cannot be read, and why: nobody knows what they grant.
    unknown: BTreeMap<String, String>,
    all: Rates,
}

impl Granted {
    /// Reads it.
    ///
    /// # Errors
    /// A record that cannot be read, as nobody knows what it grants, unless `is_left_out` of its
    /// network and attachment.
    pub fn read(
        run: &Path,
        is_left_out: impl Fn(&str, &Attachment) -> bool,
    ) -> Result<Self, Error> {
        let mut found = Self::default();
        for records in Records::all(run).map_err(io_failure)? {
            for of in records.attachments().map_err(io_failure)? {
                let network = records.network();
                let Some(record) = records.load(&of).map_err(io_failure)? else {
                    if is_left_out(&network, &of) {
                        continue;
                    }
                    let msg = format!(
                        "{} is no record of this version, expected one: what is granted cannot be \
                         told until DEL or GC takes it away, or a person does",
                        records.path(&of).display()
                    );
                    return Err(Error::new(IO_FAILURE, msg));
                };
                let rates = record.rates();
                let known = record.claims.iter().filter_map(|uid| found.claims.get(uid));
                let at = known.map(|(at, _)| *at).min();
                let at = at.unwrap_or(found.holders.len());
                found.change(at, |holder| {
                    holder.classes = holder.classes.most(rates);
                    holder.attachments.push((network, of));
                });
                for uid in record.claims {
                    found.claims.entry(uid).or_insert((at, Rates::default()));
                }
            }
        }
        for (uid, claim) in Claims::new(run).read(None).map_err(io_failure)? {
            match claim {
                Ok(claim) => found.put(&claim),
                Err(error) => {
                    found.unknown.insert(uid, format!("{error:#}"));
                }
            }
        }
        Ok(found)
    }

    /// Changes a holder, or a new one that is the next.
    fn change(&mut self, at: usize, change: impl FnOnce(&mut Holder)) {
        if at == self.holders.len() {
            self.holders.push(Holder::default());
        }
        let holder = &mut self.holders[at];
        self.all = self.all.without(holder.rates());
        change(holder);
        self.all.add(holder.rates());
    }

    /// Counts a claim that was written, in place of what it was.
    pub fn put(&mut self, claim: &Claim) {
        self.unknown.remove(&claim.uid);
        let known = self.claims.get(&claim.uid).copied();
        let (at, before) = known.unwrap_or((self.holders.len(), Rates::default()));
        let rates = claim.rates();
        self.change(at, |holder| {
            holder.claimed = holder.claimed.without(before);
            holder.claimed.add(rates);
        });
        self.claims.insert(claim.uid.clone(), (at, rates));
    }

    /// Refuses to tell while a claim cannot be read, unless it is left out.
    fn known(&self, is_left_out: impl Fn(&String) -> bool) -> Result<(), Error> {
        let mut unknown = self.unknown.iter().filter(|(uid, _)| !is_left_out(uid));
        match unknown.next() {
            Some((_, why)) => Err(Error::new(IO_FAILURE, why)),
            None => Ok(()),
        }
    }

    /// Returns what those have who ask.
    fn own(&self, asked: &Asked<'_>) -> Rates {
        let known = asked.claims.iter().filter_map(|uid| self.claims.get(uid));
        let mut own: BTreeSet<usize> = known.map(|(at, _)| *at).collect();
        if asked.attachment.is_some() {
            let is_it = |(network, of): &(String, Attachment)| {
                Some((network.as_str(), of)) == asked.attachment
            };
            let mut holders = self.holders.iter();
            own.extend(holders.position(|holder| holder.attachments.iter().any(is_it)));
        }
        let mut all = Rates::default();
        own.iter().for_each(|at| all.add(self.holders[*at].rates()));
        all
    }

    /// Refuses what exceeds a budget. Who asks counts once: what it has counts no more beside what
    /// it asks for. What asks for no more than it has is not refused, also where a budget has become
    /// smaller, nor is what the scheduler has given and the kubelet has prepared.
    ///
    /// # Errors
    /// The direction that exceeds it; a claim of others that cannot be read.
    pub fn check(&self, asked: &Asked<'_>, budget: Budget) -> Result<(), Error> {
        self.known(|uid| asked.claims.contains(uid))?;
        let own = self.own(asked);
        let others = self.all.without(own);
        for (key, of_budget, budget_bps, wanted_bps, own_bps, others_bps) in [
            (
                asked.keys.0,
                "psp.budget",
                budget.egress_bps,
                asked.rates.egress_bps,
                own.egress_bps,
                others.egress_bps,
            ),
            (
                asked.keys.1,
                "psp.ingress-budget",
                budget.ingress_bps,
                asked.rates.ingress_bps,
                own.ingress_bps,
                others.ingress_bps,
            ),
        ] {
            let Some(budget_bps) = budget_bps else {
                continue;
            };
            let left_bps = budget_bps.saturating_sub(others_bps);
            if wanted_bps > left_bps && wanted_bps > own_bps {
                let msg = format!(
                    "`{key}` is {wanted_bps} bit/s, expected at most {left_bps} bit/s, what is left: \
                     `{of_budget}` is {budget_bps} bit/s, and other attachments of this host have \
                     {others_bps} bit/s"
                );
                return Err(Error::new(OVER_BUDGET, msg));
            }
        }
        Ok(())
    }
}

fn io_failure(error: anyhow::Error) -> Error {
    Error::new(IO_FAILURE, format!("{error:#}"))
}

/// Returns who has what.
///
/// # Errors
/// A record that cannot be read, unless it is left out, or a claim.
pub fn holders(
    run: &Path,
    is_left_out: impl Fn(&str, &Attachment) -> bool,
) -> Result<Vec<Holder>, Error> {
    let found = Granted::read(run, is_left_out)?;
    found.known(|_| false)?;
    Ok(found.holders)
}

/// Refuses what exceeds a budget, as [`Granted::check`].
///
/// # Errors
/// The direction that exceeds it; a record that cannot be read.
pub fn check(run: &Path, asked: &Asked<'_>, budget: Budget) -> Result<(), Error> {
    if budget == Budget::default() {
        return Ok(());
    }
    // Its own record is about to be written anew.
    let is_own = |network: &str, of: &Attachment| asked.attachment == Some((network, of));
    Granted::read(run, is_own)?.check(asked, budget)
}

/// Returns all that is granted, as far as it can be told: records that cannot be read are left out.
pub fn granted(run: &Path) -> Result<Rates> {
    let holders = holders(run, |_, _| true).map_err(|error| anyhow::Error::msg(error.msg))?;
    let mut all = Rates::default();
    holders.iter().for_each(|holder| all.add(holder.rates()));
    Ok(all)
}

/// What is granted in a direction, and what is left of each budget that records name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Sum {
    /// All rates together.
    pub granted_bps: u64,
    /// Budgets, the smallest first.
    pub budgets: Vec<Left>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Left {
    /// How much it is.
    pub budget_bps: u64,
    pub left_bps: u64,
}

/// Compares all that is granted with the budgets that were in force when it was. Returns both
/// directions, what pods send first.
pub fn sums(all: Rates, budgets: impl Iterator<Item = Budget>) -> (Sum, Sum) {
    let (mut of_egress, mut of_ingress) = (BTreeSet::new(), BTreeSet::new());
    for budget in budgets {
        of_egress.extend(budget.egress_bps);
        of_ingress.extend(budget.ingress_bps);
    }
    let sum = |granted_bps: u64, budgets: BTreeSet<u64>| Sum {
        granted_bps,
        budgets: budgets
            .into_iter()
            .map(|budget_bps| Left {
                budget_bps,
                left_bps: budget_bps.saturating_sub(granted_bps),
            })
            .collect(),
    };
    (
        sum(all.egress_bps, of_egress),
        sum(all.ingress_bps, of_ingress),
    )
}
