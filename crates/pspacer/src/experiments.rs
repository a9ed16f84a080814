// SPDX-License-Identifier: MIT OR Apache-2.0
//! `pspacer experiments`: every experiment, and `results.md` from what came out.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use scenario::Options;
use scenario::result::{Engine, RunResult};

use crate::catalogue;
use crate::cells::write;
use crate::cli::Experiments;
use crate::lab;
use crate::paper::{Paper, Row, human};
use crate::runs::Finished;
use crate::sim;

/// Runs them; `false` if a bound did not hold.
pub fn main(args: &Experiments) -> Result<bool> {
    let quick = !args.form.full;
    let (runs, results) = match quick {
        true => ("quick-runs", "out/quick"),
        false => ("experiments", "docs"),
    };
    let out = Path::new("out").join(runs);
    let results = args.results.as_deref().unwrap_or(Path::new(results));
    let figures = results.join("figures");
    let lab = vmlab::Lab::find()?;
    let mut page = Page::new(quick);
    let mut ok = true;
    for folder in catalogue::folders()? {
        let name = folder
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let wanted = args.only.as_ref();
        if wanted.is_some_and(|only| !name.contains(only.as_str())) {
            continue;
        }
        let paper = Paper::read(&folder.join(catalogue::PAPER))?;
        page.experiment(&name, &paper);
        for file in catalogue::files_in(&folder)? {
            let options = Options {
                quick,
                ..Options::default()
            };
            let scenario = catalogue::read(&file, &options)?;
            eprintln!(
                "{}: {} ({} cells)",
                scenario.name,
                scenario.title,
                scenario.cells.len()
            );
            let folder = out.join(&scenario.name);
            let finished = if sim::is_needed(&scenario) {
                sim::run(&scenario, &folder, args.jobs)
            } else {
                lab::run(&lab, &scenario, &folder, args.jobs)
            };
            let finished = finished.with_context(|| format!("experiment {name}"))?;
            ok &= finished.result.ok;
            let drawn = figures_of(&finished, &figures)?;
            page.run(&finished.result, &paper, &drawn);
        }
    }
    let path = results.join("results.md");
    let mut text = page.text;
    if args.only.is_some() && path.exists() {
        let old =
            fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        text = with_sections_of(&old, &text);
    }
    fs::create_dir_all(results).with_context(|| format!("cannot make {}", results.display()))?;
    write(&path, text.as_bytes())?;
    println!("Results: {}", path.display());
    Ok(ok)
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
/// show them, under the scenario's name: a comparison of the cells and their
/// courses over time, or, of a lone cell, its bandwidth over time.
fn figures_of(finished: &Finished, figures: &Path) -> Result<Vec<String>> {
    let curves: Vec<_> = finished.curves.iter().cloned().map(Some).collect();
    let mut plots = report::run_plots(&finished.result, &curves);
    if let ([], Some(lone)) = (&plots[..], finished.curves.first()) {
        plots.extend(report::cell_plots(lone).into_iter().next());
    }
    fs::create_dir_all(figures).with_context(|| format!("cannot make {}", figures.display()))?;
    let mut names = vec![];
    for (number, plot) in plots.iter().enumerate() {
        let over_time = plot.name.starts_with("tcp") || plot.name.starts_with("closeup");
        let name = match number {
            0 => format!("{}.svg", finished.result.scenario),
            _ if over_time => format!("{}-{}", finished.result.scenario, plot.name),
            _ => continue,
        };
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
