// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the reports of the guest's programs on a cell.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use scenario::topology::leaving;
use scenario::{Cell, FlowKind, Window};
use serde_json::{Value, json};

use crate::error::{At, Error};

/// Most `tc` lines with which a cell's classes are still listed: 100,000 classes would give 100 MB
/// that nobody reads.
const LISTED_MAX: usize = 20_000;

/// Returns the kinds of objects that `tc` lists for each device after a cell.
pub(crate) fn tc_lists(cell: &Cell) -> &'static [&'static str] {
    if cell.tc.len() > LISTED_MAX {
        &["qdisc"]
    } else {
        &["qdisc", "class"]
    }
}

/// Returns the output of `tc -s -j` for every device, by host: its qdiscs, then its classes.
pub(crate) fn tc(cell: &Cell, dir: &Path) -> Result<BTreeMap<String, Value>, Error> {
    let mut hosts = BTreeMap::new();
    for (index, host) in cell.hosts.iter().enumerate() {
        let mut all = Vec::new();
        for hop in leaving(&cell.cables, index) {
            let device = &cell.cables[hop.cable].ends[hop.end.index()].name;
            for what in tc_lists(cell) {
                let path = dir.join(format!("tc.{}.{device}.{what}", host.name));
                let text = fs::read_to_string(&path).at("read", &path)?;
                all.extend(tc_objects(&text, device));
            }
        }
        hosts.insert(host.name.clone(), Value::Array(all));
    }
    Ok(hosts)
}

/// Returns the objects of one `tc` output, each with its device. Some versions of some qdiscs print
/// invalid JSON: such output stays text.
fn tc_objects(text: &str, device: &str) -> Vec<Value> {
    if text.trim().is_empty() {
        return Vec::new();
    }
    let Ok(Value::Array(mut objects)) = serde_json::from_str(text) else {
        return vec![json!({ "dev": device, "text": text })];
    };
    objects.retain(|object| object.as_object().is_some_and(|fields| !fields.is_empty()));
    for object in objects.iter_mut().filter_map(Value::as_object_mut) {
        object.entry("dev").or_insert_with(|| device.into());
    }
    objects
}

/// Returns the sender's report by flow, together with the receiver's counts.
pub(crate) fn flows(cell: &Cell, dir: &Path) -> Result<BTreeMap<String, Value>, Error> {
    let mut sent = BTreeMap::new();
    for host in &cell.hosts {
        for report in lines(&dir.join(format!("send.{}", host.name)))? {
            if let Some(name) = report.get("name").and_then(Value::as_str) {
                sent.insert(name.to_owned(), report);
            }
        }
    }
    let received = received(dir)?;
    let mut reports = BTreeMap::new();
    for flow in &cell.flows {
        let report = match flow.kind {
            FlowKind::Udp { .. } | FlowKind::Tcp { .. } => sent.remove(&flow.name),
            FlowKind::Pktgen { .. } => Some(json!({})),
        };
        let Some(mut report) = report else { continue };
        let host = &cell.hosts[flow.to].name;
        let receiver = received.get(&(flow.kind.protocol(), host.clone(), flow.port));
        if let (Some(fields), Some(receiver)) = (report.as_object_mut(), receiver) {
            fields.insert("receiver".into(), receiver.clone());
        }
        reports.insert(flow.name.clone(), report);
    }
    Ok(reports)
}

/// Returns the counts of `psp-recv`, by protocol, host and port.
fn received(dir: &Path) -> Result<BTreeMap<(&'static str, String, u16), Value>, Error> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(dir).at("read", dir)? {
        let entry = entry.at("read", dir)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let kinds = [("recv.", "udp"), ("server.", "tcp")];
        let found = kinds
            .iter()
            .find_map(|(prefix, protocol)| Some((*protocol, name.strip_prefix(prefix)?)));
        let Some((protocol, rest)) = found else {
            continue;
        };
        let Some((host, _)) = rest.rsplit_once('.') else {
            continue;
        };
        for report in lines(&entry.path())? {
            let port = report.get("port").and_then(Value::as_u64);
            if let Some(port) = port.and_then(|port| u16::try_from(port).ok()) {
                all.insert((protocol, host.to_owned(), port), report);
            }
        }
    }
    Ok(all)
}

/// Parses one JSON object a line; a missing file has none.
fn lines(path: &Path) -> Result<Vec<Value>, Error> {
    if path.exists() {
        let text = fs::read_to_string(path).at("read", path)?;
        Ok(text
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect())
    } else {
        Ok(Vec::new())
    }
}

/// Returns the time for which the processors were not idle, in each window, all together.
pub(crate) fn busy(cell: &Cell, dir: &Path) -> Result<Vec<u64>, Error> {
    let at = |ns: u64| -> Result<u64, Error> {
        let path = dir.join(format!("idle.{ns}"));
        let text = fs::read_to_string(&path).at("read", &path)?;
        let value = |key| -> u64 {
            let mut lines = text.lines().filter_map(|line| line.split_once(' '));
            let found = lines.find(|(found, _)| *found == key);
            found.and_then(|(_, value)| value.parse().ok()).unwrap_or(0)
        };
        let all_ns = value("now_ns").saturating_mul(value("cpus").max(1));
        Ok(all_ns.saturating_sub(value("idle_ns")))
    };
    let of_window = |w: &Window| Ok(at(w.to_ns)?.saturating_sub(at(w.from_ns)?));
    cell.windows.iter().map(of_window).collect()
}

/// Returns an error if a record has gaps.
pub(crate) fn check_counters(cell: &Cell, dir: &Path) -> Result<(), String> {
    for cable in &cell.cables {
        let path = dir.join(format!("counters.{}", cable.name));
        let text =
            fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        for line in text.lines() {
            let (key, value) = line.split_once(' ').unwrap_or((line, ""));
            let lost = key.ends_with(".records_lost") || key.ends_with(".flows_lost");
            if lost && value.trim() != "0" {
                return Err(format!(
                    "the record of cable {} is incomplete ({key} is {value}): \
                     shorten the cell, or give the guest more memory",
                    cable.name
                ));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tc_output_valid_empty_and_broken() {
        let objects = tc_objects("[{\"class\":\"htb\",\"handle\":\"1:1\"},{}]", "eth0");
        assert_eq!(
            objects,
            [json!({"class": "htb", "handle": "1:1", "dev": "eth0"})]
        );
        assert_eq!(tc_objects("[]", "eth0"), [] as [Value; 0]);
        assert_eq!(tc_objects("\n", "eth0"), [] as [Value; 0]);
        let broken = tc_objects("[{\"kind\": }]", "eth0");
        assert_eq!(broken, [json!({"dev": "eth0", "text": "[{\"kind\": }]"})]);
    }
}
