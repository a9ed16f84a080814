// SPDX-License-Identifier: MIT OR Apache-2.0
//! Puts a psp of BPF on a device and changes it.

use std::fs;
use std::os::unix::fs::MetadataExt;

use host_config::{Facts, Psp, listed, minor};
use nix::time::{ClockId, clock_gettime};
use tcpsp::{Handle, PlainQdisc, Tc};

use super::settings::settings;
use super::{Error as QdiscError, KIND, Place, Qdisc, Registered, Room};
use crate::error::Error;

/// Classes that a root, and a transmit queue, has room for in any case.
const SLOTS_MIN: usize = 1024;
const SLOTS_MIN_OF_QUEUE: usize = 64;
const RULES_MIN: usize = 128;
const ADDRESSES_MIN: usize = 128;
/// Readings of two clocks beside each other.
const READINGS: usize = 16;
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

pub(super) fn place(index: u32, parent: Handle) -> Result<Place, Error> {
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
    clock_ns(ClockId::CLOCK_MONOTONIC)
}

fn clock_ns(clock: ClockId) -> u64 {
    let now = clock_gettime(clock).map(std::time::Duration::from);
    now.map_or(0, |now| u64::try_from(now.as_nanos()).unwrap_or(u64::MAX))
}

/// Returns how far CLOCK_TAI is ahead of the monotonic clock, as the quickest of several readings
/// says: it is read between two of the other clock.
fn tai_ahead_ns() -> u64 {
    let readings = (0..READINGS).map(|_| {
        let (before, tai, after) = (now_ns(), clock_ns(ClockId::CLOCK_TAI), now_ns());
        let took_ns = after.saturating_sub(before);
        (took_ns, tai.saturating_sub(before + took_ns / 2))
    });
    readings.min().map_or(0, |(_, ahead_ns)| ahead_ns)
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
    let filters = psp.filters.iter();
    let (rules, addresses) = listed(filters.filter_map(|filter| filter.matching.as_ref()));
    Room {
        slots: double(psp.classes.len(), slots),
        rules: double(rules, RULES_MIN),
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
        self.make_ready(facts, psp)?;
        let qdisc = PlainQdisc {
            parent: psp.parent,
            handle: psp.handle,
            kind: KIND,
            options: Vec::new(),
        };
        Ok(tc.put_qdisc(facts.index, &qdisc, replace)?)
    }

    /// Loads the programs, unless they are, and has the kernel know them. Nothing of the device changes.
    fn make_ready(&mut self, facts: &Facts, psp: &Psp) -> Result<(), Error> {
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
        let wanted = settings(psp, facts, &text, tai_ahead_ns());
        open.configure(port, &wanted, now_ns())?;
        if self.registered.is_none() {
            self.registered = Some(open.register()?);
        }
        Ok(())
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
                let wanted = settings(psp, facts, &text, tai_ahead_ns());
                match open.configure(port, &wanted, now_ns()) {
                    Err(QdiscError::Full { .. }) => {}
                    result => return Ok(result?),
                }
            }
            Ok(None) | Err(Error::Qdisc(QdiscError::Version { .. })) => {}
            Err(error) => return Err(error),
        }
        self.registered = None;
        self.open = None;
        // What cannot be loaded leaves the old one where it is.
        self.make_ready(facts, psp)?;
        let (parent, handle) = (psp.parent, psp.handle);
        tc.change(facts.index, &tcpsp::Change::DeleteQdisc { parent, handle })?;
        self.put(tc, facts, psp, false)
    }

    /// Returns how many packets wait in a class.
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
