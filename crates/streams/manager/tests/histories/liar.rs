// SPDX-License-Identifier: MIT OR Apache-2.0
//! A manager that lies: it knows all that is said, and says whatever may do harm, in its own name. What
//! crosses it, it may refuse and delay.

use admission::{LinkBytes, Refusal};
use manager_proto::answer::{Action, Caller, Command};
use manager_proto::message::{Claim, Claimed, Envelope, Message, Reply};
use manager_proto::record::{Attempt, ReservationState};

use super::model::{Event, Fault, LIMITS, MANAGERS, MS, Mail, NOBODY};
use super::world::World;

/// Names that are none.
const NO_NAMES: [&str; 5] = ["", "a/b", "../m0/id1", "\x1b[2J", "id1\n"];

impl World {
    /// All jumps and boots so far: after one, promises of time are void.
    pub fn jumps(&self) -> u64 {
        self.hosts.iter().map(|host| host.jumps).sum()
    }

    /// Whether a liar is on the way of a wish, or was asked.
    pub fn crosses(&self, wish: usize) -> bool {
        let wish = &self.wishes[wish];
        let on_way = |liar: usize| wish.at == liar || wish.keepers.contains(&liar);
        self.liar.is_some_and(on_way)
    }

    /// Whether hosts are in trouble less often, so that more is granted: beside a liar, and to find what
    /// a crash takes back.
    pub fn is_calm(&self) -> bool {
        let of_crash = [Fault::SendsFirst, Fault::LosesLastChanges];
        self.liar.is_some() || of_crash.contains(&self.fault)
    }

    /// Whether a host dies at this very step.
    pub fn dies(&mut self) -> bool {
        let may = !self.is_calm() || self.rng.happens(10);
        self.is_busy && may && self.rng.happens(1)
    }

    /// The liar listens to what is delivered.
    pub fn overhear(&mut self, (from, to): (usize, usize), mail: &Mail) {
        let Some(liar) = self.liar else {
            return;
        };
        let messages = match mail {
            Mail::Messages(of) => &of.messages,
            Mail::Reply(of) => &of.messages,
        };
        for message in messages {
            match message {
                Message::Hold { .. } => self.heard.holds.push((to, message.clone())),
                Message::Welcome { nonce, .. } if to == liar => self.heard.nonces[from] = *nonce,
                _ => {}
            }
            let is_answered = to == liar || self.fault == Fault::AnswersForOthers;
            if is_answered && matches!(mail, Mail::Messages(_)) {
                self.heard.questions.push((from, to, message.clone()));
            }
        }
    }

    /// Tells a lie, and plans the next one.
    pub fn lie(&mut self, liar: usize) {
        self.counts.lies += 1;
        let to = self.rng.below(MANAGERS as u64) as usize;
        if self.rng.happens(50) {
            // An answer to one of the last questions, in place of another or once more.
            let known = self.heard.questions.len() as u64;
            if known > 0 {
                let n = known - 1 - self.rng.below(known.min(6));
                let (to, from, asked) = self.heard.questions[n as usize].clone();
                let messages = vec![self.false_answer(&asked)];
                let reply = Reply {
                    epoch: self.liars_epoch(liar),
                    messages,
                };
                self.mail_to((from, to), &Mail::Reply(reply));
            }
        } else if to != liar {
            // Nobody checks who speaks.
            let from = match self.fault {
                Fault::SpeaksForOthers => self.rng.below(MANAGERS as u64) as usize,
                _ => liar,
            };
            let envelope = Envelope {
                from: self.hosts[from].name.clone(),
                epoch: self.liars_epoch(liar),
                within_ns: LIMITS.deadline_ns,
                messages: vec![self.false_request(to)],
            };
            self.mail_to((liar, to), &Mail::Messages(envelope));
        }
        let ns = self.rng.between(20, 400) * MS;
        self.after(ns, Event::Lie);
    }

    /// Mostly its own start.
    fn liars_epoch(&mut self, liar: usize) -> u64 {
        let own = self.hosts[liar].manager.as_ref().map(|of| of.epoch());
        match own {
            Some(epoch) if self.rng.happens(80) => epoch,
            _ => self.rng.below(u64::MAX),
        }
    }

    /// Ends whatever a reply says is lost.
    pub fn believe(&mut self, at: usize, reply: &Reply) {
        for message in &reply.messages {
            if let Message::Claimed { lost, .. } = message {
                for (id, _) in lost {
                    let (id, caller) = (id.clone(), Caller::operator("nobody"));
                    let command = Command::new(&id, caller, Action::Release);
                    self.run(at, |manager, ns| manager.command(ns, NOBODY, command));
                }
            }
        }
    }

    fn any_id(&mut self) -> String {
        if self.rng.happens(10) {
            let n = self.rng.below(NO_NAMES.len() as u64);
            return NO_NAMES[n as usize].to_owned();
        }
        let known = self.wishes.len() as u64 + 1;
        format!("id{}", known.saturating_sub(self.rng.below(8)))
    }

    /// A try that somebody has made of an id, or may have.
    fn any_attempt(&mut self, id: &str) -> Attempt {
        let at = self.rng.below(MANAGERS as u64) as usize;
        let host = &self.hosts[at];
        let parts = host.disk.parts.iter();
        let parts = parts.filter(|(name, _)| name.ends_with(&format!("/{id}")));
        let known = host.disk.reservations.get(id).map(|of| of.attempt);
        let known = known.or_else(|| parts.map(|(_, of)| of.attempt).next());
        let epoch = host.manager.as_ref().map_or(0, |of| of.epoch());
        let count = self.rng.below(80);
        let near = Attempt { epoch, count };
        known.filter(|_| self.rng.happens(80)).unwrap_or(near)
    }

    /// All grants of all managers, as lost.
    fn everything(&self) -> Vec<(String, Attempt)> {
        let hosts = self.hosts.iter();
        let all = hosts.flat_map(|host| host.disk.reservations.iter());
        let granted = all.filter(|(_, of)| of.state == ReservationState::Granted);
        granted.map(|(id, of)| (id.clone(), of.attempt)).collect()
    }

    fn false_answer(&mut self, asked: &Message) -> Message {
        let (round, id, attempt) = match asked {
            Message::Hello { round } | Message::Claim { round, .. } => {
                (*round, String::new(), Attempt { epoch: 0, count: 0 })
            }
            Message::Refresh {
                id, attempt, round, ..
            } => (*round, id.clone(), *attempt),
            Message::Hold { id, attempt, .. }
            | Message::Commit { id, attempt, .. }
            | Message::Release { id, attempt } => (0, id.clone(), *attempt),
            _ => (0, self.any_id(), Attempt { epoch: 0, count: 0 }),
        };
        let nonce = self.rng.below(100);
        let why = "\x1b[31mred".to_owned();
        match self.rng.below(12) {
            0 => Message::Held { id, attempt },
            1 => Message::Committed { id, attempt },
            2 => Message::Refreshed { id, attempt, round },
            3 => Message::Gone { id, attempt },
            4 => Message::Released { id, attempt },
            5 => Message::Later { id, attempt, why },
            6 => Message::Stale { round },
            7 => Message::Welcome { round, nonce },
            8 => Message::Refused {
                refusal: Refusal::StreamIdInUse {
                    stream_id: id.clone(),
                },
                id,
                attempt,
            },
            9 => Message::Conflict {
                has: self.any_attempt(&id),
                id,
                attempt,
            },
            _ => Message::Claimed {
                round,
                lost: self.everything(),
                is_again: self.rng.happens(50),
            },
        }
    }

    /// Bytes of a manager's links, as somebody has asked for them; mostly other bytes.
    fn any_hold(&mut self, to: usize) -> Option<Message> {
        let holds = self.heard.holds.iter().filter(|(of, _)| *of == to);
        let holds: Vec<_> = holds.map(|(_, hold)| hold.clone()).collect();
        let n = self.rng.below(holds.len().max(1) as u64) as usize;
        let mut found = holds.into_iter().nth(n)?;
        if let Message::Hold {
            id,
            attempt,
            links,
            hold_ns,
            ..
        } = &mut found
        {
            *id = self.any_id();
            *attempt = self.any_attempt(id);
            *hold_ns = u64::MAX;
            for LinkBytes { bytes, .. } in links {
                *bytes = self.rng.below(8000);
            }
        }
        Some(found)
    }

    fn false_request(&mut self, to: usize) -> Message {
        let id = self.any_id();
        let attempt = self.any_attempt(&id);
        let round = self.rng.below(100);
        let lease_ns = u64::MAX;
        match self.rng.below(6) {
            0 => self.any_hold(to).unwrap_or(Message::Hello { round }),
            1 => Message::Commit {
                id,
                attempt,
                lease_ns,
            },
            2 => Message::Refresh {
                id,
                attempt,
                lease_ns,
                round,
            },
            3 => Message::Release { id, attempt },
            4 => Message::Hello { round },
            _ => {
                let ends = [self.any_id(), self.any_id()];
                let claims = (0..4).filter_map(|_| self.any_hold(to)).filter_map(claim);
                let claims = claims.collect();
                Message::Claim {
                    round,
                    nonce: self.heard.nonces[to],
                    claims,
                    after: if self.rng.happens(50) {
                        String::new()
                    } else {
                        ends[0].clone()
                    },
                    until: Some(ends[1].clone()).filter(|_| self.rng.happens(50)),
                    before: attempt,
                }
            }
        }
    }
}

/// Claims what a request to hold asks for.
fn claim(hold: Message) -> Option<Claim> {
    let Message::Hold {
        id,
        attempt,
        stream_id,
        frames,
        links,
        ..
    } = hold
    else {
        return None;
    };
    let lease = u64::MAX;
    Some(Claim {
        id,
        attempt,
        granted: Some(Claimed {
            stream_id,
            frames,
            links,
            lease_ns: lease,
            left_ns: lease,
        }),
    })
}
