// SPDX-License-Identifier: MIT OR Apache-2.0
//! Groups of a device: what is guaranteed in one holds whichever queues its classes and those that
//! borrow from them wait in (core/src/lane.c).

use pace::ClassConfig;

use crate::device::{GBIT, Host, MTU, SECOND_NS, bytes_of};
use crate::wire::Random;

const MBIT: u64 = 1_000_000;
const LINE_BPS: u64 = 100 * MBIT;

/// Keeps a backlog of 64 frames of each of these (queue, class) until `until_ns`.
fn keep(host: &mut Host, backlogs: &[(usize, usize)], until_ns: u64) {
    while host.now_ns < until_ns {
        for &(queue, class) in backlogs {
            let missing = 64usize.saturating_sub(host.waits(queue, class));
            if missing > 32 {
                host.arrive(queue, class, &vec![MTU; missing]);
            }
        }
        host.run_until(host.now_ns + 500_000);
    }
}

/// Runs for .2 s, and then for .8 s; returns the rates of the classes in that time.
fn rates(host: &mut Host, backlogs: &[(usize, usize)]) -> Vec<f64> {
    let (from_ns, until_ns) = (SECOND_NS / 5, SECOND_NS);
    keep(host, backlogs, until_ns);
    (0..host.classes.len())
        .map(|class| {
            let bytes = host.bytes(class, from_ns, until_ns);
            bytes as f64 / bytes_of(MBIT, until_ns - from_ns) as f64
        })
        .collect()
}

#[track_caller]
fn assert_near(got: f64, due: f64, part: f64, what: &str) {
    assert!(
        (got / due - 1.0).abs() <= part,
        "{what}: {got:.2} of {due:.2}"
    );
}

fn normal() -> ClassConfig {
    ClassConfig::Normal {
        quantum_bytes: None,
    }
}

fn paced(rate_mbit: u64) -> ClassConfig {
    ClassConfig::Paced {
        rate_bps: rate_mbit * MBIT,
    }
}

fn borrowing(rate_mbit: u64, ceil_mbit: u64) -> ClassConfig {
    ClassConfig::Borrowing {
        rate_bps: rate_mbit * MBIT,
        ceil_bps: ceil_mbit * MBIT,
    }
}

/// A class alone in its queue has the rate that its group guarantees it, beside others of the
/// group that borrow, or that are best effort, in all other queues.
#[test]
fn a_guaranteed_rate_is_kept_beside_those_that_borrow() {
    for (spare, has_rate) in [(borrowing(10, 40), true), (normal(), false)] {
        for also_here in [false, true] {
            for late_ns in [0, 30_000] {
                let mut host = Host::new(4, LINE_BPS);
                host.late_ns = late_ns;
                let group = host.group(40 * MBIT, 40 * MBIT);
                let a = host.class_in(Some(group), paced(30));
                let b = host.class_in(Some(group), spare);
                let mut backlogs = vec![(0, a), (1, b), (2, b), (3, b)];
                if also_here {
                    backlogs.push((0, b));
                }
                let got = rates(&mut host, &backlogs);
                let what = format!("rate {has_rate}, also {also_here}, late {late_ns}");
                assert_near(got[a], 30.0, 0.002, &what);
                assert_near(got[b], 10.0, 0.02, &what);
            }
        }
    }
}

/// The same of a group that has a ceil: with a line that has room, and one that others fill.
#[test]
fn a_guaranteed_rate_is_kept_in_a_group_with_a_ceil() {
    for is_full in [false, true] {
        let mut host = Host::new(4, LINE_BPS);
        let group = host.group(40 * MBIT, 60 * MBIT);
        let a = host.class_in(Some(group), paced(30));
        let b = host.class_in(Some(group), borrowing(5, 60));
        let other = host.class(paced(if is_full { 58 } else { 20 }));
        let backlogs = [(0, a), (1, b), (2, b), (3, b), (1, other)];
        let got = rates(&mut host, &backlogs);
        let what = format!("line full {is_full}: {got:?}");
        assert_near(got[a], 30.0, 0.002, &what);
        assert_near(got[other], if is_full { 58.0 } else { 20.0 }, 0.005, &what);
        assert_near(got[b], if is_full { 10.4 } else { 30.0 }, 0.03, &what);
    }
}

/// Any guaranteed rates, up to the group's, in any queues, beside what is to spare anywhere: the
/// group has its ceil, or almost, and never more.
#[test]
fn guaranteed_rates_are_kept_wherever_they_wait() {
    let mut random = Random(3);
    for run in 0..150 {
        let queues = 2 + random.below(7) as u32;
        let mut host = Host::new(queues, GBIT);
        let group_mbit = 20 + random.below(500);
        let ceil_mbit = group_mbit + [0, random.below(300)][random.below(2) as usize];
        let group = host.group(group_mbit * MBIT, ceil_mbit * MBIT);
        let is_normal = random.below(2) == 0;
        let mut left = group_mbit - u64::from(!is_normal);
        let (mut due, mut backlogs) = (vec![], vec![]);
        for _ in 0..1 + random.below(5) {
            let rate = (1 + random.below(group_mbit)).min(left);
            if rate == 0 {
                break;
            }
            left -= rate;
            let class = host.class_in(Some(group), paced(rate));
            due.push((class, rate as f64));
            for _ in 0..1 + random.below(3) {
                backlogs.push((random.below(queues.into()) as usize, class));
            }
        }
        let config = if is_normal {
            normal()
        } else {
            borrowing(left + 1, ceil_mbit)
        };
        let spare = host.class_in(Some(group), config);
        for queue in 0..queues as usize {
            if random.below(3) > 0 {
                backlogs.push((queue, spare));
            }
        }
        backlogs.sort_unstable();
        backlogs.dedup();
        let got = rates(&mut host, &backlogs);
        let frame = f64::from(MTU) * 8.0 / 0.8 / MBIT as f64;
        let what = format!(
            "run {run}, {queues} queues, group {group_mbit} to {ceil_mbit}, {due:?}, {backlogs:?}"
        );
        for (class, due) in due {
            let lost = due - got[class];
            assert!(
                lost <= 8.0 * frame + due / 500.0,
                "{what}: {} of {due}",
                got[class]
            );
        }
        let sum: f64 = got.iter().sum();
        assert!(
            sum <= ceil_mbit as f64 * 1.002 + 16.0 * frame,
            "{what}: {sum}"
        );
        if backlogs.iter().any(|&(_, class)| class == spare) {
            // What borrows has turns of its own ceil, too, and now and then one without the other.
            let part = if is_normal { 0.98 } else { 0.91 };
            assert!(
                sum >= ceil_mbit as f64 * part - 16.0 * frame,
                "{what}: {sum}"
            );
        }
    }
}

/// Rates that exceed their group share it in proportion, in whichever queues they wait.
#[test]
fn rates_beyond_the_group_share_it_in_different_queues() {
    for layout in [
        vec![(0, 0), (1, 1), (2, 2)],
        vec![(0, 0), (0, 1), (1, 2)],
        vec![(0, 0), (1, 0), (2, 1), (3, 2)],
        vec![(0, 0), (0, 1), (0, 2), (1, 0), (2, 1), (3, 2)],
    ] {
        let mut host = Host::new(4, GBIT);
        let group = host.group(300 * MBIT, 300 * MBIT);
        for rate in [300, 150, 150] {
            host.class_in(Some(group), paced(rate));
        }
        let got = rates(&mut host, &layout);
        let what = format!("{layout:?}: {got:.1?}");
        assert_near(got.iter().sum(), 300.0, 0.005, &what);
        for (class, due) in [(0, 150.0), (1, 75.0), (2, 75.0)] {
            assert_near(got[class], due, 0.03, &what);
        }
    }
}

/// A group whose rate the line cannot carry shares that with other classes, and its own among its
/// classes.
#[test]
fn a_group_shares_an_over_subscribed_line() {
    let mut host = Host::new(4, LINE_BPS);
    let group = host.group(80 * MBIT, 80 * MBIT);
    let a = host.class_in(Some(group), paced(60));
    let b = host.class_in(Some(group), paced(20));
    let other = host.class(paced(80));
    let got = rates(&mut host, &[(0, a), (1, b), (2, other)]);
    let line = 100.0 * f64::from(MTU) / f64::from(MTU + 24);
    let what = format!("{got:.2?}");
    assert_near(got[a], line * 3.0 / 8.0, 0.02, &what);
    assert_near(got[b], line / 8.0, 0.02, &what);
    assert_near(got[other], line / 2.0, 0.02, &what);
}
/// What is borrowed in different queues is shared as in one: in proportion to the rates, from the
/// line or from a group.
#[test]
fn what_is_borrowed_is_shared_by_rate() {
    let cases = [
        (vec![(20, 60), (10, 100)], vec![60.0, 38.4], 0.005),
        (
            vec![(20, 100), (10, 100), (10, 100)],
            vec![49.2, 24.6, 24.6],
            0.01,
        ),
        (
            vec![(1, 100), (1, 100), (2, 100)],
            vec![24.6, 24.6, 49.2],
            0.01,
        ),
        (
            vec![(30, 40), (10, 100), (5, 100)],
            vec![40.0, 38.9, 19.5],
            0.03,
        ),
    ];
    for (classes, due, part) in cases {
        for is_grouped in [false, true] {
            for in_one in [false, true] {
                let (line, all) = if is_grouped {
                    (GBIT, 100.0)
                } else {
                    (LINE_BPS, 98.44)
                };
                let mut host = Host::new(4, line);
                let group = is_grouped.then(|| host.group(100 * MBIT, 100 * MBIT));
                let layout: Vec<_> = classes
                    .iter()
                    .map(|&(rate, ceil)| host.class_in(group, borrowing(rate, ceil)))
                    .map(|class| (if in_one { 0 } else { class }, class))
                    .collect();
                let got = rates(&mut host, &layout);
                let what = format!("{classes:?}, group {is_grouped}, one {in_one}: {got:.2?}");
                assert_near(
                    got.iter().sum(),
                    all,
                    if is_grouped { 0.02 } else { 0.01 },
                    &what,
                );
                for (got, due) in got.iter().zip(&due) {
                    assert_near(
                        *got,
                        due * all / 98.44,
                        if is_grouped { 0.12 } else { part },
                        &what,
                    );
                }
            }
        }
    }
}

/// The most bytes that a group sends beyond its rate in any time, of frames by time.
fn excess_bytes(sent: &[(u64, u64)], rate_bps: u64) -> u64 {
    let (mut above, mut worst, mut last_ns) = (0.0f64, 0.0f64, 0);
    for &(at_ns, bytes) in sent {
        above = (above - (at_ns - last_ns) as f64 * rate_bps as f64 / 8e9).max(0.0) + bytes as f64;
        worst = worst.max(above);
        last_ns = at_ns;
    }
    worst as u64
}

/// While what is guaranteed comes and goes, and what is to spare waits anywhere, no frame at a
/// rate waits for long, and the group sends no more than its ceil and a round of steps.
#[test]
fn what_is_guaranteed_comes_and_goes() {
    let mut random = Random(7);
    for run in 0..60 {
        let queues = 2 + random.below(5) as usize;
        let mut host = Host::new(queues as u32, GBIT);
        let group_mbit = 40 + random.below(300);
        let ceil_mbit = group_mbit + [0, 100][random.below(2) as usize];
        let group = host.group(group_mbit * MBIT, ceil_mbit * MBIT);
        let rate = group_mbit / 2;
        let classes = [0, 1].map(|_| host.class_in(Some(group), paced(rate)));
        let spare = [normal(), borrowing(1, ceil_mbit)][random.below(2) as usize];
        let spare = host.class_in(Some(group), spare);
        let frame_ns = u64::from(MTU) * 8000 / rate;
        let (mut next_ns, mut arrived) = ([0, frame_ns / 3], [vec![], vec![]]);
        while host.now_ns < SECOND_NS / 4 {
            for queue in 0..queues {
                let missing = 16usize.saturating_sub(host.waits(queue, spare));
                if missing > 8 && random.below(40) > 0 {
                    host.arrive(queue, spare, &vec![MTU; missing]);
                }
            }
            for at in 0..2 {
                if host.now_ns >= next_ns[at] {
                    let queue = random.below(queues as u64) as usize;
                    arrived[at].push(host.now_ns);
                    host.arrive(queue, classes[at], &[MTU]);
                    // Single frames of its own rate, with a silence now and then.
                    let silence = if random.below(30) == 0 { 20 } else { 0 };
                    next_ns[at] = host.now_ns + frame_ns * (110 + 100 * silence) / 100;
                }
            }
            let until_ns = *next_ns.iter().min().unwrap();
            host.run_until(until_ns.min(host.now_ns + 200_000).max(host.now_ns + 1));
        }
        let what = format!("run {run}: {queues} queues, {group_mbit} to {ceil_mbit}");
        for at in 0..2 {
            let left: Vec<_> = host.of(classes[at]).map(|sent| sent.at_ns).collect();
            let waited = arrived[at]
                .iter()
                .zip(&left)
                .map(|(came, left)| left - came)
                .max();
            // A frame of each of the two and one to spare at the group's rate, and its own.
            let most = 2 * frame_ns + 3 * u64::from(MTU) * 8000 / group_mbit;
            assert!(waited <= Some(most), "{what}: {waited:?} ns of {most}");
        }
        let mut all: Vec<_> = host
            .sent
            .iter()
            .map(|sent| (sent.at_ns, u64::from(sent.len)))
            .collect();
        all.sort_unstable();
        let excess = excess_bytes(&all, ceil_mbit * MBIT);
        let step = u64::from(MTU).max(50_000 * ceil_mbit / 8000);
        let most = (2 * queues as u64 + 4) * step + 4 * u64::from(MTU);
        assert!(excess <= most, "{what}: {excess} of {most} bytes");
    }
}
