// SPDX-License-Identifier: MIT OR Apache-2.0
//! Divides the packets of a video stream into pictures: frames or fields. The marker bit ends a
//! picture, and so does another timestamp.

use std::collections::BTreeMap;

use crate::limits::MOST_PACKETS;
use crate::receiver::Arrival;
use crate::stream::{Numbered, Packet, Stream, unique};

/// A picture all of whose place in the stream is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Picture {
    /// Number of its first packet.
    pub first: i64,
    /// Packets that it has, lost ones included.
    pub packets: u32,
    /// Packets that did not arrive.
    pub lost: u32,
    /// Its timestamp, without wraps.
    pub timestamp: i64,
}

/// The pictures of a stream.
#[derive(Clone, Debug, Default)]
pub struct Pictures {
    /// The usual number of packets of a picture; 0 if no picture is whole.
    pub nominal: u32,
    /// Whole pictures of another number of packets.
    pub unusual: u64,
    /// Whole pictures whose number of packets is within a fiftieth of the usual one.
    pub alike: u64,
    /// Whole pictures.
    pub whole: u64,
    /// Ends of pictures that a marker and another timestamp or field tell.
    pub marked: u64,
    /// Ends of pictures that either tells.
    pub ended: u64,
    /// Pictures that are measured, in order.
    pub pictures: Vec<Picture>,
    /// Pictures left out: the capture begins or ends in them, or too much of them is lost.
    pub partial: u64,
    /// Numbers between the first and the last packet that did not arrive.
    pub lost: u64,
    /// Packets that came twice.
    pub duplicates: u64,
    /// Packets that came after one with a higher number.
    pub reordered: u64,
    /// Ticks from a picture to the next, where nothing was lost between them, with their counts.
    pub steps: BTreeMap<i64, u64>,
}

/// Packets of a picture that are there: indices of the sorted packets.
#[derive(Clone, Copy, Debug)]
struct Group {
    begin: usize,
    end: usize,
}

/// Divides packets into pictures. `packets_given` is the number of packets of a picture, if that is
/// known, and `second_field` tells to which field a packet belongs. Time O(n log n).
pub fn divide(
    stream: &Stream,
    numbered: &[Numbered],
    packets_given: Option<u32>,
    second_field: impl Fn(&Packet) -> bool,
) -> Pictures {
    let mut found = Pictures {
        reordered: reordered(numbered),
        ..Pictures::default()
    };
    let sorted = unique(numbered);
    found.duplicates = (numbered.len() - sorted.len()) as u64;
    if let (Some(first), Some(last)) = (sorted.first(), sorted.last()) {
        let all = last.sequence.abs_diff(first.sequence) + 1;
        found.lost = all - sorted.len() as u64;
    }
    let marker = |at: usize| stream.packets.get(sorted[at].at).is_some_and(|p| p.marker);
    let field = |at: usize| stream.packets.get(sorted[at].at).is_some_and(&second_field);
    let groups = groups(&sorted, marker, field);
    found.steps = steps(&sorted, &groups);
    let sizes = whole_sizes(&sorted, &groups, marker);
    let usual = sizes.iter().max_by_key(|(size, count)| (**count, **size));
    found.nominal = packets_given.or(usual.map(|(size, _)| *size)).unwrap_or(0);
    let unusual = sizes.iter().filter(|(size, _)| **size != found.nominal);
    found.unusual = unusual.map(|(_, count)| count).sum();
    let alike = sizes
        .iter()
        .filter(|(size, _)| size.abs_diff(found.nominal) * 50 <= found.nominal);
    found.alike = alike.map(|(_, count)| count).sum();
    found.whole = sizes.values().sum();
    (found.marked, found.ended) = ends(&sorted, &groups, marker, field);
    let nominal = (found.nominal > 0).then_some(i64::from(found.nominal));
    let mut end_before: Option<i64> = None;
    for (i, group) in groups.iter().enumerate() {
        let (f, l) = (sorted[group.begin], sorted[group.end - 1]);
        let is_marked = marker(group.end - 1);
        let by_end = nominal.filter(|_| is_marked).map(|n| l.sequence - n + 1);
        let start = match (i, end_before) {
            (0, _) => by_end.filter(|start| *start == f.sequence),
            (_, Some(end)) => Some(end + 1),
            (_, None) => {
                let before = sorted[group.begin - 1].sequence;
                if f.sequence == before + 1 {
                    Some(f.sequence)
                } else {
                    by_end.filter(|start| (before + 1..=f.sequence).contains(start))
                }
            }
        };
        let next = groups.get(i + 1).map(|next| sorted[next.begin].sequence);
        let by_start = nominal.zip(start).map(|(n, start)| start + n - 1);
        let end = match next {
            _ if is_marked => Some(l.sequence),
            Some(next) if next == l.sequence + 1 => Some(l.sequence),
            Some(next) => by_start.filter(|end| (l.sequence..next).contains(end)),
            None => by_start.filter(|end| *end == l.sequence),
        };
        end_before = end;
        match picture(&sorted[group.begin..group.end], start, end) {
            Some(picture) => found.pictures.push(picture),
            None => found.partial += 1,
        }
    }
    found
}

/// Returns the picture if its place is known and at least half of it arrived.
fn picture(packets: &[Numbered], start: Option<i64>, end: Option<i64>) -> Option<Picture> {
    let (first, end) = start.zip(end)?;
    let size = u32::try_from(end.checked_sub(first)?.checked_add(1)?).ok()?;
    let present = u32::try_from(packets.len()).ok()?;
    let is_measured = (1..=MOST_PACKETS).contains(&size)
        && u64::from(present) * 2 >= u64::from(size)
        && packets
            .first()
            .is_some_and(|packet| packet.sequence >= first);
    is_measured.then(|| Picture {
        first,
        packets: size,
        lost: size - present,
        timestamp: packets.first().map_or(0, |packet| packet.timestamp),
    })
}

/// Returns how many packets came after one with a greater sequence number.
pub(crate) fn reordered(numbered: &[Numbered]) -> u64 {
    let mut highest = i64::MIN;
    let is_behind = |packet: &&Numbered| {
        let behind = packet.sequence < highest;
        highest = highest.max(packet.sequence);
        behind
    };
    numbered.iter().filter(is_behind).count() as u64
}

fn groups(
    sorted: &[Numbered],
    marker: impl Fn(usize) -> bool,
    field: impl Fn(usize) -> bool,
) -> Vec<Group> {
    let mut groups = Vec::new();
    let mut begin = 0;
    for at in 1..=sorted.len() {
        let ends = at == sorted.len()
            || marker(at - 1)
            || sorted[at].timestamp != sorted[at - 1].timestamp
            || field(at) != field(at - 1);
        if ends {
            groups.push(Group { begin, end: at });
            begin = at;
        }
    }
    groups
}

/// Returns how many groups end with a marker and, of those after which nothing is lost, with another timestamp or
/// field as well; and how many do with either.
fn ends(
    sorted: &[Numbered],
    groups: &[Group],
    marker: impl Fn(usize) -> bool,
    field: impl Fn(usize) -> bool,
) -> (u64, u64) {
    let (mut both, mut either) = (0, 0);
    for group in groups.iter().skip(1) {
        let (last, first) = (group.begin - 1, group.begin);
        if sorted[first].sequence != sorted[last].sequence + 1 {
            continue;
        }
        either += 1;
        let is_new =
            sorted[first].timestamp != sorted[last].timestamp || field(first) != field(last);
        both += u64::from(marker(last) && is_new);
    }
    (both, either)
}

fn steps(sorted: &[Numbered], groups: &[Group]) -> BTreeMap<i64, u64> {
    let mut steps = BTreeMap::new();
    for group in groups.iter().skip(1) {
        let (before, first) = (sorted[group.begin - 1], sorted[group.begin]);
        if first.sequence == before.sequence + 1 {
            *steps.entry(first.timestamp - before.timestamp).or_default() += 1;
        }
    }
    steps
}

/// Returns the sizes of the pictures of which nothing is lost, and which begin after another and
/// end with a marker or before another.
fn whole_sizes(
    sorted: &[Numbered],
    groups: &[Group],
    marker: impl Fn(usize) -> bool,
) -> BTreeMap<u32, u64> {
    let mut sizes = BTreeMap::new();
    for (i, group) in groups.iter().enumerate().skip(1) {
        let (first, last) = (sorted[group.begin].sequence, sorted[group.end - 1].sequence);
        let size = last - first + 1;
        let follows = sorted[group.begin - 1].sequence + 1 == first;
        let next = groups.get(i + 1).map(|next| sorted[next.begin].sequence);
        let ends = marker(group.end - 1) || next == Some(last + 1);
        let is_whole = size == (group.end - group.begin) as i64;
        if let (true, Ok(size)) = (follows && ends && is_whole, u32::try_from(size)) {
            if size <= MOST_PACKETS {
                *sizes.entry(size).or_default() += 1;
            }
        }
    }
    sizes
}

/// Returns the packets of the measured pictures, in order of time. A lost packet enters the buffer
/// with the next one that came; a packet that came twice enters once.
pub fn arrivals(stream: &Stream, numbered: &[Numbered], pictures: &[Picture]) -> Vec<Arrival> {
    let mut by_number = Vec::new();
    let mut at = 0;
    let mut lost = 0u64;
    for packet in unique(numbered) {
        let end = |picture: &Picture| picture.first + i64::from(picture.packets);
        while pictures.get(at).is_some_and(|p| end(p) <= packet.sequence) {
            at += 1;
        }
        let Some(picture) = pictures.get(at) else {
            break;
        };
        let Ok(index) = u32::try_from(packet.sequence - picture.first) else {
            continue;
        };
        by_number.push((packet, at, index));
    }
    // Lost packets of measured pictures before each packet.
    let mut before = Vec::with_capacity(by_number.len());
    let mut last: Option<(usize, u32)> = None;
    for (_, picture, index) in &by_number {
        let missing = match last {
            Some((same, previous)) if same == *picture => u64::from(*index - previous - 1),
            Some((other, previous)) => {
                let tail = pictures.get(other).map_or(0, |p| p.packets - 1 - previous);
                u64::from(tail) + u64::from(*index)
            }
            None => u64::from(*index),
        };
        lost += missing;
        before.push(lost);
        last = Some((*picture, *index));
    }
    let mut arriving: Vec<_> = by_number.iter().zip(before).collect();
    arriving.sort_by_key(|((packet, ..), _)| packet.at);
    let mut entered = 0u64;
    let arrival = |((packet, picture, index), lost): (&(Numbered, usize, u32), u64)| {
        let more = lost.saturating_sub(entered);
        entered = entered.max(lost);
        let time_ps = stream.packets.get(packet.at).map_or(0, |p| p.time_ps);
        Arrival {
            time_ps,
            picture: *picture,
            index: *index,
            packets: 1 + more,
        }
    };
    arriving.into_iter().map(arrival).collect()
}
