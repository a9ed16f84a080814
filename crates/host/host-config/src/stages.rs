// SPDX-License-Identifier: MIT OR Apache-2.0
//! The options that a qdisc goes through, so that the kernel has no reason to refuse a step.

use std::collections::BTreeMap;

use tcpsp::{Budget, ClassOptions, QdiscOptions};

use crate::file::budget_bytes;
use crate::kernel_model::highest_bps;
use crate::port::Psp;

/// The options of a qdisc before classes change, after filters have come, and at the end.
pub(crate) struct Stages {
    pub first: QdiscOptions,
    pub middle: QdiscOptions,
    pub last: QdiscOptions,
}

impl Stages {
    pub fn new(
        (device_bps, have): (Option<u64>, &Psp),
        (new, classes): (&QdiscOptions, &BTreeMap<u16, ClassOptions>),
        (going, narrowed): (&[u16], &[u16]),
    ) -> Self {
        let old = &have.options;
        let old_bps = old.line_rate_bps.or(have.line_bps).unwrap_or(u64::MAX);
        let new_bps = new.line_rate_bps.or(device_bps).unwrap_or(u64::MAX);
        let of = |minor: &u16| have.classes.get(minor).map(|class| &class.options);
        let staying = have
            .classes
            .iter()
            .filter(|(m, _)| !classes.contains_key(m));
        let staying: u64 = staying
            .filter(|(minor, _)| !going.contains(minor))
            .map(|(_, class)| class.options.reserve_bytes())
            .sum();
        let gone: u64 = going
            .iter()
            .filter_map(of)
            .map(ClassOptions::reserve_bytes)
            .sum();
        let had = have.classes.values();
        let had: u64 = had.map(|class| class.options.reserve_bytes()).sum();
        let wanted = classes.values().map(ClassOptions::reserve_bytes);
        // What is reserved once classes have changed, and at most until then.
        let with_old: u64 = wanted.sum::<u64>() + gone + staying;
        let most = with_old.max(had);
        let holds = |options: &QdiscOptions, line_bps: u64, bytes: u64| {
            let budget = budget_bytes(options, (line_bps != u64::MAX).then_some(line_bps));
            bytes == 0 || budget.is_none_or(|budget| budget >= bytes)
        };

        let mut first = old.clone();
        if new_bps > old_bps {
            first.line_rate_bps = new.line_rate_bps;
        }
        let first_bps = old_bps.max(new_bps);
        if !holds(&first, first_bps, most) {
            first.budget = new.budget;
        }
        if !holds(&first, first_bps, most) {
            first.budget = Budget::Bytes(most);
        }
        let mut middle = new.clone();
        let late = going.iter().chain(narrowed);
        let highest_gone = late.filter_map(of).map(highest_bps).max();
        let mut middle_bps = new_bps;
        if highest_gone.is_some_and(|highest| highest > new_bps) {
            middle.line_rate_bps = first.line_rate_bps;
            middle_bps = first_bps;
        }
        if !holds(&middle, middle_bps, with_old) {
            middle.budget = Budget::Bytes(with_old);
        }
        Self {
            first,
            middle,
            last: new.clone(),
        }
    }
}
