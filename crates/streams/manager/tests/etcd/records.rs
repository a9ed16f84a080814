// SPDX-License-Identifier: MIT OR Apache-2.0
//! What must hold of the records in etcd, read at one revision. It knows their form and nothing of how
//! a manager decides.

use std::collections::{BTreeMap, BTreeSet};

use manager::etcd::gateway::{EtcdError, Gateway};
use manager_proto::record::{Clock, Meta, Part, PartState, Record, Reservation, ReservationState};

use super::requests::{S, body};

const PAGE: u64 = 1_000;

/// The records of a manager.
#[derive(Clone, Debug, Default)]
pub struct Records {
    pub meta: Option<Meta>,
    /// By coordinator and id.
    pub parts: BTreeMap<(String, String), Part>,
    pub reservations: BTreeMap<String, Reservation>,
}

/// Reads the records of all managers at one moment.
pub fn read(etcd: &Gateway) -> Result<BTreeMap<String, Records>, EtcdError> {
    let mut all: BTreeMap<String, Records> = BTreeMap::new();
    let (mut after, mut revision) = (None, 0);
    loop {
        let page = etcd.read("pspacer/", after.as_deref(), (PAGE, revision))?;
        if revision == 0 {
            revision = page.revision;
        }
        after = page.pairs.last().map(|(key, _)| key.clone());
        for (key, value) in page.pairs {
            let mut words = key.splitn(4, '/').skip(1);
            let (name, kind) = (words.next().unwrap(), words.next().unwrap());
            if kind != "record" {
                continue;
            }
            let of = all.entry(name.to_owned()).or_default();
            match Record::read(key.splitn(4, '/').nth(3).unwrap(), &value).unwrap() {
                Record::Meta(meta) => of.meta = Some(meta),
                Record::Part(name, part) => {
                    let (coordinator, id) = name.split_once('/').unwrap();
                    of.parts
                        .insert((coordinator.to_owned(), id.to_owned()), part);
                }
                Record::Reservation(id, reservation) => {
                    of.reservations.insert(id, reservation);
                }
            }
        }
        if !page.has_more {
            break;
        }
    }
    let is_only = all.len() == 1;
    for (name, of) in &mut all {
        of.take_own(name, |link| is_only || (name == "m1") == (link == "s"));
    }
    Ok(all)
}

/// Returns a time by the clock of the last start.
fn time(clock: &Clock, (number, at_ns): (u32, u64)) -> Result<u64, String> {
    if number == clock.number {
        return Ok(at_ns);
    }
    let more_ns = clock.older.get(&number);
    let more_ns = more_ns.ok_or_else(|| format!("nobody knows the clock {number}"))?;
    Ok(at_ns.saturating_add_signed(*more_ns))
}

impl Records {
    /// Adds the parts of a manager's own reservations, which follow from these.
    fn take_own(&mut self, name: &str, is_own: impl Fn(&str) -> bool) {
        for (id, of) in &self.reservations {
            let links = of.grant.links.iter().filter(|link| is_own(&link.link));
            let links: Vec<_> = links.cloned().collect();
            if of.state == ReservationState::Granted && !links.is_empty() {
                let part = Part {
                    attempt: of.attempt,
                    state: PartState::Committed,
                    stream_id: of.grant.stream_id.clone(),
                    frames: Vec::new(),
                    links,
                    lease_ns: of.lease_ns,
                    expires_ns: of.expires_ns,
                    clock: of.clock,
                };
                self.parts.insert((name.to_owned(), id.clone()), part);
            }
        }
    }

    fn is_granted(&self, id: &str) -> bool {
        let of = self.reservations.get(id);
        of.is_some_and(|of| of.state == ReservationState::Granted)
    }

    /// Returns the parts that have bytes.
    fn live(&self) -> impl Iterator<Item = (&(String, String), &Part)> {
        let all = self.parts.iter();
        all.filter(|(_, part)| part.state != PartState::Dead)
    }

    /// Returns whether nothing is reserved.
    pub fn is_empty(&self) -> bool {
        let granted = self.reservations.keys().any(|id| self.is_granted(id));
        !granted && self.live().next().is_none()
    }
}

/// Checks records at one moment; `due` are the ids whose promises hold then.
pub fn check(
    all: &BTreeMap<String, Records>,
    budgets: &BTreeMap<String, u64>,
    due: &BTreeSet<String>,
) -> Result<(), String> {
    let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
    let mut streams: BTreeMap<(&str, &str), &str> = BTreeMap::new();
    for (name, records) in all {
        let Some(meta) = &records.meta else {
            return Err(format!("{name} has records and no clock"));
        };
        for ((coordinator, id), part) in records.live() {
            for of in &part.links {
                *sums.entry(&of.link).or_default() += of.bytes;
            }
            // Another manager's may wait for the word that it has ended; one's own has not.
            let own = records.reservations.get(id);
            let is_known = own.is_some_and(|of| {
                of.state == ReservationState::Granted && of.attempt == part.attempt
            });
            if coordinator == name && part.state == PartState::Committed && !is_known {
                return Err(format!("{id} has bytes at {name} and is not granted"));
            }
        }
        for (id, of) in &records.reservations {
            if of.state != ReservationState::Granted {
                continue;
            }
            let stream = (name.as_str(), of.grant.stream_id.as_str());
            if let Some(other) = streams.insert(stream, id) {
                return Err(format!("{} is granted to {other} and {id}", stream.1));
            }
            let mut has: BTreeMap<&str, u64> = BTreeMap::new();
            for records in all.values() {
                let part = records.parts.get(&(name.clone(), id.clone()));
                let part = part.filter(|part| part.state != PartState::Dead);
                let part = part.filter(|part| part.attempt == of.attempt);
                has.extend(
                    part.iter()
                        .flat_map(|part| &part.links)
                        .map(|of| (of.link.as_str(), of.bytes)),
                );
            }
            let own = records.parts.get(&(name.clone(), id.clone()));
            // Another manager's part may end before this one, which was away, notes that the lease has.
            let counts = all.len() == 1 || due.contains(id);
            for link in of.grant.links.iter().filter(|_| counts) {
                if has.get(link.link.as_str()) != Some(&link.bytes) {
                    return Err(format!("{id} is granted and has no bytes of {}", link.link));
                }
            }
            let ends_ns = time(&meta.clock, (of.clock, of.expires_ns))?;
            if let Some(part) = own {
                let part_ns = time(&meta.clock, (part.clock, part.expires_ns))?;
                if part_ns < ends_ns || part.state != PartState::Committed {
                    return Err(format!(
                        "the bytes of {id} end before it: {part_ns} < {ends_ns}"
                    ));
                }
            }
        }
    }
    for (link, bytes) in sums {
        let most = budgets.get(link).copied().unwrap_or(0);
        if bytes > most {
            return Err(format!("{link} has {bytes} bytes, its budget is {most}"));
        }
    }
    let is_there = |id: &str| all.values().any(|records| records.is_granted(id));
    match due.iter().find(|id| !is_there(id)) {
        Some(id) => Err(format!("{id} was promised and is lost")),
        None => Ok(()),
    }
}

/// Checks that nothing is left.
pub fn check_end(all: &BTreeMap<String, Records>) -> Result<(), String> {
    match all.iter().find(|(_, records)| !records.is_empty()) {
        Some((name, _)) => Err(format!("something is left at {name}")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod mutants {
    //! Damaged records: each is found.
    use admission::{Grant, LinkBytes};
    use manager_proto::record::Attempt;

    use super::*;

    fn attempt(count: u64) -> Attempt {
        Attempt { epoch: 1, count }
    }

    fn grant(id: &str) -> Grant {
        serde_json::from_value(serde_json::json!({
            "stream_id": format!("stream-{id}"), "listeners": [], "spread_periods": 1,
            "links": [{"link": "s", "bytes": 10}],
        }))
        .unwrap()
    }

    fn add(records: &mut Records, id: &str) {
        let part = Part {
            attempt: attempt(0),
            state: PartState::Committed,
            stream_id: format!("stream-{id}").into(),
            frames: Vec::new(),
            links: vec![LinkBytes {
                link: "s".into(),
                bytes: 10,
            }],
            lease_ns: S,
            expires_ns: 5 * S,
            clock: 0,
        };
        let reservation = Reservation {
            state: ReservationState::Granted,
            owner: "a".into(),
            request: body(id, 1, S).stream,
            grant: grant(id),
            attempt: attempt(0),
            lease_ns: S,
            expires_ns: 5 * S,
            clock: 0,
            in_force_by_ns: None,
            in_force: BTreeSet::new(),
            measured: BTreeMap::new(),
        };
        records.parts.insert(key(id), part);
        records.reservations.insert(id.to_owned(), reservation);
    }

    fn key(id: &str) -> (String, String) {
        ("m".to_owned(), id.to_owned())
    }

    /// Returns what is wrong after some damage, if anything.
    fn after(damage: impl FnOnce(&mut Records)) -> String {
        let clock = Clock {
            number: 1,
            boot: String::new(),
            now_ns: 0,
            older: [(0, 7)].into(),
        };
        let mut records = Records {
            meta: Some(Meta {
                name: "m".to_owned(),
                epoch: 1,
                clock,
            }),
            ..Records::default()
        };
        add(&mut records, "x");
        add(&mut records, "y");
        damage(&mut records);
        let all = [("m".to_owned(), records)].into();
        let budgets = [("s".to_owned(), 20)].into();
        let due = ["x".to_owned()].into();
        check(&all, &budgets, &due).err().unwrap_or_default()
    }

    #[test]
    fn damaged_records_are_found() {
        assert_eq!(after(|_| {}), "");
        let found = [
            after(|of| add(of, "z")),
            after(|of| drop(of.parts.remove(&key("y")))),
            after(|of| of.parts.get_mut(&key("y")).unwrap().state = PartState::Dead),
            after(|of| of.parts.get_mut(&key("y")).unwrap().attempt = attempt(1)),
            after(|of| of.parts.get_mut(&key("y")).unwrap().links[0].bytes = 9),
            after(|of| of.parts.get_mut(&key("y")).unwrap().expires_ns -= 1),
            after(|of| of.parts.get_mut(&key("y")).unwrap().state = PartState::Held),
            after(|of| drop(of.reservations.remove("y"))),
            after(|of| of.reservations.get_mut("y").unwrap().state = ReservationState::Ended),
            after(|of| of.reservations.get_mut("y").unwrap().clock = 3),
            after(|of| {
                of.reservations.remove("x");
                of.parts.remove(&key("x"));
            }),
            after(|of| {
                of.reservations.get_mut("y").unwrap().grant.stream_id = "stream-x".into();
            }),
            after(|of| of.meta = None),
        ];
        let expected = [
            "s has 30 bytes, its budget is 20",
            "y is granted and has no bytes of s",
            "y is granted and has no bytes of s",
            "y has bytes at m and is not granted",
            "y is granted and has no bytes of s",
            "the bytes of y end before it: 5000000006 < 5000000007",
            "the bytes of y end before it: 5000000007 < 5000000007",
            "y has bytes at m and is not granted",
            "y has bytes at m and is not granted",
            "nobody knows the clock 3",
            "x was promised and is lost",
            "stream-x is granted to x and y",
            "m has records and no clock",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn what_is_left_is_found() {
        let end = |damage: fn(&mut Records)| {
            let mut records = Records::default();
            damage(&mut records);
            check_end(&[("m".to_owned(), records)].into())
        };
        assert!(end(|_| {}).is_ok());
        assert!(end(|of| add(of, "x")).is_err());
        let without_part = |of: &mut Records| {
            add(of, "x");
            of.parts.clear();
        };
        let without_grant = |of: &mut Records| {
            add(of, "x");
            of.reservations.clear();
        };
        assert!(end(without_part).is_err() && end(without_grant).is_err());
    }
}
