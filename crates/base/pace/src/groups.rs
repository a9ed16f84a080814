// SPDX-License-Identifier: MIT OR Apache-2.0
//! Groups: classes that share the rate and the ceil of one node of the port.
//!
//! A class of a group has a slot above [`MEMBER`], so the calls for classes serve it, too.
#![allow(unsafe_code)]

use crate::layout::{
    ErrorCode, RawBurst, RawClass, RawClassConfig, RawConfig, RawDecision, RawSched, SEND,
};
use crate::memory::{Class, Memory};

/// Slots from here on are of classes in groups.
const MEMBER: u32 = 1 << 31;
/// Most classes of one group: this binding does not grow its memory.
pub const GROUP_CLASSES_MAX: u32 = 1024;

// SAFETY: the signatures are those of pace_group.h, with a group where its first member, a
// scheduler, is: shim.c asserts that.
unsafe extern "C" {
    static pace_shim_group_bytes: usize;
    fn pace_shim_class_id(c: *const RawClass) -> u32;
    fn pace_storage_bytes(capacity: u32) -> usize;
    fn pace_class_check(
        s: *const RawSched,
        c: *const RawClass,
        cfg: *const RawClassConfig,
    ) -> ErrorCode;
    fn pace_class_add(s: *mut RawSched, c: *mut RawClass, cfg: *const RawClassConfig) -> ErrorCode;
    fn pace_group_check(
        port: *const RawConfig,
        group: *const RawSched,
        ceil_bps: u64,
        culprit: *mut *mut RawClass,
    ) -> ErrorCode;
    fn pace_group_init(
        port: *const RawSched,
        group: *mut RawSched,
        node: *mut RawClass,
        ceil_bps: u64,
        storage: *mut u64,
        capacity: u32,
    ) -> ErrorCode;
    fn pace_group_join(
        port: *mut RawSched,
        group: *mut RawSched,
        part: *mut u64,
        ceil_part: *mut u64,
    );
    fn pace_group_configure(port: *mut RawSched, group: *mut RawSched, ceil_bps: u64, now_ns: u64);
    fn pace_group_class_change(
        port: *mut RawSched,
        group: *mut RawSched,
        c: *mut RawClass,
        cfg: *const RawClassConfig,
        now_ns: u64,
    ) -> ErrorCode;
    fn pace_group_class_del(port: *mut RawSched, group: *mut RawSched, c: *mut RawClass);
    fn pace_group_activate(
        port: *mut RawSched,
        group: *mut RawSched,
        c: *mut RawClass,
        now_ns: u64,
    );
    fn pace_group_deactivate(
        port: *mut RawSched,
        group: *mut RawSched,
        c: *mut RawClass,
        now_ns: u64,
    );
    fn pace_group_next(port: *mut RawSched, group: *mut RawSched) -> RawDecision;
    fn pace_group_sent(
        port: *mut RawSched,
        group: *mut RawSched,
        c: *mut RawClass,
        burst: *const RawBurst,
        more: bool,
        now_ns: u64,
    );
    fn pace_group_debt_ns(
        port: *const RawSched,
        group: *const RawSched,
        c: *const RawClass,
        now_ns: u64,
    ) -> u64;
}

struct Group {
    memory: Memory,
    /// The working memory of its scheduler.
    _storage: Memory,
    node: u32,
    ceil_bps: u64,
    /// Indices of members, by their ids in the group.
    by_id: Vec<usize>,
}

impl Group {
    fn raw(&self) -> *mut RawSched {
        self.memory.start.as_ptr().cast()
    }
}

struct Member {
    group: usize,
    /// `None` when it was removed.
    held: Option<Class>,
}

/// All groups of a port.
#[derive(Default)]
pub(crate) struct Groups {
    groups: Vec<Group>,
    members: Vec<Member>,
}

impl Groups {
    fn member(&self, slot: u32) -> Option<(&Member, &Class)> {
        let member = self.members.get(slot.checked_sub(MEMBER)? as usize)?;
        Some((member, member.held.as_ref()?))
    }

    /// Returns a class of a group; `None` for any other slot.
    pub fn class(&self, slot: u32) -> Option<*mut RawClass> {
        Some(self.member(slot)?.1.class.start.as_ptr().cast())
    }

    /// Returns the group of a class.
    pub fn of_member(&self, slot: u32) -> Option<*mut RawSched> {
        let (member, _) = self.member(slot)?;
        self.groups.get(member.group).map(Group::raw)
    }

    fn both(&self, slot: u32) -> Option<(*mut RawSched, *mut RawClass)> {
        Some((self.of_member(slot)?, self.class(slot)?))
    }

    /// The node is a class of the port already.
    pub fn add(
        &mut self,
        port: *mut RawSched,
        (node, node_class): (u32, *mut RawClass),
        ceil_bps: u64,
    ) -> Result<usize, ErrorCode> {
        // SAFETY: constants of shim.c; a pure function.
        let (memory, storage) = unsafe {
            (
                Memory::zeroed(pace_shim_group_bytes),
                Memory::zeroed(pace_storage_bytes(GROUP_CLASSES_MAX)),
            )
        };
        let raw = memory.start.as_ptr().cast();
        // SAFETY: both blocks are as large as the core says, and live as long as the port.
        let err = unsafe {
            pace_group_init(
                port,
                raw,
                node_class,
                ceil_bps,
                storage.start.as_ptr(),
                GROUP_CLASSES_MAX,
            )
        };
        if err != 0 {
            return Err(err);
        }
        self.groups.push(Group {
            memory,
            _storage: storage,
            node,
            ceil_bps,
            by_id: Vec::new(),
        });
        Ok(self.groups.len() - 1)
    }

    /// Makes a group the device's, if that is its node.
    pub fn join(
        &self,
        port: *mut RawSched,
        node: u32,
        part: *mut u64,
        ceil_part: *mut u64,
    ) -> Option<()> {
        let group = self.groups.iter().find(|group| group.node == node)?;
        // SAFETY: a group of this port, which holds both clocks that the parts are of.
        unsafe { pace_group_join(port, group.raw(), part, ceil_part) };
        Some(())
    }

    pub fn check(&self, cfg: &RawConfig, group: usize, ceil_bps: u64) -> ErrorCode {
        let raw = self
            .groups
            .get(group)
            .map_or(std::ptr::null_mut(), Group::raw);
        // SAFETY: a group of this port or NULL; the culprit is not asked for.
        unsafe { pace_group_check(cfg, raw, ceil_bps, std::ptr::null_mut()) }
    }

    pub fn configure(&mut self, port: *mut RawSched, group: usize, ceil_bps: u64, now_ns: u64) {
        if let Some(group) = self.groups.get_mut(group) {
            group.ceil_bps = ceil_bps;
            let raw = group.raw();
            // SAFETY: a group of this port, checked by the caller.
            unsafe { pace_group_configure(port, raw, ceil_bps, now_ns) }
        }
    }

    /// May the port have this configuration, as far as the classes of groups go?
    pub fn check_all(&self, cfg: &RawConfig) -> Result<(), (ErrorCode, Option<u32>)> {
        for (index, group) in self.groups.iter().enumerate() {
            match self.check(cfg, index, group.ceil_bps) {
                0 => {}
                code => return Err((code, None)),
            }
        }
        Ok(())
    }

    /// Brings all groups to the configuration of the port.
    pub fn configure_all(&mut self, port: *mut RawSched, now_ns: u64) {
        for index in 0..self.groups.len() {
            self.configure(port, index, self.groups[index].ceil_bps, now_ns);
        }
    }

    pub fn add_class(&mut self, group: usize, cfg: &RawClassConfig) -> Result<u32, ErrorCode> {
        let held = Class::new();
        let class: *mut RawClass = held.class.start.as_ptr().cast();
        let index = self.members.len();
        let of = &mut self.groups[group];
        // SAFETY: zeroed memory of the size of a class, kept as long as the core knows it.
        let id = unsafe {
            let err = pace_class_add(of.raw(), class, cfg);
            if err != 0 {
                return Err(err);
            }
            pace_shim_class_id(class) as usize
        };
        if of.by_id.len() <= id {
            of.by_id.resize(id + 1, 0);
        }
        of.by_id[id] = index;
        self.members.push(Member {
            group,
            held: Some(held),
        });
        Ok(MEMBER + index as u32)
    }

    pub fn change(
        &mut self,
        port: *mut RawSched,
        slot: u32,
        cfg: &RawClassConfig,
        now_ns: u64,
    ) -> Option<ErrorCode> {
        let (group, class) = self.both(slot)?;
        // SAFETY: the class is alive and of this group of this port.
        Some(unsafe {
            match pace_class_check(group, class, cfg) {
                0 => pace_group_class_change(port, group, class, cfg, now_ns),
                err => err,
            }
        })
    }

    pub fn del(&mut self, port: *mut RawSched, slot: u32) -> Option<()> {
        let (group, class) = self.both(slot)?;
        // SAFETY: as above; the core forgets it, then it is freed.
        unsafe { pace_group_class_del(port, group, class) };
        self.members[(slot - MEMBER) as usize].held = None;
        Some(())
    }

    pub fn activate(
        &mut self,
        port: *mut RawSched,
        slot: u32,
        on: bool,
        now_ns: u64,
    ) -> Option<()> {
        let (group, class) = self.both(slot)?;
        // SAFETY: as above.
        unsafe {
            if on {
                pace_group_activate(port, group, class, now_ns);
            } else {
                pace_group_deactivate(port, group, class, now_ns);
            }
        }
        Some(())
    }

    /// Returns what the group of a node decides, and the slot of its class if one is due;
    /// `None`: the class is no node.
    pub fn next(&mut self, port: *mut RawSched, node: u32) -> Option<(RawDecision, Option<u32>)> {
        let group = self.groups.iter().find(|group| group.node == node)?;
        // SAFETY: a group of this port, which has just named its node; the core names none
        // but active classes, which are alive.
        let (decision, id) = unsafe {
            let decision = pace_group_next(port, group.raw());
            let id = (decision.verdict == SEND).then(|| pace_shim_class_id(decision.cls));
            (decision, id)
        };
        let index = id.and_then(|id| group.by_id.get(id as usize).copied());
        Some((decision, index.map(|index| MEMBER + index as u32)))
    }

    pub fn sent(
        &mut self,
        port: *mut RawSched,
        slot: u32,
        (len_bytes, wire_bytes, frames): (u32, u32, u32),
        more: bool,
        now_ns: u64,
    ) -> Option<()> {
        let (group, class) = self.both(slot)?;
        let burst = RawBurst {
            len_bytes,
            frames,
            wire_bytes,
        };
        // SAFETY: as above; the caller has checked that the class is active.
        unsafe { pace_group_sent(port, group, class, &burst, more, now_ns) };
        Some(())
    }

    pub fn debt_ns(&self, port: *mut RawSched, slot: u32, now_ns: u64) -> Option<u64> {
        let (group, class) = self.both(slot)?;
        // SAFETY: as above.
        Some(unsafe { pace_group_debt_ns(port, group, class, now_ns) })
    }
}

/// A group of classes of one scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupId {
    pub(crate) index: usize,
    pub(crate) node: u32,
}
