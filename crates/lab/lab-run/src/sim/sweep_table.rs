// SPDX-License-Identifier: MIT OR Apache-2.0
//! The rows of a sweep: written down as they are found, and then as one table.
//!
//! Numbers are kept as text from the moment they are known. A table is therefore the same to the
//! byte whether its rows were just found, read again after an interruption, or merged.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use indexmap::{IndexMap, IndexSet};
use scenario::result::{FlowMetrics, WindowResult};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::measure_cell::write;

/// File of the rows, with a line for each finished piece of work.
const ROWS: &str = "rows.jsonl";

/// The result of one piece of work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Number of the piece of work.
    pub number: usize,
    /// Seed of the run.
    pub seed: u64,
    /// Parameters of the cell.
    pub params: IndexMap<String, String>,
    /// One row for each window and flow.
    pub rows: Vec<Row>,
}

/// The values of one flow in one window.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    window: String,
    flow: String,
    /// Metrics and reports, numbers as text.
    values: IndexMap<String, String>,
}

/// Refuses parameters that have the name of a column of the table.
pub fn check(scenario: &scenario::Scenario) -> Result<()> {
    let own = ["number", "seed", "window", "flow"];
    for name in scenario.cells.iter().flat_map(|cell| cell.params.keys()) {
        let mut columns = own.iter().chain(FlowMetrics::NAMES);
        ensure!(
            !columns.any(|column| column == name),
            "{}: the table of a sweep has a column `{name}`; expected another name for the \
             parameter",
            scenario.name
        );
    }
    Ok(())
}

/// Returns the rows of a cell: its metrics, then the reports of the flows' ends.
pub fn rows(windows: &[WindowResult], reports: &BTreeMap<String, Value>) -> Vec<Row> {
    let mut rows = vec![];
    for window in windows {
        for flow in &window.flows {
            let metric = |name: &&str| {
                let value = flow.metrics.get(name)?;
                Some(((*name).to_owned(), format!("{value}")))
            };
            let mut values: IndexMap<_, _> = FlowMetrics::NAMES.iter().filter_map(metric).collect();
            let report = reports.get(&flow.name).and_then(Value::as_object);
            for (key, value) in report.into_iter().flatten() {
                if value.is_number() {
                    values.insert(format!("report.{key}"), value.to_string());
                }
            }
            rows.push(Row {
                window: window.name.clone(),
                flow: flow.name.clone(),
                values,
            });
        }
    }
    rows
}

/// The entries by number, and the file to which more are written.
pub struct Journal {
    file: File,
    pub entries: BTreeMap<usize, Entry>,
}

impl Journal {
    /// Opens a folder's journal. An unfinished last line is removed: its piece of work was
    /// interrupted.
    pub fn open(folder: &Path) -> Result<Self> {
        let path = folder.join(ROWS);
        let entries = read(folder)?;
        // The file is rewritten without the unfinished line.
        let next = folder.join(format!("{ROWS}.new"));
        let mut text = String::new();
        for entry in entries.values() {
            text += &serde_json::to_string(entry)?;
            text.push('\n');
        }
        write(&next, text.as_bytes())?;
        fs::rename(&next, &path).with_context(|| format!("cannot write {}", path.display()))?;
        let file = OpenOptions::new()
            .append(true)
            .open(&path)
            .with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Self { file, entries })
    }

    /// Writes an entry at once.
    pub fn add(&mut self, entry: Entry) -> Result<()> {
        let mut line = serde_json::to_string(&entry)?;
        line.push('\n');
        self.file.write_all(line.as_bytes())?;
        self.entries.insert(entry.number, entry);
        Ok(())
    }
}

/// Reads the entries of a folder; none if nothing was written yet.
pub fn read(folder: &Path) -> Result<BTreeMap<usize, Entry>> {
    let path = folder.join(ROWS);
    let mut entries = BTreeMap::new();
    if !path.exists() {
        return Ok(entries);
    }
    let bytes = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
    // Whatever follows the last end of line was cut off.
    let whole = bytes.iter().rposition(|b| *b == b'\n').map_or(0, |i| i + 1);
    for (number, line) in (1..).zip(bytes[..whole].split(|b| *b == b'\n')) {
        if line.is_empty() {
            continue;
        }
        let entry: Entry = serde_json::from_slice(line)
            .with_context(|| format!("{}:{number} is damaged", path.display()))?;
        let known = entries.insert(entry.number, entry);
        ensure!(
            known.is_none(),
            "{}:{number}: that work is there twice",
            path.display()
        );
    }
    Ok(entries)
}

/// Writes `table.csv` and `table.json`.
pub fn write_table(folder: &Path, entries: &BTreeMap<usize, Entry>) -> Result<()> {
    let (csv, json) = tables(entries)?;
    write(&folder.join("table.csv"), &csv)?;
    write(&folder.join("table.json"), json.as_bytes())
}

/// Returns the rows as CSV (RFC 4180) and as JSON.
fn tables(entries: &BTreeMap<usize, Entry>) -> Result<(Vec<u8>, String)> {
    let mut params = IndexSet::new();
    let mut found = BTreeSet::new();
    for entry in entries.values() {
        params.extend(entry.params.keys());
        for row in &entry.rows {
            found.extend(row.values.keys().map(String::as_str));
        }
    }
    // Metrics come in the order of their definition, then reports by name.
    let metrics = FlowMetrics::NAMES
        .iter()
        .filter(|name| found.contains(**name));
    let reports = found.iter().filter(|name| name.starts_with("report."));
    let values: Vec<&str> = metrics.copied().chain(reports.copied()).collect();
    let mut csv = csv::Writer::from_writer(vec![]);
    let mut json = String::from("[");
    let texts = params.iter().map(|name| name.as_str());
    let header = ["number", "seed"].into_iter().chain(texts);
    let header = header.chain(["window", "flow"]);
    csv.write_record(header.chain(values.iter().copied()))?;
    for entry in entries.values() {
        for row in &entry.rows {
            csv.write_field(entry.number.to_string())?;
            csv.write_field(entry.seed.to_string())?;
            json += if json.len() > 1 { ",\n" } else { "\n" };
            json += &format!("{{\"number\": {}, \"seed\": {}", entry.number, entry.seed);
            let param = |name: &&String| entry.params.get(*name).map_or("", String::as_str);
            let texts = params.iter().map(|name| (name.as_str(), param(name)));
            let texts = texts.chain([("window", &*row.window), ("flow", &*row.flow)]);
            for (name, text) in texts {
                csv.write_field(text)?;
                let (name, text) = (serde_json::to_string(name)?, serde_json::to_string(text)?);
                json += &format!(", {name}: {text}");
            }
            for name in &values {
                let value = row.values.get(*name);
                csv.write_field(value.map_or("", String::as_str))?;
                if let Some(value) = value {
                    json += &format!(", {}: {value}", serde_json::to_string(name)?);
                }
            }
            // Ends the CSV record.
            csv.write_record(None::<&[u8]>)?;
            json.push('}');
        }
    }
    json += "\n]\n";
    let csv = csv.into_inner().context("cannot write the table")?;
    Ok((csv, json))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names and values have commas, quotes, ends of line, or are empty.
    #[test]
    fn fields_are_quoted_where_they_must_be() {
        let entry = |number, params: &[(&str, &str)], flow: &str, goodput: Option<&str>| {
            let owned = |(name, text): &(&str, &str)| ((*name).to_owned(), (*text).to_owned());
            let values = goodput.map(|text| ("goodput_bps".to_owned(), text.to_owned()));
            let entry = Entry {
                number,
                seed: 7,
                params: params.iter().map(owned).collect(),
                rows: vec![Row {
                    window: "all".to_owned(),
                    flow: flow.to_owned(),
                    values: values.into_iter().collect(),
                }],
            };
            (number, entry)
        };
        let entries = BTreeMap::from([
            entry(0, &[("a,b", "x \"y\"")], "two\nlines", Some("12.5")),
            entry(1, &[("c", "#1")], "", None),
        ]);
        let (csv, json) = tables(&entries).unwrap();
        assert_eq!(
            String::from_utf8(csv).unwrap(),
            "number,seed,\"a,b\",c,window,flow,goodput_bps\n\
             0,7,\"x \"\"y\"\"\",,all,\"two\nlines\",12.5\n\
             1,7,,#1,all,,\n"
        );
        assert_eq!(
            json.lines().nth(1),
            Some(
                r#"{"number": 0, "seed": 7, "a,b": "x \"y\"", "c": "", "window": "all", "flow": "two\nlines", "goodput_bps": 12.5},"#
            )
        );
    }
}
