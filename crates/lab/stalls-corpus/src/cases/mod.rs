// SPDX-License-Identifier: MIT OR Apache-2.0
//! The cases, a module for each theme.

mod acks;
mod apps;
mod clock;
mod delayed;
mod filters;
mod loss;
mod oddities;
mod offload;
mod partial;
mod pmtu;
mod reordering;
mod setup;
mod timeouts;
mod windows;

use crate::case::Case;

/// Returns all cases, in the order of their names.
pub fn all() -> Vec<Case> {
    let themes = [
        acks::cases(),
        apps::cases(),
        clock::cases(),
        delayed::cases(),
        filters::cases(),
        loss::cases(),
        oddities::cases(),
        offload::cases(),
        partial::cases(),
        pmtu::cases(),
        reordering::cases(),
        setup::cases(),
        timeouts::cases(),
        windows::cases(),
    ];
    let mut cases: Vec<Case> = themes.into_iter().flatten().collect();
    cases.sort_by(|a, b| a.name.cmp(&b.name));
    cases
}
