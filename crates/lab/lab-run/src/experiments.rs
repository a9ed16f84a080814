// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs every experiment, and writes a page for each and their index.

use std::collections::HashMap;
use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use anyhow::{Context, Result, ensure};
use scenario::result::RunResult;
use vmlab::Event;

use crate::catalogue;
use crate::experiment_runs::{Engines, Experiment, Run};
use crate::finished::Finished;
use crate::freshness::{self, Age};
use crate::ground_truth::matrix::Matrix;
use crate::measure_cell::write;
use crate::progress::Progress;
use crate::reference_figures::Row;
use crate::results_index;
use crate::results_page::{FIGURES, Page};
use crate::verdict::Findings;

/// Which experiments are run, and how.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// Whether the short form is run.
    pub quick: bool,
    /// Folder of the index, the pages and `figures/`; the usual folder by default.
    pub results: Option<PathBuf>,
    /// Selects the experiment of this name, or those whose names contain it.
    pub only: Option<String>,
    /// Whether `only` must select a single experiment.
    pub lone: bool,
    /// Whether pages of which nothing has changed are made again, too.
    pub again: bool,
    /// Number of guests or cells that run at the same time; one for each core by default.
    pub jobs: Option<NonZeroUsize>,
}

/// The results of the experiments.
pub struct Outcome {
    /// Whether all bounds hold.
    pub ok: bool,
    /// The results, in the order of the runs.
    pub results: Vec<RunResult>,
    /// Path of the index of the pages.
    pub index: PathBuf,
}

/// Runs the experiments, and writes their pages and their lines in the index: first all pieces that
/// nobody has measured, on all processors and the longest first, then page after page.
pub fn run(plan: &Plan, progress: &dyn Progress) -> Result<Outcome> {
    let results = match &plan.results {
        Some(results) => results.clone(),
        None => usual_results(plan.quick)?,
    };
    fs::create_dir_all(&results).with_context(|| format!("cannot make {}", results.display()))?;
    let engines = Engines::new(plan.quick, progress)?;
    let mut runs = Runs::new(plan, progress, &engines, results.join(FIGURES));
    let index = results.join(results_index::FILE);
    let mut stale = vec![];
    for folder in wanted(plan.only.as_deref(), plan.lone)? {
        let experiment = engines.experiment(&folder)?;
        let (name, made) = (&experiment.name, experiment.made_of());
        let is_kept = !plan.quick && !plan.again && !plan.lone;
        if is_kept && Age::of(name, &made, &results)?.is_fresh() {
            runs.note(&format!(
                "{name}: what would run is what its page was made of"
            ));
        } else {
            stale.push(experiment);
        }
    }
    let all: Vec<_> = stale.iter().collect();
    let missing = engines.missing(&all);
    if !missing.is_empty() {
        let minutes = engines.minutes(&all);
        let count = missing.len();
        runs.note(&format!(
            "{count} guests and cells, about {minutes:.0} minutes"
        ));
    }
    let filled = engines.fill(&missing, plan.jobs);
    for experiment in stale.iter().filter(|experiment| engines.has(experiment)) {
        let (page, line) = runs.experiment(experiment)?;
        write(
            &freshness::page(&results, &experiment.name),
            page.as_bytes(),
        )?;
        add_line(&index, line, plan.quick)?;
        runs.note(&format!("{}: done", experiment.name));
    }
    filled?;
    Ok(Outcome {
        ok: runs.ok,
        results: runs.printed,
        index,
    })
}

/// Returns the age of each selected page of the source tree's results.
pub fn ages(only: Option<&str>, progress: &dyn Progress) -> Result<Vec<Age>> {
    let results = catalogue::root()?.join("docs/results");
    let engines = Engines::new(false, progress)?;
    let mut experiments = vec![];
    for folder in wanted(only, false)? {
        experiments.push(engines.experiment(&folder)?);
    }
    let (mut ages, mut stale, mut before) = (vec![], vec![], 0.0);
    for experiment in &experiments {
        let age = Age::of(&experiment.name, &experiment.made_of(), &results)?;
        if age.is_fresh() {
            ages.push(age);
            continue;
        }
        stale.push(experiment);
        let all = engines.minutes(&stale);
        let minutes = all - before;
        before = all;
        ages.push(Age { minutes, ..age });
    }
    Ok(ages)
}

/// Writes an experiment's line into the index. Each experiment writes its own as soon as it is done:
/// a call that was interrupted is gone on with.
fn add_line(index: &Path, line: String, quick: bool) -> Result<()> {
    let text = if index.exists() {
        let old = fs::read_to_string(index)
            .with_context(|| format!("cannot read {}", index.display()))?;
        results_index::with_lines(&old, &[line])
    } else {
        results_index::page(quick, &[line])
    };
    write(index, text.as_bytes())
}

/// Returns the default folder of the results: the full form writes the project's own pages if this
/// is a source tree.
fn usual_results(quick: bool) -> Result<PathBuf> {
    if quick {
        return Ok(PathBuf::from("out/quick"));
    }
    let docs = catalogue::root()?.join("docs");
    Ok(if docs.is_dir() {
        docs.join("results")
    } else {
        PathBuf::from("out/full")
    })
}

fn name_of(folder: &Path) -> String {
    let name = folder.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// Returns the folders of the selected experiments: the one whose name is `only`, or those whose
/// names contain it.
fn wanted(only: Option<&str>, lone: bool) -> Result<Vec<PathBuf>> {
    let mut folders = catalogue::folders()?;
    if let Some(only) = only {
        let is_named = folders.iter().any(|folder| name_of(folder) == only);
        folders.retain(|folder| {
            if is_named {
                name_of(folder) == only
            } else {
                name_of(folder).contains(only)
            }
        });
        ensure!(
            !folders.is_empty(),
            "--only {only:?}: no experiment is called that"
        );
    }
    ensure!(
        !lone || folders.len() == 1,
        "--json is of one experiment; --only means {}",
        folders
            .iter()
            .map(|f| name_of(f))
            .collect::<Vec<_>>()
            .join(", ")
    );
    Ok(folders)
}

/// The result of one run.
struct Done {
    result: RunResult,
    /// File names of its figures.
    figures: Vec<String>,
}

/// The runs of one call. Each is put together once, however many experiments use it.
struct Runs<'a> {
    progress: &'a dyn Progress,
    engines: &'a Engines<'a>,
    out: PathBuf,
    figures: PathBuf,
    /// Whether all bounds hold so far.
    ok: bool,
    /// The results, in the order of the runs.
    printed: Vec<RunResult>,
    done: HashMap<String, Rc<Done>>,
}

impl<'a> Runs<'a> {
    fn new(
        plan: &Plan,
        progress: &'a dyn Progress,
        engines: &'a Engines<'a>,
        figures: PathBuf,
    ) -> Self {
        let out = if plan.quick {
            "quick-runs"
        } else {
            "experiments"
        };
        Self {
            progress,
            engines,
            out: Path::new("out").join(out),
            figures,
            ok: true,
            printed: vec![],
            done: HashMap::new(),
        }
    }

    /// Returns the page of an experiment and its line in the index.
    fn experiment(&mut self, experiment: &Experiment) -> Result<(String, String)> {
        let Experiment { name, paper, .. } = experiment;
        let mut page = Page::new(name, paper);
        let (mut findings, mut rows) = (Findings::default(), vec![]);
        let mut matrix = Matrix::default();
        let runs = experiment.runs.iter().map(|run| self.run(run));
        let runs = runs.collect::<Result<Vec<_>>>()?;
        let all: Vec<_> = runs.iter().map(|done| &done.result).collect();
        for done in &runs {
            self.ok &= done.result.ok;
            matrix.add(&done.result);
            findings.add_bounds(&done.result);
            let compared = paper.compare(&done.result, &all)?;
            // Of runs with known stalls, the page shows only the count over all runs.
            if paper.stops.is_none() {
                page.run(&done.result, &compared, &done.figures);
            }
            findings
                .figures
                .extend(compared.iter().filter_map(Row::verdict));
            rows.extend(compared);
            self.printed.push(done.result.clone());
        }
        if let Some(wanted) = &paper.stops {
            let is_ok = matrix.is_ok(wanted);
            self.ok &= is_ok;
            findings.stops = Some((matrix.right_pct(), is_ok));
            page.text.push_str(&matrix.page(wanted));
        }
        for ((both, _), [lab, sim]) in paper.on_both_engines().zip(&experiment.both) {
            let (lab, sim) = (self.run(lab)?, self.run(sim)?);
            let (agreement, table) = both.compare(&lab.result, &sim.result);
            findings.engines += agreement;
            page.engines(&lab.result, &table);
            self.printed
                .extend([lab.result.clone(), sim.result.clone()]);
        }
        let line = results_index::line(name, paper, &rows, &findings);
        page.text.push('\n');
        page.text.push_str(&experiment.made_of().line());
        Ok((page.text, line))
    }

    fn note(&self, text: &str) {
        self.progress.event(&Event::Note { text });
    }

    fn run(&mut self, run: &Run) -> Result<Rc<Done>> {
        let name = run.name();
        if let Some(done) = self.done.get(&name) {
            return Ok(Rc::clone(done));
        }
        let scenario = &run.scenario;
        let finished = self.engines.finish(run, &self.out.join(&name));
        let finished = finished.with_context(|| format!("scenario {}", scenario.name))?;
        // Of runs with known stalls, the page shows only the count.
        let is_of_stops = scenario.cells.iter().any(|cell| !cell.stops.is_empty());
        // A scenario that also runs in the laboratory has that run's figures under the same names.
        let figures = if run.is_also_in_lab() || is_of_stops {
            vec![]
        } else {
            figures_of(&finished, &self.figures)?
        };
        let result = finished.result;
        let done = Rc::new(Done { result, figures });
        self.done.insert(name, Rc::clone(&done));
        Ok(done)
    }
}

/// Copies the most informative plots of a run to the folder where its page shows them, under the
/// scenario's name: a comparison of the cells, the waits of a stream and the cells over time; of a
/// lone cell, its first plot over time. The engine's own plots follow.
fn figures_of(finished: &Finished, figures: &Path) -> Result<Vec<String>> {
    let curves: Vec<_> = finished.curves.iter().cloned().map(Some).collect();
    let mut plots = report::run_plots(&finished.result, &curves);
    if let ([], Some(lone)) = (&plots[..], finished.curves.first()) {
        plots.extend(report::cell_plots(lone).into_iter().next());
    }
    fs::create_dir_all(figures).with_context(|| format!("cannot make {}", figures.display()))?;
    let mut names = vec![];
    for (number, plot) in plots.iter().enumerate() {
        let shown = ["tcp", "closeup", "waits"];
        let is_shown = shown.iter().any(|kind| plot.name.starts_with(kind));
        let name = match number {
            0 => format!("{}.svg", finished.result.scenario),
            _ if is_shown => format!("{}-{}", finished.result.scenario, plot.name),
            _ => continue,
        };
        write(&figures.join(&name), plot.svg.as_bytes())?;
        names.push(name);
    }
    for plot in &finished.plots {
        let name = format!("{}-{}", finished.result.scenario, plot.name);
        write(&figures.join(&name), plot.svg.as_bytes())?;
        names.push(name);
    }
    Ok(names)
}
