// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the guest of some cells is given beside the base: modules, programs, the plan and its files.

use scenario::{Backend, Cell};

use crate::cell_modules::{module_candidates, names_kind};
use crate::error::Error;
use crate::host_command;
use crate::image::{Image, add_ethtool, add_modules, add_plugin};
use crate::kbuild::{SCH_PSP, WIRE};
use crate::packages::{self, ETHTOOL};
use crate::plan::plan;
use crate::profile;
use crate::progress::Progress;
use crate::setup::{Lab, Parts};

fn uses_bpf(cells: &[Cell]) -> bool {
    let mut lines = cells.iter().flat_map(|cell| &cell.tc);
    lines.any(|line| line.backend == Backend::Bpf)
}

/// Returns whether a cell has a psp: the module, or the programs of BPF in its place.
fn uses_psp(cells: &[Cell]) -> bool {
    uses_bpf(cells) || cells.iter().any(|cell| names_kind(cell, "psp"))
}

/// Returns whether a cell has a rival that tc knows by the laboratory's plugin.
fn uses_lab_plugin(cells: &[Cell]) -> bool {
    cells.iter().any(|cell| names_kind(cell, "cake_mq"))
}

/// Returns whether a program of some cells is the command.
fn runs_command(cells: &[Cell]) -> bool {
    let mut programs = cells.iter().flat_map(|cell| &cell.host_programs);
    programs.any(|program| {
        program
            .args
            .first()
            .is_some_and(|name| name == host_command::NAME)
    })
}

/// Makes the second archive of the guests of a run.
pub(crate) struct CellFiles<'a> {
    pub lab: &'a Lab,
    pub parts: &'a Parts,
    pub seed: u64,
    pub progress: &'a dyn Progress,
}

impl CellFiles<'_> {
    /// Returns the archive. `command` is what stands in the place of the command `pspacer`, if
    /// anything.
    ///
    /// # Errors
    /// If there is no command where one is needed, or a host's program is none of the guest's.
    pub fn all(&self, cells: &[Cell], command: Option<&str>) -> Result<Image, Error> {
        let mut image = Image::default();
        let candidates: Vec<String> = cells.iter().flat_map(module_candidates).collect();
        let wanted = ["wire".to_owned()];
        let modules = self
            .lab
            .modules(self.parts, &wanted, &candidates, self.progress)?;
        let load = add_modules(&mut image, modules);
        if uses_psp(cells) {
            add_plugin(&mut image, &self.parts.programs)?;
        }
        self.add_programs(&mut image, cells)?;
        self.add_command(&mut image, cells, command)?;
        self.add_plan(&mut image, cells, &load)?;
        Ok(image)
    }

    /// Returns what of the archive follows from the project alone: the plan without its modules, its
    /// files.
    pub fn own(&self, cells: &[Cell], command: &str) -> Result<Image, Error> {
        let mut image = Image::default();
        self.add_command(&mut image, cells, Some(command))?;
        self.add_plan(&mut image, cells, &[])?;
        Ok(image)
    }

    /// Returns the folders with the project's sources of what the guest of some cells runs.
    pub fn sources(&self, cells: &[Cell]) -> Vec<&'static str> {
        let mut folders = vec!["lab/Makefile", "lab/agent", "lab/send"];
        folders.extend(WIRE.sources);
        if uses_psp(cells) {
            folders.extend(SCH_PSP.sources);
            folders.push("tc");
        }
        if uses_lab_plugin(cells) {
            folders.push("lab/tc");
        }
        folders
    }

    /// Adds the command where some cells need it, or `command` in its place.
    fn add_command(
        &self,
        image: &mut Image,
        cells: &[Cell],
        command: Option<&str>,
    ) -> Result<(), Error> {
        match (uses_bpf(cells) || runs_command(cells), command) {
            (false, _) => {}
            (true, Some(text)) => image.file("pspacer", text.as_bytes().to_vec()),
            (true, None) => {
                let command = self.lab.command.as_deref().ok_or(Error::NoCommand)?;
                host_command::add(image, command)?;
            }
        }
        Ok(())
    }

    /// Adds the plan of some cells, which loads modules first, and its files.
    fn add_plan(&self, image: &mut Image, cells: &[Cell], load: &[String]) -> Result<(), Error> {
        let mut steps = load.join("\n") + "\n";
        // The guest reads the plan first: one that is as long takes as many instructions.
        let kept = if self.lab.profile {
            "/proc/kallsyms"
        } else {
            "/proc/consoles"
        };
        let keep = format!("keep {kept} {}\n", profile::SYMBOLS);
        // Programs of BPF have symbols as long as they are loaded.
        let keeps_early = self.lab.profile && uses_bpf(cells);
        for (number, cell) in (1..).zip(cells) {
            let plan = plan(cell, self.seed)?;
            let (run, take_down) = plan.steps.split_at(plan.take_down);
            steps += run;
            if keeps_early && number == cells.len() {
                steps += &keep;
            }
            steps += take_down;
            for (path, text) in plan.files {
                image.file(&path, text.into_bytes());
            }
        }
        if !keeps_early {
            steps += &keep;
        }
        image.file("plan", steps.into_bytes());
        Ok(())
    }

    /// Adds ethtool where a host has offloads.
    ///
    /// # Errors
    /// If a host's program is none of the guest's.
    fn add_programs(&self, image: &mut Image, cells: &[Cell]) -> Result<(), Error> {
        let base = &self.parts.base;
        if cells.iter().any(|cell| !cell.offloads.is_empty()) {
            let lab = self.lab;
            let root = packages::root(&lab.cache, &ETHTOOL, lab.refresh, self.progress)?;
            add_ethtool(image, base, &root)?;
        }
        for program in cells.iter().flat_map(|cell| &cell.host_programs) {
            let name = program.args.first().map_or("", String::as_str);
            if name != host_command::NAME && !base.has_program(name) && !image.has_program(name) {
                return Err(Error::NoProgram {
                    place: program.place.clone(),
                    name: name.to_owned(),
                });
            }
        }
        Ok(())
    }
}
