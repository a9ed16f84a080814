// SPDX-License-Identifier: MIT OR Apache-2.0
//! Refuses names of our own where the field has a term: in file names, and in functions, types,
//! fields and variables of Rust and C. Comments and texts are not checked, because the same
//! words are ordinary English there.

mod allowed;

use crate::circles::words;
use allowed::EXEMPT;

/// A name that is refused, and the field's term for it.
struct Refused {
    /// The parts of the name, one after the other: `sent_again` and `SentAgain` are
    /// both "sent again".
    parts: &'static [&'static str],
    /// Whether the parts are the whole name, or may stand anywhere in it.
    whole: bool,
    instead: &'static str,
}

const fn any(parts: &'static [&'static str], instead: &'static str) -> Refused {
    Refused {
        parts,
        whole: false,
        instead,
    }
}

const fn whole(parts: &'static [&'static str], instead: &'static str) -> Refused {
    Refused {
        parts,
        whole: true,
        instead,
    }
}

const IDENTIFIERS: &[Refused] = &[
    any(&["stir"], "invalidate"),
    any(&["attend"], "advance_clock"),
    any(&["pass", "time"], "advance_clock"),
    any(&["follow", "time"], "advance_clock"),
    any(&["paced", "first"], "first_waiting"),
    any(&["paced", "last"], "min_virtual_time"),
    any(&["turn"], "virtual finish time"),
    any(&["next", "clock"], "virtual finish time"),
    any(&["spare"], "borrowing"),
    any(&["ceiled"], "at its ceil"),
    any(&["owed"], "lag limit"),
    any(&["price"], "frame cost"),
    any(&["train"], "burst"),
    any(&["trains"], "bursts"),
    any(&["told"], "report"),
    any(&["announce"], "report"),
    any(&["run", "out"], "deactivate"),
    any(&["psp", "refuse"], "set extack"),
    any(&["direct", "class"], "default class"),
    any(&["class", "kind"], "type"),
    any(&["psp", "kind"], "type"),
    any(&["pace", "kind"], "type"),
    any(&["station"], "MAC address"),
    any(&["complete", "sum"], "fill checksum"),
    whole(&["way"], "path, or direction"),
    whole(&["ways"], "paths, or directions"),
    any(&["sent", "again"], "retransmitted"),
    any(&["send", "again"], "retransmit"),
    any(&["time", "stamp"], "timestamp"),
    any(&["stamp"], "timestamp"),
    any(&["stamps"], "timestamps"),
    any(&["stamped"], "timestamp"),
    any(&["stop", "kind"], "stall"),
    any(&["agenda"], "event queue"),
    any(&["patience"], "cpu_timeout"),
    any(&["tally"], "loss_stats"),
];

/// Names of files and folders, without their ending.
const FILES: &[Refused] = &[
    whole(&["exact"], "rate_arithmetic"),
    whole(&["both"], "engine_agreement"),
    whole(&["paper"], "reference_figures"),
    whole(&["truth"], "ground_truth"),
    whole(&["runs"], "results_dir"),
    whole(&["cells"], "measure_cell"),
    whole(&["bars"], "progress"),
    whole(&["words"], "tc_tokens, number_format"),
    whole(&["told"], "sender_view"),
    whole(&["tally"], "loss_stats"),
    whole(&["walk"], "decapsulate"),
    whole(&["patience"], "cpu_timeout"),
    whole(&["snap"], "synth_frame"),
    whole(&["agenda"], "event_queue"),
    whole(&["stamp"], "timestamp"),
    whole(&["train"], "burst"),
    whole(&["live"], "linux-io"),
    whole(&["bpfc"], "bpf-build"),
];

/// Returns the parts of a name, in lower case.
fn parts(name: &str) -> Vec<String> {
    let mut all = vec![];
    for part in name.split(['_', '-']).filter(|part| !part.is_empty()) {
        let mut last_is_lower = false;
        let mut word = String::new();
        for c in part.chars() {
            if c.is_uppercase() && last_is_lower {
                all.push(std::mem::take(&mut word));
            }
            last_is_lower = !c.is_uppercase();
            word.extend(c.to_lowercase());
        }
        all.push(word);
    }
    all
}

impl Refused {
    fn is_in(&self, name: &[String]) -> bool {
        match self.whole {
            true => name == self.parts,
            false => name.windows(self.parts.len()).any(|w| w == self.parts),
        }
    }
}

/// Returns the refused names of a file: the file's own, then those in its code, each once.
fn refused(file: &str, text: &str) -> Vec<(String, &'static str)> {
    let mut found = vec![];
    let mut look = |name: &str, list: &'static [Refused]| {
        let split = parts(name);
        let refused = list.iter().find(|refused| refused.is_in(&split));
        found.extend(refused.map(|refused| (name.to_owned(), refused.instead)));
    };
    for component in file.split('/') {
        look(component.split('.').next().unwrap_or(component), FILES);
    }
    let mut names = words(text);
    names.sort();
    names.dedup();
    for name in &names {
        look(name, IDENTIFIERS);
    }
    found
}

/// Returns the refused names of C and Rust files that are not exempt.
pub fn faults(files: &[(String, String)]) -> Vec<String> {
    let mut bad = vec![];
    for (file, text) in files {
        if ![".rs", ".c", ".h"].iter().any(|end| file.ends_with(end)) {
            continue;
        }
        for (name, instead) in refused(file, text) {
            let of_others = EXEMPT
                .iter()
                .any(|(folder, exempt, _)| file.starts_with(folder) && exempt.contains(&&*name));
            if !of_others {
                bad.push(format!("{file}: `{name}`: expected {instead}"));
            }
        }
    }
    bad
}
