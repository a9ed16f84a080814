// SPDX-License-Identifier: MIT OR Apache-2.0
//! One reported stall beside the truth, and tables of many.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde::Serialize;
use stall::{Cause, Confidence, Side, StallKind};

/// A reported stall that was compared with the truth.
#[derive(Clone, Debug, Serialize)]
pub struct Judgement {
    /// Number of the connection.
    pub case: u64,
    /// What the connection is about.
    pub behaviour: String,
    /// Stack of the end whose data stalled, and of the other end.
    pub stacks: [&'static str; 2],
    pub point: String,
    /// Whether the capture point is the data's sender, its receiver or the middle.
    pub place: &'static str,
    /// What the capture leaves out.
    pub cut: &'static str,
    /// When it began and how long it lasted, on the simulation's clock.
    pub start_s: f64,
    pub duration_s: f64,
    /// Silence, slow or wait.
    pub kind: StallKind,
    /// The verdict.
    pub cause: Cause,
    /// The side of the verdict.
    pub side: Side,
    /// How sure the verdict is.
    pub confidence: Confidence,
    /// What held the data in truth, the chief mechanism first.
    pub truth: Vec<String>,
    /// Whether the verdict is right; `None` if it is "unknown".
    pub right: Option<bool>,
    /// Numbers of the packets that the verdict names.
    pub evidence: Vec<u64>,
}

impl Judgement {
    /// Returns where `--write` finds its capture.
    pub fn name(&self) -> String {
        format!("{}:{}:{}", self.case, self.point, self.cut)
    }

    /// Returns the chief mechanism.
    fn chief(&self) -> &str {
        self.truth.first().map_or("-", String::as_str)
    }
}

/// Right and wrong verdicts of one confidence.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Count {
    /// Verdicts that were right.
    pub right: u64,
    /// Verdicts that were wrong.
    pub wrong: u64,
}

impl Count {
    fn add(&mut self, is_right: bool) {
        self.right += u64::from(is_right);
        self.wrong += u64::from(!is_right);
    }

    /// Returns the number of verdicts.
    pub const fn judged(self) -> u64 {
        self.right + self.wrong
    }

    fn text(self) -> String {
        if self.judged() == 0 {
            return String::from("-");
        }
        let share = self.right as f64 * 100.0 / self.judged() as f64;
        format!("{} of {} ({share:.1} %)", self.right, self.judged())
    }
}

/// The counts of high, medium and low.
pub type Counts = BTreeMap<Confidence, Count>;

/// Shares that the issue asks for, in percent.
pub const ASKED: [(Confidence, u64); 3] = [
    (Confidence::High, 99),
    (Confidence::Medium, 85),
    (Confidence::Low, 60),
];

pub fn by<K: Ord>(all: &[Judgement], key: impl Fn(&Judgement) -> K) -> BTreeMap<K, Counts> {
    let mut counts: BTreeMap<K, Counts> = BTreeMap::new();
    for judgement in all {
        if let Some(is_right) = judgement.right {
            let count = counts.entry(key(judgement)).or_default();
            count.entry(judgement.confidence).or_default().add(is_right);
        }
    }
    counts
}

/// Returns one of those judgements that are alike: of the same connection, capture, verdict,
/// confidence and chief truth. A connection that stalls in the same way a hundred times counts
/// once.
pub fn distinct(all: &[Judgement]) -> Vec<Judgement> {
    let mut seen = BTreeSet::new();
    let key = |j: &Judgement| {
        let verdict = (j.cause as u32, j.confidence, j.right);
        (j.name(), verdict, j.chief().to_owned())
    };
    all.iter()
        .filter(|j| seen.insert(key(j)))
        .cloned()
        .collect()
}

/// Returns a table of counts by a key, as Markdown.
pub fn table(head: &str, counts: &BTreeMap<String, Counts>) -> String {
    let mut text = format!("| {head} | high | medium | low |\n|---|---|---|---|\n");
    for (key, count) in counts {
        let of = |confidence| count.get(&confidence).copied().unwrap_or_default().text();
        let [high, medium, low] = [Confidence::High, Confidence::Medium, Confidence::Low].map(of);
        let _ = writeln!(text, "| {key} | {high} | {medium} | {low} |");
    }
    text
}

/// Returns the table of all: judged, right, share, and what is asked for.
pub fn summary(all: &[Judgement]) -> String {
    let mut text =
        String::from("| confidence | judged | right | share | asked |\n|---|---|---|---|---|\n");
    let counts = by(all, |_| ()).remove(&()).unwrap_or_default();
    for (confidence, asked) in ASKED {
        let count = counts.get(&confidence).copied().unwrap_or_default();
        let share = count.right as f64 * 100.0 / (count.judged().max(1)) as f64;
        let (judged, right) = (count.judged(), count.right);
        let name = format!("{confidence:?}").to_lowercase();
        let _ = writeln!(
            text,
            "| {name} | {judged} | {right} | {share:.1} % | {asked} % |"
        );
    }
    let unknown = all.iter().filter(|j| j.right.is_none()).count();
    let _ = writeln!(
        text,
        "\n{unknown} verdicts \"unknown\" are neither right nor wrong."
    );
    text
}

/// Returns the confusion table, long form: truth, verdict, and right and wrong of each
/// confidence. The most wrong ones stand first.
pub fn confusion(all: &[Judgement]) -> String {
    let mut cells: BTreeMap<(String, String), (Counts, u64)> = BTreeMap::new();
    for judgement in all {
        let verdict = format!("{:?}", judgement.cause);
        let cell = cells
            .entry((judgement.chief().to_owned(), verdict))
            .or_default();
        match judgement.right {
            Some(is_right) => cell
                .0
                .entry(judgement.confidence)
                .or_default()
                .add(is_right),
            None => cell.1 += 1,
        }
    }
    let mut rows: Vec<_> = cells.into_iter().collect();
    let wrong = |counts: &Counts| counts.values().map(|t| t.wrong).sum::<u64>();
    rows.sort_by_key(|(_, (counts, _))| std::cmp::Reverse(wrong(counts)));
    let mut text = String::from(
        "| truth (chief) | verdict | high | medium | low | unknown |\n|---|---|---|---|---|---|\n",
    );
    for ((truth, verdict), (counts, unknown)) in rows {
        let of = |confidence| counts.get(&confidence).copied().unwrap_or_default().text();
        let [high, medium, low] = [Confidence::High, Confidence::Medium, Confidence::Low].map(of);
        let _ = writeln!(
            text,
            "| {truth} | {verdict} | {high} | {medium} | {low} | {unknown} |"
        );
    }
    text
}

/// Returns the wrong verdicts of a confidence, a line for each connection, verdict and truth: the
/// first capture in full, and how many more show the same.
pub fn wrong(all: &[Judgement], confidence: Confidence) -> String {
    let mut groups: Vec<(&Judgement, u64)> = Vec::new();
    for judgement in all {
        if judgement.right != Some(false) || judgement.confidence != confidence {
            continue;
        }
        let same = |other: &Judgement| {
            (other.case, other.cause, other.chief())
                == (judgement.case, judgement.cause, judgement.chief())
        };
        match groups.iter_mut().find(|(first, _)| same(first)) {
            Some((_, more)) => *more += 1,
            None => groups.push((judgement, 0)),
        }
    }
    let mut text = String::new();
    for (j, more) in groups {
        let _ = writeln!(
            text,
            "- {} {} {}>{} at {:.3} s for {:.3} s: {:?} ({:?}), in truth {}; packets {:?}; {more} more",
            j.name(),
            j.behaviour,
            j.stacks[0],
            j.stacks[1],
            j.start_s,
            j.duration_s,
            j.cause,
            j.side,
            j.truth.join("+"),
            j.evidence
        );
    }
    text
}
