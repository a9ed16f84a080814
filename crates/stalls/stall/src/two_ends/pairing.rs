// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the packets of one end's capture in the other's.

use std::collections::VecDeque;
use std::num::NonZeroU64;

use rustc_hash::FxHashMap;

use super::clock::Pair;
use super::trace::{Identity, Packet};

/// Longest segment that a device may make of several, in bytes.
const JOINED_MOST: u32 = 1 << 19;
/// Longest time that a packet is taken to be on its way, ns.
const WAY_MOST_NS: i64 = 60_000_000_000;

/// Returns the timestamps of the packets that each capture has exactly once: those pair
/// whatever the clocks say.
pub(super) fn unique_pairs(near: &[Packet], far: &[Packet]) -> Vec<Pair> {
    let count = |packets: &[Packet]| {
        let mut found: FxHashMap<Identity, (u64, u32)> = FxHashMap::default();
        for packet in packets {
            let entry = found.entry(packet.identity(true));
            entry.or_insert((packet.time_ns, 0)).1 += 1;
        }
        found
    };
    let others = count(far);
    let own = count(near)
        .into_iter()
        .filter(|(_, (_, times))| *times == 1);
    let mut pairs: Vec<_> = own
        .filter_map(|(identity, (near_ns, _))| {
            let (far_ns, times) = others.get(&identity)?;
            (*times == 1).then_some((near_ns, *far_ns))
        })
        .collect();
    pairs.sort_unstable(); // a table has no order
    pairs
}

/// A packet where it was sent, and what became of it. Times are of the near clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    pub(super) packet: Packet,
    pub(super) sent_ns: i64,
    pub(super) fate: Fate,
    /// Its number in the capture where it arrived; `None`: it is not there, or in parts.
    pub(super) number_there: Option<NonZeroU64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It was captured at the other end, at this time.
    Arrived(i64),
    /// It was sent while the other end captured, and is not there.
    Lost,
    /// The other end did not capture then.
    Unknown,
}

/// The packets of one direction, in the order in which they were sent.
#[derive(Clone, Debug, Default)]
pub(super) struct Fates {
    pub(super) sent: Vec<Sent>,
    pub(super) missed: u64,
}

impl Fates {
    pub(super) fn lost(&self) -> impl Iterator<Item = &Packet> {
        let lost = self.sent.iter().filter(|sent| sent.fate == Fate::Lost);
        lost.map(|sent| &sent.packet)
    }

    pub(super) fn arrived(&self) -> u64 {
        self.delays().count() as u64
    }

    /// Returns when each packet that arrived was sent, and how long it took.
    pub(super) fn delays(&self) -> impl Iterator<Item = (i64, i64)> {
        self.sent.iter().filter_map(|sent| match sent.fate {
            Fate::Arrived(ns) => Some((sent.sent_ns, ns - sent.sent_ns)),
            _ => None,
        })
    }
}

/// One capture's packets, with their times of the near clock.
type Timed<'a> = (&'a [Packet], Vec<i64>);

/// Finds what became of each packet. `span_ns` is the time that the receiving end's capture
/// covers, and `slack_ns` how much earlier than sent a packet may seem to arrive.
pub(super) fn fates(
    sent: Timed<'_>,
    received: Timed<'_>,
    span_ns: [i64; 2],
    slack_ns: i64,
) -> Fates {
    let ((sent, sent_ns), (received, received_ns)) = (sent, received);
    let mut pairing = Pairing {
        sent,
        sent_ns: &sent_ns,
        received,
        received_ns: &received_ns,
        slack_ns,
        arrival: vec![None; sent.len()],
        number_there: vec![None; sent.len()],
        is_found: vec![false; received.len()],
    };
    pairing.by_identity(true);
    pairing.by_identity(false);
    pairing.by_bytes();
    let Pairing {
        arrival,
        number_there,
        is_found,
        ..
    } = pairing;
    // What was on its way when the capture ended need not be in it.
    let known = || {
        arrival
            .iter()
            .zip(&sent_ns)
            .filter_map(|(a, s)| Some((*a)? - s))
    };
    let longest_ns = known().max().unwrap_or(0).max(0);
    let covered = span_ns[0]..=span_ns[1].saturating_sub(longest_ns);
    let all = sent.iter().zip(&sent_ns).zip(&arrival).zip(number_there);
    let sent: Vec<_> = all
        .map(|(((packet, &sent_ns), arrival), number_there)| Sent {
            packet: *packet,
            sent_ns,
            number_there,
            fate: match arrival {
                Some(ns) => Fate::Arrived(*ns),
                None if covered.contains(&sent_ns) => Fate::Lost,
                None => Fate::Unknown,
            },
        })
        .collect();
    // What arrived while the sending end captured, and is not in its capture.
    let while_sent = sent_ns.first().zip(sent_ns.last());
    let is_missed = |(found, ns): &(&bool, &i64)| {
        !**found && while_sent.is_some_and(|(first, last)| (first..=last).contains(ns))
    };
    let missed = is_found.iter().zip(&received_ns).filter(is_missed).count() as u64;
    Fates { sent, missed }
}

struct Pairing<'a> {
    sent: &'a [Packet],
    sent_ns: &'a [i64],
    received: &'a [Packet],
    received_ns: &'a [i64],
    slack_ns: i64,
    /// By packet sent: when it arrived.
    arrival: Vec<Option<i64>>,
    number_there: Vec<Option<NonZeroU64>>,
    /// By packet received: whether it was sent.
    is_found: Vec<bool>,
}

impl Pairing<'_> {
    /// Returns whether a packet sent at one time can be the one received at another.
    fn can_be(&self, sent_ns: i64, received_ns: i64) -> bool {
        (-self.slack_ns..=WAY_MOST_NS).contains(&received_ns.saturating_sub(sent_ns))
    }

    /// Pairs packets that are alike. Of several copies that are alike, the copies that arrived
    /// are given to the latest that can have arrived then, the last arrival first: a lost copy
    /// is repeated after it was lost, so an arrival is of the copy just before it.
    fn by_identity(&mut self, with_id: bool) {
        let mut waiting: FxHashMap<Identity, VecDeque<usize>> = FxHashMap::default();
        for (i, packet) in self.sent.iter().enumerate() {
            if self.arrival[i].is_none() {
                waiting
                    .entry(packet.identity(with_id))
                    .or_default()
                    .push_back(i);
            }
        }
        for (i, packet) in self.received.iter().enumerate().rev() {
            if self.is_found[i] {
                continue;
            }
            let Some(copies) = waiting.get_mut(&packet.identity(with_id)) else {
                continue;
            };
            let at_ns = self.received_ns[i];
            let place = copies.iter().rposition(|&copy| {
                let passed = at_ns.saturating_sub(self.sent_ns[copy]);
                (-self.slack_ns..=WAY_MOST_NS).contains(&passed)
            });
            if let Some(copy) = place.and_then(|place| copies.remove(place)) {
                self.arrival[copy] = Some(at_ns);
                self.number_there[copy] = NonZeroU64::new(packet.number);
                self.is_found[i] = true;
            }
        }
    }

    /// Pairs data whose segments were cut up or joined on the way: a segment arrived when all
    /// of its bytes did. Bytes are given to the latest copy that can have arrived then.
    fn by_bytes(&mut self) {
        let Some(origin) = self.sent.first().map(|packet| packet.seq) else {
            return;
        };
        // Sequence numbers as distances from the first one; a direction of 2 GB wraps, and then
        // the time tells the rounds apart.
        let offset = |seq: u32| seq.wrapping_sub(origin);
        let is_open =
            |(i, packet): &(usize, &Packet)| packet.payload_bytes > 0 && self.arrival[*i].is_none();
        let open = self.sent.iter().enumerate().filter(is_open);
        let mut by_begin: Vec<(u32, usize)> = open.map(|(i, p)| (offset(p.seq), i)).collect();
        by_begin.sort_unstable();
        if by_begin.is_empty() {
            return;
        }
        let mut came: FxHashMap<usize, (u32, i64)> = FxHashMap::default();
        for (i, packet) in self.received.iter().enumerate() {
            if self.is_found[i] || packet.payload_bytes == 0 {
                continue;
            }
            let (begin, length) = (offset(packet.seq), packet.payload_bytes);
            let end = begin.saturating_add(length);
            let from = begin.saturating_sub(JOINED_MOST);
            let first = by_begin.partition_point(|(at, _)| *at < from);
            let near = by_begin[first..].iter().take_while(|(at, _)| *at < end);
            // For each of the bytes the latest copy: from the latest copy on, what is not yet
            // given.
            let mut copies: Vec<_> = near
                .filter(|(at, copy)| {
                    let sent = &self.sent[*copy];
                    let is_alike = match (sent.timestamps, packet.timestamps) {
                        (Some((value, _)), Some((other, _))) => value == other,
                        _ => true,
                    };
                    at.saturating_add(sent.payload_bytes) > begin
                        && is_alike
                        && self.can_be(self.sent_ns[*copy], self.received_ns[i])
                })
                .collect();
            copies.sort_unstable_by_key(|(_, copy)| std::cmp::Reverse(self.sent_ns[*copy]));
            let mut given: Vec<(u32, u32)> = Vec::new();
            for (at, copy) in copies {
                let part = (
                    begin.max(*at),
                    end.min(at.saturating_add(self.sent[*copy].payload_bytes)),
                );
                if given.iter().any(|done| part.0 < done.1 && done.0 < part.1) {
                    continue;
                }
                given.push(part);
                let entry = came.entry(*copy).or_insert((0, i64::MIN));
                entry.0 = entry.0.saturating_add(part.1 - part.0);
                entry.1 = entry.1.max(self.received_ns[i]);
                self.is_found[i] = true;
            }
        }
        for (copy, (bytes, at_ns)) in came {
            if bytes >= self.sent[copy].payload_bytes {
                self.arrival[copy] = Some(at_ns);
            }
        }
    }
}
