// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds one table of measured delays of a run: `result.json` names the cells, and their folders
//! have the delays as tables (`docs/use/formats.md`, "Delays").

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use scenario::result::{CellResult, FORMAT, RunResult};
use serde::Deserialize;

/// Selects the delays of a cell and a flow.
pub struct Wanted<'a> {
    /// Parameters that the cell must have, `KEY=VALUE`.
    pub cell: &'a [(String, String)],
    pub flow: Option<&'a str>,
    /// Whether its round trips are selected.
    pub round_trip: bool,
}

#[derive(Deserialize)]
struct Named {
    format: String,
}

/// Returns the text of the selected table; `None` if `text` is not the result of a run.
///
/// # Errors
/// When the selection fits no cell or flow, or several, or a file cannot be read.
pub fn table(path: &Path, text: &str, wanted: &Wanted<'_>) -> Result<Option<String>> {
    let is_result = serde_json::from_str::<Named>(text).is_ok_and(|named| named.format == FORMAT);
    if !is_result {
        let given = !wanted.cell.is_empty() || wanted.flow.is_some();
        ensure!(
            !given,
            "--cell and --flow: expected a run's result.json as FILE"
        );
        return Ok(None);
    }
    let run = RunResult::from_json(text)?;
    let cell = cell(&run, wanted.cell)?;
    let folder = path.parent().unwrap_or(Path::new("")).join(&cell.dir);
    let found = tables(&folder, wanted.round_trip)?;
    let names = || found.iter().map(|(name, _)| name.as_str());
    let listed = || names().collect::<Vec<_>>().join(", ");
    let place = match (wanted.flow, found.len()) {
        (_, 0) => bail!("{}: no delays were measured in this cell", folder.display()),
        (None, 1) => Some(0),
        (None, _) => bail!("--flow: expected one of {}", listed()),
        (Some(flow), _) => names().position(|name| name == flow),
    };
    let Some((_, path)) = place.and_then(|place| found.get(place)) else {
        let flow = wanted.flow.unwrap_or_default();
        bail!("--flow {flow:?}: expected one of {}", listed());
    };
    let text =
        fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(Some(text))
}

/// Returns the only cell that has all these parameters.
fn cell<'a>(run: &'a RunResult, pairs: &[(String, String)]) -> Result<&'a CellResult> {
    let mut cells: Vec<&CellResult> = run.cells.iter().collect();
    for (key, value) in pairs {
        cells.retain(|cell| cell.params.get(key) == Some(value));
    }
    match cells[..] {
        [cell] => Ok(cell),
        [] => bail!(
            "--cell {}: no cell of {} has that",
            pairs
                .iter()
                .map(|(key, value)| format!("{key}={value}"))
                .collect::<Vec<_>>()
                .join(","),
            run.scenario
        ),
        [first, ..] => bail!(
            "--cell: {} cells of {} are meant; expected more of what tells one, as in {}",
            cells.len(),
            run.scenario,
            named(first)
        ),
    }
}

/// Returns a cell's parameters in the form that `--cell` takes.
fn named(cell: &CellResult) -> String {
    let pairs = cell
        .params
        .iter()
        .map(|(key, value)| format!("{key}={value}"));
    pairs.collect::<Vec<_>>().join(",")
}

/// Returns the tables in a cell's folder: the name of the flow or stream and the path, in order.
fn tables(folder: &Path, round_trip: bool) -> Result<Vec<(String, PathBuf)>> {
    let end = if round_trip {
        ".round-trips.csv"
    } else {
        ".delays.csv"
    };
    let entries = fs::read_dir(folder);
    let entries = entries.with_context(|| format!("cannot read {}", folder.display()))?;
    let mut found = vec![];
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let stem = name.strip_suffix(end);
        let kind = |stem: &str| {
            let name = stem
                .strip_prefix("flow-")
                .or_else(|| stem.strip_prefix("stream-"));
            name.map(str::to_owned)
        };
        if let Some(name) = stem.and_then(kind) {
            found.push((name, path));
        }
    }
    found.sort();
    Ok(found)
}
