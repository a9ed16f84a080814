// SPDX-License-Identifier: MIT OR Apache-2.0
//! Changes of a class that several queues send: each queue is told on its own, one after the
//! other, as `tc class change` does below mq.

use pace::ClassConfig;

use crate::device::{Host, MTU, bytes_of, frame_ns};
use crate::wire::Random;

const MS: u64 = 1_000_000;
const QUEUES: u64 = 4;

fn paced(rate_bps: u64) -> ClassConfig {
    ClassConfig::Paced { rate_bps }
}

/// Tells the queues, `apart_ns` after each other, from another one on each time.
fn tell(host: &mut Host, class: usize, config: &ClassConfig, apart_ns: u64) {
    let first = host.random.below(QUEUES) as usize;
    for at in 0..host.queues.len() {
        let queue = (at + first) % host.queues.len();
        let now_ns = host.now_ns;
        let q = &mut host.queues[queue];
        q.port.change_class(q.ids[class], config, now_ns).unwrap();
        host.serve(queue);
        host.run_until(now_ns + apart_ns);
    }
}

fn backlog(host: &mut Host, class: usize) {
    for queue in 0..host.queues.len() {
        host.arrive(queue, class, &[MTU; 8000]);
    }
}

/// The most that left in any time of `ns`, bytes.
fn most_in(host: &Host, class: usize, from_ns: u64, ns: u64) -> u64 {
    let sent: Vec<_> = host
        .of(class)
        .filter(|sent| sent.at_ns >= from_ns)
        .collect();
    let (mut most, mut sum, mut first) = (0, 0, 0);
    for last in &sent {
        sum += u64::from(last.len);
        while sent[first].at_ns + ns <= last.at_ns {
            sum -= u64::from(sent[first].len);
            first += 1;
        }
        most = most.max(sum);
    }
    most
}

#[test]
fn a_slow_class_of_all_queues_is_fast_at_once_and_not_too_fast() {
    let fast = 30_000_000;
    for slow in [8000, 16_000, 64_000, 1_000_000] {
        for apart_ns in [0, 20_000, 3 * MS] {
            for ceil in [0, fast] {
                let mut host = Host::new(QUEUES as u32, 100_000_000);
                let config = |rate_bps| match ceil {
                    0 => paced(rate_bps),
                    ceil_bps => ClassConfig::Borrowing { rate_bps, ceil_bps },
                };
                let class = host.class(config(slow));
                backlog(&mut host, class);
                host.run_until(20 * MS);
                tell(&mut host, class, &config(fast), apart_ns);
                let (told_ns, what) = (host.now_ns, format!("{slow}, {apart_ns}, {ceil}"));
                host.run_until(told_ns + 1500 * MS);
                // Each queue may have a step before others, and the driver's timer is exact.
                let soon_ns = (QUEUES + 2) * frame_ns(fast);
                assert!(
                    host.bytes(class, told_ns, told_ns + soon_ns) > 0,
                    "{what}: silent"
                );
                let due = bytes_of(fast, 100 * MS);
                let most = most_in(&host, class, told_ns, 100 * MS);
                assert!(
                    most <= due + (QUEUES + 3) * u64::from(MTU),
                    "{what}: {most} of {due}"
                );
                let sent = host.bytes(class, told_ns, host.now_ns);
                let due = bytes_of(fast, 1500 * MS);
                assert!(
                    sent + (QUEUES + 3) * u64::from(MTU) >= due,
                    "{what}: {sent} of {due}"
                );
                let each = (0..host.queues.len()).map(|queue| 8000 - host.waits(queue, class));
                let (least, most) = (each.clone().min().unwrap(), each.max().unwrap());
                assert!(
                    most - least <= most / 5,
                    "{what}: {least} to {most} frames a queue"
                );
            }
        }
    }
}

#[test]
fn rates_of_all_queues_change_in_any_order() {
    for seed in 1..=40 {
        let mut random = Random(seed * 15_485_863);
        let mut host = Host::new(QUEUES as u32, 1_000_000_000);
        let mut rate = 8000 << random.below(14);
        let class = host.class(paced(rate));
        backlog(&mut host, class);
        // Units of a byte / 8e9.
        let mut due = 0u128;
        let mut since_ns = 0;
        for _ in 0..30 {
            let pause_ns = 1 << random.below(25);
            host.run_until(host.now_ns + pause_ns);
            due += u128::from(rate) * u128::from(host.now_ns - since_ns);
            since_ns = host.now_ns;
            rate = 8000 << random.below(14);
            tell(&mut host, class, &paced(rate), 0);
        }
        host.run_until(host.now_ns + 100 * MS);
        due += u128::from(rate) * u128::from(host.now_ns - since_ns);
        let (sent, due) = (
            host.bytes(class, 0, host.now_ns),
            (due / 8_000_000_000) as u64,
        );
        let room = (2 * QUEUES + 2) * u64::from(MTU);
        assert!(sent <= due + room, "seed {seed}: {sent} of {due}");
        assert!(sent + room >= due, "seed {seed}: {sent} of {due}");
    }
}
