// SPDX-License-Identifier: MIT OR Apache-2.0
//! What each rule finds, one change away from a host on which none finds anything.

use std::collections::BTreeSet;

use crate::host::{device, fine};
use crate::row::Row;
use crate::{rules_of_devices, rules_of_host};
use doctor::{RULES, findings};

fn rows() -> impl Iterator<Item = &'static Row> {
    rules_of_host::TABLE.iter().chain(rules_of_devices::TABLE)
}

#[test]
fn a_host_that_is_fine() {
    assert_eq!(findings(&fine()), Vec::new());
    // So it is with what its kernel or driver does not say.
    let mut silent = fine();
    silent.timers = None;
    silent.clocksource = None;
    silent.module_version = None;
    silent.paced_sockets = None;
    silent.idle_states.clear();
    let device = device(&mut silent);
    device.line_rate_bps = None;
    device.is_full_duplex = None;
    device.is_held_by_pause = None;
    device.sends_pause = None;
    device.tx_coalesce_us = None;
    device.has_tso = None;
    device.queue_limits_min_bytes.clear();
    assert_eq!(findings(&silent), Vec::new());
}

#[test]
fn each_rule_finds_what_it_is_for() {
    for (change, id, severity, what, command) in rows() {
        let mut facts = fine();
        change(&mut facts);
        let found = findings(&facts);
        let [finding] = &found[..] else {
            panic!("{id}: one finding was expected: {found:#?}");
        };
        assert_eq!(
            (finding.id, finding.severity),
            (*id, *severity),
            "{finding:#?}"
        );
        assert!(finding.what.contains(what), "{id}: {finding:#?}");
        assert!(finding.command.contains(command), "{id}: {finding:#?}");
        assert!(
            !finding.command.contains('\n') && finding.why.ends_with('.'),
            "{finding:#?}"
        );
    }
}

#[test]
fn the_table_has_every_rule() {
    let tested: BTreeSet<_> = rows().map(|row| row.1).collect();
    let rules: BTreeSet<_> = RULES.iter().map(|rule| rule.id).collect();
    assert_eq!(rules.len(), RULES.len(), "each id is of one rule");
    assert_eq!(tested, rules);
}
