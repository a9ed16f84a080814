// SPDX-License-Identifier: MIT OR Apache-2.0
//! Puts a psp of BPF on a device, changes it and looks at it.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;

use host_config::{Facts, Made, Psp, minor};
use nix::time::{ClockId, clock_gettime};
use tcpsp::ClassStats;
use tcpsp::{Counters, Handle, Mode, PlainQdisc, Qdisc as Row, QdiscStats, Tc, TypeOptions};

use super::settings::{LINE_UNKNOWN_BPS, settings};
use super::{Error as QdiscError, KIND, Place, Qdisc, Registered, Room};
use crate::error::Error;
use crate::seen::{ClassSeen, Seen};

/// Classes that a root, and a transmit queue, has room for in any case.
const SLOTS_MIN: usize = 1024;
const SLOTS_MIN_OF_QUEUE: usize = 64;
const RULES_MIN: usize = 128;
const ADDRESSES_MIN: usize = 128;
/// The number of a network namespace: that of the file.
const NETNS: &str = "/proc/thread-self/ns/net";

/// The programs of one device while its plan is made. There can be those of one device in a
/// process: they share memory at one address.
#[derive(Default)]
pub(crate) struct Session {
    open: Option<Qdisc>,
    /// While it lives, the kernel knows the kind, and `open` was loaded here.
    registered: Option<Registered>,
}

fn place(index: u32, parent: Handle) -> Result<Place, Error> {
    let netns = fs::metadata(NETNS).map_err(Error::Links)?.ino();
    Ok(Place {
        netns,
        ifindex: index,
        parent: parent.0,
    })
}

/// Returns where the psp of a device are: one at the root, or one at each transmit queue.
fn places(facts: &Facts, place: Place, psp: &Psp) -> Vec<Place> {
    if psp.parent == Handle::ROOT {
        return vec![place];
    }
    let queues = (0..facts.queues).map(|queue| Place {
        parent: minor::mq_class(queue).0,
        ..place
    });
    queues.collect()
}

/// Returns the monotonic clock.
fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).map(std::time::Duration::from);
    now.map_or(0, |now| u64::try_from(now.as_nanos()).unwrap_or(u64::MAX))
}

/// Returns the room that a psp needs, and as much again for what it becomes.
fn room(psp: &Psp) -> Room {
    let double = |count: usize, least: usize| {
        let double = (2 * count).next_power_of_two().max(least);
        u32::try_from(double).unwrap_or(u32::MAX)
    };
    let is_queue = psp.parent != Handle::ROOT;
    let slots = if is_queue {
        SLOTS_MIN_OF_QUEUE
    } else {
        SLOTS_MIN
    };
    let addresses = psp
        .filters
        .iter()
        .filter_map(|filter| filter.matching.as_ref());
    let addresses = addresses
        .filter(|matching| host_config::is_address(matching))
        .count();
    Room {
        slots: double(psp.classes.len(), slots),
        rules: double(psp.filters.len() - addresses, RULES_MIN),
        addresses: double(addresses, ADDRESSES_MIN),
        text_bytes: double(psp.text().len(), 64 * 1024),
    }
}

impl Session {
    /// Returns the programs at a place, if they run.
    fn find(&mut self, place: Place) -> Result<Option<&mut Qdisc>, Error> {
        let has = |open: &Qdisc| open.port_of(place).is_some();
        if !self.open.as_ref().is_some_and(has) {
            // Two cannot be mapped at once.
            self.registered = None;
            self.open = None;
            self.open = Qdisc::find(place)?;
        }
        Ok(self.open.as_mut())
    }

    /// Puts a psp where it shall stand, in the place of another qdisc if `replace` says so.
    ///
    /// # Errors
    /// The kernel's; nothing stands there then.
    pub fn put(
        &mut self,
        tc: &mut Tc,
        facts: &Facts,
        psp: &Psp,
        replace: bool,
    ) -> Result<(), Error> {
        let place = place(facts.index, psp.parent)?;
        let has = |open: &Qdisc| open.port_of(place).is_some();
        if self.registered.is_none() || !self.open.as_ref().is_some_and(has) {
            // Two cannot be mapped at once.
            self.registered = None;
            self.open = None;
            self.open = Some(Qdisc::load(&places(facts, place, psp), room(psp))?);
        }
        let Some(open) = &mut self.open else {
            return Ok(());
        };
        let text = psp.text().into_bytes();
        let port = open.port_of(place).unwrap_or(0);
        open.configure(port, &settings(psp, facts, &text)?, now_ns())?;
        if self.registered.is_none() {
            self.registered = Some(open.register()?);
        }
        let qdisc = PlainQdisc {
            parent: psp.parent,
            handle: psp.handle,
            kind: KIND,
            options: Vec::new(),
        };
        Ok(tc.put_qdisc(facts.index, &qdisc, replace)?)
    }

    /// Changes the psp that stands at its place. One that has become too large for the room of its
    /// programs is made anew, and packets that wait in it are dropped.
    ///
    /// # Errors
    /// The kernel's; what is in force stays then.
    pub fn change(&mut self, tc: &mut Tc, facts: &Facts, psp: &Psp) -> Result<(), Error> {
        let place = place(facts.index, psp.parent)?;
        match self.find(place) {
            Ok(Some(open)) => {
                let text = psp.text().into_bytes();
                let port = open.port_of(place).unwrap_or(0);
                match open.configure(port, &settings(psp, facts, &text)?, now_ns()) {
                    Err(QdiscError::Full { .. }) => {}
                    result => return Ok(result?),
                }
            }
            Ok(None) | Err(Error::Qdisc(QdiscError::Version { .. })) => {}
            Err(error) => return Err(error),
        }
        let (parent, handle) = (psp.parent, psp.handle);
        tc.change(facts.index, &tcpsp::Change::DeleteQdisc { parent, handle })?;
        self.registered = None;
        self.open = None;
        self.put(tc, facts, psp, false)
    }

    /// Returns how many packets wait in a class.
    ///
    /// # Errors
    /// The kernel's.
    pub fn waiting(&mut self, facts: &Facts, psp: &Psp, minor: u16) -> Result<u32, Error> {
        let place = place(facts.index, psp.parent)?;
        let Some(open) = self.find(place)? else {
            return Ok(0);
        };
        let counters = open.counters(open.port_of(place).unwrap_or(0));
        let class = counters.iter().find(|(other, _)| *other == minor);
        Ok(class.map_or(0, |(_, slot)| slot.packets))
    }
}

/// Looks at a psp that stands at a device.
///
/// # Errors
/// The kernel's.
pub(crate) fn look(index: u32, row: &Row) -> Result<Seen, Error> {
    let place = place(index, row.parent)?;
    let gone = || Error::Text("there are no programs".to_owned());
    let open = match Qdisc::find(place) {
        Ok(open) => open.ok_or_else(gone)?,
        // What another version does is not known here: it makes room as a whole.
        Err(QdiscError::Version { .. }) => {
            return Ok(Seen {
                psp: Psp::empty(Made::Bpf, row.handle, row.parent),
                stats: QdiscStats::default(),
                classes: BTreeMap::new(),
            });
        }
        Err(error) => return Err(error.into()),
    };
    let port = open.port_of(place).ok_or_else(gone)?;
    let text = open.text(port);
    let text = std::str::from_utf8(&text).map_err(|error| Error::Text(error.to_string()))?;
    let psp = Psp::of_text(text, Made::Bpf, row.handle, row.parent).map_err(Error::Text)?;
    let all = open.port_counters(port);
    let mut stats = QdiscStats {
        mode: Mode::Timer.number(),
        line_rate_bps: psp.line_bps.unwrap_or(LINE_UNKNOWN_BPS),
        line_known: psp.line_bps.is_some().into(),
        max_frame_bytes: psp.max_frame_bytes,
        unclassified_frames: all.dropped_unclassified,
        ..QdiscStats::default()
    };
    let mut classes = BTreeMap::new();
    for (minor, slot) in open.counters(port) {
        let Some(class) = psp.classes.get(&minor) else {
            continue;
        };
        let (rate_bps, ceil_bps) = match class.options.by_type {
            TypeOptions::Paced {
                rate_bps, ceil_bps, ..
            } => (rate_bps, ceil_bps.unwrap_or(0)),
            _ => (0, 0),
        };
        let class = ClassStats {
            active: u64::from(slot.packets > 0),
            rate_bps,
            ceil_bps,
            sent_frames: slot.sent_frames,
            sent_wire_bytes: slot.sent_wire_bytes,
            drop_child: slot.dropped_full,
            drop_long: slot.dropped_long,
            drop_late: slot.dropped_late,
            ..ClassStats::default()
        };
        stats.sent_frames += class.sent_frames;
        stats.sent_wire_bytes += class.sent_wire_bytes;
        stats.drop_child += class.drop_child;
        stats.drop_long += class.drop_long;
        stats.drop_late += class.drop_late;
        let drops = slot.dropped_full + slot.dropped_long + slot.dropped_late;
        let number = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        let counters = Counters {
            sent_bytes: slot.sent_bytes,
            sent_packets: slot.sent_frames,
            drops: number(drops + slot.dropped_removed),
            waiting_packets: slot.packets,
            waiting_bytes: number(slot.bytes),
            ..Counters::default()
        };
        let seen = ClassSeen {
            counters,
            stats: class,
        };
        classes.insert(minor, seen);
    }
    Ok(Seen {
        psp,
        stats,
        classes,
    })
}
