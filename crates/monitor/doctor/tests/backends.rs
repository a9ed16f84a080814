// SPDX-License-Identifier: MIT OR Apache-2.0
//! What rules find of psp without the module, and that none says what only the module has.

use doctor::facts::{Facts, Trial};
use doctor::{Finding, findings};
use host_config::{Backend, minor};
use tcpsp::{Gap, Handle, SplitGso, Why};

use crate::host::{device, fine, kind, program, psp, qdisc, unread, without_module};

const BACKENDS: [Backend; 2] = [Backend::Bpf, Backend::Edt];

fn paced(backend: Backend) -> Facts {
    let mut facts = fine();
    without_module(&mut facts, backend);
    facts
}

/// Asserts that there is one finding: its name, words of it, and its command.
fn assert_one(facts: &Facts, id: &str, words: &str, command: &str) {
    let found = findings(facts);
    let [
        Finding {
            id: found_id,
            what,
            why,
            command: mends,
            ..
        },
    ] = &found[..]
    else {
        panic!("{id}: one finding was expected: {found:#?}");
    };
    let is_said = what.contains(words) || why.contains(words);
    assert!(*found_id == id && is_said, "{found:#?}");
    assert!(mends.contains(command), "{found:#?}");
    assert!(
        !mends.contains("tc qdisc ") && !mends.contains("tc class "),
        "{found:#?}"
    );
}

#[test]
fn a_host_without_the_module_that_is_fine() {
    for backend in BACKENDS {
        assert_eq!(findings(&paced(backend)), [], "{backend:?}");
    }
}

/// Whether it is installed and can be loaded is no matter then.
#[test]
fn the_module_is_not_missed_where_something_else_paces() {
    for backend in BACKENDS {
        for is_signed in [None, Some(false), Some(true)] {
            let mut facts = paced(backend);
            (facts.is_module_installed, facts.is_module_signed) = (true, is_signed);
            for are_enforced in [false, true] {
                facts.are_signatures_enforced = are_enforced;
                assert_eq!(findings(&facts), [], "{backend:?}");
            }
        }
    }
}

#[test]
fn drops_are_found_of_each_backend() {
    for backend in BACKENDS {
        let mut facts = paced(backend);
        psp(&mut facts).drops = vec![("drop_child", 0), ("drop_late", 5)];
        assert_one(
            &facts,
            "drops",
            "so far: drop_late 5.",
            "pspacer top --once",
        );
    }
}

/// What fq drops beyond its horizon is said once.
#[test]
fn drops_beyond_the_horizon_are_said_once() {
    let mut facts = paced(Backend::Edt);
    psp(&mut facts).drops.push(("drop_horizon", 9));
    device(&mut facts).qdiscs[0].horizon_drops = Some(9);
    let ids: Vec<_> = findings(&facts).iter().map(|found| found.id).collect();
    assert_eq!(ids, ["beyond-horizon"]);
}

#[test]
fn frames_without_a_class_are_found_of_each_backend() {
    for (backend, fate) in [
        (Backend::Bpf, "They are dropped."),
        (Backend::Edt, "They leave at once"),
    ] {
        let mut facts = paced(backend);
        psp(&mut facts).stats.unclassified_frames = 4;
        let command = "pspacer apply  # in the host's file: default = \"NAME\"";
        assert_one(&facts, "unclassified", fate, command);
    }
}

#[test]
fn rates_beyond_the_line_are_found_of_each_backend() {
    for backend in BACKENDS {
        let mut facts = paced(backend);
        psp(&mut facts).rates_bps = 11_000_000_000;
        let words = "7073: sum up to 11 Gbit/s, the line is 10 Gbit/s.";
        assert_one(&facts, "oversubscribed", words, "pspacer top --once");
    }
    let mut facts = paced(Backend::Edt);
    psp(&mut facts).rates_bps = 11_000_000_000;
    device(&mut facts).line_rate_bps = None;
    assert_eq!(findings(&facts), []);
}

/// Only bpf goes by a line.
#[test]
fn the_line_is_that_of_the_file() {
    let mut facts = paced(Backend::Bpf);
    psp(&mut facts).stats.line_known = 0;
    let key = "pspacer apply --device eth0  # in the host's file: line = \"10gbit\"";
    assert_one(
        &facts,
        "line-unknown",
        "It named no line rate when psp came",
        key,
    );
    device(&mut facts).line_rate_bps = None;
    assert_one(&facts, "line-unknown", "It names no line rate", key);
    let mut facts = paced(Backend::Bpf);
    psp(&mut facts).options.line_rate_bps = Some(20_000_000_000);
    let key = "pspacer apply --device eth0  # in the host's file: line = \"10000000000bit\"";
    assert_one(&facts, "line-fast", "line is 20 Gbit/s", key);
}

/// Whatever its options and statistics are: gap frames, cut bursts and byte queue limits are the
/// module's.
#[test]
fn what_only_the_module_does_is_not_asked_of_others() {
    for backend in BACKENDS {
        let mut facts = paced(backend);
        let eth0 = device(&mut facts);
        eth0.driver = Some("virtio_net".to_owned());
        eth0.sends_pause = Some(true);
        eth0.queue_limits_min_bytes = vec![0];
        eth0.trial = Some(Trial {
            sent_frames: 1000,
            gap_frames: 1000,
            device_frames: 1000,
            wire_stops: 9,
        });
        let psp = psp(&mut facts);
        psp.options.gap = Gap::Pause;
        psp.options.split_gso = SplitGso::Off;
        psp.stats.why_not_hybrid = Why::NoClock.number();
        psp.stats.line_measured_bps = 1;
        psp.stats.wire_stops = 9;
        psp.stats.gap_failed = 9;
        assert_eq!(findings(&facts), [], "{backend:?}");
    }
}

#[test]
fn transmit_queues_are_those_of_the_backend() {
    let queue = |kind: &str, handle, number| qdisc(kind, handle, minor::mq_class(number));
    let below_mq = |backend, second| {
        let mut facts = paced(backend);
        let first = queue(kind(backend), minor::below_mq(0), 0);
        device(&mut facts).qdiscs = vec![qdisc("mq", minor::mq(), Handle::ROOT), first, second];
        facts
    };
    for (backend, second) in [
        (Backend::Bpf, queue("psp_bpf", minor::below_mq(1), 1)),
        (Backend::Edt, queue("fq", minor::below_mq(1), 1)),
    ] {
        assert_eq!(findings(&below_mq(backend, second)), [], "{backend:?}");
    }
    for (second, command) in [
        (queue("fq", Handle::NONE, 1), "apply --device eth0"),
        (
            queue("fq", Handle::new(8, 0), 1),
            "--device eth0 --take-over",
        ),
    ] {
        let facts = below_mq(Backend::Edt, second);
        assert_one(&facts, "queues-not-paced", "1 transmit queues", command);
    }
}

/// Neither txtime nor dynamic is offered without the module.
#[test]
fn what_sockets_ask_for_is_kept_by_others() {
    let mut facts = paced(Backend::Bpf);
    program(&mut facts, 2, 0);
    assert_one(&facts, "launch-times-lost", "sender 2", "backend = \"edt\"");
    program(&mut facts, 0, 2);
    assert_one(
        &facts,
        "socket-rates-lost",
        "sender 2",
        "a class with a rate",
    );
    let mut facts = paced(Backend::Edt);
    facts.paced_sockets = Some(3);
    assert_one(&facts, "sockets-paced", ": 3.", "ss -tin");
    assert!(!findings(&facts)[0].why.contains("dynamic"));
}

/// A psp that cannot be read is one, and nothing is concluded of what it does.
#[test]
fn a_psp_that_was_not_read_is_there() {
    for backend in BACKENDS {
        let mut facts = fine();
        unread(&mut facts, backend);
        let mut other = device(&mut facts).clone();
        other.name = "eth1".to_owned();
        other.unread_psp.clear();
        facts.devices.push(other);
        let found = findings(&facts);
        let said: Vec<_> = found
            .iter()
            .map(|found| (found.id, found.device.as_deref().unwrap()))
            .collect();
        assert_eq!(said, [("statistics-unread", "eth0"), ("no-psp", "eth1")]);
        assert!(found[1].command.starts_with("pspacer apply --device eth1"));
    }
}
