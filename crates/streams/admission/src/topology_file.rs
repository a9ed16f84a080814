// SPDX-License-Identifier: MIT OR Apache-2.0
//! The file that describes a network, in TOML: it is read and checked completely.

use toml_reader::{Document, Error, Key, Problem, Section, Taken, key};
use units::itm::{BUDGET_PCT, PERIOD_NS};
use units::parse::{RATE, TIME, rate_bps, time_ns};

use crate::topology::{Fault, Medium, NodeSpec, SegmentSpec, Topology, is_name};

/// A network and the managers that decide over its segments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopologyFile {
    pub topology: Topology,
    /// The managers; none: one decides over all segments.
    pub managers: Vec<Manager>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manager {
    pub name: String,
    /// Where the others reach it.
    pub url: String,
}

const NAME: &str = "a name";
const NRT: &str = "0 to 4294967295 bytes";
const FILE: &[Key] = &[
    key("period", TIME),
    key("slot", TIME),
    key("rt", "1 to 100 per cent"),
    key("nrt", NRT),
    key("host", "an array of tables, [[host]]"),
    key("router", "an array of tables, [[router]]"),
    key("manager", "an array of tables, [[manager]]"),
    key("segment", "at least one [[segment]]"),
];
const NODE: &[Key] = &[key("name", NAME)];
const MANAGER: &[Key] = &[
    key("name", "a name not in use"),
    key("url", "a URL such as \"https://10.0.0.1:8646\""),
];
const SEGMENT: &[Key] = &[
    key("name", NAME),
    key("medium", "\"shared\" or \"switched\""),
    key("rate", RATE),
    key("members", "a list of names"),
    key("period", TIME),
    key("slot", TIME),
    key("mtu", "68 to 65535 bytes"),
    key("rt", "1 to 100 per cent"),
    key("total", "rt to 100 per cent"),
    key("nrt", NRT),
    key("tagged", "true or false"),
    key("manager", "the name of a manager"),
];

/// Reads and checks a network.
///
/// # Errors
/// The first fault: its line, its key, its value, and what was expected.
pub fn read(text: &str) -> Result<TopologyFile, Error> {
    let document = Document::parse("", text)?;
    let file = document.top("the file", FILE).check()?;
    let managers = managers(file)?;
    let hosts = file.tables("host", "[[host]]", NODE)?;
    let routers = file.tables("router", "[[router]]", NODE)?;
    let (mut nodes, mut specs) = (Vec::new(), Vec::new());
    for (sections, is_router) in [(hosts, false), (routers, true)] {
        for section in sections {
            let name = section.require("name")?;
            nodes.push(name);
            specs.push(NodeSpec {
                name: name.text()?.to_owned(),
                is_router,
            });
        }
    }
    let sections = file.tables("segment", "[[segment]]", SEGMENT)?;
    if sections.is_empty() {
        return Err(file.lacks("segment", "at least one [[segment]]"));
    }
    let defaults = Defaults {
        period_ns: file.parsed("period", time_ns)?,
        slot_ns: file.parsed("slot", time_ns)?,
        rt_percent: file.number("rt", 0..=u32::MAX)?,
        nrt_bytes: file.number("nrt", 0..=u32::MAX)?,
    };
    let segments = sections.iter();
    let segments: Vec<_> = segments
        .map(|section| segment(&defaults, *section, &managers))
        .collect::<Result<_, _>>()?;
    let topology = Topology::new(&specs, &segments).map_err(|fault| {
        let segment = sections.get(fault.index).filter(|_| fault.is_segment);
        match (segment, nodes.get(fault.index)) {
            (Some(segment), _) => misfit(*segment, fault),
            (None, Some(name)) => name.fault_of(&fault.value, &fault.expected),
            (None, None) => file.lacks(fault.key, &fault.expected),
        }
    })?;
    Ok(TopologyFile { topology, managers })
}

/// Returns the error about a segment at the value of the fault, or at the segment's name if the
/// value is a default.
fn misfit(segment: Section<'_>, fault: Fault) -> Error {
    let mut at = segment.get(fault.key).or_else(|| segment.get("name"));
    if let ("members", Some(members)) = (fault.key, at) {
        // The last one: of a name given twice the second is the fault.
        let mut all = members.elements().into_iter().rev();
        let member = all.find(|member| member.described() == fault.value);
        at = member.or_else(|| segment.get("name"));
    }
    let problem = Problem::Misfit {
        owner: fault.owner,
        key: fault.key.to_owned(),
        value: fault.value,
        expected: fault.expected,
    };
    match at {
        Some(item) => item.error(problem),
        None => segment.error(problem),
    }
}

fn managers(file: Section<'_>) -> Result<Vec<Manager>, Error> {
    let mut managers = Vec::new();
    let mut names = Taken::default();
    for section in file.tables("manager", "[[manager]]", MANAGER)? {
        let item = section.require("name")?;
        let name = item.parsed(|name| is_name(name).then(|| name.to_owned()))?;
        names.insert(item, name.clone(), "a name")?;
        let url = section.require("url")?.parsed(|url| {
            let known = url.starts_with("http://") || url.starts_with("https://");
            known.then(|| url.trim_end_matches('/').to_owned())
        })?;
        managers.push(Manager { name, url });
    }
    Ok(managers)
}

/// What the file gives for segments that do not say it.
struct Defaults {
    period_ns: Option<u64>,
    slot_ns: Option<u64>,
    rt_percent: Option<u32>,
    nrt_bytes: Option<u32>,
}

/// Reads a segment. A number beyond its range is refused with the whole network.
fn segment(
    defaults: &Defaults,
    section: Section<'_>,
    managers: &[Manager],
) -> Result<SegmentSpec, Error> {
    let any = 0..=u32::MAX;
    let name = section.require("name")?;
    let medium = section.require("medium")?.parsed(|text| {
        let mut all = [Medium::Shared, Medium::Switched].into_iter();
        all.find(|medium| medium.to_string() == text)
    })?;
    let time = |key, default| -> Result<Option<u64>, Error> {
        Ok(section.parsed(key, time_ns)?.or(default))
    };
    let period_ns = time("period", defaults.period_ns)?.unwrap_or(PERIOD_NS);
    let slot_ns = time("slot", defaults.slot_ns)?.unwrap_or(period_ns / 10);
    let rt_percent = section.number("rt", any.clone())?.or(defaults.rt_percent);
    let rt_percent = rt_percent.unwrap_or(BUDGET_PCT);
    let total_percent = section.number("total", any.clone())?;
    let nrt_bytes = section.number("nrt", any.clone())?.or(defaults.nrt_bytes);
    let mtu_bytes = section.number("mtu", any)?.unwrap_or(1500);
    let is_tagged = section.boolean("tagged")?.unwrap_or(false);
    let known = |name: &str| {
        let mut names = managers.iter().map(|manager| &manager.name);
        names.find(|known| *known == name).cloned()
    };
    let manager = section.parsed("manager", known)?;
    if manager.is_none() && !managers.is_empty() {
        return Err(name.fault("a `manager`, as the file has managers"));
    }
    let members = section.require("members")?.list()?;
    Ok(SegmentSpec {
        name: name.text()?.to_owned(),
        medium,
        rate_bps: section.require("rate")?.parsed(rate_bps)?,
        period_ns,
        slot_ns,
        mtu_bytes,
        rt_percent,
        total_percent: total_percent
            .unwrap_or_else(|| SegmentSpec::default_total(medium, rt_percent)),
        nrt_bytes: nrt_bytes
            .map_or_else(|| SegmentSpec::default_nrt(mtu_bytes, is_tagged), u64::from),
        is_tagged,
        members: members
            .iter()
            .map(|member| member.text().map(str::to_owned))
            .collect::<Result<_, _>>()?,
        manager,
    })
}
