// SPDX-License-Identifier: MIT OR Apache-2.0
//! A node's budget: what is guaranteed to all attachments of this host, whatever their networks,
//! stays within it. What is granted is what the records say; who asks holds the lock.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::Result;
use serde::Serialize;

use crate::config::{Budget, Class};
use crate::environment::Attachment;
use crate::error::{Error, IO_FAILURE, OVER_BUDGET};
use crate::record::Records;

/// What is granted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rates {
    /// What pods send.
    pub egress_bps: u64,
    /// What pods receive.
    pub ingress_bps: u64,
}

/// An attachment and what it asks for, before it has it.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// The network.
    pub network: &'a str,
    /// The attachment.
    pub of: &'a Attachment,
    /// What the pod shall send, and the key that says so.
    pub egress: (Option<&'a Class>, &'a str),
    /// What it shall receive.
    pub ingress: (Option<&'a Class>, &'a str),
}

impl Rates {
    fn new(egress: Option<&Class>, ingress: Option<&Class>) -> Self {
        let rate = |class: Option<&Class>| class.map_or(0, |class| class.rate_bps);
        Self {
            egress_bps: rate(egress),
            ingress_bps: rate(ingress),
        }
    }

    fn add(&mut self, other: Self) {
        self.egress_bps = self.egress_bps.saturating_add(other.egress_bps);
        self.ingress_bps = self.ingress_bps.saturating_add(other.ingress_bps);
    }
}

/// Refuses what exceeds a budget. An attachment counts once: what it has counts no more beside what
/// it asks for. What asks for no more than it has is not refused, also where a budget has become
/// smaller.
///
/// # Errors
/// The direction that exceeds it; a record that cannot be read, as nobody knows what it grants.
pub fn check(run: &Path, asked: &Asked<'_>, budget: Budget) -> Result<(), Error> {
    if budget == Budget::default() {
        return Ok(());
    }
    let io_failure = |error: anyhow::Error| Error::new(IO_FAILURE, format!("{error:#}"));
    let (mut others, mut own) = (Rates::default(), Rates::default());
    for records in Records::all(run).map_err(io_failure)? {
        for of in records.attachments().map_err(io_failure)? {
            let is_own = records.network() == asked.network && of == *asked.of;
            let Some(record) = records.load(&of).map_err(io_failure)? else {
                // It is about to be written anew.
                if is_own {
                    continue;
                }
                let msg = format!(
                    "{} is no record of this version, expected one: what is granted cannot be \
                     told until DEL or GC takes it away, or a person does",
                    records.path(&of).display()
                );
                return Err(Error::new(IO_FAILURE, msg));
            };
            let place = if is_own { &mut own } else { &mut others };
            place.add(Rates::new(record.egress.as_ref(), record.ingress.as_ref()));
        }
    }
    let (egress, ingress) = (asked.egress, asked.ingress);
    let wanted = Rates::new(egress.0, ingress.0);
    for (key, of_budget, budget_bps, wanted_bps, own_bps, others_bps) in [
        (
            egress.1,
            "psp.budget",
            budget.egress_bps,
            wanted.egress_bps,
            own.egress_bps,
            others.egress_bps,
        ),
        (
            ingress.1,
            "psp.ingress-budget",
            budget.ingress_bps,
            wanted.ingress_bps,
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

/// Sums attachments up: what each is granted, and the budget that was in force then. Returns both
/// directions, what pods send first.
#[must_use]
pub fn sums<'a>(
    granted: impl Iterator<Item = (Option<&'a Class>, Option<&'a Class>, Budget)>,
) -> (Sum, Sum) {
    let mut all = Rates::default();
    let (mut of_egress, mut of_ingress) = (BTreeSet::new(), BTreeSet::new());
    for (egress, ingress, budget) in granted {
        all.add(Rates::new(egress, ingress));
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
