// SPDX-License-Identifier: MIT OR Apache-2.0
//! The values of the program's maps, as words in the order of the structures in `bpf/edt.bpf.c`.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use host_config::Rule;
use linux_io::links::Link;
use tcpsp::{Family, Flower, Match, Ports, Prefix};

use super::config::{CLASSES_MAX, Config, PacedClass, RULES_MAX};
use super::error::Error;

/// Version of the maps' formats.
pub(crate) const VERSION: u32 = 1;
/// `CLASSES_MAX` and `RULES_MAX` as keys.
pub(crate) const CLASSES: u32 = CLASSES_MAX as u32;
pub(crate) const RULES: u32 = RULES_MAX as u32;
/// The slot of no class, and that of a class without a rate.
const NO_SLOT: u32 = u32::MAX;
const NORMAL_SLOT: u32 = u32::MAX - 1;

/// `enum edt_field`.
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
}

/// `struct edt_config`: version, rules, default slot, net_cls, layer, overhead, shortest frame,
/// link header.
pub(crate) type ConfigWords = [u32; 8];
/// `struct edt_rule`.
pub(crate) type RuleWords = [u32; 26];
/// `struct edt_class`: rate in bit/s, horizon in ns, minor number.
pub(crate) type ClassWords = [u64; 3];
/// `struct edt_state`: lock; the clock's ns, fraction and rate; frames, bytes, dropped frames,
/// dropped bytes, later frames.
pub(crate) type StateWords = [u64; 9];

/// What is written into a half of the maps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tables {
    pub config: ConfigWords,
    pub rules: Vec<RuleWords>,
    /// By slot.
    pub classes: BTreeMap<u32, ClassWords>,
    /// Slots by minor number.
    pub minors: BTreeMap<u16, u32>,
}

impl Tables {
    /// Returns the tables of what is wanted. Classes keep the slots that they have, and with them
    /// their clocks.
    pub fn new(config: &Config, slots: &BTreeMap<u16, u32>, links: &[Link]) -> Result<Self, Error> {
        let mut minors: BTreeMap<u16, u32> = config
            .normal
            .iter()
            .map(|minor| (*minor, NORMAL_SLOT))
            .collect();
        let kept = |minor: &u16| slots.get(minor).copied().filter(|slot| *slot < CLASSES);
        let stays: BTreeSet<u32> = config.paced.keys().filter_map(kept).collect();
        let in_force: BTreeSet<u32> = slots.values().copied().collect();
        // A slot that is in force is the last choice: its class sends until the others come.
        let unused = (0..CLASSES).filter(|slot| !in_force.contains(slot));
        let goes = in_force.difference(&stays).copied();
        let mut free = unused.chain(goes.filter(|slot| *slot < CLASSES));
        let mut classes = BTreeMap::new();
        for (minor, class) in &config.paced {
            // There are at most so many classes.
            let Some(slot) = kept(minor).or_else(|| free.next()) else {
                break;
            };
            minors.insert(*minor, slot);
            classes.insert(slot, class_words(*minor, class));
        }
        let slot_of = |minor: u16| minors.get(&minor).copied().unwrap_or(NO_SLOT);
        let rules = config.rules.iter();
        let rules = rules.map(|rule| rule_words(rule, slot_of(rule.class), links));
        let rules = rules.collect::<Result<Vec<_>, _>>()?;
        Ok(Self {
            config: [
                VERSION,
                u32::try_from(rules.len()).unwrap_or(RULES),
                slot_of(config.default_minor),
                config.net_cls.into(),
                config.layer,
                config.overhead_bytes,
                config.min_bytes,
                config.link_bytes,
            ],
            rules,
            classes,
            minors,
        })
    }
}

fn class_words(minor: u16, class: &PacedClass) -> ClassWords {
    [class.rate_bps, class.horizon_ns, minor.into()]
}

/// The words of an address or a mask, in memory as the network has them.
fn address_words(bytes: &[u8]) -> [u32; 4] {
    let mut words = [0; 4];
    for (word, four) in words.iter_mut().zip(bytes.chunks_exact(4)) {
        if let Ok(four) = four.try_into() {
            *word = u32::from_ne_bytes(four);
        }
    }
    words
}

/// The words of a prefix, and of its mask.
fn prefix_words(prefix: &Prefix) -> ([u32; 4], [u32; 4]) {
    let bytes = match prefix.address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    };
    let bits = usize::from(prefix.bits);
    let mask = (0..bytes.len()).map(|at| {
        let here = bits.saturating_sub(8 * at).min(8);
        u8::try_from((0xff00u32 >> here) & 0xff).unwrap_or(0)
    });
    (
        address_words(&bytes),
        address_words(&mask.collect::<Vec<_>>()),
    )
}

fn ports_word(ports: &Ports) -> u32 {
    (u32::from(ports.first) << 16) | u32::from(ports.last)
}

fn rule_words(rule: &Rule, slot: u32, links: &[Link]) -> Result<RuleWords, Error> {
    let mut words = [0; 26];
    words[1] = slot;
    let flower: &Flower = match &rule.matching {
        Match::Flower(flower) => flower,
        Match::Mark(mark) => {
            words[0] = field::MARK;
            words[25] = *mark;
            return Ok(words);
        }
        // The configuration has it elsewhere.
        Match::Cgroup => return Ok(words),
    };
    let mut put = |bit: u32, at: usize, value: Option<u32>| {
        if let Some(value) = value {
            words[0] |= bit;
            words[at] = value;
        }
    };
    let family = flower.family.map(|family| match family {
        Family::Ipv4 => 4,
        Family::Ipv6 => 6,
    });
    put(field::FAMILY, 2, family);
    let protocol = flower.protocol.map(|protocol| protocol.number().into());
    put(field::PROTOCOL, 3, protocol);
    put(
        field::FROM_PORT,
        20,
        flower.source_ports.as_ref().map(ports_word),
    );
    put(
        field::TO_PORT,
        21,
        flower.destination_ports.as_ref().map(ports_word),
    );
    put(field::DSCP, 22, flower.dscp.map(u32::from));
    put(field::VLAN, 23, flower.vlan.map(u32::from));
    if let Some(name) = &flower.interface {
        let link = links.iter().find(|link| link.name == *name);
        let link = link.ok_or_else(|| Error::NoInterface(name.clone()))?;
        put(field::INTERFACE, 24, Some(link.index));
    }
    for (bit, at, prefix) in [
        (field::FROM, 4, &flower.source),
        (field::TO, 12, &flower.destination),
    ] {
        if let Some(prefix) = prefix {
            let (address, mask) = prefix_words(prefix);
            words[0] |= bit;
            words[at..at + 4].copy_from_slice(&address);
            words[at + 4..at + 8].copy_from_slice(&mask);
        }
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::size_of;

    fn config(paced: &[(u16, u64)], normal: &[u16]) -> Config {
        let paced = paced.iter().map(|(minor, rate_bps)| {
            let class = PacedClass {
                rate_bps: *rate_bps,
                horizon_ns: 5,
            };
            (*minor, class)
        });
        Config {
            queues: 0,
            paced: paced.collect(),
            normal: normal.to_vec(),
            rules: Vec::new(),
            default_minor: 0,
            net_cls: false,
            layer: 0,
            overhead_bytes: 24,
            min_bytes: 60,
            link_bytes: 14,
            names: BTreeMap::new(),
            notes: Vec::new(),
        }
    }

    #[test]
    fn a_class_that_stays_keeps_its_slot() {
        let first = config(&[(0x8001, 8_000), (0x8003, 9_000)], &[]);
        let first = Tables::new(&first, &BTreeMap::new(), &[]).unwrap();
        assert_eq!(first.minors, [(0x8001, 0), (0x8003, 1)].into());
        let mut second = config(&[(0x8002, 7_000), (0x8003, 6_000)], &[0x8005]);
        second.default_minor = 0x8005;
        let second = Tables::new(&second, &first.minors, &[]).unwrap();
        assert_eq!(
            second.minors,
            [(0x8002, 2), (0x8003, 1), (0x8005, NORMAL_SLOT)].into()
        );
        assert_eq!(second.classes[&1], [6_000, 5, 0x8003]);
        assert_eq!(second.config[2], NORMAL_SLOT);
        assert_eq!(first.config[2], NO_SLOT);
    }

    #[test]
    fn a_rule_is_in_the_programs_order() {
        let matching = Match::Flower(Flower {
            family: Some(Family::Ipv4),
            protocol: Some(tcpsp::Protocol::Udp),
            destination: Prefix::parse("192.0.2.0/23"),
            destination_ports: Ports::parse("5000-5009"),
            ..Flower::default()
        });
        let rule = Rule { matching, class: 1 };
        let words = rule_words(&rule, 7, &[]).unwrap();
        assert_eq!(words[0], 1 | (1 << 1) | (1 << 3) | (1 << 5));
        assert_eq!(words[1..4], [7, 4, 17]);
        assert_eq!(words[12].to_ne_bytes(), [192, 0, 2, 0]);
        assert_eq!(words[16].to_ne_bytes(), [255, 255, 254, 0]);
        assert_eq!(words[21], (5000 << 16) | 5009);
        assert_eq!(size_of::<RuleWords>(), 104);
        let matching = Match::Flower(Flower {
            interface: Some("none".to_owned()),
            ..Flower::default()
        });
        let rule = Rule { matching, class: 1 };
        let error = rule_words(&rule, 7, &[]).unwrap_err();
        assert!(error.to_string().starts_with("interface none:"), "{error}");
    }
}
