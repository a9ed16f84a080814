// SPDX-License-Identifier: MIT OR Apache-2.0
//! The scheduler core as a qdisc of BPF (Linux 6.16), which needs no module, in mode timer.
//!
//! [`Qdisc::load`] registers a kind of qdisc, [`Qdisc::configure`] lays a port out in the arena
//! that its programs share with this process, and `tc` or netlink puts the qdisc at the port's
//! [`Place`]. docs/decisions/host.md, "The core as a qdisc of BPF".

mod error;
mod layout;
mod memory;
mod ports;
mod program;

pub use error::Error;
pub use ports::{Place, PortClass, PortConfig, PortCounters, SlotCounters};

use layout::Layout;
use ports::Ports;

/// The qdisc of a device. A process has one at a time: the arena is at one address.
pub struct Qdisc {
    ports: Ports,
}

impl Qdisc {
    /// Loads the programs and registers them as the kind of qdisc `name`, of up to 15 characters,
    /// for ports of `slots` classes each. They stay when this value goes. A port cannot be used
    /// before it is configured.
    ///
    /// # Errors
    /// The kernel's: it is older than 6.16, the name is taken, the caller is not root.
    pub fn load(name: &str, places: &[Place], slots: u32) -> Result<Self, Error> {
        let layout = Layout {
            ports: u32::try_from(places.len()).unwrap_or(u32::MAX),
            slots,
        };
        let memory = program::load(name, layout)?;
        let ports = Ports { memory, layout };
        ports.begin(places);
        Ok(Self { ports })
    }

    /// Configures a port, whose classes are in the slots of their places in the list. A qdisc that
    /// runs takes the configuration with the next packet that comes or goes: classes that stay in
    /// their slots keep packets and clocks, packets of those that go are dropped and counted.
    /// `now_ns` is the monotonic clock's. O(slots).
    ///
    /// # Errors
    /// What the core refuses, or that the configuration before was not taken yet. Nothing has
    /// changed then.
    pub fn configure(&self, port: u32, wanted: &PortConfig, now_ns: u64) -> Result<(), Error> {
        self.ports.configure(port, wanted, now_ns)
    }

    /// Returns what a port has done beside its classes.
    #[must_use]
    pub fn port_counters(&self, port: u32) -> PortCounters {
        self.ports.port_counters(port)
    }

    /// Returns what the class of a slot has done.
    #[must_use]
    pub fn counters(&self, port: u32, slot: u32) -> SlotCounters {
        self.ports.counters(port, slot)
    }
}
