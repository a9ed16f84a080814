// SPDX-License-Identifier: MIT OR Apache-2.0
//! The page of one experiment.

use std::fmt::Write as _;

use scenario::result::{Engine, RunResult};

use crate::reference_figures::{Paper, Row, human, measured};

/// The folder of the figures, beside the pages.
pub const FIGURES: &str = "figures";

/// The page of an experiment, written step by step.
pub struct Page {
    /// The text so far.
    pub text: String,
}

impl Page {
    /// Makes the page of the experiment of this name, without its runs.
    pub fn new(name: &str, paper: &Paper) -> Self {
        let text = format!(
            "<!-- SPDX-License-Identifier: MIT OR Apache-2.0 -->\n\
             # {name}\n\n\
             The [results](README.md) have the verdict, and say how to read this page.\n\n\
             **Reported.** {}\n\n**Why ours may differ.** {}\n",
            paper.reports, paper.differs
        );
        Self { text }
    }

    /// Adds a run, its figures, and the source's numbers beside ours.
    pub fn run(&mut self, result: &RunResult, rows: &[Row], figures: &[String]) {
        let _ = write!(
            self.text,
            "\n## {}\n\n{} · {} · seed {} · {}\n",
            result.title,
            result.source,
            match result.engine {
                Engine::Vmlab => format!("Linux {}", result.kernel),
                Engine::Netsim => "simulated".to_owned(),
            },
            result.seed,
            bounds(result)
        );
        for figure in figures {
            let _ = write!(self.text, "\n![{}]({FIGURES}/{figure})\n", result.title);
        }
        let _ = write!(
            self.text,
            "\n```text\n{}```\n",
            report::summary(result, draw::Style::PLAIN)
        );
        self.rows(rows);
    }

    /// Adds the table that compares a scenario on both engines.
    pub fn engines(&mut self, lab: &RunResult, table: &str) {
        let _ = write!(
            self.text,
            "\n## {}, on both engines\n\n`{}` · Linux {} and the simulator · seed {}\n{table}",
            lab.title, lab.scenario, lab.kernel, lab.seed,
        );
    }

    fn rows(&mut self, rows: &[Row]) {
        if rows.is_empty() {
            return;
        }
        self.text.push_str(
            "\n| cell | flow | metric | paper | ours | verdict |\n|---|---|---|---:|---:|---|\n",
        );
        for row in rows {
            let _ = writeln!(
                self.text,
                "| {} | {} | `{}` | {} | {} | {} |",
                row.cell,
                row.flow,
                row.metric,
                human(&row.metric, row.paper),
                measured(&row.metric, row.ours),
                row.said()
            );
        }
    }
}

fn bounds(result: &RunResult) -> String {
    let bounds = || result.cells.iter().flat_map(|c| &c.bounds);
    match (bounds().count(), bounds().filter(|b| !b.ok).count()) {
        (0, _) => "no bounds".into(),
        (n, 0) => format!("all {n} bounds hold"),
        (n, bad) => format!("**{bad} of {n} bounds do not hold**"),
    }
}
