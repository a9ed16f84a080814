// SPDX-License-Identifier: MIT OR Apache-2.0
//! Matches as words in the order of the structures in `bpf/match.h`.

use std::collections::BTreeMap;
use std::net::IpAddr;

use linux_io::links::links;
use tcpsp::{Family, Flower, Match, Ports, Prefix};

use crate::error::{Error, NoInterface};

/// `struct match_rule`.
pub type RuleWords = [u32; WORDS];
/// Its words.
const WORDS: usize = 30;
/// `struct match_address`: base, side, family, address. The base is 0 until it is written.
pub(crate) type AddressWords = [u32; 7];
/// `struct match_answer`: order, minor number.
pub(crate) type AnswerWords = [u32; 2];

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
/// `None` of [`Match::Cgroup`], which is no rule. `resolve` returns the index of a device.
///
/// # Errors
/// A device that is not there.
pub fn rule_words(
    order: u32,
    minor: u16,
    matching: &Match,
    resolve: &dyn Fn(&str) -> Option<u32>,
) -> Result<Option<RuleWords>, NoInterface> {
    let mut words = [0; WORDS];
    words[at::ORDER] = order;
    words[at::MINOR] = minor.into();
    match matching {
        Match::Flower(flower) => put_flower(&mut words, flower, resolve)?,
        Match::Mark(mark) => {
            words[at::FIELDS] = field::MARK;
            words[at::MARK] = *mark;
        }
        Match::Sender(sender) => {
            return Ok(Some(cgroup_words(order, minor, sender.id, sender.level())));
        }
        Match::Cgroup => return Ok(None),
    }
    Ok(Some(words))
}

/// Returns the words of matches in the file's order, each with the minor number of its class.
///
/// # Errors
/// A device that is not there, or that there is no list of devices.
pub(crate) fn words_of(rules: &[(&Match, u16)]) -> Result<Vec<RuleWords>, Error> {
    let names_a_device = |(matching, _): &(&Match, u16)| match matching {
        Match::Flower(flower) => flower.interface.is_some(),
        _ => false,
    };
    let links = if rules.iter().any(names_a_device) {
        links().map_err(Error::Links)?
    } else {
        Vec::new()
    };
    let index = |name: &str| {
        let link = links.iter().find(|link| link.name == name);
        link.map(|link| link.index)
    };
    let mut words = Vec::new();
    for (order, (matching, class)) in (0..).zip(rules) {
        words.extend(rule_words(order, *class, matching, &index)?);
    }
    Ok(words)
}

/// Returns the words of a match of senders in a cgroup of the unified hierarchy, or below it.
/// `level` is 0 of the root.
#[must_use]
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

fn put_flower(
    words: &mut RuleWords,
    flower: &Flower,
    resolve: &dyn Fn(&str) -> Option<u32>,
) -> Result<(), NoInterface> {
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
    if let Some(name) = &flower.interface {
        let index = resolve(name).ok_or_else(|| NoInterface(name.clone()))?;
        put(field::INTERFACE, at::INTERFACE, Some(index));
    }
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
    Ok(())
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
    let bits = usize::from(prefix.bits);
    let mask = (0..bytes.len()).map(|at| {
        let here = bits.saturating_sub(8 * at).min(8);
        u8::try_from((0xff00u32 >> here) & 0xff).unwrap_or(0)
    });
    let mask: Vec<u8> = mask.collect();
    (family, address_words(&bytes), address_words(&mask))
}

fn ports_word(ports: &Ports) -> u32 {
    (u32::from(ports.first) << 16) | u32::from(ports.last)
}

/// Returns the entry of the table of addresses for a rule that looks at nothing but one whole
/// address; `None`: the rule belongs to the list.
pub(crate) fn address_entry(rule: &RuleWords) -> Option<(AddressWords, AnswerWords)> {
    let side = rule[at::FIELDS] ^ field::FAMILY;
    let (address, mask) = match side {
        field::FROM => (at::FROM, at::FROM_MASK),
        field::TO => (at::TO, at::TO_MASK),
        _ => return None,
    };
    let words = if rule[at::FAMILY] == 4 { 1 } else { 4 };
    let is_whole = rule[mask..]
        .iter()
        .take(words)
        .all(|mask| *mask == u32::MAX);
    let mut key = [0, side, rule[at::FAMILY], 0, 0, 0, 0];
    key[3..].copy_from_slice(&rule[address..address + 4]);
    is_whole.then_some((key, [rule[at::ORDER], rule[at::MINOR]]))
}

/// What a set of rules is in the maps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct MatchTables {
    /// The list, in the file's order.
    pub rules: Vec<RuleWords>,
    /// The table of addresses.
    pub addresses: BTreeMap<AddressWords, AnswerWords>,
}

impl MatchTables {
    /// Divides rules in the file's order into list and table. Of two rules with one address the
    /// first decides.
    pub fn new(rules: impl IntoIterator<Item = RuleWords>) -> Self {
        let mut tables = Self::default();
        for rule in rules {
            match address_entry(&rule) {
                Some((key, answer)) => drop(tables.addresses.entry(key).or_insert(answer)),
                None => tables.rules.push(rule),
            }
        }
        tables
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail that way")]

    use super::*;

    fn words(order: u32, minor: u16, flower: Flower) -> RuleWords {
        let resolve = |name: &str| (name == "there").then_some(9);
        let words = rule_words(order, minor, &Match::Flower(flower), &resolve);
        words.unwrap().unwrap()
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
                interface: Some("there".to_owned()),
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
        assert_eq!(address_entry(&words), None);
    }

    #[test]
    fn other_rules_are_no_flowers() {
        let nobody = |_: &str| None;
        let mark = rule_words(1, 2, &Match::Mark(3), &nobody).unwrap().unwrap();
        assert_eq!(mark[..3], [1 << 9, 1, 2]);
        assert_eq!(mark[26], 3);
        assert_eq!(rule_words(1, 2, &Match::Cgroup, &nobody), Ok(None));
        let cgroup = cgroup_words(1, 2, 0x1_0000_0002, 4);
        assert_eq!(cgroup[..3], [1 << 10, 1, 2]);
        assert_eq!(cgroup[27], 4);
        assert_eq!(
            cgroup[28..],
            address_words::<2>(&0x1_0000_0002u64.to_ne_bytes())
        );
        let matching = Match::Flower(Flower {
            interface: Some("none".to_owned()),
            ..Flower::default()
        });
        let error = rule_words(1, 2, &matching, &nobody).unwrap_err();
        assert!(error.to_string().starts_with("interface none:"), "{error}");
    }

    #[test]
    fn whole_addresses_alone_are_in_the_table() {
        let from = Flower {
            source: Prefix::parse("fd00::1"),
            ..Flower::default()
        };
        let both = Flower {
            source: Prefix::parse("192.0.2.1"),
            ..to("192.0.2.2")
        };
        let tables = MatchTables::new([
            words(0, 1, to("192.0.2.2")),
            words(1, 2, from),
            words(2, 3, to("192.0.2.0/31")),
            words(3, 4, both),
            words(4, 5, to("192.0.2.2")),
            words(5, 6, Flower::default()),
        ]);
        let orders: Vec<u32> = tables.rules.iter().map(|rule| rule[1]).collect();
        assert_eq!(orders, [2, 3, 5]);
        let v4 = u32::from_ne_bytes([192, 0, 2, 2]);
        let v6 = [
            u32::from_ne_bytes([0xfd, 0, 0, 0]),
            0,
            0,
            u32::from_ne_bytes([0, 0, 0, 1]),
        ];
        assert_eq!(
            tables.addresses,
            [
                ([0, 1 << 3, 4, v4, 0, 0, 0], [0, 1]),
                ([0, 1 << 2, 6, v6[0], v6[1], v6[2], v6[3]], [1, 2]),
            ]
            .into()
        );
    }
}
