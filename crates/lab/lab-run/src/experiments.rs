// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs every experiment, and writes a page for each and their index.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use scenario::result::{Engine, RunResult};
use scenario::{Kernel, Options, Scenario};
use vmlab::Event;

use crate::catalogue;
use crate::engine_agreement;
use crate::finished::Finished;
use crate::freshness::{self, Age};
use crate::ground_truth::matrix::Matrix;
use crate::lab;
use crate::made_of::MadeOf;
use crate::measure_cell::write;
use crate::progress::Progress;
use crate::reference_figures::{Paper, Row};
use crate::results_index;
use crate::results_page::{FIGURES, Page};
use crate::sim;
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
    /// Whether pages that are as old as the code are made again, too.
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

/// Runs the experiments, and writes their pages and their lines in the index.
pub fn run(plan: &Plan, progress: &dyn Progress) -> Result<Outcome> {
    let results = match &plan.results {
        Some(results) => results.clone(),
        None => usual_results(plan.quick)?,
    };
    fs::create_dir_all(&results).with_context(|| format!("cannot make {}", results.display()))?;
    let mut runs = Runs::new(plan, progress, results.join(FIGURES));
    let index = results.join(results_index::FILE);
    for folder in wanted(plan.only.as_deref(), plan.lone)? {
        let name = name_of(&folder);
        if !plan.quick && !plan.again && !plan.lone && is_fresh(&folder, &results) {
            runs.note(&format!(
                "{name}: nothing has changed since its page was made"
            ));
            continue;
        }
        let begin = Instant::now();
        let paper = Paper::read(&folder.join(catalogue::PAPER))?;
        let (page, line) = runs.experiment(&folder, &name, &paper)?;
        write(&freshness::page(&results, &name), page.as_bytes())?;
        add_line(&index, line, plan.quick)?;
        let wall_s = begin.elapsed().as_secs_f64();
        runs.note(&format!("{name}: done in {wall_s:.0} s"));
    }
    Ok(Outcome {
        ok: runs.ok,
        results: runs.printed,
        index,
    })
}

/// Returns the age of each selected page of the source tree's results.
pub fn ages(only: Option<&str>) -> Result<Vec<Age>> {
    let root = catalogue::root()?;
    let results = root.join("docs/results");
    let folders = wanted(only, false)?.into_iter();
    folders
        .map(|folder| Age::of(&root, &folder, &results))
        .collect()
}

/// Returns whether nothing has changed since an experiment's page was made. Where the command is
/// installed there is not all of the code, and nobody knows.
fn is_fresh(folder: &Path, results: &Path) -> bool {
    let root = folder.ancestors().nth(2);
    let age = root.and_then(|root| Age::of(root, folder, results).ok());
    age.is_some_and(|age| age.is_fresh())
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

/// Returns the scenario once for each kernel that the experiment names; the scenario itself if it
/// names none.
fn on_kernels(scenario: &Scenario, paper: &Paper, quick: bool) -> Result<Vec<Scenario>> {
    let Some(wanted) = &paper.stops else {
        return Ok(vec![scenario.clone()]);
    };
    let names = if quick {
        &wanted.quick_kernels
    } else {
        &wanted.kernels
    };
    let on = |name: &String| {
        let kernel = name.parse().context("paper.toml, [stops]")?;
        Ok(Scenario {
            kernel,
            ..scenario.clone()
        })
    };
    names.iter().map(on).collect()
}

/// The result of one run.
struct Done {
    result: RunResult,
    /// File names of its figures.
    figures: Vec<String>,
}

/// The runs of one call. Each scenario runs once on each engine, however many experiments use it.
struct Runs<'a> {
    plan: &'a Plan,
    progress: &'a dyn Progress,
    out: PathBuf,
    figures: PathBuf,
    lab: Option<vmlab::Lab>,
    /// Whether all bounds hold so far.
    ok: bool,
    /// The results, in the order of the runs.
    printed: Vec<RunResult>,
    done: HashMap<(String, Kernel, bool), Rc<Done>>,
}

impl<'a> Runs<'a> {
    fn new(plan: &'a Plan, progress: &'a dyn Progress, figures: PathBuf) -> Self {
        let out = if plan.quick {
            "quick-runs"
        } else {
            "experiments"
        };
        Self {
            plan,
            progress,
            out: Path::new("out").join(out),
            figures,
            lab: None,
            ok: true,
            printed: vec![],
            done: HashMap::new(),
        }
    }

    /// Runs one experiment; returns its page and its line in the index.
    fn experiment(&mut self, folder: &Path, name: &str, paper: &Paper) -> Result<(String, String)> {
        let mut page = Page::new(name, paper);
        let (mut findings, mut rows) = (Findings::default(), vec![]);
        let mut matrix = Matrix::default();
        let mut engines = BTreeSet::new();
        for file in catalogue::files_in(folder)? {
            let scenario = self.read(&file)?;
            let on = if sim::support::is_needed(&scenario) {
                Engine::Netsim
            } else {
                Engine::Vmlab
            };
            for scenario in on_kernels(&scenario, paper, self.plan.quick)? {
                let done = self.run(&scenario, on)?;
                self.ok &= done.result.ok;
                engines.insert(done.result.engine);
                matrix.add(&done.result);
                findings.add_bounds(&done.result);
                let compared = paper.compare(&done.result);
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
        }
        if let Some(wanted) = &paper.stops {
            let is_ok = matrix.is_ok(wanted);
            self.ok &= is_ok;
            findings.stops = Some((matrix.right_pct(), is_ok));
            page.text.push_str(&matrix.page(wanted));
        }
        for (both, scenario) in paper.on_both_engines() {
            let file = catalogue::find(scenario)?;
            let scenario = self.read(&file)?;
            let lab = self.run(&scenario, Engine::Vmlab)?;
            let simulated = engine_agreement::simulated(&scenario);
            let sim = self.run(&simulated, Engine::Netsim)?;
            engines.extend([Engine::Vmlab, Engine::Netsim]);
            let (agreement, table) = both.compare(&lab.result, &sim.result);
            findings.engines += agreement;
            page.engines(&lab.result, &table);
            self.printed
                .extend([lab.result.clone(), sim.result.clone()]);
        }
        let line = results_index::line(name, paper, &rows, &findings);
        // Where the command is installed there is not all of the code.
        let root = folder.ancestors().nth(2);
        let made = root.and_then(|root| MadeOf::of(root, folder, &engines).ok());
        if let Some(made) = made {
            page.text.push('\n');
            page.text.push_str(&made.line());
        }
        Ok((page.text, line))
    }

    fn note(&self, text: &str) {
        self.progress.event(&Event::Note { text });
    }

    fn read(&self, file: &Path) -> Result<Scenario> {
        let options = Options {
            quick: self.plan.quick,
            ..Options::default()
        };
        catalogue::read(file, &options)
    }

    fn run(&mut self, scenario: &Scenario, on: Engine) -> Result<Rc<Done>> {
        let is_modelled = on == Engine::Netsim;
        let key = (scenario.name.clone(), scenario.kernel, is_modelled);
        if let Some(done) = self.done.get(&key) {
            return Ok(Rc::clone(done));
        }
        let cells = scenario.cells.len();
        self.note(&format!(
            "{}: {} ({cells} cells)",
            scenario.name, scenario.title
        ));
        let is_also_in_lab = is_modelled && !sim::support::is_needed(scenario);
        let suffix = if is_also_in_lab { "-sim" } else { "" };
        let kernel = match scenario.kernel {
            Kernel::V6_1 => String::new(),
            other => format!("-{other}"),
        };
        let name = format!("{}{kernel}{suffix}", scenario.name);
        let out = self.out.join(name);
        let finished = self.finish(scenario, is_modelled, &out);
        let finished = finished.with_context(|| format!("scenario {}", scenario.name))?;
        // Of runs with known stalls, the page shows only the count.
        let is_of_stops = scenario.cells.iter().any(|cell| !cell.stops.is_empty());
        // A scenario that also runs in the laboratory has that run's figures under the same names.
        let figures = if is_also_in_lab || is_of_stops {
            vec![]
        } else {
            figures_of(&finished, &self.figures)?
        };
        let result = finished.result;
        let done = Rc::new(Done { result, figures });
        self.done.insert(key, Rc::clone(&done));
        Ok(done)
    }

    fn finish(&mut self, scenario: &Scenario, is_modelled: bool, out: &Path) -> Result<Finished> {
        if is_modelled {
            return sim::run::run(scenario, out, self.plan.jobs, self.progress);
        }
        if self.lab.is_none() {
            self.lab = Some(vmlab::Lab::find()?);
        }
        let lab = self.lab.as_ref().context("no laboratory")?;
        lab::run(lab, scenario, out, self.plan.jobs, self.progress)
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
