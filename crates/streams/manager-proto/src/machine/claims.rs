// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a manager has at others, and they here: claimed page by page after a start of either, and
//! after a message without an answer.
//!
//! A store may be lost, or brought back from a backup, and looks like any other then. So a manager
//! that starts asks everybody to claim what he has here, and takes back what it does not know; and
//! it claims what it has elsewhere. What a coordinator does not claim is freed: nobody knows of it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use admission::LinkBytes;

use super::Manager;
use super::peer::Pass;
use crate::bounds::MOST_GRANTED;
use crate::message::{Claim, Claimed, Message};
use crate::parts::Wanted;
use crate::pending::Operation;
use crate::record::{Attempt, PartState, Reservation, ReservationState, part_name};

/// Most reservations that are looked at for a page.
const MOST_SEEN: usize = 2_000;

impl Manager {
    /// Says why nothing may be granted: the store is full.
    pub(super) fn is_full(&self) -> Option<String> {
        let why = self.full.as_ref()?;
        Some(format!("manager {} grants nothing: {why}", self.name))
    }

    /// Says why nothing may be granted: the store is full, or another manager has not claimed yet what it has here.
    pub(super) fn not_yet(&self) -> Option<String> {
        if self.full.is_some() {
            return self.is_full();
        }
        if self.now_ns >= self.grants_from_ns {
            return None;
        }
        let (peer, _) = self.peers.iter().find(|(_, peer)| !peer.has_claimed)?;
        Some(format!(
            "manager {} has started, and grants nothing until manager {peer} has said what it has \
             there",
            self.name
        ))
    }

    /// Returns whether another manager has claimed all that it has here since this one's start.
    pub(super) fn has_claimed(&self, manager: &str) -> bool {
        let peer = self.peers.get(manager);
        self.now_ns >= self.grants_from_ns || peer.is_none_or(|peer| peer.has_claimed)
    }

    /// Returns whether others have a reservation for as long as this manager says. After the clock has
    /// become another, only a new refreshment or claim tells.
    pub(super) fn is_confirmed(&self, reservation: &Reservation) -> bool {
        if !self.is_new_clock || reservation.attempt.epoch == self.epoch {
            return true;
        }
        let hops = self.hops(&reservation.grant.links);
        let mut others = hops.iter().filter_map(|hop| self.peers.get(&hop.manager));
        others.all(|peer| peer.pass.is_none())
    }

    /// Notes which start of another manager speaks. A new one may have lost what it had.
    pub(super) fn note_epoch(&mut self, from: &str, epoch: u64) {
        let now_ns = self.now_ns;
        let Some(peer) = self.peers.get_mut(from) else {
            return;
        };
        let known = peer.epoch.replace(epoch);
        if known.is_none() {
            peer.greeted_ns = 0;
        }
        if known != Some(epoch) {
            peer.claim_anew(now_ns);
            self.claim_what_is_due();
        }
    }

    /// Claims all that this manager has at another, from the first on: it may not know what has ended.
    pub(super) fn claim_at(&mut self, manager: &str) {
        let now_ns = self.now_ns;
        if let Some(peer) = self.peers.get_mut(manager) {
            let mut pass = peer.pass.take().unwrap_or_default();
            let at_ns = match pass.sent {
                // It does not answer: there is no hurry.
                Some(_) => pass.at_ns,
                None => pass.retry_at_ns(now_ns),
            };
            peer.pass = Some(Pass {
                at_ns,
                tries: pass.tries,
                ..Pass::default()
            });
        }
    }

    /// Sends the pages whose time has come.
    pub(super) fn claim_what_is_due(&mut self) {
        let now_ns = self.now_ns;
        let due = self.peers.iter().filter(|(_, peer)| {
            let at_ns = peer.next_wakeup_ns();
            at_ns.is_some_and(|at_ns| at_ns <= now_ns)
        });
        let due: Vec<_> = due.map(|(name, _)| name.clone()).collect();
        for name in due {
            self.send_page(&name);
        }
    }

    fn send_page(&mut self, to: &str) {
        let pass = self.peers.get(to).and_then(|peer| peer.pass.as_ref());
        let Some((nonce, after)) = pass.map(|pass| (pass.nonce, pass.after.clone())) else {
            return;
        };
        let round = self.next_count;
        let before = self.new_attempt();
        let now_ns = self.now_ns;
        let (message, until) = match nonce {
            None => (Message::Hello { round }, None),
            Some(nonce) => {
                let (claims, until) = self.page(to, &after);
                let page = Message::Claim {
                    round,
                    nonce,
                    after,
                    until: until.clone(),
                    before,
                    claims,
                };
                (page, until)
            }
        };
        let Some(peer) = self.peers.get_mut(to) else {
            return;
        };
        if nonce.is_none() {
            peer.greeted_ns = now_ns;
        }
        if let Some(pass) = &mut peer.pass {
            pass.sent = Some((round, until));
            pass.at_ns = pass.retry_at_ns(now_ns);
        }
        self.effects.messages.push((to.to_owned(), message));
    }

    /// Returns the claims of a page, and its last id.
    fn page(&self, to: &str, after: &str) -> (Vec<Claim>, Option<String>) {
        let behind = (Bound::Excluded(after), Bound::Unbounded);
        let mut claims = Vec::new();
        let mut until = None;
        let granted = self.reservations.range::<str, _>(behind);
        for (seen, (id, of)) in granted.enumerate() {
            if seen == MOST_SEEN || claims.len() == MOST_GRANTED {
                break;
            }
            until = Some(id.to_string());
            if of.state != ReservationState::Granted {
                continue;
            }
            let hops = self.hops(&of.grant.links);
            let Some(hop) = hops.into_iter().find(|hop| hop.manager == to) else {
                continue;
            };
            claims.push(Claim {
                id: id.to_string(),
                attempt: of.attempt,
                granted: Some(Claimed {
                    stream_id: of.grant.stream_id.to_string(),
                    frames: of.request.talker.data_frame_specification.clone(),
                    links: hop.links,
                    lease_ns: of.lease_ns,
                    left_ns: of.expires_ns.saturating_sub(self.now_ns),
                }),
            });
        }
        let last = self
            .reservations
            .last_key_value()
            .map(|(id, _)| id.as_str());
        if until.as_deref() == last {
            until = None;
        }
        let pending = self.pending.range::<str, _>(behind);
        let within = pending.take_while(|(id, _)| until.as_ref().is_none_or(|last| *id <= last));
        for (id, pending) in within {
            let asked = match &pending.operation {
                Operation::Reserve { hops, .. } => hops.iter().any(|hop| hop.manager == to),
                _ => false,
            };
            if asked {
                claims.push(Claim {
                    id: id.clone(),
                    attempt: pending.attempt,
                    granted: None,
                });
            }
        }
        (claims, until)
    }

    /// Takes the number that claims need.
    pub(super) fn welcomed(&mut self, from: &str, of_round: u64, nonce: u64) {
        let now_ns = self.now_ns;
        let pass = self.peers.get_mut(from).and_then(|peer| peer.pass.as_mut());
        if let Some(pass) = pass.filter(|pass| pass.nonce.is_none() && pass.is_of(of_round)) {
            pass.nonce = Some(nonce);
            pass.sent = None;
            pass.tries = 0;
            pass.at_ns = now_ns;
            self.claim_what_is_due();
        }
    }

    /// Begins the claims at another manager anew: it does not take their number.
    pub(super) fn is_stale(&mut self, from: &str, of_round: u64) {
        let now_ns = self.now_ns;
        let is_of = |pass: &Pass| pass.is_of(of_round);
        let peer = self.peers.get_mut(from);
        if let Some(peer) = peer.filter(|peer| peer.pass.as_ref().is_some_and(is_of)) {
            peer.claim_anew(now_ns);
            self.claim_what_is_due();
        }
    }

    /// Gives another manager the number that its claims need; returns the answer.
    pub(super) fn greeted(&mut self, from: &str, epoch: u64, round: u64) -> Option<Message> {
        let nonce = self.next_count;
        let peer = self.peers.get_mut(from)?;
        peer.nonce = Some((epoch, nonce));
        peer.claimed_to = None;
        self.next_count += 1;
        Some(Message::Welcome { round, nonce })
    }

    /// Takes the answer to a page.
    pub(super) fn page_answered(
        &mut self,
        from: &str,
        of_round: u64,
        lost: Vec<(String, Attempt)>,
        is_again: bool,
    ) {
        let now_ns = self.now_ns;
        let Some(peer) = self.peers.get_mut(from) else {
            return;
        };
        let Some(pass) = peer.pass.as_mut().filter(|pass| pass.is_of(of_round)) else {
            return;
        };
        let until = pass.sent.take().and_then(|(_, until)| until);
        let page = (pass.after.clone(), until.clone());
        pass.is_again |= is_again;
        pass.tries = 0;
        pass.at_ns = now_ns;
        match until {
            Some(last) => pass.after = last,
            None if pass.is_again => {
                *pass = Pass::default();
                pass.at_ns = pass.retry_at_ns(now_ns);
            }
            None => peer.pass = None,
        }
        for (id, attempt) in lost {
            // Of what the page did not say, the other one has nothing to say.
            let is_within = id > page.0 && page.1.as_ref().is_none_or(|last| id <= *last);
            let own = self.reservations.get(id.as_str());
            let is_lost = own.is_some_and(|of| {
                of.state == ReservationState::Granted
                    && of.attempt == attempt
                    && is_within
                    && self.crosses(&of.grant.links, from)
            });
            if is_lost {
                self.lose(&id, from.to_owned());
            }
        }
        self.claim_what_is_due();
    }

    /// Returns whether a manager has one of these links.
    fn crosses(&self, links: &[LinkBytes], manager: &str) -> bool {
        let hops = self.hops(links);
        hops.iter().any(|hop| hop.manager == manager)
    }

    /// Takes a page of another's claims; returns the answer.
    pub(super) fn claimed(
        &mut self,
        from: &str,
        (round, nonce, before): (u64, u64, Attempt),
        (after, until): (&str, Option<&str>),
        claims: Vec<Claim>,
    ) -> Option<Message> {
        if self.peers.get(from)?.nonce != Some((before.epoch, nonce)) {
            return Some(Message::Stale { round });
        }
        let claims: BTreeMap<String, Claim> =
            claims.into_iter().map(|of| (of.id.clone(), of)).collect();
        self.free_unclaimed(from, (after, until), before, &claims);
        let mut answer = (Vec::new(), false);
        let others_have = self
            .peers
            .iter()
            .all(|(name, peer)| peer.has_claimed || name == from);
        let is_first = !self.peers.get(from).is_some_and(|peer| peer.has_claimed);
        for (id, claim) in claims {
            let Some(granted) = claim.granted else {
                continue;
            };
            if !self.has_claim(from, &id, claim.attempt, granted) {
                // While others may free something, or this one, it may fit later.
                if is_first || !others_have {
                    answer.1 = true;
                } else {
                    answer.0.push((id, claim.attempt));
                }
            }
        }
        if let Some(peer) = self.peers.get_mut(from) {
            let follows = match &peer.claimed_to {
                None => after.is_empty(),
                Some(to) => after <= to.as_str(),
            };
            if follows && !peer.has_claimed {
                peer.has_claimed = until.is_none();
                peer.claimed_to = until.map(str::to_owned);
            }
        }
        let (lost, is_again) = answer;
        Some(Message::Claimed {
            round,
            lost,
            is_again,
        })
    }

    /// Frees what a coordinator has in a range of ids and does not claim.
    fn free_unclaimed(
        &mut self,
        from: &str,
        (after, until): (&str, Option<&str>),
        before: Attempt,
        claims: &BTreeMap<String, Claim>,
    ) {
        let prefix = part_name(from, "");
        let first = (Bound::Excluded(part_name(from, after)), Bound::Unbounded);
        let found = self.parts.all().range(first);
        let found = found.take_while(|(name, _)| {
            let id = name.strip_prefix(prefix.as_str());
            id.is_some_and(|id| until.is_none_or(|last| id <= last))
        });
        let began_later = |of: Attempt| of.epoch == before.epoch && of.count >= before.count;
        let orphans = found.filter(|(name, part)| {
            let id = name.strip_prefix(prefix.as_str()).unwrap_or_default();
            part.state != PartState::Dead
                && !began_later(part.attempt)
                && claims.get(id).is_none_or(|claim| {
                    claim.attempt != part.attempt && !part.attempt.is_after(claim.attempt)
                })
        });
        let orphans: BTreeSet<_> = orphans
            .map(|(name, part)| (name.clone(), part.attempt))
            .collect();
        for (name, attempt) in orphans {
            let (now_ns, updates) = (self.now_ns, &mut self.effects.updates);
            self.parts.release(now_ns, &name, attempt, updates);
        }
    }

    /// Makes what is claimed last as long as its coordinator says; returns whether it is here.
    fn has_claim(&mut self, from: &str, id: &str, attempt: Attempt, of: Claimed) -> bool {
        let name = part_name(from, id);
        let lease_ns = self.shortened(of.lease_ns);
        let left_ns = self.shortened(of.left_ns);
        let lease = (lease_ns, self.now_ns.saturating_add(left_ns));
        let now_ns = self.now_ns;
        let updates = &mut self.effects.updates;
        if let Some(part) = self.parts.all().get(&name).filter(|p| p.attempt == attempt) {
            return match part.state {
                PartState::Dead => false,
                PartState::Held => self.parts.commit(now_ns, &name, attempt, left_ns, updates),
                PartState::Committed => self.parts.refresh(&name, attempt, lease, updates),
            };
        }
        let wanted = Wanted {
            attempt,
            stream_id: &of.stream_id,
            frames: &of.frames,
            links: &of.links,
        };
        self.parts.take_back(&name, &wanted, lease, updates).is_ok()
    }
}
