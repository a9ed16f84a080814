// SPDX-License-Identifier: MIT OR Apache-2.0
//! Managers, talkers, and a network that loses, repeats and reorders; hosts that are killed, boot
//! and jump in time. Everything is by chance, from one seed.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::sync::Arc;

use admission::Topology;
use manager_proto::answer::{Action, Answer, Caller, Command, Failure};
use manager_proto::machine::{Effects, Manager, Start};
use manager_proto::message::{Envelope, Message};

use super::disk::Disk;
use super::model::{
    Counts, Event, Fault, Heard, Host, LIMITS, MANAGERS, MS, Mail, NOBODY, S, WantedReservation,
    request, topology,
};
use super::rng::Rng;

pub struct World {
    pub rng: Rng,
    pub now_ns: u64,
    pub topology: Arc<Topology>,
    pub hosts: Vec<Host>,
    pub wishes: Vec<WantedReservation>,
    pub counts: Counts,
    pub fault: Fault,
    /// The manager that lies.
    pub liar: Option<usize>,
    pub heard: Heard,
    /// Talkers ask, and hosts are in trouble.
    pub is_busy: bool,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    order: u64,
    /// From whom, for whom.
    mail: Vec<Option<(usize, usize, Mail)>>,
    /// Envelopes by ticket: who waits for the reply.
    envelopes: Vec<usize>,
    /// At whom, with which ticket, when, what.
    asked: Vec<(usize, u64, u64, Command)>,
    answers: Vec<(u64, Answer)>,
    /// Tickets: of which question.
    tickets: BTreeMap<u64, usize>,
    apart: BTreeSet<usize>,
    /// When a clock last jumped, or began anew.
    last_jump_ns: u64,
    /// A clock has run back. Its manager's time stood still, so its leases are too long: what it
    /// promises is void, all else must hold.
    pub has_run_back: bool,
    /// Number of times that a disk has changed, or a talker heard something.
    pub changes: u64,
    /// Every event is printed.
    pub is_traced: bool,
}

impl World {
    pub fn new(seed: u64, fault: Fault, liar: Option<usize>) -> Self {
        let topology = Arc::new(topology());
        let hosts = (0..MANAGERS).map(Host::new).collect();
        let mut world = Self {
            rng: Rng::new(seed),
            now_ns: 0,
            topology,
            hosts,
            wishes: vec![],
            counts: Counts::default(),
            fault,
            liar,
            heard: Heard::default(),
            is_busy: true,
            events: BinaryHeap::new(),
            order: 0,
            mail: vec![],
            envelopes: vec![],
            asked: vec![],
            answers: vec![],
            tickets: BTreeMap::new(),
            apart: BTreeSet::new(),
            last_jump_ns: 0,
            has_run_back: false,
            changes: 0,
            is_traced: false,
        };
        for at in 0..MANAGERS {
            world.start(at);
        }
        for _ in 0..3 {
            world.after(0, Event::Think);
        }
        world.after(S, Event::Trouble);
        world.after(S, Event::Lie);
        world
    }

    pub fn after(&mut self, ns: u64, event: Event) {
        self.order += 1;
        let at_ns = self.now_ns + ns;
        self.events.push(Reverse((at_ns, self.order, event)));
    }

    /// Name of the manager that decides over a link.
    pub fn keeper(&self, link: &str) -> String {
        let id = self.topology.link_id(link).unwrap();
        let segment = self.topology.segment(self.topology.link(id).segment);
        segment.spec.manager.clone().unwrap()
    }

    /// Goes on by one event; false if there are none before `end_ns`.
    pub fn step(&mut self, end_ns: u64) -> bool {
        let Some(Reverse((at_ns, ..))) = self.events.peek() else {
            return false;
        };
        if *at_ns > end_ns {
            self.now_ns = end_ns;
            return false;
        }
        let Some(Reverse((at_ns, _, event))) = self.events.pop() else {
            return false;
        };
        self.now_ns = at_ns;
        if self.is_traced {
            self.print(&event);
        }
        match event {
            Event::Wake(at) => {
                self.hosts[at].wakes_at_ns = None;
                self.run(at, |manager, clock_ns| manager.advance(clock_ns));
            }
            Event::Flush(at) => self.flush(at),
            Event::Restart(at) => self.start(at),
            Event::Think if self.is_busy => self.think(),
            Event::Trouble if self.is_busy => self.trouble(),
            Event::Think | Event::Trouble => {}
            Event::Lie => self
                .liar
                .filter(|_| self.is_busy)
                .map_or((), |at| self.lie(at)),
            Event::Mail(n) => self.deliver(n),
            Event::Ask(n) => {
                let (at, ticket, _, command) = self.asked[n].clone();
                self.run(at, |manager, ns| manager.command(ns, ticket, command));
            }
            Event::Tell(n) => {
                let (ticket, answer) = self.answers[n].clone();
                self.hear(ticket, answer);
            }
        }
        true
    }

    fn print(&self, event: &Event) {
        let of = match event {
            Event::Mail(n) => format!("{:?}", self.mail[*n]),
            Event::Ask(n) => format!("asks {:?}", self.asked[*n]),
            Event::Tell(n) => format!("hears {:?}", self.answers[*n]),
            event => format!("{event:?}"),
        };
        println!("{} {of}", self.now_ns / MS);
    }

    // Hosts.

    fn start(&mut self, at: usize) {
        let now_ns = self.now_ns;
        let host = &mut self.hosts[at];
        if host.manager.is_some() {
            return;
        }
        if host.down_by_boot {
            host.down_by_boot = false;
            host.boot += 1;
            host.jumps += 1;
            host.clock_zero_ns = i128::from(now_ns);
            self.last_jump_ns = now_ns;
        }
        let boot = format!("boot{}", host.boot);
        let peers: Vec<_> = (0..MANAGERS).map(|n| format!("m{n}")).collect();
        let epoch = self.rng.below(u64::MAX);
        let start = Start {
            name: &host.name,
            peers: &peers,
            epoch,
            boot: &boot,
            now_ns: host.clock_ns(now_ns),
            is_store_whole: self.fault == Fault::IsSaidToBeWhole,
        };
        let records = host.disk.records().into_iter();
        let forgotten = match self.fault {
            Fault::ForgetsIds => Some("reservation/"),
            Fault::ForgetsParts => Some("part/"),
            _ => None,
        };
        let is_kept = |key: &str| forgotten.is_none_or(|of| !key.starts_with(of));
        let records = records.filter(|(key, _)| is_kept(key));
        let topology = Arc::clone(&self.topology);
        let manager = Manager::restore(&start, topology, LIMITS, records);
        host.manager = Some(manager.expect("what was stored fits"));
        host.waiting = Effects::default();
        self.run(at, |_, _| {});
        self.flush(at);
    }

    fn kill(&mut self, at: usize) {
        let host = &mut self.hosts[at];
        if host.manager.take().is_none() {
            return;
        }
        host.waiting = Effects::default();
        self.counts.kills += 1;
        if self.is_traced {
            println!("{} kills {at}", self.now_ns / MS);
        }
        if self.fault == Fault::LosesLastChanges {
            self.changes += 1;
            let last = std::mem::take(&mut host.last_changes);
            host.disk.undo(&last);
        }
        // Boots and jumps hide what a lost store does: sums are compared without them.
        let is_lossy = self.fault == Fault::IsSaidToBeWhole;
        if self.rng.happens(if is_lossy { 60 } else { 12 }) {
            self.forget(at);
        }
        let boots = !is_lossy && self.rng.happens(15);
        self.hosts[at].down_by_boot = boots;
        self.counts.boots += u64::from(boots);
        let down_ns = self.rng.between(1, 4000) * MS;
        self.after(down_ns, Event::Restart(at));
    }

    /// The store of a manager that does not run is lost, or is that of an earlier time.
    fn forget(&mut self, at: usize) {
        let empty = self.rng.happens(50);
        let host = &mut self.hosts[at];
        host.disk = if empty {
            Disk::default()
        } else {
            host.backup.clone()
        };
        host.forgot_ns = Some(self.now_ns);
        host.last_changes.clear();
        self.changes += 1;
        self.counts.forgotten += 1;
        if self.is_traced {
            println!("{} {at} forgets, empty: {empty}", self.now_ns / MS);
        }
        // What it had promised by itself nobody else knows.
        let has_liar = self.liar.is_some();
        for wish in &mut self.wishes {
            wish.is_void |= wish.at == at || (has_liar && wish.keepers.contains(&at));
        }
    }

    /// Lets a manager work; its effects wait for a flush, which may be later.
    pub fn run(&mut self, at: usize, work: impl FnOnce(&mut Manager, u64)) {
        let clock_ns = self.hosts[at].clock_ns(self.now_ns);
        let host = &mut self.hosts[at];
        let Some(manager) = host.manager.as_mut() else {
            return;
        };
        work(manager, clock_ns);
        let effects = manager.take_effects();
        host.waiting.updates.extend(effects.updates);
        host.waiting.replies.extend(effects.replies);
        host.waiting.messages.extend(effects.messages);
        host.waiting.answers.extend(effects.answers);
        self.plan_wakeup(at);
        if self.dies() {
            // Nothing of this was stored or sent.
            return self.kill(at);
        }
        if self.is_busy && self.rng.happens(20) {
            let ns = self.rng.between(1, 3) * MS;
            self.after(ns, Event::Flush(at));
        } else {
            self.flush(at)
        }
    }

    /// Stores, then sends; may be killed at each step.
    fn flush(&mut self, at: usize) {
        let effects = std::mem::take(&mut self.hosts[at].waiting);
        if self.hosts[at].manager.is_none() {
            return;
        }
        let dies = self.dies();
        let sent = effects.messages.len() + effects.answers.len() + effects.replies.len();
        let last = if dies {
            self.rng.below(sent as u64 + 1) as usize
        } else {
            sent
        };
        if self.fault == Fault::SendsFirst {
            self.send(at, &effects, last);
        }
        if !(dies && self.fault == Fault::SendsFirst) {
            let host = &mut self.hosts[at];
            if self.is_busy && self.rng.happens(4) {
                host.backup = host.disk.clone();
            }
            host.last_changes = host.disk.apply(&effects.updates);
            self.changes += u64::from(!effects.updates.is_empty());
        }
        if self.fault != Fault::SendsFirst {
            self.send(at, &effects, last);
        }
        if dies {
            self.kill(at);
        }
    }

    /// Sees to it that a manager is woken when it needs to be.
    fn plan_wakeup(&mut self, at: usize) {
        let host = &self.hosts[at];
        let wakeup_ns = host.manager.as_ref().and_then(Manager::next_wakeup_ns);
        let Some(wakeup_ns) = wakeup_ns else {
            return;
        };
        let mut ns = wakeup_ns.saturating_sub(host.clock_ns(self.now_ns));
        if self.fault == Fault::SleepsTooLong {
            ns += 30 * S;
        }
        let at_ns = self.now_ns + ns;
        if host.wakes_at_ns.is_none_or(|planned| planned > at_ns) {
            self.hosts[at].wakes_at_ns = Some(at_ns);
            self.after(ns, Event::Wake(at));
        }
    }

    fn send(&mut self, at: usize, effects: &Effects, count: usize) {
        for (to, message) in effects.messages.iter().take(count) {
            self.post(at, to, message);
        }
        let left = count.saturating_sub(effects.messages.len());
        for (ticket, reply) in effects.replies.iter().take(left) {
            let to = self.envelopes[usize::try_from(*ticket).unwrap()];
            self.mail_to((at, to), &Mail::Reply(reply.clone()));
        }
        let left = left.saturating_sub(effects.replies.len());
        let answers = effects.answers.iter().take(left);
        for (ticket, answer) in answers.filter(|(ticket, _)| *ticket != NOBODY) {
            if self.is_busy && self.rng.happens(8) {
                self.counts.lost += 1;
                continue;
            }
            self.answers.push((*ticket, answer.clone()));
            let ns = self.rng.between(1, 40) * MS;
            self.after(ns, Event::Tell(self.answers.len() - 1));
        }
    }

    fn post(&mut self, from: usize, to: &str, message: &Message) {
        let to = self.hosts.iter().position(|host| host.name == to).unwrap();
        if self.fault == Fault::LosesClaims && matches!(message, Message::Hello { .. }) {
            return;
        }
        let host = &self.hosts[from];
        let epoch = host.manager.as_ref().map_or(0, Manager::epoch);
        let envelope = Envelope {
            from: host.name.clone(),
            epoch,
            within_ns: LIMITS.deadline_ns,
            messages: vec![message.clone()],
        };
        self.mail_to((from, to), &Mail::Messages(envelope));
    }

    pub fn mail_to(&mut self, (from, to): (usize, usize), mail: &Mail) {
        let times = match self.rng.below(100) {
            0..10 if self.is_busy => 0,
            10..20 if self.is_busy => 2,
            _ => 1,
        };
        self.counts.lost += u64::from(times == 0);
        for _ in 0..times {
            // Some messages are overtaken by seconds.
            let most_ms = if self.rng.happens(8) { 9000 } else { 60 };
            let ns = self.rng.between(1, most_ms) * MS;
            self.mail.push(Some((from, to, mail.clone())));
            self.after(ns, Event::Mail(self.mail.len() - 1));
        }
    }

    fn deliver(&mut self, n: usize) {
        let Some((from, to, mail)) = self.mail[n].take() else {
            return;
        };
        if self.apart.contains(&from) != self.apart.contains(&to) {
            self.counts.lost += 1;
            return;
        }
        self.overhear((from, to), &mail);
        match mail {
            Mail::Messages(envelope) => {
                let ticket = self.envelopes.len() as u64;
                self.envelopes.push(from);
                self.run(to, |manager, ns| manager.receive(ns, ticket, envelope));
            }
            Mail::Reply(reply) => {
                if self.fault == Fault::BelievesLosses {
                    self.believe(to, &reply);
                }
                let name = self.hosts[from].name.clone();
                self.run(to, |manager, ns| manager.replied(ns, &name, reply));
            }
        }
    }

    fn trouble(&mut self) {
        let at = self.rng.below(MANAGERS as u64) as usize;
        match self.rng.below(10) {
            0..3 => self.kill(at),
            3 if self.fault != Fault::IsSaidToBeWhole => {
                let jump_ns = self.rng.between(1, 8000) * MS;
                let back = self.rng.happens(30);
                let host = &mut self.hosts[at];
                let jump = i128::from(jump_ns) * if back { -1 } else { 1 };
                host.clock_zero_ns -= jump;
                host.jumps += 1;
                self.has_run_back |= back;
                self.last_jump_ns = self.now_ns;
                if self.is_traced {
                    println!("{} {at} jumps by {jump}", self.now_ns / MS);
                }
                self.counts.jumps += 1;
                self.run(at, |manager, ns| manager.advance(ns));
            }
            4..7 => {
                self.counts.partitions += 1;
                self.apart = (0..MANAGERS).filter(|_| self.rng.happens(40)).collect();
            }
            _ => self.apart.clear(),
        }
        let pause = if self.is_calm() { 4 } else { 1 };
        let ns = self.rng.between(200, 3000) * MS * pause;
        self.after(ns, Event::Trouble);
    }

    /// Ends all trouble.
    pub fn heal(&mut self) {
        self.is_busy = false;
        self.apart.clear();
        for at in 0..MANAGERS {
            self.start(at);
        }
    }

    // Talkers.

    fn think(&mut self) {
        let choice = self.rng.below(10);
        let known = self.wishes.len() as u64;
        match choice {
            0..4 => self.wish(),
            _ if known == 0 => self.wish(),
            _ => {
                // One of the last few.
                let n = known - 1 - self.rng.below(known.min(5));
                let wish = self.wishes[n as usize].clone();
                self.again(n as usize, wish, choice);
            }
        }
        let ns = self.rng.between(100, 1800) * MS;
        self.after(ns, Event::Think);
    }

    fn again(&mut self, n: usize, wish: WantedReservation, choice: u64) {
        let action = match choice {
            4 | 5 => Action::Reserve {
                request: wish.request,
                lease_ns: wish.lease_ns,
                is_replacing: false,
            },
            6..9 => Action::Refresh { lease_ns: None },
            _ => {
                self.wishes[n].is_over = true;
                Action::Release
            }
        };
        let caller = Caller::talker(&wish.owner);
        self.ask(n, Command::new(&wish.id, caller, action));
    }

    fn wish(&mut self) {
        let n = self.wishes.len();
        let from = self.rng.below(MANAGERS as u64);
        let to = (from + self.rng.between(1, MANAGERS as u64 - 1)) % MANAGERS as u64;
        // Sometimes a name that is in use.
        let stream = n as u64 - self.rng.below(n.min(3) as u64 + 1);
        let request = request(stream, (from, to), self.rng.between(200, 4000) as u32);
        let plan = admission::plan(&self.topology, &request).unwrap();
        let keeper = |of: &admission::LinkBytes| self.keeper(&of.link);
        let keepers: Vec<_> = plan.grant.links.iter().map(keeper).collect();
        let hosts = self.hosts.iter().enumerate();
        let hosts = hosts.filter(|(_, host)| keepers.contains(&host.name));
        let wish = WantedReservation {
            keepers: hosts.map(|(at, _)| at).collect(),
            id: format!("id{n}"),
            at: self.rng.below(MANAGERS as u64) as usize,
            owner: format!("talker{}", self.rng.below(2)),
            request,
            lease_ns: self.rng.between(2000, 12_000) * MS,
            promised_until_ns: 0,
            granted: None,
            is_over: false,
            is_void: false,
            jumps: 0,
            first_jumps: self.jumps(),
            questions: 0,
        };
        self.wishes.push(wish.clone());
        self.again(n, wish, 4);
    }

    fn ask(&mut self, n: usize, command: Command) {
        let ticket = self.asked.len() as u64;
        self.tickets.insert(ticket, n);
        self.asked
            .push((self.wishes[n].at, ticket, self.now_ns, command));
        if self.rng.happens(8) {
            self.counts.lost += 1;
            return;
        }
        let ns = self.rng.between(1, 40) * MS;
        self.after(ns, Event::Ask(ticket as usize));
        if self.rng.happens(8) {
            let ns = self.rng.between(1, 6000) * MS;
            self.after(ns, Event::Ask(ticket as usize));
        }
    }

    fn hear(&mut self, ticket: u64, answer: Answer) {
        self.changes += 1;
        let n = self.tickets[&ticket];
        let jumps = self.jumps();
        let crosses = self.crosses(n);
        let liar = self.liar.map(|at| self.hosts[at].name.clone());
        let wish = &mut self.wishes[n];
        let (.., asked_ns, asked) = &self.asked[ticket as usize];
        let is_reserve = matches!(asked.action, Action::Reserve { .. });
        // A question may join one that has waited for as long as any does.
        let is_calm = self.last_jump_ns + LIMITS.deadline_ns + S < *asked_ns;
        match answer {
            Answer::Granted(view) => {
                let grant = (view.bound_ns, view.links.clone());
                if let Some(before) = wish.granted.as_ref().filter(|_| !wish.is_void && !crosses) {
                    assert_eq!(*before, grant, "another grant for {}", wish.id);
                    self.counts.same_again += u64::from(is_reserve);
                } else {
                    self.counts.granted += 1;
                    wish.questions = self.asked.len();
                }
                self.counts.refreshed += u64::from(!is_reserve);
                wish.granted = Some(grant);
                // The answer, and so what it promises, may be that old.
                let left_ns = view.expires_in_ns.saturating_sub(50 * MS);
                let until_ns = self.now_ns + left_ns;
                // A clock that jumped ends leases that its manager began before: by the grant,
                // whenever that was, or by this refreshment.
                let holds = if is_reserve {
                    wish.first_jumps == jumps
                } else {
                    is_calm
                };
                if holds {
                    let before_ns = if wish.jumps == jumps {
                        wish.promised_until_ns
                    } else {
                        0
                    };
                    wish.promised_until_ns = before_ns.max(until_ns);
                    wish.jumps = jumps;
                }
            }
            Answer::Refused(_) => self.counts.refused += 1,
            Answer::Released(_) => self.counts.released += 1,
            Answer::Misfits(_) => panic!("nobody asked"),
            Answer::Failed(failure) => {
                self.counts.failed += 1;
                if let Failure::Lost(by) | Failure::NoAnswer(by) = &failure {
                    assert!(
                        crosses || Some(by) != liar.as_ref(),
                        "{}: {failure}",
                        wish.id
                    );
                }
                if matches!(
                    failure,
                    Failure::Ended(_) | Failure::Lost(_) | Failure::Unknown(_)
                ) {
                    // What was granted is reported as ended: only after its lease, a loss
                    // by a jump of a clock, or a release.
                    // A question that overtook the first request was asked too early.
                    let is_early = (ticket as usize) < wish.questions;
                    let ends = wish.promised_until_ns <= self.now_ns || is_early;
                    assert!(
                        wish.granted.is_none()
                            || crosses
                            || wish.is_over
                            || wish.is_void
                            || ends
                            || wish.jumps != jumps
                            || self.has_run_back,
                        "{} was lost: {failure}",
                        wish.id
                    );
                }
            }
        }
    }
}
