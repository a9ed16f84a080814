// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes the changes of a plan where the module is not: puts qdiscs and takes them away one by one,
//! and puts all else of a psp in force at once, with one store.

use std::collections::{BTreeMap, BTreeSet};
use std::thread::sleep;
use std::time::{Duration, Instant};

use host_config::{Facts, FilterState, Made, Port, Psp};
use tcpsp::{Change, Handle, QdiscKind, Tc};

use crate::classify;
use crate::edt;
use crate::error::Error;
use crate::qdisc::Session;

/// Between two looks at a class that has packets.
const LOOK: Duration = Duration::from_millis(5);

/// Makes the changes of one device.
pub struct Maker<'a> {
    facts: &'a Facts,
    drain: Duration,
    /// psp that were changed.
    changed: BTreeSet<Handle>,
    /// What is in force of them.
    written: BTreeMap<Handle, Psp>,
    session: Session,
}

/// Returns the qdisc that a change is about.
fn qdisc_of(change: &Change) -> Handle {
    match change {
        Change::AddQdisc { handle, .. }
        | Change::ReplaceQdisc { handle, .. }
        | Change::ChangeQdisc { handle, .. }
        | Change::DeleteQdisc { handle, .. } => *handle,
        Change::AddClass { id, .. }
        | Change::ChangeClass { id, .. }
        | Change::DeleteClass { id } => id.qdisc(),
        Change::AddFilter { at, .. }
        | Change::ReplaceFilter { at, .. }
        | Change::DeleteFilter { at, .. } => at.qdisc,
    }
}

impl<'a> Maker<'a> {
    /// Begins. A class that goes has `drain` to send its packets.
    pub fn new(facts: &'a Facts, drain: Duration) -> Self {
        Self {
            facts,
            drain,
            changed: BTreeSet::new(),
            written: BTreeMap::new(),
            session: Session::default(),
        }
    }

    /// Makes the first of these changes of a device that is as `port` says, if it is not the
    /// module's; returns whether it is made. The others say what a qdisc shall begin with.
    ///
    /// # Errors
    /// The kernel's, or that packets still wait in a class that goes.
    pub fn make(&mut self, tc: &mut Tc, port: &Port, changes: &[Change]) -> Result<bool, Error> {
        let Some(change) = changes.first() else {
            return Ok(true);
        };
        let handle = qdisc_of(change);
        let had = port.psp(handle);
        match change {
            Change::AddQdisc {
                kind: QdiscKind::Psp(_),
                ..
            }
            | Change::ReplaceQdisc {
                kind: QdiscKind::Psp(_),
                ..
            } if port.made != Made::Module => {
                let mut after = port.clone();
                let is_of_it = |other: &&Change| qdisc_of(other) == handle;
                for change in changes.iter().filter(is_of_it) {
                    after.apply(change).map_err(Error::Model)?;
                }
                let psp = after.psp(handle).cloned();
                let psp =
                    psp.ok_or_else(|| Error::Model(format!("qdisc {handle}: is not there")))?;
                let replace = matches!(change, Change::ReplaceQdisc { .. });
                match psp.made {
                    Made::Bpf => self.session.put(tc, self.facts, &psp, replace)?,
                    _ => edt::put(tc, self.facts, &psp)?,
                }
                self.changed.insert(handle);
                self.written.insert(handle, psp);
            }
            Change::AddQdisc { .. } | Change::ReplaceQdisc { .. } => return Ok(false),
            Change::DeleteQdisc { .. } => match had.map(|psp| psp.made) {
                Some(Made::Edt | Made::EdtMq) => edt::remove(tc, self.facts)?,
                _ => {
                    self.changed.remove(&handle);
                    self.written.remove(&handle);
                    return Ok(false);
                }
            },
            _ => match had {
                None => return Ok(false),
                Some(psp) if psp.made == Made::Module => return self.module(tc, port, psp, change),
                Some(psp) => {
                    self.changed.insert(handle);
                    if let Change::DeleteClass { id } = change {
                        self.write(tc, psp)?;
                        self.drained(psp, *id)?;
                    }
                }
            },
        }
        Ok(true)
    }

    /// Makes a change of the module's psp, if a program classifies for it: filters of ours are
    /// written before the next change of anything else. Returns whether it is made.
    fn module(
        &mut self,
        tc: &mut Tc,
        port: &Port,
        psp: &Psp,
        change: &Change,
    ) -> Result<bool, Error> {
        if !port.can_classify {
            return Ok(false);
        }
        let is_of_ours = match change {
            Change::AddFilter { .. } | Change::ReplaceFilter { .. } => true,
            Change::DeleteFilter { at, .. } => psp
                .filter_at((at.priority, at.handle))
                .is_some_and(FilterState::is_ours),
            _ => false,
        };
        let has_old = || !psp.is_classified && psp.filters.iter().any(FilterState::is_ours);
        if is_of_ours {
            self.changed.insert(psp.handle);
        } else if self.changed.remove(&psp.handle) {
            self.write(tc, psp)?;
        } else if !self.written.contains_key(&psp.handle) && has_old() {
            // The kernel's own filters go with the next change, or at the end.
            self.changed.insert(psp.handle);
        }
        Ok(is_of_ours)
    }

    /// Puts in force what has been made. The device is as `port` says then.
    pub fn finish(mut self, tc: &mut Tc, port: &Port) -> Result<(), Error> {
        for handle in self.changed.clone() {
            if let Some(psp) = port.psp(handle) {
                self.write(tc, psp)?;
            }
        }
        Ok(())
    }

    fn write(&mut self, tc: &mut Tc, psp: &Psp) -> Result<(), Error> {
        if self.written.get(&psp.handle) == Some(psp) {
            return Ok(());
        }
        match psp.made {
            Made::Bpf => self.session.change(tc, self.facts, psp)?,
            Made::Module => classify::put(tc, self.facts, psp)?,
            _ => edt::put(tc, self.facts, psp)?,
        }
        self.written.insert(psp.handle, psp.clone());
        Ok(())
    }

    /// Waits until a class has no packets; nothing names it any more. Packets with a departure time
    /// wait in fq, whatever becomes of their class.
    fn drained(&mut self, psp: &Psp, id: Handle) -> Result<(), Error> {
        if psp.made != Made::Bpf {
            return Ok(());
        }
        let start = Instant::now();
        loop {
            let waiting = self.session.waiting(self.facts, psp, id.minor())?;
            if waiting == 0 {
                return Ok(());
            }
            if start.elapsed() >= self.drain {
                return Err(Error::Waiting(waiting));
            }
            sleep(LOOK);
        }
    }
}
