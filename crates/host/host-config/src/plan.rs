// SPDX-License-Identifier: MIT OR Apache-2.0
//! The changes that make a device agree with what is wanted: the fewest, in an order in which no
//! frame is lost, and none goes elsewhere than where it went before or goes afterwards.
//!
//! In this order: the qdisc gets a line and a budget that hold what is there and what will be;
//! classes change and come; filters come (`merge.rs`); the qdisc gets the new default and what
//! else changes; filters go; classes go, once their frames are sent; the line and the budget
//! narrow. Each change alone is the kernel's to make or refuse, so what was made of a plan is a
//! state from which a new plan leads on.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use tcpsp::{Change, ClassOptions, Handle, QdiscKind, QdiscOptions, TypeOptions};

use crate::backend::{Backend, Made};
use crate::error::Refusal;
use crate::filter_changes::{change_of, delete};
use crate::merge::{Edits, Placed, Wanted, merge};
use crate::minor::{self, is_ours};
use crate::moves::{Moves, group_ceil_bps};
use crate::port::{ClassState, FilterState, Port, Psp, Root, Slot};
use crate::stages::Stages;
use crate::target::{Target, TargetPsp, TargetRoot};

/// The changes of a device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Plan {
    pub device: String,
    /// The changes, in order.
    pub changes: Vec<Change>,
    /// What a person should know about them.
    pub notes: Vec<String>,
    /// Names of classes, by the minor number of their ids.
    pub names: BTreeMap<u16, String>,
}

/// Returns the changes that lead to what is wanted. What others configured is replaced only with
/// `take_over`.
///
/// # Errors
/// What of others is in the way, or why there is no room.
pub fn plan(target: &Target, port: &Port, take_over: bool) -> Result<Plan, Refusal> {
    let mut planner = Planner {
        port,
        made: target.made,
        take_over,
        changes: Vec::new(),
        notes: Vec::new(),
        names: target.names.clone(),
    };
    match (&target.root, &port.root) {
        (TargetRoot::Default, root) => planner.remove(root),
        (TargetRoot::Psp(want), Root::One(slot)) => {
            planner.slot(slot, Handle::ROOT, minor::root(), want)?;
        }
        (TargetRoot::Psp(want), Root::Mq(slots)) => {
            planner.lose("mq", slots.iter().map(waiting).sum());
            let (parent, handle) = (Handle::ROOT, minor::root());
            let first = first_options(want);
            planner.changes.push(Change::ReplaceQdisc {
                parent,
                handle,
                kind: QdiscKind::Psp(first.clone()),
            });
            planner.psp(&planner.empty(parent, handle, first), want)?;
        }
        (TargetRoot::Mq(want), root) => planner.mq(root, want)?,
    }
    planner.unpaced(target);
    Ok(Plan {
        device: port.name.clone(),
        changes: planner.changes,
        notes: planner.notes,
        names: planner.names,
    })
}

struct Planner<'a> {
    port: &'a Port,
    made: Made,
    take_over: bool,
    changes: Vec<Change>,
    notes: Vec<String>,
    names: BTreeMap<u16, String>,
}

/// Returns the packets that wait in what stands at a place.
fn waiting(slot: &Slot) -> u32 {
    match slot {
        Slot::Default { waiting, .. } | Slot::Other { waiting, .. } => *waiting,
        Slot::Psp(psp) => psp.classes.values().map(|class| class.waiting).sum(),
    }
}

impl Planner<'_> {
    fn refuse<T>(&self, sentence: &str) -> Result<T, Refusal> {
        Err(Refusal::Wrong(format!("{}: {sentence}", self.port.name)))
    }

    /// Refuses to touch what others have configured.
    fn leave<T>(&self, sentence: &str, does: &'static str) -> Result<T, Refusal> {
        let what = format!("{}: {sentence}", self.port.name);
        Err(Refusal::OfOthers { what, does })
    }

    /// Notes that a qdisc goes with its packets.
    fn lose(&mut self, kind: &str, waiting: u32) {
        if waiting > 0 {
            self.notes.push(format!(
                "{waiting} packets wait in {kind}; the kernel drops them with it"
            ));
        }
    }

    /// Notes that departure times go. A socket that has met fq leaves its pacing to an fq for good.
    fn unpaced(&mut self, target: &Target) {
        let slots = match &self.port.root {
            Root::One(slot) => std::slice::from_ref(slot),
            Root::Mq(slots) => slots.as_slice(),
        };
        let is_edt = |made: Made| made.backend() == Backend::Edt;
        let had = |slot: &Slot| matches!(slot, Slot::Psp(psp) if is_edt(psp.made));
        let stays = is_edt(target.made) && !matches!(target.root, TargetRoot::Default);
        if slots.iter().any(had) && !stays {
            self.notes.push(
                "TCP connections that have sent through this fq will not pace themselves without \
                 one, until they end"
                    .to_owned(),
            );
        }
    }

    fn remove(&mut self, root: &Root) {
        let handle = match root {
            Root::One(Slot::Psp(psp)) => psp.handle,
            Root::Mq(_) => minor::mq(),
            Root::One(_) => return,
        };
        let waiting = match root {
            Root::One(slot) => waiting(slot),
            Root::Mq(slots) => slots.iter().map(waiting).sum(),
        };
        self.lose("psp", waiting);
        let parent = Handle::ROOT;
        self.changes.push(Change::DeleteQdisc { parent, handle });
    }

    fn mq(&mut self, root: &Root, want: &[TargetPsp]) -> Result<(), Refusal> {
        if want.len() > usize::from(minor::MOST_QUEUES) {
            return self.refuse(&format!(
                "{} transmit queues, expected at most {}",
                want.len(),
                minor::MOST_QUEUES
            ));
        }
        let none = Slot::Default {
            kind: "default".to_owned(),
            waiting: 0,
        };
        let slots = match root {
            Root::Mq(slots) => slots.clone(),
            Root::One(slot) => {
                let kind = QdiscKind::Mq;
                self.put(slot, Handle::ROOT, minor::mq(), kind)?;
                vec![none.clone(); want.len()]
            }
        };
        for (queue, want) in (0..).zip(want) {
            let slot = slots.get(usize::from(queue)).unwrap_or(&none);
            self.slot(slot, minor::mq_class(queue), minor::below_mq(queue), want)?;
        }
        Ok(())
    }

    /// Puts a qdisc where something else stands.
    fn put(
        &mut self,
        slot: &Slot,
        parent: Handle,
        handle: Handle,
        kind: QdiscKind,
    ) -> Result<(), Refusal> {
        let replace = match slot {
            Slot::Default { kind, waiting } => {
                self.lose(kind, *waiting);
                false
            }
            Slot::Psp(psp) => {
                self.lose("psp", waiting(slot));
                self.unless_same(psp.handle, parent, handle)
            }
            Slot::Other {
                kind,
                handle: theirs,
                ..
            } if !self.take_over => {
                let what = format!(
                    "qdisc {kind} {theirs} at {parent} was configured by others, expected none"
                );
                return self.leave(&what, "replaces it");
            }
            Slot::Other {
                kind,
                handle: theirs,
                waiting,
            } => {
                self.lose(kind, *waiting);
                self.unless_same(*theirs, parent, handle)
            }
        };
        self.changes.push(if replace {
            Change::ReplaceQdisc {
                parent,
                handle,
                kind,
            }
        } else {
            Change::AddQdisc {
                parent,
                handle,
                kind,
            }
        });
        Ok(())
    }

    /// Returns whether a qdisc can be replaced by one of this id. If not, takes it away: the kernel
    /// takes the same id for a change of that qdisc.
    fn unless_same(&mut self, had: Handle, parent: Handle, handle: Handle) -> bool {
        if had == handle {
            self.changes.push(Change::DeleteQdisc { parent, handle });
        }
        had != handle
    }

    /// Leads what stands at a place to what is wanted.
    fn slot(
        &mut self,
        slot: &Slot,
        parent: Handle,
        handle: Handle,
        want: &TargetPsp,
    ) -> Result<(), Refusal> {
        match slot {
            Slot::Psp(psp)
                if psp.made == self.made && psp.options.shared == want.options.shared =>
            {
                return self.psp(psp, want);
            }
            _ => {}
        }
        let first = first_options(want);
        self.put(slot, parent, handle, QdiscKind::Psp(first.clone()))?;
        self.psp(&self.empty(parent, handle, first), want)
    }

    fn empty(&self, parent: Handle, handle: Handle, options: QdiscOptions) -> Psp {
        Psp {
            made: self.made,
            handle,
            parent,
            line_bps: options.line_rate_bps.or(self.port.speed_bps),
            max_frame_bytes: self.port.max_frame_bytes.into(),
            classes: BTreeMap::new(),
            filters: Vec::new(),
            is_classified: false,
            is_unread: false,
            amiss: Vec::new(),
            options,
        }
    }

    fn name(&self, minor: u16) -> String {
        let name = self.names.get(&minor);
        name.map_or_else(|| format!("{minor:x}"), Clone::clone)
    }

    /// Leads a psp to what is wanted. Classes that move go through others that take their place.
    fn psp(&mut self, have: &Psp, want: &TargetPsp) -> Result<(), Refusal> {
        let Some(moves) = Moves::new(have, want) else {
            return self.refuse("no class can move: all minor numbers are in use");
        };
        if moves.is_empty() {
            return self.lead(have, want);
        }
        for (minor, stand_in) in moves.all() {
            let name = self.name(minor);
            self.notes.push(format!(
                "class {name} is made anew: the kernel moves no class to another group; its packets \
                 leave first, and new ones may overtake them"
            ));
            self.names.insert(stand_in, format!("{name} (moving)"));
        }
        let made = self.changes.len();
        self.lead(have, &moves.between(want))?;
        let changes = self.changes.get(made..).unwrap_or_default();
        let Some(between) = after(self.port, have, changes) else {
            return self.refuse("the kernel would refuse to move classes");
        };
        let result = self.lead(&between, want);
        let mut said = BTreeSet::new();
        self.notes.retain(|note| said.insert(note.clone()));
        result
    }

    fn lead(&mut self, have: &Psp, want: &TargetPsp) -> Result<(), Refusal> {
        let mut theirs = have.amiss.iter().filter(|amiss| amiss.is_of_others);
        if let (Some(amiss), false) = (theirs.next(), self.take_over) {
            let what = format!("{}; it was configured by others", amiss.what);
            return self.leave(&what, "replaces it");
        }
        let going = self.going(have, want)?;
        let (edits, others) = self.edits(have, want)?;
        let narrowed = narrowed(have, want);
        let stages = Stages::new(
            (self.port.speed_bps, have),
            (&want.options, &want.classes),
            (&going, &narrowed),
        );
        let configure = |options: &QdiscOptions| Change::ChangeQdisc {
            parent: have.parent,
            handle: have.handle,
            options: options.clone(),
        };
        let mut now = &have.options;
        let mut changes = Vec::new();
        for (stage, after) in [(&stages.first, 0), (&stages.middle, 1), (&stages.last, 2)] {
            match after {
                0 => {}
                1 => {
                    classes(have, want, &narrowed, &mut changes);
                    changes.extend(edits.arrive.iter().map(|edit| change_of(edit, have.handle)));
                }
                _ => {
                    changes.extend(others.iter().map(|filter| delete(filter, have.handle)));
                    changes.extend(edits.leave.iter().map(|edit| change_of(edit, have.handle)));
                    let id = |minor: &u16| Handle::new(have.handle.major(), *minor);
                    let delete = |minor| Change::DeleteClass { id: id(minor) };
                    let is_group =
                        |minor: &&u16| have.classes.get(minor).is_some_and(is_group_state);
                    let (groups, classes): (Vec<_>, Vec<_>) = going.iter().partition(is_group);
                    changes.extend(classes.into_iter().map(delete));
                    changes.extend(narrowed.iter().filter_map(|minor| {
                        let options = want.classes.get(minor)?.clone();
                        let id = id(minor);
                        Some(Change::ChangeClass { id, options })
                    }));
                    changes.extend(groups.into_iter().map(delete));
                }
            }
            if stage != now {
                changes.push(configure(stage));
                now = stage;
            }
            let is_stale = after == 0 && self.is_stale(have, stage);
            if is_stale {
                self.notes.push(
                    "the device's line rate or its longest frame has changed since".to_owned(),
                );
            }
            if after == 0 && changes.is_empty() && (is_stale || !have.amiss.is_empty()) {
                changes.push(configure(stage));
            }
        }
        if self.has_old_filters(have) {
            self.notes.push(
                "one program classifies from now on, in the place of the kernel's filters"
                    .to_owned(),
            );
            if changes.is_empty() {
                changes.push(configure(now));
            }
        }
        self.changes.extend(changes);
        Ok(())
    }

    /// Returns whether a psp of BPF, which no device notifies, has another line or longest frame
    /// than it would get now.
    fn is_stale(&self, have: &Psp, options: &QdiscOptions) -> bool {
        let line_bps = options.line_rate_bps.or(self.port.speed_bps);
        have.made == Made::Bpf
            && (have.line_bps != line_bps
                || have.max_frame_bytes != u64::from(self.port.max_frame_bytes))
    }

    /// Returns whether filters of the kernel's kinds are asked where a program can be.
    fn has_old_filters(&self, have: &Psp) -> bool {
        have.made == Made::Module
            && self.port.can_classify
            && !have.is_classified
            && have.filters.iter().any(FilterState::is_ours)
    }

    /// Returns the classes that go.
    fn going(&mut self, have: &Psp, want: &TargetPsp) -> Result<Vec<u16>, Refusal> {
        let mut going = Vec::new();
        let others: Vec<&FilterState> = have.filters.iter().filter(|f| !f.is_ours()).collect();
        for (minor, class) in &have.classes {
            let id = Handle::new(have.handle.major(), *minor);
            if want.classes.contains_key(minor) {
                continue;
            }
            if !is_ours(*minor) && !self.take_over {
                self.notes
                    .push(format!("class {id} is of others and stays"));
                continue;
            }
            let is_in = |(other, state): &(&u16, &ClassState)| {
                state.options.group == Some(*minor) && !is_ours(**other)
            };
            let mut classes = have.classes.iter();
            if is_group_state(class) && !self.take_over && classes.any(|class| is_in(&class)) {
                let what = format!("group {id} goes, and others have put a class into it");
                return self.leave(&what, "deletes both");
            }
            if class.has_queue && !self.take_over {
                let what = format!("class {id} goes, and others have put a queue into it");
                return self.leave(&what, "deletes both");
            }
            let mut others = others.iter();
            let named = others.find(|filter| filter.class == Some(*minor));
            if let (Some(filter), false) = (named, self.take_over) {
                let what = format!(
                    "class {id} goes, and a filter of others names it: {} of priority {}",
                    filter.kind, filter.priority
                );
                return self.leave(&what, "deletes both");
            }
            if class.waiting > 0 {
                self.notes.push(format!(
                    "{} packets wait in class {}; it goes once they are sent",
                    class.waiting,
                    self.name(*minor)
                ));
            }
            going.push(*minor);
        }
        Ok(going)
    }

    /// Returns the steps of the filters of ours, and the filters of others that go.
    fn edits<'b>(
        &mut self,
        have: &'b Psp,
        want: &TargetPsp,
    ) -> Result<(Edits, Vec<&'b FilterState>), Refusal> {
        let (ours, others): (Vec<_>, Vec<_>) =
            have.filters.iter().partition(|filter| filter.is_ours());
        if !others.is_empty() && !self.take_over {
            let count = others.len();
            self.notes.push(format!("filters of others stay: {count}"));
        }
        let ours: Vec<Placed> = ours
            .iter()
            .filter_map(|filter| {
                Some(Placed {
                    priority: filter.priority,
                    handle: filter.handle,
                    matching: filter.matching.clone()?,
                    class: filter.class.unwrap_or(0),
                })
            })
            .collect();
        let wanted: Vec<Wanted> = want
            .rules
            .iter()
            .map(|rule| Wanted {
                matching: rule.matching.clone(),
                class: rule.class,
                place: rule.place,
            })
            .collect();
        let taken: BTreeSet<u16> = others.iter().map(|filter| filter.priority).collect();
        let Some(edits) = merge(&ours, &wanted, &taken) else {
            return self.refuse(
                "no room for the filters between those that are there; `pspacer remove` and \
                 `apply` make some",
            );
        };
        let going = if self.take_over {
            others.into_iter().rev().collect()
        } else {
            Vec::new()
        };
        Ok((edits, going))
    }
}

fn is_group(options: &ClassOptions) -> bool {
    matches!(options.by_type, TypeOptions::Group { .. })
}

fn is_group_state(class: &ClassState) -> bool {
    is_group(&class.options)
}

/// Returns the groups whose ceil gets less: they change once their classes have.
fn narrowed(have: &Psp, want: &TargetPsp) -> Vec<u16> {
    let narrowed = want.classes.iter().filter(|(minor, options)| {
        let had = have.classes.get(minor).map(|class| &class.options);
        had.is_some_and(|had| group_ceil_bps(had) > group_ceil_bps(options))
    });
    narrowed.map(|(minor, _)| *minor).collect()
}

/// Adds the changes of classes that stay, and those that come. Reservations shrink before others
/// grow, so that no more is promised in between than at either end. A group is there, and wide
/// enough, before its classes.
fn classes(have: &Psp, want: &TargetPsp, narrowed: &[u16], changes: &mut Vec<Change>) {
    let largest = u32::try_from(have.max_frame_bytes).ok();
    let (mut changed, mut added) = (Vec::new(), Vec::new());
    for (minor, options) in &want.classes {
        let id = Handle::new(have.handle.major(), *minor);
        let is_class = !is_group(options);
        let options = options.clone();
        match have.classes.get(minor) {
            None => added.push((is_class, Change::AddClass { id, options })),
            Some(class) if is_same(&class.options, &options, largest) => {}
            Some(_) if narrowed.binary_search(minor).is_ok() => {}
            Some(class) => {
                let grows = options.reserve_bytes() > class.options.reserve_bytes();
                changed.push((is_class, grows, Change::ChangeClass { id, options }));
            }
        }
    }
    changed.sort_by_key(|(is_class, grows, _)| (*is_class, *grows));
    changes.extend(changed.into_iter().map(|(.., change)| change));
    added.sort_by_key(|(is_class, _)| *is_class);
    changes.extend(added.into_iter().map(|(_, change)| change));
}

/// Returns a psp after changes; `None` if one is refused.
fn after(port: &Port, have: &Psp, changes: &[Change]) -> Option<Psp> {
    let mut model = Port {
        root: Root::One(Slot::Psp(have.clone())),
        ..port.clone()
    };
    changes
        .iter()
        .try_for_each(|change| model.apply(change))
        .ok()?;
    model.psp(have.handle).cloned()
}

/// Returns the options that a new qdisc begins with: nothing goes to the default class before all
/// filters are there.
fn first_options(want: &TargetPsp) -> QdiscOptions {
    let mut options = want.options.clone();
    if !want.rules.is_empty() {
        options.default_minor = 0;
    }
    options
}

/// Returns whether a class has these options: the kernel dumps the default of the quantum as a
/// number, one largest frame.
fn is_same(have: &ClassOptions, want: &ClassOptions, largest: Option<u32>) -> bool {
    let mut want = want.clone();
    if let TypeOptions::Normal { quantum_bytes } = &mut want.by_type {
        *quantum_bytes = quantum_bytes.or(largest);
    }
    *have == want
}
