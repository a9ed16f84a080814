// SPDX-License-Identifier: MIT OR Apache-2.0
//! The pages of the results and their index: what is written for a recorded run, and that the
//! committed pages are what would be written.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use lab_run::catalogue;
use lab_run::reference_figures::{Paper, Row, human};
use lab_run::results_index;
use lab_run::results_page::{FIGURES, Page};
use lab_run::verdict::Findings;
use scenario::Options;
use scenario::result::RunResult;

/// Compares with the committed file. After an intended change, run once with `BLESS=1` and read
/// what changed.
fn is_as_it_was(path: &Path, text: &str) {
    if std::env::var_os("BLESS").is_some() {
        fs::write(path, text).unwrap();
    }
    let kept = fs::read_to_string(path).unwrap_or_default();
    assert_eq!(kept, text, "{}", path.display());
}

#[test]
fn a_recorded_run_makes_its_page_and_its_line() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let paper = Paper::read(&golden.join("paper.toml")).unwrap();
    let result = fs::read_to_string(golden.join("result.json")).unwrap();
    let result = RunResult::from_json(&result).unwrap();
    let mut page = Page::new("tiny", &paper);
    let mut findings = Findings::default();
    let rows = paper.compare(&result);
    page.run(&result, &rows, &["tiny.svg".to_owned()]);
    findings.add_bounds(&result);
    findings.figures.extend(rows.iter().filter_map(Row::judged));
    let line = results_index::line("tiny", &paper, &rows, &findings);
    is_as_it_was(&golden.join("tiny.md"), &page.text);
    is_as_it_was(
        &golden.join("README.md"),
        &results_index::page(false, &[line]),
    );
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

fn results() -> PathBuf {
    root().join("docs/results")
}

/// Returns the names and folders of `experiments/`.
fn experiments() -> Vec<(String, PathBuf)> {
    let folders = fs::read_dir(root().join("experiments")).unwrap();
    let mut folders: Vec<_> = folders
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.path().is_dir())
        .map(|entry| (entry.file_name().into_string().unwrap(), entry.path()))
        .collect();
    folders.sort();
    folders
}

/// Makes a run without cells.
fn empty_run(scenario: &str) -> RunResult {
    RunResult {
        scenario: scenario.into(),
        ..RunResult::default()
    }
}

/// Reads a value as [`human`] writes it.
fn number(text: &str) -> Option<f64> {
    let (value, unit) = text.split_once(' ').unwrap_or((text, ""));
    let value: f64 = value.parse().ok()?;
    Some(match unit {
        "Mbit/s" => value * 1e6,
        "kbit/s" => value * 1e3,
        "ms" => value * 1e3,
        _ => value,
    })
}

/// Returns the cells of a Markdown row.
fn cells(line: &str) -> Vec<&str> {
    let line = line.strip_prefix("| ").unwrap_or(line);
    line.trim_end_matches(" |").split(" | ").collect()
}

/// Returns the sections of a page behind its head, with their titles.
fn sections(page: &str) -> Vec<(&str, &str)> {
    let parts = page.split("\n## ").skip(1);
    parts
        .map(|part| part.split_once('\n').expect("a section has a body"))
        .collect()
}

/// Returns the rows of the source's figures in a section, each with our value. Checks that they
/// are those of `paper.toml`.
fn rows_of(body: &str, paper: &Paper, scenario: &str, name: &str) -> Vec<Row> {
    let mut rows = paper.compare(&empty_run(scenario));
    let table = body
        .split("| cell | flow | metric | paper | ours |\n")
        .nth(1);
    let lines = table.unwrap_or_default().lines().skip(1);
    let lines: Vec<&str> = lines.take_while(|line| line.starts_with('|')).collect();
    assert_eq!(lines.len(), rows.len(), "{name}: rows of {scenario}");
    for (line, row) in lines.iter().zip(&mut rows) {
        let source = human(&row.metric, row.paper);
        let left = format!(
            "| {} | {} | `{}` | {source} | ",
            row.cell, row.flow, row.metric
        );
        let ours = line.strip_prefix(&left).and_then(|o| o.strip_suffix(" |"));
        let ours = ours.unwrap_or_else(|| panic!("{name}: expected {left:?}, is {line:?}"));
        row.ours = number(ours);
        row.ours = row.ours.map(|value| {
            if row.metric.starts_with("efficiency") {
                value / 100.0
            } else {
                value
            }
        });
        assert_eq!(
            row.ours.map(|v| human(&row.metric, v)).as_deref(),
            Some(ours)
        );
    }
    rows
}

/// Adds a section's bounds, cells of both engines, and stalls to the findings.
fn add_section(findings: &mut Findings, body: &str, paper: &Paper) {
    for line in body.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let count = |place: usize| words[place].parse::<usize>().unwrap();
        if let Some((_, said)) = line.rsplit_once(" · all ") {
            let all: usize = said.split(' ').next().unwrap().parse().unwrap();
            findings.bounds += all;
            findings.bounds_held += all;
        } else if line.ends_with(" bounds do not hold**") {
            let (_, said) = line.rsplit_once("**").unwrap().0.rsplit_once("**").unwrap();
            let numbers: Vec<usize> = said.split(' ').filter_map(|w| w.parse().ok()).collect();
            findings.bounds += numbers[1];
            findings.bounds_held += numbers[1] - numbers[0];
        } else if line.contains(" cells agree within ") {
            findings.engines.agree += count(0);
            findings.engines.compared += count(2);
        } else if line.contains(" judgements: ") {
            let right = line.split(" judgements: ").nth(1).unwrap();
            let right_pct = right.split(' ').next().unwrap().parse().unwrap();
            findings.stops = Some((right_pct, line.contains("which holds")));
        } else if let Some(both) = &paper.both {
            let said = *cells(line).last().unwrap_or(&"");
            let is_guess = both.why.iter().any(|w| w.is_guess && w.because == said);
            findings.engines.unexplained += usize::from(is_guess || said == "not explained");
        }
    }
}

/// The committed pages have today's form, today's text of `paper.toml`, and the verdict that
/// follows from their figures. `BLESS=1` writes text and index anew, and keeps what was
/// measured.
#[test]
fn the_committed_pages_are_what_would_be_written() {
    let mut lines = vec![];
    for (name, folder) in experiments() {
        let paper = Paper::read(&folder.join(catalogue::PAPER)).unwrap();
        let path = results().join(format!("{name}.md"));
        let page = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{name}: {e}"));
        let runs = page.find("\n## ").expect("a page has sections");
        let head = Page::new(&name, &paper).text;
        is_as_it_was(&path, &(head + &page[runs..]));

        let mut runs = vec![];
        if paper.stops.is_none() {
            for file in catalogue::files_in(&folder).unwrap() {
                let scenario = catalogue::read(&file, &Options::default()).unwrap();
                runs.push((scenario.title.clone(), Some(scenario.name)));
            }
        } else {
            runs.push(("Known and named causes".to_owned(), None));
        }
        for (_, scenario) in paper.on_both_engines() {
            let file = root().join("experiments").join(scenario);
            let file = file.join("scenario.toml");
            let scenario = catalogue::read(&file, &Options::default()).unwrap();
            runs.push((format!("{}, on both engines", scenario.title), None));
        }
        let sections = sections(&page);
        let titles: Vec<&str> = sections.iter().map(|(title, _)| *title).collect();
        let expected: Vec<&str> = runs.iter().map(|(title, _)| title.as_str()).collect();
        assert_eq!(titles, expected, "{name}: sections");

        let (mut findings, mut rows) = (Findings::default(), vec![]);
        for ((_, body), (_, scenario)) in sections.iter().zip(&runs) {
            add_section(&mut findings, body, &paper);
            if let Some(scenario) = scenario {
                rows.extend(rows_of(body, &paper, scenario, &name));
            }
        }
        findings.figures.extend(rows.iter().filter_map(Row::judged));
        lines.push(results_index::line(&name, &paper, &rows, &findings));
    }
    let index = results().join(results_index::FILE);
    is_as_it_was(&index, &results_index::page(false, &lines));
}

/// A page shows every figure beside it, and every page belongs to an experiment.
#[test]
fn every_figure_has_a_page_and_every_page_an_experiment() {
    let names: BTreeSet<String> = experiments().into_iter().map(|(name, _)| name).collect();
    let (mut shown, mut pages) = (BTreeSet::new(), BTreeSet::new());
    for name in &names {
        let page = fs::read_to_string(results().join(format!("{name}.md"))).unwrap();
        let link = format!("]({FIGURES}/");
        let figures = page.split(&link).skip(1);
        shown.extend(figures.map(|rest| rest.split(')').next().unwrap().to_owned()));
    }
    for entry in fs::read_dir(results()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        pages.extend(name.strip_suffix(".md").map(str::to_owned));
    }
    pages.remove("README");
    assert_eq!(pages, names);
    let there = fs::read_dir(results().join(FIGURES)).unwrap();
    let there = there.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert_eq!(there.collect::<BTreeSet<_>>(), shown);
}
