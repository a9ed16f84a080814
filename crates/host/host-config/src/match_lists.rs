// SPDX-License-Identifier: MIT OR Apache-2.0
//! Matches as the kernel's lists of filters. Each list has a priority. Matches of addresses that
//! begin with equally many bits and look at nothing else are one list: no two of them match the
//! same frame, and the kernel's flower finds the one in a hash table. Any other match is a list
//! of its own.
//!
//! A match comes into the first list that takes it, unless it would be asked before another that
//! stands before it in the file and that a packet may match, too.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use tcpsp::{Flower, Match, Prefix};

/// What all matches of a list have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Shape<'a> {
    One(&'a Match),
    /// Addresses with so many first bits.
    Table(Table),
}

/// A table of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Table {
    /// Whether they are the source's.
    pub is_source: bool,
    /// IPv4, or IPv6.
    pub is_ipv4: bool,
    pub bits: u8,
}

/// Most tables of a set of matches without the module's filters: `MATCH_TABLES_MAX` of bpf/match.h.
pub const TABLES_MAX: usize = 16;
/// A list of fewer matches is searched faster than a table.
const TABLE_LEAST: usize = 4;

/// Returns which of these tables, one for each match that may be in one, a program has: those of
/// most matches. O(n log n).
pub fn tables(matches: impl Iterator<Item = Table>) -> BTreeSet<Table> {
    let mut counts: BTreeMap<Table, usize> = BTreeMap::new();
    for table in matches {
        *counts.entry(table).or_default() += 1;
    }
    let counts = counts.into_iter().map(|(table, count)| (count, table));
    let mut counts: Vec<_> = counts.filter(|(count, _)| *count >= TABLE_LEAST).collect();
    counts.sort_unstable_by(|a, b| b.cmp(a));
    let most = counts.into_iter().take(TABLES_MAX);
    most.map(|(_, table)| table).collect()
}

/// Returns how many matches a program has in its list, and how many in tables.
pub fn listed<'a>(matches: impl Iterator<Item = &'a Match> + Clone) -> (usize, usize) {
    let table_of = |matching| match Shape::of(matching) {
        Shape::Table(table) => Some(table),
        Shape::One(_) => None,
    };
    let tables = tables(matches.clone().filter_map(table_of));
    let all = matches.clone().count();
    let in_tables = matches.filter_map(table_of);
    let in_tables = in_tables.filter(|table| tables.contains(table)).count();
    (all - in_tables, in_tables)
}

/// Returns the addresses of a match that looks at nothing else, and whether they are the source's.
pub(crate) fn prefix_of(matching: &Match) -> Option<(bool, Prefix)> {
    let Match::Flower(flower) = matching else {
        return None;
    };
    let (is_source, prefix) = match (flower.source, flower.destination) {
        (Some(prefix), None) => (true, prefix),
        (None, Some(prefix)) => (false, prefix),
        _ => return None,
    };
    let Flower {
        vlan: None,
        family: _,
        protocol: None,
        source: _,
        destination: _,
        source_ports: None,
        destination_ports: None,
        dscp: None,
        interface: None,
    } = flower
    else {
        return None;
    };
    Some((is_source, prefix))
}

impl<'a> Shape<'a> {
    pub fn of(matching: &'a Match) -> Self {
        match prefix_of(matching) {
            Some((is_source, prefix)) => Self::Table(Table {
                is_source,
                is_ipv4: prefix.address.is_ipv4(),
                bits: prefix.bits,
            }),
            None => Self::One(matching),
        }
    }
}

/// An address as a number, its first bit the highest of 128.
fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(u32::from(address)) << 96,
        IpAddr::V6(address) => u128::from(address),
    }
}

fn last_of(first: u128, bits: u8) -> u128 {
    first | u128::MAX.checked_shr(bits.into()).unwrap_or(0)
}

/// Lists that follow each other, and may still get matches.
#[derive(Default)]
struct Run {
    /// Of each table its place among all lists, and its addresses.
    tables: Vec<(Table, usize, BTreeSet<u128>)>,
    /// Places and prefixes, source's and destination's, of other matches.
    others: Vec<(usize, [Option<Prefix>; 2])>,
}

/// Returns the prefixes that a match that is no table looks at.
fn prefixes_of(matching: &Match) -> [Option<Prefix>; 2] {
    match matching {
        Match::Flower(flower) => [flower.source, flower.destination],
        _ => [None, None],
    }
}

/// Returns whether a packet may have an address of both.
fn overlap(a: Prefix, b: Prefix) -> bool {
    let (wide, narrow) = if a.bits < b.bits { (a, b) } else { (b, a) };
    wide.contains(narrow.address)
}

impl Run {
    /// Returns the list that a match goes to; `Some(None)`: one behind the others; `None`: none of
    /// this run.
    fn list_of(&self, table: Table, prefix: Prefix) -> Option<Option<usize>> {
        let first = number(prefix.address);
        let mut tables = self.tables.iter();
        if tables.any(|(other, ..)| other.is_source != table.is_source) {
            return None;
        }
        let at = self.tables.iter().position(|(other, ..)| *other == table);
        let Some(at) = at else {
            return Some(None);
        };
        let shares = |(other, _, addresses): &(Table, usize, BTreeSet<u128>)| {
            if other.is_ipv4 != table.is_ipv4 {
                return false;
            }
            let last = last_of(first, table.bits);
            // Addresses of fewer bits that this one is below, or some that are below this one.
            let above = addresses.range(..=first).next_back();
            above.is_some_and(|other_first| last_of(*other_first, other.bits) >= last)
                || addresses.range(first..=last).next().is_some()
        };
        let place = self.tables.get(at).map_or(0, |(_, place, _)| *place);
        let side = usize::from(!table.is_source);
        let mut behind = self
            .others
            .iter()
            .rev()
            .take_while(|(other, _)| *other > place);
        let is_asked_before = self.tables.iter().skip(at).any(shares)
            || behind
                .any(|(_, prefixes)| prefixes[side].is_none_or(|other| overlap(other, prefix)));
        (!is_asked_before).then_some(Some(at))
    }
}

/// Returns the matches by list, each as its place in the file; lists in the order in which they
/// are asked. O(n log n) for matches of few lengths.
pub(crate) fn lists<'a>(matches: impl Iterator<Item = &'a Match>) -> Vec<Vec<usize>> {
    let mut lists: Vec<Vec<usize>> = Vec::new();
    let mut run = Run::default();
    for (place, matching) in matches.enumerate() {
        let (Shape::Table(table), Some((_, prefix))) = (Shape::of(matching), prefix_of(matching))
        else {
            run.others.push((lists.len(), prefixes_of(matching)));
            lists.push(vec![place]);
            continue;
        };
        let first = number(prefix.address);
        let found = run.list_of(table, prefix);
        if found.is_none() {
            run = Run::default();
        }
        if let Some((_, list, addresses)) = found.flatten().and_then(|at| run.tables.get_mut(at)) {
            addresses.insert(first);
            if let Some(list) = lists.get_mut(*list) {
                list.push(place);
            }
        } else {
            let addresses = BTreeSet::from([first]);
            run.tables.push((table, lists.len(), addresses));
            lists.push(vec![place]);
        }
    }
    lists
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail that way")]

    use super::*;
    use tcpsp::Family;

    fn to(text: &str) -> Match {
        let destination = Prefix::parse(text);
        let family = match destination.unwrap().address {
            IpAddr::V4(_) => Family::Ipv4,
            IpAddr::V6(_) => Family::Ipv6,
        };
        Match::Flower(Flower {
            family: Some(family),
            destination,
            ..Flower::default()
        })
    }

    fn listed(all: &[&str]) -> Vec<Vec<usize>> {
        let all: Vec<Match> = all.iter().map(|text| to(text)).collect();
        lists(all.iter())
    }

    #[test]
    fn subscribers_are_a_table_for_each_length() {
        let all = ["10.0.0.1", "fd00::/56", "10.0.0.2", "fd00:0:0:100::/56"];
        assert_eq!(listed(&all), [vec![0, 2], vec![1, 3]]);
    }

    #[test]
    fn no_match_overtakes_one_that_shares_addresses() {
        // The host is asked first, whatever is beside it.
        assert_eq!(listed(&["10.0.0.1", "10.0.0.0/24"]), [vec![0], vec![1]]);
        let network_first = ["10.0.1.1", "10.0.0.0/24", "10.0.0.1", "10.0.0.2"];
        assert_eq!(listed(&network_first), [vec![0], vec![1], vec![2, 3]]);
        let no_relation = ["10.0.1.1", "10.0.0.0/24", "10.0.2.1"];
        assert_eq!(listed(&no_relation), [vec![0, 2], vec![1]]);
        // A host behind, of a network that would come into the first list.
        let below = ["10.1.0.0/16", "10.2.3.4", "10.2.0.0/16"];
        assert_eq!(listed(&below), [vec![0], vec![1], vec![2]]);
        // Twice the same: the second never counts, and is not in the table of the first.
        assert_eq!(listed(&["10.0.0.1", "10.0.0.1"]), [vec![0], vec![1]]);
        assert_eq!(listed(&["::/0", "0.0.0.0/0"]), [vec![0], vec![1]]);
    }

    #[test]
    fn other_matches_are_between_tables() {
        let all = [
            to("10.0.0.1"),
            Match::Mark(3),
            to("10.0.0.2"),
            to("10.0.0.3"),
        ];
        assert_eq!(lists(all.iter()), [vec![0], vec![1], vec![2, 3]]);
        // A match of other addresses is behind the table.
        let Match::Flower(mut flower) = to("10.3.0.0/16") else {
            return;
        };
        flower.dscp = Some(3);
        let other = Match::Flower(flower);
        let all = [
            to("10.0.0.1"),
            other.clone(),
            to("10.0.0.2"),
            to("10.3.0.1"),
        ];
        assert_eq!(lists(all.iter()), [vec![0, 2], vec![1], vec![3]]);
    }
}
