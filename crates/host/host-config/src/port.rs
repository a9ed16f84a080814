// SPDX-License-Identifier: MIT OR Apache-2.0
//! A device's qdiscs, classes and filters, as far as they matter to a plan.

use std::collections::BTreeMap;

use tcpsp::{Class, ClassOptions, Filter, Handle, Match, Qdisc, QdiscOptions};

use crate::backend::Made;
use crate::minor;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    pub name: String,
    /// Whether its frames are Ethernet's.
    pub is_ethernet: bool,
    /// Its transmit queues.
    pub queues: u16,
    /// Its line rate, if it names one that is its own.
    pub speed_bps: Option<u64>,
    /// Whether the kernel makes one up, which the module would go by.
    pub has_made_up_speed: bool,
    /// Its longest frame, without a VLAN tag.
    pub max_frame_bytes: u32,
    /// What a psp is made of that is put there.
    pub made: Made,
    /// Whether one program can classify the packets of the module's psp.
    pub can_classify: bool,
    /// What stands at its root.
    pub root: Root,
}

/// What stands at a device's root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Root {
    One(Slot),
    /// Our mq: what stands at each transmit queue.
    Mq(Vec<Slot>),
}

/// What stands at a root or at a transmit queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Slot {
    /// What the kernel put there on its own.
    Default {
        kind: String,
        /// Packets that wait in it.
        waiting: u32,
    },
    /// A qdisc of others.
    Other {
        kind: String,
        handle: Handle,
        /// Packets that wait in it.
        waiting: u32,
    },
    /// A psp of ours.
    Psp(Psp),
}

impl Slot {
    fn psp(&self) -> Option<&Psp> {
        match self {
            Self::Psp(psp) => Some(psp),
            _ => None,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Psp {
    pub made: Made,
    pub handle: Handle,
    /// Where it stands.
    pub parent: Handle,
    pub options: QdiscOptions,
    /// The line rate in force, if the device or an option names one.
    pub line_bps: Option<u64>,
    pub max_frame_bytes: u64,
    /// Its classes, by minor number.
    pub classes: BTreeMap<u16, ClassState>,
    /// Its filters, by priority and number.
    pub filters: Vec<FilterState>,
    /// Whether one program stands for the filters of ours: the module's psp has that, where BPF is
    /// there.
    pub is_classified: bool,
    /// Whether it is of another version of this program, so that nobody knows what it does.
    pub is_unread: bool,
    /// What keeps its packets and is not as `apply` makes it: fqs, for departure times.
    pub amiss: Vec<Amiss>,
}

/// What is not as `apply` makes it, at one place or several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Amiss {
    /// The place, what is there, and what is expected.
    pub what: String,
    /// Whether others put it there.
    pub is_of_others: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassState {
    pub options: ClassOptions,
    /// Packets that wait in it.
    pub waiting: u32,
    /// Whether others have put a queue of their own into it.
    pub has_queue: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterState {
    pub priority: u16,
    /// Its number among those of the priority.
    pub handle: u32,
    /// The kernel's name of its kind.
    pub kind: String,
    /// The EtherType that it is tried on.
    pub protocol: u16,
    /// Minor number of the class that it names.
    pub class: Option<u16>,
    /// What it looks at, if it is of a kind that is written here.
    pub matching: Option<Match>,
}

impl FilterState {
    /// Returns a filter as the kernel's table has it.
    pub fn new(filter: &Filter) -> Self {
        Self {
            priority: filter.priority,
            handle: filter.handle,
            kind: filter.kind.clone(),
            protocol: filter.protocol,
            class: filter.class.map(Handle::minor),
            matching: filter.matching(),
        }
    }

    /// Returns its place among others.
    pub fn place(&self) -> (u16, u32) {
        (self.priority, self.handle)
    }

    /// Returns whether the filter is of ours: by its priority and number, of which a filter of
    /// marks has no choice.
    pub fn is_ours(&self) -> bool {
        let is_numbered = match self.matching {
            Some(Match::Mark(_)) => true,
            Some(_) => (minor::FILTER..=minor::FILTER_LAST).contains(&self.handle),
            None => false,
        };
        is_numbered && self.priority <= minor::LAST_PRIORITY
    }
}

/// What is known of a device beside its tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Interface index.
    pub index: u32,
    pub name: String,
    /// Whether its frames are Ethernet's.
    pub is_ethernet: bool,
    /// Its transmit queues.
    pub queues: u16,
    /// Its line rate, if it names one that is its own.
    pub speed_bps: Option<u64>,
    /// Whether the kernel makes one up, which the module would go by.
    pub has_made_up_speed: bool,
    /// Its longest frame, without a VLAN tag.
    pub max_frame_bytes: u32,
}

impl Port {
    /// Puts together what the kernel's tables say of a device: the qdiscs of all devices, the
    /// classes of this one, and the filters of its qdiscs of ours.
    pub fn new(facts: &Facts, qdiscs: &[Qdisc], classes: &[Class], filters: &[Filter]) -> Self {
        let ours: Vec<&Qdisc> = qdiscs.iter().filter(|q| q.device == facts.index).collect();
        let at = |parent: Handle| ours.iter().copied().find(|qdisc| qdisc.parent == parent);
        let slot = |parent: Handle, wanted: Handle| match at(parent) {
            None => Slot::Default {
                kind: "none".to_owned(),
                waiting: 0,
            },
            Some(qdisc) => match &qdisc.psp {
                Some(_) if qdisc.handle == wanted => {
                    Slot::Psp(Psp::new(qdisc, &ours, classes, filters))
                }
                _ => other(qdisc),
            },
        };
        let root = match at(Handle::ROOT) {
            Some(root) if root.kind == "mq" && root.handle == minor::mq() => {
                let queues = 0..facts.queues;
                let slots = queues.map(|q| slot(minor::mq_class(q), minor::below_mq(q)));
                Root::Mq(slots.collect())
            }
            _ => Root::One(slot(Handle::ROOT, minor::root())),
        };
        Self {
            name: facts.name.clone(),
            is_ethernet: facts.is_ethernet,
            queues: facts.queues,
            speed_bps: facts.speed_bps,
            has_made_up_speed: facts.has_made_up_speed,
            max_frame_bytes: facts.max_frame_bytes,
            made: Made::Module,
            can_classify: false,
            root,
        }
    }

    /// Returns the qdiscs of ours.
    pub fn psps(&self) -> Vec<&Psp> {
        match &self.root {
            Root::One(slot) => slot.psp().into_iter().collect(),
            Root::Mq(slots) => slots.iter().filter_map(Slot::psp).collect(),
        }
    }

    /// Returns the qdiscs of ours, to change them.
    pub fn psps_mut(&mut self) -> impl Iterator<Item = &mut Psp> {
        let slots = match &mut self.root {
            Root::One(slot) => std::slice::from_mut(slot),
            Root::Mq(slots) => slots.as_mut_slice(),
        };
        slots.iter_mut().filter_map(|slot| match slot {
            Slot::Psp(psp) => Some(psp),
            _ => None,
        })
    }

    /// Takes the line rate that a qdisc of ours goes by where the device says none, as the module
    /// does: while the link is down a NIC has no speed, and it will have one again.
    pub fn keep_known_speed(&mut self) {
        if self.speed_bps.is_some() || self.has_made_up_speed {
            return;
        }
        let goes_by = |psp: &&Psp| {
            let is_whole = psp.made == Made::Bpf || psp.parent == Handle::ROOT;
            is_whole && psp.options.line_rate_bps.is_none()
        };
        let psps = self.psps();
        self.speed_bps = psps.into_iter().find(goes_by).and_then(|psp| psp.line_bps);
    }

    /// Returns the qdisc of ours with this id.
    pub fn psp(&self, handle: Handle) -> Option<&Psp> {
        self.psps().into_iter().find(|psp| psp.handle == handle)
    }
}

fn other(qdisc: &Qdisc) -> Slot {
    let (kind, waiting) = (qdisc.kind.clone(), qdisc.counters.waiting_packets);
    match qdisc.handle {
        Handle::NONE => Slot::Default { kind, waiting },
        handle => Slot::Other {
            kind,
            handle,
            waiting,
        },
    }
}

impl Psp {
    /// Returns the filter at a place. O(log n).
    pub fn filter_at(&self, place: (u16, u32)) -> Option<&FilterState> {
        let at = self
            .filters
            .partition_point(|filter| filter.place() < place);
        self.filters
            .get(at)
            .filter(|filter| filter.place() == place)
    }

    /// Returns one that does nothing yet.
    pub fn empty(made: Made, handle: Handle, parent: Handle) -> Self {
        Self {
            made,
            handle,
            parent,
            options: QdiscOptions::default_of(true),
            line_bps: None,
            max_frame_bytes: 0,
            classes: BTreeMap::new(),
            filters: Vec::new(),
            is_classified: false,
            is_unread: false,
            amiss: Vec::new(),
        }
    }

    /// Returns which packets go to which class, the first that matches deciding, and whether
    /// net_cls.classid of the sender's cgroup names the class of the others. O(n log n).
    pub fn rules(&self) -> (Vec<(&Match, u16)>, bool) {
        let mut filters: Vec<&FilterState> = self.filters.iter().collect();
        filters.sort_by_key(|filter| filter.place());
        let is_cgroup = |filter: &&FilterState| filter.matching == Some(Match::Cgroup);
        let net_cls = filters.iter().any(is_cgroup);
        let rules = filters.into_iter().filter(|filter| !is_cgroup(filter));
        let rules = rules.filter_map(|filter| Some((filter.matching.as_ref()?, filter.class?)));
        (rules.collect(), net_cls)
    }

    fn new(qdisc: &Qdisc, qdiscs: &[&Qdisc], classes: &[Class], filters: &[Filter]) -> Self {
        let psp = qdisc.psp.as_ref();
        let stats = psp.map(|psp| &psp.stats);
        let options = psp.map_or_else(|| QdiscOptions::default_of(true), |psp| psp.options.clone());
        let classes = classes.iter().filter_map(|class| {
            let psp = class.psp.as_ref()?;
            let state = ClassState {
                options: psp.options.clone(),
                waiting: class.counters.waiting_packets,
                has_queue: qdiscs.iter().any(|queue| queue.parent == class.id),
            };
            (class.id.qdisc() == qdisc.handle).then_some((class.id.minor(), state))
        });
        let mut filters: Vec<_> = filters
            .iter()
            .filter(|filter| filter.parent == qdisc.handle)
            .map(FilterState::new)
            .collect();
        filters.sort_by_key(FilterState::place);
        Self {
            made: Made::of_kind(&qdisc.kind),
            handle: qdisc.handle,
            parent: qdisc.parent,
            line_bps: stats
                .filter(|stats| stats.line_known != 0)
                .map(|stats| stats.line_rate_bps),
            max_frame_bytes: stats.map_or(0, |stats| stats.max_frame_bytes),
            classes: classes.collect(),
            filters,
            is_classified: false,
            is_unread: false,
            amiss: Vec::new(),
            options,
        }
    }
}
