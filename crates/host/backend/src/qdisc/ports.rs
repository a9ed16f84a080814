// SPDX-License-Identifier: MIT OR Apache-2.0
//! The ports of a device in the arena, and their configuration.

use std::collections::BTreeMap;
use std::thread::sleep;
use std::time::Duration;

use host_config::limits::rate_expected;
use pace::{ClassConfig, Config, Period, Scheduler};
use rustix::thread::{MembarrierCommand, membarrier};

use super::error::{Error, refused};
use super::layout::{
    Layout, MINORS, NO_PLACE, NO_SLOT, PORT_BYTES, SLOT_BYTES, STAYS, VERSION, at,
};
use super::memory::Memory;

/// Time after which no run of a program goes on that had begun before, where the kernel does not
/// wait for it itself: a run takes microseconds, and nothing sleeps in it.
const GRACE: Duration = Duration::from_millis(50);

/// Where a port is: a qdisc of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Number of the device's network namespace.
    pub netns: u64,
    pub ifindex: u32,
    /// The class id that the qdisc is at.
    pub parent: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortClass {
    /// Minor number of its id.
    pub minor: u16,
    /// Most packets that wait.
    pub limit: u32,
    /// Packets that have waited for longer are dropped at their time.
    pub deadline_ns: Option<u64>,
    /// What the core knows of it.
    pub config: ClassConfig,
}

/// What of a configuration is in the arena.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Image<'a> {
    pub config: &'a Config,
    pub classes: &'a [PortClass],
    pub default: Option<u16>,
    /// Rules in the list, and where it begins; rules in the table of addresses.
    pub rules: u32,
    pub rules_base: u32,
    pub addresses: u32,
    pub net_cls: bool,
    pub link_bytes: u32,
    pub text: &'a [u8],
}

/// The image of a port that no program uses, and what was asked for before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Free {
    pub number: u32,
    wish: u32,
}

/// The ids of the maps beside the arena.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct MapIds {
    pub rules: u32,
    pub addresses: u32,
    pub tables: u32,
}

/// The ports of a device, in the arena.
pub(crate) struct Ports {
    pub memory: Memory,
    pub layout: Layout,
}

impl Ports {
    /// Writes the table of an arena that is new. No port has an image.
    pub fn begin(&self, places: &[Place], maps: MapIds) {
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
            // Programs look at all slots, and a page that is not there costs each look 0.1 ms.
            let slots = u64::from(layout.room.slots);
            memory.zero(layout.slot(port, 0), slots * SLOT_BYTES);
            self.free_places(port);
        }
        let table = super::layout::START;
        memory.set_u32(table + at::TABLE_PORTS, layout.ports);
        memory.set_u64(table + at::TABLE_PORT, layout.ports_start());
        let port_bytes = u32::try_from(PORT_BYTES).unwrap_or(0);
        memory.set_u32(table + at::TABLE_PORT_BYTES, port_bytes);
        memory.set_u32(table + at::TABLE_SLOTS, layout.room.slots);
        memory.set_u32(table + at::TABLE_RULES, layout.room.rules);
        memory.set_u32(table + at::TABLE_ADDRESSES, layout.room.addresses);
        memory.set_u32(table + at::TABLE_TEXT_BYTES, layout.room.text_bytes);
        memory.set_u32(table + at::TABLE_RULES_MAP, maps.rules);
        memory.set_u32(table + at::TABLE_ADDRESSES_MAP, maps.addresses);
        memory.set_u32(table + at::TABLE_TABLES_MAP, maps.tables);
        memory.publish();
        memory.set_u32(table + at::TABLE_VERSION, VERSION);
    }

    /// Makes all places of a port free: each names the next one.
    fn free_places(&self, port: u32) {
        let (memory, layout) = (&self.memory, self.layout);
        let places = layout.places();
        for place in 0..places {
            let next = Some(place + 1).filter(|next| *next < places);
            let packet = layout.packet(port, place);
            memory.set_u32(packet + at::PACKET_NEXT, next.unwrap_or(NO_PLACE));
        }
        let base = layout.port(port);
        memory.set_u64(base + at::PORT_PACKET, layout.packet(port, 0));
        memory.set_u32(base + at::PORT_PACKETS_FROM, port * places);
        memory.set_u32(base + at::PORT_FREE, 0);
    }

    /// Returns where a port is.
    pub fn place(&self, port: u32) -> Option<Place> {
        if port >= self.layout.ports {
            return None;
        }
        let base = self.layout.port(port);
        Some(Place {
            netns: self.memory.u64(base + at::PORT_NETNS),
            ifindex: self.memory.u32(base + at::PORT_IFINDEX),
            parent: self.memory.u32(base + at::PORT_PARENT),
        })
    }

    fn is_ready(&self, port: u32, number: u32) -> bool {
        let image = self.layout.image(port, number & 1).image;
        self.memory.u64(image + at::IMAGE_READY) != 0
    }

    fn current(&self, port: u32) -> u32 {
        let current = self.layout.port(port) + at::PORT_CURRENT;
        self.memory.u32(current) & 1
    }

    fn wish(&self, port: u32) -> u32 {
        self.memory.u32(self.layout.port(port) + at::PORT_WANTED)
    }

    fn set_wish(&self, port: u32, number: u32) {
        self.memory.publish();
        let wanted = self.layout.port(port) + at::PORT_WANTED;
        self.memory.set_u32(wanted, number);
    }

    /// Returns the image that is asked for, in use or not.
    fn asked(&self, port: u32) -> Option<u32> {
        let wish = self.wish(port);
        (wish < STAYS && self.is_ready(port, wish)).then_some(wish)
    }

    /// Returns the image in use, or without a qdisc the one that it would begin with.
    pub fn in_force(&self, port: u32) -> Option<u32> {
        let in_use = self.layout.port(port) + at::PORT_IN_USE;
        let current = Some(self.current(port)).filter(|number| self.is_ready(port, *number));
        if self.memory.u32(in_use) != 0 {
            return current;
        }
        self.asked(port).or(current)
    }

    /// Returns the text of the image that is asked for, or else in use.
    pub fn text(&self, port: u32) -> Vec<u8> {
        let Some(number) = self.asked(port).or_else(|| self.in_force(port)) else {
            return Vec::new();
        };
        let parts = self.layout.image(port, number);
        let length = self.memory.u32(parts.image + at::IMAGE_TEXT_BYTES);
        let length = length.min(self.layout.room.text_bytes);
        self.memory
            .bytes(parts.text, usize::try_from(length).unwrap_or(0))
    }

    /// Returns the minor number of the class of a slot.
    pub fn minor(&self, port: u32, number: u32, slot: u32) -> Option<u16> {
        let parts = self.layout.image(port, number);
        let class = self.layout.class(parts, slot);
        let minor = self.memory.u32(class + at::CLASS_MINOR);
        u16::try_from(minor).ok().filter(|minor| *minor != 0)
    }

    /// Returns the image that may be written: withdraws the one that was asked for and not taken,
    /// and waits until no program goes on that may have seen the wish or uses what it left.
    pub fn free_image(&self, port: u32) -> Free {
        let wish = self.wish(port);
        if wish != self.current(port) {
            self.set_wish(port, STAYS);
        }
        self.memory.publish();
        if membarrier(MembarrierCommand::Global).is_err() {
            sleep(GRACE);
        }
        Free {
            number: self.current(port) ^ 1,
            wish,
        }
    }

    /// Asks for what was asked for before, if nothing was written since.
    pub fn give_back(&self, port: u32, free: Free) {
        self.set_wish(port, free.wish);
    }

    /// Returns the slots of classes: those of the image in use, and for new ones some that neither
    /// a class nor a packet has. O(slots).
    pub fn slots(&self, port: u32, free: Free, classes: &[PortClass]) -> Result<Vec<u32>, Error> {
        let current = free.number ^ 1;
        let all = 0..self.layout.room.slots;
        let mut had = BTreeMap::new();
        let mut unused = Vec::new();
        let is_ready = self.is_ready(port, current);
        for slot in all.rev() {
            match self.minor(port, current, slot).filter(|_| is_ready) {
                Some(minor) => drop(had.insert(minor, slot)),
                None => unused.push(slot),
            }
        }
        let is_empty = |slot: &u32| {
            let packets = self.layout.slot(port, *slot) + at::SLOT_PACKETS;
            self.memory.u32(packets) == 0
        };
        let mut unused = unused.into_iter().rev().filter(is_empty);
        let slots = classes.iter().map(|class| {
            let slot = had.get(&class.minor).copied();
            slot.or_else(|| {
                let slot = unused.next()?;
                self.memory.zero(self.layout.slot(port, slot), SLOT_BYTES);
                Some(slot)
            })
        });
        slots.collect::<Option<_>>().ok_or(Error::Full {
            what: "classes, with those that go,",
            wanted: classes.len(),
            room: self.layout.room.slots,
        })
    }

    /// Lays out an image that no program uses, with the classes in these slots, and asks for it.
    /// The qdisc takes it with the next packet that comes or goes, or while packets wait within
    /// 10 ms.
    ///
    /// # Errors
    /// What the core refuses: nothing that [`check`] accepts.
    pub fn write(
        &self,
        port: u32,
        free: Free,
        image: &Image<'_>,
        slots: &[u32],
        now_ns: u64,
    ) -> Result<(), Error> {
        let (memory, layout) = (&self.memory, self.layout);
        let parts = layout.image(port, free.number);
        memory.set_u64(parts.image + at::IMAGE_READY, 0);
        memory.zero(parts.image, layout.image_bytes());
        memory.publish();
        let fault = |error: pace::Error| refused("configuration", &error);
        let mut core = memory
            .place(parts, layout.room.slots, image.config, now_ns)
            .map_err(fault)?;
        for minor in 0..MINORS {
            memory.set_u32(parts.slots + minor * 4, NO_SLOT);
        }
        let mut default = NO_SLOT;
        for (slot, class) in slots.iter().copied().zip(image.classes) {
            let address = layout.class(parts, slot);
            let reservation = address + at::CLASS_RESERVATION;
            core.add_class(address, reservation, &class.config)
                .map_err(fault)?;
            memory.set_u32(address + at::CLASS_MINOR, u32::from(class.minor));
            memory.set_u32(address + at::CLASS_LIMIT, class.limit);
            let deadline_ns = class.deadline_ns.unwrap_or(0);
            memory.set_u64(address + at::CLASS_DEADLINE_NS, deadline_ns);
            memory.set_u32(parts.slots + u64::from(class.minor) * 4, slot);
            if image.default == Some(class.minor) {
                default = slot;
            }
        }
        memory.set_bytes(parts.text, image.text);
        let text_bytes = u32::try_from(image.text.len()).unwrap_or(0);
        for (at, value) in [
            (at::IMAGE_DEFAULT_SLOT, default),
            (at::IMAGE_RULES, image.rules),
            (at::IMAGE_RULES_BASE, image.rules_base),
            (at::IMAGE_ADDRESSES, image.addresses),
            (at::IMAGE_NET_CLS, image.net_cls.into()),
            (at::IMAGE_LINK_BYTES, image.link_bytes),
            (at::IMAGE_TEXT_BYTES, text_bytes),
        ] {
            memory.set_u32(parts.image + at, value);
        }
        memory.set_u64(parts.image + at::IMAGE_CLASSES, parts.classes);
        memory.set_u64(parts.image + at::IMAGE_SLOTS, parts.slots);
        memory.publish();
        memory.set_u64(parts.image + at::IMAGE_READY, 1);
        self.set_wish(port, free.number);
        Ok(())
    }
}

/// Checks what the core says of a configuration, without a port.
pub(crate) fn check(config: &Config, classes: &[PortClass]) -> Result<(), Error> {
    let fault = |error: pace::Error| refused("configuration", &error);
    let mut core = Scheduler::new(config, 0).map_err(fault)?;
    let classes = classes.iter();
    classes.into_iter().try_for_each(|class| {
        let added = core.add_class(&class.config);
        added
            .map(drop)
            .map_err(|why| class_refused(class.minor, ("rate", &class.config), why, config))
    })
}

/// Says why the core refuses a class: the key that gives it a rate or its reservation, the value,
/// and what was expected.
pub(crate) fn class_refused(
    minor: u16,
    (rate_key, wanted): (&str, &ClassConfig),
    why: pace::Error,
    config: &Config,
) -> Error {
    let of_period = |value: fn(&Period) -> u64| config.period.as_ref().map_or(0, value);
    let (key, value, unit) = match wanted {
        ClassConfig::Paced { rate_bps }
        | ClassConfig::Borrowing { rate_bps, .. }
        | ClassConfig::Launching { rate_bps, .. } => (rate_key, *rate_bps, "bit/s"),
        ClassConfig::Rt { .. } | ClassConfig::Nrt { .. } if why == pace::Error::Period => {
            ("period", of_period(|period| period.length_ns), "ns")
        }
        ClassConfig::Rt { reserve_bytes } | ClassConfig::Nrt { reserve_bytes } => {
            ("reserve", *reserve_bytes, "bytes")
        }
        ClassConfig::Normal { quantum_bytes } => {
            ("quantum", quantum_bytes.unwrap_or(0).into(), "bytes")
        }
    };
    let least = Scheduler::least_rate_bps(config);
    let least = least.ok().filter(|_| why == pace::Error::RateLow);
    let expected = match (least, why) {
        (Some(least_bps), _) => rate_expected(value, &(least_bps..=config.line_rate_bps)),
        (None, pace::Error::Reserve) => {
            let most_bytes = of_period(|period| period.budget_bytes);
            Some(format!("1 to {most_bytes}, the budget"))
        }
        _ => None,
    };
    let expected = expected.unwrap_or_else(|| format!("another: {why}"));
    Error::Class {
        minor,
        why: format!("`{key}` is {value} {unit}, expected {expected}"),
    }
}
