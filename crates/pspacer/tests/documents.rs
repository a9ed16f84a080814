// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks documents: every relative link leads to a file and an anchor that exist, every path
//! that the map of the source and the recipes name exists, each subcommand has its row in the map,
//! and what the table of claims names exists.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

use crate::common::root;
use crate::map::{MAP, map_rows};
use testkit::{has, numbers};

const RECIPES: &str = "CONTRIBUTING.md";
const CLAIMS: &str = "docs/contribute/claims.md";

/// Returns every Markdown file of the source tree. Built files are left out, and so are golden
/// files, whose links are those of the page that they copy.
fn documents() -> Vec<PathBuf> {
    fn below(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            let no_page = ["target", "out", "build", "golden"].contains(&name.as_str());
            if path.is_dir() && !no_page && !name.starts_with('.') {
                below(&path, found);
            } else if path.extension().is_some_and(|e| e == "md") {
                found.push(path);
            }
        }
    }
    let mut found = vec![];
    below(&root(), &mut found);
    found.sort();
    assert!(found.len() > 20, "only {} documents found", found.len());
    found
}

/// Returns the lines of a document without fenced and indented blocks, and without code spans
/// if `keep_spans` is false.
fn prose(text: &str, keep_spans: bool) -> Vec<(usize, String)> {
    let mut fenced = false;
    let mut lines = vec![];
    for (number, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if !fenced && !line.starts_with("    ") {
            let line = if keep_spans {
                line.to_owned()
            } else {
                line.split('`').step_by(2).collect::<Vec<_>>().join("`")
            };
            lines.push((number + 1, line));
        }
    }
    lines
}

/// Returns the targets of a line's links.
fn targets(line: &str) -> Vec<&str> {
    line.split("](")
        .skip(1)
        .filter_map(|rest| rest.split(')').next())
        .collect()
}

/// Returns the anchor that web pages for sources give a heading.
fn anchor(heading: &str) -> String {
    let mut shown = String::new();
    let mut rest = heading;
    while let Some((before, link)) = rest.split_once('[') {
        shown += before;
        let Some((text, after)) = link.split_once("](") else {
            shown += link;
            rest = "";
            break;
        };
        shown += text;
        rest = after.split_once(')').map_or("", |(_, after)| after);
    }
    shown += rest;
    shown
        .trim()
        .to_lowercase()
        .chars()
        .filter_map(|c| match c {
            ' ' => Some('-'),
            '-' | '_' => Some(c),
            c if c.is_alphanumeric() => Some(c),
            _ => None,
        })
        .collect()
}

fn anchors(text: &str) -> BTreeSet<String> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut all = BTreeSet::new();
    for (_, line) in prose(text, true) {
        let title = line.trim_start_matches('#');
        if title.len() == line.len() || !title.starts_with(' ') {
            continue;
        }
        let base = anchor(title);
        let times = seen.entry(base.clone()).or_default();
        all.insert(match *times {
            0 => base,
            n => format!("{base}-{n}"),
        });
        *times += 1;
    }
    all
}

/// Returns a path without `..`: `a/b/../c` is `a/c`.
fn plain(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        if part == Component::ParentDir {
            out.pop();
        } else {
            out.push(part);
        }
    }
    out
}

/// Returns the faults of the links of a document with this text at this path.
fn broken_links(path: &Path, text: &str) -> Vec<String> {
    let mut bad = vec![];
    for (number, line) in prose(text, false) {
        for target in targets(&line) {
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            let (file, wanted) = target.split_once('#').unwrap_or((target, ""));
            let file = match file {
                "" => path.to_path_buf(),
                file => plain(&path.parent().unwrap().join(file)),
            };
            let shown = path.strip_prefix(root()).unwrap_or(path).display();
            let at = format!("{shown}:{number}");
            if !file.exists() {
                bad.push(format!("{at}: {target}: expected a file, found none"));
            } else if !wanted.is_empty() {
                let there = if file == path {
                    text.to_owned()
                } else {
                    fs::read_to_string(&file).unwrap_or_default()
                };
                if !anchors(&there).contains(wanted) {
                    bad.push(format!("{at}: {target}: expected a heading, found none"));
                }
            }
        }
    }
    bad
}

/// Returns the code spans of a document that name a file or folder of the source tree.
fn named_paths(text: &str) -> Vec<String> {
    let tops: BTreeSet<String> = fs::read_dir(root())
        .unwrap()
        .map(|e| e.unwrap().file_name().to_string_lossy().into_owned())
        // The folders of what is built may not exist yet.
        .filter(|top| !["build", "out", "target"].contains(&top.as_str()))
        .collect();
    let mut found = vec![];
    for (_, line) in prose(text, true) {
        for span in line.split('`').skip(1).step_by(2) {
            let Some((top, _)) = span.split_once('/') else {
                continue;
            };
            let pattern = |c: char| c.is_whitespace() || "*<>{}$:=".contains(c);
            let example = span.contains("NAME") || span.contains(pattern);
            if tops.contains(top) && !example {
                found.push(span.to_owned());
            }
        }
    }
    found
}

fn report(what: &str, bad: &[String]) {
    assert!(bad.is_empty(), "{what}:\n  {}", bad.join("\n  "));
}

#[test]
fn every_link_leads_somewhere() {
    let mut bad = vec![];
    let mut links = 0;
    for path in documents() {
        let text = fs::read_to_string(&path).unwrap();
        links += prose(&text, false)
            .iter()
            .map(|(_, line)| targets(line).len())
            .sum::<usize>();
        bad.extend(broken_links(&path, &text));
    }
    assert!(links > 200, "only {links} links found");
    report("links", &bad);
}

#[test]
fn a_link_to_nowhere_is_found() {
    let page = root().join("docs/use/quickstart.md");
    let text = "# A\n[1](nowhere.md) [2](#a) [3](#b) `[4](code.md)`\n[5](../README.md#no-such-heading)\n```\n[6](fenced.md)\n```\n";
    let bad = broken_links(&page, text);
    assert_eq!(bad.len(), 3, "{bad:?}");
    has(&bad[0], ["nowhere.md"]);
    has(&bad[1], ["#b"]);
    has(&bad[2], ["no-such-heading"]);
    assert_eq!(
        anchor("`--full`: the [record](x.md)'s form"),
        "--full-the-records-form"
    );
}

#[test]
fn the_map_and_the_recipes_name_what_is_there() {
    let mut bad = vec![];
    for name in [MAP, RECIPES] {
        let text = fs::read_to_string(root().join(name)).unwrap();
        let paths = named_paths(&text);
        assert!(paths.len() > 10, "{name} names only {} paths", paths.len());
        bad.extend(
            paths
                .iter()
                .filter(|path| !root().join(path).exists())
                .map(|path| format!("{name}: `{path}`: expected a file or folder, found none")),
        );
    }
    report("paths", &bad);
}

#[test]
fn every_subcommand_has_its_row_in_the_map() {
    let map = fs::read_to_string(root().join(MAP)).unwrap();
    let help = Command::new(env!("CARGO_BIN_EXE_pspacer"))
        .arg("--help")
        .output()
        .unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    // A group ends with a colon; below it each subcommand has a line that begins with two
    // blanks.
    let options = help.split("\nOptions:").next().unwrap();
    let names: Vec<_> = options
        .lines()
        .filter(|l| l.starts_with("  ") && !l.starts_with("   "))
        .filter_map(|l| l.split_whitespace().next())
        .filter(|name| *name != "help")
        .collect();
    assert!(names.len() > 8, "only {names:?} found in\n{help}");
    let bad: Vec<_> = names
        .iter()
        .filter(|name| !map.lines().any(|l| l.starts_with(&format!("| `{name}"))))
        .map(|name| format!("{MAP}: expected a row that begins with `{name}`"))
        .collect();
    report("subcommands", &bad);
}

/// Returns the folder of a crate, as the map has it; one that does not exist if it has none.
fn folder_of(name: &str) -> PathBuf {
    let row = map_rows().into_iter().find(|(of, _)| of == name);
    let folder = row.map_or_else(|| name.to_owned(), |(_, row)| row.folder);
    root().join("crates").join(folder)
}

/// Returns what a command of the table of claims needs and is not there; `None` if all is.
fn missing(command: &str) -> Option<String> {
    let words: Vec<&str> = command.split(' ').collect();
    let needs = match words[..] {
        ["pspacer", "experiments", "--full", "--only", name] => {
            root().join("experiments").join(name).join("paper.toml")
        }
        ["cargo", "test", "-p", name, module] | ["cargo", "test", "-p", name, "--test", module] => {
            let file = module.trim_end_matches("::");
            folder_of(name).join(format!("tests/{file}.rs"))
        }
        ["make", target] => {
            let makefile = fs::read_to_string(root().join("Makefile")).unwrap();
            let rule = format!("{target}:");
            let is_there = makefile.lines().any(|line| line.starts_with(&rule));
            return (!is_there).then(|| format!("no target {target} in Makefile"));
        }
        _ => return Some("expected an experiment, a make target or a test".to_owned()),
    };
    (!needs.exists()).then(|| format!("no {}", needs.display()))
}

/// Returns the faults of a table of claims, and the number of its rows.
fn claims_faults(text: &str) -> (Vec<String>, usize) {
    let rows = text.lines().filter(|line| line.starts_with("| "));
    let mut bad = vec![];
    let mut count = 0;
    for row in rows.skip(1) {
        count += 1;
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        let [_, document, command, figures] = cells[..] else {
            bad.push(format!("{row}: expected four cells"));
            continue;
        };
        let bare = |cell: &str| cell.trim_matches('`').to_owned();
        for path in [document, figures].map(bare) {
            if !root().join(&path).is_file() {
                bad.push(format!("{row}: no file {path}"));
            }
        }
        bad.extend(missing(&bare(command)).map(|fault| format!("{row}: {fault}")));
        if figures.contains("docs/results/") {
            let page = fs::read_to_string(root().join(bare(figures))).unwrap_or_default();
            let gone = numbers::missing(row.split(" | ").next().unwrap_or_default(), &page);
            bad.extend(
                gone.iter()
                    .map(|number| format!("{row}: no {number} there")),
            );
        }
    }
    (bad, count)
}

/// Returns the paragraphs, items and rows of a document.
fn items(text: &str) -> Vec<String> {
    let mut items = vec![String::new()];
    let mut next = 0;
    for (number, line) in prose(text, true) {
        let start = line.trim_start();
        let is_new = start.is_empty() || start.starts_with("- ") || start.starts_with("| ");
        // A block of code is between two items, too.
        if is_new || number != next {
            items.push(String::new());
        }
        let last = items.last_mut().unwrap();
        last.push_str(&line);
        last.push(' ');
        next = number + 1;
    }
    items
}

/// Returns the numbers of an item that no page of the results has which it names, with the
/// item's begin. `page` returns a page by its name.
fn numbers_gone(item: &str, page: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let words = item.split(|c: char| c.is_whitespace() || "()".contains(c));
    let of = |word: &str| {
        let (_, name) = word.rsplit_once("results/")?;
        let name = name.split(".md").next()?;
        page(name).filter(|_| name != "README")
    };
    let pages: Vec<String> = words.filter_map(of).collect();
    if pages.is_empty() {
        return vec![];
    }
    let gone = numbers::missing(item, &pages.concat()).into_iter();
    let begin: String = item.trim().chars().take(60).collect();
    gone.map(|number| format!("{begin}...: no {number}"))
        .collect()
}

/// What a document or a letter to the kernel's reviewers says beside a page of the results, that
/// page still has.
#[test]
fn no_document_names_a_figure_that_its_page_no_longer_has() {
    let mut bad = vec![];
    let page = |name: &str| {
        let path = root().join("docs/results").join(format!("{name}.md"));
        fs::read_to_string(path).ok()
    };
    let letters = fs::read_dir(root().join("packaging/upstream/pspacer")).unwrap();
    let letters = letters.map(|entry| entry.unwrap().path());
    let letters: Vec<_> = letters
        .filter(|path| path.extension().is_some_and(|end| end == "txt"))
        .collect();
    assert!(letters.len() >= 2, "only {letters:?}");
    for path in documents().into_iter().chain(letters) {
        if path.starts_with(plain(&root().join("docs/results"))) {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        for item in items(&text) {
            let gone = numbers_gone(&item, page).into_iter();
            bad.extend(gone.map(|fault| format!("{}: {fault}", path.display())));
        }
    }
    report("figures that are gone", &bad);
}

#[test]
fn a_figure_that_is_gone_is_found() {
    let page = |name: &str| (name == "a").then(|| "| 478.2 | 1,000 |".to_owned());
    for (item, gone) in [
        ("It carries 478 ([a](docs/results/a.md)).", 0),
        ("It carries 479 ([a](docs/results/a.md)).", 1),
        ("It carries 479 and 12 ([a](../results/a.md#x)).", 2),
        ("It carries 479 ([a](docs/results/README.md)).", 0),
        ("It carries 479 ([a](docs/other.md)).", 0),
        ("It carries 479 (docs/results/a.md in the repository).", 1),
    ] {
        assert_eq!(numbers_gone(item, page).len(), gone, "{item}");
    }
    let items = items("a\nb\n\n- c\n  d\n- e\n");
    let items: Vec<&str> = items.iter().map(|item| item.trim()).collect();
    assert_eq!(items, ["", "a b", "", "- c   d", "- e"]);
}

#[test]
fn every_claim_has_its_command_and_its_figures() {
    let text = fs::read_to_string(root().join(CLAIMS)).unwrap();
    let (bad, count) = claims_faults(&text);
    assert!(count > 20, "only {count} claims found");
    report("claims", &bad);
}

#[test]
fn a_claim_without_ground_is_found() {
    let head = "| claim | document | command | figures |\n|---|---|---|---|\n";
    let row =
        |command: &str, figures: &str| format!("| a | `README.md` | `{command}` | `{figures}` |\n");
    let good = row("make bench", "README.md");
    let all = [
        row("pspacer experiments --full --only nowhere", "README.md"),
        row("make nothing", "README.md"),
        row("cargo test -p stall nothing::", "README.md"),
        row("look", "README.md"),
        row(
            "cargo run --release -p netsim --example hops -- nothing.toml",
            "README.md",
        ),
        row("make bench", "docs/nothing.md"),
    ];
    assert_eq!(claims_faults(&format!("{head}{good}")), (vec![], 1));
    let (bad, count) = claims_faults(&format!("{head}{}", all.concat()));
    assert_eq!((bad.len(), count), (6, 6), "{bad:?}");
}

/// Checks that a page names all of these in the form of code.
fn check_named(page: &str, ids: impl Iterator<Item = String>) {
    let text = fs::read_to_string(root().join(page)).unwrap();
    let named: BTreeSet<_> = text.split('`').skip(1).step_by(2).collect();
    let missing: Vec<_> = ids.filter(|id| !named.contains(id.as_str())).collect();
    assert!(missing.is_empty(), "{page} does not name {missing:?}");
}

/// Whoever reads the name of a rule or a cause finds it on the page of symptoms, and a rule on the page
/// of monitoring, too.
#[test]
fn pages_name_every_rule_and_every_cause() {
    let rules = || doctor::RULES.iter().map(|rule| rule.id.to_owned());
    let causes = stall::Cause::ALL.iter().map(|cause| {
        let json = serde_json::to_value(cause).unwrap();
        json.as_str().unwrap().to_owned()
    });
    check_named("docs/use/symptoms.md", rules().chain(causes));
    check_named("docs/use/monitoring.md", rules());
}
