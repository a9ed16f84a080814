// SPDX-License-Identifier: MIT OR Apache-2.0
//! Matches as words in the order of the structures in `bpf/match.h`.

use std::collections::BTreeMap;
use std::net::IpAddr;

use host_config::{TABLES_MAX, Table, tables};
use tcpsp::{Family, Flower, Match, Ports, Prefix};

/// `struct match_rule`.
pub type RuleWords = [u32; WORDS];
const WORDS: usize = 30;
/// `struct match_address`: base, side, family, bits, address. The base is 0 until it is written.
pub type AddressWords = [u32; 8];
/// `struct match_table`: side, family, bits, mask.
type TableWords = [u32; 7];
/// `struct match_tables`: their number, then each.
pub type TablesWords = [u32; 1 + TABLES_MAX * 7];
/// Datagrams in fragments whose class is known at a time. One takes some 100 bytes.
pub(crate) const DATAGRAMS: u32 = 4096;
/// `struct match_answer`: order, minor number.
pub type AnswerWords = [u32; 2];

/// `enum match_field`.
mod field {
    pub const FAMILY: u32 = 1 << 0;
    pub const PROTOCOL: u32 = 1 << 1;
    pub const FROM: u32 = 1 << 2;
    pub const TO: u32 = 1 << 3;
    pub const FROM_PORT: u32 = 1 << 4;
    pub const TO_PORT: u32 = 1 << 5;
    pub const DSCP: u32 = 1 << 6;
    pub const VLAN: u32 = 1 << 7;
    pub const INTERFACE: u32 = 1 << 8;
    pub const MARK: u32 = 1 << 9;
    pub const CGROUP: u32 = 1 << 10;
}

/// Indices of members of `struct match_rule`.
mod at {
    pub const FIELDS: usize = 0;
    pub const ORDER: usize = 1;
    pub const MINOR: usize = 2;
    pub const FAMILY: usize = 3;
    pub const PROTOCOL: usize = 4;
    pub const FROM: usize = 5;
    pub const FROM_MASK: usize = 9;
    pub const TO: usize = 13;
    pub const TO_MASK: usize = 17;
    pub const FROM_PORTS: usize = 21;
    pub const TO_PORTS: usize = 22;
    pub const DSCP: usize = 23;
    pub const VLAN: usize = 24;
    pub const INTERFACE: usize = 25;
    pub const MARK: usize = 26;
    pub const CGROUP_LEVEL: usize = 27;
    pub const CGROUP_ID: usize = 28;
}

/// Returns the words of a match, the `order`-th of the file, of the class with this minor number;
/// `None` of [`Match::Cgroup`], which is no rule.
pub fn rule_words(order: u32, minor: u16, matching: &Match) -> Option<RuleWords> {
    let mut words = [0; WORDS];
    words[at::ORDER] = order;
    words[at::MINOR] = minor.into();
    match matching {
        Match::Flower(flower) => put_flower(&mut words, flower),
        Match::Mark(mark) => {
            words[at::FIELDS] = field::MARK;
            words[at::MARK] = *mark;
        }
        Match::Sender(sender) => {
            return Some(cgroup_words(order, minor, sender.id, sender.level()));
        }
        Match::Cgroup => return None,
    }
    Some(words)
}

/// Returns the words of matches in the file's order, each with the minor number of its class.
pub(crate) fn words_of(rules: &[(&Match, u16)]) -> Vec<RuleWords> {
    let rules = (0..).zip(rules);
    let words = rules.filter_map(|(order, (matching, class))| rule_words(order, *class, matching));
    words.collect()
}

/// Returns the words of a match of senders in a cgroup of the unified hierarchy, or below it.
/// `level` is 0 of the root.
pub fn cgroup_words(order: u32, minor: u16, id: u64, level: u32) -> RuleWords {
    let mut words = [0; WORDS];
    words[at::FIELDS] = field::CGROUP;
    words[at::ORDER] = order;
    words[at::MINOR] = minor.into();
    words[at::CGROUP_LEVEL] = level;
    let bytes = id.to_ne_bytes();
    words[at::CGROUP_ID..].copy_from_slice(&address_words::<2>(&bytes));
    words
}

fn put_flower(words: &mut RuleWords, flower: &Flower) {
    let mut put = |bit: u32, at: usize, value: Option<u32>| {
        if let Some(value) = value {
            words[at::FIELDS] |= bit;
            words[at] = value;
        }
    };
    let family = flower.family.map(|family| match family {
        Family::Ipv4 => 4,
        Family::Ipv6 => 6,
    });
    let protocol = flower.protocol.map(|protocol| protocol.number().into());
    let from_ports = flower.source_ports.as_ref().map(ports_word);
    let to_ports = flower.destination_ports.as_ref().map(ports_word);
    put(field::FAMILY, at::FAMILY, family);
    put(field::PROTOCOL, at::PROTOCOL, protocol);
    put(field::FROM_PORT, at::FROM_PORTS, from_ports);
    put(field::TO_PORT, at::TO_PORTS, to_ports);
    put(field::DSCP, at::DSCP, flower.dscp.map(u32::from));
    put(field::VLAN, at::VLAN, flower.vlan.map(u32::from));
    let interface = flower.interface.as_ref();
    // Index 0 is that of no device, but a packet of this host has it.
    let index = interface.map(|interface| match interface.index {
        0 => u32::MAX,
        index => index,
    });
    put(field::INTERFACE, at::INTERFACE, index);
    for (bit, at, at_mask, prefix) in [
        (field::FROM, at::FROM, at::FROM_MASK, &flower.source),
        (field::TO, at::TO, at::TO_MASK, &flower.destination),
    ] {
        if let Some(prefix) = prefix {
            let (family, address, mask) = prefix_words(prefix);
            words[at::FIELDS] |= bit | field::FAMILY;
            words[at::FAMILY] = family;
            words[at..at + 4].copy_from_slice(&address);
            words[at_mask..at_mask + 4].copy_from_slice(&mask);
        }
    }
}

/// The words of bytes in memory as the network, or a process, has them.
fn address_words<const N: usize>(bytes: &[u8]) -> [u32; N] {
    let mut words = [0; N];
    for (word, four) in words.iter_mut().zip(bytes.chunks_exact(4)) {
        if let Ok(four) = four.try_into() {
            *word = u32::from_ne_bytes(four);
        }
    }
    words
}

/// The family of a prefix, its words, and those of its mask.
fn prefix_words(prefix: &Prefix) -> (u32, [u32; 4], [u32; 4]) {
    let (family, bytes) = match prefix.address {
        IpAddr::V4(address) => (4, address.octets().to_vec()),
        IpAddr::V6(address) => (6, address.octets().to_vec()),
    };
    let mask = mask_of(prefix.bits, bytes.len());
    (family, address_words(&bytes), address_words(&mask))
}

fn mask_of(bits: u8, bytes: usize) -> Vec<u8> {
    let mask = (0..bytes).map(|at| {
        let here = usize::from(bits).saturating_sub(8 * at).min(8);
        u8::try_from((0xff00u32 >> here) & 0xff).unwrap_or(0)
    });
    mask.collect()
}

fn ports_word(ports: &Ports) -> u32 {
    (u32::from(ports.first) << 16) | u32::from(ports.last)
}

/// Returns the table that a rule may be in, which looks at nothing but one prefix, and its entry
/// there; `None`: the rule belongs to the list.
fn table_entry(rule: &RuleWords) -> Option<(Table, AddressWords, AnswerWords)> {
    let side = rule[at::FIELDS] ^ field::FAMILY;
    let (is_source, address, mask) = match side {
        field::FROM => (true, at::FROM, at::FROM_MASK),
        field::TO => (false, at::TO, at::TO_MASK),
        _ => return None,
    };
    let bits: u32 = rule[mask..mask + 4].iter().map(|m| m.count_ones()).sum();
    let family = rule[at::FAMILY];
    let table = Table {
        is_source,
        is_ipv4: family == 4,
        bits: u8::try_from(bits).ok()?,
    };
    let mut key = [0, side, family, bits, 0, 0, 0, 0];
    key[4..].copy_from_slice(&rule[address..address + 4]);
    Some((table, key, [rule[at::ORDER], rule[at::MINOR]]))
}

fn table_words(table: Table) -> TableWords {
    let bytes = if table.is_ipv4 { 4 } else { 16 };
    let mut words = [0; 7];
    words[0] = if table.is_source {
        field::FROM
    } else {
        field::TO
    };
    words[1] = if table.is_ipv4 { 4 } else { 6 };
    words[2] = table.bits.into();
    words[3..].copy_from_slice(&address_words::<4>(&mask_of(table.bits, bytes)));
    words
}

/// What a set of rules is in the maps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MatchTables {
    /// The list, in the file's order.
    pub rules: Vec<RuleWords>,
    /// The tables of prefixes that there are.
    tables: Vec<TableWords>,
    pub addresses: BTreeMap<AddressWords, AnswerWords>,
}

impl MatchTables {
    /// Divides rules in the file's order into list and tables. Of two rules with one prefix the
    /// first decides.
    pub fn new(rules: &[RuleWords]) -> Self {
        let entries = rules.iter().filter_map(table_entry);
        let chosen = tables(entries.map(|(table, ..)| table));
        let mut all = Self {
            tables: chosen.iter().copied().map(table_words).collect(),
            ..Self::default()
        };
        for rule in rules {
            match table_entry(rule) {
                Some((table, key, answer)) if chosen.contains(&table) => {
                    all.addresses.entry(key).or_insert(answer);
                }
                _ => all.rules.push(*rule),
            }
        }
        all
    }

    pub fn tables_words(&self) -> TablesWords {
        let mut words = [0; 1 + TABLES_MAX * 7];
        words[0] = u32::try_from(self.tables.len()).unwrap_or(0);
        let places = words[1..].chunks_exact_mut(7);
        for (place, table) in places.zip(&self.tables) {
            place.copy_from_slice(table);
        }
        words
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rules.is_empty() && self.addresses.is_empty()
    }

    /// Returns how many datagrams in fragments there is to be room for.
    pub(crate) fn datagrams(&self) -> u32 {
        if self.is_empty() { 1 } else { DATAGRAMS }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail that way")]

    use super::*;
    use tcpsp::Interface;

    fn words(order: u32, minor: u16, flower: Flower) -> RuleWords {
        rule_words(order, minor, &Match::Flower(flower)).unwrap()
    }

    fn to(text: &str) -> Flower {
        Flower {
            destination: Prefix::parse(text),
            ..Flower::default()
        }
    }

    #[test]
    fn a_rule_is_in_the_programs_order() {
        let words = words(
            5,
            7,
            Flower {
                protocol: Some(tcpsp::Protocol::Udp),
                destination_ports: Ports::parse("5000-5009"),
                interface: Some(Interface {
                    name: "there".to_owned(),
                    index: 9,
                }),
                ..to("192.0.2.0/23")
            },
        );
        assert_eq!(words[0], 1 | (1 << 1) | (1 << 3) | (1 << 5) | (1 << 8));
        assert_eq!(words[1..5], [5, 7, 4, 17]);
        assert_eq!(words[13].to_ne_bytes(), [192, 0, 2, 0]);
        assert_eq!(words[17].to_ne_bytes(), [255, 255, 254, 0]);
        assert_eq!(words[22], (5000 << 16) | 5009);
        assert_eq!(words[25], 9);
        assert_eq!(size_of::<RuleWords>(), 120);
        assert_eq!(table_entry(&words), None);
    }

    #[test]
    fn other_rules_are_no_flowers() {
        let mark = rule_words(1, 2, &Match::Mark(3)).unwrap();
        assert_eq!(mark[..3], [1 << 9, 1, 2]);
        assert_eq!(mark[26], 3);
        assert_eq!(rule_words(1, 2, &Match::Cgroup), None);
        let cgroup = cgroup_words(1, 2, 0x1_0000_0002, 4);
        assert_eq!(cgroup[..3], [1 << 10, 1, 2]);
        assert_eq!(cgroup[27], 4);
        assert_eq!(
            cgroup[28..],
            address_words::<2>(&0x1_0000_0002u64.to_ne_bytes())
        );
        let absent = Flower {
            interface: Some(Interface {
                name: "none".to_owned(),
                index: 0,
            }),
            ..Flower::default()
        };
        let absent = words(1, 2, absent);
        assert_eq!((absent[0], absent[25]), (1 << 8, u32::MAX));
    }

    #[test]
    fn several_prefixes_of_one_length_alone_are_a_table() {
        let both = Flower {
            source: Prefix::parse("192.0.2.1"),
            ..to("192.0.2.2")
        };
        let tables = MatchTables::new(&[
            words(0, 1, to("192.0.2.0/30")),
            words(1, 2, to("192.0.2.0/31")),
            words(2, 3, both),
            words(3, 4, to("192.0.2.4/30")),
            words(4, 5, to("192.0.2.0/30")),
            words(5, 6, to("192.0.2.8/30")),
            words(6, 7, Flower::default()),
        ]);
        let orders: Vec<u32> = tables.rules.iter().map(|rule| rule[1]).collect();
        assert_eq!(orders, [1, 2, 6]);
        let mask = u32::from_ne_bytes([255, 255, 255, 252]);
        let all = tables.tables_words();
        assert_eq!(all[..9], [1, 1 << 3, 4, 30, mask, 0, 0, 0, 0]);
        let entry = |last, order, minor| {
            let address = u32::from_ne_bytes([192, 0, 2, last]);
            ([0, 1 << 3, 4, 30, address, 0, 0, 0], [order, minor])
        };
        let entries = [entry(0, 0, 1), entry(4, 3, 4), entry(8, 5, 6)];
        assert_eq!(tables.addresses, entries.into());
    }
}
