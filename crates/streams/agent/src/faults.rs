// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is wrong at present: each fault is said once when it begins and once when it ends. Pure.

use std::collections::{BTreeMap, BTreeSet};

/// Faults that last, by what they are about: a port, a stream.
#[derive(Clone, Debug, Default)]
pub struct Faults(BTreeMap<String, Lasting>);

#[derive(Clone, Debug)]
struct Lasting {
    /// The sentence that was said last.
    said: String,
    /// All that were said, without their numbers: a count that changes is no new fault.
    forms: BTreeSet<String>,
}

/// What is to be said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FaultChanges {
    /// Faults that are new.
    pub begun: Vec<String>,
    /// Faults that have ended.
    pub ended: Vec<String>,
}

fn form(problem: &str) -> String {
    problem.chars().filter(|of| !of.is_ascii_digit()).collect()
}

impl Faults {
    /// Returns whether a fault, in a sentence, is new: none of this kind was said of the same thing
    /// while it lasts.
    pub fn begin(&mut self, about: &str, problem: &str) -> bool {
        let said = problem.to_owned();
        if let Some(lasting) = self.0.get_mut(about) {
            let is_new = lasting.forms.insert(form(problem));
            if is_new {
                lasting.said = said;
            }
            return is_new;
        }
        let forms = BTreeSet::from([form(problem)]);
        self.0.insert(about.to_owned(), Lasting { said, forms });
        true
    }

    /// Ends the faults about all other things; returns what was said of them last.
    pub fn keep(&mut self, lasts: impl Fn(&str) -> bool) -> Vec<String> {
        let mut ended = Vec::new();
        self.0.retain(|about, lasting| {
            let keeps = lasts(about);
            if !keeps {
                ended.push(std::mem::take(&mut lasting.said));
            }
            keeps
        });
        ended
    }

    /// Takes all faults of now, by what they are about.
    pub fn update(&mut self, now: &BTreeMap<String, String>) -> FaultChanges {
        let ended = self.keep(|about| now.contains_key(about));
        let begun = now.iter().filter(|(about, of)| self.begin(about, of));
        let begun = begun.map(|(_, problem)| problem.clone()).collect();
        FaultChanges { begun, ended }
    }
}
