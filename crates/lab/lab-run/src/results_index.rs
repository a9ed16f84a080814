// SPDX-License-Identifier: MIT OR Apache-2.0
//! The index of the results: one line for each experiment.

use std::fmt::Write as _;

use crate::reference_figures::{Paper, Row, human};
use crate::verdict::Findings;

/// File name of the index.
pub const FILE: &str = "README.md";

/// The begin of an experiment's line.
const LINE: &str = "| [";

const HEAD: &str = "\
<!-- SPDX-License-Identifier: MIT OR Apache-2.0 -->
# Results

Look here to see what each paper reports, what we have, and whether we reach it. Each experiment has a page with its
figures, its tables, and why ours may differ.

The verdict is one of five words:
- **reached**: ours is where the source's is, or our own goal holds;
- **better**: ours betters the source in the source's own measure;
- **explained**: ours differs, and the page names cells that show why: with ours they have the source's value between them, or one is
  nearer to it by half of the way or more;
- **differs**: ours is not the source's, and no cell shows why;
- **missed**: ours falls short of what is asked for, and no cell shows why.
";

const READING: &str = "
How to read a page:
- All runs are in virtual time, on the kernel that the page names or in the simulator.
- Rates are of the link layer (Ethernet header, no FCS) unless the scenario says otherwise.
- Gaps run from the start of a frame to the start of the next, in byte times of the line.
- A bound is what the scenario's file asks for.
";

const COLUMNS: &str = "
| experiment | the source reports | we have | verdict |
|---|---|---|---|
";

/// Returns the index line of one experiment.
pub fn line(name: &str, paper: &Paper, rows: &[Row], findings: &Findings) -> String {
    let (verdict, by) = findings.verdict(&paper.index);
    let verdict = verdict.map_or("–".to_owned(), |word| format!("**{word}**: {by}"));
    let reports = &paper.index.reports;
    let ours = with_values(&paper.index.ours, rows);
    format!("| [{name}]({name}.md) | {reports} | {ours} | {verdict} |\n")
}

/// Returns the whole index with these lines.
pub fn page(quick: bool, lines: &[String]) -> String {
    let form = if quick {
        "`make experiments-quick`, in the short form of each"
    } else {
        "`make experiments`. `pspacer experiments --stale` says which pages the code has outrun since"
    };
    let mut text = HEAD.to_owned();
    let _ = write!(
        text,
        "\nThe figures, the tables and this index are made by {form}.\n{READING}{COLUMNS}"
    );
    text + &lines.concat()
}

/// Returns `old` with these lines, which replace the lines of the same experiments or are inserted
/// by name. Everything else in `old` stays.
pub fn with_lines(old: &str, lines: &[String]) -> String {
    let is_line = |line: &&str| line.starts_with(LINE);
    let mut all: Vec<&str> = old.split_inclusive('\n').filter(is_line).collect();
    for line in lines {
        match all.iter_mut().find(|old| name_of(old) == name_of(line)) {
            Some(slot) => *slot = line,
            None => all.push(line),
        }
    }
    all.sort_by_key(|line| name_of(line));
    let start = old.find(&format!("\n{LINE}"));
    let (head, rest) = old.split_at(start.map_or(old.len(), |before| before + 1));
    let tail = rest.split_inclusive('\n').skip_while(is_line);
    head.to_owned() + &all.concat() + &tail.collect::<String>()
}

/// Returns the name of the experiment in an index line.
fn name_of(line: &str) -> &str {
    let name = line.strip_prefix(LINE).unwrap_or(line);
    name.split(']').next().unwrap_or(name)
}

/// Returns `text` with our values in the place of the figures' names.
fn with_values(text: &str, rows: &[Row]) -> String {
    let mut text = text.to_owned();
    for row in rows {
        let Some(name) = &row.name else { continue };
        let ours = row.ours;
        let ours = ours.map_or("–".to_owned(), |value| human(&row.metric, value));
        text = text.replace(&format!("{{{name}}}"), &ours);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_replaced_and_added_by_name() {
        let line = |name: &str, text: &str| format!("| [{name}]({name}.md) | {text} | | |\n");
        let old = format!(
            "{}\ntail\n",
            page(false, &[line("a", "old"), line("c", "old")])
        );
        let new = [line("b", "new"), line("c", "new")];
        let lines = [line("a", "old"), line("b", "new"), line("c", "new")];
        let both = format!("{}\ntail\n", page(false, &lines));
        assert_eq!(with_lines(&old, &new), both);
        assert_eq!(with_lines(&both, &new), both);
        assert_eq!(with_lines(&old, &[]), old);
        assert_eq!(with_lines(&page(false, &[]), &lines), page(false, &lines));
    }
}
