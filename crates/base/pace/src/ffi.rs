// SPDX-License-Identifier: MIT OR Apache-2.0
//! The only unsafe code of this crate: memory that the C core works on.
//!
//! [`Port`] owns everything the core points into (the scheduler, its storage,
//! every class) in heap memory that is touched through raw pointers only, so
//! that no Rust reference to it ever exists while the core may write. It is
//! dropped as a whole; a class is freed only after `pace_class_del`.
#![allow(unsafe_code)]

use std::sync::Arc;

use crate::groups::Groups;
#[cfg(test)]
use crate::layout::{ERR_BUSY, ERR_FULL};
use crate::layout::{
    ErrorCode, RawClass, RawClassConfig, RawConfig, RawDecision, RawReservation, RawSched, RawStats,
};
use crate::memory::{Class, Memory, Shared};

/// No queue has a wheel: `PACE_HEAP_ONLY`.
const HEAP_ONLY: u32 = u32::MAX;
pub(crate) const ID_NONE: u32 = u32::MAX;

// SAFETY: the signatures are those of pace.h and shim.c; shim.c and layout.rs
// assert the layout of what is passed by value or filled in.
unsafe extern "C" {
    static pace_shim_sched_bytes: usize;
    static pace_shim_class_bytes: usize;
    fn pace_shim_stats(s: *const RawSched, out: *mut RawStats);
    fn pace_shim_global(s: *const RawSched) -> u64;
    fn pace_shim_quiet(s: *const RawSched) -> bool;
    fn pace_shim_class_id(c: *const RawClass) -> u32;
    fn pace_shim_class_active(c: *const RawClass) -> bool;
    fn pace_shim_class_clock(s: *const RawSched, c: *const RawClass, frac: *mut u64) -> u64;

    fn pace_storage_bytes(capacity: u32) -> usize;
    fn pace_init(
        s: *mut RawSched,
        cfg: *const RawConfig,
        storage: *mut u64,
        capacity: u32,
        now_ns: u64,
    ) -> ErrorCode;
    fn pace_set_storage(s: *mut RawSched, storage: *mut u64, capacity: u32) -> *mut u64;
    fn pace_set_global(s: *mut RawSched, global_ps: u64);
    fn pace_set_wheel_from(s: *mut RawSched, classes: u32);
    fn pace_reconfigure(
        s: *mut RawSched,
        cfg: *const RawConfig,
        now_ns: u64,
        culprit: *mut *mut RawClass,
    ) -> ErrorCode;
    fn pace_class_add(s: *mut RawSched, c: *mut RawClass, cfg: *const RawClassConfig) -> ErrorCode;
    fn pace_class_change(
        s: *mut RawSched,
        c: *mut RawClass,
        cfg: *const RawClassConfig,
        now_ns: u64,
    ) -> ErrorCode;
    fn pace_class_del(s: *mut RawSched, c: *mut RawClass);
    fn pace_least_rate_bps(cfg: *const RawConfig) -> u64;
    fn pace_after_ns(s: *const RawSched) -> u64;
    fn pace_debt_ns(s: *const RawSched, c: *const RawClass, now_ns: u64) -> u64;
    fn pace_budget_bytes(line_rate_bps: u64, period_ns: u64, percent: u32) -> u64;
    fn pace_reserved_bytes(s: *const RawSched, c: *const RawClass) -> u64;
    fn pace_arrived(s: *mut RawSched, c: *mut RawClass, wire_bytes: u32, now_ns: u64);
    fn pace_dropped(s: *mut RawSched, c: *mut RawClass, wire_bytes: u32, now_ns: u64);
    fn pace_activate(s: *mut RawSched, c: *mut RawClass, now_ns: u64);
    fn pace_activate_at(s: *mut RawSched, c: *mut RawClass, launch_ns: u64, now_ns: u64);
    fn pace_departure_ns(s: *const RawSched, now_ns: u64) -> u64;
    fn pace_started(s: *mut RawSched, got_ns: u64, latest_ns: u64) -> bool;
    fn pace_deactivate(s: *mut RawSched, c: *mut RawClass, now_ns: u64);
    fn pace_next(s: *mut RawSched, now_ns: u64) -> RawDecision;
    fn pace_sent(s: *mut RawSched, c: *mut RawClass, len_bytes: u32, more: bool, now_ns: u64);
    fn pace_sent_burst(
        s: *mut RawSched,
        c: *mut RawClass,
        len_bytes: u32,
        wire_bytes: u32,
        frames: u32,
        more: bool,
        now_ns: u64,
    );
    fn pace_set_head(s: *mut RawSched, c: *mut RawClass, wire_bytes: u32);
    fn pace_is_throttled(s: *const RawSched, c: *const RawClass) -> bool;
    fn pace_gap_sent(s: *mut RawSched, gap_bytes: u32);
    fn pace_join(s: *mut RawSched, device: *mut u64, part: *mut u64, step_ps: u64);
    fn pace_class_join(s: *mut RawSched, c: *mut RawClass, part: *mut u64, ceil_part: *mut u64);
    fn pace_class_leave(s: *mut RawSched, c: *mut RawClass);
    fn pace_shim_backlog(c: *mut RawClass, bytes: u64);
    fn pace_wire_bytes(s: *const RawSched, len_bytes: u32) -> u32;
    fn pace_min_gap_bytes(s: *const RawSched) -> u32;
}

pub(crate) fn sched_bytes() -> usize {
    // SAFETY: a constant of shim.c.
    unsafe { pace_shim_sched_bytes }
}

pub(crate) fn class_bytes() -> usize {
    // SAFETY: a constant of shim.c.
    unsafe { pace_shim_class_bytes }
}

pub(crate) fn storage_bytes(capacity: u32) -> usize {
    // SAFETY: a pure function.
    unsafe { pace_storage_bytes(capacity) }
}

pub(crate) fn stats_of_words(words: [u64; size_of::<RawStats>() / 8]) -> RawStats {
    // SAFETY: both are words of 8 bytes, and any number is one of its counters.
    unsafe { std::mem::transmute(words) }
}

pub(crate) fn reservation_of_words(
    words: [u64; size_of::<RawReservation>() / 8],
) -> RawReservation {
    // SAFETY: as above; what is no word of 8 bytes takes any bits, too.
    unsafe { std::mem::transmute(words) }
}

/// # Safety
/// As of [`crate::placed::Placed::new`].
pub(crate) unsafe fn init(
    sched: *mut u64,
    cfg: &RawConfig,
    storage: *mut u64,
    capacity: u32,
    now_ns: u64,
) -> ErrorCode {
    // SAFETY: the caller's; with the error 0 the scheduler is initialised.
    unsafe {
        let error = pace_init(sched.cast(), cfg, storage, capacity, now_ns);
        if error == 0 {
            pace_set_wheel_from(sched.cast(), HEAP_ONLY);
        }
        error
    }
}

/// # Safety
/// As of [`crate::placed::Placed::add_class`].
pub(crate) unsafe fn class_add(
    sched: *mut u64,
    class: *mut RawClass,
    cfg: &RawClassConfig,
) -> ErrorCode {
    // SAFETY: the caller's.
    unsafe { pace_class_add(sched.cast(), class, cfg) }
}

/// Returns the least rate of a paced class under a configuration that the core accepts.
pub(crate) fn least_rate_bps(cfg: &RawConfig) -> u64 {
    // SAFETY: a pure function.
    unsafe { pace_least_rate_bps(cfg) }
}

pub(crate) fn budget_bytes(line_rate_bps: u64, period_ns: u64, percent: u32) -> u64 {
    // SAFETY: a pure function.
    unsafe { pace_budget_bytes(line_rate_bps, period_ns, percent) }
}

/// One scheduler and its classes. A class is identified by its slot, which is its id in the
/// core; calls for a slot without a class return `None`.
pub(crate) struct Port {
    sched: Memory,
    /// The core's working memory; replaced as a whole when it grows.
    storage: Memory,
    capacity: u32,
    classes: Vec<Option<Class>>,
    /// What the core points into beside that.
    shared: Vec<Arc<Shared>>,
    pub groups: Groups,
}

// SAFETY: all memory but what is shared (above) is owned and reached through this value alone; the core
// has no other state.
unsafe impl Send for Port {}

impl Port {
    pub fn new(cfg: &RawConfig, capacity: u32, now_ns: u64) -> Result<Self, ErrorCode> {
        // SAFETY: constants of shim.c; a pure function.
        let (sched_bytes, storage_bytes) =
            unsafe { (pace_shim_sched_bytes, pace_storage_bytes(capacity)) };
        let port = Port {
            sched: Memory::zeroed(sched_bytes),
            storage: Memory::zeroed(storage_bytes),
            capacity,
            classes: Vec::new(),
            shared: Vec::new(),
            groups: Groups::default(),
        };
        // SAFETY: both blocks are as large as the core says, aligned to 8.
        let err = unsafe {
            pace_init(
                port.sched(),
                cfg,
                port.storage.start.as_ptr(),
                capacity,
                now_ns,
            )
        };
        if err == 0 { Ok(port) } else { Err(err) }
    }

    pub fn sched(&self) -> *mut RawSched {
        self.sched.start.as_ptr().cast()
    }

    /// The scheduler of a class: that of its group, or the port's.
    fn sched_of(&self, slot: u32) -> *mut RawSched {
        self.groups.of_member(slot).unwrap_or(self.sched())
    }

    pub fn class(&self, slot: u32) -> Option<*mut RawClass> {
        if let Some(member) = self.groups.class(slot) {
            return Some(member);
        }
        let held = self.classes.get(slot as usize)?.as_ref()?;
        Some(held.class.start.as_ptr().cast())
    }

    /// Makes a class of the port the node of a group.
    pub fn add_group(&mut self, node: u32, ceil_bps: u64) -> Result<usize, ErrorCode> {
        let class = self.class(node).unwrap_or(std::ptr::null_mut());
        let port = self.sched();
        self.groups.add(port, (node, class), ceil_bps)
    }

    pub fn configure_group(&mut self, group: usize, ceil_bps: u64, now_ns: u64) {
        let port = self.sched();
        self.groups.configure(port, group, ceil_bps, now_ns);
    }

    pub fn configure_groups(&mut self, now_ns: u64) {
        let port = self.sched();
        self.groups.configure_all(port, now_ns);
    }

    pub fn grow(&mut self, capacity: u32) {
        // SAFETY: a pure function.
        let larger = Memory::zeroed(unsafe { pace_storage_bytes(capacity) });
        let start = larger.start.as_ptr();
        // SAFETY: `larger` has the size asked for; the core copies what is in
        // the old block, which is alive until the end of this function.
        let unused = unsafe { pace_set_storage(self.sched(), start, capacity) };
        if unused != start {
            self.storage = larger;
            self.capacity = capacity;
        }
    }

    pub fn capacity(&self) -> u32 {
        self.capacity
    }

    pub fn set_global(&mut self, global_ps: u64) {
        // SAFETY: the scheduler is initialised; the caller has no class.
        unsafe { pace_set_global(self.sched(), global_ps) }
    }

    pub fn wheel_from(&mut self, classes: u32) {
        // SAFETY: the scheduler is initialised.
        unsafe { pace_set_wheel_from(self.sched(), classes) }
    }

    /// On error, returns the slot of the class that does not fit, if a class caused it.
    pub fn reconfigure(
        &mut self,
        cfg: &RawConfig,
        now_ns: u64,
    ) -> Result<(), (ErrorCode, Option<u32>)> {
        let mut culprit = std::ptr::null_mut();
        // SAFETY: the scheduler and its classes are alive; a culprit is one
        // of the classes.
        let (err, id) = unsafe {
            let err = pace_reconfigure(self.sched(), cfg, now_ns, &mut culprit);
            let id = (!culprit.is_null()).then(|| pace_shim_class_id(culprit));
            (err, id)
        };
        if err == 0 { Ok(()) } else { Err((err, id)) }
    }

    pub fn add(&mut self, cfg: &RawClassConfig) -> Result<u32, ErrorCode> {
        let mut held = Class::new();
        let cfg = &held.fitted(cfg);
        let class: *mut RawClass = held.class.start.as_ptr().cast();
        // SAFETY: zeroed memory of the size of a class; it is kept below for
        // as long as the core knows it.
        let (err, id) = unsafe {
            let err = pace_class_add(self.sched(), class, cfg);
            (
                err,
                if err == 0 {
                    pace_shim_class_id(class)
                } else {
                    ID_NONE
                },
            )
        };
        if err != 0 {
            return Err(err);
        }
        let slot = id as usize;
        if self.classes.len() <= slot {
            self.classes.resize_with(slot + 1, || None);
        }
        self.classes[slot] = Some(held);
        Ok(id)
    }

    pub fn change(&mut self, slot: u32, cfg: &RawClassConfig, now_ns: u64) -> Option<ErrorCode> {
        if self.groups.class(slot).is_some() {
            return self.groups.change(self.sched(), slot, cfg, now_ns);
        }
        let class = self.class(slot)?;
        let cfg = &self.classes.get_mut(slot as usize)?.as_mut()?.fitted(cfg);
        // SAFETY: the class is alive and in this scheduler; what it has beside
        // itself is kept for as long.
        Some(unsafe { pace_class_change(self.sched(), class, cfg, now_ns) })
    }

    /// Returns the bytes of a period that all classes reserve.
    pub fn reserved_bytes(&self) -> u64 {
        // SAFETY: the scheduler is initialised; NULL is no class.
        unsafe { pace_reserved_bytes(self.sched(), std::ptr::null()) }
    }

    pub fn arrived(&mut self, slot: u32, wire_bytes: u32, now_ns: u64) -> Option<()> {
        let class = self.class(slot)?;
        // SAFETY: the class is alive and in this scheduler.
        unsafe { pace_arrived(self.sched(), class, wire_bytes, now_ns) };
        Some(())
    }

    pub fn dropped(&mut self, slot: u32, wire_bytes: u32, now_ns: u64) -> Option<()> {
        let class = self.class(slot)?;
        // SAFETY: as above.
        unsafe { pace_dropped(self.sched(), class, wire_bytes, now_ns) };
        Some(())
    }

    /// Returns the reservation's counters; all 0 for a class that never used periods.
    pub fn reservation(&self, slot: u32) -> Option<RawReservation> {
        let held = self.classes.get(slot as usize)?.as_ref()?;
        Some(
            held.reservation
                .as_ref()
                .map_or_else(RawReservation::default, |memory| {
                    // SAFETY: as large as that, made of integers, and only the core
                    // writes to it, in calls that have returned.
                    unsafe { *memory.start.as_ptr().cast::<RawReservation>() }
                }),
        )
    }

    pub fn del(&mut self, slot: u32) -> Option<()> {
        if self.groups.class(slot).is_some() {
            let port = self.sched();
            return self.groups.del(port, slot);
        }
        let class = self.class(slot)?;
        // SAFETY: as above; the core forgets it, then it is freed.
        unsafe { pace_class_del(self.sched(), class) };
        self.classes[slot as usize] = None;
        Some(())
    }

    pub fn activate(&mut self, slot: u32, now_ns: u64) -> Option<()> {
        if self.groups.class(slot).is_some() {
            return self.groups.activate(self.sched(), slot, true, now_ns);
        }
        let class = self.class(slot)?;
        // SAFETY: the class is alive and in this scheduler.
        unsafe { pace_activate(self.sched(), class, now_ns) };
        Some(())
    }

    pub fn activate_at(&mut self, slot: u32, launch_ns: u64, now_ns: u64) -> Option<()> {
        let class = self.class(slot)?;
        // SAFETY: as above.
        unsafe { pace_activate_at(self.sched(), class, launch_ns, now_ns) };
        Some(())
    }

    pub fn started(&mut self, got_ns: u64, latest_ns: u64) -> bool {
        // SAFETY: the scheduler is alive.
        unsafe { pace_started(self.sched(), got_ns, latest_ns) }
    }

    pub fn departure_ns(&mut self, now_ns: u64) -> u64 {
        // SAFETY: the scheduler is alive.
        unsafe { pace_departure_ns(self.sched(), now_ns) }
    }

    pub fn deactivate(&mut self, slot: u32, now_ns: u64) -> Option<()> {
        if self.groups.class(slot).is_some() {
            return self.groups.activate(self.sched(), slot, false, now_ns);
        }
        let class = self.class(slot)?;
        // SAFETY: as above.
        unsafe { pace_deactivate(self.sched(), class, now_ns) };
        Some(())
    }

    /// Returns the decision, and the slot of its class if it has one.
    pub fn next(&mut self, now_ns: u64) -> (RawDecision, Option<u32>) {
        loop {
            // SAFETY: the core names none but active classes, which are alive.
            let (decision, id) = unsafe {
                let decision = pace_next(self.sched(), now_ns);
                let id = (!decision.cls.is_null()).then(|| pace_shim_class_id(decision.cls));
                (decision, id)
            };
            match id.and_then(|node| self.groups.next(self.sched(), node)) {
                None => return (decision, id),
                Some((inner, Some(member))) => return (inner, Some(member)),
                // No class of the group is due: the port is asked again.
                Some((_, None)) => {}
            }
        }
    }

    /// Reports a sent frame. The caller has checked that the class is active and the length
    /// valid.
    pub fn sent(&mut self, slot: u32, len_bytes: u32, more: bool, now_ns: u64) -> Option<()> {
        let class = self.class(slot)?;
        if self.groups.class(slot).is_some() {
            let wire_bytes = self.wire_bytes(len_bytes);
            let burst = (len_bytes, wire_bytes, 1);
            return self.groups.sent(self.sched(), slot, burst, more, now_ns);
        }
        // SAFETY: the class is alive and in this scheduler.
        unsafe { pace_sent(self.sched(), class, len_bytes, more, now_ns) };
        Some(())
    }

    /// Reports a sent burst. The caller has checked that the class is active and the burst
    /// valid.
    pub fn sent_burst(
        &mut self,
        slot: u32,
        (len_bytes, wire_bytes, frames): (u32, u32, u32),
        more: bool,
        now_ns: u64,
    ) -> Option<()> {
        let class = self.class(slot)?;
        if self.groups.class(slot).is_some() {
            let burst = (len_bytes, wire_bytes, frames);
            return self.groups.sent(self.sched(), slot, burst, more, now_ns);
        }
        // SAFETY: the class is alive and in this scheduler.
        unsafe {
            pace_sent_burst(
                self.sched(),
                class,
                len_bytes,
                wire_bytes,
                frames,
                more,
                now_ns,
            );
        }
        Some(())
    }

    /// Joins the device, by the slot of each of the others that this port has.
    pub fn join(&mut self, device: &Arc<Shared>, slot: u32, step_ps: u64) {
        // SAFETY: the device outlives the scheduler, which holds it; the caller has no class yet,
        // and no other scheduler has the slot.
        unsafe {
            pace_join(
                self.sched(),
                device.memory.start.as_ptr(),
                device.part(slot),
                step_ps,
            );
        }
        self.shared.push(Arc::clone(device));
    }

    pub fn class_join(
        &mut self,
        slot: u32,
        (rate, ceil): (&Arc<Shared>, &Arc<Shared>),
        queue: u32,
    ) -> Option<()> {
        let class = self.class(slot)?;
        let (part, ceil_part) = (rate.part(queue), ceil.part(queue));
        let joined = self.groups.join(self.sched(), slot, part, ceil_part);
        if joined.is_none() {
            // SAFETY: the class is alive and in this scheduler, which holds both clocks.
            unsafe { pace_class_join(self.sched_of(slot), class, part, ceil_part) };
        }
        self.shared.extend([Arc::clone(rate), Arc::clone(ceil)]);
        Some(())
    }

    pub fn class_leave(&mut self, slot: u32) -> Option<()> {
        let class = self.class(slot)?;
        // SAFETY: the class is alive and in this scheduler.
        unsafe { pace_class_leave(self.sched_of(slot), class) };
        Some(())
    }

    pub fn set_backlog(&mut self, slot: u32, bytes: u64) -> Option<()> {
        let class = self.class(slot)?;
        // SAFETY: the class is alive.
        unsafe { pace_shim_backlog(class, bytes) };
        Some(())
    }

    pub fn set_head(&mut self, slot: u32, wire_bytes: u32) -> Option<()> {
        let class = self.class(slot)?;
        // SAFETY: as above.
        unsafe { pace_set_head(self.sched(), class, wire_bytes) };
        Some(())
    }

    pub fn is_throttled(&self, slot: u32) -> Option<bool> {
        let class = self.class(slot)?;
        // SAFETY: as above.
        Some(unsafe { pace_is_throttled(self.sched_of(slot), class) })
    }

    pub fn debt_ns(&self, slot: u32, now_ns: u64) -> Option<u64> {
        let class = self.class(slot)?;
        if self.groups.class(slot).is_some() {
            return self.groups.debt_ns(self.sched(), slot, now_ns);
        }
        // SAFETY: as above.
        Some(unsafe { pace_debt_ns(self.sched(), class, now_ns) })
    }

    pub fn after_ns(&self) -> u64 {
        // SAFETY: the scheduler is initialised.
        unsafe { pace_after_ns(self.sched()) }
    }

    pub fn gap_sent(&mut self, gap_bytes: u32) {
        // SAFETY: the scheduler is initialised.
        unsafe { pace_gap_sent(self.sched(), gap_bytes) }
    }

    pub fn stats(&self) -> RawStats {
        let mut stats = RawStats::default();
        // SAFETY: `stats` has the layout that shim.c and layout.rs assert.
        unsafe { pace_shim_stats(self.sched(), &mut stats) };
        stats
    }

    pub fn global(&self) -> u64 {
        // SAFETY: the scheduler is initialised.
        unsafe { pace_shim_global(self.sched()) }
    }

    pub fn is_quiet(&self) -> bool {
        // SAFETY: the scheduler is initialised.
        unsafe { pace_shim_quiet(self.sched()) }
    }

    pub fn is_active(&self, slot: u32) -> Option<bool> {
        let class = self.class(slot)?;
        // SAFETY: the class is alive.
        Some(unsafe { pace_shim_class_active(class) })
    }

    /// Returns the clock rounded up, and the fraction in units of 1 / rate.
    pub fn clock(&self, slot: u32) -> Option<(u64, u64)> {
        let class = self.class(slot)?;
        let mut frac = 0;
        // SAFETY: the class is alive and in this scheduler.
        let clock = unsafe { pace_shim_class_clock(self.sched(), class, &mut frac) };
        Some((clock, frac))
    }

    pub fn wire_bytes(&self, len_bytes: u32) -> u32 {
        // SAFETY: the scheduler is initialised.
        unsafe { pace_wire_bytes(self.sched(), len_bytes) }
    }

    pub fn min_gap_bytes(&self) -> u32 {
        // SAFETY: the scheduler is initialised.
        unsafe { pace_min_gap_bytes(self.sched()) }
    }
}

#[cfg(test)]
#[path = "ffi_tests.rs"]
mod tests;
