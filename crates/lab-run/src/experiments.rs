// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every experiment, and `results.md` from what came out.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use anyhow::{Context, Result, ensure};
use scenario::result::{Engine, RunResult};
use scenario::{Kernel, Options, Scenario};
use vmlab::Event;

use crate::catalogue;
use crate::engine_agreement;
use crate::finished::Finished;
use crate::ground_truth::matrix::Matrix;
use crate::lab;
use crate::measure_cell::write;
use crate::progress::Progress;
use crate::reference_figures::{Paper, Row, human};
use crate::sim;

/// Which experiments are run, and how.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// The short form.
    pub quick: bool,
    /// Folder of `results.md` and `figures/`; the usual one by default.
    pub results: Option<PathBuf>,
    /// The experiment of this name, or those whose names contain it.
    pub only: Option<String>,
    /// `only` must mean a single one.
    pub lone: bool,
    /// Takes the laboratory's results of an earlier call where they fit.
    pub reuse: bool,
    /// Guests or cells side by side; one for each core by default.
    pub jobs: Option<NonZeroUsize>,
}

/// What the experiments came to.
pub struct Outcome {
    /// All bounds hold.
    pub ok: bool,
    /// In the order of the runs.
    pub results: Vec<RunResult>,
    /// The page.
    pub page: PathBuf,
}

/// Runs them, and writes the page.
pub fn run(plan: &Plan, progress: &dyn Progress) -> Result<Outcome> {
    let quick = plan.quick;
    let results = match &plan.results {
        Some(results) => results.clone(),
        None => usual_results(quick)?,
    };
    let results = results.as_path();
    let mut runs = Runs::new(plan, progress, results.join("figures"));
    let mut page = Page::new(quick);
    let (mut ok, mut printed) = (true, vec![]);
    for folder in wanted(plan.only.as_deref(), plan.lone)? {
        let name = name_of(&folder);
        let paper = Paper::read(&folder.join(catalogue::PAPER))?;
        page.experiment(&name, &paper);
        let mut matrix = Matrix::default();
        for file in catalogue::files_in(&folder)? {
            let scenario = runs.read(&file)?;
            let on = match sim::support::is_needed(&scenario) {
                true => Engine::Netsim,
                false => Engine::Vmlab,
            };
            for scenario in on_kernels(&scenario, &paper, quick)? {
                let done = runs.run(&scenario, on, &file)?;
                ok &= done.result.ok;
                matrix.add(&done.result);
                // Of stops only the count of all is of interest.
                if paper.stops.is_none() {
                    page.run(&done.result, &paper, &done.figures);
                }
                printed.push(done.result.clone());
            }
        }
        if let Some(wanted) = &paper.stops {
            ok &= matrix.is_ok(wanted);
            page.text.push_str(&matrix.page(wanted));
        }
        for name in paper.both.iter().flat_map(|both| &both.scenarios) {
            let file = catalogue::find(name)?;
            let scenario = runs.read(&file)?;
            let lab = runs.run(&scenario, Engine::Vmlab, &file)?;
            let simulated = engine_agreement::simulated(&scenario);
            let sim = runs.run(&simulated, Engine::Netsim, &file)?;
            page.both(&paper, &lab.result, &sim.result);
            printed.extend([lab.result.clone(), sim.result.clone()]);
        }
    }
    let path = results.join("results.md");
    let mut text = page.text;
    if plan.only.is_some() && path.exists() {
        let old =
            fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        text = with_sections_of(&old, &text);
    }
    fs::create_dir_all(results).with_context(|| format!("cannot make {}", results.display()))?;
    write(&path, text.as_bytes())?;
    Ok(Outcome {
        ok,
        results: printed,
        page: path,
    })
}

/// The full form makes the project's own page, if this is a source tree.
fn usual_results(quick: bool) -> Result<PathBuf> {
    if quick {
        return Ok(PathBuf::from("out/quick"));
    }
    let docs = catalogue::root()?.join("docs");
    Ok(match docs.is_dir() {
        true => docs,
        false => PathBuf::from("out/full"),
    })
}

fn name_of(folder: &Path) -> String {
    let name = folder.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// The folders of the experiments that are meant: the one of that very name, or
/// those whose names contain it.
fn wanted(only: Option<&str>, lone: bool) -> Result<Vec<PathBuf>> {
    let mut folders = catalogue::folders()?;
    if let Some(only) = only {
        let is_named = folders.iter().any(|folder| name_of(folder) == only);
        folders.retain(|folder| match is_named {
            true => name_of(folder) == only,
            false => name_of(folder).contains(only),
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

/// The scenario for each kernel that the experiment wants it on; itself if it names none.
fn on_kernels(scenario: &Scenario, paper: &Paper, quick: bool) -> Result<Vec<Scenario>> {
    let Some(wanted) = &paper.stops else {
        return Ok(vec![scenario.clone()]);
    };
    let names = match quick {
        true => &wanted.quick_kernels,
        false => &wanted.kernels,
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

/// What one run came to.
struct Done {
    result: RunResult,
    /// Names of its pictures.
    figures: Vec<String>,
}

/// The runs of one call: each scenario once on each engine, whichever
/// experiments want it.
struct Runs<'a> {
    plan: &'a Plan,
    progress: &'a dyn Progress,
    out: PathBuf,
    figures: PathBuf,
    lab: Option<vmlab::Lab>,
    done: HashMap<(String, Kernel, bool), Rc<Done>>,
}

impl<'a> Runs<'a> {
    fn new(plan: &'a Plan, progress: &'a dyn Progress, figures: PathBuf) -> Self {
        let out = match plan.quick {
            false => "experiments",
            true => "quick-runs",
        };
        Self {
            plan,
            progress,
            out: Path::new("out").join(out),
            figures,
            lab: None,
            done: HashMap::new(),
        }
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

    fn run(&mut self, scenario: &Scenario, on: Engine, file: &Path) -> Result<Rc<Done>> {
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
        let finished = self.finish(scenario, is_modelled, &out, file);
        let finished = finished.with_context(|| format!("scenario {}", scenario.name))?;
        // Of stops the page shows the count alone.
        let is_of_stops = scenario.cells.iter().any(|cell| !cell.stops.is_empty());
        // The laboratory's pictures have the names of those that are also simulated.
        let figures = match is_also_in_lab || is_of_stops {
            true => vec![],
            false => figures_of(&finished, &self.figures)?,
        };
        let result = finished.result;
        let done = Rc::new(Done { result, figures });
        self.done.insert(key, Rc::clone(&done));
        Ok(done)
    }

    fn finish(
        &mut self,
        scenario: &Scenario,
        is_modelled: bool,
        out: &Path,
        file: &Path,
    ) -> Result<Finished> {
        if is_modelled {
            return sim::run::run(scenario, out, self.plan.jobs, self.progress);
        }
        if self.plan.reuse && out.join("result.json").exists() {
            if let Some(finished) = Finished::read(out, scenario, file)? {
                self.note(&format!("{}: as it is in {}", scenario.name, out.display()));
                return Ok(finished);
            }
        }
        if self.lab.is_none() {
            self.lab = Some(vmlab::Lab::find()?);
        }
        let lab = self.lab.as_ref().context("no laboratory")?;
        lab::run(lab, scenario, out, self.plan.jobs, self.progress)
    }
}

/// What begins an experiment's section.
const SECTION: &str = "\n## ";

/// `old` with the sections of `new` in the place of its own of these names, or
/// where they belong by name. What is above the first section is of `old`.
fn with_sections_of(old: &str, new: &str) -> String {
    let parts = |text: &str| -> (String, Vec<String>) {
        let mut parts = text.split(SECTION).map(str::to_owned);
        (parts.next().unwrap_or_default(), parts.collect())
    };
    let name = |section: &str| section.lines().next().unwrap_or_default().to_owned();
    let ((head, mut sections), (_, fresh)) = (parts(old), parts(new));
    for section in fresh {
        let known = |s: &String| name(s) == name(&section);
        match sections.iter_mut().find(|s| known(s)) {
            Some(slot) => *slot = section,
            None => sections.push(section),
        }
    }
    sections.sort_by_key(|s| name(s));
    let sections = sections.iter().flat_map(|s| [SECTION, s.as_str()]);
    sections.fold(head, |text, part| text + part)
}

/// Copies the pictures that tell most about a run to where `results.md` can
/// show them, under the scenario's name: a comparison of the cells, how a stream
/// waited and their courses over time, or, of a lone cell, its bandwidth over time.
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

/// `results.md`, as it grows.
struct Page {
    text: String,
}

impl Page {
    fn new(quick: bool) -> Self {
        let form = if quick {
            "`make experiments-quick`, the short form of each"
        } else {
            "`make experiments`"
        };
        let text = format!(
            "<!-- SPDX-License-Identifier: MIT OR Apache-2.0 -->\n\
             # Results\n\n\
             Made by {form}; every figure is measured by the code beside it, on the kernel that is \
             named, in virtual time. What a bound asks for stands in the scenario's file; what the \
             papers report stands beside ours, with why they may differ. Rates are of the link \
             layer (Ethernet header, no FCS) unless the scenario says otherwise; gaps run from start \
             to start, in byte times of the line.\n"
        );
        Self { text }
    }

    fn experiment(&mut self, name: &str, paper: &Paper) {
        let _ = write!(
            self.text,
            "\n## {name}\n\n**Reported.** {}\n\n**Why ours may differ.** {}\n",
            paper.reports, paper.differs
        );
    }

    fn run(&mut self, result: &RunResult, paper: &Paper, figures: &[String]) {
        let _ = write!(
            self.text,
            "\n### {}\n\n{} · {} · seed {} · {}\n",
            result.title,
            result.source,
            match result.engine {
                Engine::Vmlab => format!("Linux {}", result.kernel),
                Engine::Netsim => "simulated".to_owned(),
            },
            result.seed,
            verdict(result)
        );
        for figure in figures {
            let _ = write!(self.text, "\n![{}](figures/{figure})\n", result.title);
        }
        let _ = write!(
            self.text,
            "\n```text\n{}```\n",
            report::summary(result, report::Style::PLAIN)
        );
        self.rows(&paper.compare(result));
    }

    /// A scenario on both engines.
    fn both(&mut self, paper: &Paper, lab: &RunResult, sim: &RunResult) {
        let Some(both) = &paper.both else {
            return;
        };
        let _ = write!(
            self.text,
            "\n### {}, on both engines\n\n`{}` · Linux {} and the simulator · seed {}\n{}",
            lab.title,
            lab.scenario,
            lab.kernel,
            lab.seed,
            both.table(lab, sim)
        );
    }

    fn rows(&mut self, rows: &[Row]) {
        if rows.is_empty() {
            return;
        }
        self.text
            .push_str("\n| cell | flow | metric | paper | ours |\n|---|---|---|---:|---:|\n");
        for row in rows {
            let ours = row
                .ours
                .map_or("not in this form".into(), |v| human(&row.metric, v));
            let _ = writeln!(
                self.text,
                "| {} | {} | `{}` | {} | {ours} |",
                row.cell,
                row.flow,
                row.metric,
                human(&row.metric, row.paper)
            );
        }
    }
}

fn verdict(result: &RunResult) -> String {
    let bounds = || result.cells.iter().flat_map(|c| &c.bounds);
    match (bounds().count(), bounds().filter(|b| !b.ok).count()) {
        (0, _) => "no bounds".into(),
        (n, 0) => format!("all {n} bounds hold"),
        (n, bad) => format!("**{bad} of {n} bounds do not hold**"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_are_replaced_and_added_by_name() {
        let old = "head\n\n## a\n\nold a\n\n## c\n\nold c\n### c, more\n";
        let new = "other head\n\n## b\n\nnew b\n\n## c\n\nnew c\n";
        let both = "head\n\n## a\n\nold a\n\n## b\n\nnew b\n\n## c\n\nnew c\n";
        assert_eq!(with_sections_of(old, new), both);
        assert_eq!(with_sections_of(both, new), both);
        assert_eq!(with_sections_of(old, "nothing"), old);
    }
}
