// SPDX-License-Identifier: MIT OR Apache-2.0
//! Messages of other managers: requests for own links, and answers.

use admission::Refusal;

use super::Manager;
use crate::answer::{Answer, Failure};
use crate::message::Message;
use crate::parts::Hold;
use crate::pending::{Operation, Phase};
use crate::record::part_name;

impl Manager {
    /// Takes a message of another manager.
    pub fn receive(&mut self, now_ns: u64, from: &str, message: Message) {
        self.advance(now_ns);
        let now_ns = self.now_ns;
        let answer = match message {
            Message::Hold {
                id,
                attempt,
                stream_id,
                topology,
                links,
                hold_ns,
            } => {
                let hold_ns = hold_ns.min(self.limits.hold_ns);
                let found = if topology == self.digest {
                    self.parts.hold(
                        now_ns,
                        &part_name(from, &id),
                        (attempt, &stream_id),
                        links,
                        hold_ns,
                        &mut self.effects.changes,
                    )
                } else {
                    Hold::Refused(Refusal::Invalid {
                        field: "topology".to_owned(),
                        value: format!("{topology:016x}"),
                        expected: format!("that of manager {}, {:016x}", self.name, self.digest),
                    })
                };
                match found {
                    Hold::Held => Some(Message::Held { id, attempt }),
                    Hold::Refused(refusal) => Some(Message::Refused {
                        id,
                        attempt,
                        refusal,
                    }),
                    Hold::Stale => None,
                }
            }
            Message::Commit {
                id,
                attempt,
                lease_ns,
            } => {
                let (name, lease_ns) = (part_name(from, &id), self.shortened(lease_ns));
                let changes = &mut self.effects.changes;
                Some(
                    if self.parts.commit(now_ns, &name, attempt, lease_ns, changes) {
                        Message::Committed { id, attempt }
                    } else {
                        Message::Gone { id, attempt }
                    },
                )
            }
            Message::Refresh {
                id,
                attempt,
                lease_ns,
                round,
            } => {
                let (name, lease_ns) = (part_name(from, &id), self.shortened(lease_ns));
                let changes = &mut self.effects.changes;
                Some(
                    if self
                        .parts
                        .refresh(now_ns, &name, attempt, lease_ns, changes)
                    {
                        Message::Refreshed { id, attempt, round }
                    } else {
                        Message::Gone { id, attempt }
                    },
                )
            }
            Message::Release { id, attempt } => {
                let name = part_name(from, &id);
                self.parts
                    .release(now_ns, &name, attempt, &mut self.effects.changes);
                Some(Message::Released { id, attempt })
            }
            answer => {
                self.answered(from, answer);
                None
            }
        };
        self.effects
            .messages
            .extend(answer.map(|answer| (from.to_owned(), answer)));
    }

    fn shortened(&self, lease_ns: u64) -> u64 {
        lease_ns.min(self.limits.most_lease_ns)
    }

    /// Takes another manager's answer. One of an older try, or that nobody waits for, changes
    /// nothing.
    fn answered(&mut self, from: &str, answer: Message) {
        let (Message::Held { id, attempt }
        | Message::Refused { id, attempt, .. }
        | Message::Committed { id, attempt }
        | Message::Refreshed { id, attempt, .. }
        | Message::Gone { id, attempt }
        | Message::Released { id, attempt }) = &answer
        else {
            return;
        };
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
            (Phase::Releasing, Message::Released { .. }) => {
                pending.waits_for.remove(from);
                if pending.waits_for.is_empty() {
                    self.pending.remove(id);
                }
            }
            _ => {}
        }
    }
}
