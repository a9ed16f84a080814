// SPDX-License-Identifier: MIT OR Apache-2.0
//! `network.json` of LibreQoS: nodes by name, each with its bandwidth and the nodes below it.

use std::collections::BTreeMap;
use std::fmt;

use anyhow::{Error, Result, anyhow};
use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};

use super::rate::{Direction, bps};

/// What a circuit calls the node above it by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    Id,
    Name,
}

pub struct Node {
    pub name: String,
    /// Index of the node above.
    pub above: Option<usize>,
    /// Whether it only stands in the tree, and the node above it shapes.
    is_virtual: bool,
    bps: Option<u64>,
}

/// The nodes, each after the one above it.
pub struct Network {
    file: String,
    pub nodes: Vec<Node>,
    by_name: BTreeMap<String, usize>,
    by_id: BTreeMap<String, usize>,
}

/// Nodes in the order of the file.
#[derive(Default)]
struct Children(Vec<(String, Raw)>);

impl<'de> Deserialize<'de> for Children {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Nodes;
        impl<'de> Visitor<'de> for Nodes {
            type Value = Children;
            fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
                to.write_str("nodes by name")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Children, A::Error> {
                let mut all = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    all.push(entry);
                }
                Ok(Children(all))
            }
        }
        from.deserialize_map(Nodes)
    }
}

/// A bandwidth in Mbit/s.
struct Bandwidth(u64);

impl<'de> Deserialize<'de> for Bandwidth {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let value = serde_json::Value::deserialize(from)?;
        let mbps = match &value {
            serde_json::Value::String(text) => text.trim().parse().ok(),
            other => other.as_f64(),
        };
        let known = mbps.and_then(bps).map(Self);
        known.ok_or_else(|| {
            de::Error::custom(format!(
                "{value} is there, expected a rate from 0.0025 to 1000000 in Mbit/s"
            ))
        })
    }
}

/// What a node says. Other keys say nothing of rates.
#[derive(serde::Deserialize)]
struct Raw {
    #[serde(rename = "downloadBandwidthMbps", default)]
    download: Option<Bandwidth>,
    #[serde(rename = "uploadBandwidthMbps", default)]
    upload: Option<Bandwidth>,
    #[serde(rename = "virtual", default)]
    is_virtual: Option<bool>,
    #[serde(rename = "type", default)]
    of_type: Option<serde_json::Value>,
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    children: Option<Children>,
}

impl Raw {
    /// Returns whether the node only stands in the tree: its key or its type says so.
    fn is_virtual(&self) -> bool {
        let of_type = self.of_type.as_ref().and_then(serde_json::Value::as_str);
        self.is_virtual == Some(true)
            || of_type.is_some_and(|text| text.trim().eq_ignore_ascii_case("virtual"))
    }
}

impl Network {
    /// Returns a network without nodes.
    pub fn none(file: &str) -> Self {
        Self {
            file: file.to_owned(),
            nodes: Vec::new(),
            by_name: BTreeMap::new(),
            by_id: BTreeMap::new(),
        }
    }

    /// Reads a file.
    ///
    /// # Errors
    /// What is wrong, and in which line and column or at which node.
    pub fn read(file: &str, bytes: &[u8], direction: Direction) -> Result<Self> {
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        let read: Result<Children, _> = serde_json::from_slice(bytes);
        let top = read.map_err(|error| {
            let (line, column) = (error.line(), error.column());
            let place = format!(" at line {line} column {column}");
            let said = error.to_string();
            let said = said.strip_suffix(&place).unwrap_or(&said);
            anyhow!("{file}:{line}: column {column}: {said}")
        })?;
        let mut network = Self::none(file);
        let mut next: Vec<_> = top.0.into_iter().rev().map(|node| (None, node)).collect();
        while let Some((above, (name, raw))) = next.pop() {
            let index = network.nodes.len();
            if network.by_name.insert(name.clone(), index).is_some() {
                return Err(network.fault(&name, "it is there twice, expected once"));
            }
            let id = raw.id.as_deref().map(str::trim);
            if let Some(id) = id.filter(|id| !id.is_empty()) {
                if let Some(other) = network.by_id.insert(id.to_owned(), index) {
                    let other = &network.nodes[other].name;
                    let what = format!("its id \"{id}\" is node {other}'s, too, expected one node");
                    return Err(network.fault(&name, &what));
                }
            }
            let is_virtual = raw.is_virtual();
            let bandwidth = match direction {
                Direction::Download => raw.download,
                Direction::Upload => raw.upload,
            };
            network.nodes.push(Node {
                name,
                above,
                is_virtual,
                bps: bandwidth.map(|bandwidth| bandwidth.0),
            });
            let children = raw.children.unwrap_or_default().0;
            next.extend(children.into_iter().rev().map(|node| (Some(index), node)));
        }
        Ok(network)
    }

    fn fault(&self, node: &str, what: &str) -> Error {
        anyhow!("{}: node {node}: {what}", self.file)
    }

    /// Returns the node of this name, or of this id, that shapes: itself, or the next one above it
    /// that is not virtual. `Some(None)`: there is none above.
    pub fn find(&self, parent: &str, by: By) -> Option<Option<usize>> {
        let mut at = Some(*self.index(by).get(parent)?);
        while let Some(node) = at.and_then(|at| self.nodes.get(at)) {
            if !node.is_virtual {
                break;
            }
            at = node.above;
        }
        Some(at)
    }

    /// Returns the rate of a node.
    pub fn bps(&self, at: usize, direction: Direction) -> Result<u64> {
        let node = &self.nodes[at];
        node.bps.ok_or_else(|| {
            let key = direction.word();
            let what = format!("it lacks `{key}BandwidthMbps`, expected a rate in Mbit/s");
            self.fault(&node.name, &what)
        })
    }

    /// Returns the rate of a node, if it names one and shapes.
    pub fn shaped_bps(&self, at: usize) -> Option<u64> {
        let node = self.nodes.get(at)?;
        node.bps.filter(|_| !node.is_virtual)
    }

    fn index(&self, by: By) -> &BTreeMap<String, usize> {
        match by {
            By::Id => &self.by_id,
            By::Name => &self.by_name,
        }
    }

    /// Returns all names, or all ids, for a hint.
    pub fn all(&self, by: By) -> Vec<&str> {
        self.index(by).keys().map(String::as_str).collect()
    }
}
