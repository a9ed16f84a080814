// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules that look at several facts, and the order of what they find.

use doctor::findings;
use tcpsp::account::{Account, Traffic};

use crate::host::program;
use crate::host::{device, fine, psp};

#[test]
fn classes_that_take_the_rates_of_sockets_are_no_limit_to_them() {
    let mut facts = fine();
    facts.paced_sockets = Some(3);
    for class in &mut psp(&mut facts).classes {
        class.is_dynamic = !class.is_normal;
    }
    assert_eq!(findings(&facts), []);
    psp(&mut facts).classes.clear();
    assert_eq!(findings(&facts), []);
}

#[test]
fn some_traffic_is_no_rules() {
    let traffic = |frames| Traffic {
        frames,
        bytes: frames * 1000,
    };
    for (unmatched, is_found) in [(99, false), (999, false), (1000, true)] {
        let mut facts = fine();
        device(&mut facts).account = Some(Account {
            device: traffic(1000),
            counted: traffic(if unmatched == 99 { 99 } else { 1000 }),
            unmatched: Some(traffic(unmatched)),
            tolerance_frames: 1000,
        });
        assert_eq!(findings(&facts).len(), usize::from(is_found), "{unmatched}");
    }
}

/// What keeps launch times does not keep rates.
#[test]
fn a_qdisc_keeps_what_sockets_ask_for() {
    let mut facts = fine();
    program(&mut facts, 1, 1);
    facts.keeps_launch_times = true;
    let ids: Vec<_> = findings(&facts).iter().map(|f| f.id).collect();
    assert_eq!(ids, ["socket-rates-lost"]);
    facts.keeps_socket_rates = true;
    assert_eq!(findings(&facts), []);
}

#[test]
fn the_worst_comes_first() {
    let mut facts = fine();
    facts.paced_sockets = Some(1);
    psp(&mut facts).stats.gap_failed = 1;
    device(&mut facts).is_full_duplex = Some(false);
    let ids: Vec<_> = findings(&facts).iter().map(|finding| finding.id).collect();
    assert_eq!(ids, ["half-duplex", "gap-memory", "sockets-paced"]);
}

#[test]
fn bursts_of_near_senders_stay_whole_without_the_module() {
    for (leaves_bursts_whole, tso_rtt_log, near, is_found) in [
        (true, Some(9), Some(1), true),
        (true, Some(0), Some(1), false),
        (true, None, Some(1), false),
        (true, Some(9), Some(0), false),
        (true, Some(9), None, false),
        (false, Some(9), Some(1), false),
    ] {
        let mut facts = fine();
        device(&mut facts).leaves_bursts_whole = leaves_bursts_whole;
        (facts.tso_rtt_log, facts.near_sockets) = (tso_rtt_log, near);
        let ids: Vec<_> = findings(&facts).iter().map(|f| f.id).collect();
        assert_eq!(ids == ["bursts-near"], is_found, "{ids:?}");
    }
}
