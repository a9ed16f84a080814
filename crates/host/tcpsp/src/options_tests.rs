// SPDX-License-Identifier: MIT OR Apache-2.0

use std::fs;
use std::path::Path;

use proptest::prelude::*;

use super::*;

fn some() -> impl Strategy<Value = Option<u64>> {
    proptest::option::of(1..=u64::MAX >> 1)
}

fn qdiscs() -> impl Strategy<Value = QdiscOptions> {
    let budget = prop_oneof![
        (1..u64::MAX).prop_map(Budget::Bytes),
        (1..=100u32).prop_map(Budget::Percent),
    ];
    let words = (
        proptest::sample::select(Mode::ALL),
        proptest::sample::select(Layer::ALL),
        proptest::sample::select(Order::ALL),
        proptest::sample::select(Gap::ALL),
        proptest::sample::select(SplitGso::ALL),
    );
    let numbers = (
        any::<u16>(),
        some(),
        0..=256u32,
        any::<bool>(),
        1..9u64,
        any::<bool>(),
    );
    (words, numbers, budget, some()).prop_map(|(words, numbers, budget, align_ns)| QdiscOptions {
        default_minor: numbers.0,
        line_rate_bps: numbers.1,
        mode: words.0,
        overhead_bytes: numbers.2,
        layer: words.1,
        order: words.2,
        gap: words.3,
        guard: numbers.3,
        split_gso: words.4,
        period_ns: numbers.4,
        budget,
        align_ns,
        shared: numbers.5,
    })
}

fn launches() -> impl Strategy<Value = Launch> {
    let clock = proptest::sample::select(LaunchClock::ALL);
    let late = proptest::option::of(1..9u64);
    (clock, any::<bool>(), late, 1..9u64).prop_map(|(clock, is_deadline, late_ns, horizon_ns)| {
        Launch {
            clock,
            is_deadline,
            late_ns,
            horizon_ns,
        }
    })
}

fn classes() -> impl Strategy<Value = ClassOptions> {
    let dynamic = (
        some(),
        some(),
        (some(), some()),
        some(),
        1..9u32,
        1..9u32,
        1..9u32,
        1..9u64,
    );
    let dynamic = dynamic.prop_map(
        |(rate, ceil, (total, floor), least, flows, limit, one, horizon)| {
            TypeOptions::Dynamic(Dynamic {
                rate_bps: rate,
                ceil_bps: ceil,
                total_bps: total,
                floor_bps: floor,
                pacing_floor_bps: least,
                flows,
                limit_frames: limit,
                flow_limit_frames: one,
                horizon_ns: horizon,
            })
        },
    );
    let by_type = prop_oneof![
        proptest::option::of(256..99_999u32)
            .prop_map(|quantum_bytes| TypeOptions::Normal { quantum_bytes }),
        (1..u64::MAX, some(), proptest::option::of(launches())).prop_map(
            |(rate_bps, ceil_bps, launch)| TypeOptions::Paced {
                rate_bps,
                ceil_bps,
                launch,
            }
        ),
        (1..u64::MAX).prop_map(|reserve_bytes| TypeOptions::Rt { reserve_bytes }),
        (1..u64::MAX).prop_map(|reserve_bytes| TypeOptions::Nrt { reserve_bytes }),
        (1..u64::MAX, some())
            .prop_map(|(rate_bps, ceil_bps)| TypeOptions::Group { rate_bps, ceil_bps }),
        dynamic,
    ];
    (by_type, some()).prop_map(|(by_type, deadline_ns)| ClassOptions {
        deadline_ns: match by_type {
            TypeOptions::Group { .. } => None,
            _ => deadline_ns,
        },
        by_type,
        group: None,
        mark_ns: None,
    })
}

proptest! {
    #![proptest_config(testkit::properties())]

    #[test]
    fn what_is_written_is_read(qdisc in qdiscs(), class in classes()) {
        prop_assert_eq!(QdiscOptions::read(&attribute::write(&qdisc.write())), qdisc);
        prop_assert_eq!(ClassOptions::read(&attribute::write(&class.write())), class);
    }

    #[test]
    fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..99)) {
        let _ = (QdiscOptions::read(&bytes), ClassOptions::read(&bytes));
    }
}

#[test]
fn defaults_are_the_kernels() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../kernel/sch_psp.c");
    let text = fs::read_to_string(path).unwrap();
    let defined = |name: &str| {
        let start = format!("#define {name}");
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix(&start))
            .unwrap();
        line.trim().to_owned()
    };
    assert_eq!(defined("PSP_FLOWS_DEFAULT"), format!("{FLOWS}u"));
    assert_eq!(defined("PSP_LIMIT_DEFAULT"), format!("{LIMIT_FRAMES}u"));
    assert_eq!(
        defined("PSP_FLOW_LIMIT_DEFAULT"),
        format!("{FLOW_LIMIT_FRAMES}u")
    );
    assert_eq!(defined("PSP_HORIZON_DEFAULT"), "(10ull * NSEC_PER_SEC)");
    assert_eq!(HORIZON_NS, 10 * 1_000_000_000);
    let none = QdiscOptions::default_of(true);
    assert_eq!(none.overhead_bytes, 24);
    assert_eq!(QdiscOptions::default_of(false).overhead_bytes, 0);
    assert_eq!(
        (none.period_ns, none.budget),
        (10_000_000, Budget::Percent(70))
    );
}

#[test]
fn json() {
    let class = ClassOptions::new(TypeOptions::Paced {
        rate_bps: 5,
        ceil_bps: None,
        launch: None,
    });
    assert_eq!(
        serde_json::to_string(&class).unwrap(),
        r#"{"type":"paced","rate_bps":5,"ceil_bps":null,"launch":null,"deadline_ns":null}"#
    );
    let launch = Launch::new(LaunchClock::Tai);
    assert_eq!(
        serde_json::to_string(&launch).unwrap(),
        r#"{"clock":"tai","is_deadline":false,"late_ns":null,"horizon_ns":10000000000}"#
    );
}
