// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a change does to a device's tables, with the kernel's refusals: what a plan is tried and
//! tested on.

use tcpsp::{Change, ClassOptions, FilterId, Handle, Match, QdiscKind, QdiscOptions, TypeOptions};

use crate::file::budget_bytes;
use crate::minor;
use crate::moves::{group_ceil_bps, is_change};
use crate::port::{ClassState, FilterState, Port, Psp, Root, Slot};

impl Port {
    /// Makes a change.
    ///
    /// # Errors
    /// A refusal, as a sentence: nothing is changed then.
    pub fn apply(&mut self, change: &Change) -> Result<(), String> {
        match change {
            Change::AddQdisc {
                parent,
                handle,
                kind,
            } => self.put(*parent, *handle, kind, false),
            Change::ReplaceQdisc {
                parent,
                handle,
                kind,
            } => self.put(*parent, *handle, kind, true),
            Change::ChangeQdisc {
                handle, options, ..
            } => {
                let (speed_bps, max_frame_bytes) = (self.speed_bps, self.max_frame_bytes);
                let psp = self.known(*handle)?;
                psp.configure(options, speed_bps)?;
                psp.max_frame_bytes = max_frame_bytes.into();
                psp.amiss.clear();
                Ok(())
            }
            Change::DeleteQdisc { parent, .. } => {
                let default = Slot::Default {
                    kind: "default".to_owned(),
                    waiting: 0,
                };
                match (&mut self.root, *parent) {
                    (root, Handle::ROOT) => *root = Root::One(default),
                    (Root::Mq(slots), parent) => *slot(slots, parent)? = default,
                    (Root::One(_), parent) => return Err(format!("{parent}: no mq")),
                }
                Ok(())
            }
            Change::AddClass { id, options } => {
                let psp = self.known(id.qdisc())?;
                if psp.classes.contains_key(&id.minor()) {
                    return Err(format!("class {id}: is there"));
                }
                psp.check_class(*id, options)?;
                let class = ClassState {
                    options: psp.in_force(options),
                    waiting: 0,
                    has_queue: false,
                };
                psp.classes.insert(id.minor(), class);
                Ok(())
            }
            Change::ChangeClass { id, options } => {
                let psp = self.known(id.qdisc())?;
                psp.check_class(*id, options)?;
                psp.check_change(*id, options)?;
                let options = psp.in_force(options);
                let class = psp.classes.get_mut(&id.minor());
                class
                    .ok_or_else(|| format!("class {id}: is not there"))?
                    .options = options;
                Ok(())
            }
            Change::DeleteClass { id } => {
                let psp = self.known(id.qdisc())?;
                if psp.filters.iter().any(|f| f.class == Some(id.minor())) {
                    return Err(format!("class {id}: filters name it"));
                }
                let state = psp.classes.get(&id.minor());
                let is_group = state.is_some_and(|s| group_ceil_bps(&s.options).is_some());
                if is_group && psp.members(id.minor()).next().is_some() {
                    return Err(format!("class {id}: it has classes"));
                }
                let class = psp.classes.remove(&id.minor());
                class
                    .map(|_| ())
                    .ok_or_else(|| format!("class {id}: is not there"))
            }
            Change::AddFilter {
                at,
                matching,
                class,
            } => self.known(at.qdisc)?.add_filter(at, matching, *class),
            Change::ReplaceFilter {
                at,
                matching,
                class,
            } => {
                let psp = self.known(at.qdisc)?;
                psp.check_named(*class)?;
                let index = psp.index_of(at)?;
                let filter = &mut psp.filters[index];
                if filter.matching.as_ref() != Some(matching) {
                    return Err(format!("filter {}: looks at something else", at.priority));
                }
                filter.class = Some(class.minor());
                Ok(())
            }
            Change::DeleteFilter { at, .. } => {
                let psp = self.known(at.qdisc)?;
                let index = psp.index_of(at)?;
                psp.filters.remove(index);
                Ok(())
            }
        }
    }

    fn put(
        &mut self,
        parent: Handle,
        handle: Handle,
        kind: &QdiscKind,
        may_replace: bool,
    ) -> Result<(), String> {
        let has_handle = match &self.root {
            Root::Mq(_) => handle == minor::mq() || self.psp(handle).is_some(),
            Root::One(Slot::Other { handle: other, .. }) => *other == handle,
            Root::One(_) => self.psp(handle).is_some(),
        };
        if has_handle {
            return Err(format!("qdisc {handle}: is there"));
        }
        let line_bps = match kind {
            QdiscKind::Psp(options) => options.line_rate_bps.or(self.speed_bps),
            QdiscKind::Mq => None,
        };
        let queues = self.queues.into();
        let default = || Slot::Default {
            kind: "default".to_owned(),
            waiting: 0,
        };
        let new = match kind {
            QdiscKind::Mq if parent == Handle::ROOT => {
                Root::Mq(std::iter::repeat_with(default).take(queues).collect())
            }
            QdiscKind::Mq => return Err("mq: expected root".to_owned()),
            QdiscKind::Psp(options) => Root::One(Slot::Psp(Psp {
                made: self.made,
                handle,
                parent,
                options: options.clone(),
                line_bps,
                max_frame_bytes: self.max_frame_bytes.into(),
                classes: Default::default(),
                filters: Vec::new(),
                is_classified: false,
                is_unread: false,
                amiss: Vec::new(),
            })),
        };
        let is_default = |slot: &Slot| matches!(slot, Slot::Default { .. });
        match (&mut self.root, new) {
            (root, new) if parent == Handle::ROOT => {
                let may = may_replace || matches!(root, Root::One(slot) if is_default(slot));
                if !may {
                    return Err("root: there is a qdisc".to_owned());
                }
                *root = new;
            }
            (Root::Mq(slots), Root::One(new)) => {
                let slot = slot(slots, parent)?;
                if !may_replace && !is_default(slot) {
                    return Err(format!("{parent}: there is a qdisc"));
                }
                *slot = new;
            }
            _ => return Err(format!("{parent}: no mq")),
        }
        Ok(())
    }

    fn known(&mut self, handle: Handle) -> Result<&mut Psp, String> {
        let slots = match &mut self.root {
            Root::One(slot) => std::slice::from_mut(slot),
            Root::Mq(slots) => slots.as_mut_slice(),
        };
        let psp = slots.iter_mut().find_map(|slot| match slot {
            Slot::Psp(psp) if psp.handle == handle => Some(psp),
            _ => None,
        });
        psp.ok_or_else(|| format!("qdisc {handle}: is not there"))
    }
}

fn slot(slots: &mut [Slot], parent: Handle) -> Result<&mut Slot, String> {
    let queue = usize::from(parent.minor()).checked_sub(1);
    let is_mq = parent.qdisc() == minor::mq();
    queue
        .filter(|_| is_mq)
        .and_then(|queue| slots.get_mut(queue))
        .ok_or_else(|| format!("{parent}: no such queue"))
}

/// Returns the highest rate that a class asks for, with its key.
fn highest(options: &ClassOptions) -> (u64, &'static str) {
    let (rate, ceil, total) = match &options.by_type {
        TypeOptions::Paced {
            rate_bps, ceil_bps, ..
        }
        | TypeOptions::Group { rate_bps, ceil_bps } => (Some(*rate_bps), *ceil_bps, None),
        TypeOptions::Dynamic(dynamic) => (dynamic.rate_bps, dynamic.ceil_bps, dynamic.total_bps),
        _ => (None, None, None),
    };
    let of = |bps: Option<u64>, key| (bps.unwrap_or(0), key);
    // Of two that are the same `rate` is the last.
    of(total, "total")
        .max(of(ceil, "ceil"))
        .max(of(rate, "rate"))
}

/// Returns the highest rate that a class asks for.
pub(crate) fn highest_bps(options: &ClassOptions) -> u64 {
    highest(options).0
}

impl Psp {
    fn configure(&mut self, options: &QdiscOptions, speed_bps: Option<u64>) -> Result<(), String> {
        let line_bps = options.line_rate_bps.or(speed_bps);
        let classes = self.classes.values();
        let highest = classes.clone().map(|class| highest(&class.options)).max();
        if let (Some(line_bps), Some((most_bps, key))) = (line_bps, highest) {
            if most_bps > line_bps {
                return Err(format!(
                    "`line` is {line_bps} bit/s, expected at least {most_bps} bit/s, the highest \
                     `{key}` of a class"
                ));
            }
        }
        let reserved = classes.map(|class| class.options.reserve_bytes());
        let reserved = reserved.fold(0, u64::saturating_add);
        if let Some(budget) = budget_bytes(options, line_bps).filter(|budget| reserved > *budget) {
            return Err(format!(
                "`budget` is {budget} bytes a period, expected at least {reserved}, which the \
                 classes reserve"
            ));
        }
        self.options = options.clone();
        self.line_bps = line_bps;
        Ok(())
    }

    /// Returns options as the kernel dumps them.
    fn in_force(&self, options: &ClassOptions) -> ClassOptions {
        let mut options = options.clone();
        if let TypeOptions::Normal { quantum_bytes } = &mut options.by_type {
            let largest = u32::try_from(self.max_frame_bytes).ok();
            *quantum_bytes = quantum_bytes.or(largest);
        }
        options
    }

    fn check_class(&self, id: Handle, options: &ClassOptions) -> Result<(), String> {
        let (most_bps, key) = highest(options);
        if let Some(line_bps) = self.line_bps.filter(|line_bps| most_bps > *line_bps) {
            return Err(format!(
                "class {id}: `{key}` is {most_bps} bit/s, expected at most the line's {line_bps} \
                 bit/s"
            ));
        }
        self.check_group(id, options)?;
        if options.reserve_bytes() == 0 {
            return Ok(());
        }
        let others = self
            .classes
            .iter()
            .filter(|(minor, _)| **minor != id.minor());
        let others = others.map(|(_, class)| class.options.reserve_bytes());
        let others = others.fold(0, u64::saturating_add);
        let reserved = options.reserve_bytes();
        let left = budget_bytes(&self.options, self.line_bps);
        let left = left.map(|budget| budget.saturating_sub(others));
        if let Some(left) = left.filter(|left| reserved > *left) {
            return Err(format!(
                "class {id}: `reserve` is {reserved} bytes, expected at most {left}, what is left of \
                 the budget"
            ));
        }
        Ok(())
    }

    /// Returns the classes of a group. O(classes).
    fn members(&self, group: u16) -> impl Iterator<Item = &ClassState> {
        let classes = self.classes.values();
        classes.filter(move |class| class.options.group == Some(group))
    }

    /// Refuses a class that its group does not take, or a group that its classes do not fit.
    fn check_group(&self, id: Handle, options: &ClassOptions) -> Result<(), String> {
        if let Some(group) = options.group {
            let state = self.classes.get(&group);
            let most_bps = state.and_then(|state| group_ceil_bps(&state.options));
            let (bps, key) = highest(options);
            let Some(most_bps) = most_bps else {
                return Err(format!("class {id}: its group {group:x} is not there"));
            };
            let is_taken = matches!(
                options.by_type,
                TypeOptions::Normal { .. } | TypeOptions::Paced { launch: None, .. }
            );
            if !is_taken {
                return Err(format!("class {id}: its group {group:x} does not take it"));
            }
            if bps > most_bps {
                return Err(format!(
                    "class {id}: `{key}` is {bps} bit/s, expected at most the {most_bps} bit/s of \
                     its group {group:x}"
                ));
            }
        }
        if let Some(most_bps) = group_ceil_bps(options) {
            let mut members = self.members(id.minor());
            if members.any(|member| highest_bps(&member.options) > most_bps) {
                return Err(format!("class {id}: classes of the group ask for more"));
            }
        }
        Ok(())
    }

    fn check_change(&self, id: Handle, options: &ClassOptions) -> Result<(), String> {
        let had = self.classes.get(&id.minor());
        if had.is_some_and(|had| !is_change(&had.options, options)) {
            return Err(format!("class {id}: it stays where it is, and what it is"));
        }
        Ok(())
    }

    fn check_named(&self, class: Handle) -> Result<(), String> {
        let is_there = self.classes.contains_key(&class.minor());
        if is_there && class.qdisc() == self.handle {
            Ok(())
        } else {
            Err(format!("filter: class {class} is not there"))
        }
    }

    fn add_filter(&mut self, at: &FilterId, matching: &Match, class: Handle) -> Result<(), String> {
        let place = (at.priority, at.handle);
        let before = self
            .filters
            .partition_point(|filter| filter.place() < place);
        let beside = [before.checked_sub(1), Some(before)].into_iter().flatten();
        let mut beside = beside.filter_map(|at| self.filters.get(at));
        let kind = (matching.kind(), matching.protocol());
        let is_in_the_way = |other: &FilterState| {
            other.priority == at.priority
                && (other.handle == at.handle || (other.kind.as_str(), other.protocol) != kind)
        };
        if beside.any(is_in_the_way) {
            return Err(format!("filter {}: is there", at.priority));
        }
        if *matching != Match::Cgroup {
            self.check_named(class)?;
        }
        let class = (*matching != Match::Cgroup).then_some(class.minor());
        let filter = FilterState {
            priority: at.priority,
            handle: at.handle,
            kind: matching.kind().to_owned(),
            protocol: matching.protocol(),
            class,
            matching: Some(matching.clone()),
        };
        self.filters.insert(before, filter);
        Ok(())
    }

    fn index_of(&self, at: &FilterId) -> Result<usize, String> {
        let place = (at.priority, at.handle);
        let index = self
            .filters
            .partition_point(|filter| filter.place() < place);
        match self.filters.get(index) {
            Some(filter) if filter.place() == place => Ok(index),
            _ => Err(format!("filter {}: is not there", at.priority)),
        }
    }
}
