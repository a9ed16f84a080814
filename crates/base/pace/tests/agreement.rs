// SPDX-License-Identifier: MIT OR Apache-2.0
//! The core and the reference scheduler make the same decisions and keep the
//! same clocks, step by step, whatever happens to them.

use pace::{Config, Layer, Mode, Order};
use proptest::prelude::*;

use crate::pair::{FRAMES_MAX, Op, Pair, Part, Size, burst_bytes, replay};

fn size() -> impl Strategy<Value = Size> {
    prop_oneof![
        1 => Just(Size::Smallest),
        3 => Just(Size::Largest),
        2 => any::<u32>().prop_map(Size::Any),
    ]
}

/// From a hundred-thousandth of the line to all of it; often round parts.
fn fraction() -> impl Strategy<Value = f64> {
    prop_oneof![
        (-5.0..0.0f64).prop_map(|exponent| 10f64.powf(exponent)),
        (1u32..=8).prop_map(|parts| 1.0 / f64::from(parts)),
        (1u32..=100).prop_map(|percent| f64::from(percent) / 100.0),
        Just(0.0),
    ]
}

fn part() -> impl Strategy<Value = Part> {
    (fraction(), prop::option::weighted(0.3, 0.0..=1.0f64))
        .prop_map(|(rate, ceil)| Part { rate, ceil })
}

fn elapsed() -> impl Strategy<Value = u64> {
    prop_oneof![
        4 => 0u64..20_000,
        4 => 0u64..2_000_000,
        2 => 0u64..20_000_000_000,
        1 => 0u64..1 << 54,
    ]
}

fn order() -> impl Strategy<Value = Order> {
    prop_oneof![Just(Order::Clock), Just(Order::Rate), Just(Order::Next)]
}

fn mode() -> impl Strategy<Value = Mode> {
    prop_oneof![2 => Just(Mode::Gap), 1 => Just(Mode::Timer), 2 => Just(Mode::Hybrid)]
}

fn op() -> impl Strategy<Value = Op> {
    let class = any::<usize>;
    prop_oneof![
        6 => class().prop_map(Op::Activate),
        3 => Just(Op::ActivateAll),
        2 => class().prop_map(Op::Deactivate),
        12 => (size(), any::<bool>(), 0u64..200_000)
            .prop_map(|(size, more, late_ns)| Op::Step { size, more, late_ns }),
        6 => (1usize..40, size(), any::<bool>())
            .prop_map(|(steps, size, heads)| Op::Run { steps, size, heads }),
        3 => (1..=FRAMES_MAX, size(), any::<bool>())
            .prop_map(|(frames, size, more)| Op::Burst { frames, size, more }),
        1 => (class(), size()).prop_map(|(number, size)| Op::Head(number, size)),
        2 => (class(), part()).prop_map(|(number, part)| Op::Rate(number, part)),
        1 => (class(), prop::option::of(part()), 0u32..4000)
            .prop_map(|(number, part, quantum)| Op::Type(number, part, quantum)),
        1 => prop::option::weighted(0.7, part()).prop_map(Op::Add),
        1 => class().prop_map(Op::Remove),
        3 => elapsed().prop_map(Op::Pass),
        1 => (0u64..5_000_000).prop_map(Op::Back),
        1 => (0.1..10.0f64, 1u32..10_000, order(), any::<bool>()).prop_map(
            |(line, max_frame_bytes, order, guard_band)| Op::Reconfigure {
                line, max_frame_bytes, order, guard_band
            }
        ),
        1 => mode().prop_map(Op::Mode),
        3 => (class(), any::<bool>(), reserved())
            .prop_map(|(number, rt, part)| Op::Reservation(number, rt, part)),
        1 => class().prop_map(Op::Drop),
        1 => (length_ns(), 1u32..=100, any::<bool>())
            .prop_map(|(ns, percent, aligned)| Op::Period(ns, percent, aligned)),
        2 => wheel_from().prop_map(Op::WheelFrom),
    ]
}

/// Of a budget: often more than a frame, now and then too much.
fn reserved() -> impl Strategy<Value = f64> {
    prop_oneof![2 => (-4.0..0.0f64).prop_map(|exponent| 10f64.powf(exponent)), 1 => 0.0..0.4f64]
}

fn length_ns() -> impl Strategy<Value = u64> {
    prop_oneof![
        2 => 125_000u64..2_000_000,
        1 => 125_000u64..=1_000_000_000,
        1 => Just(10_000_000u64),
    ]
}

fn period() -> impl Strategy<Value = Option<(u64, u32, bool)>> {
    prop::option::of((length_ns(), 1u32..=100, any::<bool>()))
}

/// Never, always, or above a number of classes that comes and goes.
fn wheel_from() -> impl Strategy<Value = u32> {
    prop_oneof![1 => Just(u32::MAX), 2 => Just(0u32), 2 => 1u32..12, 1 => 50u32..200]
}

fn layer() -> impl Strategy<Value = Layer> {
    prop_oneof![Just(Layer::Link), Just(Layer::Wire), Just(Layer::Ip)]
}

fn config() -> impl Strategy<Value = Config> {
    let line = prop_oneof![
        3 => Just(1_000_000_000u64),
        2 => Just(10_000_000_000u64),
        1 => Just(1_000_000_000_000u64),
        2 => 8000u64..1_000_000_000_000,
        1 => 8000u64..20_000,
    ];
    let frame = prop_oneof![
        4 => Just((60u32, 1514u32, 24u32)),
        1 => Just((60, 9014, 24)),
        1 => Just((60, 60, 24)),
        2 => (0u32..100, 0u32..10_000, 0u32..=256)
            .prop_map(|(min, more, overhead)| (min, (min + more).max(1), overhead)),
    ];
    let burst = prop_oneof![2 => Just(0u32), 1 => 1u32..60_000];
    let how = (layer(), order(), mode(), any::<bool>());
    (line, frame, 0u32..20, burst, how).prop_map(
        |(line_rate_bps, (min, max, overhead), header, burst, how)| Config {
            line_rate_bps,
            overhead_bytes: overhead,
            min_frame_bytes: min,
            max_frame_bytes: max,
            max_burst_bytes: burst_bytes(burst, max, overhead),
            link_header_bytes: header,
            layer: how.0,
            order: how.1,
            mode: how.2,
            guard_band: how.3,
            period: None,
        },
    )
}

/// Near what wraps: the clock in a queue key (44 bits of 64 ps) and the clock itself.
fn start() -> impl Strategy<Value = u64> {
    let before = || 0u64..1_000_000_000;
    prop_oneof![
        2 => Just(0u64),
        2 => before().prop_map(|before| (1 << 50) - before),
        2 => before().prop_map(|before| (1 << 49) - before),
        2 => before().prop_map(|before| 0u64.wrapping_sub(before)),
        1 => any::<u64>(),
    ]
}

/// Operations are many and cases may be few: four steps of shrinking a case,
/// which is proptest's own, would end too early.
const SHRINK_STEPS: u32 = 20_000;

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: SHRINK_STEPS, ..testkit::cases(2000) })]

    #[test]
    fn core_and_reference_agree(
        cfg in config(),
        start_ps in start(),
        first in prop::collection::vec(prop::option::weighted(0.8, part()), 1..8),
        ops in prop::collection::vec(op(), 1..60),
        wheel_from in wheel_from(),
        period in period(),
    ) {
        let mut pair = Pair::new(cfg, start_ps);
        pair.core.use_wheel_from(wheel_from);
        if let Some((length_ns, percent, aligned)) = period {
            pair.apply(&Op::Period(length_ns, percent, aligned));
        }
        for part in first {
            pair.add(part);
        }
        for op in &ops {
            pair.apply(op);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: SHRINK_STEPS, ..testkit::cases(1000) })]

    /// Most classes go by the period, and frames come all the time.
    #[test]
    fn core_and_reference_agree_on_periods(
        cfg in config(),
        start_ps in start(),
        (length_ns, percent, aligned) in (length_ns(), 1u32..=100, any::<bool>()),
        first in prop::collection::vec((any::<bool>(), reserved()), 1..6),
        others in prop::collection::vec(prop::option::of(part()), 0..3),
        ops in prop::collection::vec(prop_oneof![2 => op(), 1 => Just(Op::ActivateAll)], 10..80),
    ) {
        let mut pair = Pair::new(cfg, start_ps);
        pair.apply(&Op::Period(length_ns, percent, aligned));
        for (number, (rt, reserved)) in first.into_iter().enumerate() {
            pair.add(None);
            pair.apply(&Op::Reservation(number, rt, reserved));
        }
        for part in others {
            pair.add(part);
        }
        for op in &ops {
            pair.apply(op);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: SHRINK_STEPS, ..testkit::cases(36) })]

    /// Queues of several levels, with places freed and taken in the middle.
    #[test]
    fn core_and_reference_agree_on_many_classes(
        cfg in config(),
        start_ps in start(),
        first in prop::collection::vec(prop::option::weighted(0.95, part()), 50..250),
        ops in prop::collection::vec(op(), 20..60),
        wheel_from in wheel_from(),
        period in period(),
        reservations in prop::collection::vec((any::<usize>(), any::<bool>()), 0..40),
    ) {
        let mut pair = Pair::new(cfg, start_ps);
        pair.core.use_wheel_from(wheel_from);
        if let Some((length_ns, percent, aligned)) = period {
            pair.apply(&Op::Period(length_ns, percent, aligned));
        }
        for part in first {
            pair.add(part);
        }
        for (number, rt) in reservations {
            pair.apply(&Op::Reservation(number, rt, 0.02));
        }
        pair.apply(&Op::ActivateAll);
        for op in &ops {
            pair.apply(op);
        }
    }
}

/// A class that waits for its ceil is not behind, whatever its rate's clock
/// says.
#[test]
fn another_order_leaves_the_clock_of_a_class_that_waits_for_its_ceil() {
    let cfg = Config {
        line_rate_bps: 1_000_000_000,
        overhead_bytes: 24,
        min_frame_bytes: 60,
        max_frame_bytes: 1514,
        max_burst_bytes: 0,
        link_header_bytes: 0,
        layer: Layer::Link,
        order: Order::Clock,
        mode: Mode::Gap,
        guard_band: false,
        period: None,
    };
    let reconfigure = |line, max_frame_bytes, order| Op::Reconfigure {
        line,
        max_frame_bytes,
        order,
        guard_band: false,
    };
    let burst = Op::Burst {
        frames: 1,
        size: Size::Smallest,
        more: false,
    };
    let run = Op::Run {
        steps: 16,
        size: Size::Largest,
        heads: false,
    };
    let mut pair = Pair::new(cfg, 0);
    pair.add(Some(Part {
        rate: 0.74,
        ceil: Some(0.44),
    }));
    pair.apply(&Op::Activate(0));
    pair.apply(&reconfigure(7.4, 298, Order::Next));
    pair.apply(&run);
    pair.apply(&burst);
    pair.apply(&burst);
    pair.apply(&reconfigure(4.5, 1, Order::Clock));
}

/// A wheel that was opened and has no key yet has nothing to say of the second class.
#[test]
fn a_wheel_without_a_key_hides_no_class_that_is_eligible() {
    let cfg = Config {
        line_rate_bps: 1_000_000_000,
        overhead_bytes: 24,
        min_frame_bytes: 60,
        max_frame_bytes: 1514,
        max_burst_bytes: 21_525,
        link_header_bytes: 0,
        layer: Layer::Link,
        order: Order::Next,
        mode: Mode::Timer,
        guard_band: false,
        period: None,
    };
    let step = |more| Op::Step {
        size: Size::Smallest,
        more,
        late_ns: 0,
    };
    // Just before keys wrap.
    let mut pair = Pair::new(cfg, (1 << 50) - 1);
    pair.core.use_wheel_from(50);
    let rate = |rate| Some(Part { rate, ceil: None });
    for part in [
        None,
        None,
        rate(1.0),
        rate(0.012_435_775_288_983_07),
        rate(0.000_836_072_914_448_753_4),
    ] {
        pair.add(part);
    }
    pair.apply(&Op::ActivateAll);
    pair.apply(&step(true));
    pair.apply(&Op::Activate(0));
    pair.apply(&step(false));
    pair.apply(&Op::Reconfigure {
        line: 5.956_803_944_271_693,
        max_frame_bytes: 1,
        order: Order::Next,
        guard_band: false,
    });
    pair.apply(&Op::WheelFrom(0));
    pair.apply(&step(false));
}

/// Two classes that each ask for half of the line and a part of a bit/s are more
/// than it carries: when one leaves, what the other is behind is forgotten.
#[test]
fn a_frame_longer_than_frames_are_now_leaves_no_lag_beyond_its_bound() {
    let cfg = Config {
        line_rate_bps: 1_000_000_000,
        overhead_bytes: 24,
        min_frame_bytes: 60,
        max_frame_bytes: 9014,
        max_burst_bytes: 0,
        link_header_bytes: 0,
        layer: Layer::Link,
        order: Order::Clock,
        mode: Mode::Gap,
        guard_band: false,
        period: None,
    };
    let mut pair = Pair::new(cfg, 0);
    pair.apply(&Op::Period(125_000, 1, false));
    pair.add(None);
    pair.apply(&Op::Reservation(0, false, 0.011869208946676434));
    pair.add(None);
    pair.apply(&Op::Reservation(1, true, 0.019263414125125375));
    pair.add(None);
    pair.add(None);
    for op in [
        Op::Add(Some(Part {
            rate: 1.0,
            ceil: None,
        })),
        Op::Reservation(83700945559096285, false, 1.0),
        Op::Activate(14669211019434775331),
        Op::Reconfigure {
            line: 2.8726296192111707,
            max_frame_bytes: 311,
            order: Order::Next,
            guard_band: false,
        },
        Op::Add(Some(Part {
            rate: 0.3528256242652771,
            ceil: None,
        })),
        Op::ActivateAll,
        Op::Run {
            steps: 3,
            size: Size::Largest,
            heads: false,
        },
        Op::Activate(0),
        Op::Activate(0),
        Op::Activate(0),
    ] {
        pair.apply(&op);
    }
}

#[test]
fn what_is_demanded_is_rounded_up() {
    let line = 1_000_000_000;
    let cfg = Config::ethernet(line, 1514);
    let rate_bps = (line / 2 * 1514).div_ceil(1538);
    assert!(rate_bps * 1538 > line / 2 * 1514 && rate_bps * 1538 < (line / 2 + 1) * 1514);
    let half = Part {
        rate: (rate_bps as f64 + 0.5) / line as f64,
        ceil: None,
    };
    let mut pair = Pair::new(cfg, 0);
    pair.add(Some(half));
    pair.add(Some(half));
    pair.apply(&Op::ActivateAll);
    pair.apply(&Op::Run {
        steps: 9,
        size: Size::Largest,
        heads: false,
    });
    pair.apply(&Op::Deactivate(0));
    assert!(pair.core.stats().rebased_ps > 0);
}

/// Asked before the instant that it is to wait for, the core looks at nothing:
/// clocks that time has moved on together are moved when it does.
#[test]
fn a_wait_that_stands_is_answered_without_moving_clocks() {
    let cfg = Config {
        link_header_bytes: 0,
        ..Config::ethernet(8000, 60)
    };
    let mut pair = Pair::new(cfg, 0);
    pair.add(Some(Part {
        rate: 1.0,
        ceil: None,
    }));
    pair.add(None);
    pair.apply(&Op::ActivateAll);
    pair.apply(&Op::Mode(Mode::Timer));
    pair.apply(&Op::Run {
        steps: 34,
        size: Size::Smallest,
        heads: false,
    });
    assert!(pair.core.is_quiet());
    pair.apply(&Op::Back(1));
    for more in [false, true] {
        pair.apply(&Op::Step {
            size: Size::Smallest,
            more,
            late_ns: 0,
        });
    }
}

/// What the fuzzer has found worth keeping (docs/contribute/fuzzing.md).
#[test]
fn core_and_reference_agree_on_the_corpus() {
    for (name, bytes) in testkit::corpus("core", 10) {
        println!("{name}");
        replay(&bytes);
    }
}
