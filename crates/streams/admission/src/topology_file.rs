// SPDX-License-Identifier: MIT OR Apache-2.0
//! The file that describes a network, in TOML: it is read and checked completely.

use serde::Deserialize;
use toml::Spanned;
use toml_faults::{line_of, rejected};
use units::itm::{BUDGET_PCT, PERIOD_NS};
use units::parse::{RATE, TIME, rate_bps, time_ns};

use crate::topology::{Fault, Medium, NodeSpec, SegmentSpec, Topology, is_name};

/// A network and the managers that decide over its segments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopologyFile {
    /// The network.
    pub topology: Topology,
    /// The managers; none: one decides over all segments.
    pub managers: Vec<Manager>,
}

/// A manager.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manager {
    /// Its name.
    pub name: String,
    /// Where the others reach it.
    pub url: String,
}

/// Why a file is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TopologyError {
    /// The text is no TOML, or has an unknown key, or lacks a key.
    #[error("line {line}: {message}")]
    Syntax {
        /// Line of the fault.
        line: usize,
        /// The TOML parser's message.
        message: String,
    },
    /// A value is not valid.
    #[error("line {line}: {owner}`{key}` is {value}, expected {expected}")]
    Value {
        /// Line of the value.
        line: usize,
        /// The segment that has it, with a colon; empty: the file.
        owner: String,
        /// The key.
        key: &'static str,
        /// Its value.
        value: String,
        /// The values that are valid.
        expected: String,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    period: Option<Spanned<String>>,
    slot: Option<Spanned<String>>,
    rt: Option<Spanned<i64>>,
    #[serde(default)]
    host: Vec<FileNode>,
    #[serde(default)]
    router: Vec<FileNode>,
    #[serde(default)]
    manager: Vec<FileManager>,
    #[serde(default)]
    segment: Vec<FileSegment>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileNode {
    name: Spanned<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileManager {
    name: Spanned<String>,
    url: Spanned<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileSegment {
    name: Spanned<String>,
    medium: Spanned<String>,
    rate: Spanned<String>,
    members: Vec<Spanned<String>>,
    period: Option<Spanned<String>>,
    slot: Option<Spanned<String>>,
    mtu: Option<Spanned<i64>>,
    rt: Option<Spanned<i64>>,
    total: Option<Spanned<i64>>,
    #[serde(default)]
    tagged: bool,
    manager: Option<Spanned<String>>,
}

/// Reads and checks a network.
///
/// # Errors
/// The first fault: its line, its key, its value, and what was expected.
pub fn read(text: &str) -> Result<TopologyFile, TopologyError> {
    let text = Text(text);
    let file: File = toml::from_str(text.0).map_err(|error| {
        let (line, message) = rejected(text.0, &error);
        TopologyError::Syntax { line, message }
    })?;
    let managers = text.managers(&file.manager)?;
    let nodes: Vec<_> = [(&file.host, false), (&file.router, true)]
        .into_iter()
        .flat_map(|(nodes, is_router)| nodes.iter().map(move |node| (node, is_router)))
        .collect();
    let specs: Vec<_> = nodes
        .iter()
        .map(|(node, is_router)| NodeSpec {
            name: node.name.get_ref().clone(),
            is_router: *is_router,
        })
        .collect();
    let segments = file.segment.iter();
    let segments: Vec<_> = segments
        .map(|segment| text.segment(&file, segment, &managers))
        .collect::<Result<_, _>>()?;
    if segments.is_empty() {
        return Err(TopologyError::Syntax {
            line: 1,
            message: "no [[segment]], expected at least one".to_owned(),
        });
    }
    let topology = Topology::new(&specs, &segments).map_err(|fault| {
        let offset = if fault.is_segment {
            file.segment.get(fault.index).map(|s| s.start_of(&fault))
        } else {
            nodes
                .get(fault.index)
                .map(|(node, _)| node.name.span().start)
        };
        TopologyError::Value {
            line: line_of(text.0, offset.unwrap_or(0)),
            owner: if fault.is_segment {
                format!("{}: ", fault.owner)
            } else {
                String::new()
            },
            key: fault.key,
            value: fault.value,
            expected: fault.expected,
        }
    })?;
    Ok(TopologyFile { topology, managers })
}

impl FileSegment {
    /// Returns where the value of a fault stands, or the segment's name if it is a default.
    fn start_of(&self, fault: &Fault) -> usize {
        let text = |value: &Option<Spanned<String>>| value.as_ref().map(|v| v.span().start);
        let number = |value: &Option<Spanned<i64>>| value.as_ref().map(|v| v.span().start);
        let given = match fault.key {
            "rate" => Some(self.rate.span().start),
            "period" => text(&self.period),
            "slot" => text(&self.slot),
            "mtu" => number(&self.mtu),
            "rt" => number(&self.rt),
            "total" => number(&self.total),
            "members" => {
                let quoted = |name: &str| format!("\"{name}\"") == fault.value;
                // The last one: of a name given twice the second is the fault.
                let mut members = self.members.iter().rev();
                members
                    .find(|m| quoted(m.get_ref()))
                    .map(|m| m.span().start)
            }
            _ => None,
        };
        given.unwrap_or(self.name.span().start)
    }
}

/// The text of the file, which finds the lines of values.
#[derive(Clone, Copy)]
struct Text<'a>(&'a str);

impl Text<'_> {
    fn wrong<T: ToString>(
        self,
        key: &'static str,
        at: &Spanned<T>,
        expected: &str,
    ) -> TopologyError {
        TopologyError::Value {
            line: line_of(self.0, at.span().start),
            owner: String::new(),
            key,
            value: format!("\"{}\"", at.get_ref().to_string()),
            expected: expected.to_owned(),
        }
    }

    fn value<T>(
        self,
        key: &'static str,
        given: &Spanned<String>,
        read: impl Fn(&str) -> Option<T>,
        expected: &str,
    ) -> Result<T, TopologyError> {
        read(given.get_ref()).ok_or_else(|| self.wrong(key, given, expected))
    }

    /// Reads a number; one that does not fit is refused where its range is checked.
    fn number(self, given: Option<&Spanned<i64>>, default: u32) -> u32 {
        given.map_or(default, |n| u32::try_from(*n.get_ref()).unwrap_or(u32::MAX))
    }

    fn managers(self, given: &[FileManager]) -> Result<Vec<Manager>, TopologyError> {
        let mut managers: Vec<Manager> = Vec::new();
        for manager in given {
            let fresh = |name: &str| {
                let fits = is_name(name) && managers.iter().all(|m| m.name != name);
                fits.then(|| name.to_owned())
            };
            let url = |url: &str| {
                let known = url.starts_with("http://") || url.starts_with("https://");
                known.then(|| url.trim_end_matches('/').to_owned())
            };
            let name = self.value("name", &manager.name, fresh, "a name not in use")?;
            let expected = "a URL such as \"https://10.0.0.1:8646\"";
            let url = self.value("url", &manager.url, url, expected)?;
            managers.push(Manager { name, url });
        }
        Ok(managers)
    }

    fn segment(
        self,
        file: &File,
        segment: &FileSegment,
        managers: &[Manager],
    ) -> Result<SegmentSpec, TopologyError> {
        let medium = |text: &str| {
            let all = [Medium::Shared, Medium::Switched];
            all.into_iter().find(|medium| medium.to_string() == text)
        };
        let expected = "\"shared\" or \"switched\"";
        let medium = self.value("medium", &segment.medium, medium, expected)?;
        let time = |key, given: Option<&Spanned<String>>, default: u64| match given {
            Some(given) => self.value(key, given, time_ns, TIME),
            None => Ok(default),
        };
        let period_ns = time("period", file.period.as_ref(), PERIOD_NS)?;
        let period_ns = time("period", segment.period.as_ref(), period_ns)?;
        let slot_ns = time("slot", file.slot.as_ref(), period_ns / 10)?;
        let slot_ns = time("slot", segment.slot.as_ref(), slot_ns)?;
        let rt_percent = self.number(segment.rt.as_ref().or(file.rt.as_ref()), BUDGET_PCT);
        let total_percent = SegmentSpec::default_total(medium, rt_percent);
        let known = |name: &str| {
            managers
                .iter()
                .any(|m| m.name == name)
                .then(|| name.to_owned())
        };
        let manager = match &segment.manager {
            Some(name) => Some(self.value("manager", name, known, "the name of a manager")?),
            None if managers.is_empty() => None,
            None => {
                let expected = "a `manager`, as the file has managers";
                return Err(self.wrong("name", &segment.name, expected));
            }
        };
        Ok(SegmentSpec {
            name: segment.name.get_ref().clone(),
            medium,
            rate_bps: self.value("rate", &segment.rate, rate_bps, RATE)?,
            period_ns,
            slot_ns,
            mtu_bytes: self.number(segment.mtu.as_ref(), 1500),
            rt_percent,
            total_percent: self.number(segment.total.as_ref(), total_percent),
            is_tagged: segment.tagged,
            members: segment
                .members
                .iter()
                .map(|m| m.get_ref().clone())
                .collect(),
            manager,
        })
    }
}
