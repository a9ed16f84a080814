// SPDX-License-Identifier: MIT OR Apache-2.0
//! Byte queue limits: what a file wants, what is kept of what was before, and what others have set.

use std::collections::BTreeMap;

use host_config::{
    Beside, Host, KeptLimits, LimitPlan, Port, QueueLimits, Root, Saved, Slot, Target,
    WantedLimits, plan, text,
};

fn port(speed_bps: Option<u64>) -> Port {
    Port {
        name: "eth0".to_owned(),
        is_ethernet: true,
        queues: 2,
        speed_bps,
        has_made_up_speed: false,
        max_frame_bytes: 1514,
        made: host_config::Made::Module,
        can_classify: false,
        root: Root::One(Slot::Default {
            kind: "fq_codel".to_owned(),
            waiting: 0,
        }),
    }
}

/// What a file with these keys of the device wants where the line is 10 Gbit/s.
fn wanted(keys: &str) -> WantedLimits {
    let host = Host::read("f", &format!("[[device]]\nname = \"eth0\"\n{keys}\n")).unwrap();
    WantedLimits::new(&host.devices[0], &port(Some(10_000_000_000)))
}

/// Makes all changes, as `apply` does; returns them.
fn make(limits: &mut QueueLimits, wanted: &WantedLimits) -> LimitPlan {
    let plan = limits.plan(wanted);
    for change in &plan.changes {
        let was = limits.min_bytes.insert(change.queue, change.min_bytes);
        assert_eq!(was, Some(change.old_min_bytes));
    }
    limits.kept.clone_from(&plan.kept);
    plan
}

fn limits(min_bytes: &[u64]) -> QueueLimits {
    QueueLimits {
        min_bytes: (0..).zip(min_bytes.iter().copied()).collect(),
        kept: KeptLimits::new(),
    }
}

fn values(limits: &QueueLimits) -> Vec<u64> {
    limits.min_bytes.values().copied().collect()
}

#[test]
fn what_a_file_wants() {
    for (keys, expected) in [
        (
            "byte_queue_limit_min = \"64kb\"",
            WantedLimits::Bytes(65_536),
        ),
        (
            "mode = \"gap\"\nbyte_queue_limit_min = \"0b\"",
            WantedLimits::Bytes(0),
        ),
        ("mode = \"gap\"", WantedLimits::AtLeast(75_000)),
        (
            "mode = \"hybrid\"\nline = \"1gbit\"",
            WantedLimits::AtLeast(7_500),
        ),
        ("mode = \"gap\"\nqueues = \"mq\"", WantedLimits::Before),
        ("mode = \"timer\"", WantedLimits::Before),
        ("", WantedLimits::Before),
    ] {
        assert_eq!(wanted(keys), expected, "{keys}");
    }
    let host = Host::read("f", "[[device]]\nname = \"eth0\"\nmode = \"gap\"\n").unwrap();
    let unknown = WantedLimits::new(&host.devices[0], &port(None));
    assert_eq!(unknown, WantedLimits::Before);
}

#[test]
fn what_was_before_comes_back() {
    let mut eth0 = limits(&[0, 3_000]);
    assert_eq!(
        make(&mut eth0, &WantedLimits::Bytes(65_536)).changes.len(),
        2
    );
    assert_eq!(values(&eth0), [65_536, 65_536]);
    assert_eq!(make(&mut eth0, &WantedLimits::Bytes(65_536)).changes, []);
    make(&mut eth0, &WantedLimits::Bytes(1_000));
    make(&mut eth0, &WantedLimits::AtLeast(2_000));
    assert_eq!(values(&eth0), [2_000, 3_000]);
    make(&mut eth0, &WantedLimits::Before);
    assert_eq!(eth0, limits(&[0, 3_000]));
}

#[test]
fn what_others_set_stays() {
    let mut eth0 = limits(&[0, 0]);
    make(&mut eth0, &WantedLimits::AtLeast(7_500));
    eth0.min_bytes.insert(1, 250_000);
    assert_eq!(make(&mut eth0, &WantedLimits::AtLeast(7_500)).changes, []);
    make(&mut eth0, &WantedLimits::Bytes(65_536));
    assert_eq!(values(&eth0), [65_536, 65_536]);
    make(&mut eth0, &WantedLimits::Before);
    assert_eq!(eth0, limits(&[0, 250_000]));
}

/// However many changes were made when it ended, all can be taken back.
#[test]
fn a_change_that_was_cut_short_is_taken_back() {
    let all = [
        WantedLimits::Bytes(65_536),
        WantedLimits::Bytes(1_000),
        WantedLimits::Before,
        WantedLimits::AtLeast(7_500),
    ];
    for (first, second) in all.iter().flat_map(|a| all.iter().map(move |b| (a, b))) {
        for made in 0..=2 {
            let mut eth0 = limits(&[0, 3_000]);
            make(&mut eth0, first);
            let plan = eth0.plan(second);
            if !plan.changes.is_empty() {
                eth0.kept.clone_from(&plan.kept_meanwhile);
            }
            for change in plan.changes.iter().take(made) {
                eth0.min_bytes.insert(change.queue, change.min_bytes);
            }
            make(&mut eth0, &WantedLimits::Before);
            assert_eq!(eth0, limits(&[0, 3_000]), "{first:?} {second:?} {made}");
        }
    }
}

/// The kernel hides the queue with its limit, and shows it with the same limit afterwards.
#[test]
fn what_is_kept_of_a_queue_that_is_absent_stays() {
    let mut eth0 = limits(&[0, 3_000]);
    make(&mut eth0, &WantedLimits::AtLeast(7_500));
    let hidden = eth0.min_bytes.remove(&1).unwrap();
    let plan = make(&mut eth0, &WantedLimits::Bytes(1_000));
    assert_eq!(plan.kept_meanwhile.len(), 2);
    make(&mut eth0, &WantedLimits::Before);
    assert_eq!(values(&eth0), [0]);
    eth0.min_bytes.insert(1, hidden);
    make(&mut eth0, &WantedLimits::Before);
    assert_eq!(eth0, limits(&[0, 3_000]));
}

#[test]
fn only_the_key_asks_for_limits() {
    assert!(wanted("byte_queue_limit_min = \"0b\"").is_asked());
    let each = WantedLimits::Each(BTreeMap::from([(0, 1)]));
    for wanted in [WantedLimits::Before, WantedLimits::AtLeast(1), each] {
        assert!(!wanted.is_asked(), "{wanted:?}");
    }
}

#[test]
fn what_was_saved_is_restored() {
    let mut eth0 = limits(&[0, 0]);
    let mut saved = Saved::new(&[port(None)]).unwrap();
    assert!(!saved.write().contains("byte_queue"), "of no device");
    make(&mut eth0, &WantedLimits::Bytes(65_536));
    saved.devices[0]
        .byte_queue_limits_min_bytes
        .clone_from(&eth0.min_bytes);
    let saved = Saved::read(&saved.write()).unwrap();
    make(&mut eth0, &WantedLimits::Before);
    let each = WantedLimits::Each(saved.devices[0].byte_queue_limits_min_bytes.clone());
    make(&mut eth0, &each);
    assert_eq!(values(&eth0), [65_536, 65_536]);
    // What was saved says nothing of a queue that has come since.
    eth0.min_bytes.insert(2, 5);
    assert_eq!(make(&mut eth0, &each).changes, []);
    assert_eq!(
        make(&mut eth0, &WantedLimits::Each(BTreeMap::new())).changes,
        []
    );
    make(&mut eth0, &WantedLimits::Before);
    assert_eq!(eth0, limits(&[0, 0, 5]));
}

#[test]
fn a_plan_says_it() {
    let port = port(None);
    let changes = limits(&[0, 0, 90_000])
        .plan(&WantedLimits::Bytes(65_536))
        .changes;
    let plan = plan(&Target::nothing(), &port, false).unwrap();
    let beside = Beside {
        byte_queue_limits: changes,
        ..Beside::default()
    };
    assert_eq!(
        text(&plan, &beside, &port),
        "eth0: 2 changes\n  \
         change  byte_queue_limit_min of 2 transmit queues: 0 -> 65536 bytes\n  \
         change  byte_queue_limit_min of tx-2: 90000 -> 65536 bytes\n"
    );
    let json = serde_json::to_value(&beside).unwrap();
    let expected = serde_json::json!({"queue": 2, "old_min_bytes": 90_000, "min_bytes": 65_536});
    assert_eq!(json["byte_queue_limits"][2], expected);
}
