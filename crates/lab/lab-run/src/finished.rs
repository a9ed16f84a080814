// SPDX-License-Identifier: MIT OR Apache-2.0
//! A finished run, whatever its engine: writes its measurements into a folder of results, and reads
//! them back.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use metrics::curves::Curves;
use scenario::Scenario;
use scenario::result::{CellResult, Engine, FORMAT, RunResult, TransferRow};
use serde::Serialize;

use crate::ground_truth::judge::judge_again;
use crate::measure_cell::write;
use crate::results_dir::ResultsDir;

/// File name of a run's result.
const RESULT: &str = "result.json";

/// A finished run.
pub struct Finished {
    /// Folder of the run's files.
    pub out: PathBuf,
    /// The measured result.
    pub result: RunResult,
    /// Curves for the plots, by cell.
    pub curves: Vec<Curves>,
    /// Plots that only this engine can make.
    pub plots: Vec<draw::Plot>,
}

impl Finished {
    /// Writes the plots of each cell and of all cells, the report, the result, and the engine's own
    /// `stats` as `run.json`.
    pub fn write(
        scenario: &Scenario,
        (engine, kernel): (Engine, String),
        (cells, table): (Vec<(CellResult, Curves)>, Vec<TransferRow>),
        out: &ResultsDir,
        stats: &impl Serialize,
    ) -> Result<Self> {
        let (cells, curves): (Vec<_>, Vec<_>) = cells.into_iter().unzip();
        let result = RunResult {
            format: FORMAT.into(),
            scenario: scenario.name.clone(),
            title: scenario.title.clone(),
            source: scenario.source.clone(),
            engine,
            kernel,
            seed: scenario.seed,
            ok: cells.iter().flat_map(|c| &c.bounds).all(|b| b.ok),
            table,
            cells,
        };
        for (cell, drawn) in result.cells.iter().zip(&curves) {
            for plot in report::cell_plots(drawn) {
                let path = out.path().join(&cell.dir).join(plot.name);
                out.write(&path, plot.svg.as_bytes())?;
            }
        }
        let drawn: Vec<_> = curves.iter().cloned().map(Some).collect();
        for plot in report::run_plots(&result, &drawn) {
            out.write(&out.path().join(plot.name), plot.svg.as_bytes())?;
        }
        let page = report::html(&result, &drawn);
        out.write(&out.path().join("report.html"), page.as_bytes())?;
        out.write(&out.path().join(RESULT), result.to_json()?.as_bytes())?;
        let stats = serde_json::to_string_pretty(stats)?;
        out.write(&out.path().join("run.json"), stats.as_bytes())?;
        Ok(Self {
            out: out.path().to_path_buf(),
            result,
            curves,
            plots: vec![],
        })
    }

    /// Reads the results of an earlier run of the same scenario, if they are newer than its file
    /// and have the same cells, seed and kernel. The stalls are judged again from the captures.
    pub fn read(out: &Path, scenario: &Scenario, file: &Path) -> Result<Option<Self>> {
        let path = out.join(RESULT);
        let changed = |path: &Path| {
            let known = fs::metadata(path).and_then(|m| m.modified());
            known.with_context(|| format!("cannot read {}", path.display()))
        };
        let text =
            fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let mut result = RunResult::from_json(&text)
            .with_context(|| format!("{} is damaged", path.display()))?;
        let params = result.cells.iter().map(|cell| &cell.params);
        let is_same = result.seed == scenario.seed
            && scenario.kernel.is_of(&result.kernel)
            && params.eq(scenario.cells.iter().map(|cell| &cell.params));
        if !is_same || changed(file)? > changed(&path)? {
            return Ok(None);
        }
        if !judge_again(scenario, out, &mut result)? {
            return Ok(None);
        }
        let judged = result.to_json()?;
        if judged != text {
            write(&path, judged.as_bytes())?;
        }
        let mut curves = vec![];
        for cell in &result.cells {
            let path = out.join(&cell.dir).join("curves.json");
            let text = fs::read_to_string(&path)
                .with_context(|| format!("cannot read {}", path.display()))?;
            let read = serde_json::from_str(&text);
            curves.push(read.with_context(|| format!("{} is damaged", path.display()))?);
        }
        Ok(Some(Self {
            out: out.to_path_buf(),
            result,
            curves,
            plots: vec![],
        }))
    }
}
