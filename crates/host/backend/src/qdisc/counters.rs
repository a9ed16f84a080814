// SPDX-License-Identifier: MIT OR Apache-2.0
//! What ports and classes have done.

use super::layout::at;
use super::ports::Ports;

/// What a class has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlotCounters {
    /// Packets that wait.
    pub packets: u32,
    /// Their bytes.
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
}

impl Ports {
    /// Returns what a port has done beside its classes.
    pub fn port_counters(&self, port: u32) -> PortCounters {
        let base = self.layout.port(port);
        PortCounters {
            images_taken: self.memory.u64(base + at::PORT_IMAGES_TAKEN),
            dropped_unclassified: self.memory.u64(base + at::PORT_DROPPED_UNCLASSIFIED),
            dropped_lost: self.memory.u64(base + at::PORT_DROPPED_LOST),
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
        }
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
