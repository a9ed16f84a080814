// SPDX-License-Identifier: MIT OR Apache-2.0
//! The runs behind an experiment's page, and the pieces that they consist of.

use std::cell::OnceCell;
use std::num::NonZeroUsize;
use std::path::Path;

use anyhow::{Context, Result};
use scenario::result::Engine;
use scenario::{Kernel, Options, Scenario};

use crate::catalogue;
use crate::engine_agreement;
use crate::finished::Finished;
use crate::lab;
use crate::made_of::MadeOf;
use crate::progress::Progress;
use crate::reference_figures::Paper;
use crate::sim;
use crate::stored::{Id, Stored};

/// A scenario that an engine runs.
pub struct Run {
    pub scenario: Scenario,
    pub engine: Engine,
    /// Its pieces, in their order.
    pub pieces: Vec<Id>,
}

impl Run {
    /// Returns whether the simulator runs what the laboratory runs, too.
    pub fn is_also_in_lab(&self) -> bool {
        self.engine == Engine::Netsim && !sim::support::is_needed(&self.scenario)
    }

    /// Returns a name that no other run has.
    pub fn name(&self) -> String {
        let kernel = match self.scenario.kernel {
            Kernel::V6_1 => String::new(),
            other => format!("-{other}"),
        };
        let suffix = if self.is_also_in_lab() { "-sim" } else { "" };
        format!("{}{kernel}{suffix}", self.scenario.name)
    }
}

/// An experiment with its runs.
pub struct Experiment {
    pub name: String,
    pub paper: Paper,
    /// The runs of its own scenarios.
    pub runs: Vec<Run>,
    /// The runs of scenarios that both engines run: in the laboratory, and simulated.
    pub both: Vec<[Run; 2]>,
}

impl Experiment {
    pub fn all(&self) -> impl Iterator<Item = &Run> {
        self.runs.iter().chain(self.both.iter().flatten())
    }

    /// Returns what a page would be made of.
    pub fn made_of(&self) -> MadeOf {
        let mut made = MadeOf::default();
        for run in self.all() {
            made.add(run.name(), &run.pieces);
        }
        made
    }
}

/// What runs experiments: both engines, and the store of what they measured.
pub struct Engines<'a> {
    pub stored: Stored,
    progress: &'a dyn Progress,
    is_quick: bool,
    lab: OnceCell<vmlab::Lab>,
}

impl<'a> Engines<'a> {
    /// Opens the store. In the quick form scenarios are short.
    pub fn new(is_quick: bool, progress: &'a dyn Progress) -> Result<Self> {
        Ok(Self {
            stored: Stored::open()?,
            progress,
            is_quick,
            lab: OnceCell::new(),
        })
    }

    fn lab(&self) -> Result<&vmlab::Lab> {
        if self.lab.get().is_none() {
            // Nobody else has set it meanwhile.
            let _ = self.lab.set(vmlab::Lab::find()?);
        }
        self.lab.get().context("no laboratory")
    }

    /// Reads an experiment, and tells its pieces.
    pub fn experiment(&self, folder: &Path) -> Result<Experiment> {
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        let paper = Paper::read(&folder.join(catalogue::PAPER))?;
        let mut runs = vec![];
        for file in catalogue::files_in(folder)? {
            let scenario = self.read(&file)?;
            let engine = if sim::support::is_needed(&scenario) {
                Engine::Netsim
            } else {
                Engine::Vmlab
            };
            for scenario in self.on_kernels(&scenario, &paper)? {
                runs.push(self.run(scenario, engine)?);
            }
        }
        let mut both = vec![];
        for (_, scenario) in paper.on_both_engines() {
            let scenario = self.read(&catalogue::find(scenario)?)?;
            let simulated = engine_agreement::simulated(&scenario);
            both.push([
                self.run(scenario, Engine::Vmlab)?,
                self.run(simulated, Engine::Netsim)?,
            ]);
        }
        Ok(Experiment {
            name: name.into_owned(),
            paper,
            runs,
            both,
        })
    }

    fn read(&self, file: &Path) -> Result<Scenario> {
        let options = Options {
            quick: self.is_quick,
            ..Options::default()
        };
        catalogue::read(file, &options)
    }

    /// Returns the scenario once for each kernel that the experiment names; the scenario itself if it
    /// names none.
    fn on_kernels(&self, scenario: &Scenario, paper: &Paper) -> Result<Vec<Scenario>> {
        let Some(wanted) = &paper.stops else {
            return Ok(vec![scenario.clone()]);
        };
        let names = if self.is_quick {
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

    fn run(&self, scenario: Scenario, engine: Engine) -> Result<Run> {
        let pieces = match engine {
            Engine::Netsim => sim::run::pieces(&scenario)?,
            Engine::Vmlab => lab::pieces(self.lab()?, &scenario, self.progress)?,
        };
        Ok(Run {
            scenario,
            engine,
            pieces,
        })
    }

    /// Returns the pieces of some experiments that have to run, the longest first: each with its
    /// run and its number there.
    pub fn missing<'b>(&self, of: &[&'b Experiment]) -> Vec<(&'b Run, usize)> {
        let of_run = |run: &'b Run| {
            let all = (0..run.pieces.len()).map(move |number| (run, number));
            all.filter(|(run, number)| !is_settled(&self.stored, run, *number))
        };
        let runs = of.iter().flat_map(|experiment| experiment.all());
        let all: Vec<_> = runs.flat_map(of_run).collect();
        let missing = self
            .stored
            .missing(&all, |(run, number)| &run.pieces[*number]);
        missing.into_iter().copied().collect()
    }

    /// Returns the minutes that making some pages takes here.
    pub fn minutes(&self, of: &[&Experiment]) -> f64 {
        let missing = self.missing(of);
        let ids = missing.iter().map(|(run, number)| &run.pieces[*number]);
        self.stored.minutes(ids)
    }

    /// Runs pieces on all processors, in their order. A piece that fails keeps none of the others
    /// from running.
    ///
    /// # Errors
    /// The first piece's that failed.
    pub fn fill(&self, missing: &[(&Run, usize)], jobs: Option<NonZeroUsize>) -> Result<()> {
        let lab = missing.iter().any(|(run, _)| run.engine == Engine::Vmlab);
        let lab = lab.then(|| self.lab()).transpose()?;
        let stored = &self.stored;
        stored.fill(missing, jobs, self.progress, |&(run, number)| {
            let piece = (stored, &run.pieces[number]);
            match run.engine {
                // Others found so meanwhile.
                Engine::Vmlab if is_settled(stored, run, number) => Ok(()),
                Engine::Netsim => sim::run::fill(&run.scenario, number, piece),
                Engine::Vmlab => {
                    let lab = lab.context("no laboratory")?;
                    lab::fill(lab, &run.scenario, number, piece)
                }
            }
        })
    }

    /// Returns whether everything of an experiment was measured.
    pub fn has(&self, experiment: &Experiment) -> bool {
        self.missing(&[experiment]).is_empty()
    }

    /// Puts a run together from its pieces, and writes its results into `out`.
    pub fn finish(&self, run: &Run, out: &Path) -> Result<Finished> {
        match run.engine {
            Engine::Netsim => {
                let stored = Some(&self.stored);
                sim::run::run(&run.scenario, out, None, self.progress, stored)
            }
            Engine::Vmlab => {
                let stored = (&self.stored, &*run.pieces);
                lab::assemble(self.lab()?, &run.scenario, out, stored)
            }
        }
    }
}

/// Returns whether a piece need not run, because what others found decides.
fn is_settled(stored: &Stored, run: &Run, number: usize) -> bool {
    let (scenario, ids) = (&run.scenario, &run.pieces);
    run.engine == Engine::Vmlab && lab::is_settled(scenario, number, stored, ids)
}
