// SPDX-License-Identifier: MIT OR Apache-2.0
//! A plan as a person reads it: a line for each change, with names, and what a value was before.

use std::fmt::Write;

use serde::Serialize;
use serde_json::{Map, Value};
use tcpsp::{Change, Flower, Handle, Match, QdiscKind};
use units::display;

use crate::backend::Backend;
use crate::collisions::LaunchReport;
use crate::plan::Plan;
use crate::port::Port;
use crate::queue_limits::{LimitChange, limit_lines};

/// What is said of a device beside its plan.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Beside {
    /// What is known of launch times that classes declare.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub launches: Vec<LaunchReport>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub byte_queue_limits: Vec<LimitChange>,
}

/// Returns a line for each change of a plan, in its order, and for those of byte queue limits.
pub fn changes(plan: &Plan, beside: &Beside, port: &Port) -> Vec<String> {
    let mut lines = limit_lines(&beside.byte_queue_limits, true);
    let mut now = port.clone();
    for change in &plan.changes {
        lines.push(line(change, &now, plan));
        // A plan is tried on the model before it is made; what fails is told there.
        let _ = now.apply(change);
    }
    lines.extend(limit_lines(&beside.byte_queue_limits, false));
    lines
}

/// Returns the lines of a plan for a device that is as `port` says.
pub fn text(plan: &Plan, beside: &Beside, port: &Port) -> String {
    let changes = changes(plan, beside, port);
    let mut out = match changes.len() {
        0 => format!("{}: nothing to change\n", plan.device),
        1 => format!("{}: 1 change\n", plan.device),
        count => format!("{}: {count} changes\n", plan.device),
    };
    for line in changes {
        // Writing to a string does not fail.
        let _ = writeln!(out, "  {line}");
    }
    for report in &beside.launches {
        let _ = writeln!(out, "  {}", launches(report));
    }
    for note in &plan.notes {
        let _ = writeln!(out, "  note: {note}");
    }
    out
}

/// Returns the line about an entry of launch times.
fn launches(report: &LaunchReport) -> String {
    let mut line = format!("launch  class {}", report.class);
    let say = |line: &mut String, text: &str| line.push_str(text);
    if report.entry > 1 {
        say(&mut line, &format!(" ({})", report.entry));
    }
    match &report.collides_with[..] {
        [] => say(&mut line, ": collides with none"),
        all => say(&mut line, &format!(": collides with {}", all.join(", "))),
    }
    match (&report.unbounded, report.late_at_most_ns) {
        (None, Some(late_ns)) => {
            let late = display::time(late_ns as f64 / 1e9);
            say(
                &mut line,
                &format!("; other frames make it {late} late at most"),
            );
        }
        (why, _) => {
            let why = why.as_deref().unwrap_or("not known");
            say(&mut line, &format!("; how late is not bounded: {why}"));
        }
    }
    line
}

/// Returns the line of a change of a device that is as `port` says.
pub fn line(change: &Change, port: &Port, plan: &Plan) -> String {
    let class = |id: &Handle| match plan.names.get(&id.minor()) {
        Some(name) => format!("class {name} ({id})"),
        None => format!("class {id}"),
    };
    let to = |class: &Handle| match (class.minor(), plan.names.get(&class.minor())) {
        (0, _) => "the sender's net_cls.classid".to_owned(),
        (_, Some(name)) => format!("class {name}"),
        (_, None) => format!("class {class}"),
    };
    let had = |id: &Handle| {
        let psp = port.psp(id.qdisc())?;
        psp.classes.get(&id.minor()).map(|class| &class.options)
    };
    let qdisc = |kind: &QdiscKind| match (kind, port.made.backend()) {
        (QdiscKind::Mq, _) => "mq".to_owned(),
        (QdiscKind::Psp(_), Backend::Module) => "psp".to_owned(),
        (QdiscKind::Psp(_), backend) => format!("psp (backend {})", backend.word()),
    };
    match change {
        Change::AddQdisc { parent, kind, .. } => {
            format!("add     qdisc {} at {parent}", qdisc(kind))
        }
        Change::ReplaceQdisc { parent, kind, .. } => {
            format!("replace the qdisc at {parent} by {}", qdisc(kind))
        }
        Change::ChangeQdisc {
            handle, options, ..
        } => {
            let psp = port.psp(*handle);
            let old = psp.map(|psp| by_key(&psp.options, plan));
            let changed = differences(old.as_ref(), &by_key(options, plan));
            let amiss = psp.into_iter().flat_map(|psp| &psp.amiss);
            let all = std::iter::once(changed).chain(amiss.map(|amiss| amiss.what.clone()));
            let mut all: Vec<String> = all.filter(|changed| !changed.is_empty()).collect();
            if all.is_empty() {
                all.push("by what the device is now".to_owned());
            }
            format!("change  qdisc psp {handle} {}", all.join("; "))
        }
        Change::DeleteQdisc { parent, handle } => format!("delete  qdisc {handle} at {parent}"),
        Change::AddClass { id, options } => {
            let given = differences(None, &by_key(options, plan));
            format!("add     {} {given}", class(id))
        }
        Change::ChangeClass { id, options } => {
            let old = had(id).map(|old| by_key(old, plan));
            let changed = differences(old.as_ref(), &by_key(options, plan));
            format!("change  {} {changed}", class(id))
        }
        Change::DeleteClass { id } => format!("delete  {}", class(id)),
        Change::AddFilter {
            matching, class, ..
        } => format!("add     match {} -> {}", phrase(matching), to(class)),
        Change::ReplaceFilter {
            at,
            matching,
            class,
        } => {
            let old = port.psp(at.qdisc).and_then(|psp| {
                let filter = psp.filter_at((at.priority, at.handle))?;
                Some(Handle::new(at.qdisc.major(), filter.class?))
            });
            let old = old.map_or_else(String::new, |old| format!("{} ", to(&old)));
            format!("change  match {}: {old}-> {}", phrase(matching), to(class))
        }
        Change::DeleteFilter { at, kind, .. } => {
            let filter = port
                .psp(at.qdisc)
                .and_then(|psp| psp.filter_at((at.priority, at.handle)));
            match filter.and_then(|filter| filter.matching.as_ref()) {
                Some(matching) => format!("delete  match {}", phrase(matching)),
                None => format!("delete  filter {kind} of priority {}", at.priority),
            }
        }
    }
}

fn phrase(matching: &Match) -> String {
    match matching {
        Match::Flower(flower) => flower_phrase(flower),
        Match::Mark(mark) => format!("mark {mark}"),
        Match::Cgroup => "cgroup".to_owned(),
        Match::Sender(sender) => format!("sender in {}", sender.path),
    }
}

fn flower_phrase(flower: &Flower) -> String {
    let mut parts = Vec::new();
    let mut say = |before: &str, value: Option<String>| {
        parts.extend(value.map(|value| format!("{before}{value}")));
    };
    let is_plain = flower.source.is_none() && flower.destination.is_none();
    say(
        "",
        flower
            .family
            .filter(|_| is_plain)
            .map(|f| format!("{f:?}").to_lowercase()),
    );
    say("", flower.protocol.map(|p| p.word().to_owned()));
    say("from ", flower.source.map(|p| p.to_string()));
    say("from port ", flower.source_ports.map(|p| p.to_string()));
    say("to ", flower.destination.map(|p| p.to_string()));
    say("to port ", flower.destination_ports.map(|p| p.to_string()));
    say("dscp ", flower.dscp.map(|d| d.to_string()));
    say("vlan ", flower.vlan.map(|v| v.to_string()));
    say(
        "in through ",
        flower.interface.as_ref().map(|i| i.name.clone()),
    );
    if parts.is_empty() {
        // The kernel forgets the name of a device that has gone.
        return "of a device that is gone".to_owned();
    }
    parts.join(" ")
}

/// Returns options by the keys that the host's file has for them.
fn by_key<T: Serialize>(options: &T, plan: &Plan) -> Map<String, Value> {
    let mut map = match serde_json::to_value(options) {
        Ok(Value::Object(map)) => map,
        _ => Map::new(),
    };
    if let Some(minor) = map.remove("default_minor") {
        let minor = minor.as_u64().and_then(|minor| u16::try_from(minor).ok());
        let class = minor.filter(|minor| *minor != 0).map(|minor| {
            let name = plan.names.get(&minor).cloned();
            name.unwrap_or_else(|| format!("{minor:x}"))
        });
        map.insert("default".to_owned(), class.into());
    }
    if let Some(rate) = map.remove("line_rate_bps") {
        map.insert("line_bps".to_owned(), rate);
    }
    match map.remove("launch") {
        Some(Value::Object(mut launch)) => {
            for (member, key) in LAUNCH {
                let value = launch.remove(*member).unwrap_or_default();
                map.insert((*key).to_owned(), value);
            }
        }
        Some(none) => {
            map.insert(TXTIME.to_owned(), none);
        }
        None => {}
    }
    map
}

/// The key of a class whose frames have launch times.
const TXTIME: &str = "txtime";
/// Members of `tcpsp::Launch`, and their keys in the host's file. That of the horizon is written
/// so that it comes after `txtime`.
const LAUNCH: &[(&str, &str)] = &[
    ("clock", TXTIME),
    ("horizon_ns", "txtime.horizon_ns"),
    ("is_deadline", "txtime_deadline"),
    ("late_ns", "txtime_late_ns"),
];

/// Returns the options that differ, as `key old -> new`; without old ones those that are given.
fn differences(old: Option<&Map<String, Value>>, new: &Map<String, Value>) -> String {
    let mut keys: Vec<&String> = new.keys().collect();
    keys.sort_by_key(|key| (key.as_str() != "type", key.as_str()));
    let differ = keys.into_iter().filter_map(|key| {
        let value = new.get(key)?;
        let Some(old) = old else {
            let is_given = !value.is_null() && *value != Value::Bool(false);
            return is_given.then(|| format!("{} {}", plain(key), quantity(key, value)));
        };
        let before = old.get(key).unwrap_or(&Value::Null);
        let is_same = before == value || (before.is_null() && *value == Value::Bool(false));
        (!is_same).then(|| {
            let (before, after) = (quantity(key, before), quantity(key, value));
            format!("{} {before} -> {after}", plain(key))
        })
    });
    differ.collect::<Vec<_>>().join(", ")
}

/// Returns a key without its unit, and the horizon of launch times as `horizon`.
fn plain(key: &str) -> &str {
    let units = ["_bps", "_ns", "_bytes", "_frames"];
    let unit = units.iter().find_map(|unit| key.strip_suffix(unit));
    let key = unit.unwrap_or(key);
    key.strip_prefix("txtime.").unwrap_or(key)
}

fn quantity(key: &str, value: &Value) -> String {
    let number = value.as_u64();
    match value {
        Value::Null if key == "line_bps" => "auto".to_owned(),
        Value::Null if key == "align_ns" => "off".to_owned(),
        Value::Null => "none".to_owned(),
        Value::String(word) => word.clone(),
        Value::Object(map) => {
            let parts = map.iter().map(|(unit, value)| match unit.as_str() {
                "percent" => format!("{value}%"),
                unit => format!("{value} {unit}"),
            });
            parts.collect::<Vec<_>>().join(" ")
        }
        _ => match number {
            Some(number) if key.ends_with("_bps") => display::rate(number as f64),
            Some(number) if key.ends_with("_ns") => display::time(number as f64 / 1e9),
            _ => value.to_string(),
        },
    }
}
