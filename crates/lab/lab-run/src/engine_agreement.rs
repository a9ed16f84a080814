// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares scenarios on both engines: where the laboratory and the simulator agree, where they
//! differ, and why.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::AddAssign;

use scenario::Scenario;
use scenario::result::{CellResult, RunResult};
use serde::Deserialize;

use crate::params::words;
use crate::sim::support::can_run;

/// Stands in the row of a cell that differs for no known reason.
const NOT_EXPLAINED: &str = "not explained";

/// The table `[both]` of `paper.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Both {
    /// Names of scenarios; they may be in any experiment's folder.
    pub scenarios: Vec<String>,
    /// The flow that is compared.
    pub flow: String,
    /// The window of the goodput; dropped frames are those of the first window.
    pub window: String,
    /// Largest difference of two goodputs that agree, per cent of the larger one.
    pub within_pct: f64,
    /// Reasons why cells differ; the first one that fits a cell is its reason.
    #[serde(default)]
    pub why: Vec<Why>,
}

/// A reason why cells differ.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Why {
    /// Name of the scenario; the reason fits any scenario by default.
    pub scenario: Option<String>,
    /// Values that the cell's parameters must have.
    #[serde(default)]
    pub when: BTreeMap<String, Vec<String>>,
    /// The reason, in words.
    pub because: String,
    /// Whether the reason is a guess: no experiment shows it.
    #[serde(default)]
    pub is_guess: bool,
}

/// How many cells of both engines agree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Agreement {
    /// Number of cells that both engines can run.
    pub compared: usize,
    /// Number of cells that agree.
    pub agree: usize,
    /// Number of cells that differ for no known reason, or for a guess.
    pub unexplained: usize,
}

impl AddAssign for Agreement {
    fn add_assign(&mut self, other: Self) {
        self.compared += other.compared;
        self.agree += other.agree;
        self.unexplained += other.unexplained;
    }
}

/// Returns the part of a scenario that the simulator can run: the cells that it does not refuse.
pub fn simulated(scenario: &Scenario) -> Scenario {
    let mut scenario = scenario.clone();
    scenario.cells.retain(can_run);
    scenario
}

impl Both {
    /// Compares one scenario's cells. Returns how many agree, and a table with every cell of the
    /// laboratory's run and the simulator's cells where there are any.
    pub fn compare(&self, lab: &RunResult, sim: &RunResult) -> (Agreement, String) {
        let mut text = String::from(
            "\n| cell | goodput, laboratory | simulator | difference | dropped, laboratory | \
             simulator | |\n|---|---:|---:|---:|---:|---:|---|\n",
        );
        let mut found = Agreement::default();
        let varying = report::varying(lab);
        for cell in &lab.cells {
            let other = sim.cells.iter().find(|c| c.params == cell.params);
            let (ours, theirs) = (self.numbers(cell), other.and_then(|c| self.numbers(c)));
            let is_varying = |name: &str| varying.iter().any(|v| v.name == name);
            let shown = cell.params.iter().filter(|(name, _)| is_varying(name));
            let name = words(&shown.map(|(k, v)| (k.clone(), v.clone())).collect());
            let (Some((lab_bps, lab_drops)), Some((sim_bps, sim_drops))) = (ours, theirs) else {
                let bps = ours.map_or("–".into(), |(bps, _)| format!("{:.1}", bps / 1e6));
                let drops = ours.map_or("–".into(), |(_, drops)| format!("{drops:.0}"));
                let _ = writeln!(text, "| {name} | {bps} | not modelled | | {drops} | | |");
                continue;
            };
            found.compared += 1;
            let difference_pct = (sim_bps - lab_bps) / sim_bps.max(lab_bps).max(1.0) * 100.0;
            let is_alike = difference_pct.abs() <= self.within_pct;
            let why = self.why(lab, cell);
            let said = match (is_alike, why) {
                (true, _) => "agree",
                (false, Some(why)) => &why.because,
                (false, None) => NOT_EXPLAINED,
            };
            let is_shown = why.is_some_and(|why| !why.is_guess);
            found.agree += usize::from(is_alike);
            found.unexplained += usize::from(!is_alike && !is_shown);
            let _ = writeln!(
                text,
                "| {name} | {:.1} | {:.1} | {difference_pct:+.1} % | {lab_drops:.0} | \
                 {sim_drops:.0} | {said} |",
                lab_bps / 1e6,
                sim_bps / 1e6,
            );
        }
        let Agreement {
            compared, agree, ..
        } = found;
        let text = format!(
            "\n{agree} of {compared} cells agree within {} % (goodput in Mbit/s, window \
             \u{201c}{}\u{201d}; frames dropped from the start).\n{text}",
            self.within_pct, self.window
        );
        (found, text)
    }

    /// Returns the goodput in `window`, and the frames dropped in the first window.
    fn numbers(&self, cell: &CellResult) -> Option<(f64, f64)> {
        let of = |window: &scenario::result::WindowResult, metric: &str| {
            let flow = window.flows.iter().find(|flow| flow.name == self.flow);
            flow.and_then(|flow| flow.metrics.get(metric))
        };
        let window = cell.windows.iter().find(|w| w.name == self.window)?;
        Some((
            of(window, "goodput_bps")?,
            of(cell.windows.first()?, "dropped")?,
        ))
    }

    fn why(&self, run: &RunResult, cell: &CellResult) -> Option<&Why> {
        let fits = |why: &&Why| {
            let is_of = |(name, values): (&String, &Vec<String>)| {
                cell.params.get(name).is_some_and(|v| values.contains(v))
            };
            why.scenario.as_ref().is_none_or(|s| *s == run.scenario) && why.when.iter().all(is_of)
        };
        self.why.iter().find(fits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use scenario::result::{FlowMetrics, FlowResult, WindowResult};

    fn run(cells: &[(&str, f64)]) -> RunResult {
        let cell = |(shaper, goodput): &(&str, f64)| CellResult {
            params: [("rate", "500mbit"), ("shaper", *shaper)]
                .map(|(k, v)| (k.to_owned(), v.to_owned()))
                .into(),
            windows: vec![WindowResult {
                name: "all".into(),
                flows: vec![FlowResult {
                    name: "bulk".into(),
                    metrics: FlowMetrics {
                        goodput_bps: Some(*goodput),
                        dropped: 7,
                        ..FlowMetrics::default()
                    },
                }],
                ..WindowResult::default()
            }],
            ..CellResult::default()
        };
        RunResult {
            scenario: "s".into(),
            cells: cells.iter().map(cell).collect(),
            ..RunResult::default()
        }
    }

    #[test]
    fn cells_agree_or_have_a_reason() {
        let both: Both = toml::from_str(
            "scenarios = [\"s\"]\nflow = \"bulk\"\nwindow = \"all\"\nwithin_pct = 5\n\
             [[why]]\nwhen = { shaper = [\"fq\", \"htb\"] }\nbecause = \"bursts\"\n",
        )
        .unwrap();
        let lab = run(&[("none", 100e6), ("fq", 100e6), ("tbf", 10e6), ("cake", 9e6)]);
        let sim = run(&[("fq", 200e6), ("none", 104e6), ("tbf", 20e6)]);
        let (found, table) = both.compare(&lab, &sim);
        let expected = Agreement {
            compared: 3,
            agree: 1,
            unexplained: 1,
        };
        assert_eq!(found, expected);
        for line in [
            "1 of 3 cells agree within 5 %",
            "| shaper = none | 100.0 | 104.0 | +3.8 % | 7 | 7 | agree |",
            "| shaper = fq | 100.0 | 200.0 | +50.0 % | 7 | 7 | bursts |",
            "| shaper = tbf | 10.0 | 20.0 | +50.0 % | 7 | 7 | not explained |",
            "| shaper = cake | 9.0 | not modelled | | 7 | | |",
        ] {
            assert!(table.contains(line), "{line}\n{table}");
        }
    }
}
