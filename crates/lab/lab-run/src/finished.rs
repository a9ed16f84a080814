// SPDX-License-Identifier: MIT OR Apache-2.0
//! A finished run, whatever its engine: writes its measurements into a folder of results.

use std::path::PathBuf;

use anyhow::Result;
use metrics::curves::Curves;
use scenario::Scenario;
use scenario::result::{CellResult, Engine, FORMAT, RunResult, TransferRow};
use serde::Serialize;

use crate::results_dir::ResultsDir;

/// File name of a run's result.
const RESULT: &str = "result.json";

pub struct Finished {
    /// Folder of the run's files.
    pub out: PathBuf,
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
            let dir = out.folder(&cell.dir)?;
            for plot in report::cell_plots(drawn) {
                let path = dir.join(plot.name);
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
}
