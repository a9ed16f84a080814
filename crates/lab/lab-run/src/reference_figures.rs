// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares the figures that a source reports with ours: `experiments/*/paper.toml`.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
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
    /// The cell that this one is compared with: value and ours are then how much more the metric is
    /// here, per cent of what it is there.
    pub over: Option<Cell>,
    /// Why our value differs, where it does ...
    pub because: Option<String>,
    /// ... and the cells that show it: ours and theirs have the source's value between them, or one
    /// of them is nearer to it by half.
    #[serde(default)]
    pub cells: Vec<Cell>,
    /// How the verdict judges our value.
    pub judge: Judge,
}

/// A cell beside that of a figure: the parameters that differ, and `scenario` where it is of another
/// of the folder.
pub type Cell = BTreeMap<String, String>;

/// The key of a [`Cell`] that names a scenario.
const SCENARIO: &str = "scenario";

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
    /// Why our value differs, where it does ...
    pub because: Option<String>,
    /// ... and what the cells have that show it: each in words, with its value.
    pub shown: Vec<(String, Option<f64>)>,
}

impl Row {
    /// Returns the verdict on this figure; `None` if it was not measured.
    pub fn verdict(&self) -> Option<Verdict> {
        let ours = self.ours?;
        let verdict = self.judge.of(self.paper, ours, self.tolerance);
        let is_off = matches!(verdict, Verdict::Differs | Verdict::Missed);
        Some(if is_off && self.is_explained(ours) {
            Verdict::Explained
        } else {
            verdict
        })
    }

    /// Returns whether the cells show that what they vary decides: with ours they have the source's
    /// value between them, or one of them is nearer to it by half of the way or more.
    fn is_explained(&self, ours: f64) -> bool {
        let cells = || self.shown.iter().filter_map(|(_, value)| *value);
        let sides = || cells().chain([ours]);
        let is_between =
            sides().any(|value| value <= self.paper) && sides().any(|value| value >= self.paper);
        let far = (ours - self.paper).abs();
        is_between || cells().any(|value| (value - self.paper).abs() <= far / 2.0)
    }

    /// Returns the verdict in words: a cause only where cells show it, and what they have.
    pub fn said(&self) -> String {
        let cells = self.shown.iter();
        let cells =
            cells.map(|(cell, ours)| format!("{} with {cell}", measured(&self.metric, *ours)));
        let cells = cells.collect::<Vec<_>>().join("; ");
        match (self.verdict(), &self.because) {
            (None, _) => String::new(),
            (Some(Verdict::Explained), Some(why)) => format!("explained: {why} ({cells})"),
            (Some(verdict @ (Verdict::Differs | Verdict::Missed)), Some(_)) => {
                format!("{verdict} ({cells})")
            }
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
            ensure!(
                f.because.is_some() != f.cells.is_empty(),
                "{}: figure {} of {}: expected `cells`, which show the cause, with `because`, and \
                 only there",
                path.display(),
                f.metric,
                words(&f.when)
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

    /// Returns the source's figures that belong to `result`, each with ours. `all` are the results of
    /// the folder, whose cells show why ours differ. Refuses words that several cells fit.
    pub fn compare(&self, result: &RunResult, all: &[&RunResult]) -> Result<Vec<Row>> {
        let is_of = |f: &&Figure| f.scenario.as_ref().is_none_or(|s| *s == result.scenario);
        let figures = self.figures.iter().filter(is_of);
        let rows = figures.map(|f| {
            let value = |cell: &Cell| f.ours(&beside(&f.when, cell), result, all);
            let shown = f.cells.iter().map(|c| Ok((words(c), value(c)?)));
            Ok(Row {
                name: f.name.clone(),
                judge: f.judge,
                tolerance: f.within.unwrap_or_else(|| {
                    f.value.abs() * self.index.within_pct.unwrap_or_default() / 100.0
                }),
                because: f.because.clone(),
                cell: match &f.over {
                    None => words(&f.when),
                    Some(cell) => format!("{}, over {}", words(&f.when), words(cell)),
                },
                flow: f.flow.clone(),
                metric: f.metric_shown(),
                paper: f.value,
                ours: f.ours(&f.when, result, all)?,
                shown: shown.collect::<Result<_>>()?,
            })
        });
        rows.collect()
    }
}

impl Figure {
    /// Returns our value in a cell, or how much it is over that of another.
    fn ours(&self, when: &Cell, result: &RunResult, all: &[&RunResult]) -> Result<Option<f64>> {
        let ours = self.value_in(when, result, all)?;
        let Some(over) = &self.over else {
            return Ok(ours);
        };
        let theirs = self.value_in(&beside(when, over), result, all)?;
        let theirs = theirs.filter(|theirs| *theirs != 0.0);
        Ok(ours
            .zip(theirs)
            .map(|(ours, theirs)| (ours - theirs) / theirs * 100.0))
    }

    fn value_in(&self, when: &Cell, result: &RunResult, all: &[&RunResult]) -> Result<Option<f64>> {
        let result = match when.get(SCENARIO) {
            Some(name) => all.iter().find(|result| result.scenario == *name),
            None => Some(&result),
        };
        let Some(result) = result else {
            return Ok(None);
        };
        let is_it = |cell: &&CellResult| {
            let mut given = when.iter().filter(|(key, _)| *key != SCENARIO);
            given.all(|(key, value)| cell.params.get(key) == Some(value))
        };
        let mut cells = result.cells.iter().filter(is_it);
        let Some(cell) = cells.next() else {
            return Ok(None);
        };
        if let Some(other) = cells.next() {
            bail!(
                "{} of {} with {}: expected the words of one cell, these fit {} and {}",
                self.metric,
                result.scenario,
                words(when),
                words(&cell.params),
                words(&other.params)
            );
        }
        let transfer = result.transfer(cell, &self.flow);
        let number = transfer.and_then(|row| row.get(&self.metric));
        Ok(number.or_else(|| self.measured(cell)))
    }

    /// Returns the metric as the page names it: what is compared with a cell has another unit.
    fn metric_shown(&self) -> String {
        match self.over {
            Some(_) => format!("{}_over_pct", self.metric),
            None => self.metric.clone(),
        }
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

/// Returns the parameters of a cell beside another.
fn beside(when: &Cell, cell: &Cell) -> Cell {
    let mut all = when.clone();
    if cell.contains_key(SCENARIO) {
        all.clear(); // another scenario has other parameters
    }
    all.extend(cell.clone());
    all
}

/// Returns a value for people to read; the short form leaves cells out.
pub fn measured(metric: &str, value: Option<f64>) -> String {
    value.map_or("not in this form".into(), |value| human(metric, value))
}

/// Returns a metric's value with its unit, for people to read.
pub fn human(metric: &str, value: f64) -> String {
    if metric.ends_with("_over_pct") {
        return format!("{} %", number(value, 2)); // a difference of two cells
    }
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

    fn row(paper: f64, ours: f64, cells: &[f64]) -> Row {
        let because = (!cells.is_empty()).then(|| "x decides".to_owned());
        Row {
            name: None,
            cell: String::new(),
            flow: "bulk".into(),
            metric: "dropped".into(),
            paper,
            ours: Some(ours),
            judge: Judge::Near,
            tolerance: paper / 20.0,
            because,
            shown: cells.iter().map(|v| ("x = 1".into(), Some(*v))).collect(),
        }
    }

    #[test]
    fn a_cause_is_said_only_where_cells_show_it() {
        for (ours, cells, verdict) in [
            (104.0, &[][..], Verdict::Reached),
            (50.0, &[], Verdict::Differs),
            (50.0, &[150.0], Verdict::Explained), // with ours the source's is between
            (50.0, &[160.0, 170.0], Verdict::Explained),
            (50.0, &[75.0], Verdict::Explained), // half of the way
            (50.0, &[74.0], Verdict::Differs),
            (50.0, &[50.0], Verdict::Differs), // the cause moves nothing
            (50.0, &[20.0], Verdict::Differs), // it moves away
            (150.0, &[180.0, 140.0], Verdict::Differs),
        ] {
            assert_eq!(row(100.0, ours, cells).verdict(), Some(verdict), "{ours}");
        }
        assert_eq!(
            row(100.0, 50.0, &[150.0]).said(),
            "explained: x decides (150 with x = 1)"
        );
        assert_eq!(row(100.0, 50.0, &[20.0]).said(), "differs (20 with x = 1)");
        assert_eq!(row(100.0, 50.0, &[]).said(), "differs");
    }

    /// Rows that pages of 2026-11-27 called explained, with what the cells had that they named.
    #[test]
    fn causes_that_no_cell_showed_are_refused() {
        for (words, paper, ours, cells) in [
            // Table 5 of paper 000: the other cost, and the other buckets of tbf.
            ("16kb none goodput", 29.4, 15.015, &[12.318][..]),
            ("16kb none dropped", 219.0, 34.0, &[57.0]),
            ("16kb tbf goodput", 26.9, 15.015, &[12.3, 12.3, 15.0]),
            ("16kb tbf dropped", 131.0, 34.0, &[57.0, 57.0, 34.0]),
            ("64kb none goodput", 210.0, 198.373, &[198.373]),
            ("64kb none dropped", 257.0, 29.0, &[29.0]),
            ("64kb tbf dropped", 402.0, 29.0, &[29.0, 0.0, 0.0]),
            ("1024kb none dropped", 1196.0, 594.0, &[594.0]),
            ("1024kb tbf goodput", 419.0, 464.1, &[464.1; 3]),
            ("1024kb tbf dropped", 12.0, 0.0, &[0.0; 3]),
            ("4096kb none dropped", 1283.0, 3040.0, &[3058.0]),
            // No cell varied what was named.
            ("beta at 50 Mbit/s", 30.0, 27.728, &[]),
            ("largest window of paper 003", 10.0, 12.500_584, &[]),
            ("goodput without GSO", 786.8, 989.7, &[]),
            ("goodput of CUBIC behind the policer", 483.0, 447.8, &[]),
            ("deviation of 2.6.22", 0.5, 0.927, &[]),
            ("deviation of the repair", 0.1, 0.069, &[]),
        ] {
            assert_eq!(
                row(paper, ours, cells).verdict(),
                Some(Verdict::Differs),
                "{words}"
            );
        }
        // Of the same table: what the cells did show stands.
        for (words, paper, ours, cells) in [
            ("256kb none dropped", 394.0, 179.0, &[363.0][..]),
            (
                "256kb tbf goodput",
                379.0,
                223.742,
                &[231.374, 464.1, 464.1],
            ),
            ("4096kb none goodput", 459.0, 113.5, &[461.384]),
        ] {
            assert_eq!(
                row(paper, ours, cells).verdict(),
                Some(Verdict::Explained),
                "{words}"
            );
        }
    }

    #[test]
    fn a_cell_is_compared_with_another_and_shown_by_others() {
        let cell = |shaper: &str, cost: &str, rate_bps: f64| CellResult {
            params: [("shaper", shaper), ("cost", cost)]
                .map(|(k, v)| (k.to_owned(), v.to_owned()))
                .into(),
            windows: vec![WindowResult {
                flows: vec![flow("a", rate_bps)],
                ..WindowResult::default()
            }],
            ..CellResult::default()
        };
        let result = |scenario: &str, cells| RunResult {
            scenario: scenario.into(),
            cells,
            ..RunResult::default()
        };
        let all = [
            result(
                "one",
                vec![cell("psp", "0", 102e6), cell("htb", "0", 100e6)],
            ),
            result("two", vec![cell("psp", "1", 99e6), cell("htb", "1", 90e6)]),
        ];
        let all: Vec<&RunResult> = all.iter().collect();
        let paper = |text: &str| {
            let text = format!(
                "reports = \"r\"\ndiffers = \"d\"\n[index]\nreports = \"r\"\nours = \"o\"\n\
                 judged_by = \"figures\"\nwithin_pct = 5\n[[figure]]\nscenario = \"one\"\n\
                 when = {{ shaper = \"psp\" }}\nflow = \"a\"\nmetric = \"rate1_mean_bps\"\n\
                 judge = \"near\"\n{text}"
            );
            toml::from_str::<Paper>(&text).unwrap()
        };
        let over = "over = { shaper = \"htb\" }\nvalue = 10\nbecause = \"cost\"\n\
                    cells = [{ scenario = \"two\", shaper = \"psp\", cost = \"1\" }]";
        let rows = paper(over).compare(all[0], &all).unwrap();
        assert_eq!(rows[0].cell, "shaper = psp, over shaper = htb");
        assert_eq!(rows[0].ours, Some(2.0));
        assert_eq!(rows[0].shown[0].1, Some(10.0));
        assert_eq!(
            rows[0].said(),
            "explained: cost (10.00 % with cost = 1, scenario = two, shaper = psp)"
        );
        assert_eq!(
            paper("value = 102e6").compare(all[0], &all).unwrap()[0].said(),
            "reached"
        );
        // The cells of another scenario have none of the figure's words.
        let vague = over.replace("shaper = \"psp\", cost", "cost");
        assert_eq!(
            paper(&vague).compare(all[0], &all).unwrap_err().to_string(),
            "rate1_mean_bps of two with cost = 1, scenario = two: expected the words of one cell, \
             these fit cost = 1, shaper = psp and cost = 1, shaper = htb"
        );
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
            cells: vec![],
            over: None,
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
