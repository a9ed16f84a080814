// SPDX-License-Identifier: MIT OR Apache-2.0
//! A history: talkers reserve, refresh and release at any of three managers, while members of etcd and
//! managers are killed, stopped, cut off, booted, and etcd is brought back from a backup. All the time
//! its records are checked. What happens when is chance of a seed; how the threads meet is not.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use admission::{LinkBytes, Refusal};
use linux_io::clock::boottime_ns;
use manager::etcd::gateway::Gateway;
use manager::etcd::seat::holder;
use manager_proto::answer::View;
use manager_proto::client::{Client, ClientError, Reserved};
use testkit::until;

use super::network::{Host, Network};
use super::processes::{Etcd, Logs, ManagerProcess, NET};
use super::records::{self, Records};
use super::requests::{ONLY, S, body};
use crate::histories::rng::Rng;

/// Set in the process that is a history: its seed.
pub const SEED: &str = "PSPACER_TEST_HISTORY";
/// Managers of each seat: of the only one, and of each of two.
const ONE_SEAT: &[(&str, usize)] = &[(ONLY, 3)];
const TWO_SEATS: &[(&str, usize)] = &[("m1", 2), ("m2", 2)];
const MEMBERS: usize = 3;
const TALKERS: u64 = 5;
/// A reservation of most of what there is: 82 frames.
const MOST: &str = "most";
const MOST_FRAMES: u16 = 45;
/// So long there is trouble.
const TROUBLE: Duration = Duration::from_secs(8);
/// Longest lease of a talker's.
const LONGEST_LEASE_S: u64 = 4;
/// Longest wait of a talker for an answer.
const ANSWER: Duration = Duration::from_millis(1500);

/// What a talker was promised.
#[derive(Clone, Debug)]
struct Promise {
    until_ns: u64,
    links: Vec<LinkBytes>,
    /// The talker has asked to free it, or was told that it has ended.
    is_over: bool,
    /// It was told so.
    is_ended: bool,
}

#[derive(Default)]
struct Counts {
    granted: AtomicU64,
    refused: AtomicU64,
    refreshed: AtomicU64,
    released: AtomicU64,
    failed: AtomicU64,
    checks: AtomicU64,
}

/// Where a manager runs: its host, and how often it was started.
struct Place {
    host: Host,
    starts: u64,
    booted: Host,
}

struct World {
    folder: PathBuf,
    network: Network,
    etcd: Etcd,
    managers: Vec<ManagerProcess>,
    /// The seat of each.
    seats: Vec<&'static str>,
    places: Mutex<Vec<Place>>,
    budgets: BTreeMap<String, u64>,
    promises: Mutex<BTreeMap<String, Promise>>,
    /// Whose release may still come: nobody has answered it.
    releasing: Mutex<BTreeSet<String>>,
    /// etcd is being brought back from a backup: nobody knows which promises count.
    is_unsure: AtomicBool,
    /// The start that decided when the backup was made.
    backup: Mutex<Option<u64>>,
    counts: Counts,
    said: Mutex<BTreeMap<&'static str, u64>>,
    /// What talkers asked and heard, by id: for whoever looks for the reason of a failure.
    heard: Mutex<BTreeMap<String, Vec<String>>>,
    is_over: AtomicBool,
}

/// Returns the network of [`NET`] with two managers: m1 of s, m2 of the others.
pub fn managed_net() -> String {
    let mut net = String::new();
    for name in ["m1", "m2"] {
        net += &format!("[[manager]]\nname = \"{name}\"\nurl = \"http://127.0.0.1:1\"\n");
    }
    for (n, part) in NET.split("medium =").enumerate() {
        if n > 0 {
            let name = if n == 1 { "m1" } else { "m2" };
            net += &format!("manager = \"{name}\"\nmedium =");
        }
        net += part;
    }
    net
}

/// Says that it is over, also if the history fails: nobody works on then.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Returns the seed, if this process shall be a history.
pub fn asked() -> Option<u64> {
    std::env::var(SEED).ok()?.parse().ok()
}

/// Returns the lines of what a history said that sum it up.
pub fn summary(said: &str) -> String {
    let lines = said.lines().filter(|line| line.starts_with("seed "));
    lines.map(|line| format!("{line}\n")).collect()
}

fn now_ns() -> u64 {
    boottime_ns().unwrap()
}

fn add(to: &AtomicU64) {
    to.fetch_add(1, Ordering::Relaxed);
}

pub fn run(seed: u64) {
    let since = Instant::now();
    let folder = tempfile::tempdir().unwrap();
    let _logs = Logs(folder.path().to_owned());
    let network = Network::new();
    let hosts = (0..MEMBERS).map(|n| network.host(&format!("etcd{n}"), n + 1));
    let etcd = Etcd::start_on(folder.path(), hosts.collect(), &[]);
    let mut rng = Rng::new(seed);
    let has_two = seed % 3 == 0;
    let of_seats = if has_two { TWO_SEATS } else { ONE_SEAT };
    let net = if has_two {
        managed_net()
    } else {
        NET.to_owned()
    };
    let seats = of_seats.iter();
    let seats: Vec<_> = seats.flat_map(|(name, n)| vec![*name; *n]).collect();
    let (mut managers, mut places) = (Vec::new(), Vec::new());
    for (n, seat) in seats.iter().enumerate() {
        let name = format!("manager{n}");
        let host = network.host(&name, 100 + n);
        let of = (name.as_str(), &host);
        let net = (net.as_str(), ["--name", seat]);
        let words = (net.0, &net.1[..]);
        managers.push(ManagerProcess::new(folder.path(), of, &etcd, words));
        places.push(Place {
            booted: host.clone(),
            host,
            starts: 0,
        });
    }
    let mut world = World {
        folder: folder.path().to_owned(),
        network,
        etcd,
        managers,
        seats,
        places: Mutex::new(places),
        budgets: BTreeMap::new(),
        promises: Mutex::default(),
        releasing: Mutex::default(),
        is_unsure: AtomicBool::new(false),
        backup: Mutex::default(),
        counts: Counts::default(),
        said: Mutex::default(),
        heard: Mutex::default(),
        is_over: AtomicBool::new(false),
    };
    for n in 0..world.managers.len() {
        world.start_manager(n, Some(&mut rng));
    }
    for manager in &world.managers {
        let client = manager.client();
        let links = until("a manager decides", || client.links().ok());
        let links = links.into_iter().map(|of| (of.link, of.budget_bytes));
        world.budgets.extend(links);
    }
    let first = world.managers[0].client();
    until("others have claimed what they have", || {
        world.reserve(&first, MOST, MOST_FRAMES, 3600 * S);
        world.promises.lock().unwrap().get(MOST).map(|_| ())
    });
    thread::scope(|threads| {
        let world = &world;
        let others: Vec<_> = (0..TALKERS)
            .map(|n| threads.spawn(move || world.talk(seed, n)))
            .chain([threads.spawn(|| world.watch())])
            .collect();
        let over = Over(&world.is_over);
        let end = Instant::now() + TROUBLE;
        if !has_two && rng.happens(40) {
            world.back_up();
        }
        while Instant::now() < end {
            world.rest(rng.between(200, 1200));
            world.trouble(&mut rng);
        }
        world.recover();
        drop(over);
        for other in others {
            other.join().unwrap();
        }
    });
    world.end();
    let Counts {
        granted,
        refused,
        refreshed,
        released,
        failed,
        checks,
    } = &world.counts;
    eprintln!(
        "seed {seed}: {granted:?} granted, {refused:?} refused, {refreshed:?} refreshed, {released:?} \
         released, {failed:?} without an answer, {checks:?} checks, {:?}, {} s",
        world.said.lock().unwrap(),
        since.elapsed().as_secs()
    );
    assert!(checks.load(Ordering::Relaxed) > 0);
}

impl World {
    fn talk(&self, seed: u64, talker: u64) {
        let mut rng = Rng::new((seed << 8) | talker);
        let clients = self.managers.iter().map(|of| of.client_within(ANSWER));
        let clients: Vec<_> = clients.collect();
        let mut own: Vec<(String, u16, u64, &str)> = Vec::new();
        let mut next = 0;
        while !self.is_over.load(Ordering::Relaxed) {
            let choice = rng.below(10);
            if own.is_empty() || choice < 4 {
                next += 1;
                let lease_ns = rng.between(1, LONGEST_LEASE_S) * S;
                let frames = rng.between(1, 5) as u16;
                let seat = self.seats[rng.below(self.seats.len() as u64) as usize];
                own.push((format!("t{talker}-{next}"), frames, lease_ns, seat));
            }
            // One of the last few, mostly the last.
            let back = rng.below(own.len().min(4) as u64) as usize;
            let at = own.len() - 1 - if rng.happens(50) { 0 } else { back };
            let (id, frames, lease_ns, seat) = &own[at];
            // An id means the same at all managers of a seat.
            let of_seat = clients
                .iter()
                .zip(&self.seats)
                .filter(|(_, of)| *of == seat);
            let of_seat: Vec<_> = of_seat.map(|(client, _)| client).collect();
            let client = of_seat[rng.below(of_seat.len() as u64) as usize];
            match choice {
                0..6 => self.reserve(client, id, *frames, *lease_ns),
                6..9 => self.refresh(client, id),
                _ => self.release(client, id),
            }
            sleep(Duration::from_millis(rng.between(5, 120)));
        }
    }

    fn hear(&self, id: &str, asked_ns: u64, what: &str) {
        let mut heard = self.heard.lock().unwrap();
        let of = heard.entry(id.to_owned()).or_default();
        of.push(format!("{asked_ns} to {}: {what}", now_ns()));
    }

    fn heard(&self, id: &str) -> String {
        let heard = self.heard.lock().unwrap();
        heard.get(id).map(|of| of.join("\n")).unwrap_or_default()
    }

    /// Takes down a promise. Time is counted from the question, so it is no longer than it was meant.
    fn promise(&self, asked_ns: u64, view: View) {
        let until_ns = asked_ns + view.expires_in_ns;
        self.hear(&view.id, asked_ns, &format!("until {until_ns}"));
        let mut promises = self.promises.lock().unwrap();
        let promise = promises.entry(view.id.clone()).or_insert(Promise {
            until_ns,
            links: view.links.clone(),
            is_over: self.releasing.lock().unwrap().contains(&view.id),
            is_ended: false,
        });
        promise.until_ns = promise.until_ns.max(until_ns);
        let is_sure = !self.is_unsure.load(Ordering::Relaxed);
        // One grant for an id, and none again after its end.
        assert_eq!(promise.links, view.links, "{}", view.id);
        let (id, is_ended) = (&view.id, promise.is_ended && is_sure);
        assert!(!is_ended, "{id} is granted once more\n{}", self.heard(id));
    }

    /// What was promised may only end by itself, or by its talker.
    fn ended(&self, id: &str, asked_ns: u64, error: &ClientError) {
        self.hear(id, asked_ns, &error.to_string());
        let ClientError::Refused { status, .. } = error else {
            return add(&self.counts.failed);
        };
        match status {
            404 | 410 => {
                let mut promises = self.promises.lock().unwrap();
                if let Some(promise) = promises.get_mut(id) {
                    let is_sure = !self.is_unsure.load(Ordering::Relaxed);
                    let ends = promise.is_over || promise.until_ns <= now_ns();
                    let heard = self.heard(id);
                    assert!(ends || !is_sure, "{id} was lost: {promise:?}\n{heard}");
                    promise.is_over = true;
                    promise.is_ended |= *status == 410;
                }
            }
            421 | 503 | 504 => add(&self.counts.failed),
            _ => panic!("{id}: {error}"),
        }
    }

    fn reserve(&self, client: &Client, id: &str, frames: u16, lease_ns: u64) {
        let asked_ns = now_ns();
        match client.reserve(&body(id, frames, lease_ns)) {
            Ok(Reserved::Granted(view)) => {
                self.promise(asked_ns, *view);
                add(&self.counts.granted);
            }
            Ok(Reserved::Refused(refused)) => {
                let is_full = matches!(refused.refusal, Refusal::Bandwidth { .. });
                assert!(is_full, "{refused:?}");
                add(&self.counts.refused);
            }
            Err(error) => self.ended(id, asked_ns, &error),
        }
    }

    fn refresh(&self, client: &Client, id: &str) {
        let asked_ns = now_ns();
        match client.refresh(id, None) {
            Ok(view) => {
                self.promise(asked_ns, view);
                add(&self.counts.refreshed);
            }
            // Perhaps never granted.
            Err(error) => self.ended(id, asked_ns, &error),
        }
    }

    fn release(&self, client: &Client, id: &str) {
        self.releasing.lock().unwrap().insert(id.to_owned());
        if let Some(promise) = self.promises.lock().unwrap().get_mut(id) {
            promise.is_over = true;
        }
        let asked_ns = now_ns();
        let answer = client.release(id);
        // Another may come late, and end what was granted meanwhile.
        if let Ok(_)
        | Err(ClientError::Refused {
            status: 404 | 410, ..
        }) = answer
        {
            self.releasing.lock().unwrap().remove(id);
        }
        match answer {
            Ok(_) => {
                self.hear(id, asked_ns, "released");
                if let Some(promise) = self.promises.lock().unwrap().get_mut(id) {
                    promise.is_ended = true;
                }
                add(&self.counts.released);
            }
            Err(error) => self.ended(id, asked_ns, &error),
        }
    }

    /// Starts a manager; perhaps its host has booted.
    fn start_manager(&self, n: usize, boots: Option<&mut Rng>) {
        let mut places = self.places.lock().unwrap();
        let place = &mut places[n];
        place.starts += 1;
        if let Some(rng) = boots {
            let id = self.folder.join(format!("boot{n}-{}", place.starts));
            std::fs::write(&id, format!("{:032x}\n", rng.below(u64::MAX))).unwrap();
            place.booted = place
                .host
                .booted(rng.between(1, 100_000), id.to_str().unwrap());
        }
        self.managers[n].start_on(&place.booted);
    }

    /// Starts managers again that found no etcd and have ended, as whoever runs them does.
    fn revive(&self) {
        for n in 0..self.managers.len() {
            if self.managers[n].has_ended() {
                self.note("ended by itself");
                self.start_manager(n, None);
            }
        }
    }

    fn note(&self, what: &'static str) {
        *self.said.lock().unwrap().entry(what).or_default() += 1;
    }

    fn rest(&self, ms: u64) {
        sleep(Duration::from_millis(ms));
        self.revive();
    }

    /// Returns the manager that decides, or the one that chance says.
    fn victim(&self, rng: &mut Rng) -> usize {
        let chance = rng.below(self.managers.len() as u64) as usize;
        let is_it = rng.happens(60);
        let seat = self.seats[chance];
        let url = holder(&self.etcd.gateway(), seat).ok().flatten();
        let decides = self.managers.iter().position(|of| Some(of.url()) == url);
        decides.filter(|_| is_it).unwrap_or(chance)
    }

    /// One trouble, and its end.
    fn trouble(&self, rng: &mut Rng) {
        let member = rng.below(MEMBERS as u64) as usize;
        let manager = self.victim(rng);
        let has_backup = self.backup.lock().unwrap().is_some();
        match rng.below(100) {
            _ if has_backup && rng.happens(25) => self.bring_back(),
            0..15 => {
                self.note("member killed");
                self.etcd.kill_member(member);
                self.rest(rng.between(100, 1500));
                self.etcd.start_member(member);
            }
            15..25 => {
                self.note("two members killed");
                let other = (member + 1) % MEMBERS;
                self.etcd.kill_member(member);
                self.etcd.kill_member(other);
                self.rest(rng.between(100, 2500));
                self.etcd.start_member(member);
                self.etcd.start_member(other);
            }
            25..45 => {
                let boots = rng.happens(50);
                self.note(if boots {
                    "host booted"
                } else {
                    "manager killed"
                });
                self.managers[manager].kill();
                self.rest(rng.between(50, 2500));
                self.start_manager(manager, boots.then_some(rng));
            }
            45..53 => self.cut(&format!("etcd{member}"), "member cut off", rng),
            53..65 => self.cut(&format!("manager{manager}"), "manager cut off", rng),
            65..73 => {
                self.note("member stopped");
                self.etcd.signal(member, "STOP");
                self.rest(rng.between(200, 4000));
                self.etcd.signal(member, "CONT");
            }
            73..85 => {
                self.note("manager stopped");
                self.managers[manager].signal("STOP");
                self.rest(rng.between(500, 6000));
                self.managers[manager].signal("CONT");
            }
            _ if self.seats[0] != ONLY => self.rest(100),
            _ if !has_backup => self.back_up(),
            _ => self.bring_back(),
        }
    }

    fn cut(&self, host: &str, what: &'static str, rng: &mut Rng) {
        self.note(what);
        self.network.set(host, false);
        self.rest(rng.between(500, 4000));
        self.network.set(host, true);
    }

    /// Returns the start that decides, and its manager with its number of starts.
    fn decides(&self) -> Option<(u64, (usize, u64))> {
        let gateway = self.etcd.gateway();
        let url = holder(&gateway, ONLY).ok().flatten()?;
        let n = self.managers.iter().position(|of| of.url() == url)?;
        let all = records::read(&gateway).ok()?;
        let epoch = all.get(ONLY)?.meta.as_ref()?.epoch;
        Some((epoch, (n, self.places.lock().unwrap()[n].starts)))
    }

    fn back_up(&self) {
        let Some((epoch, _)) = self.decides() else {
            return;
        };
        self.note("backed up");
        self.etcd.kill_all();
        self.etcd.copy(false);
        *self.backup.lock().unwrap() = Some(epoch);
        self.etcd.start_all();
    }

    /// Brings etcd back from the backup. Promises count on if the start that gave them is that of the
    /// backup, and its manager decides on: then it writes them once more.
    fn bring_back(&self) {
        let of_backup = self.backup.lock().unwrap().take();
        let before = self.decides();
        self.is_unsure.store(true, Ordering::Relaxed);
        self.etcd.kill_all();
        self.etcd.copy(true);
        self.etcd.start_all();
        let client = self.managers[0].client_within(ANSWER);
        let mut n = 0;
        // The answer to a change comes after all is written. What is refused is none.
        let after = until("a manager decides again", || {
            self.revive();
            n += 1;
            let probe = client.reserve(&body(&format!("probe{n}-{}", now_ns()), 1, S));
            let is_change = matches!(probe, Ok(Reserved::Granted(_)));
            is_change.then(|| self.decides())?
        });
        let is_kept = match (of_backup, before) {
            (Some(of_backup), Some((epoch, manager))) => of_backup == epoch && after.1 == manager,
            _ => false,
        };
        if is_kept {
            self.note("brought back, promises kept");
        } else {
            self.note("brought back, promises void");
            self.promises.lock().unwrap().clear();
        }
        self.is_unsure.store(false, Ordering::Relaxed);
    }

    /// All are well for a while.
    fn recover(&self) {
        for manager in &self.managers {
            let client = manager.client_within(ANSWER);
            until("all are back", || {
                self.revive();
                client.links().ok()
            });
        }
        self.rest(1000);
    }

    fn watch(&self) {
        let gateway = self.etcd.gateway();
        while !self.is_over.load(Ordering::Relaxed) {
            self.check(&gateway);
            sleep(Duration::from_millis(20));
        }
    }

    /// Looks at everything in etcd at one moment.
    fn check(&self, gateway: &Gateway) {
        let was_sure = !self.is_unsure.load(Ordering::Relaxed);
        let promised = self.promises.lock().unwrap().clone();
        // Without a majority nobody knows anything.
        let Ok(all) = records::read(gateway) else {
            return;
        };
        let read_ns = now_ns();
        let due: BTreeSet<_> = {
            let now = self.promises.lock().unwrap();
            // Between the first change after a backup has come back and the rest, records may be of both.
            if !was_sure || self.is_unsure.load(Ordering::Relaxed) {
                return;
            }
            let is_due = |id: &str, of: &Promise| {
                let is_over = now.get(id).is_none_or(|of| of.is_over);
                of.until_ns > read_ns && !is_over
            };
            let all = promised.iter().filter(|(id, of)| is_due(id, of));
            all.map(|(id, _)| id.clone()).collect()
        };
        if let Err(problem) = records::check(&all, &self.budgets, &due) {
            let own = promised.keys().filter(|id| problem.contains(*id));
            let own: Vec<_> = own.map(|id| self.heard(id)).collect();
            let said = self.said.lock().unwrap().clone();
            panic!("{problem}, {read_ns} {said:?} {own:?}\n{all:#?}");
        }
        add(&self.counts.checks);
    }

    /// Without talkers all leases end, and nothing stays but records, for a while.
    fn end(&self) {
        let client = self.managers[0].client_within(ANSWER);
        until("most is free", || match client.release(MOST) {
            Ok(_) => Some(()),
            Err(ClientError::Refused { status: 404, .. }) => Some(()),
            Err(_) => None,
        });
        let gateway = self.etcd.gateway();
        let read = || -> Option<BTreeMap<String, Records>> { records::read(&gateway).ok() };
        let ended = || records::check_end(&read()?).ok();
        until("all leases have ended", ended);
        for manager in &self.managers {
            let client = manager.client_within(ANSWER);
            // etcd was read beside the managers: one may hear later what it has committed.
            let own = || client.links().ok();
            until("all is free", || {
                own()?.iter().all(|of| of.reserved_bytes == 0).then_some(())
            });
        }
    }
}
