// SPDX-License-Identifier: MIT OR Apache-2.0
//! `network.json` of LibreQoS: nodes by name, each with its bandwidth and the nodes below it.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};

use crate::error::Error;
use crate::rate::{Direction, bps};

/// A node.
pub(crate) struct Node {
    pub name: String,
    /// Index of the node above.
    pub above: Option<usize>,
    /// Whether it only stands in the tree, and the node above it shapes.
    is_virtual: bool,
    bps: Option<u64>,
}

/// The nodes, each after the one above it.
pub(crate) struct Network {
    file: String,
    pub nodes: Vec<Node>,
    by_name: BTreeMap<String, usize>,
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
        let known = value.as_f64().and_then(bps).map(Self);
        known.ok_or_else(|| {
            de::Error::custom(format!(
                "{value} is there, expected a rate above 0 in Mbit/s"
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
    #[serde(default)]
    children: Option<Children>,
}

impl Network {
    /// Returns a network without nodes.
    pub fn none(file: &str) -> Self {
        Self {
            file: file.to_owned(),
            nodes: Vec::new(),
            by_name: BTreeMap::new(),
        }
    }

    /// Reads a file.
    ///
    /// # Errors
    /// What is wrong, and in which line and column or at which node.
    pub fn read(file: &str, bytes: &[u8], direction: Direction) -> Result<Self, Error> {
        let read: Result<Children, _> = serde_json::from_slice(bytes);
        let top = read.map_err(|error| {
            let (line, column) = (error.line(), error.column());
            let place = format!(" at line {line} column {column}");
            let said = error.to_string();
            let said = said.strip_suffix(&place).unwrap_or(&said);
            Error::Syntax {
                file: file.to_owned(),
                line: line as u64,
                what: format!("column {column}: {said}"),
            }
        })?;
        let mut network = Self::none(file);
        let mut next: Vec<_> = top.0.into_iter().rev().map(|node| (None, node)).collect();
        while let Some((above, (name, raw))) = next.pop() {
            let index = network.nodes.len();
            if network.by_name.insert(name.clone(), index).is_some() {
                return Err(network.fault(&name, "it is there twice, expected once"));
            }
            let bandwidth = match direction {
                Direction::Download => raw.download,
                Direction::Upload => raw.upload,
            };
            network.nodes.push(Node {
                name,
                above,
                is_virtual: raw.is_virtual == Some(true),
                bps: bandwidth.map(|bandwidth| bandwidth.0),
            });
            let children = raw.children.unwrap_or_default().0;
            next.extend(children.into_iter().rev().map(|node| (Some(index), node)));
        }
        Ok(network)
    }

    fn fault(&self, node: &str, what: &str) -> Error {
        Error::Node {
            file: self.file.clone(),
            node: node.to_owned(),
            what: what.to_owned(),
        }
    }

    /// Returns the node of this name that shapes: itself, or the next one above it that is not
    /// virtual. `Some(None)`: there is none above.
    pub fn find(&self, name: &str) -> Option<Option<usize>> {
        let mut at = Some(*self.by_name.get(name)?);
        while let Some(node) = at.and_then(|at| self.nodes.get(at)) {
            if !node.is_virtual {
                break;
            }
            at = node.above;
        }
        Some(at)
    }

    /// Returns the rate of a node.
    ///
    /// # Errors
    /// If it names none.
    pub fn bps(&self, at: usize, direction: Direction) -> Result<u64, Error> {
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

    /// Returns the names, for a hint.
    pub fn names(&self) -> Vec<&str> {
        self.nodes.iter().map(|node| node.name.as_str()).collect()
    }
}
