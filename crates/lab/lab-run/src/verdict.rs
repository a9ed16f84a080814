// SPDX-License-Identifier: MIT OR Apache-2.0
//! The verdict on an experiment: computed from its figures, bounds, stalls or
//! engines, or written by a person in `paper.toml`.

use std::fmt;

use anyhow::{Result, ensure};
use scenario::result::RunResult;
use serde::Deserialize;

use crate::engine_agreement::Agreement;

/// Our result beside the source's.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Our result meets what the comparison with the source asks for, or the goal holds.
    Reached,
    /// Our result is better in the source's own measure.
    Better,
    /// Our result differs, and cells that bracket the source's, or are nearer by half, show why.
    Explained,
    /// Our result is not the source's, and no cell shows why.
    Differs,
    /// Our result falls short of what is asked for, and no cell shows why.
    Missed,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Reached => "reached",
            Self::Better => "better",
            Self::Explained => "explained",
            Self::Differs => "differs",
            Self::Missed => "missed",
        })
    }
}

/// What a verdict is computed from.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum JudgedBy {
    /// The source's figures that state how they are judged.
    Figures,
    /// The bounds of the scenarios.
    Bounds,
    /// The stalls whose cause is known.
    Stops,
    /// The cells that run on both engines.
    Engines,
}

/// How one figure of the source is judged.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Judge {
    /// Our value must be within the tolerance of the source's.
    Near,
    /// Our value must not exceed the source's.
    AtMost,
    /// Our value must not be below the source's.
    AtLeast,
    /// Less is better: our value must be near the source's, or further below it.
    Less,
    /// More is better: our value must be near the source's, or further above it.
    More,
}

impl Judge {
    /// Judges our value beside the source's.
    pub fn of(self, source: f64, ours: f64, tolerance: f64) -> Verdict {
        let is_near = (ours - source).abs() <= tolerance;
        let (is_ok, is_better) = match self {
            Self::Near => (is_near, false),
            Self::AtMost => (ours <= source, false),
            Self::AtLeast => (ours >= source, false),
            Self::Less => (is_near, ours < source - tolerance),
            Self::More => (is_near, ours > source + tolerance),
        };
        match (is_better, is_ok) {
            (true, _) => Verdict::Better,
            (false, true) => Verdict::Reached,
            (false, false) if self == Self::Near => Verdict::Differs,
            (false, false) => Verdict::Missed,
        }
    }
}

/// `[index]` of `paper.toml`: the experiment's line in the index.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Index {
    /// What the source reports, in one line.
    pub reports: String,
    /// What we measured, in one line; `{NAME}` is our value of the figure of this name.
    pub ours: String,
    /// What the verdict is computed from ...
    pub judged_by: Option<JudgedBy>,
    /// ... and how far our value of a figure may be from the source's, per cent of the source's.
    pub within_pct: Option<f64>,
    /// The verdict of a person, where none can be computed ...
    pub verdict: Option<Verdict>,
    /// ... and the ground of that verdict.
    pub by: Option<String>,
}

impl Index {
    /// Refuses an index line whose verdict has no ground, or two.
    ///
    /// # Errors
    /// Names the key that is missing or superfluous.
    pub fn check(&self, has_figures: bool) -> Result<()> {
        let is_computed = self.judged_by.is_some();
        ensure!(
            is_computed != self.verdict.is_some(),
            "[index]: expected either `judged_by` or `verdict`"
        );
        ensure!(
            self.verdict != Some(Verdict::Explained),
            "[index] `verdict`: \"explained\" is computed; expected a [[figure]] with `because` and `cells`"
        );
        ensure!(
            self.verdict.is_some() == self.by.is_some(),
            "[index] `by`: expected with `verdict`, and only there"
        );
        let is_by_figures = self.judged_by == Some(JudgedBy::Figures);
        ensure!(
            is_by_figures == has_figures,
            "[index] `judged_by`: expected \"figures\" exactly where there is a [[figure]]"
        );
        ensure!(
            is_by_figures == self.within_pct.is_some(),
            "[index] `within_pct`: expected with judged_by = \"figures\", and only there"
        );
        for line in [&self.reports, &self.ours] {
            ensure!(
                !line.contains(['\n', '|']),
                "[index]: expected one line without \"|\", is {line:?}"
            );
        }
        Ok(())
    }
}

/// The findings of an experiment's runs that a verdict can be computed from.
#[derive(Debug, Default)]
pub struct Findings {
    /// Number of bounds, ...
    pub bounds: usize,
    /// ... and how many of them hold.
    pub bounds_held: usize,
    /// The verdicts on the figures that are judged.
    pub figures: Vec<Verdict>,
    /// The agreement of the cells that run on both engines.
    pub engines: Agreement,
    /// Stalls: the share of right judgements, per cent, and whether that is enough.
    pub stops: Option<(f64, bool)>,
}

impl Findings {
    pub fn add_bounds(&mut self, result: &RunResult) {
        let bounds = || result.cells.iter().flat_map(|cell| &cell.bounds);
        self.bounds += bounds().count();
        self.bounds_held += bounds().filter(|bound| bound.ok).count();
    }

    /// Returns the verdict and its ground; `None` if nothing that decides it was measured.
    pub fn verdict(&self, index: &Index) -> (Option<Verdict>, String) {
        let (bounds, held) = (self.bounds, self.bounds_held);
        if held < bounds {
            let by = format!("{} of {bounds} bounds do not hold", bounds - held);
            return (Some(Verdict::Missed), by);
        }
        let computed = match index.judged_by {
            None => index.verdict.zip(index.by.clone()),
            Some(JudgedBy::Figures) => self.by_figures(index),
            Some(JudgedBy::Bounds) if bounds == 0 => None,
            Some(JudgedBy::Bounds) => Some((Verdict::Reached, format!("all {bounds} bounds hold"))),
            Some(JudgedBy::Stops) => self.stops.map(|(right_pct, is_enough)| {
                let verdict = if is_enough {
                    Verdict::Reached
                } else {
                    Verdict::Missed
                };
                (
                    verdict,
                    format!("{right_pct:.1} % of the judgements are right"),
                )
            }),
            Some(JudgedBy::Engines) => self.by_engines(),
        };
        match computed {
            Some((verdict, by)) => (Some(verdict), by),
            None => (None, "not measured in this form".into()),
        }
    }

    fn by_figures(&self, index: &Index) -> Option<(Verdict, String)> {
        let within_pct = index.within_pct.unwrap_or_default();
        let all = self.figures.len();
        let count = |which| self.figures.iter().filter(|v| **v == which).count();
        let counted = [
            Verdict::Missed,
            Verdict::Differs,
            Verdict::Explained,
            Verdict::Better,
        ];
        let [missed, differ, explained, better] = counted.map(count);
        let others = |words: &[(usize, &str)]| {
            let some = words.iter().filter(|(n, _)| *n > 0);
            some.fold(String::new(), |text, (n, word)| {
                text + &format!("; {n} {word}")
            })
        };
        let differing = (differ, "differ, and no cell shows why");
        let rest = (explained, "are explained by cells");
        Some(match (missed, differ, explained, better) {
            _ if all == 0 => return None,
            (1.., ..) => (
                Verdict::Missed,
                format!("by {missed} of {all} figures{}", others(&[differing, rest])),
            ),
            (0, 1.., ..) => (
                Verdict::Differs,
                format!(
                    "{differ} of {all} figures, and no cell shows why{}",
                    others(&[rest])
                ),
            ),
            (0, 0, 1.., _) => (
                Verdict::Explained,
                format!("{explained} of {all} figures differ, and cells show why"),
            ),
            (0, 0, 0, 0) => (
                Verdict::Reached,
                format!("by all {all} figures, to {within_pct} %"),
            ),
            (0, 0, 0, _) => (
                Verdict::Better,
                format!("by {better} of {all} figures; the others are reached"),
            ),
        })
    }

    fn by_engines(&self) -> Option<(Verdict, String)> {
        let Agreement {
            compared,
            agree,
            unexplained,
        } = self.engines;
        let differ = compared - agree;
        let verdict = match (differ, unexplained) {
            _ if compared == 0 => return None,
            (0, _) => Verdict::Reached,
            (_, 0) => Verdict::Explained,
            _ => Verdict::Missed,
        };
        let mut by = format!("{agree} of {compared} cells agree");
        if differ > 0 {
            by += &format!("; {unexplained} differ for a reason that no experiment shows");
        }
        Some((verdict, by))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(text: &str) -> Index {
        toml::from_str(&format!("reports = \"r\"\nours = \"o\"\n{text}")).unwrap()
    }

    fn figures(all: &[Verdict]) -> Findings {
        Findings {
            figures: all.to_vec(),
            ..Findings::default()
        }
    }

    #[test]
    fn a_figure_is_judged_by_its_own_rule() {
        for (judge, source, ours, verdict) in [
            (Judge::Near, 100.0, 105.0, Verdict::Reached),
            (Judge::Near, 100.0, 94.9, Verdict::Differs),
            (Judge::Near, 0.0, 0.1, Verdict::Differs),
            (Judge::AtMost, 100.0, 0.0, Verdict::Reached),
            (Judge::AtMost, 100.0, 100.1, Verdict::Missed),
            (Judge::AtLeast, 100.0, 200.0, Verdict::Reached),
            (Judge::AtLeast, 100.0, 99.9, Verdict::Missed),
            (Judge::Less, 100.0, 94.0, Verdict::Better),
            (Judge::Less, 100.0, 104.0, Verdict::Reached),
            (Judge::Less, 100.0, 106.0, Verdict::Missed),
            (Judge::More, 100.0, 106.0, Verdict::Better),
            (Judge::More, 100.0, 96.0, Verdict::Reached),
            (Judge::More, 100.0, 94.0, Verdict::Missed),
        ] {
            assert_eq!(
                judge.of(source, ours, source / 20.0),
                verdict,
                "{judge:?} {source} {ours}"
            );
        }
    }

    #[test]
    fn one_missed_figure_outweighs_better_ones_unless_it_is_explained() {
        use Verdict::{Better, Differs, Explained, Missed, Reached};
        let index = index("judged_by = \"figures\"\nwithin_pct = 5\n");
        for (all, verdict) in [
            (&[Reached][..], Some(Reached)),
            (&[Reached, Better], Some(Better)),
            (&[Missed, Better], Some(Missed)),
            (&[Explained, Better], Some(Explained)),
            (&[Explained, Missed], Some(Missed)),
            (&[Explained, Differs], Some(Differs)),
            (&[Differs, Missed], Some(Missed)),
            (&[], None),
        ] {
            assert_eq!(figures(all).verdict(&index).0, verdict, "{all:?}");
        }
    }

    #[test]
    fn a_failed_bound_is_missed_whatever_a_person_writes() {
        let by_hand = index("verdict = \"better\"\nby = \"eye\"");
        let mut findings = Findings {
            bounds: 2,
            bounds_held: 2,
            ..Findings::default()
        };
        let reached = (Some(Verdict::Better), "eye".to_owned());
        assert_eq!(findings.verdict(&by_hand), reached);
        findings.bounds_held = 1;
        let missed = (
            Some(Verdict::Missed),
            "1 of 2 bounds do not hold".to_owned(),
        );
        assert_eq!(findings.verdict(&by_hand), missed);
    }

    #[test]
    fn engines_that_differ_by_a_guessed_reason_are_missed() {
        let by_engines = index("judged_by = \"engines\"");
        for (agree, unexplained, verdict) in [
            (0, 0, Verdict::Explained),
            (3, 0, Verdict::Reached),
            (1, 1, Verdict::Missed),
        ] {
            let engines = Agreement {
                compared: 3,
                agree,
                unexplained,
            };
            let findings = Findings {
                engines,
                ..Findings::default()
            };
            assert_eq!(findings.verdict(&by_engines).0, Some(verdict));
        }
        assert_eq!(Findings::default().verdict(&by_engines).0, None);
    }

    #[test]
    fn a_verdict_has_one_basis() {
        for (text, has_judged, is_fine) in [
            ("judged_by = \"bounds\"", false, true),
            ("verdict = \"missed\"\nby = \"eye\"", false, true),
            ("judged_by = \"figures\"\nwithin_pct = 5", true, true),
            ("", false, false),
            ("verdict = \"missed\"", false, false),
            ("verdict = \"missed\"\nby = \"eye\"", true, false),
            (
                "judged_by = \"bounds\"\nverdict = \"missed\"\nby = \"eye\"",
                false,
                false,
            ),
            ("judged_by = \"figures\"\nwithin_pct = 5", false, false),
            ("judged_by = \"figures\"", true, false),
            (
                "verdict = \"explained\"\nby = \"the slot decides\"",
                false,
                false,
            ),
        ] {
            assert_eq!(index(text).check(has_judged).is_ok(), is_fine, "{text}");
        }
    }

    #[test]
    fn a_verdict_is_one_of_four_words() {
        let read = |word: &str| {
            let text = format!("reports = \"r\"\nours = \"o\"\nverdict = {word:?}\nby = \"eye\"");
            toml::from_str::<Index>(&text).map(|index| index.verdict)
        };
        for word in ["reached", "better", "explained", "missed"] {
            let verdict = read(word).unwrap().unwrap();
            assert_eq!(verdict.to_string(), word);
        }
        let refused = read("good").unwrap_err().to_string();
        assert!(refused.contains("expected one of"), "{refused}");
    }
}
