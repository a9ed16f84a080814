// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which kernel modules a cell may need.

use std::collections::BTreeSet;

use scenario::{Backend, Cell, FlowKind};

/// Returns the words of a cell's lines of tc that may be the kind of a module.
fn words_for_modules(cell: &Cell) -> impl Iterator<Item = &str> {
    let of_modules = cell.tc.iter().filter(|l| l.backend == Backend::Module);
    let words = of_modules.flat_map(|line| &line.args);
    words.map(|word| word.split('(').next().unwrap_or_default())
}

/// Returns whether a line of tc of a cell names a kind of a module.
pub(crate) fn names_kind(cell: &Cell, kind: &str) -> bool {
    words_for_modules(cell).any(|word| word == kind)
}

/// Returns the words of a cell that may be names of kernel modules, as the kernel spells them:
/// everything in `tc` lines, and what flows use.
pub(crate) fn module_candidates(cell: &Cell) -> Vec<String> {
    let mut names = Vec::new();
    let words: BTreeSet<&str> = words_for_modules(cell).collect();
    for word in words {
        let word = word.replace('-', "_");
        for kind in ["sch", "cls", "act", "em"] {
            names.push(format!("{kind}_{word}"));
        }
    }
    for (kind, module) in [("sch_clsact", "sch_ingress"), ("sch_cake_mq", "sch_cake")] {
        if names.iter().any(|name| name == kind) {
            names.push(module.into());
        }
    }
    for flow in &cell.flows {
        match &flow.kind {
            FlowKind::Tcp { congestion, .. } => names.push(format!("tcp_{congestion}")),
            FlowKind::Pktgen { .. } => names.push("pktgen".into()),
            FlowKind::Udp { .. } => {}
        }
    }
    names.sort();
    names.dedup();
    names
}
