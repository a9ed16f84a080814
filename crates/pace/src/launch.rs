// SPDX-License-Identifier: MIT OR Apache-2.0
//! Classes whose frames have a launch time, and what a host reports to meet it.

use crate::{ClassId, Error, Scheduler};

impl Scheduler {
    /// As [`Scheduler::activate`], for a [`ClassConfig::Launching`] class whose first frame may
    /// not leave before `launch_ns`. A host that has more packets reports to
    /// [`Scheduler::sent`] that it has none, and then the next one here. Changes the instant of
    /// an active class. O(log n).
    ///
    /// # Errors
    /// [`Error::UnknownClass`].
    pub fn activate_at(
        &mut self,
        class: ClassId,
        launch_ns: u64,
        now_ns: u64,
    ) -> Result<(), Error> {
        let slot = self.slot(class)?;
        self.port
            .activate_at(slot, launch_ns, now_ns)
            .ok_or(Error::UnknownClass)
    }

    /// Returns true if what is handed out at `now_ns` leaves at once, but for the time that
    /// handing it over takes. A host that measures that time asks before it reports what it
    /// hands out, and reports the start to [`Scheduler::started`]. O(1).
    pub fn wire_is_free(&mut self, now_ns: u64) -> bool {
        self.port.wire_is_free(now_ns)
    }

    /// Reports when the first byte of what was handed out after [`Scheduler::wire_is_free`]
    /// began to leave: launch times of the frames that follow are met by it. O(1).
    pub fn started(&mut self, started_ns: u64) {
        self.port.started(started_ns);
    }

    /// Corrects the last [`Scheduler::started`]: it was so much earlier, at most 2^32 ns. O(1).
    pub fn started_earlier(&mut self, earlier_ns: u64) {
        self.port.started_earlier(earlier_ns);
    }

    /// Returns the instant at which what is handed out at `now_ns` leaves the host: when the
    /// wire has carried what was handed out before. O(1).
    pub fn departure_ns(&mut self, now_ns: u64) -> u64 {
        self.port.departure_ns(now_ns)
    }
}
