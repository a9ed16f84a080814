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
    /// Uids, and what each gives it.
    claims: BTreeMap<String, Rates>,
    classes: Rates,
}

impl Holder {
    /// Returns what claims give it.
    #[must_use]
    pub fn claimed(&self) -> Rates {
        let mut all = Rates::default();
        self.claims.values().for_each(|rates| all.add(*rates));
        all
    }

    /// Returns what it has: what is claimed stays promised, also while `set` has put less in force.
    #[must_use]
    pub fn rates(&self) -> Rates {
        self.classes.most(self.claimed())
    }

    fn is_of(&self, asked: &Asked<'_>) -> bool {
        let is_it =
            |(network, of): &(String, Attachment)| Some((network.as_str(), of)) == asked.attachment;
        self.attachments.iter().any(is_it)
            || asked.claims.iter().any(|uid| self.claims.contains_key(uid))
    }
}

/// What is not counted, so that it need not be readable: it is about to be written anew.
#[derive(Clone, Copy, Debug, Default)]
pub struct LeftOut<'a> {
    /// All attachments, or this one of a network.
    pub attachments: Option<Option<(&'a str, &'a Attachment)>>,
    /// These claims.
    pub claims: &'a [String],
}

impl LeftOut<'_> {
    fn has(&self, network: &str, of: &Attachment) -> bool {
        match self.attachments {
            None => false,
            Some(None) => true,
            Some(Some(own)) => own == (network, of),
        }
    }
}

/// Who has what on this host, read once.
#[derive(Clone, Debug, Default)]
pub struct Granted {
    holders: Vec<Holder>,
}

impl Granted {
    /// Reads it. O(records + claims).
    ///
    /// # Errors
    /// A record or a claim that cannot be read, as nobody knows what it grants.
    pub fn read(run: &Path, left_out: LeftOut<'_>) -> Result<Self, Error> {
        let io_failure = |error: anyhow::Error| Error::new(IO_FAILURE, format!("{error:#}"));
        let mut all = Self::default();
        for records in Records::all(run).map_err(io_failure)? {
            for of in records.attachments().map_err(io_failure)? {
                let network = records.network();
                let Some(record) = records.load(&of).map_err(io_failure)? else {
                    if left_out.has(&network, &of) {
                        continue;
                    }
                    let msg = format!(
                        "{} is no record of this version, expected one: what is granted cannot be \
                         told until DEL or GC takes it away, or a person does",
                        records.path(&of).display()
                    );
                    return Err(Error::new(IO_FAILURE, msg));
                };
                let at = all.with_one_of(&record.claims);
                at.classes = at.classes.most(record.rates());
                for uid in record.claims {
                    at.claims.entry(uid).or_default();
                }
                at.attachments.push((network, of));
            }
        }
        let claims = Claims::new(run).load_without(None, left_out.claims);
        claims
            .map_err(io_failure)?
            .iter()
            .for_each(|claim| all.add(claim));
        Ok(all)
    }

    /// Returns who has what.
    #[must_use]
    pub fn holders(&self) -> &[Holder] {
        &self.holders
    }

    /// Adds a claim, in place of what it gave before.
    pub fn add(&mut self, claim: &Claim) {
        let at = self.with_one_of(std::slice::from_ref(&claim.uid));
        at.claims.insert(claim.uid.clone(), claim.rates());
    }

    /// Returns who has one of these claims, or a new one. O(holders).
    fn with_one_of(&mut self, claims: &[String]) -> &mut Holder {
        let has_one = |holder: &Holder| claims.iter().any(|uid| holder.claims.contains_key(uid));
        let at = self.holders.iter().position(has_one);
        let at = at.unwrap_or_else(|| {
            self.holders.push(Holder::default());
            self.holders.len() - 1
        });
        &mut self.holders[at]
    }

    /// Refuses what exceeds a budget. Who asks counts once: what it has counts no more beside what it
    /// asks for. What asks for no more than it has is not refused, also where a budget has become
    /// smaller, nor is what the scheduler has given and the kubelet has prepared. O(holders).
    ///
    /// # Errors
    /// The direction that exceeds it.
    pub fn check(&self, asked: &Asked<'_>, budget: Budget) -> Result<(), Error> {
        let (mut others, mut own) = (Rates::default(), Rates::default());
        for holder in &self.holders {
            let place = if holder.is_of(asked) {
                &mut own
            } else {
                &mut others
            };
            place.add(holder.rates());
        }
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
                    "`{key}` is {wanted_bps} bit/s, expected at most {left_bps} bit/s, what is \
                     left: `{of_budget}` is {budget_bps} bit/s, and other attachments of this host \
                     have {others_bps} bit/s"
                );
                return Err(Error::new(OVER_BUDGET, msg));
            }
        }
        Ok(())
    }
}

/// Refuses what exceeds a budget, as [`Granted::check`] does. Without a budget nothing is read.
///
/// # Errors
/// The direction that exceeds it; a record that cannot be read.
pub fn check(run: &Path, asked: &Asked<'_>, budget: Budget) -> Result<(), Error> {
    if budget == Budget::default() {
        return Ok(());
    }
    // Its own record is about to be written anew.
    let left_out = LeftOut {
        attachments: asked.attachment.map(Some),
        claims: &[],
    };
    Granted::read(run, left_out)?.check(asked, budget)
}

/// Returns all that is granted, as far as it can be told: records that cannot be read are left out.
///
/// # Errors
/// A folder or a claim that cannot be read.
pub fn granted(run: &Path) -> Result<Rates> {
    let left_out = LeftOut {
        attachments: Some(None),
        claims: &[],
    };
    let read = Granted::read(run, left_out).map_err(|error| anyhow::Error::msg(error.msg))?;
    let mut all = Rates::default();
    read.holders
        .iter()
        .for_each(|holder| all.add(holder.rates()));
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

/// A budget.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Left {
    /// How much it is.
    pub budget_bps: u64,
    /// What is left of it.
    pub left_bps: u64,
}

/// Compares all that is granted with the budgets that were in force when it was. Returns both
/// directions, what pods send first.
#[must_use]
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
