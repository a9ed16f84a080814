// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counts how often the analysis names the known cause of a stall.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use indexmap::IndexMap;
use scenario::result::{RunResult, SeenStop, StopResult};
use serde::Deserialize;

/// The cause of a flow that does not stall.
pub const NONE: &str = "none";

/// The table `[stops]` of `paper.toml`: the folder's scenarios are run on each of these kernels,
/// and their known stalls are counted together.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wanted {
    /// Names of the kernels of the full form.
    pub kernels: Vec<String>,
    /// Names of the kernels of the short form.
    pub quick_kernels: Vec<String>,
    /// Least share of judgements that must be right, per cent.
    pub right_min_pct: f64,
}

/// Judgements, and how many of them are right.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Count {
    all: u64,
    right: u64,
    /// Judgements that name another cause, with medium or high confidence.
    wrong: u64,
    /// Judgements that name another side, with medium or high confidence ...
    side: u64,
    /// ... and those of them with high confidence.
    side_high: u64,
}

impl Count {
    fn add(&mut self, stop: &StopResult, seen: Option<&SeenStop>) {
        self.all += 1;
        if said(stop, seen) == stop.cause {
            self.right += 1;
        }
        let Some(seen) = seen else { return };
        let is_sure = seen.confidence != "low";
        self.wrong += u64::from(is_sure && said(stop, Some(seen)) != stop.cause);
        let is_other = is_sure && seen.side != stop.side && seen.side != "unknown";
        self.side += u64::from(is_other);
        self.side_high += u64::from(is_other && seen.confidence == "high");
    }

    fn right_pct(self) -> f64 {
        self.right as f64 * 100.0 / self.all.max(1) as f64
    }
}

/// Returns the cause that the analysis names: the root cause, if that is the known cause. If the
/// flow is known not to stall, a stall of low confidence counts as none.
fn said<'a>(stop: &StopResult, seen: Option<&'a SeenStop>) -> &'a str {
    match seen {
        None => NONE,
        Some(seen) if stop.cause == NONE && seen.confidence == "low" => NONE,
        Some(seen) => match &seen.root {
            Some(root) if *root == stop.cause => root,
            _ => &seen.cause,
        },
    }
}

/// The counts of all judgements.
#[derive(Debug, Default)]
pub struct Matrix {
    stops: u64,
    total: Count,
    by_capture: IndexMap<String, Count>,
    by_kernel: IndexMap<String, Count>,
    /// By known cause: the number of stalls, the judgements, and how often each cause was named.
    causes: BTreeMap<String, (u64, Count, BTreeMap<String, u64>)>,
}

impl Matrix {
    /// Adds the judgements of a run.
    pub fn add(&mut self, result: &RunResult) {
        for stop in result.cells.iter().flat_map(|cell| &cell.stops) {
            self.stops += 1;
            let (stops, count, answers) = self.causes.entry(stop.cause.clone()).or_default();
            *stops += 1;
            for (capture, seen) in &stop.seen {
                let seen = seen.as_ref();
                *answers.entry(said(stop, seen).to_owned()).or_default() += 1;
                let by_capture = self.by_capture.entry(capture.clone()).or_default();
                let by_kernel = self.by_kernel.entry(result.kernel.clone()).or_default();
                for count in [&mut *count, by_capture, by_kernel, &mut self.total] {
                    count.add(stop, seen);
                }
            }
        }
    }

    /// Returns whether enough judgements are right, and no wrong side is named with high
    /// confidence.
    pub fn is_ok(&self, wanted: &Wanted) -> bool {
        self.total.all > 0
            && self.total.right_pct() >= wanted.right_min_pct
            && self.total.side_high == 0
    }

    /// Returns the share of judgements that are right, per cent.
    pub fn right_pct(&self) -> f64 {
        self.total.right_pct()
    }

    /// Returns the section of the experiment's page.
    pub fn page(&self, wanted: &Wanted) -> String {
        let holds = if self.is_ok(wanted) {
            "holds"
        } else {
            "**does not hold**"
        };
        let mut text = format!(
            "\n## Known and named causes\n\n{} stalls, {} judgements: {:.1} % are right. \
             Required: {} % and no wrong side with high confidence, which {holds}.\n\n",
            self.stops,
            self.total.all,
            self.total.right_pct(),
            wanted.right_min_pct,
        );
        text.push_str(
            "| | judgements | right | wrong, at least medium confidence | wrong side, at least \
             medium | wrong side, high |\n|---|---:|---:|---:|---:|---:|\n",
        );
        let kernels = self
            .by_kernel
            .iter()
            .map(|(k, c)| (format!("Linux {k}"), c));
        let captures = self.by_capture.iter();
        let captures = captures.map(|(name, c)| (format!("captured at: {name}"), c));
        for (name, c) in captures
            .chain(kernels)
            .chain([("all".to_owned(), &self.total)])
        {
            let (right, pct) = (c.right, c.right_pct());
            let _ = writeln!(
                text,
                "| {name} | {} | {right} ({pct:.1} %) | {} | {} | {} |",
                c.all, c.wrong, c.side, c.side_high
            );
        }
        text.push_str(
            "\nA cause also counts as right if the tool names it as the root cause.\n\n\
             | known cause | stalls | judgements | right | named instead |\n\
             |---|---:|---:|---:|---|\n",
        );
        for (cause, (stops, count, answers)) in &self.causes {
            let mut others: Vec<_> = answers.iter().filter(|(said, _)| *said != cause).collect();
            others.sort_by_key(|(said, n)| (std::cmp::Reverse(**n), (*said).clone()));
            let others = others.iter().map(|(said, n)| format!("`{said}` {n}"));
            let others: Vec<_> = others.collect();
            let _ = writeln!(
                text,
                "| `{cause}` | {stops} | {} | {} ({:.1} %) | {} |",
                count.all,
                count.right,
                count.right_pct(),
                others.join(", ")
            );
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use scenario::result::CellResult;

    fn seen(cause: &str, side: &str, confidence: &str) -> Option<SeenStop> {
        Some(SeenStop {
            cause: cause.into(),
            root: None,
            side: side.into(),
            confidence: confidence.into(),
            start_s: 1.0,
            duration_s: 0.2,
        })
    }

    fn stop(cause: &str, side: &str, seen: [Option<SeenStop>; 2]) -> StopResult {
        let places = ["sender", "receiver"].map(str::to_owned);
        StopResult {
            flow: "f".into(),
            cause: cause.into(),
            side: side.into(),
            from_s: 1.0,
            to_s: 1.2,
            seen: places.into_iter().zip(seen).collect(),
        }
    }

    fn matrix(stops: Vec<StopResult>) -> Matrix {
        let cell = CellResult {
            stops,
            ..CellResult::default()
        };
        let mut matrix = Matrix::default();
        matrix.add(&RunResult {
            scenario: "s".into(),
            kernel: "6.1.0".into(),
            cells: vec![cell],
            ..RunResult::default()
        });
        matrix
    }

    fn wanted(right_min_pct: f64) -> Wanted {
        Wanted {
            kernels: vec![],
            quick_kernels: vec![],
            right_min_pct,
        }
    }

    #[test]
    fn answers_are_counted_by_cause_and_place() {
        let mut behind = seen("rto-other", "network", "low");
        if let Some(seen) = &mut behind {
            seen.root = Some("policer".into());
        }
        let matrix = matrix(vec![
            stop("policer", "network", [behind, None]),
            stop(
                "rto-tail",
                "network",
                [
                    seen("rto-tail", "network", "high"),
                    seen("application", "sender", "low"),
                ],
            ),
            stop("none", "none", [None, seen("unknown", "unknown", "low")]),
        ]);
        assert!(matrix.is_ok(&wanted(66.0)));
        assert!(!matrix.is_ok(&wanted(67.0)));
        let page = matrix.page(&wanted(67.0));
        for line in [
            "3 stalls, 6 judgements: 66.7 % are right",
            "**does not hold**",
            "| captured at: sender | 3 | 3 (100.0 %) | 0 | 0 | 0 |",
            "| captured at: receiver | 3 | 1 (33.3 %) | 0 | 0 | 0 |",
            "| Linux 6.1.0 | 6 | 4 (66.7 %) | 0 | 0 | 0 |",
            "| `policer` | 1 | 2 | 1 (50.0 %) | `none` 1 |",
            "| `rto-tail` | 1 | 2 | 1 (50.0 %) | `application` 1 |",
            "| `none` | 1 | 2 | 2 (100.0 %) |  |",
        ] {
            assert!(page.contains(line), "{line}\n{page}");
        }
    }

    #[test]
    fn one_wrong_side_with_high_confidence_fails_the_matrix() {
        let right = || seen("rto-tail", "network", "high");
        let mut stops: Vec<_> = (0..99)
            .map(|_| stop("rto-tail", "network", [right(), right()]))
            .collect();
        assert!(matrix(stops.clone()).is_ok(&wanted(95.0)));
        let wrong = seen("application", "sender", "high");
        stops.push(stop("rto-tail", "network", [right(), wrong]));
        assert!(!matrix(stops).is_ok(&wanted(95.0)));
    }
}
