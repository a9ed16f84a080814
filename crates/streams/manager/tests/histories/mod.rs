// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random histories of managers, and what must hold after every step of each:
//!
//! - no link has more reserved than its budget, in memory and on disk;
//! - nothing is reserved without a live lease;
//! - what is granted stays reserved on the whole route as long as its lease is live;
//! - what coordinators have granted fits the links together, even if those who keep the links have
//!   lost their stores;
//! - nobody keeps bytes for a coordinator that does not know of them, once both can talk;
//! - a request id has one grant;
//! - in the end, when nobody refreshes, nothing is left.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    reason = "tests fail that way; numbers are small"
)]

mod disk;
mod liar;
mod model;
pub(crate) mod rng;
mod world;

use std::panic::{AssertUnwindSafe, catch_unwind};

use manager_proto::machine::Manager;
use manager_proto::record::{PartState, ReservationState, part_name};
use model::{Counts, Fault, Host, MANAGERS, S};
use world::World;

/// Number of histories, in `make test`, there with a liar, and in `make test-all`; the seed of the first.
const SOME: u64 = 500;
const LIED_TO: u64 = 250;
const ALL: u64 = 10_000;
/// Histories with each fault, and in how many it is found at least, in `make test` and in `make test-all`.
const FAULTY: u64 = 1_000;
const FOUND: usize = 1;
const FOUND_ALL: usize = 3;
const SEED: u64 = 20_070_200;
/// Variable with the seed of a history whose events are printed.
const TRACED: &str = "PSPACER_HISTORY";
/// Variable that has one of the managers lie in it.
const LIED: &str = "PSPACER_HISTORY_LIAR";
/// How long talkers ask and trouble lasts.
const BUSY_NS: u64 = 25 * S;
/// After trouble has ended, everybody has claimed what he has in this time.
const CLAIMED_NS: u64 = 30 * S;
/// After that every lease, hold and memory of an ended reservation is over.
const QUIET_NS: u64 = 80 * S;

fn histories(some: u64) -> u64 {
    if testkit::everything() { ALL } else { some }
}

fn is_liar(world: &World, host: &Host) -> bool {
    let liar = world.liar.map(|at| &world.hosts[at].name);
    liar == Some(&host.name)
}

/// What a manager keeps has names, whoever has asked for it.
fn check_names(world: &World) {
    for host in &world.hosts {
        for name in host.disk.parts.keys() {
            let (_, id) = name.split_once('/').unwrap();
            assert!(admission::is_name(id), "{id:?} at {}", host.name);
        }
    }
}

fn check_budgets(world: &World) {
    for host in &world.hosts {
        let mut sums = vec![0; world.topology.links().len()];
        let parts = host.disk.parts.values();
        let others = parts.flat_map(|part| part.links.clone());
        // The bytes of a manager's own reservations follow from these.
        let own = host.disk.reservations.values();
        let own = own.filter(|of| of.state == ReservationState::Granted);
        let own = own.flat_map(|of| of.grant.links.clone());
        let own = own.filter(|link| world.keeper(&link.link) == host.name);
        for link in others.chain(own) {
            sums[world.topology.link_id(&link.link).unwrap().0] += link.bytes;
        }
        for (link, sum) in world.topology.links().iter().zip(sums) {
            assert!(
                sum <= link.budget_bytes,
                "{}: {sum} of {} on the disk of {}",
                link.name,
                link.budget_bytes,
                host.name
            );
        }
    }
}

fn check_leases(world: &World) {
    for host in &world.hosts {
        let Some(manager) = &host.manager else {
            continue;
        };
        let clock_ns = host.clock_ns(world.now_ns);
        let mut sums = vec![0; world.topology.links().len()];
        for (name, part) in manager.parts().all() {
            if part.state == PartState::Dead {
                continue;
            }
            // A wake-up at this very time may still be to come.
            assert!(
                part.expires_ns >= clock_ns,
                "{}: {name} is reserved beyond its lease",
                host.name
            );
            for link in &part.links {
                sums[world.topology.link_id(&link.link).unwrap().0] += link.bytes;
            }
        }
        for (n, sum) in sums.iter().enumerate() {
            let reserved_bytes = manager
                .parts()
                .ledger()
                .reserved_bytes(admission::LinkId(n));
            assert_eq!(*sum, reserved_bytes, "the ledger of {}", host.name);
            assert!(*sum <= world.topology.links()[n].budget_bytes);
        }
    }
}

/// What a coordinator has on disk as granted is on the disks of the whole route, for as long.
fn check_grants(world: &World) {
    let managers_of = |links: &[admission::LinkBytes]| -> Vec<String> {
        links.iter().map(|of| world.keeper(&of.link)).collect()
    };
    let honest = world.hosts.iter().filter(|host| !is_liar(world, host));
    for host in honest.filter(|host| host.has_clock()) {
        let clock_ns = host.clock_ns(world.now_ns);
        for (id, reservation) in &host.disk.reservations {
            let is_live = reservation.expires_ns > clock_ns;
            if reservation.state != ReservationState::Granted || !is_live {
                continue;
            }
            let left_ns = reservation.expires_ns - clock_ns;
            for name in managers_of(&reservation.grant.links) {
                let holder = world.hosts.iter().find(|h| h.name == name).unwrap();
                // Its own bytes follow from the reservation; a liar has what it likes.
                if holder.name == host.name || is_liar(world, holder) {
                    continue;
                }
                // A clock that jumped ends leases early, by its own account.
                if !holder.has_clock() || host.jumps + holder.jumps > 0 {
                    continue;
                }
                // What was granted before a store was lost is claimed, or ends; see the sums.
                let epoch = host.manager.as_ref().map(Manager::epoch);
                let is_of_now = epoch == Some(reservation.attempt.epoch);
                if (host.forgot_ns.is_some() && !is_of_now) || holder.forgot_ns.is_some() {
                    continue;
                }
                let part = holder.disk.parts.get(part_name(&host.name, id).as_str());
                let part = part.unwrap_or_else(|| panic!("{id}: nothing at {name}"));
                assert_eq!(part.state, PartState::Committed, "{id} at {name}");
                assert_eq!(part.attempt, reservation.attempt, "{id} at {name}");
                for link in &part.links {
                    assert!(reservation.grant.links.contains(link), "{id} at {name}");
                }
                let has_ns = part.expires_ns - holder.clock_ns(world.now_ns);
                assert!(has_ns >= left_ns, "{id} at {name} ends early");
            }
        }
    }
}

/// What all coordinators have granted fits, whatever those who keep the links remember.
fn check_sums(world: &World) {
    let mut sums = vec![0; world.topology.links().len()];
    for host in world.hosts.iter().filter(|host| host.has_clock()) {
        // Times of a clock that jumped, and grants that came back from a backup, say nothing.
        if host.jumps > 0 || host.forgot_ns.is_some() || is_liar(world, host) {
            continue;
        }
        let clock_ns = host.clock_ns(world.now_ns);
        for reservation in host.disk.reservations.values() {
            let is_live = reservation.expires_ns > clock_ns;
            if reservation.state == ReservationState::Granted && is_live {
                for link in &reservation.grant.links {
                    sums[world.topology.link_id(&link.link).unwrap().0] += link.bytes;
                }
            }
        }
    }
    for (link, sum) in world.topology.links().iter().zip(sums) {
        let keeper = world.topology.segment(link.segment).spec.manager.as_ref();
        let keeper = world.hosts.iter().find(|host| Some(&host.name) == keeper);
        if keeper.is_some_and(|of| of.jumps > 0 || !of.has_clock() || is_liar(world, of)) {
            continue;
        }
        let budget_bytes = link.budget_bytes;
        assert!(
            sum <= budget_bytes,
            "{}: {sum} of {budget_bytes} are granted",
            link.name
        );
    }
}

/// Nobody keeps bytes for a coordinator that does not know of them.
fn check_orphans(world: &World) {
    for host in world.hosts.iter().filter(|host| !is_liar(world, host)) {
        for (name, part) in &host.disk.parts {
            let (coordinator, id) = name.split_once('/').unwrap();
            let of = world
                .hosts
                .iter()
                .find(|of| of.name == coordinator)
                .unwrap();
            if is_liar(world, of) {
                continue;
            }
            let granted = of.disk.reservations.get(id);
            let is_known = granted.is_some_and(|of| of.state == ReservationState::Granted);
            assert!(
                part.state == PartState::Dead || is_known,
                "{name} is an orphan at {}",
                host.name
            );
        }
    }
}

/// What a talker was told is on the disk of whom it asked.
fn check_promises(world: &World) {
    if world.has_run_back {
        return;
    }
    let jumps = world.jumps();
    for (n, wish) in world.wishes.iter().enumerate() {
        let is_promised = wish.promised_until_ns > world.now_ns && wish.jumps == jumps;
        if !is_promised || wish.is_over || wish.is_void || world.crosses(n) {
            continue;
        }
        let on_disk = world.hosts[wish.at].disk.reservations.get(&wish.id);
        let state = on_disk.map(|reservation| reservation.state);
        assert_eq!(
            state,
            Some(ReservationState::Granted),
            "{} was promised",
            wish.id
        );
    }
}

/// Runs a history; panics if something does not hold.
fn run(seed: u64, fault: Fault, liar: Option<usize>) -> Counts {
    let mut world = World::new(seed, fault, liar);
    world.is_traced = std::env::var(TRACED).is_ok_and(|of| of == seed.to_string());
    let mut seen = u64::MAX;
    let mut check = |world: &World| {
        check_leases(world);
        // The rest can only become wrong by a change.
        if seen != world.changes {
            check_budgets(world);
            check_names(world);
            check_grants(world);
            check_sums(world);
            check_promises(world);
        }
        seen = world.changes;
    };
    while world.step(BUSY_NS) {
        check(&world);
    }
    world.heal();
    while world.step(BUSY_NS + CLAIMED_NS) {
        check(&world);
    }
    check_orphans(&world);
    while world.step(BUSY_NS + QUIET_NS) {
        check(&world);
    }
    for host in &world.hosts {
        assert_eq!(host.disk.count(), 0, "left on the disk of {}", host.name);
        let manager = host.manager.as_ref().unwrap();
        assert_eq!(*manager.parts().ledger(), admission::Ledger::default());
        assert_eq!(manager.next_wakeup_ns(), None, "{} has work", host.name);
    }
    world.counts
}

fn outcome(seed: u64, fault: Fault, liar: Option<usize>) -> Result<Counts, String> {
    let text = |error: Box<dyn std::any::Any + Send>| match error.downcast::<String>() {
        Ok(text) => *text,
        Err(error) => error
            .downcast::<&str>()
            .map_or_else(|_| "panic".to_owned(), |text| (*text).to_owned()),
    };
    catch_unwind(AssertUnwindSafe(|| run(seed, fault, liar))).map_err(text)
}

/// Who lies in a history, of those with a liar.
fn liar_of(seed: u64) -> Option<usize> {
    Some((seed % MANAGERS as u64) as usize)
}

/// Runs histories, half of them in another thread; returns what happened.
fn run_all(count: u64, liar: fn(u64) -> Option<usize>) -> Counts {
    let half = |first: u64| {
        let mut all = Counts::default();
        for seed in (SEED + first..SEED + count).step_by(2) {
            let counts = outcome(seed, Fault::None, liar(seed));
            all += counts.unwrap_or_else(|error| panic!("history {seed}: {error}"));
        }
        all
    };
    let all = std::thread::scope(|scope| {
        let other = scope.spawn(|| half(1));
        let mut all = half(0);
        all += other.join().unwrap();
        all
    });
    println!("{count}: {all:?}");
    // Of everything there is plenty.
    for (what, of) in [
        ("granted", all.granted),
        ("refused", all.refused),
        ("refreshed", all.refreshed),
        ("released", all.released),
        ("failed", all.failed),
        ("kills", all.kills),
        ("boots", all.boots),
        ("jumps", all.jumps),
        ("lost", all.lost),
        ("partitions", all.partitions),
        ("same again", all.same_again),
        ("forgotten", all.forgotten),
    ] {
        assert!(of >= count / 10, "{what}: only {of}");
    }
    all
}

#[test]
fn histories_keep_what_must_hold() {
    run_all(histories(SOME), |_| None);
}

/// One of the managers lies, in its own name: it refuses and delays what crosses it, and nothing else.
#[test]
fn histories_with_a_liar_keep_what_does_not_cross_it() {
    let count = histories(LIED_TO);
    let all = run_all(count, liar_of);
    assert!(all.lies >= count * 50, "{} lies", all.lies);
}

/// Runs the history that `PSPACER_HISTORY` names, if it names one.
#[test]
fn one_history() {
    if let Ok(seed) = std::env::var(TRACED) {
        let seed = seed.parse().expect("a number");
        let liar = std::env::var(LIED).ok().and_then(|_| liar_of(seed));
        println!("{:?}", run(seed, Fault::None, liar));
    }
}

#[test]
fn a_history_repeats() {
    let twice = [0, 1].map(|_| format!("{:?}", outcome(SEED, Fault::None, Some(1))));
    assert_eq!(twice[0], twice[1]);
}

/// The checker finds what is wrong: a store that is not durable, answers before it, leases that
/// nobody ends.
#[test]
fn faults_are_found() {
    let of_hosts = [
        Fault::SendsFirst,
        Fault::LosesLastChanges,
        Fault::SleepsTooLong,
        Fault::IsSaidToBeWhole,
        Fault::LosesClaims,
        Fault::ForgetsParts,
        Fault::ForgetsIds,
    ];
    let of_liars = [
        Fault::SpeaksForOthers,
        Fault::AnswersForOthers,
        Fault::BelievesLosses,
    ];
    let of_hosts = of_hosts.map(|fault| (fault, false));
    let of_liars = of_liars.map(|fault| (fault, true));
    let (faulty, least) = if testkit::everything() {
        (FAULTY, FOUND_ALL)
    } else {
        (FAULTY * FOUND as u64 / FOUND_ALL as u64, FOUND)
    };
    for (fault, has_liar) in of_hosts.into_iter().chain(of_liars) {
        let is_found = |seed: &u64| {
            let liar = liar_of(*seed).filter(|_| has_liar);
            outcome(*seed, fault, liar).is_err()
        };
        let found = (SEED..SEED + faulty).filter(is_found).take(least).count();
        assert!(
            found >= least,
            "{fault:?} was found in {found} of {faulty} histories"
        );
    }
}
