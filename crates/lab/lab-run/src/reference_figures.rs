// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares the figures that a source reports with ours: `experiments/*/paper.toml`.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use metrics::flow::WIRE;
use scenario::result::{CellResult, FlowMetrics, RunResult, TransferRow};
use serde::Deserialize;
use units::display::{number, rate_unit};

use crate::engine_agreement::Both;
use crate::ground_truth::matrix::Wanted;
use crate::params::words;
use crate::verdict::{Index, Judge, Verdict};

/// The contents of `paper.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Paper {
    /// What the source reports, in words.
    pub reports: String,
    /// Why our results may differ.
    pub differs: String,
    /// The experiment's line in the index.
    pub index: Index,
    /// Scenarios, of this or other folders, that are run on both engines.
    pub both: Option<Both>,
    /// What the analysis must find out of the stalls that the scenarios make.
    pub stops: Option<Wanted>,
    /// Numbers of our words that no run measured, each with a calculation from two that are
    /// measured, or with what it is.
    #[serde(default)]
    pub numbers: BTreeMap<String, String>,
    /// The source's figures.
    #[serde(default, rename = "figure")]
    pub figures: Vec<Figure>,
}

/// One number of the source.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// The name by which `[index]` refers to our value.
    pub name: Option<String>,
    /// Name of the scenario, needed where the folder has several.
    pub scenario: Option<String>,
    /// Parameters of the cell.
    #[serde(default)]
    pub when: BTreeMap<String, String>,
    /// Name of the window; the first one by default.
    pub window: Option<String>,
    /// Name of the flow, or `each` for the extreme or mean over all.
    pub flow: String,
    /// A name of [`FlowMetrics::NAMES`] or [`TransferRow::NAMES`].
    pub metric: String,
    /// The source's value, in the metric's unit.
    pub value: f64,
    /// How far our value may be from the source's, in the metric's unit; by default by the
    /// `within_pct` of `[index]`.
    pub within: Option<f64>,
    /// Why our value differs, where it does: what an experiment on the page shows.
    pub because: Option<String>,
    /// How the verdict judges our value.
    pub judge: Judge,
}

/// A number of the source beside ours.
#[derive(Debug, PartialEq)]
pub struct Row {
    /// The name by which `[index]` refers to it.
    pub name: Option<String>,
    /// The cell, in words.
    pub cell: String,
    /// Name of the flow.
    pub flow: String,
    /// Name of the metric.
    pub metric: String,
    /// The source's value.
    pub paper: f64,
    /// Our value; `None` if it was not measured (the short form leaves cells out).
    pub ours: Option<f64>,
    /// How the verdict judges it.
    pub judge: Judge,
    /// How far our value may be from the source's.
    pub tolerance: f64,
    /// Why our value differs, where it does.
    pub because: Option<String>,
}

impl Row {
    /// Returns the verdict on this figure; `None` if it was not measured.
    pub fn verdict(&self) -> Option<Verdict> {
        let verdict = self.judge.of(self.paper, self.ours?, self.tolerance);
        Some(match (verdict, &self.because) {
            (Verdict::Missed, Some(_)) => Verdict::Explained,
            (verdict, _) => verdict,
        })
    }

    /// Returns the verdict in words, with its ground.
    pub fn said(&self) -> String {
        match (self.verdict(), &self.because) {
            (None, _) => String::new(),
            (Some(Verdict::Explained), Some(why)) => format!("explained: {why}"),
            (Some(verdict), _) => verdict.to_string(),
        }
    }
}

impl Paper {
    /// Reads `paper.toml`. Refuses unknown metrics, and an index line without a ground for its
    /// verdict.
    pub fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("cannot read {}", path.display()))?;
        let paper: Self =
            toml::from_str(&text).with_context(|| format!("{} is not valid", path.display()))?;
        for f in &paper.figures {
            let mut known = FlowMetrics::NAMES.iter().chain(TransferRow::NAMES);
            ensure!(
                known.any(|name| *name == f.metric),
                "{}: no metric is called {:?}; there are: {}; of transfers: {}",
                path.display(),
                f.metric,
                FlowMetrics::NAMES.join(", "),
                TransferRow::NAMES.join(", ")
            );
        }
        paper
            .check_index()
            .with_context(|| format!("{} is not valid", path.display()))?;
        Ok(paper)
    }

    fn check_index(&self) -> Result<()> {
        self.index.check(!self.figures.is_empty())?;
        let mut rest = self.index.ours.as_str();
        while let Some((_, after)) = rest.split_once('{') {
            let (name, after) = after.split_once('}').context("[index] `ours`: no \"}\"")?;
            let is_it = |f: &Figure| f.name.as_deref() == Some(name);
            let known = self.figures.iter().filter(|f| is_it(f)).count();
            ensure!(
                known == 1,
                "[index] `ours`: expected one [[figure]] of the name {name:?}, there are {known}"
            );
            rest = after;
        }
        Ok(())
    }

    /// Returns the scenarios that are run on both engines, each with its comparison.
    pub fn on_both_engines(&self) -> impl Iterator<Item = (&Both, &String)> {
        let both = self.both.iter();
        both.flat_map(|both| both.scenarios.iter().map(move |scenario| (both, scenario)))
    }

    /// Returns the source's figures that belong to `result`, each with ours.
    pub fn compare(&self, result: &RunResult) -> Vec<Row> {
        self.figures
            .iter()
            .filter(|f| f.scenario.as_ref().is_none_or(|s| *s == result.scenario))
            .map(|f| Row {
                name: f.name.clone(),
                judge: f.judge,
                tolerance: f.within.unwrap_or_else(|| {
                    f.value.abs() * self.index.within_pct.unwrap_or_default() / 100.0
                }),
                because: f.because.clone(),
                cell: words(&f.when),
                flow: f.flow.clone(),
                metric: f.metric.clone(),
                paper: f.value,
                ours: result.cells.iter().find(|c| f.is_of(c)).and_then(|c| {
                    let transfer = result.transfer(c, &f.flow);
                    let number = transfer.and_then(|row| row.get(&f.metric));
                    number.or_else(|| f.measured(c))
                }),
            })
            .collect()
    }
}

impl Figure {
    fn is_of(&self, cell: &CellResult) -> bool {
        self.when.iter().all(|(k, v)| cell.params.get(k) == Some(v))
    }

    fn measured(&self, cell: &CellResult) -> Option<f64> {
        let window = match &self.window {
            Some(name) => cell.windows.iter().find(|w| w.name == *name)?,
            None => cell.windows.first()?,
        };
        if self.flow != "each" {
            return window
                .flows
                .iter()
                .find(|f| f.name == self.flow)?
                .get(&self.metric);
        }
        // The sum of all flows' frames is not a flow.
        let values: Vec<f64> = window
            .flows
            .iter()
            .filter(|f| !f.name.starts_with(WIRE))
            .filter_map(|f| f.get(&self.metric))
            .collect();
        let fold = |f: fn(f64, f64) -> f64| values.iter().copied().reduce(f);
        if self.metric.contains("_min_") {
            fold(f64::min)
        } else if self.metric.contains("_max_") || self.metric.starts_with("burstiness") {
            fold(f64::max)
        } else {
            // The number of flows is far below 2^52.
            #[allow(clippy::cast_precision_loss)]
            fold(|a, b| a + b).map(|sum| sum / values.len() as f64)
        }
    }
}

/// Returns a metric's value with its unit, for people to read.
pub fn human(metric: &str, value: f64) -> String {
    if metric.ends_with("_bps") {
        let unit = rate_unit(value);
        let scaled = value / unit.size;
        let decimals = if scaled >= 100.0 { 1 } else { 2 };
        return format!("{} {}", number(scaled, decimals), unit.name);
    }
    if metric.starts_with("efficiency") {
        return format!("{} %", number(value * 100.0, 0));
    }
    let is_count = matches!(metric, "dropped" | "frames");
    if is_count && value.fract() != 0.0 {
        return format!("{value:.1}"); // the mean of runs
    }
    if (is_count || metric.ends_with("_bytes")) && value.fract() == 0.0 {
        let unit = if is_count { "" } else { " bytes" };
        return format!("{value:.0}{unit}");
    }
    if metric.ends_with("_us") && value >= 1e3 {
        return format!("{:.3} ms", value / 1e3);
    }
    let unit = match metric.rsplit('_').next() {
        Some("s") => " s",
        Some("mtu") => " MTU",
        Some("bytes") => " bytes",
        Some("us") => " µs",
        Some("pct") => " %",
        _ => "",
    };
    format!("{}{unit}", number(value, 3))
}

#[cfg(test)]
mod tests {
    use super::*;
    use scenario::result::{FlowResult, WindowResult};

    fn flow(name: &str, rate_bps: f64) -> FlowResult {
        let metrics = FlowMetrics {
            rate1_max_bps: Some(rate_bps),
            rate1_mean_bps: Some(rate_bps),
            ..FlowMetrics::default()
        };
        FlowResult {
            name: name.into(),
            metrics,
            ..FlowResult::default()
        }
    }

    #[test]
    fn a_value_has_the_unit_that_people_use() {
        for (metric, value, text) in [
            ("rate_bps", 930e6, "930.0 Mbit/s"),
            ("rate_bps", 7960.0, "7.96 kbit/s"),
            ("efficiency_min", 0.15, "15 %"),
            ("dropped", 5769.0, "5769"),
            ("dropped", 5769.25, "5769.2"),
            ("rto_mean", 28.0, "28.000"),
            ("gap_p50_bytes", 18038.0, "18038 bytes"),
            ("wait_max_us", 52189.0, "52.189 ms"),
            ("wait_max_us", 12.0, "12.000 µs"),
            ("burstiness_mtu", 1.0, "1.000 MTU"),
        ] {
            assert_eq!(human(metric, value), text);
        }
    }

    #[test]
    fn each_means_all_flows_without_their_sum() {
        let cell = CellResult {
            windows: vec![WindowResult {
                name: "all".into(),
                flows: vec![flow("a", 1e6), flow("b", 3e6), flow("wire", 4e9)],
                ..WindowResult::default()
            }],
            ..CellResult::default()
        };
        let figure = |metric: &str| Figure {
            name: None,
            within: None,
            because: None,
            judge: Judge::Near,
            scenario: None,
            when: BTreeMap::new(),
            window: None,
            flow: "each".into(),
            metric: metric.into(),
            value: 0.0,
        };
        assert_eq!(figure("rate1_max_bps").measured(&cell), Some(3e6));
        assert_eq!(figure("rate1_mean_bps").measured(&cell), Some(2e6));
    }
}
