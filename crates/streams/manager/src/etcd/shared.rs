// SPDX-License-Identifier: MIT OR Apache-2.0
//! Commands as transactions of etcd. Whichever manager carries one out, it reads what it needs at one
//! moment, decides, and writes only if none of the links of the path has got another reservation since.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;

use admission::{Ledger, LinkUse, Plan, Refusal, StreamRequest, Topology, is_name, plan};
use units::time::NS_PER_S;

use super::gateway::{Condition, EtcdError, Gateway, Keys, Pair, Snapshot, Write};
use super::leases::{LeaseTable, Leases, begin, end, now_ns, seconds};
use super::look::manager_of;
use super::records::{
    LIVE, RESERVATION, STREAM, StoredReservation, TOPOLOGY, USE, bad, found_in, use_keys,
    use_prefix, value, writes,
};
use crate::answer::{Answer, Caller, Command, Failure, View};
use crate::digest::digest;
use crate::machine::{Limits, Manager};
use crate::record::{Reservation, ReservationState};
use crate::reroute::wanted_route;
use crate::update;

/// Longest time for a command, ns: an etcd that elects a leader needs some seconds.
const DEADLINE_NS: u64 = 6 * NS_PER_S;
/// Leases of a try that failed are used again for so long, ns.
const FRESH_NS: u64 = NS_PER_S;
/// etcd may make a short lease so much longer, s; then it is the one that was asked for.
const LONGER_S: u64 = 2;
/// Longest wait between tries, ms.
const LONGEST_PAUSE_MS: u64 = 100;

/// A manager that shares its links with others.
#[derive(Debug)]
pub struct Shared {
    name: String,
    boot: String,
    topology: Arc<Topology>,
    digest: String,
    limits: Limits,
    etcd: Gateway,
    /// What is known of leases, by number.
    known: LeaseTable,
}

/// An answer; `None`: others were faster, so it has to be decided anew.
type Tried = Result<Option<Answer>, EtcdError>;

#[allow(clippy::unnecessary_wraps, reason = "most tries end so")]
fn failed(failure: Failure) -> Tried {
    Ok(Some(Answer::Failed(failure)))
}

impl Shared {
    /// Makes a manager of a network whose segments are all decided over by managers that share this
    /// etcd.
    ///
    /// # Errors
    /// If etcd does not answer, or has reservations of another topology.
    pub fn start(
        name: &str,
        topology: Arc<Topology>,
        limits: Limits,
        etcd: Gateway,
        boot: String,
    ) -> Result<Self, EtcdError> {
        let shared = Self {
            name: name.to_owned(),
            boot,
            digest: format!("{:016x}", digest(&topology)),
            topology,
            limits,
            etcd,
            known: LeaseTable::default(),
        };
        let own = &shared.digest;
        let is_it = [Condition::ValueIs(TOPOLOGY.to_owned(), own.clone())];
        if shared.etcd.transact(&is_it, &[])? {
            return Ok(shared);
        }
        // Another topology, or none yet: nothing is reserved, and whoever had the other one finds out
        // by his next transaction.
        let is_empty = [Condition::NoneLike(USE.to_owned())];
        let put = Write::Keep(TOPOLOGY.to_owned(), own.clone().into_bytes());
        if shared.etcd.transact(&is_empty, &[put])? {
            return Ok(shared);
        }
        // Others may have begun with the same one just now.
        shared.read(&[])?;
        Ok(shared)
    }

    /// Reads keys, and makes sure that the managers agree about the topology.
    fn read(&self, keys: &[Keys]) -> Result<Snapshot, EtcdError> {
        let all: Vec<_> = [Keys::One(TOPOLOGY.to_owned())]
            .into_iter()
            .chain(keys.iter().cloned())
            .collect();
        let mut snapshot = self.etcd.read(&all)?;
        let topology = snapshot.found.remove(0);
        match topology.first() {
            Some(pair) if pair.value == self.digest.as_bytes() => Ok(snapshot),
            found => {
                let of = found.map(|pair| String::from_utf8_lossy(&pair.value).into_owned());
                Err(EtcdError::Refused(format!(
                    "its reservations are of topology {}, expected {}: start all managers with the \
                     same file, and with another one when nothing is reserved",
                    of.as_deref().unwrap_or("none"),
                    self.digest
                )))
            }
        }
    }

    fn is_own_topology(&self) -> Condition {
        Condition::ValueIs(TOPOLOGY.to_owned(), self.digest.clone())
    }

    /// Carries out a command.
    pub fn command(&self, command: &Command) -> Answer {
        let mut leases = None;
        self.until_deadline(|| self.attempt(command, &mut leases))
            .unwrap_or_else(|error| match error {
                Some(error) => Answer::Failed(Failure::Store(error.to_string())),
                None => Answer::Failed(Failure::Busy),
            })
    }

    /// Tries until there is a result or the deadline has passed; returns the last error then, `None` if
    /// others were faster each time.
    fn until_deadline<T>(
        &self,
        mut attempt: impl FnMut() -> Result<Option<T>, EtcdError>,
    ) -> Result<T, Option<EtcdError>> {
        let deadline_ns = now_ns()?.saturating_add(DEADLINE_NS);
        let mut pause_ms = 0;
        loop {
            let problem = match attempt() {
                Ok(Some(done)) => return Ok(done),
                Ok(None) => None,
                Err(refused @ EtcdError::Refused(_)) => return Err(Some(refused)),
                Err(error) => Some(error),
            };
            if now_ns()? >= deadline_ns {
                return Err(problem);
            }
            pause_ms = (pause_ms + 3).min(LONGEST_PAUSE_MS);
            sleep(Duration::from_millis(pause_ms));
        }
    }

    fn attempt(&self, command: &Command, leases: &mut Option<Leases>) -> Tried {
        match command {
            Command::Reserve {
                id,
                caller,
                request,
                lease_ns,
            } => self.reserve(id, caller, request, *lease_ns, leases),
            Command::Refresh {
                id,
                caller,
                lease_ns,
            } => self.refresh(id, caller, *lease_ns),
            Command::Release { id, caller } => self.release(id, caller),
            Command::Report {
                id,
                caller,
                node,
                is_in_force,
            } => self.change(id, caller, |of| {
                update::report(of, node.clone(), *is_in_force)
            }),
            Command::Measure {
                id,
                caller,
                listener,
                measured,
            } => self.change(id, caller, |of| {
                update::measure(of, listener.clone(), *measured)
            }),
            Command::Reroute {
                id,
                caller,
                node,
                segment,
            } => self.reroute(id, caller, (node, segment)),
        }
    }

    fn reserve(
        &self,
        id: &str,
        caller: &Caller,
        request: &StreamRequest,
        lease_ns: u64,
        leases: &mut Option<Leases>,
    ) -> Tried {
        if !is_name(id) {
            return failed(Failure::Id(id.chars().take(64).collect()));
        }
        if let Err(failure) = self.limits.check_lease(lease_ns) {
            return failed(failure);
        }
        let planned = plan(&self.topology, request);
        let stream_key = format!("{STREAM}{}", request.stream_id);
        let mut keys = vec![
            Keys::One(format!("{RESERVATION}{id}")),
            Keys::One(format!("{LIVE}{id}")),
            Keys::One(stream_key.clone()),
        ];
        let uses = planned.as_ref().map(|plan| plan.uses.as_slice());
        let prefixes = self.prefixes(uses.unwrap_or_default());
        keys.extend(prefixes.iter().cloned().map(Keys::Prefix));
        let snapshot = self.read(&keys)?;
        if let Some(found) = found_in(&snapshot)? {
            // The leases of a try that was too late, unless it is this reservation's own.
            if let Some(of) = leases.take().filter(|of| found.lease != Some(of.live)) {
                end(&self.etcd, &[of.live, of.record]);
            }
            let old = &found.reservation;
            let is_same = old.owner == caller.name && old.request == *request;
            return if is_same {
                self.granted_view(id, &found)
            } else {
                failed(Failure::IdInUse(id.to_owned()))
            };
        }
        let refused = match planned {
            Ok(plan) => {
                if snapshot.found[2].is_empty() {
                    self.fits(&plan, id, &snapshot.found[3..])?.map(|()| plan)
                } else {
                    Err(Refusal::StreamIdInUse {
                        stream_id: request.stream_id.clone(),
                    })
                }
            }
            Err(refusal) => Err(refusal),
        };
        let plan = match refused {
            Ok(plan) => plan,
            Err(refusal) => {
                if let Some(of) = leases.take() {
                    end(&self.etcd, &[of.live, of.record]);
                }
                return Ok(Some(Answer::Refused(refusal)));
            }
        };
        let mine = match leases.take() {
            Some(of) if of.since_ns.saturating_add(FRESH_NS) > now_ns()? => of,
            old => {
                end(
                    &self.etcd,
                    &old.map_or(vec![], |of| vec![of.live, of.record]),
                );
                begin(&self.etcd, seconds(lease_ns), self.memory_s())?
            }
        };
        *leases = Some(mine);
        let reservation = Reservation {
            state: ReservationState::Granted,
            owner: caller.name.clone(),
            request: request.clone(),
            grant: plan.grant,
            attempt: 0,
            lease_ns,
            // The lease says.
            expires_ns: 0,
            in_force_by_ns: None,
            in_force: BTreeSet::new(),
            measured: BTreeMap::new(),
        };
        let mut when = vec![
            self.is_own_topology(),
            Condition::Absent(format!("{RESERVATION}{id}")),
            Condition::Absent(stream_key),
        ];
        let newer = |prefix| Condition::NoneNewer(prefix, snapshot.revision);
        when.extend(prefixes.into_iter().map(newer));
        let then = writes(id, &reservation, (mine.record, mine.live));
        match self.etcd.transact(&when, &then) {
            Ok(true) => {
                self.known.note(mine.live, mine.since_ns, mine.length_s);
                let found = StoredReservation {
                    reservation,
                    revision: 0,
                    record_lease: mine.record,
                    lease: Some(mine.live),
                };
                self.granted_view(id, &found)
            }
            Ok(false) => Ok(None),
            Err(EtcdError::NoLease) => {
                *leases = None;
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// How long the record of a reservation outlives it, s.
    fn memory_s(&self) -> u64 {
        seconds(self.limits.tombstone_ns)
    }

    fn prefixes(&self, uses: &[LinkUse]) -> Vec<String> {
        let names = uses.iter().map(|of| &self.topology.link(of.link).name);
        names.map(|name| use_prefix(name)).collect()
    }

    /// Compares the bytes with what others have left. O(reservations of the links).
    fn fits(
        &self,
        plan: &Plan,
        id: &str,
        used: &[Vec<Pair>],
    ) -> Result<Result<(), Refusal>, EtcdError> {
        let mut others = Vec::new();
        for (of, pairs) in plan.uses.iter().zip(used) {
            let prefix = use_prefix(&self.topology.link(of.link).name);
            let mut bytes: u64 = 0;
            for pair in pairs {
                let text = std::str::from_utf8(&pair.value).map_err(|_| bad(pair))?;
                let used: u64 = text.parse().map_err(|_| bad(pair))?;
                if pair.key.strip_prefix(&prefix) != Some(id) {
                    bytes = bytes.saturating_add(used);
                }
            }
            others.push(LinkUse {
                link: of.link,
                bytes,
            });
        }
        let mut ledger = Ledger::default();
        // No id is empty.
        let fits = ledger
            .insert(&self.topology, "", others)
            .and_then(|()| ledger.fits(&self.topology, id, &plan.uses));
        Ok(fits)
    }

    /// Reads a reservation that is in use and that the caller may change.
    fn granted(
        &self,
        id: &str,
        caller: &Caller,
    ) -> Result<Result<(StoredReservation, i64), Failure>, EtcdError> {
        let short = || id.chars().take(64).collect::<String>();
        if !is_name(id) {
            return Ok(Err(Failure::Unknown(short())));
        }
        let snapshot = self.read(&[
            Keys::One(format!("{RESERVATION}{id}")),
            Keys::One(format!("{LIVE}{id}")),
        ])?;
        Ok(match found_in(&snapshot)? {
            None => Err(Failure::Unknown(short())),
            Some(of) if of.reservation.owner != caller.name && !caller.is_operator => {
                Err(Failure::Forbidden(short()))
            }
            Some(of) => match of.lease {
                Some(lease) => Ok((of, lease)),
                None => Err(Failure::Ended(short())),
            },
        })
    }

    fn granted_view(&self, id: &str, found: &StoredReservation) -> Tried {
        let ended = || failed(Failure::Ended(id.to_owned()));
        let Some(lease) = found.lease else {
            return ended();
        };
        let Some(ends_ns) = self.known.ends(&self.etcd, &[lease])?.get(&lease).copied() else {
            return ended();
        };
        let reservation = Reservation {
            expires_ns: ends_ns,
            ..found.reservation.clone()
        };
        let view = View::new(id, &reservation, now_ns()?);
        Ok(Some(Answer::Granted(Box::new(view))))
    }

    fn refresh(&self, id: &str, caller: &Caller, lease_ns: Option<u64>) -> Tried {
        let (found, lease) = match self.granted(id, caller)? {
            Ok(found) => found,
            Err(failure) => return failed(failure),
        };
        let lease_ns = lease_ns.unwrap_or(found.reservation.lease_ns);
        if let Err(failure) = self.limits.check_lease(lease_ns) {
            return failed(failure);
        }
        let wanted_s = seconds(lease_ns);
        let now = self.etcd.left(lease)?;
        let is_so_long = (wanted_s..=wanted_s.saturating_add(LONGER_S)).contains(&now.granted_s);
        if !is_so_long || lease_ns != found.reservation.lease_ns {
            // It ends no earlier than it would have.
            let length_s = wanted_s.max(now.left_s.saturating_add(1));
            return self.replace_leases(id, (found, lease), lease_ns, length_s);
        }
        // The record outlives the bytes.
        self.etcd.keep_alive(found.record_lease)?;
        let since_ns = now_ns()?;
        let kept = self.etcd.keep_alive(lease)?;
        let (again, lease_now) = match self.granted(id, caller)? {
            Ok(found) => found,
            Err(failure) => return failed(failure),
        };
        // A leader that has been voted out promises what its successor does not know of
        // (etcd-io/etcd#15247). If the term is the same after it, it was still the leader.
        let term = self.read(&[])?.term;
        if lease_now != lease || kept.term != term {
            return Ok(None);
        }
        self.known.note(lease, since_ns, kept.left_s);
        self.granted_view(id, &again)
    }

    fn replace_leases(
        &self,
        id: &str,
        (found, old): (StoredReservation, i64),
        lease_ns: u64,
        length_s: u64,
    ) -> Tried {
        let mine = begin(&self.etcd, length_s, self.memory_s())?;
        let reservation = Reservation {
            lease_ns,
            ..found.reservation
        };
        let when = [
            self.is_own_topology(),
            Condition::LastChanged(format!("{RESERVATION}{id}"), found.revision),
            Condition::Present(format!("{LIVE}{id}")),
        ];
        if !self
            .etcd
            .transact(&when, &writes(id, &reservation, (mine.record, mine.live)))?
        {
            // Unless an answer was lost and it was written.
            let keys = [
                Keys::One(format!("{RESERVATION}{id}")),
                Keys::One(format!("{LIVE}{id}")),
            ];
            let now = found_in(&self.read(&keys)?)?;
            if now.is_none_or(|now| now.lease != Some(mine.live)) {
                end(&self.etcd, &[mine.live, mine.record]);
            }
            return Ok(None);
        }
        end(&self.etcd, &[old, found.record_lease]);
        self.known.note(mine.live, mine.since_ns, mine.length_s);
        let found = StoredReservation {
            reservation,
            revision: 0,
            record_lease: mine.record,
            lease: Some(mine.live),
        };
        self.granted_view(id, &found)
    }

    fn release(&self, id: &str, caller: &Caller) -> Tried {
        let released = || Ok(Some(Answer::Released(id.to_owned())));
        let (found, lease) = match self.granted(id, caller)? {
            Ok(found) => found,
            // Freed before: the same command twice has the same answer.
            Err(Failure::Ended(_)) => return released(),
            Err(failure) => return failed(failure),
        };
        let (memory, _) = self.etcd.grant(self.memory_s())?;
        let key = format!("{RESERVATION}{id}");
        let when = [
            Condition::LastChanged(key.clone(), found.revision),
            Condition::Present(format!("{LIVE}{id}")),
        ];
        let mut then = vec![
            Write::Delete(format!("{LIVE}{id}")),
            Write::Delete(format!("{STREAM}{}", found.reservation.grant.stream_id)),
        ];
        then.extend(
            use_keys(id, &found.reservation.grant)
                .into_keys()
                .map(Write::Delete),
        );
        then.push(Write::Put {
            key,
            value: value(id, &found.reservation),
            lease: memory,
        });
        if !self.etcd.transact(&when, &then)? {
            return Ok(None);
        }
        end(&self.etcd, &[lease, found.record_lease]);
        released()
    }

    /// Changes the record of a reservation.
    fn change(
        &self,
        id: &str,
        caller: &Caller,
        change: impl FnOnce(&mut Reservation) -> Result<bool, Failure>,
    ) -> Tried {
        let (mut found, _) = match self.granted(id, caller)? {
            Ok(found) => found,
            Err(failure) => return failed(failure),
        };
        match change(&mut found.reservation) {
            Ok(true) => {}
            Ok(false) => return self.granted_view(id, &found),
            Err(failure) => return failed(failure),
        }
        let key = format!("{RESERVATION}{id}");
        let when = [
            Condition::LastChanged(key.clone(), found.revision),
            Condition::Present(format!("{LIVE}{id}")),
        ];
        let then = [Write::Change(key, value(id, &found.reservation))];
        if self.etcd.transact(&when, &then)? {
            self.granted_view(id, &found)
        } else {
            Ok(None)
        }
    }

    /// Moves a reservation to the route that its frames take: all of it, or it stays as it is.
    fn reroute(&self, id: &str, caller: &Caller, path: (&str, &str)) -> Tried {
        let (mut found, lease) = match self.granted(id, caller)? {
            Ok(found) => found,
            Err(failure) => return failed(failure),
        };
        let wanted = match wanted_route(&self.topology, &found.reservation, path) {
            Ok(Some(wanted)) => wanted,
            Ok(None) => return self.granted_view(id, &found),
            Err(answer) => return Ok(Some(*answer)),
        };
        let plan = match plan(&self.topology, &wanted) {
            Ok(plan) => plan,
            Err(refusal) => return Ok(Some(Answer::Refused(refusal))),
        };
        let prefixes = self.prefixes(&plan.uses);
        let keys: Vec<_> = prefixes.iter().cloned().map(Keys::Prefix).collect();
        let snapshot = self.read(&keys)?;
        if let Err(refusal) = self.fits(&plan, id, &snapshot.found)? {
            return Ok(Some(Answer::Refused(refusal)));
        }
        let key = format!("{RESERVATION}{id}");
        let mut when = vec![
            self.is_own_topology(),
            Condition::LastChanged(key.clone(), found.revision),
            Condition::Present(format!("{LIVE}{id}")),
        ];
        let newer = |prefix| Condition::NoneNewer(prefix, snapshot.revision);
        when.extend(prefixes.into_iter().map(newer));
        let before = use_keys(id, &found.reservation.grant);
        let after = use_keys(id, &plan.grant);
        found.reservation.grant = plan.grant;
        found.reservation.in_force.clear();
        found.reservation.measured.clear();
        let gone = before.into_keys().filter(|key| !after.contains_key(key));
        let mut then: Vec<_> = gone.map(Write::Delete).collect();
        then.extend(after.iter().map(|(key, bytes)| Write::Put {
            key: key.clone(),
            value: bytes.to_string().into_bytes(),
            lease,
        }));
        then.push(Write::Change(key, value(id, &found.reservation)));
        if self.etcd.transact(&when, &then)? {
            self.granted_view(id, &found)
        } else {
            Ok(None)
        }
    }

    /// Returns a manager that knows all reservations as they are now, for whoever looks at them.
    /// O(reservations).
    ///
    /// # Errors
    /// If etcd does not answer.
    pub fn look(&self) -> Result<Manager, EtcdError> {
        let away = || EtcdError::Away("it elects a leader again and again".to_owned());
        self.until_deadline(|| self.try_to_look().map(Some))
            .map_err(|error| error.unwrap_or_else(away))
    }

    fn try_to_look(&self) -> Result<Manager, EtcdError> {
        let snapshot = self.read(&[
            Keys::Prefix(RESERVATION.to_owned()),
            Keys::Prefix(LIVE.to_owned()),
        ])?;
        let leases: Vec<_> = snapshot.found[1].iter().map(|of| of.lease).collect();
        self.known.keep(&leases.iter().copied().collect());
        let ends = self.known.ends(&self.etcd, &leases)?;
        manager_of(
            (&self.name, &self.boot),
            Arc::clone(&self.topology),
            self.limits,
            &snapshot,
            &ends,
        )
    }
}
