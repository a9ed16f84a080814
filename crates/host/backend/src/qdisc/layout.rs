// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where what lies in the arena: the same as bpf/port.h says, which asserts these numbers too.

use pace::placed;

/// Where the arena begins, for BPF and for processes. Below 4 GiB a pointer is the same for both.
pub(crate) const START: u64 = 0x4000_0000;
pub(crate) const VERSION: u32 = 6;
pub(crate) const NO_SLOT: u32 = u32::MAX;
pub(crate) const NO_PLACE: u32 = u32::MAX;
/// In place of the number of an image that is wanted: the one in use stays.
pub(crate) const STAYS: u32 = 2;
/// How many minor numbers there are.
pub(crate) const MINORS: u64 = 1 << 16;
/// Bytes of a page.
pub(crate) const PAGE: u64 = 4096;

/// `struct port_table`.
pub(crate) const TABLE_BYTES: u64 = 48;
/// `struct port`.
pub(crate) const PORT_BYTES: u64 = 120;
/// What of a port is in any version: up to `in_use`.
pub(crate) const PORT_START_BYTES: u64 = 20;
/// `struct port_slot`.
pub(crate) const SLOT_BYTES: u64 = 296;
/// `struct port_packet`.
pub(crate) const PACKET_BYTES: u64 = 16;
/// Places for packets that wait: for each class that there is room for, and in all.
const PLACES_OF_CLASS: u32 = 64;
const PLACES_MIN: u32 = 8192;
const PLACES_MAX: u32 = 1 << 20;
/// `struct port_class`, of which the core's class is the first part.
const CLASS_BYTES: u64 = 384;
/// `struct port_image`, of which the core's scheduler is the first part.
const IMAGE_BYTES: u64 = 1160;
/// `struct pace_sched` and `struct pace_class`.
#[cfg(test)]
pub(crate) const SCHED_BYTES: u64 = 1104;
#[cfg(test)]
pub(crate) const CORE_CLASS_BYTES: u64 = 256;
#[cfg(test)]
const RESERVATION_BYTES: u64 = 104;

/// Offsets of members.
pub(crate) mod at {
    pub(crate) const TABLE_VERSION: u64 = 0;
    pub(crate) const TABLE_PORTS: u64 = 4;
    pub(crate) const TABLE_PORT: u64 = 8;
    pub(crate) const TABLE_PORT_BYTES: u64 = 16;
    pub(crate) const TABLE_SLOTS: u64 = 20;
    pub(crate) const TABLE_RULES: u64 = 24;
    pub(crate) const TABLE_ADDRESSES: u64 = 28;
    pub(crate) const TABLE_TEXT_BYTES: u64 = 32;
    pub(crate) const TABLE_RULES_MAP: u64 = 36;
    pub(crate) const TABLE_ADDRESSES_MAP: u64 = 40;
    pub(crate) const TABLE_TABLES_MAP: u64 = 44;

    pub(crate) const PORT_NETNS: u64 = 0;
    pub(crate) const PORT_IFINDEX: u64 = 8;
    pub(crate) const PORT_PARENT: u64 = 12;
    pub(crate) const PORT_IN_USE: u64 = 16;
    pub(crate) const PORT_CURRENT: u64 = 20;
    pub(crate) const PORT_WANTED: u64 = 24;
    pub(crate) const PORT_FREE: u64 = 28;
    pub(crate) const PORT_IMAGES_TAKEN: u64 = 32;
    pub(crate) const PORT_DROPPED_UNCLASSIFIED: u64 = 40;
    pub(crate) const PORT_DROPPED_LOST: u64 = 48;
    pub(crate) const PORT_IMAGE: u64 = 64;
    pub(crate) const PORT_SLOT: u64 = 80;
    pub(crate) const PORT_PACKET: u64 = 96;
    pub(crate) const PORT_PACKETS_FROM: u64 = 112;

    pub(crate) const PACKET_NEXT: u64 = 8;

    pub(crate) const SLOT_PACKETS: u64 = 0;
    pub(crate) const SLOT_BYTES: u64 = 8;
    pub(crate) const SLOT_SENT_PACKETS: u64 = 16;
    pub(crate) const SLOT_SENT_FRAMES: u64 = 24;
    pub(crate) const SLOT_SENT_BYTES: u64 = 32;
    pub(crate) const SLOT_SENT_WIRE_BYTES: u64 = 40;
    pub(crate) const SLOT_DROPPED_FULL: u64 = 48;
    pub(crate) const SLOT_DROPPED_REMOVED: u64 = 56;
    pub(crate) const SLOT_DROPPED_LATE: u64 = 64;
    pub(crate) const SLOT_DROPPED_LONG: u64 = 72;
    pub(crate) const SLOT_BORROWED_FRAMES: u64 = 80;
    pub(crate) const SLOT_THROTTLED: u64 = 88;
    pub(crate) const SLOT_LATE_FRAMES: u64 = 96;

    pub(crate) const CLASS_MINOR: u64 = 256;
    pub(crate) const CLASS_LIMIT: u64 = 260;
    pub(crate) const CLASS_DEADLINE_NS: u64 = 264;
    pub(crate) const CLASS_RESERVATION: u64 = 272;
    /// Of the core's class: its type, its clock in ps, and its rate; 0: it has none.
    pub(crate) const CLASS_TYPE: u64 = 4;
    pub(crate) const CLASS_CLOCK_PS: u64 = 8;
    pub(crate) const CLASS_RATE_BPS: u64 = 24;

    pub(crate) const IMAGE_READY: u64 = 1104;
    pub(crate) const IMAGE_DEFAULT_SLOT: u64 = 1112;
    pub(crate) const IMAGE_RULES: u64 = 1116;
    pub(crate) const IMAGE_RULES_BASE: u64 = 1120;
    pub(crate) const IMAGE_ADDRESSES: u64 = 1124;
    pub(crate) const IMAGE_NET_CLS: u64 = 1128;
    pub(crate) const IMAGE_LINK_BYTES: u64 = 1132;
    pub(crate) const IMAGE_TEXT_BYTES: u64 = 1136;
    pub(crate) const IMAGE_CLASSES: u64 = 1144;
    pub(crate) const IMAGE_SLOTS: u64 = 1152;
    /// Of the core's scheduler: its clock in ps, and how far classes' clocks are behind it.
    pub(crate) const SCHED_GLOBAL_PS: u64 = 72;
    pub(crate) const SCHED_OFFSET_PS: u64 = 80;
    /// Of its configuration, and its counters.
    pub(crate) const SCHED_LINE_RATE_BPS: u64 = 0;
    pub(crate) const SCHED_BUDGET_BYTES: u64 = 56;
    pub(crate) const SCHED_STATS: u64 = 872;
}

/// What each port has room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Classes: those in force, and those that come with a change.
    pub slots: u32,
    /// Matches that are more than one whole address.
    pub rules: u32,
    /// Matches of one whole address.
    pub addresses: u32,
    /// The caller's text.
    pub text_bytes: u32,
}

/// An arena for some ports. Addresses are those of both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub ports: u32,
    /// What each has room for.
    pub room: Room,
}

/// The parts of an image: their addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ImageParts {
    pub image: u64,
    pub classes: u64,
    pub slots: u64,
    pub text: u64,
    pub storage: u64,
}

fn round_up(bytes: u64) -> u64 {
    bytes.next_multiple_of(64)
}

impl Layout {
    pub fn port(self, port: u32) -> u64 {
        START + round_up(TABLE_BYTES) + u64::from(port) * PORT_BYTES
    }

    pub fn ports_start(self) -> u64 {
        self.port(0)
    }

    fn of_port(self, port: u32) -> u64 {
        let first = round_up(self.port(self.ports));
        let bytes = self.slots_bytes() + self.places_bytes() + 2 * self.image_bytes();
        first + u64::from(port) * bytes
    }

    /// Returns how many packets wait in a port at the most.
    pub fn places(self) -> u32 {
        let places = self.room.slots.saturating_mul(PLACES_OF_CLASS);
        places.clamp(PLACES_MIN, PLACES_MAX)
    }

    fn places_bytes(self) -> u64 {
        round_up(u64::from(self.places()) * PACKET_BYTES)
    }

    fn slots_bytes(self) -> u64 {
        round_up(u64::from(self.room.slots) * SLOT_BYTES)
    }

    fn classes_bytes(self) -> u64 {
        round_up(u64::from(self.room.slots) * CLASS_BYTES)
    }

    fn storage_bytes(self) -> u64 {
        round_up(placed::storage_bytes(self.room.slots) as u64)
    }

    fn text_bytes(self) -> u64 {
        round_up(self.room.text_bytes.into())
    }

    /// Returns how long an image is, with all its parts.
    pub fn image_bytes(self) -> u64 {
        round_up(IMAGE_BYTES)
            + self.classes_bytes()
            + MINORS * 4
            + self.text_bytes()
            + self.storage_bytes()
    }

    pub fn slot(self, port: u32, slot: u32) -> u64 {
        self.of_port(port) + u64::from(slot) * SLOT_BYTES
    }

    /// Returns where the places of a port are.
    pub fn packet(self, port: u32, place: u32) -> u64 {
        self.of_port(port) + self.slots_bytes() + u64::from(place) * PACKET_BYTES
    }

    pub fn image(self, port: u32, number: u32) -> ImageParts {
        let image =
            self.packet(port, 0) + self.places_bytes() + u64::from(number) * self.image_bytes();
        let classes = image + round_up(IMAGE_BYTES);
        let slots = classes + self.classes_bytes();
        let text = slots + MINORS * 4;
        ImageParts {
            image,
            classes,
            slots,
            text,
            storage: text + self.text_bytes(),
        }
    }

    pub fn class(self, parts: ImageParts, slot: u32) -> u64 {
        parts.classes + u64::from(slot) * CLASS_BYTES
    }

    /// Returns the number of an image, counted over all ports. Its rules begin at it times the room
    /// for rules.
    pub fn image_number(self, port: u32, number: u32) -> u32 {
        port * 2 + number
    }

    /// Returns how many pages the arena has.
    pub fn pages(self) -> u64 {
        (self.of_port(self.ports) - START).div_ceil(PAGE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_core_is_as_large_as_the_programs_assert() {
        assert_eq!(placed::sched_bytes() as u64, SCHED_BYTES);
        assert_eq!(placed::class_bytes() as u64, CORE_CLASS_BYTES);
        assert_eq!(placed::RESERVATION_WORDS as u64 * 8, RESERVATION_BYTES);
        let stats_end = at::SCHED_STATS + placed::STATS_WORDS as u64 * 8;
        assert!(stats_end <= SCHED_BYTES, "{stats_end}");
    }

    #[test]
    fn parts_follow_each_other() {
        let room = Room {
            slots: 5,
            rules: 0,
            addresses: 0,
            text_bytes: 100,
        };
        let layout = Layout { ports: 3, room };
        assert_eq!(layout.slot(0, 0), layout.port(3).next_multiple_of(64));
        let first = layout.image(0, 0);
        assert_eq!(layout.packet(0, 0), layout.slot(0, 5).next_multiple_of(64));
        assert_eq!(first.image, layout.packet(0, PLACES_MIN));
        assert!(layout.class(first, 5) <= first.slots);
        assert_eq!(first.text, first.slots + MINORS * 4);
        let places = |slots| {
            let room = Room { slots, ..room };
            Layout { ports: 1, room }.places()
        };
        assert_eq!([5, 1024, 32_768].map(places), [8192, 65_536, 1 << 20]);
        assert_eq!(first.storage, first.text + 128);
        assert_eq!(layout.image(0, 1).image, first.image + layout.image_bytes());
        assert_eq!(
            layout.slot(1, 0),
            layout.image(0, 1).image + layout.image_bytes()
        );
        assert!(layout.pages() * PAGE + START >= layout.slot(2, 5));
    }
}
