// SPDX-License-Identifier: MIT OR Apache-2.0
//! The ports of a device: what they are configured as, and what they count.

use pace::{ClassConfig, Config};

use super::error::{Error, refused};
use super::layout::{Layout, MINORS, NO_SLOT, VERSION, at};
use super::memory::Memory;

/// Where a port is: a qdisc of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Number of the device's network namespace.
    pub netns: u64,
    /// The device.
    pub ifindex: u32,
    /// The class id that the qdisc is at.
    pub parent: u32,
}

/// A class of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortClass {
    /// Minor number of its id.
    pub minor: u16,
    /// Most packets that wait.
    pub limit: u32,
    /// What the core knows of it.
    pub config: ClassConfig,
}

/// What is wanted of a port. A class has the slot that is its place in the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortConfig {
    /// The port.
    pub config: Config,
    /// Its classes by slot.
    pub classes: Vec<Option<PortClass>>,
    /// Minor number of the class of packets that name none.
    pub default: Option<u16>,
}

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

/// The ports of a device, in the arena.
pub(crate) struct Ports {
    pub memory: Memory,
    pub layout: Layout,
}

impl Ports {
    /// Writes the table of an arena that is new. No port has an image.
    pub fn begin(&self, places: &[Place]) {
        let (memory, layout) = (&self.memory, self.layout);
        for (port, place) in (0..).zip(places) {
            let base = layout.port(port);
            memory.set_u64(base + at::PORT_NETNS, place.netns);
            memory.set_u32(base + at::PORT_IFINDEX, place.ifindex);
            memory.set_u32(base + at::PORT_PARENT, place.parent);
            for number in 0..2 {
                let image = layout.image(port, number).image;
                memory.set_u64(base + at::PORT_IMAGE + u64::from(number) * 8, image);
            }
            memory.set_u64(base + at::PORT_SLOT, layout.slot(port, 0));
        }
        let table = super::layout::START;
        memory.set_u32(table + at::TABLE_PORTS, layout.ports);
        memory.set_u32(table + at::TABLE_SLOTS, layout.slots);
        memory.set_u64(table + at::TABLE_PORT, layout.ports_start());
        memory.publish();
        memory.set_u32(table + at::TABLE_VERSION, VERSION);
    }

    /// Lays out the image of a port that is not in use and asks for it. The qdisc takes it with the
    /// next packet that comes or goes.
    ///
    /// # Errors
    /// What the core refuses, or that the image asked for before was not taken yet. Nothing has
    /// changed then.
    pub fn configure(&self, port: u32, wanted: &PortConfig, now_ns: u64) -> Result<(), Error> {
        let (memory, layout) = (&self.memory, self.layout);
        let base = layout.port(port);
        let current = memory.u32(base + at::PORT_CURRENT);
        let in_use = memory.u32(base + at::PORT_IN_USE) != 0;
        if in_use && memory.u32(base + at::PORT_WANTED) != current {
            return Err(Error::Refused {
                part: "configuration".to_owned(),
                detail: "the one before waits for a packet that comes or goes".to_owned(),
            });
        }
        let number = (current + 1) & 1;
        let parts = layout.image(port, number);
        memory.zero(parts.image, layout.image_bytes());
        memory.publish();
        let fault = |error: pace::Error| refused("configuration", &error);
        let mut core = memory
            .place(parts, layout.slots, &wanted.config, now_ns)
            .map_err(fault)?;
        for minor in 0..MINORS {
            memory.set_u32(parts.slots + minor * 4, NO_SLOT);
        }
        let mut default = NO_SLOT;
        for (slot, class) in (0..layout.slots).zip(&wanted.classes) {
            let Some(class) = class else { continue };
            let address = layout.class(parts, slot);
            core.add_class(address, &class.config).map_err(fault)?;
            memory.set_u32(address + at::CLASS_MINOR, u32::from(class.minor));
            memory.set_u32(address + at::CLASS_LIMIT, class.limit);
            memory.set_u32(parts.slots + u64::from(class.minor) * 4, slot);
            if wanted.default == Some(class.minor) {
                default = slot;
            }
        }
        memory.set_u32(parts.image + at::IMAGE_DEFAULT_SLOT, default);
        memory.set_u64(parts.image + at::IMAGE_CLASSES, parts.classes);
        memory.set_u64(parts.image + at::IMAGE_SLOTS, parts.slots);
        memory.publish();
        memory.set_u64(parts.image + at::IMAGE_READY, 1);
        memory.publish();
        memory.set_u32(base + at::PORT_WANTED, number);
        Ok(())
    }

    /// Returns what a port has done beside its classes.
    pub fn port_counters(&self, port: u32) -> PortCounters {
        let base = self.layout.port(port);
        PortCounters {
            images_taken: self.memory.u64(base + at::PORT_IMAGES_TAKEN),
            dropped_unclassified: self.memory.u64(base + at::PORT_DROPPED_UNCLASSIFIED),
            dropped_lost: self.memory.u64(base + at::PORT_DROPPED_LOST),
        }
    }

    /// Returns what the class of a slot has done.
    pub fn counters(&self, port: u32, slot: u32) -> SlotCounters {
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
        }
    }
}
