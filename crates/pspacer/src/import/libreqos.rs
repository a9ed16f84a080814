// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes the file of a host of what LibreQoS is configured by.

use std::collections::BTreeMap;
use std::fmt::Write;

use anyhow::{Result, anyhow};
use clap::Args;
use host_config::Host;
use units::display;
use units::nearest::hint;

use super::circuits::{Circuit, Circuits};
use super::names::{Names, comment};
use super::network::{By, Network};
use super::rate::{Direction, text as rate_text};
use super::shaped_devices::{self, Table};
use crate::values::rate;

/// A file: its name in messages, and what is in it.
pub struct Input {
    pub name: String,
    pub bytes: Vec<u8>,
}

/// What the host's file shall be of.
#[derive(Debug, Args)]
pub struct Choice {
    /// The device that the host's file is about
    #[arg(long, value_name = "DEV", default_value = "eth0")]
    pub device: String,
    /// What the device sends: download to circuits, or upload from them
    #[arg(long, value_enum, default_value_t = Direction::Download)]
    pub direction: Direction,
    /// Line of the device [default: what it reports]
    #[arg(long = "line", value_name = "RATE", value_parser = rate)]
    pub line_bps: Option<u64>,
}

/// A host's file, and what a person should know about it.
#[derive(Debug)]
pub struct Imported {
    pub text: String,
    /// Notes, which the file has, too.
    pub notes: Vec<String>,
    /// Its classes and groups.
    pub classes: usize,
    pub groups: usize,
}

/// A group that has circuits.
struct Group {
    name: String,
    bps: u64,
    min_bps: u64,
}

/// Groups, by the index of their node.
type Groups = BTreeMap<usize, Group>;

fn shown(bps: u64) -> String {
    display::rate(bps as f64)
}

/// Returns the host's file for the circuits of `devices`, whose nodes are in `network`.
///
/// # Errors
/// The first fault: the file, its line, column and value, and what was expected.
pub fn libreqos(devices: &Input, network: Option<&Input>, choice: &Choice) -> Result<Imported> {
    let direction = choice.direction;
    let network = match network {
        Some(network) => Network::read(&network.name, &network.bytes, direction)?,
        None => Network::none("network.json"),
    };
    let (table, rows) = shaped_devices::read(&devices.name, &devices.bytes, direction)?;
    let Circuits { all, mut notes } = Circuits::new(&table, rows)?;
    let mut names = Names::default();
    let (nodes, groups) = groups(&network, &table, &all, direction, &mut names)?;
    notes.extend(of_nodes_above(&network, &groups));
    let mut text = String::new();
    for (at, group) in &groups {
        let name = &network.nodes[*at].name;
        put_group(&mut text, group, name);
    }
    let mut lowered = Vec::new();
    for (circuit, node) in all.iter().zip(nodes) {
        let group = node.and_then(|at| groups.get(&at));
        let most_bps = group.map_or(u64::MAX, |group| group.bps);
        if circuit.row.max_bps > most_bps {
            lowered.push(circuit);
        }
        put_class(&mut text, circuit, group, direction, &mut names);
    }
    if let Some(first) = lowered.first() {
        notes.push(format!(
            "circuits that may be faster than the node above them, which bounds them: {}, such as \
             {} with {}",
            lowered.len(),
            first.row.circuit,
            shown(first.row.max_bps)
        ));
    }
    for group in groups.values().filter(|group| group.min_bps > group.bps) {
        notes.push(format!(
            "group {}: its circuits are promised {}, and it has {}; they share that in proportion \
             to what they are promised",
            group.name,
            shown(group.min_bps),
            shown(group.bps)
        ));
    }
    let text = head(choice, &notes) + &text;
    let host = Host::read("", &text).map_err(|error| {
        let file = &devices.name;
        anyhow!("{file}: the host's file would be refused: {error}")
    })?;
    let classes = host.devices.iter().map(|device| device.classes.len());
    Ok(Imported {
        classes: classes.sum(),
        groups: groups.len(),
        text,
        notes,
    })
}

/// Returns the node that shapes a circuit beside itself.
fn node_of(network: &Network, table: &Table<'_>, circuit: &Circuit) -> Result<Option<usize>> {
    let (parent, by) = (&circuit.row.parent.value, circuit.row.parent.by());
    match network.find(parent, by) {
        Some(node) => Ok(node),
        None if parent.is_empty() || parent.eq_ignore_ascii_case("none") => Ok(None),
        None => {
            let expected = format!(
                "the {} of a node of the network, or nothing{}",
                match by {
                    By::Id => "id",
                    By::Name => "name",
                },
                hint(parent, &network.all(by))
            );
            Err(table.parent_fault(&circuit.row, &expected))
        }
    }
}

/// Returns the node of each circuit, and the groups.
fn groups(
    network: &Network,
    table: &Table<'_>,
    circuits: &[Circuit],
    direction: Direction,
    names: &mut Names,
) -> Result<(Vec<Option<usize>>, Groups)> {
    let mut nodes = Vec::with_capacity(circuits.len());
    let mut groups = Groups::new();
    for circuit in circuits {
        let node = node_of(network, table, circuit)?;
        nodes.push(node);
        let Some(at) = node else {
            continue;
        };
        let bps = network.bps(at, direction)?;
        let group = groups.entry(at).or_insert(Group {
            name: String::new(),
            bps,
            min_bps: 0,
        });
        group.min_bps = group.min_bps.saturating_add(circuit.row.min_bps);
    }
    for (at, group) in &mut groups {
        group.name = names.take(&network.nodes[*at].name);
    }
    Ok((nodes, groups))
}

/// Returns a note for each node that is not kept as what stands above groups, and that these could
/// exceed together.
fn of_nodes_above(network: &Network, groups: &Groups) -> Vec<String> {
    let mut below: BTreeMap<usize, u64> = BTreeMap::new();
    for (at, group) in groups {
        let mut above = network.nodes[*at].above;
        while let Some(at) = above {
            let sum = below.entry(at).or_default();
            *sum = sum.saturating_add(group.bps);
            above = network.nodes[at].above;
        }
    }
    let notes = below.into_iter().filter_map(|(at, below_bps)| {
        let bps = network.shaped_bps(at)?;
        let own_bps = groups.get(&at).map_or(0, |group| group.bps);
        let sum_bps = below_bps.saturating_add(own_bps);
        let over_bps = sum_bps.checked_sub(bps).filter(|over| *over > 0)?;
        Some(format!(
            "node {} of {} is not kept above the groups below it: together they may take {}, which \
             is {} more",
            comment(&network.nodes[at].name),
            shown(bps),
            shown(sum_bps),
            shown(over_bps)
        ))
    });
    notes.collect()
}

fn head(choice: &Choice, notes: &[String]) -> String {
    let mut text = format!(
        "# Circuits of LibreQoS, {}, for `pspacer apply`. Made by `pspacer import libreqos`.\n",
        choice.direction.word()
    );
    for note in notes {
        // Writing to a string does not fail.
        let _ = writeln!(text, "# Note: {}", comment(note));
    }
    let _ = writeln!(
        text,
        "\n[[device]]\nname = {}",
        toml_reader::quote(&choice.device)
    );
    if let Some(line_bps) = choice.line_bps {
        let _ = writeln!(text, "line = \"{}\"", rate_text(line_bps));
    }
    text
}

fn put_group(to: &mut String, group: &Group, name: &str) {
    let rate = rate_text(group.bps);
    let _ = write!(
        to,
        "\n# {}\n[[device.group]]\nname = \"{}\"\nrate = \"{rate}\"\n",
        comment(name),
        group.name
    );
}

fn put_class(
    to: &mut String,
    circuit: &Circuit,
    group: Option<&Group>,
    direction: Direction,
    names: &mut Names,
) {
    let row = &circuit.row;
    let most_bps = group.map_or(u64::MAX, |group| group.bps);
    let (rate_bps, ceil_bps) = (row.min_bps.min(most_bps), row.max_bps.min(most_bps));
    let said = match row.circuit_name.as_str() {
        "" => &row.circuit,
        name => name,
    };
    let name = names.take(&row.circuit);
    let _ = write!(
        to,
        "\n# {}\n[[device.class]]\nname = \"{name}\"\n",
        comment(said)
    );
    if let Some(group) = group {
        let _ = writeln!(to, "group = \"{}\"", group.name);
    }
    let _ = writeln!(to, "rate = \"{}\"", rate_text(rate_bps));
    if ceil_bps > rate_bps {
        let _ = writeln!(to, "ceil = \"{}\"", rate_text(ceil_bps));
    }
    let side = match direction {
        Direction::Download => "to",
        Direction::Upload => "from",
    };
    let prefixes = circuit.prefixes.iter();
    let matches = prefixes.map(|(prefix, _)| format!("{{ {side} = \"{prefix}\" }}"));
    let _ = writeln!(to, "match = [{}]", matches.collect::<Vec<_>>().join(", "));
}

#[cfg(test)]
#[path = "libreqos_tests.rs"]
mod tests;
