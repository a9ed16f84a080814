// SPDX-License-Identifier: MIT OR Apache-2.0
//! Trains of frames that are handed over as one: what their bytes cost at each
//! layer, and that the rate does not notice.

use pace::{Burst, ClassConfig, Config, Decision, Layer, Mode, Order, Scheduler};

use crate::wire::Gigabit;

const GBIT: u64 = 1_000_000_000;
/// Seven frames of 1514 bytes, as paper 002, chapter 5, has them.
const SEVEN: Burst = Burst {
    len_bytes: 7 * 1514,
    wire_bytes: 7 * 1538,
    frames: 7,
};

fn config(layer: Layer, order: Order) -> Config {
    Config {
        layer,
        order,
        max_burst_bytes: 65_536,
        ..Config::ethernet(GBIT, 1514)
    }
}

fn port(config: &Config, rate_bps: u64) -> (Scheduler, pace::ClassId) {
    let mut port = Scheduler::new(config, 0).unwrap();
    let class = port.add_class(&ClassConfig::Paced { rate_bps }).unwrap();
    port.activate(class, 0).unwrap();
    (port, class)
}

/// Gap bytes until the class may send again.
fn fill(port: &mut Scheduler) -> u64 {
    let mut gap = 0;
    while let Decision::Gap { wire_bytes } = port.next(0) {
        gap += u64::from(wire_bytes);
        port.gap_sent(wire_bytes);
    }
    gap
}

#[test]
fn what_a_layer_counts() {
    let short = Burst {
        len_bytes: 10 * 54,
        wire_bytes: 10 * 84,
        frames: 10,
    };
    for (layer, burst, counted) in [
        (Layer::Link, SEVEN, 7 * 1514),
        (Layer::Wire, SEVEN, 7 * 1538),
        (Layer::Ip, SEVEN, 7 * 1500),
        (Layer::Link, short, 540),
        (Layer::Wire, short, 840),
        (Layer::Ip, short, 400),
    ] {
        let (mut port, class) = port(&config(layer, Order::Next), GBIT / 10);
        port.sent_burst(class, burst, true, 0).unwrap();
        assert_eq!(port.global_bytes(), u64::from(burst.wire_bytes));
        assert_eq!(port.clock_bytes(class), 10 * counted, "{layer:?}");
        let stats = port.stats();
        assert_eq!(stats.sent_frames, u64::from(burst.frames));
        assert_eq!(stats.sent_wire_bytes, u64::from(burst.wire_bytes));
    }
}

/// More headers than bytes: something is counted, or the class would be free.
#[test]
fn a_burst_of_nothing_but_headers_counts_one_byte() {
    let (mut port, class) = port(&config(Layer::Ip, Order::Next), GBIT / 10);
    let burst = Burst {
        len_bytes: 20,
        wire_bytes: 168,
        frames: 2,
    };
    port.sent_burst(class, burst, true, 0).unwrap();
    assert_eq!(port.clock_bytes(class), 10);
}

/// A burst is one burst; before the next the wire is silent for all its frames.
#[test]
fn the_gap_after_a_burst_is_that_of_its_frames() {
    for order in [Order::Clock, Order::Rate, Order::Next] {
        let (mut port, class) = port(&config(Layer::Link, order), GBIT / 10);
        let sent = |port: &mut Scheduler| port.sent_burst(class, SEVEN, true, 0).unwrap();
        sent(&mut port);
        assert_eq!(fill(&mut port), 7 * (15_140 - 1538), "{order:?}");
        sent(&mut port);
        fill(&mut port);
        // Frames and bursts mix; the frame cost of each is computed when it changes.
        port.sent(class, 1514, true, 0).unwrap();
        assert_eq!(fill(&mut port), 15_140 - 1538, "{order:?}");
        sent(&mut port);
        assert_eq!(fill(&mut port), 7 * (15_140 - 1538), "{order:?}");
        assert_eq!(port.clock_bytes(class), 22 * 15_140);
    }
}

/// Trains of one class make the others late by a burst; nothing is forgotten
/// for it, so rates stay exact.
#[test]
fn lag_is_bounded_by_bursts() {
    for order in [Order::Clock, Order::Next] {
        let (mut port, bulk) = port(&config(Layer::Wire, order), 8 * GBIT / 10);
        let longest = Burst {
            len_bytes: 43 * 1514,
            wire_bytes: 43 * 1538,
            frames: 43,
        };
        let thin = port
            .add_class(&ClassConfig::Paced {
                rate_bps: GBIT / 10,
            })
            .unwrap();
        port.activate(thin, 0).unwrap();
        let mut bytes = [0u64; 2];
        while port.global_bytes() < 125_000_000 {
            match port.next(0) {
                Decision::Send(id) if id == bulk => {
                    bytes[0] += u64::from(longest.wire_bytes);
                    port.sent_burst(bulk, longest, true, 0).unwrap();
                }
                Decision::Send(id) => {
                    bytes[1] += 1538;
                    port.sent(id, 1514, true, 0).unwrap();
                }
                Decision::Gap { wire_bytes } => port.gap_sent(wire_bytes),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(port.stats().rebases, 0, "{order:?}");
        assert!(port.late_bytes_max() <= 43 * 1538, "{order:?}");
        for (bytes, rate) in bytes.into_iter().zip([8, 1]) {
            assert!(
                bytes.abs_diff(rate * 12_500_000) <= 2 * 43 * 1538,
                "{order:?}: {bytes}"
            );
        }
    }
}

/// A ring slot may hold a whole burst: what it holds is not counted twice.
#[test]
fn bursts_in_the_ring_are_not_time_that_has_passed() {
    let (mut port, class) = port(&config(Layer::Link, Order::Next), GBIT);
    for _ in 0..200 {
        port.sent_burst(
            class,
            Burst {
                len_bytes: 65_000,
                wire_bytes: 66_032,
                frames: 43,
            },
            true,
            0,
        )
        .unwrap();
    }
    let global = port.global_bytes();
    port.deactivate(class, 0).unwrap();
    port.activate(class, 1000).unwrap();
    assert_eq!(port.global_bytes(), global);
    assert!(global * 8 > 100_000_000, "a hundred milliseconds");
    port.deactivate(class, 2000).unwrap();
    port.activate(class, global * 8 + 8).unwrap();
    assert_eq!(port.global_bytes(), global + 1, "and is no more than that");
}

/// By how much a frame at its rate is late or early, as the decision says it.
#[test]
fn a_decision_says_how_late_it_is() {
    let cfg = Config {
        mode: Mode::Timer,
        ..config(Layer::Link, Order::Next)
    };
    let (mut port, class) = port(&cfg, GBIT / 10);
    assert_eq!(port.next_and_lateness(0), (Decision::Send(class), 0));
    assert_eq!(
        port.next_and_lateness(800),
        (Decision::Send(class), 800_000)
    );
    port.sent(class, 1514, true, 800).unwrap();
    let normal = port
        .add_class(&ClassConfig::Normal {
            quantum_bytes: None,
        })
        .unwrap();
    port.activate(normal, 50_000).unwrap();
    assert_eq!(port.next_and_lateness(50_000), (Decision::Send(normal), 0));
}

#[test]
fn a_frame_before_its_clock_is_early() {
    // 3 % below the line: 1514 x 8 / .97 = 12,486.6 ns, 182.6 after a frame of 1538.
    let (mut port, class) = port(&config(Layer::Link, Order::Next), 970_000_000);
    port.sent(class, 1514, true, 0).unwrap();
    assert_eq!(port.next_and_lateness(0), (Decision::Send(class), -182_598));
}
