// SPDX-License-Identifier: MIT OR Apache-2.0
//! A psp that runs without the module, and what it has done.

use std::collections::BTreeMap;

use host_config::Psp;
use linux_io::links::Link;
use tcpsp::ports::{Port as PortStats, PortClass};
use tcpsp::{ClassStats, Counters, Handle, PspClass, PspQdisc, QdiscStats};

/// What a class has done.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClassSeen {
    pub counters: Counters,
    pub stats: ClassStats,
}

/// A psp that runs without the module.
pub(crate) struct Seen {
    /// What is kept of it.
    pub psp: Psp,
    pub stats: QdiscStats,
    /// By minor number.
    pub classes: BTreeMap<u16, ClassSeen>,
}

impl Seen {
    /// Returns the psp, with what waits.
    pub fn psp(self) -> Psp {
        let mut psp = self.psp;
        for (minor, class) in &mut psp.classes {
            let seen = self.classes.get(minor);
            class.waiting = seen.map_or(0, |seen| seen.counters.waiting_packets);
        }
        psp
    }

    /// Returns its statistics; `counters` is what the kernel counts of the qdisc.
    pub fn stats(self, device: &Link, counters: Counters) -> PortStats {
        let Self {
            psp,
            stats,
            mut classes,
        } = self;
        let major = psp.handle.major();
        let classes = psp.classes.iter().map(|(minor, class)| {
            let ClassSeen { counters, stats } = classes.remove(minor).unwrap_or_default();
            PortClass {
                id: Handle::new(major, *minor),
                counters,
                psp: PspClass {
                    options: class.options.clone(),
                    stats,
                },
            }
        });
        PortStats {
            device: device.name.clone(),
            index: device.index,
            handle: psp.handle,
            device_frames: device.sent_frames,
            device_bytes: device.sent_bytes,
            parent: psp.parent,
            counters,
            classes: classes.collect(),
            psp: PspQdisc {
                options: psp.options.clone(),
                stats,
            },
        }
    }
}
