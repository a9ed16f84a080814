// SPDX-License-Identifier: MIT OR Apache-2.0
//! What ports and classes have done.

use pace::placed::{reservation_stats, stats};
use pace::{ReservationStats, Stats};

use super::layout::at;
use super::ports::Ports;

/// The first type of a class that has a reservation: PACE_TYPE_RT.
const TYPE_RT: u32 = 2;

/// `TC_PSP_LATE_BUCKETS` of uapi/sch_psp.h.
pub const LATE_BUCKETS: usize = 24;

/// What a class has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlotCounters {
    /// Packets that wait.
    pub packets: u32,
    pub bytes: u64,
    /// Packets that left.
    pub sent_packets: u64,
    /// Frames that they became.
    pub sent_frames: u64,
    /// Bytes of the frames, link header included.
    pub sent_bytes: u64,
    /// Bytes that they took on the wire.
    pub sent_wire_bytes: u64,
    /// Packets dropped at the limit.
    pub dropped_full: u64,
    /// Packets dropped because the class or the qdisc went.
    pub dropped_removed: u64,
    /// Packets dropped because they waited for longer than the class's deadline.
    pub dropped_late: u64,
    /// Packets dropped because they are longer than the device takes.
    pub dropped_long: u64,
    /// How far the class's clock is ahead of the port's: when its next packet may leave, if it has
    /// a rate.
    pub ahead_ns: u64,
    /// Frames sent above the class's rate, below its ceil.
    pub borrowed_frames: u64,
    /// Times its next packet had to wait for its clock.
    pub throttled: u64,
    /// Frames by how late they left: uapi/sch_psp.h.
    pub late_frames: [u64; LATE_BUCKETS],
    /// What its reservation counts, if it is of type rt or nrt.
    pub reservation: Option<ReservationStats>,
}

/// What a port has done beside its classes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortCounters {
    /// Configurations that it has taken while it ran.
    pub images_taken: u64,
    /// Packets dropped because they name no class and there is no default.
    pub dropped_unclassified: u64,
    /// Packets dropped because the kernel had no memory.
    pub dropped_lost: u64,
    /// The line's rate, as the core goes by it.
    pub line_rate_bps: u64,
    /// Budget of a period in bytes.
    pub budget_bytes: u64,
    /// What the core counts.
    pub core: Stats,
}

impl Ports {
    /// Returns what a port has done beside its classes.
    pub fn port_counters(&self, port: u32) -> PortCounters {
        let base = self.layout.port(port);
        let image = self.in_force(port);
        let image = image.map(|number| self.layout.image(port, number).image);
        let of_core = |at| image.map_or(0, |image| self.memory.u64(image + at));
        PortCounters {
            images_taken: self.memory.u64(base + at::PORT_IMAGES_TAKEN),
            dropped_unclassified: self.memory.u64(base + at::PORT_DROPPED_UNCLASSIFIED),
            dropped_lost: self.memory.u64(base + at::PORT_DROPPED_LOST),
            line_rate_bps: of_core(at::SCHED_LINE_RATE_BPS),
            budget_bytes: of_core(at::SCHED_BUDGET_BYTES),
            core: image.map_or_else(Stats::default, |image| {
                stats(self.memory.words(image + at::SCHED_STATS))
            }),
        }
    }

    /// Returns what the classes in force have done, by minor number. O(slots).
    pub fn counters(&self, port: u32) -> Vec<(u16, SlotCounters)> {
        let Some(number) = self.in_force(port) else {
            return Vec::new();
        };
        let slots = 0..self.layout.room.slots;
        let counters = slots.filter_map(|slot| {
            let minor = self.minor(port, number, slot)?;
            Some((minor, self.slot_counters(port, number, slot)))
        });
        let mut counters: Vec<_> = counters.collect();
        counters.sort_unstable_by_key(|(minor, _)| *minor);
        counters
    }

    fn slot_counters(&self, port: u32, number: u32, slot: u32) -> SlotCounters {
        let base = self.layout.slot(port, slot);
        let memory = &self.memory;
        SlotCounters {
            packets: memory.u32(base + at::SLOT_PACKETS),
            bytes: memory.u64(base + at::SLOT_BYTES),
            sent_packets: memory.u64(base + at::SLOT_SENT_PACKETS),
            sent_frames: memory.u64(base + at::SLOT_SENT_FRAMES),
            sent_bytes: memory.u64(base + at::SLOT_SENT_BYTES),
            sent_wire_bytes: memory.u64(base + at::SLOT_SENT_WIRE_BYTES),
            dropped_full: memory.u64(base + at::SLOT_DROPPED_FULL),
            dropped_removed: memory.u64(base + at::SLOT_DROPPED_REMOVED),
            dropped_late: memory.u64(base + at::SLOT_DROPPED_LATE),
            dropped_long: memory.u64(base + at::SLOT_DROPPED_LONG),
            ahead_ns: self.ahead_ns(port, number, slot),
            borrowed_frames: memory.u64(base + at::SLOT_BORROWED_FRAMES),
            throttled: memory.u64(base + at::SLOT_THROTTLED),
            late_frames: memory.words(base + at::SLOT_LATE_FRAMES),
            reservation: self.reservation(port, number, slot),
        }
    }

    fn reservation(&self, port: u32, number: u32, slot: u32) -> Option<ReservationStats> {
        let class = self.layout.class(self.layout.image(port, number), slot);
        let class_type = self.memory.u32(class + at::CLASS_TYPE) & 0xff;
        let words = self.memory.words(class + at::CLASS_RESERVATION);
        (class_type >= TYPE_RT).then(|| reservation_stats(words))
    }

    /// The scheduler's clock stands while nothing is sent; so does what is ahead of it.
    fn ahead_ns(&self, port: u32, number: u32, slot: u32) -> u64 {
        let parts = self.layout.image(port, number);
        let global_ps = self.memory.u64(parts.image + at::SCHED_GLOBAL_PS);
        let offset_ps = self.memory.u64(parts.image + at::SCHED_OFFSET_PS);
        let class = self.layout.class(parts, slot);
        if self.memory.u64(class + at::CLASS_RATE_BPS) == 0 {
            return 0;
        }
        let clock_ps = self.memory.u64(class + at::CLASS_CLOCK_PS);
        // Clocks wrap: what is less than half round is ahead.
        let ahead_ps = clock_ps.wrapping_sub(global_ps.wrapping_sub(offset_ps));
        i64::try_from(ahead_ps).map_or(0, |ps| ps.unsigned_abs() / 1000)
    }
}
