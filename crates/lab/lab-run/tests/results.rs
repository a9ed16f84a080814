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
use testkit::numbers::missing;

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
    let rows = paper.compare(&result, &[&result]).unwrap();
    page.run(&result, &rows, &["tiny.svg".to_owned()]);
    findings.add_bounds(&result);
    findings
        .figures
        .extend(rows.iter().filter_map(Row::verdict));
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
    let value: f64 = value.replace('−', "-").replace(',', "").parse().ok()?;
    Some(match unit {
        "Mbit/s" => value * 1e6,
        "kbit/s" => value * 1e3,
        "ms" => value * 1e3,
        _ => value,
    })
}

/// Reads a value of a metric as [`human`] writes it.
fn value(metric: &str, text: &str) -> Option<f64> {
    let is_share = metric.starts_with("efficiency") && !metric.ends_with("_over_pct");
    let value = number(text)?;
    Some(if is_share { value / 100.0 } else { value })
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
    let mut rows = paper.compare(&empty_run(scenario), &[]).unwrap();
    let table = body
        .split("| cell | flow | metric | paper | ours | verdict |\n")
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
        let right = line.strip_prefix(&left).and_then(|o| o.strip_suffix(" |"));
        let (ours, said) = right.and_then(|right| right.split_once(" | ")).unzip();
        let ours = ours.unwrap_or_else(|| panic!("{name}: expected {left:?}, is {line:?}"));
        row.ours = value(&row.metric, ours);
        // What the cells have that show the cause stands behind it.
        let cells = said.and_then(|said| said.rsplit_once(" (")?.1.strip_suffix(')'));
        let cells = cells.unwrap_or_default().split("; ");
        for ((_, shown), text) in row.shown.iter_mut().zip(cells) {
            let text = text.split_once(" with ").map_or("", |(value, _)| value);
            *shown = value(&row.metric, text);
        }
        assert_eq!(
            row.ours.map(|v| human(&row.metric, v)).as_deref(),
            Some(ours)
        );
        assert_eq!(said, Some(&*row.said()), "{name}: {line}");
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
        findings
            .figures
            .extend(rows.iter().filter_map(Row::verdict));
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

/// Returns whether a number only moves the point, as from ns to µs.
fn is_power_of_ten(number: &str) -> bool {
    let digits = number.replace(',', "");
    digits.starts_with('1') && digits[1..].chars().all(|c| c == '0')
}

/// Returns the faults of the numbers of an experiment's words: each must be on the page, among its
/// runs, in the scenarios, among the source's figures, or in `[numbers]`.
fn number_faults(paper: &Paper, measured: &str) -> Vec<String> {
    let mut faults = vec![];
    for (number, ground) in &paper.numbers {
        let parts: Vec<&str> = ground.split(' ').collect();
        let value = |text: &str| text.replace(',', "").parse::<f64>().ok();
        let [one, sign @ ("/" | "-" | "+" | "*"), other] = parts[..] else {
            if !ground.contains(char::is_alphabetic) {
                faults.push(format!("{number}: {ground:?} is no ground"));
            }
            continue;
        };
        let (Some(a), Some(b)) = (value(one), value(other)) else {
            faults.push(format!("{number}: {ground:?} is no calculation"));
            continue;
        };
        let result = match sign {
            "/" => a / b,
            "*" => a * b,
            "+" => a + b,
            _ => a - b,
        };
        faults.extend(
            missing(number, &format!("{result:.6}"))
                .into_iter()
                .map(|n| format!("{n} is {result}")),
        );
        let operands = [one, other].into_iter().filter(|o| !is_power_of_ten(o));
        let operands = missing(&operands.collect::<Vec<_>>().join(" "), measured);
        faults.extend(operands.iter().map(|n| format!("{number}: no run has {n}")));
    }
    let words = format!("{} {}", paper.differs, paper.index.ours);
    let unknown = missing(&words, measured).into_iter();
    faults.extend(unknown.filter(|n| !paper.numbers.contains_key(n)));
    faults
}

/// A sentence of an experiment names no figure that its runs no longer have.
#[test]
fn each_number_of_a_pages_words_was_measured() {
    let mut bad = vec![];
    for (name, folder) in experiments() {
        let paper = Paper::read(&folder.join(catalogue::PAPER)).unwrap();
        let page = fs::read_to_string(results().join(format!("{name}.md"))).unwrap();
        let mut measured = page[page.find("\n## ").unwrap()..].to_owned();
        for file in catalogue::files_in(&folder).unwrap() {
            measured += &fs::read_to_string(file).unwrap().replace(['"', '`'], " ");
        }
        measured += &paper.reports;
        measured += &paper.index.reports;
        for figure in &paper.figures {
            measured += &format!(" {} ", human(&figure.metric, figure.value));
        }
        let faults = number_faults(&paper, &measured);
        bad.extend(faults.iter().map(|fault| format!("{name}: {fault}")));
    }
    assert!(
        bad.is_empty(),
        "numbers that no run has:\n{}",
        bad.join("\n")
    );
}

#[test]
fn a_number_without_ground_is_found() {
    let paper = |ours: &str, numbers: &str| {
        let text = format!(
            "reports = \"r\"\ndiffers = \"d\"\n[index]\nreports = \"r\"\nours = {ours:?}\n\
             judged_by = \"bounds\"\n[numbers]\n{numbers}"
        );
        toml::from_str::<Paper>(&text).unwrap()
    };
    let measured = "| 1,050 | 1,000 |";
    for (ours, numbers, faults) in [
        ("it is 1,050", "", 0),
        ("it is 1.05 times", "\"1.05\" = \"1,050 / 1,000\"", 0),
        ("802.3", "\"802.3\" = \"the standard\"", 0),
        ("it is 1,051", "", 1),
        ("it is 1.05 times", "", 1),
        ("it is 1.06 times", "\"1.06\" = \"1,050 / 1,000\"", 1),
        ("it is 1.06 times", "\"1.06\" = \"1,060 / 1,000\"", 1),
        ("it is 7", "\"7\" = \"\"", 1),
    ] {
        let found = number_faults(&paper(ours, numbers), measured);
        assert_eq!(found.len(), faults, "{ours}: {found:?}");
    }
}

/// Returns whether this version has been released: the changes say its day.
fn is_released(changes: &str) -> bool {
    let newest = changes.split("\n## ").nth(1).unwrap_or_default();
    !newest
        .lines()
        .nth(1)
        .unwrap_or_default()
        .starts_with("Not released")
}

#[test]
fn a_release_has_a_date() {
    assert!(is_released("# C\n\n## 1.0.0\n2026-11-24.\n"));
    assert!(!is_released(
        "# C\n\n## 1.0.0\nNot released.\n\n## 0.9.0\n2026.\n"
    ));
}

/// A release has no page that is older than its code; packages that the archive has since are no
/// matter. Before, `pspacer experiments --stale` tells. It takes minutes of a processor, so `make test-all` asks.
#[test]
fn no_page_of_a_release_is_stale() {
    let changes = fs::read_to_string(root().join("CHANGELOG.md")).unwrap();
    if !testkit::everything() || !is_released(&changes) {
        return;
    }
    // Compiles the module and the guest's programs, if the cache has none.
    let ages = lab_run::experiments::ages(None, &vmlab::Quiet).unwrap();
    let stale = ages.iter().filter(|age| age.is_older_than_code());
    let stale: Vec<_> = stale
        .map(|age| format!("{}: {}", age.name, age.changed.join(", ")))
        .collect();
    assert!(
        stale.is_empty(),
        "older than the code:\n{}",
        stale.join("\n")
    );
}
