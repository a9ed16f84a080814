// SPDX-License-Identifier: MIT OR Apache-2.0
//! Classes of a device: one rate, whose frames leave by several queues (core/src/part.c).

use pace::{ClassConfig, Config, Mode, Scheduler};

use crate::device::{GBIT, Host, MTU, SECOND_NS, STEP_NS, Wire, bytes_of, frame_ns};
use crate::wire::Random;

/// Keeps a backlog in one queue, another one every `move_ns`, until `until_ns`.
fn keep_moving(host: &mut Host, class: usize, move_ns: u64, until_ns: u64) {
    let mut queue = 0;
    let mut moved_ns = host.now_ns;
    while host.now_ns < until_ns {
        if host.now_ns - moved_ns >= move_ns {
            moved_ns = host.now_ns;
            queue = host.random.below(host.queues.len() as u64) as usize;
        }
        let missing = 8usize.saturating_sub(host.waits(queue, class));
        if missing > 0 {
            host.arrive(queue, class, &vec![MTU; missing]);
        }
        host.run_until(host.now_ns + 2_000);
    }
}

/// A queue that is alone sends each frame when a port of its own would.
#[test]
fn a_queue_alone_is_a_port_of_its_own() {
    let config = ClassConfig::Paced {
        rate_bps: 123_456_789,
    };
    let mut host = Host::new(4, GBIT);
    let class = host.class(config);
    host.arrive(2, class, &[MTU; 1000]);
    host.run_until(SECOND_NS);
    let mut own = Host::new(1, GBIT);
    own.queues[0].port = Scheduler::new(
        &Config {
            mode: Mode::Timer,
            ..Config::ethernet(GBIT, MTU)
        },
        0,
    )
    .unwrap();
    let id = own.queues[0].port.add_class(&config).unwrap();
    own.queues[0].ids.push(id);
    own.queues[0].waiting.push(Vec::new());
    own.arrive(0, 0, &[MTU; 1000]);
    own.run_until(SECOND_NS);
    let times = |host: &Host| host.sent.iter().map(|s| s.at_ns).collect::<Vec<_>>();
    assert_eq!(host.sent.len(), 1000.min(own.sent.len()));
    assert_eq!(times(&host), times(&own));
}

/// Backlogs in all queues take turns: together one frame after the other.
#[test]
fn backlogs_in_all_queues_share_one_rate() {
    for (queues, rate_bps) in [(2, 500_000_000), (4, 100_000_000), (16, 7_000_000_000)] {
        let mut host = Host::new(queues, 10 * GBIT);
        let class = host.class(ClassConfig::Paced { rate_bps });
        for queue in 0..queues as usize {
            host.arrive(queue, class, &vec![MTU; 40_000]);
        }
        host.run_until(SECOND_NS / 20);
        let (sent, due) = (
            host.bytes(class, 0, SECOND_NS / 20),
            bytes_of(rate_bps, SECOND_NS / 20),
        );
        let frames = sent.abs_diff(due) as f64 / f64::from(MTU);
        let burst = host.burstiness(class, rate_bps) as f64 / f64::from(MTU);
        assert!(frames <= 1.0, "{queues} queues: {frames}");
        assert!(burst <= 1.01, "{queues} queues: {burst} MTU");
    }
}

/// Demand that moves from queue to queue: what was sent is exact to a frame.
#[test]
fn rates_hold_while_demand_moves() {
    for (queues, move_ns) in [
        (2, 1_000_000),
        (4, 1_000_000),
        (8, 10_000_000),
        (16, 1_000_000),
        (16, 100_000_000),
    ] {
        for late_ns in [0, 20_000] {
            let rate_bps = 300_000_000;
            let mut host = Host::new(queues, GBIT);
            host.late_ns = late_ns;
            let class = host.class(ClassConfig::Paced { rate_bps });
            keep_moving(&mut host, class, move_ns, SECOND_NS / 4);
            let (sent, due) = (
                host.bytes(class, 0, SECOND_NS / 4),
                bytes_of(rate_bps, SECOND_NS / 4),
            );
            let frames = (sent as f64 - due as f64) / f64::from(MTU);
            let burst = host.burstiness(class, rate_bps) as f64 / f64::from(MTU);
            assert!(burst <= 1.6, "{queues} queues: {burst} MTU");
            assert!(frames.abs() <= 1.0, "{queues} queues: {frames}");
        }
    }
}

/// Any arrivals: what leaves in any time is worth at most that time, a step and a frame of
/// each queue; and no less where something waits all the time.
#[test]
fn no_window_has_more_than_its_time_and_a_step_of_each_queue() {
    for seed in 0..40 {
        let mut random = Random(100 + seed);
        let queues = [1, 2, 3, 4, 8, 16][random.below(6) as usize];
        let rate_bps = 1_000_000 * (1 + random.below(900));
        let mut host = Host::new(queues, GBIT);
        host.late_ns = [0, 0, 10_000, 60_000][random.below(4) as usize];
        host.random = Random(seed);
        let class = host.class(ClassConfig::Paced { rate_bps });
        let lens = [60, 200, 800, MTU];
        while host.now_ns < SECOND_NS / 10 {
            let queue = random.below(u64::from(queues)) as usize;
            let most = 1 << random.below(6);
            let frames: Vec<u32> = (0..=random.below(most))
                .map(|_| lens[random.below(4) as usize])
                .collect();
            if host.waits(queue, class) < 200 {
                host.arrive(queue, class, &frames);
            }
            let most = 1 << random.below(20);
            host.run_until(host.now_ns + random.below(most));
        }
        let step = bytes_of(rate_bps, STEP_NS) + 2 * u64::from(MTU);
        // What a host makes up for that was late.
        let late = bytes_of(rate_bps, host.late_ns);
        let most = u64::from(queues) * (step + late) + u64::from(MTU);
        let burst = host.burstiness(class, rate_bps);
        assert!(burst <= most, "seed {seed}: {burst} bytes, expected {most}");
    }
}

/// Best effort of all queues fills what paced classes leave, and no more; paced ones keep
/// their rates.
#[test]
fn best_effort_fills_the_line_of_the_device() {
    let mut host = Host::new(4, GBIT);
    let paced = host.class(ClassConfig::Paced {
        rate_bps: 300_000_000,
    });
    let normal = host.class(ClassConfig::Normal {
        quantum_bytes: None,
    });
    host.run_until(1_000);
    for queue in 0..4 {
        host.arrive(queue, paced, &vec![MTU; 8000]);
        host.arrive(queue, normal, &vec![MTU; 8000]);
    }
    host.run_until(SECOND_NS / 10);
    let ns = SECOND_NS / 10 - 1_000;
    let wire = |class| {
        let bytes = host.bytes(class, 0, SECOND_NS);
        bytes / u64::from(MTU) * u64::from(MTU + 24)
    };
    let paced_off = host
        .bytes(paced, 0, SECOND_NS)
        .abs_diff(bytes_of(300_000_000, ns));
    let (all, line) = (wire(paced) + wire(normal), bytes_of(GBIT, ns));
    assert!(paced_off <= 4 * u64::from(MTU), "{paced_off}");
    let slack = 8 * (bytes_of(GBIT, STEP_NS) + u64::from(MTU));
    assert!(all <= line + slack, "{all} of {line}");
    assert!(all + slack >= line, "{all} of {line}");
    let burst = host.burstiness(paced, 300_000_000);
    assert!(burst <= 3 * u64::from(MTU), "{burst}");
}

/// Rates beyond the line: each class loses the same part, wherever its frames wait.
#[test]
fn rates_beyond_the_line_share_in_proportion() {
    let mut host = Host::new(4, GBIT);
    let rates = [800_000_000, 400_000_000, 400_000_000, 200_000_000];
    let classes = rates.map(|rate_bps| host.class(ClassConfig::Paced { rate_bps }));
    // One class in all queues, the others in some.
    for (at, queues) in [(0, 0..4), (1, 1..2), (2, 2..4), (3, 0..1)] {
        for queue in queues {
            host.arrive(queue, classes[at], &vec![MTU; 20_000]);
        }
    }
    host.run_until(SECOND_NS / 20);
    let from_ns = host.now_ns;
    host.run_until(SECOND_NS / 4);
    let got = classes.map(|class| host.bytes(class, from_ns, SECOND_NS));
    let sum: u64 = got.iter().sum();
    let line = bytes_of(GBIT, SECOND_NS / 4 - from_ns) * 1514 / 1538;
    assert!(sum.abs_diff(line) <= line / 100, "{sum} of {line}");
    for (got, rate) in got.into_iter().zip(rates) {
        let due = sum * (rate / 100_000_000) / 18;
        assert!(got.abs_diff(due) <= 4 * u64::from(MTU), "{got} of {due}");
    }
}

/// A ceil is the device's, too, and what is guaranteed stays so.
#[test]
fn a_ceil_holds_for_the_device() {
    let mut host = Host::new(4, GBIT);
    let borrower = host.class(ClassConfig::Borrowing {
        rate_bps: 100_000_000,
        ceil_bps: 400_000_000,
    });
    let paced = host.class(ClassConfig::Paced {
        rate_bps: 200_000_000,
    });
    for queue in 0..4 {
        host.arrive(queue, borrower, &vec![MTU; 8000]);
        host.arrive(queue, paced, &vec![MTU; 8000]);
    }
    host.run_until(SECOND_NS / 10);
    let got = [borrower, paced].map(|class| host.bytes(class, 0, SECOND_NS));
    let due = [400_000_000, 200_000_000].map(|rate| bytes_of(rate, SECOND_NS / 10));
    // What is borrowed waits for its turn on the line.
    assert!(
        got[0].abs_diff(due[0]) <= due[0] / 200,
        "{got:?} of {due:?}"
    );
    assert!(
        got[1].abs_diff(due[1]) <= 4 * u64::from(MTU),
        "{got:?} of {due:?}"
    );
}

/// Far below a rate, of a class or of the line, no queue waits for the turn of another, only for
/// the frames that are ahead.
#[test]
fn far_below_a_rate_a_queue_waits_for_frames_only() {
    let line_bps = 100 * GBIT;
    let configs = [
        ClassConfig::Paced { rate_bps: line_bps },
        ClassConfig::Normal {
            quantum_bytes: None,
        },
    ];
    for config in configs {
        for (queues, load) in [(2, 1000), (2, 50), (8, 200)] {
            let mut host = Host::new(queues, line_bps);
            let class = host.class(config);
            host.run_until(SECOND_NS);
            let mut worst_ns = 0;
            for _ in 0..5_000 {
                let queue = host.random.below(u64::from(queues)) as usize;
                let (at_ns, before) = (host.now_ns, host.sent.len());
                // The second frame waits for the first, and keeps the class active.
                host.arrive(queue, class, &[MTU; 2]);
                host.run_until(at_ns + 10);
                host.arrive((queue + 1) % queues as usize, class, &[MTU]);
                host.run_until(at_ns + 3 * frame_ns(line_bps) * load);
                assert_eq!(host.sent.len(), before + 3, "{queues} queues at 1/{load}");
                worst_ns = worst_ns.max(host.sent[before + 2].at_ns - at_ns);
            }
            let most_ns = 10 * frame_ns(line_bps);
            assert!(
                worst_ns <= most_ns,
                "{config:?}, {queues} queues at 1/{load}: {worst_ns} ns"
            );
        }
    }
}

/// Queues that send frame after frame seldom touch the clock: a few times in the longest step.
#[test]
fn a_queue_takes_its_steps_by_what_it_sends() {
    let line_bps = 100 * GBIT;
    for (queues, load) in [(1, 20), (2, 20), (4, 100), (16, 50)] {
        let mut host = Host::new(queues, line_bps);
        let class = host.class(ClassConfig::Paced { rate_bps: line_bps });
        let given_ps = |host: &Host| host.classes[class].as_ref().unwrap().given_ps();
        let (mut steps, mut frames) = (0, 0);
        host.run_until(SECOND_NS);
        while host.now_ns < SECOND_NS + SECOND_NS / 20 {
            let queue = host.random.below(u64::from(queues)) as usize;
            let before_ps = given_ps(&host);
            host.arrive(queue, class, &[MTU]);
            steps += u64::from(given_ps(&host) != before_ps);
            frames += 1;
            host.run_until(host.now_ns + frame_ns(line_bps) * load);
        }
        assert_eq!(host.sent.len(), frames);
        let most = 4 * u64::from(queues) * SECOND_NS / 20 / STEP_NS;
        assert!(
            steps <= most,
            "{queues} queues at 1/{load}: {steps} steps for {frames} frames"
        );
    }
}

/// Classes that wait in the same queues share a full group in proportion to their rates.
#[test]
fn classes_of_a_full_group_share_it() {
    for (queues, rate_bps, most) in [
        (2, 300_000_000, 0.01),
        (4, 300_000_000, 0.015),
        (4, 3 * GBIT, 0.01),
        (16, GBIT, 0.06),
    ] {
        let mut host = Host::new(queues, 10 * GBIT);
        let group = host.group(rate_bps, rate_bps);
        let classes = [4, 2, 2].map(|parts| {
            let config = ClassConfig::Borrowing {
                rate_bps: rate_bps * parts / 6,
                ceil_bps: rate_bps,
            };
            host.class_in(Some(group), config)
        });
        for queue in 0..queues as usize {
            for class in classes {
                host.arrive(queue, class, &vec![MTU; 15_000]);
            }
        }
        let (from_ns, until_ns) = (SECOND_NS / 20, SECOND_NS / 4);
        host.run_until(until_ns);
        let group = bytes_of(rate_bps, until_ns - from_ns) as f64;
        for (class, due) in classes.into_iter().zip([0.5, 0.25, 0.25]) {
            let got = host.bytes(class, from_ns, until_ns) as f64 / group;
            assert!(
                (got / due - 1.0).abs() <= most,
                "{queues} queues, {rate_bps} bit/s: {got:.4} of {due}"
            );
        }
    }
}

/// A group's rate is the device's, its classes share it in proportion to their rates if they
/// wait in the same queues, and a class in it has its own rate once.
#[test]
fn a_group_holds_for_the_device() {
    let mut host = Host::new(4, GBIT);
    let full = host.group(300_000_000, 300_000_000);
    let light = host.group(200_000_000, 400_000_000);
    let shares = [200_000_000, 100_000_000, 100_000_000].map(|rate_bps| {
        let config = ClassConfig::Borrowing {
            rate_bps,
            ceil_bps: 300_000_000,
        };
        host.class_in(Some(full), config)
    });
    let own = host.class_in(
        Some(light),
        ClassConfig::Paced {
            rate_bps: 150_000_000,
        },
    );
    for queue in 0..4 {
        for class in shares {
            host.arrive(queue, class, &vec![MTU; 8000]);
        }
        host.arrive(queue, own, &vec![MTU; 8000]);
    }
    host.run_until(SECOND_NS / 20);
    let from_ns = host.now_ns;
    host.run_until(SECOND_NS / 4);
    let ns = SECOND_NS / 4 - from_ns;
    let got = shares.map(|class| host.bytes(class, from_ns, SECOND_NS));
    let sum: u64 = got.iter().sum();
    let due = bytes_of(300_000_000, ns);
    assert!(sum.abs_diff(due) <= due / 200, "{sum} of {due}");
    for (got, parts) in got.into_iter().zip([2, 1, 1]) {
        let due = sum * parts / 4;
        assert!(got.abs_diff(due) <= due / 50, "{got} of {due}");
    }
    let own = host.bytes(own, from_ns, SECOND_NS);
    let due = bytes_of(150_000_000, ns);
    assert!(own.abs_diff(due) <= 4 * u64::from(MTU), "{own} of {due}");
}

/// While paced frames fill the line, the time that best effort could not use is not charged to
/// it: afterwards it has the line at once.
#[test]
fn best_effort_owes_nothing_for_time_that_others_had() {
    let mut host = Host::new(2, GBIT);
    let paced = host.class(ClassConfig::Paced {
        rate_bps: 983_500_000,
    });
    let normal = host.class(ClassConfig::Normal {
        quantum_bytes: None,
    });
    for queue in 0..2 {
        host.arrive(queue, normal, &vec![MTU; 6000]);
    }
    host.run_until(1_000_000);
    host.arrive(0, paced, &vec![MTU; 1600]);
    while host.waits(0, paced) > 0 {
        host.run_until(host.now_ns + 10_000);
    }
    let from_ns = host.now_ns;
    host.run_until(from_ns + 10_000_000);
    let sent = host.bytes(normal, from_ns, SECOND_NS) * u64::from(MTU + 24) / u64::from(MTU);
    let line = bytes_of(GBIT, 10_000_000);
    assert!(sent >= line * 9 / 10, "{sent} of {line}");
    // A ceil that the line left no room for is not owed either.
    let mut host = Host::new(2, GBIT);
    let borrower = host.class(ClassConfig::Borrowing {
        rate_bps: 50_000_000,
        ceil_bps: 500_000_000,
    });
    let paced = host.class(ClassConfig::Paced {
        rate_bps: 930_000_000,
    });
    for queue in 0..2 {
        host.arrive(queue, borrower, &vec![MTU; 6000]);
        host.arrive(queue, paced, &vec![MTU; 800]);
    }
    while host.waits(0, paced) + host.waits(1, paced) > 0 {
        host.run_until(host.now_ns + 10_000);
    }
    let from_ns = host.now_ns;
    host.run_until(from_ns + 10_000_000);
    let (sent, due) = (
        host.bytes(borrower, from_ns, SECOND_NS),
        bytes_of(500_000_000, 10_000_000),
    );
    assert!(sent >= due * 9 / 10, "{sent} of {due}");
    assert!(sent <= due * 11 / 10, "{sent} of {due}");
}

/// Rates beyond the line share it in proportion, too, where the device takes less than psp hands
/// out: it sends a frame of each of its queues in turn, and stops a queue that holds enough.
#[test]
fn a_device_that_holds_little_does_not_change_the_shares() {
    for limit_bytes in [1, 3000, 10_000, 30_000, 100_000] {
        for (rates, due) in [
            ([80, 40], [65.6, 32.8]),
            ([60, 60], [49.2, 49.2]),
            ([50, 40], [50.0, 40.0]),
        ] {
            let mut host = Host::new(4, GBIT / 10);
            host.wire = Some(Wire::new(4, GBIT / 10, limit_bytes));
            let classes = rates.map(|rate| {
                host.class(ClassConfig::Paced {
                    rate_bps: rate * GBIT / 1000,
                })
            });
            for (queue, &class) in classes.iter().enumerate() {
                host.arrive(queue, class, &vec![MTU; 8000]);
            }
            host.run_until(SECOND_NS / 10);
            let from_ns = host.now_ns;
            host.run_until(SECOND_NS);
            for (class, due) in classes.into_iter().zip(due) {
                let bytes = host.bytes(class, from_ns, SECOND_NS);
                let got = bytes as f64 / bytes_of(GBIT / 1000, SECOND_NS - from_ns) as f64;
                assert!(
                    (got / due - 1.0).abs() < 0.002,
                    "{limit_bytes}, {rates:?}: {got} of {due}"
                );
            }
        }
    }
}

/// A clock that has stood for months is behind, whichever half of its circle it is on.
#[test]
fn a_class_that_was_silent_for_months_sends_at_once() {
    for days in [50, 104, 120, 150, 200] {
        let mut host = Host::new(2, GBIT);
        let class = host.class(ClassConfig::Paced {
            rate_bps: 10_000_000,
        });
        host.arrive(0, class, &[MTU; 4]);
        host.run_until(SECOND_NS);
        host.run_until(SECOND_NS + days * 86_400 * SECOND_NS);
        let (from_ns, frame_ns) = (host.now_ns, frame_ns(10_000_000));
        for queue in [1, 0] {
            host.arrive(queue, class, &[MTU; 4]);
        }
        host.run_until(from_ns + SECOND_NS);
        let times: Vec<_> = host.sent[4..]
            .iter()
            .map(|sent| sent.at_ns - from_ns)
            .collect();
        assert_eq!(times.len(), 8, "{days} days");
        assert_eq!(times[0], 0, "{days} days");
        assert!(
            times[7] >= 6 * frame_ns && times[7] <= 8 * frame_ns,
            "{days} days: {times:?}"
        );
    }
}

/// What the classes offer to the line is known to all queues: each class once, while it waits in any.
#[test]
fn each_class_is_counted_once_while_it_waits_anywhere() {
    let mut host = Host::new(4, GBIT / 10);
    let rates = [40, 20, 10].map(|mbit| mbit * 1_000_000);
    let classes = rates.map(|rate_bps| host.class(ClassConfig::Paced { rate_bps }));
    let load_of = |rate: u64| (rate * u64::from(MTU + 24)).div_ceil(u64::from(MTU));
    let mut random = Random(5);
    for _ in 0..4_000 {
        if random.below(3) == 0 {
            let (queue, at) = (random.below(4) as usize, random.below(3) as usize);
            let frames = 1 + random.below(6) as usize;
            host.arrive(queue, classes[at], &vec![MTU; frames]);
        }
        host.run_until(host.now_ns + 200_000);
        let waits = |class| (0..4).any(|queue| host.waits(queue, class) > 0);
        let loads = classes
            .iter()
            .zip(rates)
            .filter(|(class, _)| waits(**class));
        let loads: u64 = loads.map(|(_, rate)| load_of(rate)).sum();
        assert_eq!(host.device.load_bps(), loads, "at {} ns", host.now_ns);
    }
}
