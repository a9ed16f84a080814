// SPDX-License-Identifier: MIT OR Apache-2.0
//! Changes lists of filters into others, one filter at a time, so that each frame goes at every
//! moment where it went before or where it goes afterwards.
//!
//! The first list with a filter that matches a frame decides; in a list at most one does
//! (`match_lists.rs`). Lists that stay, in both in the same order, are left where they are. What is
//! new in them, and new lists, are added from the first to the last, each at its place; a filter
//! that only names another class is redirected in that order, too. Then the old ones go, from the
//! last to the first. Proof: let a filter f be the first of the mixed lists that matches a frame.
//! While filters are added, if f is old or stays, every filter that stood before it in the old
//! lists is still before it: the frame goes where it went. If f is new, all new ones that belong
//! before it are there, too: the frame goes where it will go. While old ones are taken out, from
//! the last, the same two sentences hold with all new ones present.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use tcpsp::Match;

use crate::match_lists::{Shape, lists};
use crate::minor::{FILTER, FILTER_LAST, LAST_PRIORITY};

/// Distance of lists from each other: room for others between them.
const STEP: u32 = 16;

/// A filter that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Placed {
    pub priority: u16,
    /// Its number in the list.
    pub handle: u32,
    pub matching: Match,
    pub class: u16,
}

/// A filter that shall be there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub matching: Match,
    pub class: u16,
    /// Its list's priority and its number there, if they must be certain ones.
    pub place: Option<(u16, u32)>,
}

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

/// A list of filters that is there.
struct HaveList<'a> {
    priority: u16,
    shape: Shape<'a>,
    filters: &'a [Placed],
}

/// A list that shall be there.
struct WantList<'a> {
    shape: Shape<'a>,
    filters: Vec<&'a Wanted>,
}

fn have_lists(have: &[Placed]) -> Vec<HaveList<'_>> {
    let lists = have.chunk_by(|a, b| a.priority == b.priority);
    let lists = lists.filter_map(|filters| {
        let first = filters.first()?;
        Some(HaveList {
            priority: first.priority,
            shape: Shape::of(&first.matching),
            filters,
        })
    });
    lists.collect()
}

fn want_lists(want: &[Wanted]) -> Vec<WantList<'_>> {
    let lists = lists(want.iter().map(|wanted| &wanted.matching));
    let lists = lists.iter().filter_map(|places| {
        let filters: Vec<_> = places.iter().filter_map(|place| want.get(*place)).collect();
        Some(WantList {
            shape: Shape::of(&filters.first()?.matching),
            filters,
        })
    });
    lists.collect()
}

/// Returns the steps from `have`, by priority and number, to `want`, in its order. Priorities in
/// `taken` are of others. `None`: there is no room.
///
/// O(n log n) for n filters, and O(l * m) time and memory for l and m lists that are not common at
/// the beginning or end.
pub(crate) fn merge(have: &[Placed], want: &[Wanted], taken: &BTreeSet<u16>) -> Option<Edits> {
    let places: Option<Vec<(u16, u32)>> = want.iter().map(|wanted| wanted.place).collect();
    match places {
        Some(places) if places.iter().any(|place| taken.contains(&place.0)) => None,
        Some(places) if !want.is_empty() => exact(have, want, &places, taken),
        _ => free(&have_lists(have), &want_lists(want), taken),
    }
}

/// Each wanted filter has a place of its own choice.
fn free(have: &[HaveList<'_>], want: &[WantList<'_>], taken: &BTreeSet<u16>) -> Option<Edits> {
    let kept = align(have, want);
    edits(have, want, &kept, taken).or_else(|| edits(have, want, &[], taken))
}

/// Each wanted filter has a certain place. If another stands in one, all wanted ones are first
/// put somewhere else as a block, the old ones go, then they are put where they belong. Meanwhile
/// some are there twice, in the same order.
fn exact(
    have: &[Placed],
    want: &[Wanted],
    places: &[(u16, u32)],
    taken: &BTreeSet<u16>,
) -> Option<Edits> {
    let wanted: Vec<Placed> = want
        .iter()
        .zip(places)
        .map(|(wanted, place)| placed(wanted, *place))
        .collect();
    if !is_blocked(have, &wanted) {
        let at: BTreeMap<_, _> = have.iter().map(|old| (place_of(old), old)).collect();
        let arrive = wanted
            .iter()
            .filter_map(|wanted| match at.get(&place_of(wanted)) {
                None => Some(Edit::Add(wanted.clone())),
                Some(placed) if placed.class != wanted.class => {
                    Some(Edit::Redirect(wanted.clone()))
                }
                Some(_) => None,
            });
        let places: BTreeSet<_> = places.iter().collect();
        let leave = have
            .iter()
            .rev()
            .filter(|old| !places.contains(&place_of(old)));
        return Some(Edits {
            arrive: arrive.collect(),
            leave: leave.cloned().map(Edit::Delete).collect(),
        });
    }
    let mut elsewhere = taken.clone();
    elsewhere.extend(places.iter().map(|place| place.0));
    let lists = (have_lists(have), want_lists(want));
    let Edits { arrive, mut leave } = edits(&lists.0, &lists.1, &[], &elsewhere)?;
    leave.extend(wanted.into_iter().map(Edit::Add));
    let scratch = arrive.iter().rev().filter_map(|edit| match edit {
        Edit::Add(placed) => Some(Edit::Delete(placed.clone())),
        _ => None,
    });
    leave.extend(scratch.collect::<Vec<_>>());
    Some(Edits { arrive, leave })
}

fn place_of(placed: &Placed) -> (u16, u32) {
    (placed.priority, placed.handle)
}

/// What is in a list.
struct Content<'a> {
    shape: Shape<'a>,
    by_handle: HashMap<u32, &'a Match>,
    by_match: HashMap<&'a Match, u32>,
}

/// Returns whether a filter that is there keeps a wanted one from its place: a list has one shape,
/// one filter of a number, and one of a match.
fn is_blocked(have: &[Placed], wanted: &[Placed]) -> bool {
    let mut lists: HashMap<u16, Content<'_>> = HashMap::new();
    for old in have {
        let list = lists.entry(old.priority).or_insert_with(|| Content {
            shape: Shape::of(&old.matching),
            by_handle: HashMap::new(),
            by_match: HashMap::new(),
        });
        list.by_handle.insert(old.handle, &old.matching);
        list.by_match.insert(&old.matching, old.handle);
    }
    wanted.iter().any(|wanted| {
        lists.get(&wanted.priority).is_some_and(|list| {
            let handle = list.by_match.get(&wanted.matching);
            let matching = list.by_handle.get(&wanted.handle);
            list.shape != Shape::of(&wanted.matching)
                || handle.is_some_and(|handle| *handle != wanted.handle)
                || matching.is_some_and(|matching| **matching != wanted.matching)
        })
    })
}

fn placed(wanted: &Wanted, (priority, handle): (u16, u32)) -> Placed {
    Placed {
        priority,
        handle,
        matching: wanted.matching.clone(),
        class: wanted.class,
    }
}

/// Returns what it costs that a list becomes another of its shape: adding and deleting a filter 2,
/// redirecting one 1.
/// `None` if it keeps no filter.
fn cost_of(have: &HaveList<'_>, want: &WantList<'_>) -> Option<u32> {
    if have.shape != want.shape {
        return None;
    }
    let wanted = want.filters.iter();
    let mut wanted: HashMap<_, _> = wanted.map(|w| (&w.matching, w.class)).collect();
    let old = have.filters.iter();
    let before = wanted.len();
    let cost: u32 = old
        .map(|old| match wanted.remove(&old.matching) {
            Some(class) => u32::from(class != old.class),
            None => 2,
        })
        .sum();
    (wanted.len() < before).then(|| cost + cost_of_all(wanted.len()))
}

/// Returns what it costs to add or delete a list.
fn cost_of_all(filters: usize) -> u32 {
    u32::try_from(filters).unwrap_or(u32::MAX / 4) * 2
}

/// Returns the pairs of lists that stay, by place in `have` and in `want`: those of the least cost.
fn align(have: &[HaveList<'_>], want: &[WantList<'_>]) -> Vec<(usize, usize)> {
    let is_common = |i: usize, j: usize| cost_of(&have[i], &want[j]) == Some(0);
    let least = have.len().min(want.len());
    let head = (0..least).take_while(|i| is_common(*i, *i)).count();
    let tail = (0..least - head)
        .take_while(|i| is_common(have.len() - 1 - i, want.len() - 1 - i))
        .count();
    let (rows, columns) = (have.len() - head - tail, want.len() - head - tail);
    // cost[i][j] of the way from have[head + i..] to want[head + j..].
    let width = columns + 1;
    let mut cost = vec![0u32; (rows + 1) * width];
    let gone = |i: usize| cost_of_all(have[head + i].filters.len());
    let new = |j: usize| cost_of_all(want[head + j].filters.len());
    let changed = |i: usize, j: usize| cost_of(&have[head + i], &want[head + j]);
    for i in (0..=rows).rev() {
        for j in (0..=columns).rev() {
            let mut best = u32::MAX;
            if i < rows {
                best = best.min(gone(i) + cost[(i + 1) * width + j]);
            }
            if j < columns {
                best = best.min(new(j) + cost[i * width + j + 1]);
            }
            let changed = (i < rows && j < columns).then(|| changed(i, j)).flatten();
            if let Some(changed) = changed {
                best = best.min(changed + cost[(i + 1) * width + j + 1]);
            }
            // At the end of both nothing is left to do.
            cost[i * width + j] = if best == u32::MAX { 0 } else { best };
        }
    }
    let mut kept: Vec<_> = (0..head).map(|i| (i, i)).collect();
    let (mut i, mut j) = (0, 0);
    while i < rows && j < columns {
        let here = cost[i * width + j];
        let both = cost[(i + 1) * width + j + 1];
        if changed(i, j).is_some_and(|changed| here == both + changed) {
            kept.push((head + i, head + j));
            (i, j) = (i + 1, j + 1);
        } else if here == gone(i) + cost[(i + 1) * width + j] {
            i += 1;
        } else {
            j += 1;
        }
    }
    let ends = (0..tail).rev();
    kept.extend(ends.map(|i| (have.len() - 1 - i, want.len() - 1 - i)));
    kept
}

/// The numbers of a list that are free, from the first.
struct FreeHandles<'a> {
    used: BTreeSet<u32>,
    next: u32,
    shape: &'a Shape<'a>,
}

impl<'a> FreeHandles<'a> {
    fn new(shape: &'a Shape<'a>, used: impl Iterator<Item = u32>) -> Self {
        Self {
            used: used.collect(),
            next: FILTER,
            shape,
        }
    }

    fn take(&mut self) -> Option<u32> {
        if let Shape::One(Match::Mark(mark)) = self.shape {
            return Some(*mark);
        }
        while self.used.contains(&self.next) {
            self.next += 1;
        }
        let handle = self.next;
        self.next += 1;
        (handle <= FILTER_LAST).then_some(handle)
    }
}

/// Returns the steps if the lists of the pairs stay. `None`: between two of them there is no
/// room for what belongs there, or in a list.
fn edits(
    have: &[HaveList<'_>],
    want: &[WantList<'_>],
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
        for (list, priority) in new.iter().zip(places) {
            let mut handles = FreeHandles::new(&list.shape, std::iter::empty());
            for new in &list.filters {
                arrive.push(Edit::Add(placed(new, (priority, handles.take()?))));
            }
        }
        let gone = have[i..next_have].iter().flat_map(|old| old.filters);
        leave.extend(gone.cloned().map(Edit::Delete));
        if let (Some(old), Some(new)) = (have.get(next_have), want.get(next_want)) {
            within(old, new, &mut arrive, &mut leave)?;
        }
        (i, j) = (next_have + 1, next_want + 1);
    }
    leave.reverse();
    Some(Edits { arrive, leave })
}

/// Adds the steps of a list that stays.
fn within(
    have: &HaveList<'_>,
    want: &WantList<'_>,
    arrive: &mut Vec<Edit>,
    leave: &mut Vec<Edit>,
) -> Option<()> {
    let mut had: HashMap<&Match, &Placed> = have
        .filters
        .iter()
        .map(|old| (&old.matching, old))
        .collect();
    let used = have.filters.iter().map(|old| old.handle);
    let mut handles = FreeHandles::new(&want.shape, used);
    for new in &want.filters {
        match had.remove(&new.matching) {
            Some(old) if old.class == new.class => {}
            Some(old) => arrive.push(Edit::Redirect(placed(new, place_of(old)))),
            None => arrive.push(Edit::Add(placed(new, (have.priority, handles.take()?)))),
        }
    }
    let gone = have.filters.iter();
    let gone = gone.filter(|old| had.contains_key(&old.matching));
    leave.extend(gone.cloned().map(Edit::Delete));
    Some(())
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
