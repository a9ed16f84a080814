// SPDX-License-Identifier: MIT OR Apache-2.0
//! Streams that are sent twice by different ways (SMPTE ST 2022-7): the same source, payload type, numbers and timestamps at
//! different addresses. A receiver takes each packet from the leg on which it comes first.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use serde::Serialize;

use crate::range::{Range, range};
use crate::stream::{Packet, Stream, numbered, unique};

/// Fewest packets that legs have in common.
const FEWEST_TWINS: usize = 8;

/// One way of a stream.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Leg {
    /// Its place among the streams.
    pub stream: usize,
    /// Packets that other legs have and this one has not, and those that none has.
    pub lost: u64,
    /// Packets that no other leg has.
    pub alone: u64,
    /// Packets that came on this leg first.
    pub first: u64,
    /// How much later than on the first leg its packets come; `None` of the first leg.
    pub skew_ns: Option<Range<f64>>,
}

/// Streams that are one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Pair {
    /// Its legs, in the order of the streams.
    pub legs: Vec<Leg>,
    /// Different packets that came.
    pub packets: u64,
    /// Packets that came on no leg.
    pub lost: u64,
}

/// What a packet is known by on each leg: its number, timestamp and length.
type Name = (u16, u32, u32);

fn name(packet: &Packet) -> Name {
    (packet.sequence, packet.timestamp, packet.payload_bytes)
}

/// When each packet of a stream came first.
fn times(stream: &Stream) -> HashMap<Name, i128> {
    let mut times = HashMap::new();
    for packet in &stream.packets {
        times.entry(name(packet)).or_insert(packet.time_ps);
    }
    times
}

/// Finds the streams that are one. Memory: some 48 bytes for each packet of those that may be.
pub fn pairs(streams: &[Stream]) -> Vec<Pair> {
    let mut by_source: HashMap<(u32, u8), Vec<usize>> = HashMap::new();
    for (at, stream) in streams.iter().enumerate() {
        let source = (stream.key.ssrc, stream.key.payload_type);
        by_source.entry(source).or_default().push(at);
    }
    let mut found = Vec::new();
    for several in by_source.into_values().filter(|all| all.len() > 1) {
        let mut rest: Vec<_> = several
            .into_iter()
            .filter_map(|at| Some((at, times(streams.get(at)?))))
            .collect();
        while rest.len() > 1 {
            let lead = rest.remove(0);
            let (twins, others) = rest
                .into_iter()
                .partition(|other| are_one(&lead.1, &other.1));
            rest = others;
            let legs = std::iter::once(lead).chain(twins).collect::<Vec<_>>();
            if legs.len() > 1 {
                found.push(merged(streams, &legs));
            }
        }
    }
    found.sort_by_key(|pair| pair.legs.first().map(|leg| leg.stream));
    found
}

/// Returns whether half of the packets of the shorter one came on the other, too.
fn are_one(a: &HashMap<Name, i128>, b: &HashMap<Name, i128>) -> bool {
    let (short, long) = if a.len() < b.len() { (a, b) } else { (b, a) };
    let twins = short.keys().filter(|name| long.contains_key(*name)).count();
    twins >= FEWEST_TWINS && twins * 2 >= short.len()
}

fn merged(streams: &[Stream], legs: &[(usize, HashMap<Name, i128>)]) -> Pair {
    let none = HashMap::new();
    let lead_times = legs.first().map_or(&none, |(_, times)| times);
    // The packets in the order in which they came, with their legs; then the first of each name.
    let of_leg = |(leg, (at, _)): (usize, &(usize, HashMap<Name, i128>))| {
        let packets = streams.get(*at).map_or(&[][..], |stream| &stream.packets);
        packets.iter().map(move |packet| (leg, *packet))
    };
    let mut all: Vec<_> = legs.iter().enumerate().flat_map(of_leg).collect();
    all.sort_by_key(|(_, packet)| packet.time_ps);
    let mut first: HashMap<Name, usize> = HashMap::new();
    all.retain(|(leg, packet)| match first.entry(name(packet)) {
        Entry::Occupied(_) => false,
        Entry::Vacant(place) => {
            place.insert(*leg);
            true
        }
    });
    let together: Vec<_> = all.into_iter().map(|(_, packet)| packet).collect();
    let ordered = unique(&numbered(&together, false));
    let span = ordered
        .first()
        .zip(ordered.last())
        .map_or(0, |(first, last)| {
            last.sequence.abs_diff(first.sequence) + 1
        });
    let leg = |(number, (at, times)): (usize, &(usize, HashMap<Name, i128>))| {
        let is_elsewhere = |name: &Name| {
            let mut others = legs
                .iter()
                .enumerate()
                .filter(|(other, _)| *other != number);
            others.any(|(_, (_, times))| times.contains_key(name))
        };
        let skew = times
            .iter()
            .filter_map(|(name, time_ps)| Some((time_ps - lead_times.get(name)?) as f64 / 1e3));
        Leg {
            stream: *at,
            lost: span.saturating_sub(times.len() as u64),
            alone: times.keys().filter(|name| !is_elsewhere(name)).count() as u64,
            first: first.values().filter(|leg| **leg == number).count() as u64,
            skew_ns: if number == 0 { None } else { range(skew) },
        }
    };
    Pair {
        legs: legs.iter().enumerate().map(leg).collect(),
        packets: first.len() as u64,
        lost: span.saturating_sub(ordered.len() as u64),
    }
}
