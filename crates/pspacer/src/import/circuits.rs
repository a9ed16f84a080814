// SPDX-License-Identifier: MIT OR Apache-2.0
//! Circuits: the rows of a subscriber together, each address in one circuit.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;

use anyhow::Result;
use tcpsp::Prefix;

use super::shaped_devices::{Row, Table};

pub struct Circuit {
    pub row: Row,
    /// Addresses, each with its line.
    pub prefixes: Vec<(Prefix, u64)>,
}

/// The circuits, in the order in which the host's file has them, and notes about them.
pub struct Circuits {
    pub all: Vec<Circuit>,
    pub notes: Vec<String>,
}

impl Circuits {
    /// Puts rows together. O(n log n).
    ///
    /// # Errors
    /// An address that another circuit has, or rows of a circuit that contradict each other.
    pub fn new(table: &Table<'_>, rows: Vec<Row>) -> Result<Self> {
        let mut notes = Vec::new();
        let hosts: Vec<_> = rows.iter().flat_map(|row| &row.hosts).collect();
        if let Some((said, network, line)) = hosts.first() {
            notes.push(format!(
                "addresses with bits of a host, whose networks count: {}, such as {said} in line \
                 {line}, which is {network}",
                hosts.len()
            ));
        }
        let mut all: Vec<Circuit> = Vec::new();
        let mut by_id: HashMap<String, usize> = HashMap::new();
        let mut owners: HashMap<Prefix, (usize, u64)> = HashMap::new();
        for row in rows {
            let next = all.len();
            let at = *by_id.entry(row.circuit.clone()).or_insert(next);
            let mut prefixes = Vec::new();
            for prefix in &row.prefixes {
                match owners.insert(*prefix, (at, row.line)) {
                    None => prefixes.push((*prefix, row.line)),
                    // Twice in one circuit is once.
                    Some((owner, _)) if owner == at => {}
                    Some((owner, line)) => {
                        let id = all.get(owner).map_or("", |other| &other.row.circuit);
                        let expected = format!(
                            "an address of this circuit alone: circuit {id} has it in line {line}"
                        );
                        return Err(table.address_fault(row.line, *prefix, &expected));
                    }
                }
            }
            let Some(first) = all.get_mut(at) else {
                all.push(Circuit { row, prefixes });
                continue;
            };
            if first.row.parent != row.parent {
                let (parent, line) = (&first.row.parent, first.row.line);
                let column = if parent.column == row.parent.column {
                    String::new()
                } else {
                    format!(" in `{}`", parent.column)
                };
                let expected = format!(
                    "\"{}\"{column}, as line {line} has it of the same circuit",
                    parent.value
                );
                return Err(table.parent_fault(&row, &expected));
            }
            if (first.row.min_bps, first.row.max_bps) != (row.min_bps, row.max_bps) {
                notes.push(format!(
                    "circuit {}: line {} has other rates than line {}, which counts",
                    row.circuit, row.line, first.row.line
                ));
            }
            first.prefixes.append(&mut prefixes);
        }
        let without = all.iter().filter(|circuit| circuit.prefixes.is_empty());
        let without: Vec<&str> = without
            .map(|circuit| circuit.row.circuit.as_str())
            .collect();
        if let Some(first) = without.first() {
            notes.push(format!(
                "circuits without an address, which are left out: {}, such as {first}",
                without.len()
            ));
        }
        all.retain(|circuit| !circuit.prefixes.is_empty());
        narrow_first(table, &mut all)?;
        Ok(Self { all, notes })
    }
}

/// Returns an address as a number, and its bits: of IPv4 below those of IPv6.
fn key(prefix: Prefix) -> (bool, u128, u8) {
    match prefix.address {
        IpAddr::V4(address) => (true, u128::from(u32::from(address)) << 96, prefix.bits),
        IpAddr::V6(address) => (false, u128::from(address), prefix.bits),
    }
}

/// Puts circuits whose networks contain addresses of others behind these: of overlapping networks
/// the host's file takes the first.
fn narrow_first(table: &Table<'_>, all: &mut Vec<Circuit>) -> Result<()> {
    // In this order a network comes right before all that is within it.
    let sorted = |all: &[Circuit]| {
        let mut sorted: BTreeMap<(bool, u128, u8), (Prefix, usize, u64)> = BTreeMap::new();
        for (at, circuit) in all.iter().enumerate() {
            for (prefix, line) in &circuit.prefixes {
                sorted.insert(key(*prefix), (*prefix, at, *line));
            }
        }
        sorted
    };
    let pairs = |all: &[Circuit]| {
        let mut pairs = Vec::new();
        let mut above: Vec<(Prefix, usize, u64)> = Vec::new();
        for inner in sorted(all).into_values() {
            while above
                .last()
                .is_some_and(|(p, ..)| !p.contains(inner.0.address))
            {
                above.pop();
            }
            pairs.extend(
                above
                    .iter()
                    .filter(|outer| outer.1 != inner.1)
                    .map(|outer| (*outer, inner)),
            );
            above.push(inner);
        }
        pairs
    };
    let mut widest: BTreeMap<usize, u8> = BTreeMap::new();
    for (outer, _) in pairs(all) {
        let bits = widest.entry(outer.1).or_insert(outer.0.bits);
        *bits = outer.0.bits.min(*bits);
    }
    if widest.is_empty() {
        return Ok(());
    }
    let mut order: Vec<(u8, Circuit)> = all
        .drain(..)
        .enumerate()
        .map(|(at, circuit)| {
            (
                u8::MAX - widest.get(&at).copied().unwrap_or(u8::MAX),
                circuit,
            )
        })
        .collect();
    order.sort_by_key(|(width, _)| *width);
    all.extend(order.into_iter().map(|(_, circuit)| circuit));
    match pairs(all).iter().find(|(outer, inner)| outer.1 < inner.1) {
        None => Ok(()),
        Some(((outer, at, line), inner)) => {
            let id = all.get(*at).map_or("", |circuit| &circuit.row.circuit);
            let expected = format!(
                "an address outside {outer} of circuit {id}, line {line}: each circuit has an \
                 address within a network of the other"
            );
            Err(table.address_fault(inner.2, inner.0, &expected))
        }
    }
}
