// SPDX-License-Identifier: MIT OR Apache-2.0
//! Messages of other managers: requests for own links, and answers.

use admission::LinkBytes;

use super::Manager;
use crate::answer::{Answer, Failure};
use crate::bounds;
use crate::digest::combined;
use crate::message::{Envelope, Message, Reply};
use crate::parts::{Hold, Wanted};
use crate::pending::{Operation, Phase};
use crate::record::{Attempt, part_name};

impl Manager {
    /// Takes the messages of another manager; the reply has the ticket.
    pub fn receive(&mut self, now_ns: u64, ticket: u64, envelope: Envelope) {
        self.advance(now_ns);
        let Envelope {
            from,
            epoch,
            messages,
            ..
        } = envelope;
        self.note_epoch(&from, epoch);
        let valid = bounds::messages(&messages).is_ok();
        let answers = messages.into_iter().filter(|_| valid);
        let answers = answers.filter_map(|message| self.asked((&from, epoch), message));
        let reply = Reply {
            messages: answers.collect(),
            epoch: self.epoch,
        };
        self.effects.replies.push((ticket, reply));
    }

    /// Takes the reply to messages of this manager's.
    pub fn replied(&mut self, now_ns: u64, from: &str, reply: Reply) {
        self.advance(now_ns);
        self.note_epoch(from, reply.epoch);
        if bounds::messages(&reply.messages).is_ok() {
            for message in reply.messages {
                self.answered(from, message);
            }
        }
    }

    /// Returns a digest of the segments of links.
    pub(super) fn digest_of(&self, links: &[LinkBytes]) -> u64 {
        combined(&self.digests, self.parts.segments(links))
    }

    /// Carries out what another manager asks for; returns the answer.
    fn asked(&mut self, (from, epoch): (&str, u64), message: Message) -> Option<Message> {
        let now_ns = self.now_ns;
        match message {
            Message::Hold {
                id,
                attempt,
                stream_id,
                frames,
                segments,
                links,
                hold_ns,
            } => {
                if segments != self.digest_of(&links) {
                    let why = format!(
                        "manager {} has another description of these segments at present",
                        self.name
                    );
                    return Some(Message::Later { id, attempt, why });
                }
                if let Some(why) = self.not_yet() {
                    return Some(Message::Later { id, attempt, why });
                }
                let wanted = Wanted {
                    attempt,
                    stream_id: &stream_id,
                    frames: &frames,
                    links: &links,
                };
                let (name, hold_ns) = (part_name(from, &id), hold_ns.min(self.limits.hold_ns));
                let updates = &mut self.effects.updates;
                match self.parts.hold(now_ns, &name, &wanted, hold_ns, updates) {
                    Hold::Held => Some(Message::Held { id, attempt }),
                    Hold::Refused(refusal) => Some(Message::Refused {
                        id,
                        attempt,
                        refusal,
                    }),
                    Hold::Conflict(has) => Some(Message::Conflict { id, attempt, has }),
                    Hold::Stale => None,
                }
            }
            // It is not lost, if this manager's store was: it will be claimed.
            Message::Refresh {
                ref id, attempt, ..
            }
            | Message::Commit {
                ref id, attempt, ..
            } if !self.knows(&part_name(from, id), attempt) && !self.has_claimed(from) => None,
            Message::Commit {
                id,
                attempt,
                lease_ns,
            } => {
                let (name, lease_ns) = (part_name(from, &id), self.shortened(lease_ns));
                let updates = &mut self.effects.updates;
                let parts = &mut self.parts;
                Some(if parts.commit(now_ns, &name, attempt, lease_ns, updates) {
                    Message::Committed { id, attempt }
                } else {
                    Message::Gone { id, attempt }
                })
            }
            Message::Refresh {
                id,
                attempt,
                lease_ns,
                round,
            } => {
                let (name, lease_ns) = (part_name(from, &id), self.shortened(lease_ns));
                let lease = (lease_ns, now_ns.saturating_add(lease_ns));
                let updates = &mut self.effects.updates;
                Some(if self.parts.refresh(&name, attempt, lease, updates) {
                    Message::Refreshed { id, attempt, round }
                } else {
                    Message::Gone { id, attempt }
                })
            }
            Message::Release { id, attempt } => {
                let name = part_name(from, &id);
                let updates = &mut self.effects.updates;
                self.parts.release(now_ns, &name, attempt, updates);
                Some(Message::Released { id, attempt })
            }
            Message::Hello { round } => self.greeted(from, epoch, round),
            Message::Claim {
                round,
                nonce,
                after,
                until,
                before,
                claims,
            } => {
                let range = (after.as_str(), until.as_deref());
                self.claimed(from, (round, nonce, before), range, claims)
            }
            // Answers come in replies.
            _ => None,
        }
    }

    /// Returns whether a part is that of a try, or was.
    fn knows(&self, name: &str, attempt: Attempt) -> bool {
        let part = self.parts.all().get(name);
        part.is_some_and(|part| part.attempt == attempt)
    }

    pub(super) fn shortened(&self, lease_ns: u64) -> u64 {
        lease_ns.min(self.limits.most_lease_ns)
    }

    /// Takes another manager's answer. One of an older try, or that nobody waits for, changes
    /// nothing.
    fn answered(&mut self, from: &str, answer: Message) {
        match answer {
            Message::Welcome { round, nonce } => return self.welcomed(from, round, nonce),
            Message::Stale { round } => return self.is_stale(from, round),
            Message::Claimed {
                round,
                lost,
                is_again,
            } => return self.page_answered(from, round, lost, is_again),
            _ => {}
        }
        let (Message::Held { id, attempt }
        | Message::Refused { id, attempt, .. }
        | Message::Conflict { id, attempt, .. }
        | Message::Later { id, attempt, .. }
        | Message::Committed { id, attempt }
        | Message::Refreshed { id, attempt, .. }
        | Message::Gone { id, attempt }
        | Message::Released { id, attempt }) = &answer
        else {
            return;
        };
        if let Message::Released { id, attempt } = &answer {
            let of = (id.clone(), *attempt);
            if let Some(pending) = self.releases.get_mut(&of) {
                pending.waits_for.remove(from);
                if pending.waits_for.is_empty() {
                    self.releases.remove(&of);
                }
            }
            return;
        }
        let Some(pending) = self.pending.get_mut(id) else {
            return;
        };
        if pending.attempt != *attempt || !pending.waits_for.contains(from) {
            return;
        }
        let lost = || Answer::Failed(Failure::Lost(from.to_owned()));
        match (pending.phase(), &answer) {
            (Phase::Holding, Message::Held { .. }) => {
                if let Operation::Reserve { held, .. } = &mut pending.operation {
                    *held += 1;
                }
                self.proceed(id);
            }
            (Phase::Holding, Message::Refused { refusal, .. }) => {
                self.abort(id, Answer::Refused(refusal.clone()));
            }
            (Phase::Holding, Message::Conflict { has, .. }) => {
                // What an earlier start has there, this one does not know.
                let release = Message::Release {
                    id: id.clone(),
                    attempt: *has,
                };
                self.effects.messages.push((from.to_owned(), release));
                // At once, the first time; one that goes on to say so is asked no faster than others.
                if pending.tries == 1 {
                    let messages = pending.messages(id, self.limits.hold_ns);
                    pending.note_asked(self.now_ns, self.limits.retry_ns);
                    self.effects.messages.extend(messages);
                }
            }
            (Phase::Holding, Message::Later { why, .. }) => {
                self.abort(id, Answer::Failed(Failure::Later(why.clone())));
            }
            (Phase::Committing, Message::Committed { .. }) => {
                pending.waits_for.remove(from);
                self.finish_if_committed(id);
            }
            (Phase::Committing, Message::Gone { .. }) => self.abort(id, lost()),
            (Phase::Refreshing(round), Message::Refreshed { round: of, .. }) if round == *of => {
                pending.waits_for.remove(from);
                self.finish_if_refreshed(id);
            }
            (Phase::Refreshing(_), Message::Gone { .. }) => self.lose(id, from.to_owned()),
            _ => {}
        }
    }
}
