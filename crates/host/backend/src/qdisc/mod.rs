// SPDX-License-Identifier: MIT OR Apache-2.0
//! The scheduler core as a qdisc of BPF (Linux 6.16), which needs no module, in mode timer.
//!
//! [`Qdisc::load`] loads the programs for the ports of a device, [`Qdisc::configure`] lays a port
//! out in the arena that they share with this process, and `tc` or netlink puts the qdisc
//! ([`KIND`]) at the port's [`Place`] while it is [registered](Qdisc::register). From then on the
//! qdisc holds programs and maps by itself: they go on when this process ends, and go when the
//! qdisc goes. [`Qdisc::find`] opens those of a running qdisc. docs/decisions/host.md, "The core as
//! a qdisc of BPF".
//!
//! Whoever configures sees to it that nobody else does so at the same time.

mod check;
mod counters;
mod error;
mod layout;
mod look;
mod memory;
mod ports;
mod program;
mod session;
mod settings;

pub(crate) use check::{check, check_module};
pub use counters::{LATE_BUCKETS, PortCounters, SlotCounters};
pub use error::Error;
pub use layout::Room;
pub(crate) use look::look;
pub use ports::{Place, PortClass};
pub use program::{KIND, is_built, programs};
pub(crate) use session::Session;

use layout::Layout;
use pace::Config;
use ports::{Image, Ports};

use crate::match_maps::Matches;
use crate::match_words::{MatchTables, RuleWords};

/// What is wanted of a port.
#[derive(Clone, Debug, PartialEq)]
pub struct PortConfig<'a> {
    pub config: Config,
    /// Its classes, each with a minor number of its own above 0.
    pub classes: Vec<PortClass>,
    /// Minor number of the class of packets that nothing else gives a class.
    pub default: Option<u16>,
    /// Which packets belong to which class, in the order in which the first decides:
    /// [`crate::rule_words`] and [`crate::cgroup_words`].
    pub rules: Vec<RuleWords>,
    /// Whether net_cls.classid of the sender's cgroup names the class of packets that no rule
    /// claims.
    pub net_cls: bool,
    /// Bytes of the link header; 0: the device is no Ethernet.
    pub link_bytes: u32,
    /// What the caller gets back by [`Qdisc::text`].
    pub text: &'a [u8],
}

/// The qdisc of a device: its programs and their arena. The arena is at one address, so a process
/// has one value of these at a time; a second one is [`Error::Mapped`].
pub struct Qdisc {
    ports: Ports,
    matches: Matches,
}

/// The kind of qdisc is known as long as this value lives. Qdiscs that run by then go on.
pub struct Registered {
    _link: libbpf_rs::Link,
}

impl Qdisc {
    /// Loads the programs for ports at these places, and does not register them. A port cannot be
    /// used before it is configured.
    ///
    /// # Errors
    /// The kernel's: it is older than 6.16, the caller is not root. [`Error::Mapped`].
    pub fn load(places: &[Place], room: Room) -> Result<Self, Error> {
        let layout = Layout {
            ports: u32::try_from(places.len()).unwrap_or(u32::MAX),
            room,
        };
        let (ports, matches) = program::load(places, layout)?;
        Ok(Self { ports, matches })
    }

    /// Registers the programs that this value has loaded as the kind of qdisc, so that qdiscs can
    /// be put. While another process has registered its own, waits for up to 2 s.
    ///
    /// # Errors
    /// The kernel's, [`Error::Registered`], or that this value was found and not loaded.
    pub fn register(&mut self) -> Result<Registered, Error> {
        let object = self.ports.memory.object().ok_or_else(|| Error::Refused {
            part: "qdisc".to_owned(),
            detail: "only the process that has loaded the programs can register them".to_owned(),
        })?;
        let link = program::register(object)?;
        Ok(Registered { _link: link })
    }

    /// Opens the programs of the qdisc that runs at a place. `None`: none of ours does. O(maps of
    /// the kernel).
    ///
    /// # Errors
    /// The kernel's, [`Error::Version`], or [`Error::Mapped`].
    pub fn find(place: Place) -> Result<Option<Self>, Error> {
        let found = program::find(place)?;
        Ok(found.map(|(ports, matches)| Self { ports, matches }))
    }

    /// Returns what each port has room for.
    pub fn room(&self) -> Room {
        self.ports.layout.room
    }

    pub fn port_of(&self, place: Place) -> Option<u32> {
        let mut ports = 0..self.ports.layout.ports;
        ports.find(|port| self.ports.place(*port) == Some(place))
    }

    /// Returns where a port is.
    pub fn place_of(&self, port: u32) -> Option<Place> {
        self.ports.place(port)
    }

    /// Configures a port. A qdisc that runs takes the configuration with the next packet that comes
    /// or goes, all of it at once: classes that stay, by their minor numbers, keep packets and
    /// clocks, packets of those that go are dropped and counted. One that was asked for before and
    /// not taken is forgotten. `now_ns` is the monotonic clock's. O(slots + matches of all ports).
    ///
    /// # Errors
    /// What the core refuses, or [`Error::Full`]: nothing has changed then. Or the kernel has no
    /// memory for the matches: what is in force stays.
    pub fn configure(&self, port: u32, wanted: &PortConfig<'_>, now_ns: u64) -> Result<(), Error> {
        let ports = &self.ports;
        let Room {
            rules,
            addresses,
            text_bytes,
            ..
        } = self.room();
        if self.place_of(port).is_none() {
            return Err(Error::Refused {
                part: format!("port {port}"),
                detail: format!("there are {}", ports.layout.ports),
            });
        }
        ports::check(&wanted.config, &wanted.classes)?;
        let tables = MatchTables::new(&wanted.rules);
        let rules = fits("matches", tables.rules.len(), rules)?;
        let addresses = fits("matches of one address", tables.addresses.len(), addresses)?;
        fits("bytes of text", wanted.text.len(), text_bytes)?;
        let free = ports.free_image(port);
        let slots = match ports.slots(port, free, &wanted.classes) {
            Ok(slots) => slots,
            Err(error) => {
                ports.give_back(port, free);
                return Err(error);
            }
        };
        let image_number = ports.layout.image_number(port, free.number);
        // Also where there are no rules, so that each image has keys of its own for addresses.
        let rules_base = image_number * self.room().rules.max(1);
        let written = self.matches.write(rules_base, &tables);
        written.map_err(|error| error::refused("matches", &error))?;
        let image = Image {
            config: &wanted.config,
            classes: &wanted.classes,
            default: wanted.default,
            rules,
            rules_base,
            addresses,
            net_cls: wanted.net_cls,
            link_bytes: wanted.link_bytes,
            text: wanted.text,
        };
        ports.write(port, free, &image, &slots, now_ns)
    }

    /// Returns the text of the configuration that was asked for last.
    pub fn text(&self, port: u32) -> Vec<u8> {
        self.ports.text(port)
    }

    /// Returns what a port has done beside its classes.
    pub fn port_counters(&self, port: u32) -> PortCounters {
        self.ports.port_counters(port)
    }

    /// Returns what each class in force has done, by minor number. O(slots).
    pub fn counters(&self, port: u32) -> Vec<(u16, SlotCounters)> {
        self.ports.counters(port)
    }
}

/// Returns the number if there is room for so many.
fn fits(what: &'static str, wanted: usize, room: u32) -> Result<u32, Error> {
    let count = u32::try_from(wanted).ok().filter(|count| *count <= room);
    count.ok_or(Error::Full { what, wanted, room })
}
