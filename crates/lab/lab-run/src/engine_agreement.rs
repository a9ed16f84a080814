// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares scenarios on both engines: where the laboratory and the simulator agree, where they
//! differ, and why. Compared is the distribution of a goodput over the runs of a cell.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::AddAssign;

use scenario::Scenario;
use scenario::result::{CellResult, FlowResult, RunResult, WindowResult};
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
    /// Largest difference of two medians that agree, per cent of the larger one.
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
            let name = words(shown);
            let said_of = |numbers: &Option<(Sample, f64)>| {
                let of = numbers.as_ref();
                let mbit_s = of.map_or("–".into(), |(goodput, _)| goodput.text());
                let drops = of.map_or("–".into(), |(_, drops)| format!("{drops:.0}"));
                (mbit_s, drops)
            };
            let (lab_said, lab_drops) = said_of(&ours);
            let (Some((lab_bps, _)), Some((sim_bps, _))) = (&ours, &theirs) else {
                let _ = writeln!(
                    text,
                    "| {name} | {lab_said} | not modelled | | {lab_drops} | | |"
                );
                continue;
            };
            let (sim_said, sim_drops) = said_of(&theirs);
            found.compared += 1;
            let (lab_median, sim_median) = (lab_bps.median(), sim_bps.median());
            let larger = sim_median.max(lab_median).max(1.0);
            let difference_pct = (sim_median - lab_median) / larger * 100.0;
            let is_alike =
                difference_pct.abs() <= self.within_pct || !lab_bps.is_told_from(sim_bps);
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
                "| {name} | {lab_said} | {sim_said} | {difference_pct:+.1} % | {lab_drops} | \
                 {sim_drops} | {said} |",
            );
        }
        let Agreement {
            compared, agree, ..
        } = found;
        let text = format!(
            "\n{agree} of {compared} cells agree within {} %, or in distribution (goodput in \
             Mbit/s, median and range of the runs, window \u{201c}{}\u{201d}; frames dropped \
             from the start, mean).\n{text}",
            self.within_pct, self.window
        );
        (found, text)
    }

    /// Returns the goodputs in `window`, and the frames dropped in the first window.
    fn numbers(&self, cell: &CellResult) -> Option<(Sample, f64)> {
        let flow = self.flow_in(cell.windows.iter().find(|w| w.name == self.window)?)?;
        let goodputs = flow.runs.get("goodput_bps").cloned();
        let goodputs = goodputs.or_else(|| Some(vec![flow.get("goodput_bps")?]));
        let dropped = self.flow_in(cell.windows.first()?)?.get("dropped")?;
        Some((Sample::new(goodputs?), dropped))
    }

    fn flow_in<'a>(&self, window: &'a WindowResult) -> Option<&'a FlowResult> {
        window.flows.iter().find(|flow| flow.name == self.flow)
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

/// The values of all runs, in order.
struct Sample(Vec<f64>);

impl Sample {
    fn new(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        Self(values)
    }

    fn median(&self) -> f64 {
        let middle = self.0.len() / 2;
        match self.0.get(middle.wrapping_sub(1)) {
            Some(below) if self.0.len() % 2 == 0 => (below + self.0[middle]) / 2.0,
            _ => self.0.get(middle).copied().unwrap_or(0.0),
        }
    }

    /// Returns median and range in Mbit/s; the median alone if the range is narrow.
    fn text(&self) -> String {
        let median = format!("{:.1}", self.median() / 1e6);
        let [least, most] = [self.0.first(), self.0.last()]
            .map(|end| format!("{:.1}", end.copied().unwrap_or(0.0) / 1e6));
        if least == most {
            median
        } else {
            format!("{median} ({least} to {most})")
        }
    }

    /// Returns whether two samples are of different distributions, with an error of 5 %
    /// (Kolmogorov and Smirnov, two samples).
    #[allow(clippy::cast_precision_loss, reason = "at most 10,000 runs")]
    fn is_told_from(&self, other: &Self) -> bool {
        const AT_5_PCT: f64 = 1.358;
        let below = |sample: &Self, value: f64| {
            sample.0.partition_point(|v| *v <= value) as f64 / sample.0.len() as f64
        };
        let values = self.0.iter().chain(&other.0);
        let distances = values.map(|value| (below(self, *value) - below(other, *value)).abs());
        let largest = distances.fold(0.0, f64::max);
        let (n, m) = (self.0.len() as f64, other.0.len() as f64);
        // Of single runs nothing is known but their difference.
        n.min(m) < 2.0 || largest > AT_5_PCT * ((n + m) / (n * m)).sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use scenario::result::FlowMetrics;

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
                    ..FlowResult::default()
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
            "1 of 3 cells agree within 5 %, or",
            "| shaper = none | 100.0 | 104.0 | +3.8 % | 7 | 7 | agree |",
            "| shaper = fq | 100.0 | 200.0 | +50.0 % | 7 | 7 | bursts |",
            "| shaper = tbf | 10.0 | 20.0 | +50.0 % | 7 | 7 | not explained |",
            "| shaper = cake | 9.0 | not modelled | | 7 | | |",
        ] {
            assert!(table.contains(line), "{line}\n{table}");
        }
    }

    #[test]
    fn samples_of_one_distribution_are_not_told_apart() {
        let of = |values: &[f64]| Sample::new(values.to_vec());
        let ten: Vec<f64> = (0..10).map(f64::from).collect();
        let shifted = |by: f64| of(&ten.iter().map(|v| v + by).collect::<Vec<_>>());
        for (by, is_told) in [
            (0.0, false),
            (3.0, false),
            (6.0, false),
            (7.0, true),
            (20.0, true),
        ] {
            assert_eq!(shifted(0.0).is_told_from(&shifted(by)), is_told, "{by}");
        }
        // A simulator without chance gives the same value again and again.
        assert!(!shifted(0.0).is_told_from(&of(&[4.5; 10])));
        assert!(shifted(0.0).is_told_from(&of(&[9.5; 10])));
        assert!(of(&[1.0]).is_told_from(&of(&[1.1])));
        assert_eq!(of(&[3.0, 1.0, 2.0]).median(), 2.0);
        assert_eq!(of(&[4e6, 1e6]).text(), "2.5 (1.0 to 4.0)");
        assert_eq!(of(&[1e6, 1e6]).text(), "1.0");
    }
}
