// SPDX-License-Identifier: MIT OR Apache-2.0
//! Summarises a connection in one sentence.

use std::collections::BTreeMap;

use crate::analysis::{Connection, Flow, Stall, StallKind};
use crate::cause::{Cause, Confidence};
use crate::direction::Direction;
use crate::flow::rounds::per_second;
pub(crate) use units::terse::rate;
use units::terse::{ms, size};

/// Weight of one cause among some stalls, and the confidence in it.
struct Weight {
    ns: u64,
    count: u64,
    confidence: Confidence,
}

fn weigh<'a>(stalls: impl Iterator<Item = &'a Stall>) -> Vec<(Cause, Weight)> {
    let mut causes: BTreeMap<Cause, Weight> = BTreeMap::new();
    for stall in stalls {
        let weight = causes.entry(stall.cause).or_insert(Weight {
            ns: 0,
            count: 0,
            confidence: Confidence::Low,
        });
        weight.ns += stall.duration_ns;
        weight.count += stall.count;
        weight.confidence = weight.confidence.max(stall.confidence);
    }
    let mut sorted: Vec<_> = causes.into_iter().collect();
    sorted.sort_by_key(|(cause, weight)| (std::cmp::Reverse(weight.ns), *cause));
    sorted
}

fn times(count: u64) -> String {
    match count {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        _ => format!("{count} times"),
    }
}

fn likely(confidence: Confidence) -> &'static str {
    match confidence {
        Confidence::High => "",
        Confidence::Medium => "probably ",
        Confidence::Low => "perhaps ",
    }
}

pub(crate) fn verdict(connection: &Connection) -> String {
    let least_ns = connection.least_ns;
    let [to_server, to_client] = &*connection.flows;
    if let Some(stall) = connection
        .stalls
        .iter()
        .find(|stall| stall.cause == Cause::ConnectionSetup)
        .filter(|_| to_server.bytes + to_client.bytes == 0)
    {
        return format!("Never carried data: {}.", stall.explanation);
    }
    if to_server.bytes + to_client.bytes == 0 {
        return "No data was captured.".to_owned();
    }
    let main = if to_server.bytes >= to_client.bytes {
        Direction::ToServer
    } else {
        Direction::ToClient
    };
    let flow = &connection.flows[main.index()];
    let mut text = moved(flow, main);
    text += &of_length(
        connection
            .stalls
            .iter()
            .filter(|stall| stall.direction == main),
        least_ns,
    );
    let stalled_ns = |direction| {
        let stalls = connection.stalls.iter();
        let of = stalls.filter(|stall| stall.direction == direction);
        of.map(|stall| stall.duration_ns).sum::<u64>()
    };
    // A plot shows the direction that was held up longer, so the sentence mentions it.
    let other = main.opposite();
    if stalled_ns(other) > stalled_ns(main) {
        let stalls = connection.stalls.iter();
        let summary = of_length(stalls.filter(|stall| stall.direction == other), least_ns);
        text += &format!(
            "; data to the {}{}",
            receiver(other),
            summary.replacen(';', "", 1)
        );
    }
    if let Some(bps) = connection.passing_bps[main.index()] {
        text += &format!("; what passes is about {}", rate(bps));
    }
    text + "."
}

/// Summarises some stalls of one direction, as the rest of a sentence that says what was moved:
/// "; stopped twice for 412 ms in all, because ...".
pub fn sum_up<'a>(stalls: impl Iterator<Item = &'a Stall> + Clone) -> String {
    of_length(stalls, None)
}

/// As [`sum_up`], of stalls of at least this length.
fn of_length<'a>(stalls: impl Iterator<Item = &'a Stall> + Clone, least_ns: Option<u64>) -> String {
    let mut text = String::new();
    let of = |kind| weigh(stalls.clone().filter(move |stall| stall.kind == kind));
    let silences = of(StallKind::Silence);
    let waits = of(StallKind::Wait);
    let slow = of(StallKind::Slow);
    if let Some((cause, most)) = silences.first() {
        let all_ns: u64 = silences.iter().map(|(_, weight)| weight.ns).sum();
        let count: u64 = silences.iter().map(|(_, weight)| weight.count).sum();
        let mostly = if silences.len() > 1 {
            "for the most part "
        } else {
            ""
        };
        text += &format!(
            "; stopped {} for {} in all, {mostly}{}because {}",
            times(count),
            ms(all_ns),
            likely(most.confidence),
            cause.because()
        );
    }
    if let Some((cause, most)) = slow.first() {
        text += &format!(
            "; slow for {}, {}because {}",
            ms(most.ns),
            likely(most.confidence),
            cause.because()
        );
    }
    if let Some((cause, _)) = waits.first() {
        let all_ns: u64 = waits.iter().map(|(_, weight)| weight.ns).sum();
        let count: u64 = waits.iter().map(|(_, weight)| weight.count).sum();
        let mostly = match waits.len() {
            1 => "",
            _ => "for the most part ",
        };
        text += &format!(
            "; waited {} for {} in all, {mostly}because {}",
            times(count),
            ms(all_ns),
            cause.because()
        );
    }
    if silences.is_empty() && slow.is_empty() {
        text += "; never stopped";
        if let Some(least_ns) = least_ns {
            text += &format!(" for {} or longer", ms(least_ns));
        }
    }
    text
}

fn receiver(direction: Direction) -> &'static str {
    match direction {
        Direction::ToServer => "server",
        Direction::ToClient => "client",
    }
}

fn moved(flow: &Flow, direction: Direction) -> String {
    let to = receiver(direction);
    let active_ns = flow.active_ns;
    if active_ns == 0 {
        return format!("{} to the {to}", size(flow.bytes));
    }
    let bps = per_second(flow.bytes, active_ns).saturating_mul(8);
    format!(
        "{} to the {to} in {} ({})",
        size(flow.bytes),
        ms(active_ns),
        rate(bps)
    )
}
