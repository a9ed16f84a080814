// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is refused, and that nothing has changed then. `PACE_ERR_FULL` and
//! `PACE_ERR_BUSY` of the core are tested beside the binding (src/ffi.rs).

use pace::{Burst, ClassConfig, Config, Decision, Error, LEAD_MAX_PS, Layer, Scheduler};

const GBIT: u64 = 1_000_000_000;

fn ethernet() -> Config {
    Config::ethernet(GBIT, 1514)
}

fn bursts(max_burst_bytes: u32, max_frame_bytes: u32) -> Config {
    Config {
        max_burst_bytes,
        max_frame_bytes,
        ..ethernet()
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn lines() {
    let cases = [
        (
            Config {
                line_rate_bps: 7_999,
                ..ethernet()
            },
            Some(Error::LineRate),
        ),
        (
            Config {
                line_rate_bps: 8_000,
                ..ethernet()
            },
            None,
        ),
        (
            Config {
                line_rate_bps: 1_000_000_000_000,
                ..ethernet()
            },
            None,
        ),
        (
            Config {
                line_rate_bps: 1_000_000_000_001,
                ..ethernet()
            },
            Some(Error::LineRate),
        ),
        (
            Config {
                max_frame_bytes: 0,
                min_frame_bytes: 0,
                ..ethernet()
            },
            Some(Error::Frame),
        ),
        (
            Config {
                max_frame_bytes: 59,
                ..ethernet()
            },
            Some(Error::Frame),
        ),
        (
            Config {
                max_frame_bytes: 60,
                ..ethernet()
            },
            None,
        ),
        (
            Config {
                max_frame_bytes: 1 << 18,
                ..ethernet()
            },
            None,
        ),
        (
            Config {
                max_frame_bytes: (1 << 18) + 1,
                ..ethernet()
            },
            Some(Error::Frame),
        ),
        (
            Config {
                overhead_bytes: 256,
                ..ethernet()
            },
            None,
        ),
        (
            Config {
                overhead_bytes: 257,
                ..ethernet()
            },
            Some(Error::Overhead),
        ),
        (bursts(1513, 1514), Some(Error::Burst)),
        (bursts(1514, 1514), None),
        (bursts(1 << 18, 1514), None),
        (bursts((1 << 18) + 1, 1514), Some(Error::Burst)),
        // 2^18 bytes in frames of 60 are 367 kB of wire; in frames of 1, 6.5 MB.
        (bursts(1 << 18, 60), None),
        (
            Config {
                min_frame_bytes: 0,
                ..bursts(1 << 18, 1)
            },
            Some(Error::Burst),
        ),
    ];
    for (config, expected) in cases {
        assert_eq!(Scheduler::new(&config, 0).err(), expected, "{config:?}");
        let mut port = Scheduler::new(&ethernet(), 0).unwrap();
        let refused = port
            .reconfigure(&config, 0)
            .err()
            .map(|refused| refused.error);
        assert_eq!(refused, expected, "{config:?}");
    }
}

fn paced(rate_bps: u64) -> ClassConfig {
    ClassConfig::Paced { rate_bps }
}

fn sharing(rate_bps: u64, ceil_bps: u64) -> ClassConfig {
    ClassConfig::Borrowing { rate_bps, ceil_bps }
}

fn normal(quantum_bytes: u32) -> ClassConfig {
    ClassConfig::Normal {
        quantum_bytes: Some(quantum_bytes),
    }
}

#[test]
fn classes() {
    let cases = [
        (paced(0), Some(Error::RateZero)),
        (paced(GBIT), None),
        (paced(GBIT + 1), Some(Error::RateLine)),
        (paced(u64::MAX), Some(Error::RateLine)),
        (paced(51), None),
        (sharing(0, GBIT), Some(Error::RateZero)),
        (sharing(GBIT + 1, GBIT + 1), Some(Error::RateLine)),
        (sharing(1000, 0), Some(Error::Ceil)),
        (sharing(1000, 999), Some(Error::Ceil)),
        (sharing(1000, 1000), None),
        (sharing(1000, GBIT), None),
        (sharing(1000, GBIT + 1), Some(Error::Ceil)),
        (normal(0), Some(Error::Quantum)),
        (normal(255), Some(Error::Quantum)),
        (normal(256), None),
        (normal(1 << 20), None),
        (normal((1 << 20) + 1), Some(Error::Quantum)),
        (
            ClassConfig::Normal {
                quantum_bytes: None,
            },
            None,
        ),
    ];
    for (config, expected) in cases {
        let mut port = Scheduler::new(&ethernet(), 0).unwrap();
        assert_eq!(port.add_class(&config).err(), expected, "{config:?}");
        let class = port.add_class(&paced(1_000_000)).unwrap();
        assert_eq!(
            port.change_class(class, &config, 0).err(),
            expected,
            "{config:?}"
        );
    }
}

/// The smallest rate: one largest frame moves a clock by less than 240 s,
/// counted at the class's layer.
#[test]
fn the_lowest_rate() {
    for line_rate_bps in [GBIT, 400 * GBIT, 1000 * GBIT] {
        for max_frame_bytes in [1514, 9014, 1 << 18] {
            for (layer, counted) in [
                (Layer::Link, max_frame_bytes),
                (Layer::Wire, max_frame_bytes + 24),
                (Layer::Ip, max_frame_bytes - 14),
            ] {
                let config = Config {
                    line_rate_bps,
                    max_frame_bytes,
                    layer,
                    ..ethernet()
                };
                let mut port = Scheduler::new(&config, 0).unwrap();
                let lowest = (u64::from(counted) * 8_000_000_000_000).div_ceil(LEAD_MAX_PS - 1);
                assert!(port.add_class(&paced(lowest)).is_ok(), "{config:?}");
                if lowest > 1 {
                    let refused = port.add_class(&paced(lowest - 1));
                    assert_eq!(refused, Err(Error::RateLow), "{config:?}");
                }
            }
        }
    }
}

/// What a host goes by is what the core goes by, bursts and layers included.
#[test]
fn the_least_rate_is_the_lowest_not_refused() {
    for line_rate_bps in [10_000, GBIT, 400 * GBIT, 1000 * GBIT] {
        for max_burst_bytes in [0, 1514, 65_536, 1 << 18] {
            for layer in [Layer::Link, Layer::Wire, Layer::Ip] {
                let config = Config {
                    line_rate_bps,
                    layer,
                    ..bursts(max_burst_bytes, 1514)
                };
                let least = Scheduler::least_rate_bps(&config).unwrap();
                let mut port = Scheduler::new(&config, 0).unwrap();
                assert!(port.add_class(&paced(least)).is_ok(), "{config:?}");
                if least > 1 {
                    let refused = port.add_class(&paced(least - 1));
                    assert_eq!(refused, Err(Error::RateLow), "{config:?}");
                }
            }
        }
    }
}

/// A frame that moves its clock by 240 s is one too many.
#[test]
fn the_lowest_rate_to_the_picosecond() {
    let config = Config {
        max_frame_bytes: 1500,
        layer: Layer::Link,
        ..ethernet()
    };
    let mut port = Scheduler::new(&config, 0).unwrap();
    assert_eq!(port.add_class(&paced(50)), Err(Error::RateLow));
    assert!(port.add_class(&paced(51)).is_ok());
}

/// No frame puts a clock out of reach, although one longer than the largest is
/// sent at the lowest rate.
#[test]
fn a_frame_longer_than_the_largest_costs_less_than_240_s() {
    let mut port = Scheduler::new(&ethernet(), 0).unwrap();
    let lowest = 1514 * 8 / 240 + 1;
    let id = port.add_class(&paced(lowest)).unwrap();
    port.activate(id, 0).unwrap();
    port.sent(id, 4 * 1514, true, 0).unwrap();
    assert_eq!(port.class_clock(id).unwrap().ps, LEAD_MAX_PS - 1);
}

/// A class that does not fit the new line is named, and nothing has changed.
#[test]
fn a_line_that_a_class_does_not_fit() {
    let mut port = Scheduler::new(&ethernet(), 0).unwrap();
    let slow = port.add_class(&paced(1_000)).unwrap();
    let fast = port.add_class(&paced(GBIT / 2)).unwrap();
    for id in [slow, fast] {
        port.activate(id, 0).unwrap();
        port.sent(id, 1514, true, 0).unwrap();
    }
    let clocks = [slow, fast].map(|id| port.class_clock(id).unwrap());
    let cases = [
        (Config::ethernet(GBIT / 4, 1514), Error::RateLine, fast),
        (Config::ethernet(1000 * GBIT, 1 << 18), Error::RateLow, slow),
    ];
    for (config, error, class) in cases {
        let refused = port.reconfigure(&config, 0).unwrap_err();
        assert_eq!((refused.error, refused.class), (error, Some(class)));
        assert_eq!([slow, fast].map(|id| port.class_clock(id).unwrap()), clocks);
        assert_eq!(port.next(0), Decision::Gap { wire_bytes: 1490 });
    }
}

/// A ceil has to fit the new line as well, and the lowest rate a longest burst.
#[test]
fn lines_that_a_ceil_or_a_burst_does_not_fit() {
    let mut port = Scheduler::new(&ethernet(), 0).unwrap();
    let class = port.add_class(&sharing(60, GBIT / 2)).unwrap();
    for (config, expected) in [
        (Config::ethernet(GBIT / 2, 1514), None),
        (Config::ethernet(GBIT / 2 - 1, 1514), Some(Error::Ceil)),
        (bursts(1 << 18, 1514), Some(Error::RateLow)),
    ] {
        let refused = port.reconfigure(&config, 0).err();
        assert_eq!(refused.map(|refused| refused.error), expected);
        let culprit = refused.and_then(|refused| refused.class);
        assert_eq!(culprit, expected.map(|_| class));
    }
}

#[test]
fn handles_of_classes_that_are_gone() {
    let mut port = Scheduler::new(&ethernet(), 0).unwrap();
    let old = port.add_class(&paced(GBIT / 2)).unwrap();
    port.activate(old, 0).unwrap();
    port.remove_class(old).unwrap();
    assert_eq!(
        port.next(0),
        Decision::Idle,
        "an active class may be removed"
    );
    let new = port.add_class(&paced(GBIT / 4)).unwrap();
    assert_eq!(old.index(), new.index(), "ids are reused");
    assert_ne!(old, new);
    assert_eq!(port.activate(old, 0), Err(Error::UnknownClass));
    assert_eq!(port.deactivate(old, 0), Err(Error::UnknownClass));
    assert_eq!(port.sent(old, 1514, true, 0), Err(Error::UnknownClass));
    assert_eq!(
        port.change_class(old, &paced(1), 0),
        Err(Error::UnknownClass)
    );
    assert_eq!(port.remove_class(old), Err(Error::UnknownClass));
    assert_eq!(port.class_clock(old), Err(Error::UnknownClass));
    assert_eq!(port.set_head(old, 84), Err(Error::UnknownClass));
    assert_eq!(port.is_throttled(old), Err(Error::UnknownClass));
    assert!(port.activate(new, 0).is_ok());
}

#[test]
fn frames_that_cannot_have_been_sent() {
    let mut port = Scheduler::new(&ethernet(), 0).unwrap();
    let class = port.add_class(&paced(GBIT / 2)).unwrap();
    assert_eq!(port.sent(class, 1514, true, 0), Err(Error::Inactive));
    port.activate(class, 0).unwrap();
    assert_eq!(port.sent(class, 0, true, 0), Err(Error::Length));
    assert_eq!(port.sent(class, (1 << 18) + 1, true, 0), Err(Error::Length));
    for (len_bytes, wire_bytes, frames) in [
        (0, 84, 1),
        (60, 0, 1),
        (60, 84, 0),
        ((1 << 18) + 1, 1 << 19, 200),
        (1 << 18, (1 << 22) + 1, 200),
    ] {
        let burst = Burst {
            len_bytes,
            wire_bytes,
            frames,
        };
        let refused = port.sent_burst(class, burst, true, 0);
        assert_eq!(refused, Err(Error::Length), "{burst:?}");
    }
    assert_eq!(port.wire_bytes(u32::MAX), Err(Error::Length));
    assert_eq!(port.global_ps(), 0);
    assert_eq!(port.set_global_ps(7), Err(Error::Busy));
}

/// More classes than the first storage holds: it grows while they are active,
/// and every one keeps its clock.
#[test]
fn storage_grows_under_way() {
    let mut port = Scheduler::new(&ethernet(), 0).unwrap();
    let mut ids = Vec::new();
    for n in 0..5000u64 {
        let id = port.add_class(&paced(100_000 + n)).unwrap();
        port.activate(id, 0).unwrap();
        assert_eq!(port.next(0), Decision::Send(id), "the others have sent");
        port.sent(id, 1514, true, 0).unwrap();
        ids.push((id, port.class_clock(id).unwrap()));
    }
    for (id, clock) in &ids {
        assert_eq!(port.class_clock(*id).unwrap(), *clock);
    }
    let first = ids
        .iter()
        .min_by_key(|(id, clock)| (clock.ps, *id))
        .unwrap();
    while let Decision::Gap { wire_bytes } = port.next(0) {
        port.gap_sent(wire_bytes);
    }
    assert_eq!(port.next(0), Decision::Send(first.0));
}
