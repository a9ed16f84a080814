// SPDX-License-Identifier: MIT OR Apache-2.0
//! Changes a list of filters into another, one at a time, so that each frame goes at every moment
//! where it went before or where it goes afterwards.
//!
//! The first filter that matches a frame decides. Filters that stay, in both lists in the same
//! order, are left alone. The new ones are added from the first to the last, each at its place
//! among those that stay; a filter that only names another class is redirected in that order, too.
//! Then the old ones go, from the last to the first. Proof: let a filter f be the first of the
//! mixed list that matches a frame. While filters are added, if f is old or stays, every filter
//! that stood before it in the old list is still before it: the frame goes where it went. If f is
//! new, all new ones that belong before it are there, too: the frame goes where it will go. While
//! old ones are taken out, from the last, the same two sentences hold with all new ones present.

use std::collections::BTreeSet;

use tcpsp::Match;

use crate::minor::LAST_PRIORITY;

/// Distance of filters from each other: room for others between them.
const STEP: u32 = 16;

/// A filter that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Placed {
    pub priority: u16,
    pub matching: Match,
    pub class: u16,
}

/// A filter that shall be there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub matching: Match,
    pub class: u16,
    /// Its place, if it must have a certain one.
    pub priority: Option<u16>,
}

/// A step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Edit {
    Add(Placed),
    Redirect(Placed),
    Delete(Placed),
}

/// The steps, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Edits {
    /// After these every filter that is wanted is there.
    pub arrive: Vec<Edit>,
    /// After these no other is.
    pub leave: Vec<Edit>,
}

/// Returns the steps from `have`, by priority, to `want`, in its order. Priorities in `taken` are
/// of others. `None`: there is no room.
///
/// O(n * m) time and memory for n and m filters that are not common at the beginning or end.
pub(crate) fn merge(have: &[Placed], want: &[Wanted], taken: &BTreeSet<u16>) -> Option<Edits> {
    let places: Option<Vec<u16>> = want.iter().map(|wanted| wanted.priority).collect();
    match places {
        Some(places) if places.iter().any(|place| taken.contains(place)) => None,
        Some(places) if !want.is_empty() => exact(have, want, &places, taken),
        _ => free(have, want, taken),
    }
}

/// Each wanted filter has a place of its own choice.
fn free(have: &[Placed], want: &[Wanted], taken: &BTreeSet<u16>) -> Option<Edits> {
    let kept = align(have, want);
    edits(have, want, &kept, taken).or_else(|| edits(have, want, &[], taken))
}

/// Each wanted filter has a certain place. If an old one stands in one, all wanted ones are first
/// put somewhere else as a block, the old ones go, then they are put where they belong. Meanwhile
/// some are there twice, in the same order.
fn exact(have: &[Placed], want: &[Wanted], places: &[u16], taken: &BTreeSet<u16>) -> Option<Edits> {
    let at = |priority: u16| have.iter().find(|placed| placed.priority == priority);
    let wanted: Vec<Placed> = want
        .iter()
        .zip(places)
        .map(|(wanted, place)| placed(wanted, *place))
        .collect();
    let is_blocked = |wanted: &Placed| {
        at(wanted.priority).is_some_and(|placed| placed.matching != wanted.matching)
    };
    if !wanted.iter().any(is_blocked) {
        let arrive = wanted
            .iter()
            .filter_map(|wanted| match at(wanted.priority) {
                None => Some(Edit::Add(wanted.clone())),
                Some(placed) if placed.class != wanted.class => {
                    Some(Edit::Redirect(wanted.clone()))
                }
                Some(_) => None,
            });
        let leave = have
            .iter()
            .rev()
            .filter(|old| !places.contains(&old.priority));
        return Some(Edits {
            arrive: arrive.collect(),
            leave: leave.cloned().map(Edit::Delete).collect(),
        });
    }
    let mut elsewhere = taken.clone();
    elsewhere.extend(places);
    let Edits { arrive, mut leave } = edits(have, want, &[], &elsewhere)?;
    leave.extend(wanted.into_iter().map(Edit::Add));
    let scratch = arrive.iter().rev().filter_map(|edit| match edit {
        Edit::Add(placed) => Some(Edit::Delete(placed.clone())),
        _ => None,
    });
    leave.extend(scratch.collect::<Vec<_>>());
    Some(Edits { arrive, leave })
}

fn placed(wanted: &Wanted, priority: u16) -> Placed {
    Placed {
        priority,
        matching: wanted.matching.clone(),
        class: wanted.class,
    }
}

/// Returns the pairs of filters that stay, by place in `have` and in `want`: those of the fewest
/// changes, where adding and deleting cost 2 and redirecting 1.
fn align(have: &[Placed], want: &[Wanted]) -> Vec<(usize, usize)> {
    let same = |i: usize, j: usize| have[i].matching == want[j].matching;
    let is_common = |i: usize, j: usize| same(i, j) && have[i].class == want[j].class;
    let least = have.len().min(want.len());
    let head = (0..least).take_while(|i| is_common(*i, *i)).count();
    let tail = (0..least - head)
        .take_while(|i| is_common(have.len() - 1 - i, want.len() - 1 - i))
        .count();
    let (rows, columns) = (have.len() - head - tail, want.len() - head - tail);
    // cost[i][j] of the way from have[head + i..] to want[head + j..].
    let width = columns + 1;
    let mut cost = vec![0u32; (rows + 1) * width];
    for i in (0..=rows).rev() {
        for j in (0..=columns).rev() {
            let mut best = u32::MAX;
            if i < rows {
                best = best.min(2 + cost[(i + 1) * width + j]);
            }
            if j < columns {
                best = best.min(2 + cost[i * width + j + 1]);
            }
            if i < rows && j < columns && same(head + i, head + j) {
                let redirected = u32::from(!is_common(head + i, head + j));
                best = best.min(redirected + cost[(i + 1) * width + j + 1]);
            }
            // At the end of both lists nothing is left to do.
            cost[i * width + j] = if best == u32::MAX { 0 } else { best };
        }
    }
    let mut kept: Vec<_> = (0..head).map(|i| (i, i)).collect();
    let (mut i, mut j) = (0, 0);
    while i < rows && j < columns {
        let here = cost[i * width + j];
        let both = cost[(i + 1) * width + j + 1];
        let redirected = u32::from(!is_common(head + i, head + j));
        if same(head + i, head + j) && here == both + redirected {
            kept.push((head + i, head + j));
            (i, j) = (i + 1, j + 1);
        } else if here == 2 + cost[(i + 1) * width + j] {
            i += 1;
        } else {
            j += 1;
        }
    }
    let ends = (0..tail).rev();
    kept.extend(ends.map(|i| (have.len() - 1 - i, want.len() - 1 - i)));
    kept
}

/// Returns the steps if the filters of the pairs stay. `None`: between two of them there is no
/// room for what belongs there.
fn edits(
    have: &[Placed],
    want: &[Wanted],
    kept: &[(usize, usize)],
    taken: &BTreeSet<u16>,
) -> Option<Edits> {
    let mut arrive = Vec::new();
    let mut leave = Vec::new();
    let (mut i, mut j) = (0, 0);
    let end = (have.len(), want.len());
    for (next_have, next_want) in kept.iter().copied().chain([end]) {
        let low = match i {
            0 => 0,
            _ => have[i - 1].priority,
        };
        let high = have.get(next_have).map(|next| next.priority);
        let mut walls: Vec<u16> = have[i..next_have].iter().map(|old| old.priority).collect();
        walls.extend(taken);
        let new = &want[j..next_want];
        let places = places(low, high, walls, new.len())?;
        arrive.extend(
            new.iter()
                .zip(places)
                .map(|(new, place)| Edit::Add(placed(new, place))),
        );
        leave.extend(have[i..next_have].iter().cloned().map(Edit::Delete));
        if let (Some(old), Some(new)) = (have.get(next_have), want.get(next_want)) {
            if old.class != new.class {
                arrive.push(Edit::Redirect(placed(new, old.priority)));
            }
        }
        (i, j) = (next_have + 1, next_want + 1);
    }
    leave.reverse();
    Some(Edits { arrive, leave })
}

/// Returns so many priorities above `low` and below `high`, with none of `walls` between them.
///
/// Each is chosen as if it were the first of those that are still to come. So a command that was
/// killed when some were there, and is run again, gives the others the same ones.
fn places(low: u16, high: Option<u16>, mut walls: Vec<u16>, count: usize) -> Option<Vec<u16>> {
    let end = high.unwrap_or(LAST_PRIORITY + 1);
    walls.retain(|wall| *wall > low && *wall < end);
    walls.push(end);
    walls.sort_unstable();
    let mut below = low;
    let mut all = Vec::with_capacity(count);
    for left in (1..=u32::try_from(count).ok()?).rev() {
        // The largest room, of equal ones the first.
        let mut best = (0, 0);
        let mut first = below;
        for wall in walls.iter().copied().filter(|wall| *wall > below) {
            if wall - first > best.1 - best.0 {
                best = (first, wall);
            }
            first = wall;
        }
        let (first, last) = (u32::from(best.0), u32::from(best.1));
        let room = last - first;
        if room <= left {
            return None;
        }
        let step = (room / (left + 1)).min(STEP);
        // Close to what is there, and in the middle if nothing is.
        let start = match (first == 0, last > u32::from(LAST_PRIORITY)) {
            (true, true) => (room - step * (left + 1)) / 2,
            (true, false) => last - step * (left + 1),
            (false, _) => first,
        };
        below = u16::try_from(start + step).ok()?;
        all.push(below);
    }
    Some(all)
}
