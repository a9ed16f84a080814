// SPDX-License-Identifier: MIT OR Apache-2.0
//! Classes that cannot become what is wanted by a change: the kernel moves no class to another
//! group, makes no group of a class, and gives no class a total later. Such a class is made anew. A
//! stand-in, a class of another minor number with the new options, gets its frames first; then it
//! goes, comes as it shall be, and takes them back. So each frame has a class at every moment.

use std::collections::{BTreeMap, BTreeSet};

use tcpsp::{ClassOptions, Match, TypeOptions};

use crate::minor::{FIRST_MINOR, LAST_MINOR};
use crate::port::Psp;
use crate::target::TargetPsp;

/// Minor numbers of classes that move, and those of their deputies.
pub(crate) struct Moves(BTreeMap<u16, u16>);

/// Returns the ceil of a group; `None` of other classes.
pub(crate) fn group_ceil_bps(options: &ClassOptions) -> Option<u64> {
    match options.by_type {
        TypeOptions::Group { rate_bps, ceil_bps } => Some(ceil_bps.unwrap_or(rate_bps)),
        _ => None,
    }
}

fn has_total(options: &ClassOptions) -> bool {
    matches!(&options.by_type, TypeOptions::Dynamic(dynamic) if dynamic.total_bps.is_some())
}

/// Returns whether the kernel changes one into the other.
pub(crate) fn is_change(have: &ClassOptions, want: &ClassOptions) -> bool {
    have.group == want.group
        && group_ceil_bps(have).is_some() == group_ceil_bps(want).is_some()
        && has_total(have) == has_total(want)
}

impl Moves {
    /// Returns what moves between these; `None`: there is no number for a stand-in. O(classes).
    pub fn new(have: &Psp, want: &TargetPsp) -> Option<Self> {
        let mut moving: BTreeSet<u16> = want
            .classes
            .iter()
            .filter(|(minor, options)| {
                let had = have.classes.get(minor);
                had.is_some_and(|had| !is_change(&had.options, options))
            })
            .map(|(minor, _)| *minor)
            .collect();
        // Whatever comes below a group that is made anew comes with it.
        let below = want.classes.iter().filter(|(_, options)| {
            let group = options.group;
            group.is_some_and(|group| moving.contains(&group))
        });
        let below: Vec<u16> = below.map(|(minor, _)| *minor).collect();
        moving.extend(below);
        let used: BTreeSet<u16> = have
            .classes
            .keys()
            .chain(want.classes.keys())
            .copied()
            .collect();
        let mut free = (FIRST_MINOR..=LAST_MINOR).rev();
        let mut free = free.by_ref().filter(|minor| !used.contains(minor));
        let deputies = moving.iter().map(|minor| Some((*minor, free.next()?)));
        deputies.collect::<Option<_>>().map(Self)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the numbers of classes that move, each with its stand-in's.
    pub fn all(&self) -> impl Iterator<Item = (u16, u16)> + '_ {
        self.0.iter().map(|(minor, stand_in)| (*minor, *stand_in))
    }

    /// Returns what is wanted with deputies in the places of the classes.
    pub fn between(&self, want: &TargetPsp) -> TargetPsp {
        let stand_in = |minor: u16| self.0.get(&minor).copied().unwrap_or(minor);
        let mut between = want.clone();
        between.options.default_minor = stand_in(want.options.default_minor);
        between.classes = want
            .classes
            .iter()
            .map(|(minor, options)| {
                let options = ClassOptions {
                    group: options.group.map(stand_in),
                    ..options.clone()
                };
                (stand_in(*minor), options)
            })
            .collect();
        for rule in &mut between.rules {
            if rule.matching != Match::Cgroup {
                rule.class = stand_in(rule.class);
            }
        }
        between
    }
}
